"""Style sheet rules that affect a page's text: those that show, hide or break.

Supported are `display`, `visibility`, `white-space`, `float`, `position` and `text-transform`, with
media queries for the crawl's window. The cascade uses importance, layer, specificity and order.
The page parser matches selectors; unknown selectors, and those that depend on a user's actions
(`:hover`), match nothing. All input is untrusted: all functions take time in proportion to its
size, and input beyond the limits is left out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice, product
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

WIDTH, HEIGHT = 1280, 720  # of the window used by crawls
MAX_SHEETS: Final = 20  # for each page
MAX_TAGS: Final = 5_000  # for each page, in the search for its sheets
MAX_SHEET_CHARS: Final = 1024 * 1024
MAX_SELECTORS: Final = 4_000  # kept for each sheet
MAX_SELECTOR_CHARS: Final = 500
MAX_PARTS: Final = 8  # of one selector, which are nested
MAX_NESTED: Final = 50  # selectors of a nested rule
MAX_NESTED_CHARS: Final = 4_096  # of the selectors of a block, with those of the blocks around it
MAX_MATCHES: Final = 100_000  # elements of one page that rules match, counted for each rule
# CPU time, so that results do not depend on load: some selectors are slow by design.
MATCHING_S: Final = 0.5  # for the rules of one page

_TOKEN: Final = re.compile(
    r"\"(?:[^\"\\\n]|\\.)*+\"?+|'(?:[^'\\\n]|\\.)*+'?+|/\*.*?(?:\*/|\Z)|\\."
    r"|[{}();\[\]]|[^\"'/\\{}();\[\]]++|[/\\]",
    re.DOTALL,
)
_DECLARATION: Final = re.compile(
    r"\s*(display|visibility|white-space|float|position|text-transform)\s*:"
    r"\s*([a-z-]+)\s*(!\s*important)?\s*",
    re.IGNORECASE,
)
_VALUES: Final[dict[str, frozenset[str]]] = {
    name: frozenset(values.split())
    for name, values in {
        "display": "none block inline inline-block flex inline-flex grid inline-grid flow-root"
        " contents list-item table inline-table table-caption table-cell table-row table-row-group"
        " table-header-group table-footer-group table-column table-column-group revert initial"
        " unset",
        "visibility": "visible hidden collapse",
        "white-space": "normal nowrap pre pre-wrap pre-line break-spaces",
        "float": "none left right inline-start inline-end",
        "position": "static relative absolute fixed sticky",
        "text-transform": "none uppercase lowercase capitalize",
    }.items()
}
_AS: Final = {"initial": "inline", "unset": "inline"} | dict.fromkeys(
    ("table-column", "table-column-group"), "none"
)
_IMPORT: Final = re.compile(
    r"@import\s+(?:url\(\s*)?(?:\"([^\"]*)\"|'([^']*)'|([^\s\"')]+))\s*\)?(.*)",
    re.IGNORECASE | re.DOTALL,
)
_ACTIVE: Final = frozenset({"@supports", "@layer", "@starting-style", "@scope"})

# Selectors that match nothing on a page at rest, or no element.
_NEVER: Final = re.compile(
    r"::|:(?:before|after|first-line|first-letter|hover|active|focus|focus-within|focus-visible"
    r"|visited|target|host|host-context|fullscreen|popover-open|modal|-webkit-autofill|autofill)"
    r"(?![\w-])",
    re.IGNORECASE,
)
_NOT_NEVER: Final = re.compile(
    r":not\(\s*:(?:hover|active|focus|focus-within|focus-visible|visited|target|popover-open|modal)"
    r"\s*\)",
    re.IGNORECASE,
)
_STRANGE: Final = re.compile(r":-(?:moz|ms|o)-|::-(?:moz|ms|o)-", re.IGNORECASE)
_STRING: Final = re.compile(r"\"[^\"]*\"|'[^']*'")
_BRACKETS: Final = re.compile(r"\[[^\]]*\]")
_WHERE: Final = re.compile(r":where\([^()]*\)", re.IGNORECASE)
_ARGUMENTS: Final = re.compile(r"\([^()]*\)")
# A selector that needs each of its names, also in the arguments of `:has`.
_ALL_NEEDED: Final = re.compile(r"(?:(?!:(?!has\()[\w-]+\()[^,\\])*", re.IGNORECASE)
_IDS: Final = re.compile(r"#[\w-]+")
_CLASSES: Final = re.compile(r"\.[\w-]+|\[|:(?!not\b|is\b|has\b|where\b)[\w-]+", re.IGNORECASE)
_TAGS: Final = re.compile(r"(?:^|[\s>+~(,])([a-zA-Z][\w-]*)")
_NAMES: Final = re.compile(r"[.#]((?:[A-Za-z_]|-[A-Za-z_-])[\w-]*)")
_PARTS: Final = re.compile(r"\s*[>+~]\s*|\s+")


class Rule(NamedTuple):
    """One selector with its declarations. Pages without all `names` have no match."""

    selector: str  # empty if only a browser can evaluate it
    names: tuple[str, ...]
    rank: tuple[int, int, int, int]  # layer, ids, classes, tags
    declarations: tuple[tuple[str, str, bool], ...]  # property, value, whether it is important


class Sheet(NamedTuple):
    """`imports` are addresses as written; their rules come first."""

    rules: tuple[Rule, ...] = ()
    imports: tuple[str, ...] = ()


def parse_sheet(css: str) -> Sheet:
    """Parse the rules of a style sheet that can change a page's text."""
    rules: list[Rule] = []
    imports: list[str] = []
    for selectors, declarations, within in _blocks(css[:MAX_SHEET_CHARS], imports):
        if not _STRANGE.search(selectors):
            made = (_rule(selector, declarations, within) for selector in _split(selectors))
            rules += (rule for rule in made if rule is not None)
        if len(rules) >= MAX_SELECTORS:
            break
    return Sheet(tuple(rules), tuple(imports))


