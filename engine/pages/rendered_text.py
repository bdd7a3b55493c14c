"""Compute the `innerText` of a page from its markup and the browser's own style sheet.

The algorithm is the HTML standard's "rendered text collection steps". Supported styles are
Chromium's style sheet and `style` attributes; `style_sheets` copies the page's own rules into
these.

The markup must be the serialization of a parsed tree: every element is closed and `<` occurs in
tags only, so one pass over its tokens needs no recursion, however deep the page is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

_TAG: Final = r"<(?:(/?)([a-zA-Z][^\s/>]*+)((?:[^>=]++|=\"[^\"]*+\"|=)*+)>|!--.*?-->|[^>]*+>)"
_TOKEN: Final = re.compile(rf"([^<]*+){_TAG}", re.DOTALL)
# Inline elements without effect: text that contains only these is matched in one piece.
PLAIN: Final = (
    "a|abbr|b|bdi|bdo|big|cite|code|dfn|em|font|i|ins|kbd|label|mark|s|samp|small|span|strike"
    "|strong|sub|sup|time|tt|u|var"
)
_PLAIN_OPEN: Final = (
    rf"<(?:{PLAIN})(?:\s(?!style=|hidden\b|popover\b)[^\s=>\"]++(?:=\"[^\"]*+\")?+)*+>"
)
_PLAIN_TAG: Final = re.compile(r"<(?:[^>=]++|=\"[^\"]*+\"|=)*+>")
PLAIN_DEPTH: Final = 4  # deeper nesting is processed tag by tag


def _plain(depth: int) -> str:
    inner = "" if depth == 0 else rf"|{_PLAIN_OPEN}{_plain(depth - 1)}</[^>]*+>"
    return rf"(?:[^<]++{inner})*+"


_RUN: Final = re.compile(rf"({_plain(PLAIN_DEPTH)})(?:{_TAG}|\Z)", re.DOTALL)
_STYLED: Final = re.compile(r"\s(?:style=|hidden\b|popover\b)")
_ATTRIBUTE: Final = re.compile(r"\s([^\s=>\"]+)(?:=\"([^\"]*+)\")?")
_DECLARATION: Final = re.compile(
    r"(?:^|;)\s*(display|visibility|white-space|float|position|text-transform)\s*:\s*([a-z-]+)",
    re.IGNORECASE,
)
_SPACES: Final = " \t\n\r"
_BLANKS: Final = re.compile(r"[ \t\n\r]+")
_SOME_BLANKS: Final = re.compile("  +")
_NO_WIDTH: Final = "\u200b"  # zero-width space: a line break next to it is no blank
_NO_BLANK: Final = re.compile("(?<=\u200b)[ \t\r]*\n[ \t\n\r]*|[ \t\r]*\n[ \t\n\r]*(?=\u200b)")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VOID: Final = _names(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source track"
    " wbr"
)
_RAW: Final = _names("script style xmp iframe noembed noframes plaintext")
PRESERVED: Final = _names("pre listing xmp plaintext")
_GONE: Final = _names(
    "annotation annotation-xml area base basefont col colgroup datalist desc frame head link meta"
    " metadata noembed noframes noscript param rp script source style template title track"
)
_BLOCKS: Final = _names(
    "address article aside blockquote body center dd details dir div dl dt fieldset figcaption"
    " figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main"
    " menu nav ol optgroup plaintext pre search section summary ul xmp"
)
# Their box is part of the line; browsers do not display their content.
_REPLACED: Final = _names("canvas iframe img input meter progress textarea video")
_DISPLAYS: Final[dict[str, str]] = {
    **dict.fromkeys(_BLOCKS, "block"),
    **dict.fromkeys(_GONE, "none"),
    **dict.fromkeys(_REPLACED, "replaced"),
    **dict.fromkeys(("thead", "tbody", "tfoot"), "table-row-group"),
    **dict.fromkeys(("td", "th"), "table-cell"),
    **dict.fromkeys(("button", "marquee"), "inline-block"),
    "audio": "audio",
    "br": "br",
    "caption": "table-caption",
    "dialog": "dialog",
    "embed": "embed",
    "math": "math",
    "object": "object",
    "option": "option",
    "p": "p",
    "q": "q",
    "select": "select",
    "svg": "svg",
    "table": "table",
    "tr": "table-row",
}
_STYLE_DISPLAYS: Final[dict[str, str]] = {
    "block": "block",
    "contents": "inline",
    "flex": "flex",
    "flow-root": "block",
    "grid": "flex",
    "inline": "inline",
    "inline-block": "inline-block",
    "inline-flex": "inline-block",
    "inline-grid": "inline-block",
    "inline-table": "inline-block",
    "list-item": "block",
    "none": "none",
    "table": "table",
    "table-caption": "table-caption",
    "table-cell": "table-cell",
    "table-footer-group": "table-row-group",
    "table-header-group": "table-row-group",
    "table-row": "table-row",
    "table-row-group": "table-row-group",
}
_MATH_TOKENS: Final = _names("mi mn mo ms mtext")
_SILENT: Final = frozenset({"svg", "math", "select", "details", "closed"})


class _Frame(NamedTuple):
    """State restored at the end of an element: its display, and the previous modes."""

    end: str
    preserved: str
    visible: bool
    mode: str
    transform: str
    outer: tuple[bool, str] = (True, "")  # of the line that continues after a floating element


class _Lines:
    """The words of a page in the order of its markup, with the breaks between them.

    A blank is emitted only before further text of its line, a block's break only before further
    text.
    """

    def __init__(self) -> None:
        self.out: list[str] = []
        self.required = 0
        self.blank = ""  # pending; "\n" for a line break
        self.line_start = True
        self.last = ""

    def block(self, breaks: int) -> None:
        """Begin or end a block: a new line, or nothing at the start of the page."""
        self.blank, self.line_start = "", True
        if self.out and breaks > self.required:
            self.required = breaks

    def sign(self, text: str) -> None:
        if self.required:
            self.out.append("\n" * self.required)
            self.required = 0
        self.out.append(text)

    def line_break(self, *, emit: bool = True) -> None:
        self.blank, self.line_start = "", True
        if emit:
            self.sign("\n")

    def flush_blank(self) -> None:
        if self.blank and not self.line_start:
            self.sign(" ")
        self.blank = ""

    def box(self) -> None:
        """Add an inline box without text, which separates blanks like a word."""
        self.flush_blank()
        self.line_start, self.last = False, ""

    def text(self, text: str) -> None:
        """Add text with collapsing white space."""
        if _NO_WIDTH in text:
            text = _NO_BLANK.sub("", text)
        plain = "  " not in text and "\n" not in text and "\t" not in text and "\r" not in text
        words = text if plain else _collapsed(text)
        core = words.strip(" ")
        if not core:
            if words and not self.line_start and self.blank != " ":
                self.blank = _blank_of(text)
            return
        if not self.line_start:
            blank = self.blank or (
                _blank_of(text[: len(text) - len(text.lstrip(_SPACES))]) if words[0] == " " else ""
            )
            no_blank = blank == "\n" and (self.last == _NO_WIDTH or core[0] == _NO_WIDTH)
            if blank and not no_blank:
                core = " " + core
        self.sign(core)
        self.line_start, self.last = False, core[-1]
        self.blank = _blank_of(text[len(text.rstrip(_SPACES)) :]) if words[-1] == " " else ""

    def pass_over(self, text: str) -> None:
        """Skip invisible text, which still takes up space."""
        if not _BLANKS.fullmatch(text):
            if text[0] in _SPACES:
                self.flush_blank()
            self.blank = " " if text[-1] in _SPACES else ""
            self.line_start, self.last = False, ""

    def preserved(self, text: str) -> None:
        """Add text with preserved white space."""
        self.flush_blank()
        self.sign(text)
        self.line_start, self.last = text.endswith("\n"), text[-1]


def _collapsed(text: str) -> str:
    words = text.replace("\n", " ").replace("\t", " ").replace("\r", " ")
    return _SOME_BLANKS.sub(" ", words) if "  " in words else words


def _blank_of(blanks: str) -> str:
    return "\n" if "\n" in blanks else " "


def rendered_text(html: str) -> str:
    """Return the text of `html`, the serialization of a parsed tree or of its body."""
    walk = Walk(html)
    walk.run()
    return "".join(walk.lines.out)


def unescaped(text: str) -> str:
    """Unescape text of a serialized tree, which contains only these references."""
    if "&" not in text:
        return text
    text = text.replace("&nbsp;", "\xa0").replace("&lt;", "<").replace("&gt;", ">")
    return text.replace("&quot;", '"').replace("&amp;", "&")


class Observer(Protocol):
    """Receives the begin and end of blocks and cells; equal `depth` pairs them."""

    def begin(self, name: str, depth: int, given: Mapping[str, str]) -> None: ...

    def end(self, depth: int) -> None: ...


class Walk:
    """One pass over the tokens, with a stack of the open elements.

    `mode` determines the content directly inside the last of them: "" for text, `table` where
    blanks make no text, `flex` where each child is a block, those of `_SILENT` where text is not
    shown.
    """

    def __init__(self, html: str, observer: Observer | None = None) -> None:
        self.lines = _Lines()
        self._html = html
        self._observer = observer
        # For open elements: None without effect, the number of line breaks for a plain block.
        self._stack: list[_Frame | int | None] = []
        self._preserved = ""  # "pre" keeps blanks and line breaks, "pre-line" the latter
        self._visible = True
        self._mode = ""
        self._transform = ""
        self._tables: list[bool] = []  # whether the table has had a row
        self._rows: list[str] = []  # what the row has had last: a cell, or something inline

    def run(self) -> None:
        html, lines, stack, token_at = (self._html, self.lines, self._stack, _TOKEN.match)
        run_at = token_at if _NO_WIDTH in html else _RUN.match
        at = 0
        while at < len(html):
            tag_by_tag = bool(self._mode or self._transform or not self._visible)
            token = (None if tag_by_tag else run_at(html, at)) or token_at(html, at)
            if token is None:
                break
            at = token.end()
            text, closing, name, attributes = token.groups()
            if "<" in text:
                text = _PLAIN_TAG.sub("", text)
            if text and (self._preserved or not lines.line_start or text.strip(_SPACES)):
                self._add_text(unescaped(text))
            if closing:
                if stack and (frame := stack.pop()) is not None:
                    self._close(frame)
            elif name:
                at = self._open_tag(name, attributes, at, tag_by_tag)
        self._add_text(unescaped(html[at:]))

    def _open_tag(self, name: str, attributes: str, at: int, tag_by_tag: bool) -> int:
        """Begin an element, by the short path if possible; return the next position."""
        styled = attributes and _STYLED.search(attributes)
        if not (styled or tag_by_tag) and (breaks := _PLAIN_BLOCKS.get(name)):
            self.lines.block(breaks)
            if self._observer is not None:
                self._observer.begin(name, len(self._stack) + 1, {})
            self._stack.append(breaks)
        elif styled or name in _DISPLAYS or self._mode:
            return self._open(name, attributes, at)
        elif name not in _VOID:
            self._stack.append(None)
        return at

    def _add_text(self, text: str) -> None:
        if self._mode in _SILENT or (self._mode == "table" and _BLANKS.fullmatch(text)):
            return
        if self._transform:
            text = _transformed(text, self._transform)
        if not text:
            return
        if not self._visible:
            self.lines.pass_over(text)
        elif self._preserved == "pre":
            self.lines.preserved(text)
        elif self._preserved:
            for number, line in enumerate(text.split("\n")):
                if number:
                    self.lines.line_break()
                self.lines.text(line)
        else:
            self.lines.text(text)

    def _open(self, name: str, attributes: str, at: int) -> int:
        """Begin an element, or skip it with its content; return the next position."""
        given = _attributes(attributes) if attributes else {}
        style = _styles(given)
        display = self._display(name, given, style)
        if display == "none" or display == "replaced":
            if display == "replaced" and self._mode not in _SILENT:
                self.lines.box()
            return at if name in _VOID else self._behind(name, at)
        if display == "br":
            seen = style.get("visibility", "visible") == "visible" and self._visible
            self.lines.line_break(emit=seen and self._mode not in _SILENT)
            return at
        frame = self._begin(name, display, given, style)
        if name in _VOID:  # a horizontal rule
            self._close(frame)
            return at
        if name == "summary" and frame.mode == "details":
            frame = frame._replace(mode="closed")
        self._stack.append(frame)
        if name == "details" and "open" not in given:
            self._mode = "details"
        if name in _RAW:
            inside = self._behind(name, at) - len(f"</{name}>")
            self._add_text(self._html[at:inside])
            return inside
        return at

    def _display(self, name: str, given: Mapping[str, str], style: Mapping[str, str]) -> str:
        """Return the element's display here: a value of `_DISPLAYS`, `floating` or `flex`."""
        if self._mode in _SILENT:
            return self._display_in_silence(name)
        display = _by_attributes(_DISPLAYS.get(name, "inline"), given)
        hides = "hidden" in given or "popover" in given
        styled = _STYLE_DISPLAYS.get(style.get("display", ""), "none" if hides else "")
        if styled == "none":
            return styled
        if styled and display in _CHANGEABLE and not (styled == "block" and display == "p"):
            display = styled
        if display in {"none", "replaced", "br"}:
            return display
        if style.get("float", "none") != "none" or style.get("position") in {"absolute", "fixed"}:
            return "floating"
        if self._mode == "flex" and display in {"inline", "inline-block"}:
            return "block"
        return display

    def _display_in_silence(self, name: str) -> str:
        """Return the display inside an element that hides most of its content."""
        mode = self._mode
        if mode == "select":
            return "block" if name in {"option", "optgroup"} else "none"
        if mode in {"details", "closed"}:
            return "block" if mode == "details" and name == "summary" else "none"
        if _DISPLAYS.get(name) == "none":
            return "none"
        return "block" if mode == "math" or name in {"text", "foreignObject"} else "inline"

    def _begin(
        self, name: str, display: str, given: Mapping[str, str], style: Mapping[str, str]
    ) -> _Frame:
        lines = self.lines
        outer = (True, "")
        if display == "floating":
            had = bool(lines.blank)
            lines.flush_blank()
            outer = (lines.line_start or had, lines.last)
        before = (self._preserved, self._visible, self._mode, self._transform)
        frame = _Frame(display if display in _ENDS else "", *before, outer)
        if visible := style.get("visibility"):
            self._visible = visible == "visible"
        if display in _BREAKING:
            lines.block(self._breaks(display))
        elif display in _BOXES:
            lines.box()
            lines.line_start = display == "inline-block"
        self._enter_table(display)
        if self._observer is not None and display in BLOCK_ENDS:
            self._observer.begin(name, len(self._stack) + 1, given)
        self._enter_mode(name, display)
        self._enter_style(name, style)
        return frame

    def _breaks(self, display: str) -> int:
        if not self._visible:
            return 0
        return 2 if display == "p" else 1

    def _enter_mode(self, name: str, display: str) -> None:
        before = self._mode
        if before == "flex" or (display in _ENDS and display != "q"):
            self._mode = _MODES.get(display, "")
        elif before == "table" and display == "inline":
            self._mode = ""  # inline elements beside each other have a cell of their own
            if self._rows and self._rows[-1] == "cell":
                self.lines.sign("\t")
                self._rows[-1] = "inline"
        if before == "math" and name not in _MATH_TOKENS:
            self._mode = "math"
        if name in _MATH_TOKENS and before == "math":
            self._transform = "math" if name == "mi" else ""

    def _enter_style(self, name: str, style: Mapping[str, str]) -> None:
        white_space = style.get("white-space")
        if white_space is not None:
            self._preserved = _WHITE_SPACE.get(white_space, "")
        elif name in PRESERVED:
            self._preserved = "pre"
        elif name == "option":
            self._preserved = ""
        self._transform = style.get("text-transform", self._transform)

    def _enter_table(self, display: str) -> None:
        lines = self.lines
        if display == "table":
            self._tables.append(False)
        elif display == "table-row":
            if not self._tables:  # rows have a table of their own then
                lines.block(self._breaks(display))
            elif self._tables[-1]:
                lines.line_break(emit=self._visible)
            if self._tables:
                self._tables[-1] = True
            self._rows.append("")
        elif display == "table-cell":
            if self._rows:
                if self._rows[-1]:
                    lines.sign("\t")
                self._rows[-1] = "cell"
            lines.blank, lines.line_start = "", True

    def _close(self, frame: _Frame | int) -> None:
        if isinstance(frame, int):
            self.lines.block(frame)
            if self._observer is not None:
                self._observer.end(len(self._stack) + 1)
            return
        if frame.end:
            self._end(frame)
            if self._observer is not None and frame.end in BLOCK_ENDS:
                self._observer.end(len(self._stack) + 1)
        self._preserved, self._visible = frame.preserved, frame.visible
        self._mode, self._transform = frame.mode, frame.transform

    def _end(self, frame: _Frame) -> None:
        display, lines = frame.end, self.lines
        if display in _BREAKING:
            lines.block(self._breaks(display))
            if display == "floating":
                lines.line_start, lines.last = frame.outer
            elif display == "table":
                self._tables.pop()
        elif display == "table-row":
            self._rows.pop()
        elif display == "table-cell":
            lines.blank, lines.line_start = "", True
        elif display == "q":
            lines.box()
        elif display != "table-row-group":
            lines.blank, lines.line_start, lines.last = "", False, ""

    def _behind(self, name: str, at: int) -> int:
        """Return the end of the element whose start tag ended before `at`."""
        if name in _RAW:
            end = f"</{name}>"
            found = self._html.rfind(end, at) if name == "plaintext" else self._html.find(end, at)
            return len(self._html) if found < 0 else found + len(end)
        open_elements = 1
        while open_elements and (token := _TOKEN.match(self._html, at)) is not None:
            at = token.end()
            inner = token[3]
            if token[2]:
                open_elements -= 1
            elif inner in _RAW:
                at = self._behind(inner, at)
            elif inner and inner not in _VOID:
                open_elements += 1
        return len(self._html) if open_elements else at


