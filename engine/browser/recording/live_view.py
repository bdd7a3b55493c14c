"""Live view of the browsers of running tasks, active only while a reader watches.

A running task registers its sources here: all objects with open tabs. Registering costs nothing;
only `watch` requests pictures from a browser, and stops when its reader closes it.

The browser sends the next picture of a tab when the last one was acknowledged, so the reader sets
the rate. A tab with a typed secret is not cast: it is captured at intervals, and the secret is
painted over before the picture leaves this package.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncGenerator, Collection, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from playwright.async_api import Error

from engine.browser.page.screenshot_masking import MaskingFailed, masked_screenshot
from engine.model import redact
from engine.model.display import display
from engine.secrets.echo_matching import Echoes
from engine.secrets.given_secrets import Scrub

if TYPE_CHECKING:
    from playwright.async_api import Page

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page


PAUSE_S: Final = 0.25  # between two pictures: four a second suffice and cost little
STILL_S: Final = 1.0  # a static page sends nothing; its address is reported all the same
CAREFUL_S: Final = 1.0
CLOSE_S: Final = 2.0
ANSWER_S: Final = 5.0
QUALITY: Final = 60


async def screencast(page: Page, size: tuple[int, int]) -> AsyncGenerator[bytes, None]:
    """Yield JPEGs of the tab, at most of `size` (pixels); b"" after a second without change.

    Ends when the tab closes.
    """
    inbox: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    notify_end = _on_close(page, inbox)
    wire: CDPSession | None = None
    try:
        with suppress(Error, TimeoutError):
            wire = await _started(page, size, inbox)
            while True:
                frames = await _next_frames(inbox)
                if None in frames:
                    return
                yield b64decode(frames[-1]["data"]) if frames and frames[-1] else b""
                if frames:
                    await asyncio.sleep(PAUSE_S)
                await _acknowledge(wire, frames)
    finally:
        page.remove_listener("close", notify_end)
        if wire is not None:
            await _detach(wire)


def _on_close(page: Page, inbox: asyncio.Queue[dict[str, Any] | None]) -> Any:
    def notify_end(_: object) -> None:
        inbox.put_nowait(None)

    page.on("close", notify_end)
    return notify_end


async def _started(
    page: Page, size: tuple[int, int], inbox: asyncio.Queue[dict[str, Any] | None]
) -> CDPSession:
    """Start a cast in a separate DevTools session, which ends with the session."""
    width, height = size
    how = {"format": "jpeg", "quality": QUALITY, "maxWidth": width, "maxHeight": height}
    async with asyncio.timeout(ANSWER_S):
        wire = await page.context.new_cdp_session(page)
    try:
        wire.on("Page.screencastFrame", inbox.put_nowait)
        async with asyncio.timeout(ANSWER_S):
            await wire.send("Page.enable")
            await wire.send("Page.startScreencast", how)
    except BaseException:
        await _detach(wire)
        raise
    return wire


async def _next_frames(inbox: asyncio.Queue[dict[str, Any] | None]) -> list[dict[str, Any] | None]:
    """Return the queued frames; empty after a second without any."""
    frames: list[dict[str, Any] | None] = []
    with suppress(TimeoutError):
        async with asyncio.timeout(STILL_S):
            frames.append(await inbox.get())
    while not inbox.empty():
        frames.append(inbox.get_nowait())
    return frames


async def _acknowledge(wire: CDPSession, frames: list[dict[str, Any] | None]) -> None:
    async with asyncio.timeout(ANSWER_S):
        for one in filter(None, frames):
            await wire.send("Page.screencastFrameAck", {"sessionId": one["sessionId"]})


async def masked_pictures(
    page: Page, values: Collection[str], fields: Collection[str]
) -> AsyncGenerator[bytes, None]:
    """Yield PNGs of the tab, about one a second, with typed texts masked.

    `values` and the selectors in `fields` are read again for each picture, because both may grow.
    Yields b"" if masking takes too long. Ends when the tab closes.
    """
    wire: CDPSession | None = None
    try:
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(ANSWER_S):
                wire = await page.context.new_cdp_session(page)
            while not page.is_closed():
                yield await _masked_picture(page, wire, tuple(values), tuple(fields))
                await asyncio.sleep(CAREFUL_S)
    finally:
        if wire is not None:
            await _detach(wire)


async def _masked_picture(
    page: Page, wire: CDPSession, values: tuple[str, ...], fields: tuple[str, ...]
) -> bytes:
    async def shoot() -> bytes:
        answer = await wire.send("Page.captureScreenshot", {"format": "png"})
        return b64decode(answer["data"])

    try:
        async with asyncio.timeout(ANSWER_S):
            return await masked_screenshot(page, wire, Echoes(values), shoot, fields=fields)
    except (MaskingFailed, TimeoutError):
        return b""


async def _detach(wire: CDPSession) -> None:
    """Detach within a time limit, which ends the cast, also after cancellation."""
    with suppress(Error, TimeoutError):
        async with asyncio.timeout(CLOSE_S):
            await wire.detach()


LOOK_S: Final = 0.3  # poll interval for a page while none is open
MOST_ADDRESS: Final = 2_048
Size = tuple[int, int]
ANY_SIZE: Final[Size] = (1280, 800)


class Source(Protocol):
    """An object with tabs: a crawl's pool, an instance."""

    @property
    def pages(self) -> list[Page]: ...