_Declarations = tuple[tuple[str, str, bool], ...]


class _Open(NamedTuple):
    """An open block: "group", "layer", "doubt", "rule" or "skip", and its selectors.

    `selectors` are its own, or those of the rule around it; `declarations` are those so far.
    """

    kind: str
    selectors: str
    declarations: list[tuple[str, str, bool]]


def _blocks(css: str, imports: list[str]) -> Iterator[tuple[str, _Declarations, frozenset[str]]]:
    """Yield each block's selectors, its supported declarations, and the kinds around it."""
    open_: list[_Open] = []
    for text, sign in _pieces(css):
        block = open_[-1] if open_ else _Open("group", "", [])
        if block.selectors and sign != "{":
            block.declarations.extend(_declared(text))
        # The end of the block, or nested content before later declarations.
        if block.declarations and sign != ";":
            yield _closed(block, open_)
        if sign == "{":
            open_.append(_opened(text, block) if len(open_) < MAX_PARTS else _SKIPPED)
        elif sign == "}":
            del open_[-1:]
        elif not open_ and text[:7].lower() == "@import":
            imports += _imported(text)


def _closed(block: _Open, around: Iterable[_Open]) -> tuple[str, _Declarations, frozenset[str]]:
    declarations = tuple(block.declarations)
    block.declarations.clear()
    return block.selectors, declarations, frozenset(each.kind for each in around)


def _opened(prelude: str, around: _Open) -> _Open:
    """Open a block inside `around`; nested rules follow the CSS standard."""
    kind = "skip" if around.kind == "skip" else _kind(prelude)
    if kind == "skip":
        return _SKIPPED
    selectors = around.selectors
    if kind == "rule":
        selectors = _nested(prelude, selectors) if selectors else prelude
    return _Open(kind, selectors, []) if len(selectors) <= MAX_NESTED_CHARS else _SKIPPED


def _nested(prelude: str, around: str) -> str:
    """Return the selectors of a rule nested in a rule for `around`."""
    inner: list[str] = []
    for outer, part in islice(product(_split(around), _split(prelude)), MAX_NESTED):
        if part.startswith("&"):
            inner.append(outer + part[1:].replace("&", f":is({outer})"))
        elif "&" in part:
            inner.append(part.replace("&", f":is({outer})"))
        else:
            inner.append(f"{outer} {part}")
    return ", ".join(inner)


def _pieces(css: str) -> Iterator[tuple[str, str]]:
    """Yield the text before each brace and semicolon outside brackets, with that character."""
    parts: list[str] = []
    depth = 0
    for found in _TOKEN.finditer(css):
        token = found[0]
        if depth == 0 and token in {"{", "}", ";"}:
            yield "".join(parts).strip(), token
            parts.clear()
        elif not token.startswith("/*"):
            depth = max(0, depth + (token in {"(", "["}) - (token in {")", "]"}))
            parts.append(token)
    yield "".join(parts).strip(), "}"  # closes blocks left open at the end


