"""The engine: parts on one ledger, built, opened and closed together.

Built for one running asyncio loop; call `open` first, `close` last; nothing blocks the loop.
An engine that does not accept tasks (`accepts=False`) only reads: it takes no lease, reaps
nothing, and writes nothing but a cancel request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from engine.agents.tool_calls import Agents
from engine.browser.chromium.browser_session import BrowserSession, Instances
from engine.browser.recording.live_view import LiveFrame, LiveViews
from engine.contracts.contract_service import Goals
from engine.contracts.run_lifecycle import LinkedRuns, Runs
from engine.execution.executor import Executor
from engine.export.exports import Exports
from engine.kinds.context import Clock
from engine.kinds.registry import import_libraries
from engine.kinds.spec import Tools
from engine.ledger import machine
from engine.ledger.filesystem_checks import Concern, concerns
from engine.ledger.lease import make_root
from engine.model.config import Settings
from engine.model.errors import EngineError, LedgerWriteFailed
from engine.model.records import Health
from engine.results.file_reader import TaskFileReader
from engine.schedules.schedule_store import ScheduleStore
from engine.service.commands import Records, TaskCommands
from engine.service.contracts import ContractService
from engine.service.feed import Batch
from engine.service.maintenance import LedgerContext, LedgerMaintenance, OwnTasks, TaskChanges
from engine.service.pruning import Retention
from engine.service.queries import Past, TaskQueries
from engine.service.requests import TaskRequests
from engine.service.router.ledger_paths import home_of
from engine.service.router.ledger_router import LedgerRouter
from engine.service.schedules import Schedules
from engine.service.start_hold import StartHold

log = logging.getLogger(__name__)

REOPEN_S = 3.0  # interval between attempts to accept tasks in a ledger on a full disk
FIRST_ROWS_S = 0.4  # maximum delay of the first rows by the reaping of orphans


class Engine:
    """Engine of one ledger: one browser, a few slots, and a router to other ledgers.

    `light` is for a window: its list keeps every task, so records omit long values.
    `has_runs` is False if the folder of the ledger's contracts and task runs is unknown.
    """

    _maintenance: LedgerMaintenance

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
        self._clock = clock or Clock()
        self._browser = BrowserSession(settings.browser_path)
        self.agents = Agents(self._browser, allow_private=settings.allow_private)
        self._tools = Tools(settings, self._browser, self.agents.sessions.living)
        self.ledgers = LedgerRouter(settings, partial(_other_engine, settings))
        self.reading = TaskFileReader(root, self.ledgers)
        self.past = Past(root, self.ledgers)
        self.exports = Exports(root, self.ledgers)
        self.retention = Retention(root)
        self.own = own = OwnTasks()
        self.goals = Goals(home, lambda: self._maintenance.ledger)
        self.runs = Runs(home, route=settings.route, agent_id=settings.agent_id)
        linked = LinkedRuns(self.runs, home, root)
        linked.runs_here = own.owns
        # An engine without a home keeps nothing outside its ledger: the program that owns the
        # runs, in any folder, moves them next to their tasks.
        schedule_store = ScheduleStore(root)
        shelves = (*self.goals.folders, self.runs.folder, schedule_store.folder)
        self._maintenance = maintenance = LedgerMaintenance(
            root, settings.reap_s, linked if has_runs else None, shelves
        )
        context = LedgerContext(
            settings, maintenance, own, self.goals, self.runs, linked, self.ledgers
        )
        self.tasks = TaskQueries(context, light=light)
        changes = TaskChanges(own, self.tasks.nudge)
        self.contracts = ContractService(context, self.tasks, changes)
        self.commands = TaskCommands(context, self.tasks, self.contracts, changes)
        self.requests = TaskRequests(
            context, self.tasks, self.contracts, self.reading, self._tools, self._clock
        )
        self.schedules = Schedules(
            context, schedule_store, self.tasks, self.requests, self._tools, self._clock
        )
        self.start_hold = StartHold(context, self.tasks.call)
        maintenance.known_ended = self.tasks.known_ended
        maintenance.runs = own.run_of
        maintenance.settle_lost = self.commands.settle_lost
        self._warming: asyncio.Task[None] | None = None
        self._reopening: asyncio.Task[None] | None = None
        self._state = "idle"
        self.reaped: Records = []  # orphans that `open` ended
        self.concerns: tuple[Concern, ...] = ()  # risks to this ledger, as of `open`

    async def open(self, *, list_first: bool = False) -> None:
        """Take a lease, then sweep and reap before tasks are accepted.

        With `list_first` a list does not wait for the reaping of a large ledger, or of many
        orphans: it continues in the background, and only the first start waits for it.
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
        self._make_executor()
        if isinstance(self._maintenance.refusal, LedgerWriteFailed):
            self._reopening = asyncio.create_task(self._reopen(), name="wait for room")
        self._state = "ready"

    async def _reopen(self) -> None:
        """Accept tasks in a ledger whose disk was full, once it has space."""
        while self._maintenance.refusal is not None:
            await asyncio.sleep(REOPEN_S)
            with suppress(EngineError):
                await self._maintenance.open(only_look=True)
        self._make_executor()
        self.agents.count_in(self.contracts.envelopes, self.tasks.nudge)
        self.tasks.call()  # readers of the live list read `health`

    async def _reap(self, list_first: bool) -> None:
        if self._maintenance.read_only or (list_first and await self._maintenance.has_many()):
            return
        if list_first:
            self.reaped = await self._maintenance.reap_within(FIRST_ROWS_S)
        else:
            self.reaped = await self._maintenance.reap()

    def _make_executor(self) -> None:
        self.own.executor = Executor(
            self._maintenance.ledger, self._tools, self._clock, self.tasks.nudge
        )

    async def close(self, grace_s: float = 5.0) -> None:
        """Cancel running tasks, wait until they have ended, and close the browser.

        Takes at most about `grace_s` seconds; idempotent.
        """
        await self.schedules.close()
        await self.ledgers.close()
        self._state = "closing"
        self.requests.close()
        await self.start_hold.close()
        for waiting in filter(None, (self._warming, self._reopening)):
            waiting.cancel()
            await asyncio.wait({waiting})
        await self.own.close(self.commands.cancel, grace_s)
        await self.tasks.close()
        await self.contracts.close()
        await self.agents.close()
        await self._tools.instances.aclose()
        await self._browser.aclose()
        await self._maintenance.close()

    @property
    def instances(self) -> Instances:
        """The living browser instances of this process."""
        return self._tools.instances

    @property
    def live_views(self) -> LiveViews:
        """Live screenshots of the browsers of this engine's running tasks."""
        return self._browser.live_views

    async def allow(self, private: Iterable[str], secrets: Iterable[str]) -> None:
        """Replace the operator's lists of what requests over MCP and HTTP may reach.

        Tasks that run, and browsers that command tasks keep open, keep the lists of their start.

        Args:
            private: `host:port`, as `Settings.allow_private`.
            secrets: names of environment variables, as `Settings.allow_secrets`.
        """
        private = tuple(private)
        self._tools.allow(private, secrets)
        self.settings = self._tools.settings
        await self.agents.allow(private)

    async def use_browser(self, path: str | None) -> None:
        """Use another browser from now on, without a restart; None searches for one.

        Running tasks keep the browser that they have.
        """
        self._tools.use_browser(path)
        self.settings = self._tools.settings
        await self.warm()

    async def warm(self) -> None:
        """Start the browser in advance, so that no task waits; `health` shows a missing one."""
        if self._warming is None or self._warming.done():  # a browser may be installed since
            self._warming = asyncio.create_task(self._warm(), name="warm the browser")
        await asyncio.shield(self._warming)

    def health(self) -> Health:
        """Return the status bar's state immediately, from memory."""
        state, name, reason = self._browser.status()
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
            warnings=(*trouble, *filter(None, [self.runs.notice])),
            concerns=tuple(map(str, self.concerns)),
            deaf=watch.lasting_fault if watch else "",
            away=executor.is_waiting if executor else False,
            hold=self.start_hold.state,
            ends_after_running=self.start_hold.is_closed_to_starts,
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

    async def _warm(self) -> None:
        await asyncio.to_thread(import_libraries)
        try:
            await self._browser.warm()
        except EngineError as error:
            log.info("the browser is not warm: %s", error)


def _other_engine(own: Settings, root: Path) -> Engine:
    """Build an engine for another ledger: it reads and changes tasks, starts and reaps nothing."""
    home = home_of(root, own.home)
    settings = replace(own, root=root, home=home or root, environ={})
    return Engine(settings, accepts=False, light=True, has_runs=home is not None)


__all__ = ["Batch", "Engine", "LiveFrame"]
