"""The hold on new starts of a ledger: set, release, and follow what other programs do with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from engine.ledger import machine
from engine.ledger.hold import hold_starts, read_hold, release_starts, release_tasks
from engine.ledger.routing import routed
from engine.model.errors import EngineError, TaskUnreadable
from engine.model.records import Hold, Status, TaskRecord, Unreadable

if TYPE_CHECKING:
    from engine.service.maintenance import LedgerContext

LOOK_S: Final = 1.0  # as often as the window reads `health`
_PROGRAMS: Final = {None: "window", "cli": "octask"}


class NotWaiting(EngineError):
    """The task does not wait to be started, so a hold does not keep it."""

    code = "not_waiting"
    title = "It does not wait"
    sentence = "Task {task_id} does not wait to be started: it is {status}."
    advice_text = "Choose a task that is PENDING."


class StartHold:
    """Hold new starts in every program that works on the ledger; running tasks go on.

    `close_to_starts` does the same for this program alone, and leaves no trace on disk.
    """

    part_name = "start_hold"

    def __init__(self, context: LedgerContext, report_change: Callable[[], object]) -> None:
        self.router = context.router
        self._context = context
        self._report_change = report_change
        self._state: Hold | None = None
        self._following: asyncio.Task[None] | None = None

    @property
    def state(self) -> Hold | None:
        """The hold as last read by `follow`, `read` or a change, immediately and from memory."""
        return self._state

    @property
    def is_closed_to_starts(self) -> bool:
        """Whether this program starts none of its own waiting tasks."""
        executor = self._context.own.executor
        return executor is not None and executor.starts.is_closed_to_starts

    def follow(self) -> None:
        """Keep `state` up to date until `close`."""
        if self._following is None:
            self._following = asyncio.create_task(self._follow(), name="follow the hold")

    async def read(self) -> Hold | None:
        """Read the hold from disk."""
        root = self._context.ledger.root
        return self._show(await asyncio.to_thread(read_hold, root, (), self._state))

    async def hold(
        self, reason: str = "", *, client: str | None = None, route: str | None = None
    ) -> Hold:
        """Keep waiting tasks of all programs in the queue; an earlier hold stays as it is.

        Raises:
            LockTimeout, LedgerReadOnly, LedgerWriteFailed, LedgerUnusable.
        """
        ledger, by = self._context.ledger, self._author(client, route)
        now_ms = machine.wall_ms()
        work = partial(hold_starts, ledger.root, by, now_ms, reason=reason, lease=ledger.lease)
        made = await asyncio.to_thread(work)
        self._show(made)
        return made

    async def release(self) -> Hold | None:
        """Let waiting tasks start again; return the hold that ended. Raises as `hold`."""
        ledger = self._context.ledger
        ended = await asyncio.to_thread(partial(release_starts, ledger.root, lease=ledger.lease))
        self._show(None)
        return ended

    @routed("write")
    async def start_anyway(self, task_id: str) -> TaskRecord:
        """Let one waiting task start as soon as its program has a free slot.

        Raises:
            NotWaiting: it is not PENDING.
            NotATaskId, TaskNotFound, TaskUnreadable, and as `hold`.
        """
        ledger = self._context.ledger

        def allow() -> tuple[TaskRecord, Hold | None]:
            record = ledger.read(task_id)
            if isinstance(record, Unreadable):
                raise TaskUnreadable(task_id=task_id, reason=record.reason, path=record.path)
            if record.status != Status.PENDING:
                raise NotWaiting(task_id=task_id, status=record.status)
            return record, release_tasks(ledger.root, [task_id], lease=ledger.lease)

        record, hold = await asyncio.to_thread(allow)
        self._show(hold)
        return record

    def close_to_starts(self, closed: bool) -> None:
        """Start no waiting task of this program, or start them again."""
        if (executor := self._context.own.executor) is not None:
            executor.starts.close_to_starts(closed)
            self._report_change()

    async def close(self) -> None:
        """Stop following."""
        following, self._following = self._following, None
        if following is not None:
            following.cancel()
            await asyncio.wait({following})

    async def _follow(self) -> None:
        while True:
            await self.read()
            await asyncio.sleep(LOOK_S)

    def _author(self, client: str | None, route: str | None) -> str:
        route = route if route is not None else self._context.settings.route
        program = _PROGRAMS.get(route, route or "")
        program += f": {client}" if client else ""
        return f"{machine.user()}@{machine.host()} ({program})".removeprefix("@")

    def _show(self, hold: Hold | None) -> Hold | None:
        if hold != self._state:
            self._state = hold
            if (executor := self._context.own.executor) is not None:
                executor.starts.look()
            self._report_change()
        return hold