def _kind(prelude: str) -> str:
    if not prelude.startswith("@"):
        return "rule"
    name, _, rest = prelude.partition(" ")
    name, bracket, more = name.lower().partition("(")
    if name == "@media":
        return "group" if is_media(bracket + more + " " + rest) else "skip"
    if name == "@supports" and rest.lower().startswith("not"):
        return "skip"
    if name == "@layer":
        return "layer"
    if name == "@container":
        return "doubt"
    return "group" if name in _ACTIVE else "skip"


def _declared(text: str) -> Iterator[tuple[str, str, bool]]:
    found = _DECLARATION.fullmatch(text)
    if found is None:
        return
    name, value = found[1].lower(), found[2].lower()
    if value in _VALUES[name]:
        yield name, _AS.get(value, value), found[3] is not None


def _imported(text: str) -> Iterator[str]:
    found = _IMPORT.fullmatch(text)
    if found is not None and "layer" not in found[4] and is_media(found[4]):
        yield found[1] or found[2] or found[3] or ""


def _split(text: str) -> Iterator[str]:
    """Yield the parts between commas outside brackets."""
    depth = start = 0
    for found in re.finditer(r"[(\[\])],|[,()\[\]]", text):
        sign = found[0][0]
        depth += (sign in "([") - (sign in ")]")
        if found[0][-1] == "," and depth <= 0:
            yield text[start : found.end() - 1].strip()
            start = found.end()
    yield text[start:].strip()


def _rule(selector: str, declarations: _Declarations, within: frozenset[str]) -> Rule | None:
    """Return the rule of a selector in blocks of the kinds `within`; None without effect."""
    selector = _NOT_NEVER.sub("", selector)
    if not selector or len(selector) > MAX_SELECTOR_CHARS:
        return None
    plain = _BRACKETS.sub("[", _STRING.sub("", selector))
    if _NEVER.search(plain) or plain.count("(") > MAX_PARTS:
        return None
    if "doubt" in within or ":has(" in plain.lower():
        return _doubtful(plain, declarations)
    if len(_PARTS.split(_ARGUMENTS.sub("", plain))) > MAX_PARTS:
        return None
    counted = _WHERE.sub("", plain)
    weight = (len(pattern.findall(counted)) for pattern in (_IDS, _CLASSES, _TAGS))
    names = tuple(dict.fromkeys(_NAMES.findall(_outer(plain))))
    ids, classes, tags = weight
    return Rule(selector, names, (int("layer" not in within), ids, classes, tags), declarations)


def _doubtful(plain: str, declarations: _Declarations) -> Rule | None:
    """Return a rule that may hide or show text under a condition that only a browser knows."""
    if not any(name in {"display", "visibility"} for name, *_ in declarations):
        return None
    sure = plain if _ALL_NEEDED.fullmatch(plain) else _outer(plain)
    return Rule("", tuple(dict.fromkeys(_NAMES.findall(sure))), (0, 0, 0, 0), declarations)


def _outer(selector: str) -> str:
    """Remove the arguments of pseudo-classes, of which one may suffice or none may match."""
    while (less := _ARGUMENTS.sub("", selector)) != selector:
        selector = less
    return "" if "\\" in selector else selector


_SKIPPED: Final = _Open("skip", "", [])


# --- Media queries -----------------------------------------------------------------------------

_LENGTH: Final = re.compile(r"([\d.]+)\s*(px|em|rem|)")
_SIZE: Final = re.compile(r"(?:(min|max)-)?(?:device-)?(width|height)")
_NOT: Final = re.compile(r"not[\s(]")
_RANGE: Final = re.compile(
    r"(?:(?P<low>[\d.]+\s*\w*)\s*(?P<low_sign><=?|>=?)\s*)?(?P<name>width|height)"
    r"(?:\s*(?P<sign><=?|>=?|=)\s*(?P<high>[\d.]+\s*\w*))?"
)
_FEATURES: Final = {
    "orientation": "landscape",
    "prefers-color-scheme": "light",
    "prefers-reduced-motion": "no-preference",
    "prefers-contrast": "no-preference",
    "prefers-reduced-transparency": "no-preference",
    "prefers-reduced-data": "no-preference",
    "forced-colors": "none",
    "inverted-colors": "none",
    "hover": "hover",
    "any-hover": "hover",
    "pointer": "fine",
    "any-pointer": "fine",
    "scripting": "enabled",
    "update": "fast",
    "display-mode": "browser",
}
_OFF: Final = frozenset({"no-preference", "none"})


