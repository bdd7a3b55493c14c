"""The engine's Chromium, started on first use and restarted after a crash.

Playwright is imported with the first start, never before. Crawls that exclude images, fonts
and media share one browser; a crawl that needs them gets a second one (see `launch`).
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal

from engine.browser.chromium.browser_options import (
    DEFAULT,
    BrowserVariant,
    FetcherOptions,
    InstanceOptions,
    Limits,
)
from engine.browser.chromium.browser_recycler import BrowserRecycler
from engine.browser.chromium.locate import Found, locate
from engine.browser.recording.live_view import LiveViews, MaskedContent
from engine.egress.proxy import Proxy
from engine.model.errors import BrowserFailed, BrowserMissing, ShuttingDown
from engine.pages.fetch import Fetcher

if TYPE_CHECKING:
    from engine.browser.chromium.browser_instance import Instance
    from engine.browser.chromium.driver import Driver
    from engine.browser.chromium.launch import Chromium

CLOSE_S = 5.0
# Above every step's own limit: only a driver that hangs takes so long.
START_S = 80.0
STOP_S = 1.0
# Imported by Playwright on the loop with its first message, which would block it for 0.2 s.
_LATE_MODULES = (
    "playwright._impl.protocol_channels",
    "playwright._impl.local_utils",
    "playwright._impl.json_pipe",
)
FAILED_FOR_S = 10.0  # requests within this time of a failed start get the same error
State = Literal["idle", "starting", "ready", "missing", "failed"]


class BrowserSession:
    """The engine's browser. Loop-bound; nothing starts before `warm` or the first page."""

    def __init__(self, path: str | None = None, limits: Limits = DEFAULT) -> None:
        """Create an idle session; `path` is the user's browser, or None to search for one."""
        self._path = path
        self.live_views = LiveViews()
        self.proxy = Proxy()  # the only way out; started with the first browser
        self._driver: Driver | None = None
        self._running: dict[BrowserVariant, Chromium] = {}
        self._recycler = BrowserRecycler(limits, self._running.values)
        self._starting = asyncio.Lock()
        self._limit: asyncio.Timeout | None = None  # of the start in progress
        self._state: State = "idle"
        self._name = ""
        self._reason = ""
        self._failures: dict[BrowserVariant, tuple[float, BrowserFailed]] = {}
        self._closed = False
        self.starts = 0  # number of browser starts, restarts included

    def status(self) -> tuple[State, str, str]:
        """Return (state, name and version, reason) for the status bar and the doctor."""
        alive = any(one.alive for one in self._running.values())
        if alive and self._state in ("failed", "missing"):  # that was a window without a screen
            return "ready", self._name, ""
        if self._state == "ready" and not alive:
            return "idle", self._name, "the browser stopped; it starts again when it is needed"
        return self._state, self._name, self._reason

    async def warm(self) -> None:
        """Start the browser now, so that the first page does not wait for it.

        Raises:
            BrowserMissing, BrowserFailed: no browser was found, or it does not start.
        """
        await self._chromium(BrowserVariant(lean=True))

    @asynccontextmanager
    async def fetcher(self, options: FetcherOptions) -> AsyncIterator[Fetcher]:
        """Provide tabs for one crawl during the block; the browser starts with the first page."""
        from engine.browser.chromium.tab_pool import TabPool

        variant = BrowserVariant(lean=options.block_resources)
        pool = TabPool(options, lambda: self._chromium(variant))
        self.live_views.show(options.task_id, pool, _masked_content(options))
        try:
            yield pool
        finally:
            await pool.close()

    async def open_instance(self, options: InstanceOptions) -> Instance:
        """Open a dedicated browser context (see `browser_instance`); the caller closes it.

        Raises:
            BrowserMissing, BrowserFailed, BrowserGone, ShuttingDown
        """
        # The import takes about 0.3 s, so it runs on a thread to keep the loop free.
        await asyncio.to_thread(_import_playwright)
        from engine.browser.chromium.browser_instance import open_instance

        windows = options.windows and not options.headed
        variant = BrowserVariant(lean=False, headed=options.headed, windows=windows)
        opened = await open_instance(options, lambda: self._chromium(variant))
        self.live_views.show(options.task_id, opened, _masked_content(options))
        return opened

    @asynccontextmanager
    async def instance(self, options: InstanceOptions) -> AsyncIterator[Instance]:
        """Open an instance for one block."""
        opened = await self.open_instance(options)
        try:
            yield opened
        finally:
            await opened.close()

    async def aclose(self) -> None:
        """End all started processes within 5 s, by force if necessary."""
        self._closed = True
        self._cancel_start()
        deadline = asyncio.get_running_loop().time() + CLOSE_S
        running = tuple(self._running.values())
        self._running.clear()
        await asyncio.gather(*(one.kill() for one in running), self._recycler.stop(STOP_S))
        await self._end_driver(max(0.5, deadline - asyncio.get_running_loop().time()))
        await self._wait_for_start(max(0.5, deadline - asyncio.get_running_loop().time()))
        await self.proxy.close()
        self._state = "idle"

    def _cancel_start(self) -> None:
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time())

    async def _wait_for_start(self, limit_s: float) -> None:
        """Wait for a cancelled start to undo its work."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s), self._starting:
                pass

    async def _end_driver(self, limit_s: float) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            await driver.stop(limit_s)

    async def _chromium(self, variant: BrowserVariant) -> Chromium:
        """Return the running browser of this kind; start one if there is none.

        Raises:
            BrowserMissing, BrowserFailed, ShuttingDown
        """
        running = self._running.get(variant)
        if running is not None and running.alive and not running.worn:
            return running
        async with self._starting:
            running = self._running.get(variant)
            if running is None or not running.alive:
                return await self._start(variant)
            return await self._replace_worn(running, variant) if running.worn else running

    async def _replace_worn(self, worn: Chromium, variant: BrowserVariant) -> Chromium:
        """Replace a worn browser by a fresh one; keep it if the start fails."""
        try:
            return await self._start(variant)
        except (BrowserMissing, BrowserFailed):
            if not worn.alive:
                raise
            worn.worn, worn.pages = False, 0
            return worn

    async def _start(self, variant: BrowserVariant) -> Chromium:
        self._expect_open()
        since_s, failure = self._failures.get(variant, (0.0, None))
        if failure and time.monotonic() - since_s < FAILED_FOR_S:
            raise failure
        self._state = "starting"
        try:
            started = await self._launch_in_time(variant)
        except BrowserMissing as missing:
            self._state, self._reason = "missing", str(missing)
            raise
        except BrowserFailed as failed:
            self._state, self._reason = "failed", str(failed)
            self._failures[variant] = (time.monotonic(), failed)
            raise
        finally:
            if self._state == "starting":  # cancelled, or an unexpected error
                self._state = "idle"
        self._expect_open()
        self._replace(variant, started)
        self._failures.pop(variant, None)
        self._state, self._reason = "ready", ""
        self._name = f"{started.found.name} {started.browser.version}"
        return started

    def _expect_open(self) -> None:
        if self._closed:
            raise ShuttingDown()

    def _replace(self, variant: BrowserVariant, started: Chromium) -> None:
        before = self._running.get(variant)
        if before is not None:
            self._recycler.retire(before)
        self._running[variant] = started
        self._recycler.start()
        self.starts += 1

    async def _launch_in_time(self, variant: BrowserVariant) -> Chromium:
        try:
            async with asyncio.timeout(START_S) as self._limit:
                return await self._launch(variant)
        except TimeoutError as slow:
            self._expect_open()
            await self._end_driver(0.5)
            raise BrowserFailed(reason=f"it was not ready within {START_S:.0f} s") from slow
        finally:
            self._limit = None
            if self._closed:  # closed meanwhile: no other reference to the late driver exists
                await self._end_driver(STOP_S)
                await self.proxy.close()

    async def _launch(self, variant: BrowserVariant) -> Chromium:
        found: Found = await asyncio.to_thread(locate, self._path, headless=not variant.headed)
        # The import takes about 0.3 s, so it runs on a thread to keep the loop free.
        await asyncio.to_thread(_import_playwright)
        from engine.browser.chromium.driver import Driver
        from engine.browser.chromium.launch import launch

        if self._driver is not None and self._recycler.is_worn(self._driver):
            self._recycler.retire_driver(self._driver)
            self._driver = None
        if self._driver is not None and not await self._driver.answers():
            self._recycler.retire_driver(self._driver)
            for one in self._running.values():
                one.give_up()
            self._driver = None
        if self._driver is None:
            self._expect_open()
            self._driver = await Driver.start()
        self._expect_open()
        return await launch(self._driver, found, self.proxy, variant)


def _import_playwright() -> None:
    importlib.import_module("engine.browser.chromium.launch")
    importlib.import_module("engine.browser.chromium.tab_pool")
    importlib.import_module("engine.browser.chromium.browser_instance")
    for name in _LATE_MODULES:
        with contextlib.suppress(ImportError):  # Playwright versions differ in these names
            importlib.import_module(name)


def _masked_content(options: FetcherOptions | InstanceOptions) -> MaskedContent:
    return MaskedContent(tuple(value for value, _ in options.secrets))
