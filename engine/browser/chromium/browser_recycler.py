"""Browser recycler: measure busy browsers every second and replace worn ones.

A worn browser gets no new work and ends with its last page. The same applies to Playwright's
driver, which retains a little of every message. Nothing runs before the first browser, and nothing
is measured while all browsers are idle.

A page may flood its browser with messages and block all others: a browser that responds slowly
twice in a row loses its busiest page. If no other task uses that browser, it is probed twice as
often first. The probes run independently of the memory measurements, which take seconds on a busy
machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from engine.browser.chromium.browser_options import Limits
from engine.browser.chromium.processes import Family

if TYPE_CHECKING:
    from engine.browser.chromium.driver import Driver
    from engine.browser.chromium.launch import Chromium

STOP_S = 2.0
SLOW_S = 0.5  # for a response that usually takes some milliseconds
SLOW_PROBES = 2


class BrowserRecycler:
    """Recycles browsers and drivers. Loop-bound; `stop` ends it and all retired processes.

    `running` returns the browsers that get new work, of any kind.
    """

    def __init__(self, limits: Limits, running: Callable[[], Iterable[Chromium]]) -> None:
        self._limits = limits
        self._running = running
        self._browsers: list[Chromium] = []
        self._drivers: list[Driver] = []
        self._tasks: tuple[asyncio.Task[None], ...] = ()

    def start(self) -> None:
        """Start the recycler unless it is running."""
        if all(task.done() for task in self._tasks):
            measuring = asyncio.create_task(self._measure_forever(), name="measure browsers")
            probing = asyncio.create_task(self._end_floods(), name="end floods")
            self._tasks = (measuring, probing)

    def retire(self, browser: Chromium) -> None:
        """Retire a browser: it gets no new work, and ends once it is idle."""
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
        if self._tasks:
            await asyncio.wait(self._tasks)
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
            await self._end_retired()

    async def _end_floods(self) -> None:
        while True:
            await asyncio.sleep(self._limits.look_s)
            await asyncio.gather(*(self._probe(one) for one in self._used() if one.alive))

    def _used(self) -> list[Chromium]:
        return [one for one in (*self._running(), *self._browsers) if not one.idle]

    def _measure(self, browser: Chromium, family: Family) -> None:
        limits, driver = self._limits, browser.driver
        browser.load.weigh(family, limits)
        driver.weigh()
        full = (
            browser.load.total_bytes > limits.browser_bytes
            or driver.held_bytes > limits.driver_bytes
        )
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
        for driver in [one for one in self._drivers if one not in used]:
            await driver.stop(STOP_S)
            self._drivers.remove(driver)
