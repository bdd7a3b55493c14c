"""Screenshots with typed texts masked, wherever the page repeats them.

The browser reports the boxes of such texts before and after the screenshot, and they are painted
over in the picture, not in the page: the page can neither detect nor undo it. A page whose texts
keep moving gets no screenshot. Texts that a page draws as pixels are not found.
"""

from __future__ import annotations

import asyncio
import json
import math
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from playwright.async_api import Error

from engine.browser.page.extraction_options import WORLD
from engine.secrets.value_search import Echoes

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Frame, Locator, Page


_SHOWN: Final = frozenset({"value", "placeholder", "alt", "label"})
Sizes = Mapping[int, list[float]]


class Box(NamedTuple):
    """A rectangle in the window, in CSS pixels."""

    x: float
    y: float
    width: float
    height: float


class Zoom(NamedTuple):
    """The part of the window in the picture: its scale, and its corner in CSS pixels.

    A phone shows a page that is wider than its screen at a smaller scale.
    """

    scale: float = 1.0
    left: float = 0.0
    top: float = 0.0


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


TRIES: Final = 3
MOST_MARKUP: Final = 16 * 1024 * 1024  # characters; a larger page is not searched
MOST_FRAMES: Final = 40
MOST_FIELDS: Final = 100
LOOK_S: Final = 5.0
EDGE: Final = 3  # pixels around a text, because letters exceed their box
_SIZE: Final = "document.documentElement ? document.documentElement.outerHTML.length : 0"
_ZOOM: Final = """[
  visualViewport.scale, visualViewport.offsetLeft, visualViewport.offsetTop,
]"""
Shoot = Callable[[], Awaitable[bytes]]
Clip = Callable[[], Awaitable[Box]]


class MaskingFailed(Exception):
    """Typed texts could not be masked in time, so no screenshot may be kept."""


async def masked_screenshot(
    page: Page,
    wire: CDPSession,
    echoes: Echoes,
    shoot: Shoot,
    clip: Clip | None = None,
    *,
    fields: Sequence[str] = (),
) -> bytes:
    """Take a screenshot with `shoot` and paint over every echo in it.

    Args:
        clip: the part of the window in the picture, if not the whole window.
        fields: selectors of elements that are always painted over.

    Raises:
        MaskingFailed: the texts could not be masked in time.
        playwright.Error: from `shoot`.
    """
    if not echoes and not fields:
        return await shoot()
    for _ in range(TRIES):
        before = await _zoom(wire), await _boxes(page, wire, echoes, fields)
        png = await shoot()
        zoom, boxes = after = await _zoom(wire), await _boxes(page, wire, echoes, fields)
        if before == after:
            shown = await clip() if clip and boxes else None
            return await _paint(wire, png, _to_picture(boxes, shown, zoom))
    raise MaskingFailed


async def _boxes(page: Page, wire: CDPSession, echoes: Echoes, fields: Sequence[str]) -> list[Box]:
    return await echo_boxes(page, wire, echoes) + await _field_boxes(page, fields)


async def _zoom(wire: CDPSession) -> Zoom:
    """Return the zoom of the window. Raises MaskingFailed."""
    try:
        async with asyncio.timeout(LOOK_S):
            return Zoom(*map(float, await _evaluate_isolated(wire, _ZOOM)))
    except (Error, TimeoutError, KeyError, TypeError, ValueError) as failed:
        raise MaskingFailed from failed


async def echo_boxes(page: Page, wire: CDPSession, echoes: Echoes) -> list[Box]:
    """Return the boxes in which the window shows a value. Raises MaskingFailed."""
    try:
        async with asyncio.timeout(LOOK_S):
            layout = await _layout(wire)
            boxes = await asyncio.to_thread(layout.boxes, echoes)
            return boxes + await _frame_boxes(page, echoes)
    except (Error, TimeoutError, KeyError) as failed:
        raise MaskingFailed from failed


