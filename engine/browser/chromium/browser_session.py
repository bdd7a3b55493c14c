"""The engine's Chromium, started on first use, restarted after a crash, recycled when worn.

It ends after some minutes without work.

Playwright is imported with the first start, never before. Crawls that exclude images, fonts
and media share one browser; a crawl that needs them gets a second one (see `launch`).
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from engine.browser import direct
from engine.browser.chromium.browser_options import (
    DEFAULT,
    BrowserVariant,
    FetcherOptions,
    InstanceOptions,
    Limits,
)
from engine.browser.chromium.locate import Found, locate
from engine.browser.page.failures import check_limits
from engine.browser.recording.live_view import LiveViews, MaskedContent
from engine.browser.remote.remote_address import RemoteBrowserUnreachable, RemotePlace
from engine.egress.proxy import Proxy
from engine.model.errors import BrowserFailed, BrowserMissing, ShuttingDown
from engine.pages.fetch import Fetcher

if TYPE_CHECKING:
    from engine.browser.chromium.browser_instance import Instance
    from engine.browser.chromium.driver import Driver, Family
    from engine.browser.chromium.launch import Chromium


CLOSE_S = 5.0
# Above every step's own limit: only a driver that hangs takes so long.
START_S = 80.0
STOP_S = 1.0
REMOTE_S = 90.0  # for a browser of another machine: above the limits of the steps
# Imported by Playwright on the loop with its first message, which would block it for 0.2 s.
_LATE_MODULES = (
    "playwright._impl.protocol_channels",
    "playwright._impl.local_utils",
    "playwright._impl.json_pipe",
)
FAILED_FOR_S = 10.0  # requests within this time of a failed start get the same error
# Crawls that may use Playwright instead try the pipe no sooner: one that hangs costs `LAUNCH_S`.
PIPE_FAILED_FOR_S = 1_800.0
_T = TypeVar("_T")
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
        self._recycler = BrowserRecycler(limits, self._running.values, self._release_driver)
        self._starting = asyncio.Lock()
        self._remote_starts: dict[BrowserVariant, asyncio.Lock] = {}
        self._limits: set[asyncio.Timeout] = set()  # of the remote starts in progress
        self._limit: asyncio.Timeout | None = None  # of the start in progress
        self._state: State = "idle"
        self._name = ""
        self._reason = ""
        self._failures: dict[BrowserVariant, tuple[float, BrowserFailed]] = {}
        self._pipe_failure: tuple[float, BrowserFailed] | None = None  # of any direct start
        self._closed = False
        self.starts = 0  # number of browser starts, restarts included

    def status(self) -> tuple[State, str, str]:
        """Return (state, name and version, reason) for the status bar and the doctor."""
        alive = any(one.alive for kind, one in self._running.items() if kind.remote is None)
        if alive and self._state in ("failed", "missing"):  # that was a window without a screen
            return "ready", self._name, ""
        if self._state == "ready" and not alive:
            return "idle", self._name, self._idle_reason()
        return self._state, self._name, self._reason

    def _idle_reason(self) -> str:
        """Return why no browser runs although one has started."""
        ended = [one for kind, one in self._running.items() if kind.remote is None]
        if ended and all(one.had_no_work for one in ended):
            return "the browser had no work and was ended; it starts again when it is needed"
        return "the browser stopped; it starts again when it is needed"

    def use(self, path: str | None) -> None:
        """Use another browser for new tasks; running ones keep theirs. None searches for one."""
        self._path = path
        self._failures.clear()
        self._pipe_failure = None
        for variant in [one for one in self._running if one.remote is None]:
            self._recycler.retire(self._running.pop(variant))

    async def warm(self) -> None:
        """Start the browser of plain crawls now, so that the first page does not wait for it.

        Raises:
            BrowserMissing, BrowserFailed: no browser was found, or it does not start.
        """
        driven = BrowserVariant(lean=True)
        if direct.AVAILABLE:
            with contextlib.suppress(BrowserFailed):  # as a crawl: then Playwright is tried
                await self._over_the_pipe(driven._replace(direct=True))
                return
        await self._chromium(driven)

    @asynccontextmanager
    async def fetcher(self, options: FetcherOptions) -> AsyncIterator[Fetcher]:
        """Provide tabs for one crawl during the block; the browser starts with the first page."""
        from engine.browser.chromium.tab_pool import TabPool

        pool = TabPool(options, self._chromium_for(options))
        self.live_views.show(options.task_id, pool, _masked_content(options))
        try:
            yield pool
        finally:
            await pool.close()

    async def ensure_started(self, options: FetcherOptions) -> None:
        """Start the browser of a crawl, if it does not run.

        Raises:
            BrowserMissing, BrowserFailed, ShuttingDown
        """
        await self._chromium_for(options)()

    def _chromium_for(self, options: FetcherOptions) -> Callable[[], Awaitable[Chromium]]:
        """Return what gets the browser of a crawl; it falls back to Playwright once and for all."""
        driven = BrowserVariant(lean=options.block_resources)
        variant = driven._replace(direct=options.direct)

        async def running() -> Chromium:
            nonlocal variant
            wanted = variant
            if not wanted.direct or options.on_fallback is None:
                return await self._chromium(wanted)
            try:
                return await self._over_the_pipe(wanted)
            except BrowserFailed as failed:
                if variant.direct:  # not yet by another page
                    variant = driven
                    await options.on_fallback(str(failed.fields.get("reason", failed)))
            return await self._chromium(driven)

        return running

    async def _over_the_pipe(self, variant: BrowserVariant) -> Chromium:
        """Return a browser with a direct connection, where Playwright is the alternative.

        Raises:
            BrowserFailed: it does not start, or a start failed within the last 30 minutes.
            BrowserMissing, ShuttingDown
        """
        running = self._running.get(variant)
        if self._pipe_failure is not None and (running is None or not running.alive):
            since_s, failure = self._pipe_failure
            if time.monotonic() - since_s < PIPE_FAILED_FOR_S:
                raise failure
        return await self._chromium(variant)

    async def open_instance(self, options: InstanceOptions) -> Instance:
        """Open a dedicated browser context (see `browser_instance`); the caller closes it.

        Raises:
            BrowserMissing, BrowserFailed, BrowserGone, ShuttingDown
        """
        # The import takes about 0.3 s, so it runs on a thread to keep the loop free.
        await asyncio.to_thread(_import_playwright)
        from engine.browser.chromium.browser_instance import open_instance

        windows = options.windows and not options.headed
        variant = BrowserVariant(False, options.headed, windows, remote=options.remote)
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
        for limit in filter(None, (self._limit, *self._limits)):
            if not limit.expired():
                limit.reschedule(asyncio.get_running_loop().time())

    async def _wait_for_start(self, limit_s: float) -> None:
        """Wait for a cancelled start to undo its work."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s), self._starting:
                for lock in tuple(self._remote_starts.values()):
                    async with lock:
                        pass

    async def _end_driver(self, limit_s: float) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            await driver.stop(limit_s)

    def _release_driver(self) -> None:
        """Retire the driver when no browser uses it and none is being started."""
        used = (one.driver for one in self._running.values() if one.alive)
        if self._driver is None or self._starting.locked() or self._driver in used:
            return
        if self._driver not in self._recycler.starting:
            self._recycler.retire_driver(self._driver)
            self._driver = None

    async def _chromium(self, variant: BrowserVariant) -> Chromium:
        """Return the running browser of this kind; start one if there is none.

        Raises:
            BrowserMissing, BrowserFailed, ShuttingDown
        """
        running = self._running.get(variant)
        if running is not None and running.alive and not running.worn:
            running.note_use()
            return running
        lock = self._starting
        if variant.remote is not None:  # it is slow, and must not delay other starts
            self._expect_open()
            lock = self._remote_starts.setdefault(variant, asyncio.Lock())
        async with lock:
            running = self._running.get(variant)
            if running is None or not running.alive:
                return await self._start(variant)
            running.note_use()
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
        if variant.remote is not None:
            return await self._start_remote(variant, variant.remote)
        self._state, path = "starting", self._path
        try:
            started = await self._in_time(lambda: self._launch(variant))
        except BrowserMissing as missing:
            self._state, self._reason = "missing", str(missing)
            raise
        except BrowserFailed as failed:
            self._state, self._reason = "failed", str(failed)
            self._failures[variant] = (time.monotonic(), failed)
            if variant.direct and path == self._path:  # else another browser was chosen meanwhile
                self._pipe_failure = self._failures[variant]
            raise
        finally:
            if self._state == "starting":  # cancelled, or an unexpected error
                self._state = "idle"
        self._expect_open()
        self._replace(variant, started)
        self._failures.pop(variant, None)
        if variant.direct:
            self._pipe_failure = None
        self._state, self._reason = "ready", ""
        if not variant.headed or not self._name:  # a recording's browser is another program
            self._name = f"{started.found.name} {started.browser.version}"
        return started

    async def _start_remote(self, variant: BrowserVariant, place: RemotePlace) -> Chromium:
        """Start a browser of another machine, which `status` does not include."""
        from engine.browser.chromium.launch import launch_remote

        try:
            async with self._starting:
                driver = await self._in_time(self._ready_driver)
            self._expect_open()
            async with asyncio.timeout(REMOTE_S) as limit:
                self._limits.add(limit)
                self._recycler.starting.append(driver)
                try:
                    started = await launch_remote(driver, place, self.proxy, variant)
                finally:
                    self._limits.discard(limit)
                    self._recycler.starting.remove(driver)
        except TimeoutError as slow:
            self._expect_open()
            raise RemoteBrowserUnreachable(
                address=place.address, reason="it does not answer"
            ) from slow
        except BrowserFailed as failed:
            self._failures[variant] = (time.monotonic(), failed)
            raise
        if self._closed:
            await started.kill()
        self._expect_open()
        self._replace(variant, started)
        self._failures.pop(variant, None)
        return started

    def _expect_open(self) -> None:
        if self._closed:
            raise ShuttingDown()

    def _replace(self, variant: BrowserVariant, started: Chromium) -> None:
        before = self._running.get(variant)
        if before is not None:
            self._recycler.retire(before)
        self._running[variant] = started
        started.headed = variant.headed
        started.note_use()
        self._recycler.start()
        self.starts += 1

    async def _in_time(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Do a part of a start that only a driver which hangs keeps from its end.

        Raises:
            BrowserFailed: it did not end within 80 s.
            ShuttingDown: the session was closed meanwhile.
        """
        try:
            async with asyncio.timeout(START_S) as self._limit:
                return await work()
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
        check_limits()
        found: Found = await asyncio.to_thread(locate, self._path, headless=not variant.headed)
        # The import takes about 0.3 s, so it runs on a thread to keep the loop free.
        await asyncio.to_thread(_import_playwright)
        from engine.browser.chromium.launch import launch

        if variant.direct:
            self._expect_open()
            return await launch(None, found, self.proxy, variant)
        return await launch(await self._ready_driver(), found, self.proxy, variant)

    async def _ready_driver(self) -> Driver:
        """Return the driver; start another one if there is none, or if it is worn or hangs."""
        await asyncio.to_thread(_import_playwright)
        from engine.browser.chromium.driver import Driver

        if self._driver is not None and self._recycler.is_worn(self._driver):
            self._recycler.retire_driver(self._driver)
            self._driver = None
        if self._driver is not None and not await self._driver.answers():
            self._recycler.retire_driver(self._driver)
            for one in self._running.values():
                if one.driver is self._driver:
                    one.give_up()
            self._driver = None
        if self._driver is None:
            self._expect_open()
            self._driver = await Driver.start()
        self._expect_open()
        return self._driver


def _import_playwright() -> None:
    importlib.import_module("engine.browser.chromium.launch")
    importlib.import_module("engine.browser.chromium.tab_pool")
    importlib.import_module("engine.browser.chromium.browser_instance")
    for name in _LATE_MODULES:
        with contextlib.suppress(ImportError):  # Playwright versions differ in these names
            importlib.import_module(name)


def _masked_content(options: FetcherOptions | InstanceOptions) -> MaskedContent:
    return MaskedContent(tuple(value for value, _ in options.secrets))


OPENING_S: Final = 3.0
MAX_INSTANCES: Final = 32  # for each process; an instance holds a profile and at least one page


class TooManyInstances(Exception):
    """The limit of open instances is reached; another would slow all of them down."""


class Instances:
    """The running instances; an instance that died is removed automatically."""

    def __init__(self, browser: BrowserSession) -> None:
        self._browser = browser
        self._known: dict[str, Instance] = {}
        self._masked_selectors: dict[str, list[str]] = {}
        self._hidden: dict[str, dict[str, str]] = {}
        self._opening: set[asyncio.Task[Instance]] = set()
        self._retiring: set[asyncio.Task[bool]] = set()

    async def launch(self, options: InstanceOptions) -> Instance:
        """Open an instance; it stays until `close`, or until the engine closes.

        Raises:
            TooManyInstances: 32 are open.
            BrowserMissing, BrowserFailed, BrowserGone, ShuttingDown
        """
        if len(self.living()) >= MAX_INSTANCES:
            raise TooManyInstances
        opening = asyncio.create_task(self._browser.open_instance(options), name="open an instance")
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)
        try:
            # An interrupted browser start leaves processes behind: it continues after a
            # cancellation, and its instance is closed again.
            opened = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(self._close_unwanted)
            raise
        self._known[opened.id] = opened
        return opened

    def get(self, instance_id: str) -> Instance | None:
        """Return the running instance with this id."""
        found = self._known.get(instance_id)
        return found if found is not None and found.alive else None

    def lives(self, instance_id: str) -> bool:
        return self.get(instance_id) is not None

    def living(self) -> tuple[Instance, ...]:
        """Return all running instances, oldest first."""
        return tuple(each for each in self._known.values() if each.alive)

    async def close(self, instance_id: str) -> bool:
        """Close one; return False if there is none with this id."""
        found = self._known.pop(instance_id, None)
        self._masked_selectors.pop(instance_id, None)
        self._hidden.pop(instance_id, None)
        if found is None:
            return False
        was_alive = found.alive
        await found.close()
        return was_alive

    def masked_selectors(self, instance_id: str) -> list[str]:
        """Return the selectors of fields that were typed into; screenshots mask them."""
        return self._masked_selectors.setdefault(instance_id, [])

    def hidden(self, instance_id: str) -> dict[str, str]:
        """Return the instance's secrets with their replacements; kept in memory only."""
        return self._hidden.setdefault(instance_id, {})

    def _close_unwanted(self, opening: asyncio.Task[Instance]) -> None:
        if opening.cancelled() or opening.exception() is not None:
            return
        opened = opening.result()
        self._known[opened.id] = opened
        self._close_later(opened.id)

    def _close_later(self, instance_id: str) -> asyncio.Task[bool]:
        closing = asyncio.create_task(self.close(instance_id), name=f"close {instance_id}")
        self._retiring.add(closing)
        closing.add_done_callback(self._retiring.discard)
        return closing

    async def retire(self, instance_id: str, limit_s: float) -> None:
        """Close one in the background; wait for it at most `limit_s`."""
        if instance_id not in self._known:
            return
        await asyncio.wait({self._close_later(instance_id)}, timeout=limit_s)

    async def aclose(self) -> None:
        """Close all instances concurrently, and cancel pending starts after a limit."""
        if self._opening:  # a start that completes leaves less behind than an interrupted one
            await asyncio.wait(self._opening, timeout=OPENING_S)
        for opening in self._opening:
            opening.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)
        await asyncio.gather(*map(self.close, tuple(self._known)), *self._retiring)