# Blocks that need only their line breaks in a plain context.
_PLAIN_BLOCKS: Final = {
    **dict.fromkeys(_BLOCKS - PRESERVED - _VOID - {"details"}, 1),
    "p": 2,
}
# Displays that begin and end a line, that have an end at all, and the mode of their content.
_BREAKING: Final = frozenset({"block", "p", "flex", "floating", "table", "table-caption"})
_ENDS: Final = _BREAKING | {
    *("table-row-group", "table-row", "table-cell", "inline-block", "select", "svg", "math"),
    "q",
}
BLOCK_ENDS: Final = _BREAKING | {"table-row", "table-cell"}
_OTHER_LINES: Final = {"br", "dialog", "option", "table-row-group"}
# Elements that begin another line, or a cell, unless styles change them.
LINE_TAGS: Final = frozenset(
    name for name, kind in _DISPLAYS.items() if kind in BLOCK_ENDS | _OTHER_LINES
)
# Inline boxes; that of `q` is its quotation marks, which are no text.
_BOXES: Final = frozenset({"inline-block", "select", "svg", "math", "q"})
_CHANGEABLE: Final = frozenset(_STYLE_DISPLAYS.values()) | {"p", "q"}
_WHITE_SPACE: Final = {
    "pre": "pre",
    "pre-wrap": "pre",
    "break-spaces": "pre",
    "pre-line": "pre-line",
}
_MODES: Final = {
    "flex": "flex",
    "math": "math",
    "select": "select",
    "svg": "svg",
    "table": "table",
    "table-row": "table",
    "table-row-group": "table",
}


