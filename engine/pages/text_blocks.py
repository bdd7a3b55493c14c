"""Split a page's text into blocks: headings, paragraphs, lists, tables, code, quotations."""

from __future__ import annotations

from typing import Any, Final

from engine.pages.rendered_text import PRESERVED, Walk

_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_LISTS: Final = {"ul": False, "menu": False, "dir": False, "ol": True}


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
        self._from = 0

    def begin(self, name: str, depth: int) -> None:
        if not self._depth:
            self._loose()
            self._block = _block_of(name)
            if self._block:
                self._depth = depth
        elif not self._item_depth:
            if name == "tr" and "rows" in self._block:
                self._block["rows"].append([])
            elif name in _ITEMS.get(self._block["type"], ()):
                self._keep_item("")
                self._item, self._item_depth, self._from = name, depth, len(self.out)

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
                block["rows"][-1].append(text.strip("\t"))
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