RETIRE_S = 2.0
LEND_S = 60.0  # without work; then a remote browser is given back, of which its machine has few
SLOW_S = 0.5  # for a response that usually takes some milliseconds
SLOW_PROBES = 2


class BrowserRecycler:
    """Recycles browsers and drivers. Loop-bound; `stop` ends it and all retired processes.

    A worn browser gets no new work and ends with its last page. The same applies to Playwright's
    driver, which retains a little of every message. A browser that had no work for a while ends
    too, and so does the driver after the last browser that used it. Nothing runs before the first
    browser, and nothing is measured while all browsers are idle.

    A page may flood its browser with messages and block all others: a browser that responds slowly
    twice in a row, and is busy itself, loses its busiest page. If no other task uses that browser,
    it is probed twice as often first. The probes run independently of the memory measurements,
    which take seconds on a busy machine.

    `running` returns the browsers that get new work, of any kind; `release_driver` retires the
    driver if nothing uses it.
    """

    def __init__(
        self,
        limits: Limits,
        running: Callable[[], Iterable[Chromium]],
        release_driver: Callable[[], None] = lambda: None,
    ) -> None:
        self._limits = limits
        self._running = running
        self._release_driver = release_driver
        self._browsers: list[Chromium] = []
        self._drivers: list[Driver] = []
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self.starting: list[Driver] = []  # of the remote browsers that are being started
        self._ending: set[asyncio.Task[None]] = set()  # of browsers without work

    def start(self) -> None:
        """Start the recycler unless it is running."""
        if all(task.done() for task in self._tasks):
            measuring = asyncio.create_task(self._measure_forever(), name="measure browsers")
            probing = asyncio.create_task(self._end_floods(), name="end floods")
            self._tasks = (measuring, probing)

    def retire(self, browser: Chromium) -> None:
        """Retire a browser: it gets no new work, and ends once it is idle."""
        if browser.driver is not None:
            browser.driver.pages += browser.pages
        self._browsers.append(browser)

    def retire_driver(self, driver: Driver) -> None:
        """Retire a driver: it ends with the last of its browsers."""
        self._drivers.append(driver)

    def is_worn(self, driver: Driver) -> bool:
        """Return whether the next browser needs a fresh driver."""
        limits = self._limits
        return driver.pages >= limits.driver_pages or driver.held_bytes > limits.driver_bytes

    async def stop(self, limit_s: float) -> None:
        """End the recycler and all retired processes, within little more than `limit_s`."""
        for task in self._tasks:
            task.cancel()
        if running := {*self._tasks, *self._ending}:
            await asyncio.wait(running, timeout=RETIRE_S + limit_s)
        browsers, self._browsers = self._browsers, []
        drivers, self._drivers = self._drivers, []
        await asyncio.gather(*(browser.kill() for browser in browsers))
        await asyncio.gather(*(driver.stop(limit_s) for driver in drivers))

    async def _measure_forever(self) -> None:
        while True:
            await asyncio.sleep(self._limits.look_s)
            for one in self._used():
                if one.family is not None and one.alive:
                    await asyncio.to_thread(self._measure, one, one.family)
                elif one.remote is not None and one.driver is not None:
                    one.driver.weigh()
                    one.worn = one.driver.held_bytes > self._limits.driver_bytes
            self._end_unused()
            if not self._ending:  # a browser closes by its driver
                self._release_driver()
            await self._end_retired()

    def _end_unused(self) -> None:
        """End browsers that had no work for a while, and remote ones that are lost."""
        for one in [one for one in self._running() if not one.dropped]:
            if not one.idle:
                one.note_use()
            lost = one.remote is not None and not one.alive
            if lost or (one.idle and one.unused_s >= self._idle_limit_s(one)):
                one.had_no_work = one.alive  # else it crashed before
                one.give_up()  # at once: no task gets it any more
                ending = asyncio.create_task(self._end(one, lost=lost), name="end an idle browser")
                self._ending.add(ending)
                ending.add_done_callback(self._ending.discard)

    def _idle_limit_s(self, browser: Chromium) -> float:
        if browser.remote is not None:
            return LEND_S
        return self._limits.headed_idle_s if browser.headed else self._limits.idle_s

    async def _end(self, browser: Chromium, *, lost: bool) -> None:
        """End a browser; the task of one that is `lost` still asks for the reason."""
        if lost:
            await browser.was_lost()  # waits for that news, which comes by the connection
        await browser.kill()

    async def _end_floods(self) -> None:
        while True:
            await asyncio.sleep(self._limits.look_s)
            await asyncio.gather(*(self._probe(one) for one in self._used() if one.alive))

    def _used(self) -> list[Chromium]:
        return [one for one in (*self._running(), *self._browsers) if not one.idle]

    def _measure(self, browser: Chromium, family: Family) -> None:
        limits, driver = self._limits, browser.driver
        browser.load.weigh(family, limits)
        full = browser.load.total_bytes > limits.browser_bytes
        if driver is not None:
            driver.weigh()
            full = full or driver.held_bytes > limits.driver_bytes
        browser.worn = browser.pages >= limits.browser_pages or (
            full and browser.pages >= limits.least_pages
        )

    async def _probe(self, browser: Chromium) -> None:
        """End a page that blocks the browser for all others, if there is one."""
        for _ in range(SLOW_PROBES if browser.shared else 2 * SLOW_PROBES):
            if await browser.answers(SLOW_S):
                return
        if not browser.alive or await browser.end_flood():
            return
        if browser.was_flooded() and not browser.shared:
            browser.give_up()  # only the page that caused the queue still waits

    async def _end_retired(self) -> None:
        """End retired browsers and drivers without work."""
        for browser in [one for one in self._browsers if one.idle or not one.alive]:
            await browser.kill()
            # Only afterwards, so that `stop` still ends it after a cancellation.
            self._browsers.remove(browser)
        used = {one.driver for one in (*self._running(), *self._browsers) if one.alive}
        used.update(self.starting)
        for driver in [one for one in self._drivers if one not in used]:
            await driver.stop(RETIRE_S)
            self._drivers.remove(driver)
