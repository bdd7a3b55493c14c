"""The living browser instances of this process, by id: launched, listed, and closed with it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from engine.browser.session import BrowserSession, InstanceOptions

if TYPE_CHECKING:
    from engine.browser.instance import Instance

MAX_INSTANCES: Final = 32  # of one process; each holds a profile and at least one page


class TooManyInstances(Exception):
    """So many are open that another would only slow all of them down."""


class Instances:
    """Who is there; an instance that died leaves the list by itself."""

    def __init__(self, browser: BrowserSession) -> None:
        self._browser = browser
        self._known: dict[str, Instance] = {}
        self._covered: dict[str, list[str]] = {}
        self._retiring: set[asyncio.Task[bool]] = set()

    async def launch(self, options: InstanceOptions) -> Instance:
        """Open an instance; it stays until `close`, or until the engine closes.

        Raises:
            TooManyInstances: 32 are open.
            BrowserMissing, BrowserFailed, BrowserGone, ShuttingDown
        """
        if len(self.living()) >= MAX_INSTANCES:
            raise TooManyInstances
        opened = await self._browser.open_instance(options)
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
        if found is None:
            return False
        was_alive = found.alive
        await found.close()
        return was_alive

    def covered(self, instance_id: str) -> list[str]:
        """The selectors of what was typed into there; pictures leave those fields out."""
        return self._covered.setdefault(instance_id, [])

    async def retire(self, instance_id: str, limit_s: float) -> None:
        """Close one and wait for that at most `limit_s`; it goes on by itself."""
        if instance_id not in self._known:
            return
        closing = asyncio.create_task(self.close(instance_id), name=f"close {instance_id}")
        self._retiring.add(closing)
        closing.add_done_callback(self._retiring.discard)
        await asyncio.wait({closing}, timeout=limit_s)

    async def aclose(self) -> None:
        """Close all of them, side by side."""
        await asyncio.gather(*map(self.close, tuple(self._known)), *self._retiring)