@dataclass(frozen=True, slots=True)
class MaskedContent:
    """Values and typed-into fields that no picture may show. Both may grow."""

    values: Collection[str] = ()
    fields: Collection[str] = ()

    def __bool__(self) -> bool:
        return bool(self.values or self.fields)


class OpenPage(msgspec.Struct, frozen=True):
    """A tab of a task: its number, and its redacted address."""

    number: int
    address: str


class LiveFrame(msgspec.Struct, frozen=True):
    """Current state of the view. `picture` is a JPEG or PNG; empty: unchanged.

    `page` is the number of the shown tab, 0 if none is open; `masked` means that typed texts are
    masked.
    """

    page: int = 0
    address: str = ""
    picture: bytes = b""
    pages: tuple[OpenPage, ...] = ()
    masked: bool = False


class LiveViews:
    """The running tasks of one engine with their sources. Loop-bound."""

    def __init__(self) -> None:
        self._tasks: dict[str, dict[Source, MaskedContent]] = {}
        self._numbers: dict[str, dict[Page, int]] = {}
        self._last = 0

    def begin(self, task_id: str) -> None:
        """Register a task."""
        self._tasks[task_id] = {}

    def show(self, task_id: str, source: Source, masked: MaskedContent | None = None) -> None:
        """Add a source to a task; ignored for a task that is not registered."""
        if task_id in self._tasks:
            self._tasks[task_id][source] = MaskedContent() if masked is None else masked

    def end(self, task_id: str) -> None:
        """Remove a task, which ends its watchers."""
        self._tasks.pop(task_id, None)
        self._numbers.pop(task_id, None)

    def pages(self, task_id: str) -> tuple[OpenPage, ...]:
        """Return the tabs that the task has open now, oldest first."""
        found = self._found(task_id)
        return tuple(OpenPage(number, _address(page, masking)) for number, page, masking in found)

    async def watch(
        self, task_id: str, number: int = 0, size: Size = ANY_SIZE
    ) -> AsyncGenerator[LiveFrame, None]:
        """Yield the view of one tab a few times a second until the task ends.

        Args:
            number: the tab; 0, or the number of a closed one: the newest.
            size: largest useful width and height in pixels.
        """
        while task_id in self._tasks:
            found = self._found(task_id)
            if not found:
                yield LiveFrame()
            else:
                chosen = [one for one in found if one[0] == number]
                async with aclosing(self._follow(task_id, (chosen or found)[-1], size)) as frames:
                    async for frame in frames:
                        yield frame
            await asyncio.sleep(LOOK_S)

    async def _follow(
        self, task_id: str, one: tuple[int, Page, MaskedContent], size: Size
    ) -> AsyncGenerator[LiveFrame, None]:

        number, page, masking = one
        careful = bool(masking)
        if careful:
            cast = masked_pictures(page, masking.values, masking.fields)
        else:
            cast = screencast(page, size)
        async with aclosing(cast) as pictures:
            async for picture in pictures:
                # Texts typed from now on must be masked: start again, with masking.
                if task_id not in self._tasks or bool(masking) is not careful:
                    return
                pages = self.pages(task_id)
                yield LiveFrame(number, _address(page, masking), picture, pages, careful)

    def _found(self, task_id: str) -> list[tuple[int, Page, MaskedContent]]:
        known = self._numbers.get(task_id, {})
        found = [
            (self._number(known, page), page, masking) for page, masking in self._open(task_id)
        ]
        if task_id in self._tasks:  # drops closed ones
            self._numbers[task_id] = {page: number for number, page, _ in found}
        return sorted(found, key=lambda one: one[0])

    def _number(self, known: dict[Page, int], page: Page) -> int:
        if page not in known:
            self._last += 1
            return self._last
        return known[page]

    def _open(self, task_id: str) -> Iterator[tuple[Page, MaskedContent]]:
        for source, masking in tuple(self._tasks.get(task_id, {}).items()):
            for page in source.pages:
                if not page.is_closed():
                    yield page, masking


def _address(page: Page, masking: MaskedContent) -> str:
    scrub = Scrub((value, redact.MARK) for value in masking.values)
    return display(scrub.text(page.url), MOST_ADDRESS)
