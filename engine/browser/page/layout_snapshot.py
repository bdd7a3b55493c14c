"""Positions of texts in a page, from the browser's `DOMSnapshot` rather than the page.

It includes content that page scripts cannot read: closed shadow roots, style sheet text, frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from engine.secrets.echo_matching import Echoes

_SHOWN: Final = frozenset({"value", "placeholder", "alt", "label"})
Sizes = Mapping[int, list[float]]


class Box(NamedTuple):
    """A rectangle in the window, in CSS pixels."""

    x: float
    y: float
    width: float
    height: float


class Layout:
    """One result of `DOMSnapshot.captureSnapshot`."""

    def __init__(self, snapshot: Mapping[str, Any]) -> None:
        self._strings: list[str] = snapshot["strings"]
        self._documents: list[dict[str, Any]] = snapshot["documents"]

    def shows(self, echoes: Echoes) -> bool:
        """Return whether any document shows one of the values."""
        return any(self._found(document, echoes) for document in self._documents)

    def boxes(self, echoes: Echoes) -> list[Box]:
        """Return the boxes that show a value; a frame that does counts as a whole."""
        if not self._documents:
            return []
        top = self._documents[0]
        found = self._found(top, echoes)
        within = [
            number
            for number, document in enumerate(self._documents[1:], 1)
            if self._found(document, echoes)
        ]
        sizes = _sizes(top)
        found += [size for number in within if (size := sizes.get(self._frame_of(number)))]
        left, above = float(top["scrollOffsetX"]), float(top["scrollOffsetY"])
        return [Box(x - left, y - above, width, height) for x, y, width, height in found]

    def _frame_of(self, number: int) -> int:
        """Return the element of the first document that contains a nested document."""
        for at, document in enumerate(self._documents):
            inside = document["nodes"].get("contentDocumentIndex", {"index": [], "value": []})
            for node, shown in zip(inside["index"], inside["value"], strict=True):
                if shown == number:
                    return int(node) if at == 0 else self._frame_of(at)
        return -1

    def _found(self, document: Mapping[str, Any], echoes: Echoes) -> list[list[float]]:
        layout, sizes = document["layout"], _sizes(document)
        places = [at for at, text in enumerate(layout["text"]) if text >= 0]
        texts = [self._strings[layout["text"][at]] for at in places]
        found = [layout["bounds"][places[at]] for at in sorted(echoes.within(texts))]
        fields = [(node, text) for node, text in self._fields(document["nodes"]) if node in sizes]
        # Each field is matched alone, because texts of two fields never form one text.
        return found + [sizes[node] for node, text in fields if echoes.within([text])]

    def _fields(self, nodes: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
        """Yield texts outside text nodes: values, placeholders, alternative texts."""
        for name in ("inputValue", "textValue"):
            held = nodes.get(name, {"index": [], "value": []})
            for node, text in zip(held["index"], held["value"], strict=True):
                yield node, self._string(text)
        for node, pairs in enumerate(nodes["attributes"]):
            for name, value in zip(pairs[::2], pairs[1::2], strict=True):
                if self._string(name) in _SHOWN:
                    yield node, self._string(value)
        for node, parent in enumerate(nodes["parentIndex"]):
            if parent >= 0 and self._string(nodes["nodeName"][parent]) == "OPTION":
                yield nodes["parentIndex"][parent], self._string(nodes["nodeValue"][node])

    def _string(self, at: int) -> str:
        return self._strings[at] if at >= 0 else ""


def _sizes(document: Mapping[str, Any]) -> Sizes:
    layout = document["layout"]
    return dict(zip(layout["nodeIndex"], layout["bounds"], strict=True))
