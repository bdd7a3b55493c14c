"""Rewrite markup that the markdown converter would read in the wrong order or without its form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from secrets import token_hex
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_MAYBE: Final = re.compile(r"<(?:ruby|math|pre|form|figcaption|summary)\b", re.IGNORECASE)
# Behind a reading that further text of the same ruby follows.
_READING: Final = re.compile(r"(</rt>(?:\s*<rp>[^<]*</rp>)?)(?=\s*(?:[^<\s]|<(?!/|r[pt])))")
# A number, sign or letter set higher right behind something: 10<sup>6</sup> is not 106.
_EXPONENT: Final = re.compile(
    r"([^\s<>]|</(?:i|em|b|strong|var|span|code|sub)>)<sup(?:\s[^<>]*)?>"
    r"([+\-\u2212\u2013]?\d+(?:[.,/]\d+)?[+\-\u2212\u2013]?|[+\-\u2212\u2013a-zA-Z])</sup>"
)
# A drawing with words, which the converter would write as the last row or item.
_DRAWING: Final = re.compile(r"(</(?:table|ul|ol|dl)>)\s*(<svg\b)")
_MAX_LEVELS: Final = 16
_MAX_RENAMED: Final = 5_000  # of a page: a deep one costs up to 0.4 ms
_LINE_NUMBERS: Final = re.compile(r"[\s\d]*\d[\s\d]*")


def markup_for_markdown(html: str) -> str:
    """Return `html`, changed only where the converter would lose or mix up something."""
    if "<sup" in html:
        html = _EXPONENT.sub(r"\1^\2", html)
    if "<svg" in html and "<text" in html:
        html = _DRAWING.sub(r"\1<br>\2", html)
    return _Rewriting(html).result() if _MAYBE.search(html) else html


class _Rewriting:
    """Puts marks into the tree and replaces them by markup when it is written out again."""

    def __init__(self, html: str) -> None:
        from selectolax.lexbor import LexborHTMLParser

        self._html = html
        self._tree: LexborHTMLParser = LexborHTMLParser(html)
        mark = token_hex(8)
        self._mark = mark
        self._of_marks = re.compile(f"{mark}-(\\d+)\\.")
        self._made: list[str] = []
        self._renamed = 0

    def result(self) -> str:
        tree = self._tree
        # KaTeX writes each formula twice: for readers of the screen, and for programs.
        for node in tree.css(".katex-mathml + .katex-html"):
            node.decompose()
        for node in _outermost(tree.css("math")):
            node.replace_with(self._put(escape(_formula_text(node))))
        for node in tree.css("table:has(pre):not(:has(table))"):
            self._unfold_code(node)
        # The converter ends the list at these.
        for node in tree.css("li form"):
            self._rename(node, "<div>", "</div>")
        for node in tree.css("li figcaption"):
            self._rename(node, "<div><em>", "</em></div>")
        # It would write `**### heading**`.
        headings = tree.css("summary :is(h1, h2, h3, h4, h5, h6)")
        summaries = [_ancestor(node, "summary") for node in headings]
        for node in {node.mem_id: node for node in summaries if node is not None}.values():
            self._rename(node, "<div>", "</div>")
        has_ruby = tree.css_first("ruby rt") is not None
        if not self._made and not has_ruby:
            return self._html
        whole = self._of_marks.sub(self._of_mark, tree.html or self._html)
        return _READING.sub(r"\1</ruby><ruby>", whole) if has_ruby else whole

    def _put(self, markup: str) -> str:
        self._made.append(markup)
        return f"{self._mark}-{len(self._made) - 1}."

    def _of_mark(self, found: re.Match[str]) -> str:
        """Return the markup of a mark; that of a table of code may have marks of earlier ones."""
        return self._of_marks.sub(self._of_mark, self._made[int(found[1])])

    def _rename(self, node: LexborNode, begin: str, end: str) -> None:
        self._renamed += 1
        if self._renamed > _MAX_RENAMED:
            return
        node.insert_before(self._put(begin))
        node.insert_after(self._put(end))
        node.unwrap()

    def _unfold_code(self, table: LexborNode) -> None:
        """Replace a table of code by its code: a cell would have its lines in one."""
        blocks = [_code_of(row) for row in table.css("tr")]
        if None in blocks:
            return
        whole = "".join(block for block in blocks if block is not None)
        table.replace_with(self._put(whole))


def _code_of(row: LexborNode) -> str | None:
    """Return the markup of a row with one cell of code, without the line numbers beside it."""
    cells = row.css("td, th")
    if len(cells) > 1 and _LINE_NUMBERS.fullmatch(cells[0].text()):
        cells = cells[1:]
    if len(cells) != 1:
        return None
    if cells[0].tag == "th":  # the name of the file
        return f"<p>{escape(cells[0].text())}</p>"
    code = cells[0].css("pre")
    if len(code) != 1 or code[0].text().strip() != cells[0].text().strip():
        return None
    html = code[0].html or ""
    in_code = _ancestor(row, "pre") is not None
    return html.partition(">")[2].rpartition("</")[0] if in_code else html


def _outermost(nodes: Sequence[LexborNode]) -> Iterator[LexborNode]:
    """Yield those that are in no other one; `nodes` are in document order, of one name."""
    inner: set[int] = set()
    for node in nodes:
        if node.mem_id not in inner:
            inner.update(each.mem_id for each in node.css(node.tag or ""))
            yield node


def _ancestor(node: LexborNode, name: str) -> LexborNode | None:
    """Return the nearest element of this name around a node; far ones cost too much."""
    parent = node.parent
    for _ in range(_MAX_LEVELS):
        if parent is None or parent.tag == name:
            return parent
        parent = parent.parent
    return None


# Formulas in one line, as Unicode's linear format of mathematics writes them: `(a+b)/√(x)`.

_MAX_DEPTH: Final = 64
_UNSHOWN: Final = frozenset({"annotation", "annotation-xml", "mphantom"})
_TOKENS: Final = frozenset({"mi", "mn", "mo", "ms", "mtext"})
_INVISIBLE: Final = re.compile("[\u2061-\u2064]")  # "apply", "times" and the like
_BLANKS: Final = re.compile(r"[ \t\n\f\r]+")
_OPERATORS: Final = {
    "msup": "^",
    "mover": "^",
    "msub": "_",
    "munder": "_",
    "msubsup": "_^",
    "munderover": "_^",
    "mfrac": "/",
}
_NUMBER: Final = re.compile(r"\d+[.,]\d+")


def _formula_text(node: LexborNode, depth: int = 0) -> str:
    """Return the formula of an element in one line."""
    name = node.tag or ""
    if name in _UNSHOWN:
        return ""
    children = [] if name in _TOKENS or depth > _MAX_DEPTH else list(node.iter())
    if not children:
        text = _BLANKS.sub(" ", _INVISIBLE.sub("", node.text()))
        return text if name == "mtext" else text.strip()
    parts = [_formula_text(child, depth + 1) for child in children]
    if name == "mtable":
        return f"[{'; '.join(parts)}]"
    if name == "mtr":
        return ", ".join(parts)
    if name == "msqrt":
        return "√" + _grouped("".join(parts))
    if name == "mroot" and len(parts) == 2:
        return f"√({parts[1]}&{parts[0]})"
    signs = _OPERATORS.get(name, "")
    if signs and len(parts) == len(signs) + 1:
        return _grouped(parts[0]) + "".join(
            sign + _grouped(part) for sign, part in zip(signs, parts[1:], strict=True)
        )
    return "".join(parts)


def _grouped(text: str) -> str:
    """Return a part of a formula in brackets, unless it is one number, name or sign."""
    is_one = len(text) == 1 or text.isalnum() or _NUMBER.fullmatch(text) is not None
    return text if is_one else f"({text})"
