"""One Chromium for the whole engine: started when it is first needed, started again when it dies.

Playwright is imported with the first start, never before. Crawls that leave images, fonts
and media out share one browser; a crawl that wants them gets a second one (see `launch`).
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from engine.browser.chromium.browser_limits import DEFAULT, Limits
from engine.browser.chromium.browser_recycler import Upkeep
from engine.browser.chromium.locate import Found, locate
from engine.browser.egress.egress_policy import Policy
from engine.browser.egress.proxy import Proxy
from engine.browser.recording.live_view import Showing, Unshown
from engine.model.credentials import Credentials
from engine.model.errors import BrowserFailed, BrowserMissing, ShuttingDown
from engine.pages.fetch import Fetcher
from engine.secrets.given_secrets import Hidden

if TYPE_CHECKING:
    from engine.browser.chromium.browser_instance import Instance
    from engine.browser.chromium.driver import Driver
    from engine.browser.chromium.launch import Chromium

CLOSE_S = 5.0
# More than every step's own limit: only a driver that stopped answering takes so long.
START_S = 80.0
STOP_S = 1.0
# What Playwright itself imports on the loop with its first message: 0.2 s in one go.
_LATE_MODULES = (
    "playwright._impl.protocol_channels",
    "playwright._impl.local_utils",
    "playwright._impl.json_pipe",
)
FAILED_FOR_S = 10.0  # whoever asks within this time of a failed start gets the same answer
State = Literal["idle", "starting", "ready", "missing", "failed"]


class FetcherOptions(msgspec.Struct, frozen=True):
    """What one crawl asks of its browser: where it may go, and how many tabs it keeps."""

    policy: Policy
    pages: int = 3
    credentials: Credentials | None = None
    block_resources: bool = True
    locale: str | None = None
    user_agent: str | None = None  # None: Chromium's own
    secrets: tuple[Hidden, ...] = ()  # which no picture may show
    task_id: str = ""  # of the task that may be watched at it


class InstanceOptions(msgspec.Struct, frozen=True):
    """What an instance is for: where it may go, whether a person looks on, and whether windows
    that pages open are kept as tabs."""

    policy: Policy
    headed: bool = False
    windows: bool = False
    asks_person: bool = False  # whoever looks on answers the dialogs of pages
    credentials: Credentials | None = None
    width: int = 1280
    height: int = 800
    secrets: tuple[Hidden, ...] = ()  # which no picture may show
    task_id: str = ""  # of the task that may be watched at it


class Flavour(NamedTuple):
    """What browsers are told apart by: flags hold for a whole process."""

    lean: bool
    headed: bool = False
    windows: bool = False  # that pages may open, where nobody looks on


class BrowserSession:
    """The engine's browser. Loop-bound; nothing runs before `warm` or the first page."""

    def __init__(self, path: str | None = None, limits: Limits = DEFAULT) -> None:
        """`path`: the program that the user set, or None to look for one."""
        self._path = path
        self.showing = Showing()
        self.proxy = Proxy()  # the only way out; nothing of it runs before the first browser
        self._driver: Driver | None = None
        self._running: dict[Flavour, Chromium] = {}
        self._upkeep = Upkeep(limits, self._running.values)
        self._starting = asyncio.Lock()
        self._limit: asyncio.Timeout | None = None  # of the start that is under way
        self._state: State = "idle"
        self._name = ""
        self._reason = ""
        self._failures: dict[Flavour, tuple[float, BrowserFailed]] = {}
        self._closed = False
        self.starts = 0  # how often a browser was started, restarts included

    def status(self) -> tuple[State, str, str]:
        """(state, name and version, reason): for the status bar and the doctor."""
        alive = any(one.alive for one in self._running.values())
        if alive and self._state in ("failed", "missing"):  # another one: a window without a screen
            return "ready", self._name, ""
        if self._state == "ready" and not alive:
            return "idle", self._name, "the browser stopped; it starts again when it is needed"
        return self._state, self._name, self._reason

    async def warm(self) -> None:
        """Start the browser now, so that the first page need not wait for it.

        Raises:
            BrowserMissing, BrowserFailed: there is none, or it does not start.
        """
        await self._chromium(Flavour(lean=True))

    @asynccontextmanager
    async def fetcher(self, options: FetcherOptions) -> AsyncIterator[Fetcher]:
        """Tabs for one crawl, closed with the block; the browser starts with the first page."""
        from engine.browser.chromium.tab_pool import TabPool

        flavour = Flavour(lean=options.block_resources)
        pool = TabPool(options, lambda: self._chromium(flavour))
        self.showing.show(options.task_id, pool, _unshown(options))
        try:
            yield pool
        finally:
            await pool.close()

    async def open_instance(self, options: InstanceOptions) -> Instance:
        """A browser context of one's own, see `instance`; the caller closes it.

        Raises:
            BrowserMissing, BrowserFailed, BrowserGone, ShuttingDown
        """
        # The import takes about 0.3 s: on a thread it does not hold the loop up.
        await asyncio.to_thread(_import_playwright)
        from engine.browser.chromium.browser_instance import open_instance

        windows = options.windows and not options.headed
        flavour = Flavour(lean=False, headed=options.headed, windows=windows)
        opened = await open_instance(options, lambda: self._chromium(flavour))
        self.showing.show(options.task_id, opened, _unshown(options))
        return opened

    @asynccontextmanager
    async def instance(self, options: InstanceOptions) -> AsyncIterator[Instance]:
        """The same for one block, closed with it."""
        opened = await self.open_instance(options)
        try:
            yield opened
        finally:
            await opened.close()

    async def aclose(self) -> None:
        """End everything that was started, within 5 s; by force what does not go."""
        self._closed = True
        self._call_off_start()
        deadline = asyncio.get_running_loop().time() + CLOSE_S
        running = tuple(self._running.values())
        self._running.clear()
        await asyncio.gather(*(one.kill() for one in running), self._upkeep.stop(STOP_S))
        await self._end_driver(max(0.5, deadline - asyncio.get_running_loop().time()))
        await self._no_start_left(max(0.5, deadline - asyncio.get_running_loop().time()))
        await self.proxy.close()
        self._state = "idle"

    def _call_off_start(self) -> None:
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time())

    async def _no_start_left(self, limit_s: float) -> None:
        """Wait for a start that was called off: it takes back what it has begun."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s), self._starting:
                pass

    async def _end_driver(self, limit_s: float) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            await driver.stop(limit_s)

    async def _chromium(self, flavour: Flavour) -> Chromium:
        """The running browser of this kind, started if there is none.

        Raises:
            BrowserMissing, BrowserFailed, ShuttingDown
        """
        running = self._running.get(flavour)
        if running is not None and running.alive and not running.worn:
            return running
        async with self._starting:
            running = self._running.get(flavour)
            if running is None or not running.alive:
                return await self._start(flavour)
            return await self._renewed(running, flavour) if running.worn else running

    async def _renewed(self, worn: Chromium, flavour: Flavour) -> Chromium:
        """A fresh browser in the place of a worn one, which stays where none can be had."""
        try:
            return await self._start(flavour)
        except (BrowserMissing, BrowserFailed):
            if not worn.alive:
                raise
            worn.worn, worn.pages = False, 0
            return worn

    async def _start(self, flavour: Flavour) -> Chromium:
        self._expect_open()
        since_s, failure = self._failures.get(flavour, (0.0, None))
        if failure and time.monotonic() - since_s < FAILED_FOR_S:
            raise failure
        self._state = "starting"
        try:
            started = await self._launch_in_time(flavour)
        except BrowserMissing as missing:
            self._state, self._reason = "missing", str(missing)
            raise
        except BrowserFailed as failed:
            self._state, self._reason = "failed", str(failed)
            self._failures[flavour] = (time.monotonic(), failed)
            raise
        finally:
            if self._state == "starting":  # called off, or an error that nobody expects
                self._state = "idle"
        self._expect_open()
        self._replace(flavour, started)
        self._failures.pop(flavour, None)
        self._state, self._reason = "ready", ""
        self._name = f"{started.found.name} {started.browser.version}"
        return started

    def _expect_open(self) -> None:
        if self._closed:
            raise ShuttingDown()

    def _replace(self, flavour: Flavour, started: Chromium) -> None:
        before = self._running.get(flavour)
        if before is not None:
            self._upkeep.leave(before)
        self._running[flavour] = started
        self._upkeep.start()
        self.starts += 1

    async def _launch_in_time(self, flavour: Flavour) -> Chromium:
        try:
            async with asyncio.timeout(START_S) as self._limit:
                return await self._launch(flavour)
        except TimeoutError as slow:
            self._expect_open()
            await self._end_driver(0.5)
            raise BrowserFailed(reason=f"it was not ready within {START_S:.0f} s") from slow
        finally:
            self._limit = None
            if self._closed:  # meanwhile: what came too late for that is known to nobody else
                await self._end_driver(STOP_S)
                await self.proxy.close()

    async def _launch(self, flavour: Flavour) -> Chromium:
        found: Found = await asyncio.to_thread(locate, self._path, headless=not flavour.headed)
        # The import takes about 0.3 s: on a thread it does not hold the loop up.
        await asyncio.to_thread(_import_playwright)
        from engine.browser.chromium.driver import Driver
        from engine.browser.chromium.launch import launch

        if self._driver is not None and self._upkeep.is_worn(self._driver):
            self._upkeep.leave_driver(self._driver)
            self._driver = None
        if self._driver is not None and not await self._driver.answers():
            self._upkeep.leave_driver(self._driver)
            for one in self._running.values():
                one.give_up()
            self._driver = None
        if self._driver is None:
            self._expect_open()
            self._driver = await Driver.start()
        self._expect_open()
        return await launch(self._driver, found, self.proxy, flavour)


def _import_playwright() -> None:
    importlib.import_module("engine.browser.chromium.launch")
    importlib.import_module("engine.browser.chromium.tab_pool")
    importlib.import_module("engine.browser.chromium.browser_instance")
    for name in _LATE_MODULES:
        with contextlib.suppress(ImportError):  # another version may have none of that name
            importlib.import_module(name)


def _unshown(options: FetcherOptions | InstanceOptions) -> Unshown:
    return Unshown(tuple(value for value, _ in options.secrets))
