"""Pages made at random, of all that HTML has to show text with: the same for the same seed."""

from __future__ import annotations

from random import Random

from engine.pages.extract import extract_now
from engine.pages.fetch import Fetched


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_BLOCKS = _names(
    "address article aside blockquote center dd details div dl dt fieldset figure footer form h1 h2"
    " h3 header legend li main menu nav ol p pre section summary ul dialog table hr"
)
_INLINE = _names(
    "a abbr b bdi big button cite code custom-tag del em font i ins kbd label mark nobr q ruby s"
    " samp slot small span strong sub sup time tt u var"
)
_UNSEEN = _names(
    "textarea video audio canvas datalist iframe meter noscript object progress script style"
    " template select svg math"
)
_VOID = ("br", "br", "wbr", "img", "input", "area", "embed", "link")
_WORDS = (
    *("word", "two words", "a", "3.14", "x=1;", "&amp;", "&lt;b&gt;", "caf\u00e9"),
    *("\u65e5\u672c\u8a9e", "\u4e2d\u6587\u3002", "\ud55c\uad6d\uc5b4"),
    *("\u0e20\u0e32\u0e29\u0e32", "soft\u00adhyphen", "no\u00a0break", "zero\u200bwidth"),
)
_GAPS = ("", "", " ", " ", "  ", "\n", "\n    ", "\t", " \n ")
_ATTRIBUTES = (
    *("hidden", "open", "controls", "class=x", "lang=ja", "title='a > b'", "popover", "dir=rtl"),
    *("style='display:none'", "style='display: block'", "style='visibility:hidden'"),
    *("style='white-space: pre'", "style='display:inline-block'", "style='color: red'"),
)


def random_page(seed: int) -> str:
    """The markup of one page; no style sheet and no script that does anything."""
    made = _Page(Random(seed))
    return f"<!doctype html><title>t {seed}</title><body>{made.content(0)}</body>"


class _Page:
    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._room = chance.randint(3, 60)

    def content(self, depth: int) -> str:
        count = self._chance.randint(1, 5 if depth < 6 else 1)
        return "".join(self._piece(depth) for _ in range(count))

    def _piece(self, depth: int) -> str:
        self._room -= 1
        chance = self._chance
        gap = chance.choice(_GAPS)
        kind = chance.random()
        if kind < 0.4 or self._room <= 0 or depth > 12:
            return gap + chance.choice(_WORDS) + chance.choice(_GAPS)
        if kind < 0.6:
            return gap + self._element(chance.choice(_INLINE), depth)
        if kind < 0.84:
            return gap + self._element(chance.choice(_BLOCKS), depth)
        if kind < 0.92:
            return gap + f"<{chance.choice(_VOID)}{self._attributes()}>"
        if kind < 0.94:
            return gap + "<!-- a > comment -->"
        return gap + self._unseen(chance.choice(_UNSEEN))

    def _attributes(self) -> str:
        return f" {self._chance.choice(_ATTRIBUTES)}" if self._chance.random() < 0.12 else ""

    def _element(self, name: str, depth: int) -> str:
        begin = f"<{name}{self._attributes()}>"
        if name == "hr":
            return begin
        if name == "table":
            return f"{begin}{self._rows(depth)}</table>"
        if name == "ruby":
            word = self._chance.choice(_WORDS)
            return f"<ruby>{word}<rp>(</rp><rt>rt</rt><rp>)</rp></ruby>"
        inside = self.content(depth + 1)
        if name in ("ul", "ol", "menu"):
            inside = "".join(f"<li>{self.content(depth + 1)}\n" for _ in range(2))
        elif name == "dl":
            inside = f"<dt>{self.content(depth + 1)}<dd>{self.content(depth + 1)}"
        elif name == "details":
            inside = f"<summary>{self.content(depth + 1)}</summary>{inside}"
        return f"{begin}{inside}</{name}>"

    def _rows(self, depth: int) -> str:
        rows = []
        for _ in range(self._chance.randint(0, 3)):
            cells = range(self._chance.randint(0, 3))
            made = (f"<td{self._attributes()}>{self.content(depth + 2)}" for _ in cells)
            rows.append(f"<tr{self._attributes()}>" + "</td>\n".join(made) + "</tr>\n")
        caption = f"<caption>{self.content(depth + 2)}</caption>" if len(rows) == 2 else ""
        return caption + "".join(rows)

    def _unseen(self, name: str) -> str:
        word = self._chance.choice(_WORDS)
        if name == "select":
            return f"<select><option>{word}<optgroup label=g><option> b  c </select>"
        if name == "svg":
            return f"<svg><title>t</title><text>{word}</text></svg>"
        if name == "math":
            return f"<math><mi>x</mi><mo>=</mo><mn>{word}</mn></math>"
        return f"<{name}{self._attributes()}>{word}</{name}>"


def static_text(html: str) -> str:
    """The text that the static engine keeps of `html`."""
    page = Fetched("http://page/", "http://page/", 200, html=html, engine="static")
    return str(extract_now(page, "text").content)