async def _field_boxes(page: Page, fields: Sequence[str]) -> list[Box]:
    """Return the boxes of the matching elements; hidden elements have none."""
    try:
        async with asyncio.timeout(LOOK_S):
            found = [one for selector in fields for one in await page.locator(selector).all()]
            boxes = [await one.bounding_box(timeout=LOOK_S * 1000) for one in found[:MOST_FIELDS]]
    except (Error, TimeoutError) as failed:
        raise MaskingFailed from failed
    if len(found) > MOST_FIELDS:
        raise MaskingFailed
    return [Box(box["x"], box["y"], box["width"], box["height"]) for box in boxes if box]


async def _layout(wire: CDPSession) -> Layout:
    size = int(await _evaluate_isolated(wire, _SIZE))
    if size > MOST_MARKUP:
        raise MaskingFailed
    return Layout(await wire.send("DOMSnapshot.captureSnapshot", {"computedStyles": []}))


async def _frame_boxes(page: Page, echoes: Echoes) -> list[Box]:
    """Search frames of other sites, which run in separate processes and need own sessions."""
    frames = page.frames[1:]
    if len(frames) > MOST_FRAMES:
        raise MaskingFailed
    boxes: list[Box] = []
    for frame in frames:
        try:
            wire = await page.context.new_cdp_session(frame)
        except Error:
            continue  # it shares the page's process, or is gone
        try:
            layout = await _layout(wire)
            if await asyncio.to_thread(layout.shows, echoes):
                boxes.append(await _place(frame))
        finally:
            await wire.detach()
    return boxes


async def _place(frame: Frame) -> Box:
    """Return the window box of a frame, or of the top-level frame around it."""
    while frame.parent_frame is not None and frame.parent_frame.parent_frame is not None:
        frame = frame.parent_frame
    element = await frame.frame_element()
    box = await element.bounding_box()
    return Box(box["x"], box["y"], box["width"], box["height"]) if box else Box(0, 0, 0, 0)


async def box_of(element: Locator) -> Box:
    """Return the window box of an element. Raises MaskingFailed for a hidden one."""
    box = await element.bounding_box(timeout=LOOK_S * 1000)
    if box is None:
        raise MaskingFailed
    return Box(box["x"], box["y"], box["width"], box["height"])


def _to_picture(boxes: list[Box], clip: Box | None, zoom: Zoom) -> list[Box]:
    """Convert boxes to whole pixels of the picture, with a margin; a `clip` is never zoomed."""
    scale, left, above = (1.0, clip.x, clip.y) if clip else zoom
    found = []
    for x, y, width, height in boxes:
        at = math.floor((x - left) * scale) - EDGE, math.floor((y - above) * scale) - EDGE
        wide, high = math.ceil(width * scale), math.ceil(height * scale)
        found.append(Box(*at, wide + 2 * EDGE + 1, high + 2 * EDGE + 1))
    return found


async def _paint(wire: CDPSession, png: bytes, boxes: list[Box]) -> bytes:
    if not boxes:
        return png
    script = f"{_script()}({json.dumps(b64encode(png).decode('ascii'))}, {json.dumps(boxes)})"
    try:
        async with asyncio.timeout(LOOK_S):
            return b64decode(str(await _evaluate_isolated(wire, script)))
    except (Error, TimeoutError, KeyError, ValueError) as failed:
        raise MaskingFailed from failed


async def _evaluate_isolated(wire: CDPSession, expression: str) -> Any:
    tree = await wire.send("Page.getFrameTree")
    named = {"frameId": tree["frameTree"]["frame"]["id"], "worldName": WORLD}
    world = await wire.send("Page.createIsolatedWorld", named)
    request = {
        "expression": expression,
        "contextId": world["executionContextId"],
        "awaitPromise": True,
        "returnByValue": True,
    }
    answer = await wire.send("Runtime.evaluate", request)
    if "exceptionDetails" in answer:
        raise MaskingFailed
    return answer["result"]["value"]


@cache
def _script() -> str:
    text = files("engine.browser").joinpath("paint.js").read_text("utf-8")
    return text.partition("\n")[2].strip()
