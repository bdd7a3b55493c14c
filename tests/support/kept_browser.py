"""Chromium, its driver and the event loop, kept from one test of a module to the next.

A start costs 2 s of CPU and a test that uses pages needs none of its own. Each test gets a
`BrowserSession` of its own, whose first pages come from the processes of the session before it.
What tells on the processes themselves (starts, deaths, environment) goes without: such a test
is marked with `own_browser`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from engine.browser.chromium.browser_options import DEFAULT, BrowserVariant, Limits
from engine.browser.chromium.browser_session import BrowserSession
from engine.egress.proxy import Proxy

if TYPE_CHECKING:
    from engine.browser.chromium.driver import Driver
    from engine.browser.chromium.launch import Chromium

CLOSE_S = 20.0


class _Kept:
    """What is kept; the processes belong to one session at a time."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.proxy = _KeptProxy()
        self.driver: Driver | None = None
        self.running: dict[tuple[str | None, BrowserVariant], Chromium] = {}

    async def end(self) -> None:
        for one in self.running.values():
            await one.kill()
        if self.driver is not None:
            await self.driver.stop(CLOSE_S)
        await self.proxy.end_listeners()


class _KeptProxy(Proxy):
    """A proxy that outlives its sessions."""

    async def close(self) -> None:
        """Do nothing; `end_listeners` closes it."""

    async def end_listeners(self) -> None:
        await super().close()


class KeptSession(BrowserSession):
    """Starts with the processes that the session before it left, and leaves its own."""

    kept: ClassVar[_Kept | None] = None

    def __init__(self, path: str | None = None, limits: Limits = DEFAULT) -> None:
        super().__init__(path, limits)
        self.proxy = _kept().proxy

    async def _launch(self, variant: BrowserVariant) -> Chromium:
        kept = _kept()
        if self._driver is None and kept.driver is not None and kept.driver.alive:
            self._driver, kept.driver = kept.driver, None
        found = kept.running.pop((self._path, variant), None)
        if found is None or not found.alive or found.driver is not self._driver:
            found = await self._fresh(variant)
        found.proxy = self.proxy  # for contexts; a test may have its own
        return found

    async def _fresh(self, variant: BrowserVariant) -> Chromium:
        own, self.proxy = self.proxy, _kept().proxy
        try:
            return await super()._launch(variant)
        finally:
            self.proxy = own

    async def aclose(self) -> None:
        """Give the processes back; those of no more use end as in every session."""
        kept, driver = _kept(), self._driver
        if driver is not None and driver.alive and not driver._late and kept.driver is None:
            for variant, one in tuple(self._running.items()):
                if one.alive and not one.worn and one.driver is driver and await _emptied(one):
                    kept.running[self._path, variant] = self._running.pop(variant)
            kept.driver, self._driver = driver, None
        await super().aclose()


async def _emptied(chromium: Chromium) -> bool:
    """Close what a test left open; return whether the browser is as good as new."""
    from playwright.async_api import Error

    with suppress(Error, TimeoutError):
        async with asyncio.timeout(CLOSE_S):
            for context in chromium.browser.contexts:
                await context.close()
    return chromium.alive and chromium.idle


def _kept() -> _Kept:
    if KeptSession.kept is None:
        KeptSession.kept = _Kept()
    return KeptSession.kept


def run(test: Coroutine[Any, Any, list[str]], heard: list[dict[str, Any]]) -> list[str]:
    """Run a test on the kept loop; `heard` gets what the loop's exception handler is told."""
    runner = _kept().runner
    runner.get_loop().set_exception_handler(lambda _, context: heard.append(context))
    return runner.run(test)


def tasks() -> set[asyncio.Task[Any]]:
    """Tasks of the kept processes, which a test may leave running."""
    kept = KeptSession.kept
    return set() if kept is None or kept.driver is None else set(kept.driver._tasks)


def end() -> None:
    """End everything that is kept."""
    kept, KeptSession.kept = KeptSession.kept, None
    if kept is not None:
        with kept.runner as runner:
            runner.run(kept.end())
