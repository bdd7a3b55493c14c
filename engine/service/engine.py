"""The facade: every verb that a face offers, on one ledger. Nothing here blocks the loop.

Built for one running asyncio loop; `open` first, `close` last. An engine that does not
accept tasks (`accepts=False`) only looks: it takes no lease, reaps nothing, writes nothing
but a cancel request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from engine.agents import Agents
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.chromium.instances import Instances
from engine.browser.recording.live_view import LiveFrame, LiveViews
from engine.execution.budget_observer import BudgetObserver
from engine.execution.executor import Executor
from engine.execution.runner import Job
from engine.execution.task_observer import TaskObserver
from engine.kinds.context import Clock
from engine.kinds.registry import import_libraries
from engine.kinds.spec import Tools
from engine.ledger.filesystem_checks import Concern, concerns
from engine.model.config import Settings
from engine.model.errors import (
    EngineError,
    InvalidArguments,
    LedgerReadOnly,
    LedgerWriteFailed,
    Problem,
    ShuttingDown,
    TaskUnreadable,
)
from engine.model.kind_traits import traits_of
from engine.model.records import ENVELOPE, Health, TaskId, TaskRecord, TaskView, Unreadable
from engine.results.units import Unit, UnitState
from engine.service import rerun
from engine.service.admission import (
    NO_TERMS,
    Request,
    Terms,
    admit,
    check_envelope,
    engine_fields,
    opening_fields,
    run_facts,
)
from engine.service.commands import Records, Steering
from engine.service.feed import Batch
from engine.service.retry_failed import (
    NotEnded,
    Remainder,
    failed_urls,
    remaining_commands,
    remaining_pages,
    web_pages,
)

log = logging.getLogger(__name__)

REOPEN_S = 3.0  # between two tries to take tasks in a ledger without room
FIRST_ROWS_S = 0.4  # so long the first rows wait for the reaping of orphans
Views = list[TaskView]  # named, because inside the class `list` is the verb


class Engine(Steering):
    """One ledger, one browser, a few slots; see the module."""

    def __init__(self, settings: Settings, *, accepts: bool, clock: Clock | None = None) -> None:
        super().__init__(settings)
        self.accepts = accepts
        self._clock = clock or Clock()
        self._browser = BrowserSession(settings.browser_path)
        self.agents = Agents(self._browser, allow_private=settings.allow_private)
        self._tools = Tools(settings, self._browser, self.agents.sessions.living)
        self._warming: asyncio.Task[None] | None = None
        self._reopening: asyncio.Task[None] | None = None
        self._state = "idle"
        self.reaped: Records = []  # what `open` ended of dead processes
        self.concerns: tuple[Concern, ...] = ()  # what makes this ledger less safe, as of `open`

    async def open(self, *, list_first: bool = False) -> None:
        """Make ready: take a lease, sweep and reap before anything is accepted.

        With `list_first` a list need not wait for the reaping of a large ledger, or of many
        orphans: it goes on beside it, and only the first start waits for it.
        A ledger that cannot be written opens read-only (see `health`); looking still works. With
        `list_first` so does one without room, until there is some.

        Raises:
            LedgerUnusable: the root is no folder, or cannot be read or made.
            LedgerWriteFailed: there is no room to take tasks (a full disk).
        """
        if self.accepts:
            self._ledger = await self._keeper.open(only_look=list_first)
            await self._reap(list_first)
            self.agents.count_in(self.envelopes, self._nudge)
        self.concerns = await asyncio.to_thread(concerns, self.settings.root, self.settings.home)
        self._executor = Executor(self._ledger, self._tools, self._clock, self._nudge)
        if isinstance(self._keeper.refusal, LedgerWriteFailed):
            self._reopening = asyncio.create_task(self._reopen(), name="wait for room")
        self._state = "ready"

    async def _reopen(self) -> None:
        """Take tasks in a ledger that had no room for them, once it has."""
        while self._keeper.refusal is not None:
            await asyncio.sleep(REOPEN_S)
            with suppress(EngineError):
                self._ledger = await self._keeper.open(only_look=True)
        self._executor = Executor(self._ledger, self._tools, self._clock, self._nudge)
        self.agents.count_in(self.envelopes, self._nudge)
        for feed in self._feeds:
            feed.call()  # its reader looks at `health`

    async def _reap(self, list_first: bool) -> None:
        if self._keeper.read_only or (list_first and await self._keeper.has_many()):
            return
        if list_first:
            self.reaped = await self._keeper.reap_within(FIRST_ROWS_S)
        else:
            self.reaped = await self._keeper.reap()

    async def close(self, grace_s: float = 5.0) -> None:
        """Ask what runs to stop, wait until it is settled, and end the browser.

        At most about `grace_s` seconds; harmless when called twice.
        """
        self._state = "closing"
        for waiting in filter(None, (self._warming, self._reopening)):
            waiting.cancel()
            await asyncio.wait({waiting})
        if self._accepting:  # each ends its task, since the engine takes none any more
            await asyncio.wait(self._accepting, timeout=grace_s)
        if self._executor is not None:
            await self._stop_work(self._executor, grace_s)
        for feed in tuple(self._feeds):
            await feed.close()
        for goals in tuple(self._goal_feeds):
            await goals.close()
        await self.agents.close()
        await self._tools.instances.aclose()
        await self._browser.aclose()
        await self._keeper.close()

    async def start(
        self,
        kind: str,
        args: Mapping[str, Any],
        *,
        name: str | None = None,
        parent: str | None = None,
        terms: Terms = NO_TERMS,
    ) -> TaskRecord:
        """Accept a task: PENDING on disk, in the queue, before this returns.

        Raises:
            InvalidArguments: with every mistake; nothing was written.
            LedgerReadOnly, LedgerWriteFailed: it could not be written down, so it does not run.
            ShuttingDown: the engine is closing.
        """
        if kind == ENVELOPE:
            return await self._open_envelope(args, name, parent, terms)
        request = admit(kind, args, name, terms, self._tools)
        self._check_open()
        # Shielded: of a caller that goes away meanwhile no task may stay that nobody runs.
        accepting = asyncio.create_task(self._accept(request, parent))
        self._accepting.add(accepting)
        accepting.add_done_callback(self._accepted)
        return await asyncio.shield(accepting)

    def _accepted(self, accepting: asyncio.Task[TaskRecord]) -> None:
        self._accepting.discard(accepting)
        if not accepting.cancelled():
            accepting.exception()  # the caller has it; one that went away does not want it

    async def asked(self, task_id: str, variables: Mapping[str, Any] | None = None) -> rerun.Asked:
        """What the task was asked to do, to `start` it once more.

        Args:
            variables: values for the variables of a command task; they are kept nowhere.

        Raises:
            CannotRepeat: it is not known whole; one class for each reason.
            InvalidArguments: variables were given for a task that has none.
            NotATaskId, TaskNotFound, TaskUnreadable.
        """
        record = (await self.get(task_id)).entry
        if isinstance(record, Unreadable):
            raise TaskUnreadable(task_id=task_id, reason=record.reason, path=record.path)
        link = record.engine.contract_id if record.engine is not None else None
        contract = await asyncio.to_thread(self.goals.terms_of, link) if link else None
        return rerun.asked(record, contract, variables)

    async def rerun(self, task_id: str, variables: Mapping[str, Any] | None = None) -> TaskRecord:
        """Start the same request as a new task, which names this one as its parent.

        Raises:
            CannotRepeat, and whatever `start` raises.
        """
        one = await self.asked(task_id, variables)
        parent = await self.ledger_id(task_id)
        return await self.start(one.kind, one.args, name=one.name, parent=parent, terms=one.terms)

    async def remainder(
        self, task_id: str, variables: Mapping[str, Any] | None = None
    ) -> Remainder:
        """What of an ended task failed, or its contract misses, as a request that could be started.

        Commands that lack variables, or what they type, come with a `refusal`.

        Raises:
            CannotRepeat: its request is not known whole.
            NotEnded: it may still come to these pages by itself.
            NotATaskId, TaskNotFound, TaskUnreadable.
        """
        record = (await self.get(task_id)).entry
        if isinstance(record, TaskRecord) and record.kind == rerun.COMMANDS:
            return await self._remaining_commands(task_id, record, variables)
        asked = await self.asked(task_id, variables)
        if isinstance(record, TaskRecord) and not record.is_terminal:
            raise NotEnded(task_id=task_id)
        if not traits_of(asked.kind).crawls:
            return Remainder(task_id, asked.kind)
        units: list[Unit] = []
        async for part in self.reading.units(task_id):
            units += [unit for unit in part.units if unit.state == UnitState.FAILED]
        urls = failed_urls(units)
        if isinstance(record, TaskRecord) and record.engine and record.engine.contract_id:
            contract = await self.contract(record.engine.contract_id)
            urls = web_pages([*urls, *contract.missing])
        return remaining_pages(task_id, asked, urls)

    async def _remaining_commands(
        self, task_id: str, record: TaskRecord, variables: Mapping[str, Any] | None
    ) -> Remainder:
        if not record.is_terminal:
            raise NotEnded(task_id=task_id)
        task = await self.command_task(task_id, results=False) or {}
        states = [one.get("status") for one in task.get("commands", ())]
        left = remaining_commands(rerun.recorded(record), states)
        if left is None:
            return Remainder(task_id, record.kind)
        found = Remainder(task_id, record.kind, left, states.count("error"), 1)
        try:
            return replace(found, request=rerun.completed(record, left, variables, "retry"))
        except rerun.CannotRepeat as refusal:
            return replace(found, request=rerun.to_complete(left), refusal=refusal)

    async def retry(self, task_id: str, variables: Mapping[str, Any] | None = None) -> TaskRecord:
        """Start a new task over what failed in this one, which it names as its parent.

        Raises:
            NothingToRetry, and whatever `remainder` and `start` raise.
        """
        request = (await self.remainder(task_id, variables)).whole
        return await self.start(
            request.kind,
            request.args,
            name=request.name,
            parent=await self.ledger_id(task_id),
            terms=request.terms,
        )

    @staticmethod
    def problems(
        kind: str, args: Mapping[str, Any], name: str | None = None, terms: Terms = NO_TERMS
    ) -> tuple[Problem, ...]:
        """What `start` would refuse in this request; nothing is started."""
        try:
            admit(kind, args, name, terms) if kind != ENVELOPE else check_envelope(
                args, name, terms
            )
        except InvalidArguments as error:
            return error.problems
        return ()

    @property
    def instances(self) -> Instances:
        """The living browser instances of this process."""
        return self._tools.instances

    @property
    def live_views(self) -> LiveViews:
        """What the browsers of this engine's running tasks show, for who looks on."""
        return self._browser.live_views

    async def warm(self) -> None:
        """Start the browser now, so that no task need wait; lack of one shows in `health`."""
        if self._warming is None or self._warming.done():  # a browser may be there by now
            self._warming = asyncio.create_task(self._warm(), name="warm the browser")
        await asyncio.shield(self._warming)

    def health(self) -> Health:
        """What the status bar says, at once and from memory."""
        state, name, reason = self._browser.status()
        watch, executor = self._watch(), self._executor
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
            read_only=self._keeper.read_only,
            no_room=isinstance(self._keeper.refusal, LedgerWriteFailed),
            warnings=(*trouble, *filter(None, [self.runs.notice])),
            concerns=tuple(map(str, self.concerns)),
            deaf=watch.lasting_fault if watch else "",
            away=executor.is_waiting if executor else False,
        )

    def _check_open(self) -> None:
        """Raise unless new tasks are accepted now."""
        if self._executor is None or self._state == "closing":
            raise ShuttingDown()
        if self._keeper.lease is None:
            raise self._keeper.refusal or LedgerReadOnly(path=str(self.settings.root))

    async def _open_envelope(
        self, args: Mapping[str, Any], name: str | None, parent: str | None, terms: Terms
    ) -> TaskRecord:
        """A `browser_task`: RUNNING at once; a host drives it from outside."""
        request = check_envelope(args, name, terms)
        await self._keeper.reap_first()
        self._check_open()
        fields = engine_fields(terms, name, parent, self.runs.new_id())

        def create(contract_id: str | None) -> TaskRecord:
            linked = msgspec.structs.replace(fields, contract_id=contract_id)
            return self.envelopes.start(request, linked)

        contract, run_id = terms.contract, terms.task_run_id
        record = await asyncio.to_thread(self.goals.accept, ENVELOPE, contract, run_id, create)
        await asyncio.to_thread(self._linked.accept, record, run_facts(terms))
        self._nudge(TaskId(record.task_id))
        return record

    async def _accept(self, request: Request, parent: str | None) -> TaskRecord:
        """Write the task down, and queue it."""
        await self._keeper.reap_first()
        self._check_open()
        record = await asyncio.to_thread(self._create, request, parent)
        task_id, terms = TaskId(record.task_id), request.terms
        observers = self._observers(record, terms)
        job = Job(task_id, request.kind, request.parsed, observers, terms.policy or {})
        try:
            self._check_open()
            assert self._executor is not None
            self._executor.submit(job)
        except EngineError:  # refused after all: it must not look as if it had been lost
            await asyncio.to_thread(self._ledger.request_cancel, job.task_id)
            raise
        self._nudge(job.task_id)
        return record

    def _observers(self, record: TaskRecord, terms: Terms) -> tuple[TaskObserver, ...]:
        """What goes along with the task: its budgets and its contract, if it has any."""
        found: list[TaskObserver] = []
        if terms.policy:
            meter = partial(
                BudgetObserver, now_ms=self._clock.now_ms, monotonic=self._clock.monotonic
            )
            found.append(meter(self._ledger, record.task_id, terms.enforce))
        if record.engine is not None and record.engine.contract_id is not None:
            found.append(self.goals.companion(record.engine.contract_id, record.task_id))
        return tuple(found)

    def _create(self, request: Request, parent: str | None) -> TaskRecord:
        terms, placing = request.terms, request.kind.place(request.parsed, request.args)
        scrub = request.kind.scrub(request.parsed)
        given, name = scrub.ours(placing.args), request.name or placing.name
        fields = msgspec.structs.replace(
            engine_fields(terms, scrub.hide(name) if name else name, parent, self.runs.new_id()),
            command_task_id=placing.command_task_id,
            metadata=placing.metadata if terms.metadata is None else terms.metadata,
            withheld=placing.withheld or given != placing.args,
        )

        def create(contract_id: str | None) -> TaskRecord:
            linked = msgspec.structs.replace(fields, contract_id=contract_id)
            return self._ledger.create(
                kind, given, engine=linked, fields=opening, documents=placing.documents
            )

        kind, opening = request.kind.name, scrub.ours(opening_fields(terms))
        record = self.goals.accept(kind, terms.contract, terms.task_run_id, create)
        self._linked.accept(record, run_facts(terms))
        if placing.command_task_id:
            self._aliases.add(placing.command_task_id, record.task_id)
        return record

    async def _warm(self) -> None:
        await asyncio.to_thread(import_libraries)
        try:
            await self._browser.warm()
        except EngineError as error:
            log.info("the browser is not warm: %s", error)


__all__ = ["Batch", "Engine", "LiveFrame"]
