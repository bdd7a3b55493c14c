"""The engine: parts on one ledger, built, opened and closed together.

Built for one running asyncio loop; call `open` first, `close` last; nothing blocks the loop.
An engine that does not accept tasks (`accepts=False`) only reads: it takes no lease, reaps
nothing, and writes nothing but a cancel request. The hold on new starts is a part of each engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.ledger import machine
from engine.ledger.filesystem_checks import Concern, concerns
from engine.ledger.hold import hold_starts, read_hold, release_starts, release_tasks
from engine.ledger.lease import make_root
from engine.ledger.routing import routed
from engine.model.cluster_workers import WorkerView
from engine.model.config import Settings
from engine.model.errors import EngineError, LedgerWriteFailed, TaskUnreadable
from engine.model.records import (
    CONTRACTS_FOLDER,
    PROFILES_FOLDER,
    RUNS_FOLDER,
    SCHEDULES_FOLDER,
    TASK_RUNS_FOLDER,
    Health,
    Hold,
    Status,
    TaskRecord,
    Unreadable,
)
from engine.service.feed import Batch
from engine.service.maintenance import LedgerContext, LedgerMaintenance, OwnTasks, TaskChanges
from engine.service.queries import Past, TaskQueries
from engine.service.router.ledger_paths import home_of
from engine.service.router.ledger_router import LedgerRouter

if TYPE_CHECKING:
    from engine.agents.tool_calls import Agents
    from engine.browser.chromium.browser_session import Instances
    from engine.browser.recording.live_view import LiveFrame as LiveFrame
    from engine.browser.recording.live_view import LiveViews
    from engine.contracts.contract_service import Goals
    from engine.contracts.home_records import HomeRecords
    from engine.contracts.run_lifecycle import Runs
    from engine.export.exports import Exports
    from engine.kinds.context import Clock
    from engine.results.file_reader import TaskFileReader
    from engine.service.commands import TaskCommands
    from engine.service.contracts import ContractService
    from engine.service.profiles import Profiles
    from engine.service.pruning import Retention
    from engine.service.requests import TaskRequests
    from engine.service.running_parts import RunningParts
    from engine.service.schedules import Schedules

REOPEN_S = 3.0  # interval between attempts to accept tasks in a ledger on a full disk
FIRST_ROWS_S = 0.4  # maximum delay of the first rows by the reaping of orphans
HOLD_LOOK_S: Final = 1.0  # as often as the window reads `health`
_PROGRAMS: Final = {None: "window", "cli": "octask"}


class Engine:
    """Engine of one ledger: one browser, a few slots, and a router to other ledgers.

    An engine that accepts no tasks makes the parts that run or change them on first use.
    `light` is for a window: its list keeps every task, so records omit long values.
    `has_runs` is False if the folder of the ledger's contracts and task runs is unknown.
    """

    _maintenance: LedgerMaintenance
    _context: LedgerContext

    def __init__(
        self,
        settings: Settings,
        *,
        accepts: bool,
        clock: Clock | None = None,
        light: bool = False,
        has_runs: bool = True,
    ) -> None:
        self.settings = settings
        self.accepts = accepts
        self.has_runs = has_runs
        root, home = settings.root, settings.home
        self.ledgers = LedgerRouter(settings, partial(_other_engine, settings))
        self.past = Past(root, self.ledgers)
        self.own = own = OwnTasks()
        # An engine without a home keeps nothing outside its ledger: the program that owns the
        # runs, in any folder, moves them next to their tasks.
        stores = (home / CONTRACTS_FOLDER, home / TASK_RUNS_FOLDER, home / RUNS_FOLDER)
        self._maintenance = maintenance = LedgerMaintenance(
            root,
            settings.reap_s,
            (lambda: self._context.linked) if has_runs else None,
            (*stores, root / SCHEDULES_FOLDER, home / PROFILES_FOLDER),
        )
        self._records: HomeRecords | None = None
        self._context = context = LedgerContext(
            settings, maintenance, own, self._home_records, self.ledgers
        )
        self.tasks = TaskQueries(context, light=light)
        self._changes = TaskChanges(own, self.tasks.nudge)
        self._contracts: ContractService | None = None
        self.start_hold = StartHold(context, self.tasks.call)
        maintenance.known_ended = self.tasks.known_ended
        maintenance.runs = own.run_of
        self._warming: asyncio.Task[None] | None = None
        self._reopening: asyncio.Task[None] | None = None
        self._state = "idle"
        self._clock = clock
        self._made: RunningParts | None = None
        if accepts:
            self._made = self._make_parts()
        self.reaped: list[TaskRecord] = []  # orphans that `open` ended
        self.concerns: tuple[Concern, ...] = ()  # risks to this ledger, as of `open`

    async def open(self, *, list_first: bool = False) -> None:
        """Take a lease, then remove stale files and reap before tasks are accepted.

        With `list_first` a list does not wait for the reaping of a large ledger, or of many
        orphans: it continues in the background, and only the first start waits for it. Stale
        files are then removed after it.
        A read-only ledger opens for reading only (see `health`). With `list_first` so does one on
        a full disk, until there is space.

        Raises:
            LedgerUnusable: the root is no folder, or cannot be read or created.
            LedgerWriteFailed: the disk is full, so that no task can be accepted.
        """
        if self.accepts:
            await self._maintenance.open(only_look=list_first)
            await self._reap(list_first)
            self.agents.count_in(self.contracts.envelopes, self.tasks.nudge)
            self.start_hold.follow()
        self.concerns = await asyncio.to_thread(concerns, self.settings.root, self.settings.home)
        if self.accepts:
            self.own.executor = self._parts.executor()
        if isinstance(self._maintenance.refusal, LedgerWriteFailed):
            self._reopening = asyncio.create_task(self._reopen(), name="wait for room")
        self._state = "ready"

    async def _reopen(self) -> None:
        """Accept tasks in a ledger whose disk was full, once it has space."""
        while self._maintenance.refusal is not None:
            await asyncio.sleep(REOPEN_S)
            with suppress(EngineError):
                await self._maintenance.open(only_look=True)
        self.own.executor = self._parts.executor()
        self.agents.count_in(self.contracts.envelopes, self.tasks.nudge)
        self.tasks.call()  # readers of the live list read `health`

    async def _reap(self, list_first: bool) -> None:
        if self._maintenance.read_only or (list_first and await self._maintenance.has_many()):
            return
        if list_first:
            self.reaped = await self._maintenance.reap_within(FIRST_ROWS_S)
        else:
            await self._maintenance.tidy_after_death()
            self.reaped = await self._maintenance.reap()

    @property
    def _parts(self) -> RunningParts:
        if self._made is None:
            self._made = self._make_parts()
            self.own.executor = self._made.executor()
        return self._made

    def _make_parts(self) -> RunningParts:
        # It imports every kind and the browser's session, which `octask list` must not pay for.
        from engine.service.running_parts import RunningParts

        return RunningParts(self._context, self.tasks, self.contracts, self._changes, self._clock)

    async def close(self, grace_s: float = 5.0) -> None:
        """Cancel running tasks, wait until they have ended, and close the browser.

        Takes at most about `grace_s` seconds; idempotent.
        """
        made = self._made
        if made is not None:
            await made.schedules.close()
        await self.ledgers.close()
        self._state = "closing"
        if made is not None:
            made.requests.close()
        await self.start_hold.close()
        for waiting in filter(None, (self._warming, self._reopening)):
            waiting.cancel()
            await asyncio.wait({waiting})
        if made is not None:
            await self.own.close(made.commands.cancel, grace_s)
        await self.tasks.close()
        if self._contracts is not None:
            await self._contracts.close()
        if made is not None:
            await made.close()
        await self._maintenance.close()

    def _home_records(self) -> HomeRecords:
        if self._records is None:
            from engine.contracts.home_records import HomeRecords  # as above: no list reads them

            self._records = HomeRecords(
                self.settings, lambda: self._maintenance.ledger, self.own.owns
            )
        return self._records

    @property
    def goals(self) -> Goals:
        """Contracts and task runs of the home."""
        return self._home_records().goals

    @property
    def runs(self) -> Runs:
        """Records of runs of the home."""
        return self._home_records().runs

    @property
    def notice(self) -> str:
        """The reason why records of runs are in memory only; empty while they are on disk."""
        return "" if self._records is None else self._records.runs.notice

    @property
    def contracts(self) -> ContractService:
        """Contracts, task runs and envelopes."""
        if self._contracts is None:
            from engine.service.contracts import ContractService  # as above

            self._contracts = ContractService(self._context, self.tasks, self._changes)
        return self._contracts

    @property
    def agents(self) -> Agents:
        """The browser tools of host agents."""
        return self._parts.agents

    @property
    def commands(self) -> TaskCommands:
        """Stop, remove and reap tasks."""
        return self._parts.commands

    @property
    def exports(self) -> Exports:
        """Exports of results."""
        return self._parts.exports

    @property
    def profiles(self) -> Profiles:
        """Named sign-ins of sites."""
        return self._parts.profiles

    @property
    def reading(self) -> TaskFileReader:
        """Units and files of tasks."""
        return self._parts.reading

    @property
    def requests(self) -> TaskRequests:
        """Start tasks, and start them again."""
        return self._parts.requests

    @property
    def retention(self) -> Retention:
        """Removal of old tasks."""
        return self._parts.retention

    @property
    def schedules(self) -> Schedules:
        """Tasks that repeat."""
        return self._parts.schedules

    @property
    def instances(self) -> Instances:
        """The living browser instances of this process."""
        return self._parts.tools.instances

    @property
    def live_views(self) -> LiveViews:
        """Live screenshots of the browsers of this engine's running tasks."""
        return self._parts.browser.live_views

    def cluster_workers(self) -> tuple[WorkerView, ...] | None:
        """Return the workers of the clusters that running tasks use, immediately, from memory.

        None: no task uses a cluster.
        """
        return None if self._made is None else self._made.tools.clusters.workers()

    async def allow(self, private: Iterable[str], secrets: Iterable[str]) -> None:
        """Replace the operator's lists of what requests over MCP and HTTP may reach.

        Tasks that run, and browsers that command tasks keep open, keep the lists of their start.

        Args:
            private: `host:port`, as `Settings.allow_private`.
            secrets: names of environment variables, as `Settings.allow_secrets`.
        """
        private = tuple(private)
        self._parts.tools.allow(private, secrets)
        self.settings = self._parts.tools.settings
        await self.agents.allow(private)

    async def use_browser(self, path: str | None) -> None:
        """Use another browser from now on, without a restart; None searches for one.

        Running tasks keep the browser that they have.
        """
        self._parts.tools.use_browser(path)
        self.settings = self._parts.tools.settings
        await self.warm()

    async def warm(self) -> None:
        """Start the browser in advance, so that no task waits; `health` shows a missing one."""
        if self._warming is None or self._warming.done():  # a browser may be installed since
            self._warming = asyncio.create_task(self._parts.warm(), name="warm the browser")
        await asyncio.shield(self._warming)

    def health(self) -> Health:
        """Return the status bar's state immediately, from memory."""
        browser = self._made.browser.status() if self._made is not None else ("idle", "", "")
        state, name, reason = browser
        watch, executor = self.tasks.watch, self.own.executor
        trouble = (executor.trouble,) if executor and executor.trouble else ()
        return Health(
            root=str(self.settings.root),
            engine=self._state,
            browser=state,
            browser_name=name,
            browser_reason=reason,
            watcher=watch.state if watch else "live",
            watcher_reason=watch.reason if watch else "",
            running=executor.running if executor else 0,
            queued=executor.queued if executor else 0,
            slots=self.settings.slots,
            read_only=self._maintenance.read_only,
            no_room=isinstance(self._maintenance.refusal, LedgerWriteFailed),
            warnings=(*trouble, *filter(None, [self.notice])),
            concerns=tuple(map(str, self.concerns)),
            deaf=watch.lasting_fault if watch else "",
            away=executor.is_waiting if executor else False,
            hold=self.start_hold.state,
            ends_after_running=self.start_hold.is_closed_to_starts,
            stuck_schedules=self._made.schedules.stuck if self._made is not None else (),
        )

    async def create_root(self) -> None:
        """Create the ledger's folder again, where it was removed.

        Raises:
            LedgerUnusable, LedgerReadOnly, LedgerWriteFailed.
        """
        await asyncio.to_thread(make_root, self.settings.root)
        self.tasks.rescan()

    async def memory_bytes(self) -> int:
        """Return the memory of this process and of its browsers."""
        return await asyncio.to_thread(machine.memory_bytes)


def _other_engine(own: Settings, root: Path) -> Engine:
    """Build an engine for another ledger: it reads and changes tasks, starts and reaps nothing."""
    home = home_of(root, own.home)
    settings = replace(own, root=root, home=home or root, environ={})
    return Engine(settings, accepts=False, light=True, has_runs=home is not None)


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
            await asyncio.sleep(HOLD_LOOK_S)

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


__all__ = ["Batch", "Engine"]
