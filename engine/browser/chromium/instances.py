"""The living browser instances of this process, by id: launched, listed, and closed with it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from engine.browser.chromium.browser_session import BrowserSession, InstanceOptions

if TYPE_CHECKING:
    from engine.browser.chromium.browser_instance import Instance

OPENING_S: Final = 3.0
MAX_INSTANCES: Final = 32  # of one process; each holds a profile and at least one page


class TooManyInstances(Exception):
    """So many are open that another would only slow all of them down."""


class Instances:
    """Who is there; an instance that died leaves the list by itself."""

    def __init__(self, browser: BrowserSession) -> None:
        self._browser = browser
        self._known: dict[str, Instance] = {}
        self._covered: dict[str, list[str]] = {}
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
            # A browser torn in its start leaves processes behind: who gives up waiting leaves it
            # to us, and what opens then is closed again.
            opened = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(self._close_unwanted)
            raise
        self._known[opened.id] = opened
        return opened

    def get(self, instance_id: str) -> Instance | None:
        """The living instance of this id."""
        found = self._known.get(instance_id)
        return found if found is not None and found.alive else None

    def lives(self, instance_id: str) -> bool:
        return self.get(instance_id) is not None

    def living(self) -> tuple[Instance, ...]:
        """All of them, oldest first."""
        return tuple(each for each in self._known.values() if each.alive)

    async def close(self, instance_id: str) -> bool:
        """Close one; False when there is none of this id."""
        found = self._known.pop(instance_id, None)
        self._covered.pop(instance_id, None)
        self._hidden.pop(instance_id, None)
        if found is None:
            return False
        was_alive = found.alive
        await found.close()
        return was_alive

    def covered(self, instance_id: str) -> list[str]:
        """The selectors of what was typed into there; pictures leave those fields out."""
        return self._covered.setdefault(instance_id, [])

    def hidden(self, instance_id: str) -> dict[str, str]:
        """What tasks there must not repeat, and what stands in its place; in memory only."""
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
        """Close one and wait for that at most `limit_s`; it goes on by itself."""
        if instance_id not in self._known:
            return
        await asyncio.wait({self._close_later(instance_id)}, timeout=limit_s)

    async def aclose(self) -> None:
        """Close all of them, side by side, and call off what does not open in time."""
        if self._opening:  # a start that may end in order leaves less behind than a torn one
            await asyncio.wait(self._opening, timeout=OPENING_S)
        for opening in self._opening:
            opening.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)
        await asyncio.gather(*map(self.close, tuple(self._known)), *self._retiring)