def _attributes(text: str) -> dict[str, str]:
    return {found[1]: unescaped(found[2] or "") for found in _ATTRIBUTE.finditer(text)}


def _styles(given: Mapping[str, str]) -> dict[str, str]:
    style = given.get("style")
    if not style:
        return {}
    return {found[1].lower(): found[2].lower() for found in _DECLARATION.finditer(style)}


def _by_attributes(display: str, given: Mapping[str, str]) -> str:
    """Resolve the display of elements for which it depends on attributes."""
    if display == "replaced":
        return "none" if given.get("type", "").lower() == "hidden" else display
    if display == "audio":
        return "replaced" if "controls" in given else "none"
    if display == "dialog":
        return "floating" if "open" in given else "none"
    if display == "embed":
        return "replaced" if "src" in given or "type" in given else "none"
    if display == "object":
        return "replaced" if "data" in given or "type" in given else "inline"
    return "block" if display == "option" else display


def _transformed(text: str, how: str) -> str:
    if how == "uppercase":
        return text.upper()
    if how == "lowercase":
        return text.lower()
    if how == "capitalize":
        return re.sub(r"(?<!\w)\w", lambda found: found[0].upper(), text)
    if how == "math" and len(text.strip()) == 1:
        return text.replace(text.strip(), _italic(text.strip()))
    return text


_ITALICS: Final = (("A", "Z", 0x1D434), ("a", "z", 0x1D44E), ("\u03b1", "\u03c9", 0x1D6FC))


def _italic(sign: str) -> str:
    """Return a one-letter variable in italics, as formulas show it."""
    for first, last, italic in _ITALICS:
        if first <= sign <= last:
            return "\u210e" if sign == "h" else chr(italic + ord(sign) - ord(first))
    return sign
