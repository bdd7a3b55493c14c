"""Playwright's driver: the Node.js process that every browser of ours runs below."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Any

import psutil
from playwright._impl._driver import compute_driver_executable
from playwright.async_api import Error, async_playwright

from engine.browser.processes import alive, end, holds
from engine.errors import BrowserFailed

if TYPE_CHECKING:
    from playwright.async_api import Playwright

START_S = 30.0
CLOSE_S = 2.0
FORCED_S = 0.5
ANSWER_S = 2.0


class Driver:
    """The running driver, and through it Playwright."""

    def __init__(self, playwright: Playwright, process: psutil.Process | None) -> None:
        self.playwright = playwright
        self.pages = 0  # that were taken through it, as far as their browsers are left
        self.held_bytes = 0
        self._process = process

    @classmethod
    async def start(cls, limit_s: float = START_S) -> Driver:
        """Start the driver (about 0.3 s). Cancelled meanwhile, it is ended again first: torn in
        its start it would leave its process and tasks behind.

        Raises:
            BrowserFailed: it did not start, or not within `limit_s`.
        """
        _look_for_node()
        before = {child.pid for child in psutil.Process().children()}
        starting = asyncio.create_task(async_playwright().start(), name="start the driver")
        starting.add_done_callback(_hear)
        try:
            # Playwright raises whatever it likes here; `wait` takes it all without a word.
            await asyncio.wait({starting}, timeout=limit_s)
        except asyncio.CancelledError:
            await _to_its_end(asyncio.create_task(cls._call_off(starting, before)))
            raise
        if starting.done() and starting.exception() is None:
            _hear_of_its_end(starting.result())
            return cls(starting.result(), _driver_process(before))
        reason = _reason(starting) if starting.done() else f"no answer within {limit_s:.0f} s"
        await _to_its_end(asyncio.create_task(cls._call_off(starting, before)))
        raise BrowserFailed(reason=f"its driver does not start: {reason}")

    @classmethod
    async def _call_off(cls, starting: asyncio.Task[Playwright], before: set[int]) -> None:
        """End a start: orderly if it still becomes ready, else by force."""
        await asyncio.wait({starting}, timeout=CLOSE_S)
        process = _driver_process(before)
        if starting.done() and not starting.cancelled() and starting.exception() is None:
            await cls(starting.result(), process).stop(CLOSE_S)
            return
        end(_tree(process))
        # Its pipe is closed now, so Playwright gives up what it waits for.
        await asyncio.wait({starting}, timeout=CLOSE_S)
        starting.cancel()

    @property
    def alive(self) -> bool:
        """Does it run? Playwright itself does not tell when it is gone."""
        return self._process is None or alive(self._process)

    async def answers(self) -> bool:
        """Does it run, and say something within 2 s? No browser is asked for that."""
        if not self.alive:
            return False
        try:
            async with asyncio.timeout(ANSWER_S):
                asked = await self.playwright.request.new_context()
                await asked.dispose()
        except (TimeoutError, Error):
            return False
        return True

    def weigh(self) -> None:
        """Look how much memory it holds, into `held_bytes`."""
        self.held_bytes = holds(self._process) if self._process is not None else 0

    async def stop(self, limit_s: float) -> None:
        """End the driver and its browsers; by force what is left after `limit_s`."""
        tree = _tree(self._process)
        stopping = asyncio.create_task(self.playwright.stop(), name="stop the driver")
        stopping.add_done_callback(_hear)
        try:
            await asyncio.wait({stopping}, timeout=limit_s)
            end(tree)
            # Its pipe is closed now: what is left of the stop is the loop's own tidying.
            await asyncio.wait({stopping}, timeout=FORCED_S)
        finally:
            stopping.cancel()


async def _to_its_end(ending: asyncio.Task[None]) -> None:
    """Wait for it whoever calls that off meanwhile: it is bounded, and torn it leaves a process.

    Raises:
        CancelledError: it was called off meanwhile.
    """
    try:
        await asyncio.wait({ending})
    finally:
        if not ending.done():
            await _to_its_end(ending)


def _look_for_node() -> None:
    """Playwright's own start, when it fails for this, leaves a traceback to the loop."""
    try:
        node = compute_driver_executable()[0]
    except Error as failed:
        raise BrowserFailed(reason=failed.message) from failed
    if shutil.which(node) is None:
        raise BrowserFailed(
            reason=f"its driver does not start: {node} is not a program that can be run"
        )


def _reason(failed: asyncio.Task[Playwright]) -> str:
    lines = str(failed.exception()).splitlines()
    return lines[0][:200] if lines else type(failed.exception()).__name__


def _hear_of_its_end(playwright: Playwright) -> None:
    """Playwright keeps a driver's sudden end in a future that nobody asks.

    Unasked, the loop reports it as a lost error; there is no public way to it.
    """
    client = getattr(getattr(playwright.stop, "__self__", None), "_client", None)
    ended = getattr(getattr(client, "_transport", None), "on_error_future", None)
    if isinstance(ended, asyncio.Future):
        ended.add_done_callback(_hear)


def _hear(ended: asyncio.Future[Any]) -> None:
    if not ended.cancelled():
        ended.exception()


def _driver_process(before: set[int]) -> psutil.Process | None:
    for child in psutil.Process().children():
        if child.pid in before:
            continue
        try:
            if "run-driver" in child.cmdline():
                return child
        except psutil.Error:
            continue
    return None


def _tree(process: psutil.Process | None) -> list[psutil.Process]:
    """The driver and every process below it; psutil remembers when each began."""
    if process is None:
        return []
    try:
        return [*process.children(recursive=True), process]
    except psutil.Error:
        return []