def is_media(query: str) -> bool:
    """Return whether a media query list matches the window of a crawl."""
    return len(query) <= MAX_SELECTOR_CHARS and _holds(query)


@lru_cache(maxsize=512)
def _holds(query: str) -> bool:
    query = re.sub(r"/\*.*?\*/", " ", query, flags=re.DOTALL).strip().lower()
    return not query or any(_is_query(part) for part in _split(query))


def _is_query(query: str) -> bool:
    query = query.strip()
    if query.startswith("only "):
        query = query[5:].strip()
    kind = re.match(r"(not\s+)?([a-z]+)\b(?!\s*\()(?:\s+and\b)?", query)
    if kind is None or kind[2] in {"not", "and", "or"}:
        return _is_condition(query)
    rest = query[kind.end() :].strip()
    holds = kind[2] in {"screen", "all"} and (not rest or _is_condition(rest))
    return holds != bool(kind[1])


def _is_condition(text: str, depth: int = 0) -> bool:
    """Evaluate `(a) and (b)`, `(a) or (b)`, `not (a)`; unparsable conditions are false."""
    if depth > MAX_PARTS:
        return False
    if _NOT.match(text):
        return not _is_condition(text[3:].strip(), depth + 1)
    pieces = list(_in_brackets(text))
    if not pieces:
        return False
    held = [
        _is_condition(piece, depth + 1)
        if (piece.startswith("(") or _NOT.match(piece))
        else _is_feature(piece)
        for piece in pieces
    ]
    outside = _ARGUMENTS.sub("", text)
    return any(held) if re.search(r"\bor\b", outside) else all(held)


def _in_brackets(text: str) -> Iterator[str]:
    depth = start = 0
    for at, sign in enumerate(text):
        if sign == "(":
            start = at + 1 if depth == 0 else start
            depth += 1
        elif sign == ")" and depth:
            depth -= 1
            if depth == 0:
                yield text[start:at].strip()


def _is_feature(text: str) -> bool:
    name, colon, value = (part.strip() for part in text.partition(":"))
    if not colon:
        if name in _FEATURES:
            return _FEATURES[name] not in _OFF
        return name in {"color", "width", "height"} or _is_range(name)
    if found := _SIZE.fullmatch(name):
        sign = {"min": ">=", "max": "<="}.get(found[1] or "", "=")
        return _compared(WIDTH if found[2] == "width" else HEIGHT, sign, _pixels(value))
    if name in {"min-resolution", "-webkit-min-device-pixel-ratio"}:
        number = re.match(r"[\d.]+", value)
        return number is not None and "dpi" not in value and _number(number[0]) <= 1
    return _FEATURES.get(name) == value


def _is_range(text: str) -> bool:
    found = _RANGE.fullmatch(text)
    if found is None:
        return False
    size = WIDTH if found["name"] == "width" else HEIGHT
    held = True
    if found["low"]:
        held = _compared(_pixels(found["low"]), found["low_sign"], size)
    if found["high"]:
        held = held and _compared(size, found["sign"], _pixels(found["high"]))
    return held


def _compared(one: float | None, sign: str, other: float | None) -> bool:
    if one is None or other is None:
        return False
    if sign == "=":
        return one == other
    if one == other:
        return sign.endswith("=")
    return (one < other) == sign.startswith("<")


def _pixels(length: str) -> float | None:
    found = _LENGTH.fullmatch(length.strip())
    if found is None:
        return None
    return _number(found[1]) * (1 if found[2] in {"px", ""} else 16)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


# --- Sheets of a page --------------------------------------------------------------------------

_HAS_SHEETS: Final = re.compile(r"<(?:style|link)", re.IGNORECASE)
_HEAD: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<(?:script|noscript|textarea|template|title)\b.*?"
    r"(?:</(?:script|noscript|textarea|template|title)|\Z)"
    r"|<link\b(?P<link>[^<>]*+)>"
    r"|<base\b(?P<base>[^<>]*+)>|<style\b(?P<style>[^<>]*+)>(?P<css>.*?)(?:</style|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_STYLE: Final = re.compile(r"<style\b.*?(?:</style|\Z)", re.IGNORECASE | re.DOTALL)
