"""Requests for tasks: start a task, rerun it, or retry its failed parts."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import msgspec

from engine.execution.runner import Job
from engine.execution.task_context import BudgetObserver, TaskObserver
from engine.kinds.context import Clock
from engine.kinds.registry import KINDS
from engine.kinds.spec import Tools
from engine.ledger.routing import routed
from engine.model.errors import (
    EngineError,
    InvalidArguments,
    LedgerReadOnly,
    Problem,
    ShuttingDown,
    TaskNotFound,
    TaskUnreadable,
)
from engine.model.kind_traits import traits_of
from engine.model.ledger_ids import SIGN
from engine.model.records import (
    ENVELOPE,
    PAGES_NAME,
    TaskId,
    TaskRecord,
    Unreadable,
)
from engine.results.file_reader import TaskFileReader
from engine.results.units import Unit, UnitState, whole_name
from engine.schedules.scheduled_run import ChangesObserver, ScheduledRun
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
from engine.service.contracts import ContractService
from engine.service.maintenance import LedgerContext
from engine.service.queries import TaskQueries
from engine.service.rerun import (
    Asked,
    NotEnded,
    Remainder,
    failed_urls,
    remaining_commands,
    remaining_pages,
    web_pages,
)
from engine.service.resuming import ResumeFate, ResumePlan, resume_fate, resume_plan, successors
from engine.service.resuming import refusal as resume_refusal
from engine.service.worker_process import detach, needs_this_process

NO_CHANGES: Final[Mapping[str, Any]] = MappingProxyType({})


class TaskRequests:
    """Accept tasks of the own ledger; `asked` also reads requests of other ledgers."""

    part_name = "requests"

    def __init__(
        self,
        context: LedgerContext,
        tasks: TaskQueries,
        contracts: ContractService,
        reading: TaskFileReader,
        tools: Tools,
        clock: Clock,
    ) -> None:
        self.router = context.router
        self._context = context
        self._maintenance = context.maintenance
        self._own = context.own
        self._goals = context.goals
        self._tasks = tasks
        self._contracts = contracts
        self._reading = reading
        self._tools = tools
        self._clock = clock
        self._closing = False
        self._resuming = asyncio.Lock()

    async def start(
        self,
        kind: str,
        args: Mapping[str, Any],
        *,
        name: str | None = None,
        parent: str | None = None,
        resumes: bool = False,
        terms: Terms = NO_TERMS,
    ) -> TaskRecord:
        """Accept a task: when this returns, it is PENDING on disk and in the queue.

        With `resumes` a crawl keeps the pages of its `parent` and goes on from there. A `parent` of
        another ledger is omitted. Without a route in `terms`, the engine's counts.

        Raises:
            InvalidArguments: with every mistake; nothing was written.
            LedgerReadOnly, LedgerWriteFailed: the record cannot be written; nothing runs.
            ShuttingDown: the engine is closing.
        """
        if parent is not None and SIGN in parent:
            parent = None
        if terms.route is None:
            terms = msgspec.structs.replace(terms, route=self._tools.settings.route)
        if kind == ENVELOPE:
            return await self._open_envelope(args, name, parent, terms)
        request = admit(kind, args, name, terms, self._tools.on_route(terms.route))
        self._check_open()
        if self._context.settings.detached and not needs_this_process(kind, args):
            accept = self._accept_apart(kind, args, name, (parent, resumes), terms)
        else:
            accept = self._accept(request, parent, resumes)
        return await self._shielded(accept)

    async def start_scheduled(self, asked: Asked, run: ScheduledRun) -> TaskRecord:
        """Accept a claimed run of a schedule in this process, as `start` does.

        Raises:
            TaskExists: another program created it first; nothing was started.
            InvalidArguments, LedgerReadOnly, LedgerWriteFailed, ShuttingDown: as `start`.
        """
        terms, route = asked.terms, asked.terms.route or self._tools.settings.route
        terms = msgspec.structs.replace(terms, route=route)
        request = admit(asked.kind, asked.args, asked.name, terms, self._tools.on_route(route))
        self._check_open()
        return await self._shielded(self._accept(request, run.parent, scheduled=run))

    async def _shielded(self, accept: Coroutine[Any, Any, TaskRecord]) -> TaskRecord:
        """Accept to the end: a cancelled caller must not leave a task that no runner has."""
        accepting = asyncio.create_task(accept)
        self._own.accepting.add(accepting)
        accepting.add_done_callback(self._accepted)
        return await asyncio.shield(accepting)

    def _accepted(self, accepting: asyncio.Task[TaskRecord]) -> None:
        self._own.accepting.discard(accepting)
        if not accepting.cancelled():
            accepting.exception()  # marks the exception as retrieved if the caller was cancelled

    def captures_nothing(self, asked: rerun.Asked) -> bool:
        """Return whether this request is valid and would store no unit if it started now."""
        kind = KINDS.get(asked.kind)
        if kind is None:
            return False
        try:
            request = admit(asked.kind, asked.args, asked.name, asked.terms)
        except InvalidArguments:
            return False
        return kind.captures_nothing(request.parsed, self._tools)

    @routed()
    async def asked(self, task_id: str, variables: Mapping[str, Any] | None = None) -> rerun.Asked:
        """Return the request of the task, to `start` it again.

        Args:
            variables: values for the variables of a command task; they are not stored.

        Raises:
            CannotRepeat: the request is incomplete; one class for each reason.
            InvalidArguments: variables were given for a task that has none.
            NotATaskId, TaskNotFound, TaskUnreadable.
        """
        record = (await self._tasks.get(task_id)).entry
        if isinstance(record, Unreadable):
            raise TaskUnreadable(task_id=task_id, reason=record.reason, path=record.path)
        link = record.engine.contract_id if record.engine is not None else None
        contract = await asyncio.to_thread(self._goals.terms_of, link) if link else None
        return rerun.asked(record, contract, variables)

    async def rerun(
        self,
        task_id: str,
        variables: Mapping[str, Any] | None = None,
        *,
        client: str | None = None,
        route: str | None = None,
    ) -> TaskRecord:
        """Start the same request as a new task of the own ledger.

        This task becomes its parent if it is in the own ledger.

        Args:
            client: the program that requests the new task, see `Terms`.
            route: how its request came, see `Terms`; those of the old task do not count.

        Raises:
            CannotRepeat, and the errors of `start`.
        """
        asked = await self.asked(task_id, variables)
        return await self.start_after(task_id, asked, client, route)

    async def remainder(
        self,
        task_id: str,
        variables: Mapping[str, Any] | None = None,
        *,
        page: str = "",
        whole: Asked | None = None,
    ) -> Remainder:
        """Return the failed or missing parts of an ended task as a request.

        With `page`, return only the page of this address, if it failed or is missing.
        Commands that lack variables, or texts to type, come with a `refusal`, unless `whole` is
        given: the task's request with secrets.

        Raises:
            CannotRepeat: its request is incomplete.
            NotEnded: it may still visit these pages.
            NotATaskId, TaskNotFound, TaskUnreadable.
        """
        record = (await self._tasks.get(task_id)).entry
        if isinstance(record, TaskRecord) and record.kind == rerun.COMMANDS:
            return await self._remaining_commands(task_id, record, variables, whole)
        asked = await self.asked(task_id, variables) if whole is None else whole
        if isinstance(record, TaskRecord) and not record.is_terminal:
            raise NotEnded(task_id=task_id)
        if not traits_of(asked.kind).crawls:
            return Remainder(task_id, asked.kind)
        units: list[Unit] = []
        async for part in self._reading.units(task_id):
            units += [unit for unit in part.units if unit.state == UnitState.FAILED]
        urls = failed_urls([await self._with_whole_name(task_id, unit) for unit in units])
        if isinstance(record, TaskRecord) and record.engine and record.engine.contract_id:
            contract = await self._contracts.get(record.engine.contract_id)
            urls = web_pages([*urls, *contract.missing])
        wanted = [url for url in urls if url == page] if page else urls
        found = remaining_pages(task_id, asked, wanted)
        return found.named_after(record) if isinstance(record, TaskRecord) else found

    async def _with_whole_name(self, task_id: str, unit: Unit) -> Unit:
        """Return the unit with its whole address, of which lists hold the start only."""
        row = await self._reading.unit(task_id, unit) if unit.is_cut else None
        name = unit.name if row is None else whole_name(row)
        return msgspec.structs.replace(unit, name=name)

    async def _remaining_commands(
        self,
        task_id: str,
        record: TaskRecord,
        variables: Mapping[str, Any] | None,
        whole: Asked | None,
    ) -> Remainder:
        if not record.is_terminal:
            raise NotEnded(task_id=task_id)
        task = await self._tasks.command_task(task_id, results=False) or {}
        states = [one.get("status") for one in task.get("commands", ())]
        left = remaining_commands(rerun.recorded(record) if whole is None else whole, states)
        if left is None:
            return Remainder(task_id, record.kind)
        left = rerun.named_as_retry(left, record)
        found = Remainder(task_id, record.kind, left, states.count("error"), 1)
        try:
            return replace(found, request=rerun.completed(record, left, variables, "retry"))
        except rerun.CannotRepeat as refusal:
            return replace(found, request=rerun.to_complete(left), refusal=refusal)

    async def retry(
        self,
        task_id: str,
        variables: Mapping[str, Any] | None = None,
        *,
        page: str = "",
        whole: Asked | None = None,
        client: str | None = None,
        route: str | None = None,
    ) -> TaskRecord:
        """Start the failed parts of a task as a new task, or `page` alone.

        `whole` is as in `remainder`, `client` and `route` are as in `rerun`.

        Raises:
            NothingToRetry, and the errors of `remainder` and `start`.
        """
        asked = (await self.remainder(task_id, variables, page=page, whole=whole)).whole
        return await self.start_after(task_id, asked, client, route)

    async def start_after(
        self, task_id: str, one: Asked, client: str | None = None, route: str | None = None
    ) -> TaskRecord:
        """Start the request of a task, or a part of it, as a new task; see `rerun`."""
        parent = await self._tasks.ledger_id(task_id)  # a qualified id, which `start` omits
        terms = msgspec.structs.replace(one.terms, client=client, route=route)
        return await self.start(one.kind, one.args, name=one.name, parent=parent, terms=terms)

    async def resume(
        self,
        task_id: str,
        whole: Asked | None = None,
        *,
        changes: Mapping[str, Any] = NO_CHANGES,
        client: str | None = None,
        route: str | None = None,
    ) -> TaskRecord:
        """Start a new task that keeps the pages of a crawl and goes on where it stopped.

        Args:
            whole: its request with secrets, where the caller has it.
            changes: arguments that replace those of the crawl. With another limit of pages
                (`max_pages`) a crawl that ended by itself goes on.
            client, route: as in `rerun`.

        Raises:
            CannotResume, NotEnded: it is not resumed; one class for each reason.
            CannotRepeat: its request is not stored whole.
            And the errors of `start`.
        """
        async with self._resuming:  # a second request finds the task of the first
            return await self._resume(task_id, whole, changes, client, route)

    async def _resume(
        self,
        task_id: str,
        whole: Asked | None,
        changes: Mapping[str, Any],
        client: str | None,
        route: str | None,
    ) -> TaskRecord:
        views = await self._tasks.list(limit=None)
        resumed = await asyncio.to_thread(successors, views)
        view = await self._tasks.get(task_id)
        more = "max_pages" in changes
        found = resume_fate(view, resumed, more=more, remembers=lambda _: True)
        if found is ResumeFate.LIVE:
            raise NotEnded(task_id=task_id)
        if found is not ResumeFate.RESUMES:
            raise resume_refusal(view, found, resumed)
        one = whole or await self.asked(task_id)
        args = {**(_without_limit(one.args) if more else one.args), **changes}
        terms = msgspec.structs.replace(one.terms, client=client, route=route)
        return await self.start(
            one.kind, args, name=one.name, parent=view.task_id, resumes=True, terms=terms
        )

    async def resume_plan(
        self, task_ids: Sequence[str], query: str | None = None, *, more: bool = False
    ) -> ResumePlan:
        """Group these tasks, or all that match `query`, by what `resume` does; nothing starts.

        Raises:
            QueryError: the query is invalid.
            NotATaskId, TaskNotFound: for an id.
        """
        views = await self._tasks.list(limit=None)
        resumed = await asyncio.to_thread(successors, views)
        if query is None:
            chosen = [await self._tasks.get(task_id) for task_id in task_ids]
        else:
            chosen = list(await self._tasks.list(query=query, limit=None))
        return await asyncio.to_thread(partial(resume_plan, chosen, resumed, more=more))

    def close(self) -> None:
        """Accept no more tasks."""
        self._closing = True

    def _check_open(self) -> None:
        """Raise unless new tasks are accepted now."""
        if self._own.executor is None or self._closing:
            raise ShuttingDown()
        if self._maintenance.lease is None:
            path = str(self._context.ledger.root)
            raise self._maintenance.refusal or LedgerReadOnly(path=path)

    async def _open_envelope(
        self, args: Mapping[str, Any], name: str | None, parent: str | None, terms: Terms
    ) -> TaskRecord:
        """Create a `browser_task`: RUNNING at once; a host drives it from outside."""
        request = check_envelope(args, name, terms)
        await self._maintenance.reap_first()
        self._check_open()
        fields = engine_fields(terms, name, parent, self._context.runs.new_id())

        def create(contract_id: str | None) -> TaskRecord:
            linked = msgspec.structs.replace(fields, contract_id=contract_id)
            return self._contracts.envelopes.start(request, linked)

        contract, run_id = terms.contract, terms.task_run_id
        record = await asyncio.to_thread(self._goals.accept, ENVELOPE, contract, run_id, create)
        await asyncio.to_thread(self._context.linked.accept, record, run_facts(terms))
        self._tasks.nudge(TaskId(record.task_id))
        return record

    async def _accept(
        self,
        request: Request,
        parent: str | None,
        resumes: bool = False,
        scheduled: ScheduledRun | None = None,
    ) -> TaskRecord:
        """Write the task to disk, and queue it."""
        await self._maintenance.reap_first()
        self._check_open()
        source = await asyncio.to_thread(self._source, parent) if resumes and parent else None
        record = await asyncio.to_thread(self._create, request, parent, resumes, scheduled)
        task_id, terms = TaskId(record.task_id), request.terms
        job = Job(
            task_id,
            request.kind,
            request.parsed,
            self._observers(record, terms),
            terms.policy or {},
            terms.route,
            source,
        )
        try:
            if scheduled is not None:
                await asyncio.to_thread(scheduled.confirm)
            self._check_open()
            assert self._own.executor is not None
            self._own.executor.submit(job)
        except EngineError:  # a refused task must not look like a lost one
            await asyncio.to_thread(self._context.ledger.request_cancel, job.task_id)
            raise
        self._tasks.nudge(job.task_id)
        return record

    def _source(self, task_id: str) -> TaskId:
        """Return the task whose pages a resumed one keeps: the last one that stored any.

        A resumed task that was stopped before it had kept its pages has none of its own.
        """
        source, record = TaskId(task_id), self._context.ledger.read(task_id)
        while isinstance(record, TaskRecord) and record.engine and record.engine.resumes:
            above = record.engine.parent_task_id
            if self._context.ledger.file_size(source, PAGES_NAME) or above is None:
                break
            try:
                source, record = TaskId(above), self._context.ledger.read(above)
            except TaskNotFound:
                break
        return source

    async def _accept_apart(
        self,
        kind: str,
        args: Mapping[str, Any],
        name: str | None,
        after: tuple[str | None, bool],
        terms: Terms,
    ) -> TaskRecord:
        """Let a worker process accept the task and run it; `after` are its parent and `resumes`."""
        parent, resumes = after
        request = {"kind": kind, "args": args, "name": name, "parent": parent, "resumes": resumes}
        request["terms"] = msgspec.to_builtins(terms)
        return await self.taken_apart(request)

    async def taken_apart(self, request: Mapping[str, Any]) -> TaskRecord:
        """Let a worker process take this request, and return the record of its task.

        Raises:
            WorkerFailed: the worker ended before it had taken the task.
        """
        taken = await asyncio.to_thread(detach, self._tools.settings, request)
        task_id = await self._tasks.ledger_id(taken["task_id"])
        self._tasks.nudge(task_id)
        record = await asyncio.to_thread(self._context.ledger.read, task_id)
        if isinstance(record, Unreadable):
            raise TaskUnreadable(task_id=task_id, reason=record.reason, path=record.path)
        return record

    def _observers(self, record: TaskRecord, terms: Terms) -> tuple[TaskObserver, ...]:
        """Return the observers of the task: its budgets and its contract, if it has any."""
        found: list[TaskObserver] = []
        if terms.policy:
            budget = partial(
                BudgetObserver, now_ms=self._clock.now_ms, monotonic=self._clock.monotonic
            )
            found.append(budget(self._context.ledger, record.task_id, terms.enforce))
        if record.engine is not None and record.engine.contract_id is not None:
            found.append(self._goals.companion(record.engine.contract_id, record.task_id))
        ours = record.engine
        if ours is not None and ours.schedule is not None and ours.parent_task_id is not None:
            ledger, before = self._context.ledger, ours.parent_task_id
            found.append(ChangesObserver(ledger, record.task_id, before))
        return tuple(found)

    def _create(
        self,
        request: Request,
        parent: str | None,
        resumes: bool,
        scheduled: ScheduledRun | None,
    ) -> TaskRecord:
        terms, placing = request.terms, request.kind.place(request.parsed, request.args)
        scrub = request.kind.scrub(request.parsed)
        given, name = scrub.ours(placing.args), request.name or placing.name
        fields = msgspec.structs.replace(
            engine_fields(
                terms, scrub.hide(name) if name else name, parent, self._context.runs.new_id()
            ),
            resumes=resumes and parent is not None,
            command_task_id=placing.command_task_id,
            metadata=placing.metadata if terms.metadata is None else terms.metadata,
            withheld=placing.withheld or given != placing.args,
            schedule=scheduled.link if scheduled is not None else None,
        )

        def create(contract_id: str | None) -> TaskRecord:
            linked = msgspec.structs.replace(fields, contract_id=contract_id)
            return self._context.ledger.create(
                kind,
                given,
                engine=linked,
                fields=opening,
                documents=placing.documents,
            )

        kind, opening = request.kind.name, scrub.ours(opening_fields(terms))
        if scheduled is not None:
            opening["task_id"] = scheduled.task_id
        record = self._goals.accept(kind, terms.contract, terms.task_run_id, create)
        self._context.linked.accept(record, run_facts(terms))
        if placing.command_task_id:
            self._tasks.learn(placing.command_task_id, record.task_id)
        return record


def _without_limit(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without a limit of pages in either spelling."""
    return {name: value for name, value in args.items() if name not in ("max_pages", "maxPages")}


def problems(
    kind: str, args: Mapping[str, Any], name: str | None = None, terms: Terms = NO_TERMS
) -> tuple[Problem, ...]:
    """Return every mistake for which `start` would reject this request; nothing is started."""
    try:
        admit(kind, args, name, terms) if kind != ENVELOPE else check_envelope(args, name, terms)
    except InvalidArguments as error:
        return error.problems
    return ()
