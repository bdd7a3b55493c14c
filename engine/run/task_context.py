"""The context that a ledger task's body works in: every word of it ends on disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from engine.records import TaskId, Units
from engine.store.ledger import Ledger
from engine.work.context import Scopes


class TaskContext:
    """What a body is given when it runs as a task; see `work.context.Context` for the rules.

    `nudge` is told after every write, so that this process' own list need not wait for
    the file system to say what it knows already.
    """

    def __init__(
        self,
        ledger: Ledger,
        task_id: TaskId,
        now_ms: Callable[[], int],
        nudge: Callable[[TaskId], None],
    ) -> None:
        self.task_id: str = task_id
        self._id = task_id
        self.units = Units()
        self._ledger = ledger
        self._scopes = Scopes()
        self._order = asyncio.Lock()
        self._now_ms = now_ms
        self._nudge = nudge

    @property
    def stopping(self) -> bool:
        """Has somebody asked the task to stop?"""
        return self._scopes.stopping

    def stop(self) -> None:
        """Ask the body to stop: units in flight end now, what is finished stays."""
        self._scopes.stop()

    def now_ms(self) -> int:
        return self._now_ms()

    def monotonic(self) -> float:
        return time.monotonic()

    def unit(self, label: str, limit_s: float) -> AbstractAsyncContextManager[None]:
        return self._scopes.unit(label, limit_s)

    async def pause(self, seconds: float) -> None:
        await self._scopes.pause(seconds)

    async def page(self, page: Mapping[str, Any], units: Units) -> None:
        """Keep a finished page: `pages.jsonl` first, so that a kill loses none, then the event."""
        async with self._order:  # threads would overtake each other, and progress go back
            self.units = units
            await asyncio.shield(asyncio.to_thread(self._keep, page, units))
        self._nudge(self._id)

    async def log(self, phase: str, note: str, **data: object) -> None:
        await asyncio.to_thread(
            self._ledger.append_event, self.task_id, "log", {"phase": phase, "note": note, **data}
        )

    async def artifact(self, name: str, data: bytes) -> str:
        """Store `data` under the task's `artifacts/`; returns the path inside the task's folder."""
        return await asyncio.to_thread(self._ledger.write_artifact, self.task_id, name, data)

    def _keep(self, page: Mapping[str, Any], units: Units) -> None:
        self._ledger.append_page(self.task_id, dict(page))
        progress: dict[str, Any] = {"unitsDone": units.done, "unitsTotal": units.total}
        if units.failed:
            progress["unitsFailed"] = units.failed
        if units.message:
            progress["message"] = units.message
        self._ledger.append_event(self.task_id, "progress", progress)