_ATTRIBUTE: Final = re.compile(
    r"([^\s=>\"'/]++)(?:\s*+=\s*+(?:\"([^\"]*+)\"?|'([^']*+)'?|([^\s>\"']++)))?"
)


class Named(NamedTuple):
    """A sheet as the page references it: its rules, or their address."""

    css: str
    href: str


def sheets_of(html: str) -> tuple[str, list[Named]]:
    """Return the page's `<base href>`, and its style sheets for this window in order."""
    found: list[Named] = []
    base = ""
    if not _HAS_SHEETS.search(html):
        return base, found
    for part in islice(_HEAD.finditer(html), MAX_TAGS):
        if part["base"] is not None:
            base = base or _attributes(part["base"]).get("href", "")
        elif part["link"] is not None:
            given = _attributes(part["link"])
            rel = given.get("rel", "").lower().split()
            if "stylesheet" in rel and "alternate" not in rel and _is_css(given):
                found.append(Named("", given.get("href", "")))
        elif part["style"] is not None and _is_css(_attributes(part["style"])):
            found.append(Named(part["css"], ""))
        if len(found) >= MAX_SHEETS:
            break
    return base, found


def _is_css(given: Mapping[str, str]) -> bool:
    kind = given.get("type", "").strip().lower()
    return kind in {"", "text/css"} and "disabled" not in given and is_media(given.get("media", ""))


def _attributes(text: str) -> Mapping[str, str]:
    return _known_attributes(text[:4_096])


@lru_cache(maxsize=256)  # the pages of a site reference the same sheets
def _known_attributes(text: str) -> Mapping[str, str]:
    from html import unescape

    found: dict[str, str] = {}
    for name, *values in _ATTRIBUTE.findall(text):
        found.setdefault(name.lower(), unescape("".join(values)).strip())
    return found


# --- Applying to a page ------------------------------------------------------------------------

_Weight = tuple[bool, tuple[int, int, int, int], int]


def apply(tree: LexborHTMLParser, html: str, sheets: Iterable[tuple[Rule, ...]]) -> bool:
    """Write the declarations into the `style` of matching elements; return whether any matched."""
    ends = time.thread_time() + MATCHING_S
    nodes: dict[int, LexborNode] = {}
    won: dict[int, dict[str, tuple[_Weight, str]]] = {}
    known: dict[str, bool] = {}
    matches = 0
    for number, rule in enumerate(chain.from_iterable(sheets)):
        if not rule.selector or not all(_is_in(html, name, known) for name in rule.names):
            continue
        if matches > MAX_MATCHES or time.thread_time() > ends:
            break
        for node in _matched(tree, rule.selector):
            matches += 1
            nodes[node.mem_id] = node
            _set(won.setdefault(node.mem_id, {}), rule, number)
    for key, node in nodes.items():
        _write(node, won[key])
    return bool(nodes)


def is_doubtful(html: str, sheets: Iterable[tuple[Rule, ...]]) -> bool:
    """Return whether a rule that only a browser can evaluate may hide or show some of `html`."""
    doubtful = [rule.names for rule in chain.from_iterable(sheets) if not rule.selector]
    if not doubtful:
        return False
    markup, known = _STYLE.sub("", html), dict[str, bool]()
    return any(all(_is_in(markup, name, known) for name in names) for names in doubtful)


def _is_in(html: str, name: str, known: dict[str, bool]) -> bool:
    """Return whether `html` contains `name`; cached, because many rules share a name."""
    found = known.get(name)
    if found is None:
        found = known[name] = name in html
    return found


def _set(won: dict[str, tuple[_Weight, str]], rule: Rule, number: int) -> None:
    for name, value, important in rule.declarations:
        weight = (important, rule.rank, number)
        if name not in won or won[name][0] <= weight:
            won[name] = (weight, value)


def _matched(tree: LexborHTMLParser, selector: str) -> list[LexborNode]:
    from selectolax.lexbor import SelectolaxError

    try:
        return tree.css(selector)
    except (SelectolaxError, ValueError):
        return []  # not supported by the parser


def _write(node: LexborNode, won: dict[str, tuple[_Weight, str]]) -> None:
    """Write rules before the element's own style, important ones after it."""
    below: list[str] = []
    above: list[str] = []
    for name, (weight, value) in won.items():
        if value != "revert":
            (above if weight[0] else below).append(f"{name}:{value}")
    own = node.attributes.get("style") or ""
    node.attrs["style"] = ";".join(part for part in (*below, own, *above) if part)
