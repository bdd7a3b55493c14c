"""Registry of this process's running browser instances, by id."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from engine.browser.chromium.browser_options import InstanceOptions
from engine.browser.chromium.browser_session import BrowserSession

if TYPE_CHECKING:
    from engine.browser.chromium.browser_instance import Instance

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
