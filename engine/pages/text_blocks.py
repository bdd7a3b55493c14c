"""Split a page's text into blocks: headings, paragraphs, lists, tables, code, quotations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from engine.pages.rendered_text import PRESERVED, Walk

_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_LISTS: Final = {"ul": False, "menu": False, "dir": False, "ol": True}
_MAX_COLUMNS: Final = 1_000  # of one cell, as in browsers
_MAX_ROWS: Final = 65_534
_MAX_PLACES: Final = 1_000_000  # that the cells of a table may cover: spans cost time and memory


def rendered_blocks(html: str) -> list[dict[str, Any]]:
    """Return the text in its blocks, in order: headings, paragraphs, lists, tables, code, …"""
    blocks = _Blocks()
    walk = Walk(html, blocks)
    blocks.out = walk.lines.out
    walk.run()
    blocks.end_of_page()
    return blocks.found


class _Blocks:
    """Collects blocks: the outermost one with a type contains everything inside."""

    def __init__(self) -> None:
        self.out: list[str] = []  # the walk's growing output
        self.found: list[dict[str, Any]] = []
        self._block: dict[str, Any] = {}
        self._depth = 0  # of the open block; 0 for none
        self._item_depth = 0  # of the open part inside it; 0 for none
        self._item = ""
        self._given: Mapping[str, str] = {}  # the attributes of the open part
        self._grid = _Grid()
        self._from = 0

    def begin(self, name: str, depth: int, given: Mapping[str, str]) -> None:
        if not self._depth:
            self._loose()
            self._block = _block_of(name)
            if self._block:
                self._depth = depth
                self._grid = _Grid()
        elif not self._item_depth:
            if name == "tr" and "rows" in self._block:
                self._grid.begin_row(self._block["rows"])
            elif name in _ITEMS.get(self._block["type"], ()):
                self._keep_item("")
                self._item, self._item_depth, self._from = name, depth, len(self.out)
                self._given = given

    def end(self, depth: int) -> None:
        if not self._depth:
            self._loose()
        elif depth == self._item_depth:
            self._keep_item(self._item)
            self._item_depth = 0
        elif depth == self._depth:
            self._keep_block()

    def end_of_page(self) -> None:
        if self._depth:
            self._keep_block()
        self._loose()

    def _text(self) -> str:
        text = "".join(self.out[self._from :]).strip("\n")
        self._from = len(self.out)
        return text

    def _loose(self) -> None:
        if text := self._text().strip():
            self.found.append({"type": "text", "text": text})

    def _keep_item(self, name: str) -> None:
        text, block = self._text(), self._block
        if block["type"] == "table":
            if name == "caption":
                block["caption"] = text
            elif name:
                block["rows"] = block["rows"] or [[]]
                self._grid.add_cell(block["rows"][-1], text.strip("\t"), self._given)
        elif block["type"] == "definitions":
            last = block["items"][-1] if block["items"] else None
            if name == "dt" and (last is None or last["text"]):
                block["items"].append({"term": text, "text": ""})
            elif text:
                last = last or {"term": "", "text": ""}
                block["items"] = block["items"] or [last]
                part = "term" if name == "dt" else "text"
                last[part] = f"{last[part]}\n{text}" if last[part] else text
        elif text:
            block["items"].append(text)

    def _keep_block(self) -> None:
        block = self._block
        self._depth = self._item_depth = 0
        if block["type"] in _ITEMS:
            self._keep_item("")
            if block.get("items") or any(any(row) for row in block.get("rows", ())):
                self.found.append(block)
        elif text := self._text():
            self.found.append({**block, "text": text})


class _Grid:
    """Keeps each cell in its column: cells of several rows or columns leave empty places."""

    def __init__(self) -> None:
        self._column = 0
        self._taken: frozenset[int] = frozenset()  # columns of this row with a cell from above
        self._below: dict[int, int] = {}  # column -> number of further rows of its cell
        self._room = _MAX_PLACES

    def begin_row(self, rows: list[list[str]]) -> None:
        rows.append([])
        self._column = 0
        if not self._has_room(len(self._below)):
            self._below = {}
        self._taken = frozenset(self._below)
        self._below = {column: left - 1 for column, left in self._below.items() if left > 1}

    def add_cell(self, row: list[str], text: str, given: Mapping[str, str]) -> None:
        while self._column in self._taken:
            self._column += 1
        gap = self._column - len(row)
        if gap > 0 and self._has_room(gap):
            row.extend([""] * gap)
        row.append(text)
        columns = min(_span(given, "colspan") or 1, _MAX_COLUMNS)
        rows = min(_span(given, "rowspan") or _MAX_ROWS, _MAX_ROWS)  # 0: to the end
        if rows > 1 and self._has_room(columns):
            columns_below = range(self._column, self._column + columns)
            self._below.update(dict.fromkeys(columns_below, rows - 1))
        self._column += columns

    def _has_room(self, places: int) -> bool:
        self._room -= places
        return self._room >= 0


def _span(given: Mapping[str, str], name: str) -> int:
    """Return the number in an attribute as browsers read it; 1 without one."""
    found = _NUMBER.match(given.get(name, ""))
    return 1 if found is None else int(found[1])


_NUMBER: Final = re.compile(r"[\t\n\f\r ]*\+?([0-9]{1,6})")
_ITEMS: Final = {
    "list": ("li",),
    "table": ("td", "th", "caption"),
    "definitions": ("dt", "dd"),
}


def _block_of(name: str) -> dict[str, Any]:
    """Return the block type of this element; empty for elements without one."""
    if level := _HEADINGS.get(name):
        return {"type": "heading", "level": level}
    if name == "p":
        return {"type": "paragraph"}
    if name in _LISTS:
        return {"type": "list", "ordered": _LISTS[name], "items": []}
    if name == "table":
        return {"type": "table", "rows": []}
    if name == "dl":
        return {"type": "definitions", "items": []}
    if name in PRESERVED:
        return {"type": "code"}
    return {"type": "quote"} if name == "blockquote" else {}
