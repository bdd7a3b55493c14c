"""Once a second, while a browser has something open: what it holds, and whether it is worn.

A worn browser is left: it gets no new work, and ends with its last page. So does Playwright's
driver, which keeps a little of every message it passed on. Nothing here runs before the
first browser, and nothing is looked at while all of them are idle.

A page may flood its browser with messages, so that all others stand still: a browser that is
slow to answer twice in a row loses its busiest page. Where nobody else waits for that browser it
is asked twice as often first. This runs beside the looks at memory, which take seconds when the
machine is busy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from engine.browser.chromium.browser_limits import Limits
from engine.browser.chromium.processes import Family

if TYPE_CHECKING:
    from engine.browser.chromium.driver import Driver
    from engine.browser.chromium.launch import Chromium

STOP_S = 2.0
SLOW_S = 0.5  # for an answer that takes some milliseconds otherwise
SLOW_LOOKS = 2


class Upkeep:
    """See the module. Loop-bound; `stop` ends it and everything that was left to it.

    `running` gives the browsers that get new work, of any kind.
    """

    def __init__(self, limits: Limits, running: Callable[[], Iterable[Chromium]]) -> None:
        self._limits = limits
        self._running = running
        self._browsers: list[Chromium] = []
        self._drivers: list[Driver] = []
        self._tasks: tuple[asyncio.Task[None], ...] = ()

    def start(self) -> None:
        """Look after the browsers from now on, if that is not done already."""
        if all(task.done() for task in self._tasks):
            keeping = asyncio.create_task(self._keep(), name="look after browsers")
            feeling = asyncio.create_task(self._end_floods(), name="end floods")
            self._tasks = (keeping, feeling)

    def leave(self, browser: Chromium) -> None:
        """Give it no new work, and end it when it has nothing open any more."""
        browser.driver.pages += browser.pages
        self._browsers.append(browser)

    def leave_driver(self, driver: Driver) -> None:
        """End it with the last of its browsers."""
        self._drivers.append(driver)

    def is_worn(self, driver: Driver) -> bool:
        """Should the next browser come from a fresh driver?"""
        limits = self._limits
        return driver.pages >= limits.driver_pages or driver.held_bytes > limits.driver_bytes

    async def stop(self, limit_s: float) -> None:
        """End it, and all that was left to it, within `limit_s` and a little."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        browsers, self._browsers = self._browsers, []
        drivers, self._drivers = self._drivers, []
        await asyncio.gather(*(browser.kill() for browser in browsers))
        await asyncio.gather(*(driver.stop(limit_s) for driver in drivers))

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._limits.look_s)
            for one in self._used():
                if one.family is not None and one.alive:
                    await asyncio.to_thread(self._look, one, one.family)
            await self._bury()

    async def _end_floods(self) -> None:
        while True:
            await asyncio.sleep(self._limits.look_s)
            await asyncio.gather(*(self._feel(one) for one in self._used() if one.alive))

    def _used(self) -> list[Chromium]:
        return [one for one in (*self._running(), *self._browsers) if not one.idle]

    def _look(self, browser: Chromium, family: Family) -> None:
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

    async def _feel(self, browser: Chromium) -> None:
        """End the page that keeps the browser from everybody else, if there is one."""
        for _ in range(SLOW_LOOKS if browser.shared else 2 * SLOW_LOOKS):
            if await browser.answers(SLOW_S):
                return
        if not browser.alive or await browser.end_flood():
            return
        if browser.was_flooded() and not browser.shared:
            browser.give_up()  # nobody waits but the page that left it such a queue

    async def _bury(self) -> None:
        """End what has no work any more."""
        for browser in [one for one in self._browsers if one.idle or not one.alive]:
            await browser.kill()
            self._browsers.remove(browser)  # not before: called off here, `stop` ends it yet
        used = {one.driver for one in (*self._running(), *self._browsers) if one.alive}
        for driver in [one for one in self._drivers if one not in used]:
            await driver.stop(STOP_S)
            self._drivers.remove(driver)
