"""The parts of an evidence bundle, and how a page's parts are taken within their time limits."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Literal, Protocol, get_args

import msgspec

from engine.model.errors import EngineError

Part = Literal["dom", "screenshot", "phash", "network", "console"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)
"""In the order in which they are taken: what watches the page is written down last."""
OF_THE_PAGE: Final = frozenset({"dom", "screenshot", "phash"})
MAX_DOM: Final = 8 * 1024 * 1024  # bytes of dom.html
PART_S: Final = 30.0
LEAST_S: Final = 10.0  # minimum for the parts of a page with a shorter page timeout
SLACK_S: Final = 10.0


class PartMissing(EngineError):
    """A part was skipped: the page had used up the parts' time limit."""

    code = "part_missing"
    title = "A part is missing"
    sentence = "Not taken: the page did not answer within {limit_s:.0f} s."


class Opened(msgspec.Struct, frozen=True):
    """The page when it was ready. Its texts are the page's, without secrets."""

    url: str
    title: str
    status: int
    settled: bool
    consent: dict[str, str] = {}


class Piece(msgspec.Struct, frozen=True):
    """A collected part: the content of its file, whether it is truncated, and extra fields."""

    data: bytes
    truncated: bool = False
    told: dict[str, Any] = {}


class BundleOptions(Protocol):
    """What taking the parts needs of a bundle's arguments."""

    @property
    def url(self) -> str | None: ...

    @property
    def include(self) -> Collection[str]: ...

    @property
    def timeout_ms(self) -> int: ...

    @property
    def wait_for(self) -> str | None: ...

    @property
    def network_window_ms(self) -> int: ...

    @property
    def full_page(self) -> bool: ...

    @property
    def redact_content(self) -> bool: ...


class Camera(Protocol):
    """Collector of the parts of one page, which it observes from its creation."""

    @property
    def worker(self) -> str:
        """The worker of a cluster that has the page; empty: it is on this machine."""
        ...

    async def open(self) -> Opened:
        """Open the page and wait until it is ready. Raises EngineError.

        If the network is requested, wait for the end of its window as well.
        """
        ...

    async def take(self, part: Part) -> Piece:
        """Collect one part of the page's current state. Raises EngineError."""
        ...


Unit = Callable[[str, float], AbstractAsyncContextManager[None]]
"""A block with a label and a limit in seconds, which raises UnitTimeout (see `Context.unit`)."""


def open_s(options: BundleOptions) -> float:
    """Return the limit for the load, the rest of the network's window, and settling again."""
    is_watched = "network" in options.include
    window_ms = options.timeout_ms + options.network_window_ms if is_watched else 0
    return (options.timeout_ms + window_ms) / 1_000 + SLACK_S


class Taking:
    """The taking of one page's parts with a camera.

    Attributes:
        opened: the page, once it was opened.
        unopened: why it was not.
    """

    def __init__(
        self, camera: Camera, options: BundleOptions, unit: Unit, monotonic: Callable[[], float]
    ) -> None:
        self._camera, self._options = camera, options
        self._unit, self._monotonic = unit, monotonic
        self.opened: Opened | None = None
        self.unopened: EngineError | None = None
        # The parts share one limit per page: a page that hangs would use up the limit of each.
        self._page_s = min(PART_S, max(LEAST_S, options.timeout_ms / 1_000))
        self._page_until = 0.0

    async def open(self) -> None:
        """Open the page; `opened` or `unopened` is set afterwards."""
        try:
            async with self._unit("open the page", open_s(self._options)):
                self.opened = await self._camera.open()
        except EngineError as failed:
            self.unopened = failed
        self._page_until = self._monotonic() + self._page_s

    async def take(self, part: Part) -> Piece | EngineError:
        """Return a part, or why it is missing."""
        if self.unopened is not None and part in OF_THE_PAGE:
            return self.unopened
        limit_s = PART_S
        if part in OF_THE_PAGE and not self._camera.worker:  # a worker has kept the limit
            limit_s = self._page_until - self._monotonic()
            if limit_s <= 0:
                return PartMissing(limit_s=self._page_s)
        try:
            async with self._unit(part, limit_s):
                return await self._camera.take(part)
        except EngineError as failed:
            return failed
