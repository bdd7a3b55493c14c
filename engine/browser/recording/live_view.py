"""Live view of the browsers of running tasks, active only while a reader watches.

A running task registers its sources here: all objects with open tabs. Registering costs nothing;
only `watch` requests pictures from a browser, and stops when its reader closes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from engine.model import redact
from engine.model.display import display
from engine.secrets.given_secrets import Scrub

if TYPE_CHECKING:
    from playwright.async_api import Page

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
        from engine.browser.recording.screencast import masked_pictures, screencast

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
