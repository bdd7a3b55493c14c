"""Schedules of the own ledger: their operations, and the start of what is due.

Any number of programs may start what is due: each occurrence is claimed in the schedule's file
before its task is created under the claimed id, so that it runs once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec

from engine.kinds.context import FROM_OUTSIDE, Clock
from engine.kinds.crawl.crawl_args import still_served
from engine.kinds.spec import Tools
from engine.ledger.ownership import Owners
from engine.ledger.record_store import RecordNotFound, RecordUnreadable
from engine.model.errors import (
    EngineError,
    InvalidArguments,
    Problem,
    ShuttingDown,
    TaskExists,
    TaskNotFound,
)
from engine.model.records import ENVELOPE, ScheduleLink, TaskRecord, TaskView, Unreadable
from engine.schedules.rules import Rule, rule_of
from engine.schedules.schedule import (
    USUAL_GRACE_MINUTES,
    Claim,
    Refusal,
    Schedule,
    Skip,
    StoredRequest,
)
from engine.schedules.schedule_store import ScheduleRunGoing, ScheduleStore
from engine.schedules.schedule_words import name_words
from engine.schedules.scheduled_run import ScheduledRun
from engine.service import drafts
from engine.service.admission import MAX_NAME, admit
from engine.service.forms import own_names
from engine.service.maintenance import LedgerContext
from engine.service.queries import TaskQueries
from engine.service.requests import TaskRequests
from engine.service.rerun import Asked
from engine.service.worker_process import needs_this_process

log = logging.getLogger(__name__)

LOOK_S: Final = 20.0  # a changed file, a set clock and the end of a sleep are noticed within this
MOST_GRACE_MINUTES: Final = 7 * 24 * 60
MISSED: Final = ("once", "skip")
_OPTIONS: Final = ("missed", "grace_minutes", "notify")


class ScheduleSecret(EngineError):
    """The request holds a secret, or a typed text, which no file keeps."""

    code = "schedule_secret"
    title = "A schedule keeps no secrets"
    sentence = "The request holds a password, a typed text or another secret, which is not stored."
    advice_text = (
        'Give it by reference: {{"secret": "env:NAME"}} reads the variable NAME of the program '
        "that starts the run. A text that is no secret may be kept with keep_text."
    )


class ScheduleOfOperator(EngineError):
    """A program asked over MCP or HTTP to change, delete or run a schedule of the operator.

    Such a schedule runs with the operator's rights, which a program must not direct.
    """

    code = "schedule_of_operator"
    title = "The schedule is the operator's"
    sentence = "Schedule {schedule_id} was not added by a program; only the operator may do that."
    advice_text = "Programs list, pause and resume it; they change, run and remove their own."


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """A schedule with its next occurrence and the task of its last run, where that exists."""

    schedule: Schedule
    next_at: int | None = None
    last: TaskView | None = None


@dataclass(slots=True)
class Started:
    """What one look at all schedules did."""

    tasks: list[TaskRecord] = field(default_factory=list)
    skips: list[tuple[Schedule, Skip]] = field(default_factory=list)
    refused: list[tuple[Schedule, Refusal]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)  # ids with why they were left out
    next_at: int | None = None


class Schedules:
    """Operations on the schedules of the own ledger; errors as in `ScheduleStore`."""

    def __init__(
        self,
        context: LedgerContext,
        store: ScheduleStore,
        tasks: TaskQueries,
        requests: TaskRequests,
        tools: Tools,
        clock: Clock,
    ) -> None:
        self._context = context
        self._store = store
        self._tasks = tasks
        self._requests = requests
        self._tools = tools
        self._clock = clock
        self._turn = asyncio.Lock()
        self._wake = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._stuck: tuple[str, ...] = ()

    @property
    def stuck(self) -> tuple[str, ...]:
        """Names of schedules whose due run could not start at the last look."""
        return self._stuck

    async def all(self) -> list[ScheduleView | Unreadable]:
        """Return all schedules, oldest first, then the unreadable ones."""
        found = await asyncio.to_thread(self._store.all)
        return [
            one if isinstance(one, Unreadable) else await self._view(one, self._clock.now_ms())
            for one in found
        ]

    async def get(self, schedule_id: str) -> ScheduleView:
        """Return one schedule."""
        found = await asyncio.to_thread(self._store.read, schedule_id)
        return await self._view(found, self._clock.now_ms())

    async def add(
        self,
        asked: Asked,
        rule: Mapping[str, Any],
        *,
        first_task: str | None = None,
        route: str | None = None,
        client: str | None = None,
        **options: Any,
    ) -> ScheduleView:
        """Store a schedule of this request; its first occurrence is the next one of its rule.

        Args:
            first_task: an ended task of the same request: the first run is compared with it.
            options: `missed` (once or skip), `grace_minutes`, `notify`.

        Raises:
            InvalidArguments: with every mistake of the request, the rule and the options. Over MCP
                and HTTP also for a secret or a file that the operator does not allow, as `start`.
            ScheduleSecret: the request cannot be stored whole.
        """
        now_ms = self._clock.now_ms()
        tools = self._tools.on_route(route) if route in FROM_OUTSIDE else None
        document, problems = _checked(asked, tools)
        made: Rule | None = None
        try:
            made = rule_of(rule, now_ms)
        except InvalidArguments as error:
            problems += error.problems
        problems += _option_problems(options)
        if problems or made is None:
            raise InvalidArguments(tuple(problems))
        claim = Claim(first_task, now_ms, created=True) if first_task is not None else None
        given = {name: options[name] for name in _OPTIONS if options.get(name) is not None}
        schedule = Schedule(
            schedule_id="",
            request=StoredRequest(document, route or self._tools.settings.route, client),
            rule=made,
            name=str(document.get("name") or ""),
            created_at=now_ms,
            after=now_ms,
            claim=claim,
            **given,
        )
        made_one = await asyncio.to_thread(self._store.create, schedule)
        self._wake.set()
        return await self._view(made_one, now_ms)

    async def check_program(self, schedule_id: str, route: str | None) -> None:
        """Check that a request by `route` may change, delete or run this schedule.

        Raises:
            ScheduleOfOperator: it came over MCP or HTTP, and the schedule did not.
        """
        if route in FROM_OUTSIDE:
            found = await asyncio.to_thread(self._store.read, schedule_id)
            if found.request.route not in FROM_OUTSIDE:
                raise ScheduleOfOperator(schedule_id=schedule_id)

    async def change(
        self,
        schedule_id: str,
        *,
        rule: Mapping[str, Any] | None = None,
        name: str | None = None,
        args: Mapping[str, Any] | None = None,
        asked: Asked | None = None,
        **options: Any,
    ) -> ScheduleView:
        """Change rule, name, options or the request. A new rule counts from now.

        Args:
            args: the arguments that change; None takes one back to its default.
            asked: the whole request, in place of the stored one.

        Raises:
            InvalidArguments, ScheduleSecret: nothing was changed; as `add`.
        """
        now_ms = self._clock.now_ms()
        problems = _option_problems(options)
        if name is not None and len(name) > MAX_NAME:
            problems.append(Problem("name", "too_long", f"must be at most {MAX_NAME} characters"))
        made: Rule | None = None
        try:
            made = None if rule is None else rule_of(rule, now_ms)
        except InvalidArguments as error:
            problems += error.problems
        if problems:
            raise InvalidArguments(tuple(problems))
        changes: dict[str, Any] = {
            key: options[key] for key in _OPTIONS if options.get(key) is not None
        }
        if made is not None:
            changes |= {"rule": made, "after": now_ms, "refusal": None}
        if name is not None:
            changes["name"] = name

        def apply(schedule: Schedule) -> Schedule:
            more = changes
            if args is not None or asked is not None:
                # Merged under the lock: another program may change other arguments.
                wanted = asked or _with_args(schedule, args or {})
                more = {**changes, "request": self._stored(schedule, wanted), "refusal": None}
            return msgspec.structs.replace(schedule, **more)

        return await self._changed(schedule_id, apply)

    def _stored(self, schedule: Schedule, asked: Asked) -> StoredRequest:
        """Return the changed request, checked with the rights of the schedule's runs."""
        before = schedule.request
        if asked.kind != schedule.kind:  # no run of it could be compared with those before
            message = "a schedule keeps its kind; add another one"
            raise InvalidArguments((Problem("kind", "fixed", message),))
        tools = self._tools.on_route(before.route) if before.route in FROM_OUTSIDE else None
        document, problems = _checked(asked, tools)
        if problems:
            raise InvalidArguments(tuple(problems))
        return msgspec.structs.replace(before, document=document)

    async def pause(self, schedule_id: str) -> ScheduleView:
        """Start nothing until `resume`."""
        return await self._changed(
            schedule_id, lambda one: msgspec.structs.replace(one, paused=True, refusal=None)
        )

    async def resume(self, schedule_id: str) -> ScheduleView:
        """Go on with the next occurrence; those of the pause are not missed."""
        now_ms = self._clock.now_ms()

        def apply(one: Schedule) -> Schedule:
            return msgspec.structs.replace(one, paused=False, after=now_ms) if one.paused else one

        return await self._changed(schedule_id, apply)

    async def remove(self, schedule_id: str) -> None:
        """Delete a schedule; its tasks stay, and one that runs goes on."""
        await asyncio.to_thread(self._store.remove, schedule_id)
        self._wake.set()  # it is not stuck any more

    async def run_now(self, schedule_id: str) -> TaskRecord:
        """Start a run at once, also of a paused schedule; the next occurrence stays due.

        Where tasks outlive this process (`Settings.detached`), a worker makes the run.

        Raises:
            ScheduleRunGoing: the last run has not ended.
            InvalidArguments, and the errors of `TaskRequests.start`.
        """
        async with self._turn:
            found = await asyncio.to_thread(self._store.read, schedule_id)
            self._admit(found)
            if self._context.settings.detached:
                return await self._run_apart(found)
            claim_now = partial(self._store.claim_now, schedule_id, self._clock.now_ms())
            schedule, claim = await asyncio.to_thread(claim_now, self._is_going)
            started = await self._start(schedule, claim)
        if started is None:
            raise TaskExists(task_id=claim.task_id)
        return started

    async def _run_apart(self, schedule: Schedule) -> TaskRecord:
        last = schedule.claim
        if last is not None and await asyncio.to_thread(self._is_going, last.task_id):
            raise ScheduleRunGoing(task_id=last.task_id)  # a worker returns no types of errors
        return await self._requests.taken_apart({"schedule_id": schedule.schedule_id})

    async def run_due(self) -> Started:
        """Start what is due now in every schedule, and return what was done.

        Raises:
            LedgerReadOnly, ShuttingDown: no task can be started.
        """
        done = Started()
        self._wake.clear()
        async with self._turn:
            for schedule in await asyncio.to_thread(self._store.all):
                if isinstance(schedule, Unreadable):
                    log.warning("schedule %s is unreadable: %s", schedule.task_id, schedule.reason)
                    done.failed.append((schedule.task_id, schedule.reason))
                    continue
                try:
                    await self._run_one(schedule, done)
                except ShuttingDown:
                    raise
                except (RecordNotFound, RecordUnreadable):
                    continue  # deleted or damaged since
                except EngineError as error:  # a locked file must not stop the others
                    log.warning("schedule %s: %s", schedule.schedule_id, error)
                    done.failed.append((schedule.schedule_id, str(error)))
        self._stuck = tuple(name_words(one) for one, _ in done.refused)
        return done

    def keep_running(self) -> None:
        """Start what is due from now on, until `close`."""
        if self._running is None:
            self._running = asyncio.create_task(self._keep_running(), name="start what is due")

    async def close(self) -> None:
        """Start nothing any more."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.wait({running})

    async def wait_for_next(self, next_at: int | None) -> None:
        """Wait until `next_at`, a change of this program, or 20 s: the clock may be set."""
        left_s = LOOK_S if next_at is None else (next_at - self._clock.now_ms()) / 1000
        with suppress(TimeoutError):
            async with asyncio.timeout(min(LOOK_S, max(0.05, left_s))):
                await self._wake.wait()

    async def _keep_running(self) -> None:
        while True:
            next_at: int | None = None
            if self._context.maintenance.lease is not None:  # else nothing can start here
                next_at = await self._run_due_or_later()
            await self.wait_for_next(next_at)

    async def _run_due_or_later(self) -> int | None:
        try:
            return (await self.run_due()).next_at
        except EngineError as error:
            log.warning("nothing scheduled could start: %s", error)
            return None

    async def _run_one(self, schedule: Schedule, done: Started) -> None:
        now_ms = self._clock.now_ms()
        if (due := self._due(schedule, now_ms)) is not None:
            try:
                self._admit(schedule)
            except InvalidArguments as error:
                # It stays due: a program that has the missing variable can start it.
                refusal = Refusal(due, now_ms, error.code, str(error))
                refuse = partial(self._store.refuse, schedule.schedule_id, refusal)
                done.refused.append((await asyncio.to_thread(refuse), refusal))
                return
            claim_due = partial(self._store.claim_due, schedule.schedule_id, now_ms)
            schedule, decision = await asyncio.to_thread(claim_due, self._is_going)
            if decision is not None and decision.skip is not None:
                done.skips.append((schedule, decision.skip))
            if decision is not None and decision.claim is not None:
                started = await self._start(schedule, decision.claim)
                done.tasks += [started] if started is not None else []
        next_at = schedule.next_at(now_ms)
        if next_at is not None:
            done.next_at = min(next_at, done.next_at or next_at)

    def _due(self, schedule: Schedule, now_ms: int) -> int | None:
        """Return the instant of what seems due, without the schedule's lock; None for nothing."""
        if schedule.pending is not None:
            return schedule.pending.due_at or now_ms
        next_at = schedule.next_at(schedule.after)
        return next_at if next_at is not None and next_at <= now_ms else None

    async def _start(self, schedule: Schedule, claim: Claim) -> TaskRecord | None:
        """Create the claimed task and queue it; None when another program was first."""
        confirm = partial(self._store.confirm, schedule.schedule_id, claim.task_id)
        link = ScheduleLink(schedule.schedule_id, claim.due_at, schedule.notify)
        run = ScheduledRun(link, claim.task_id, claim.parent, confirm)
        try:
            return await self._requests.start_scheduled(self._asked(schedule), run)
        except TaskExists:
            await asyncio.to_thread(confirm)
            return None

    def _admit(self, schedule: Schedule) -> None:
        """Raise InvalidArguments for a run that cannot start: a variable is missing, say."""
        asked = self._asked(schedule)
        tools = self._tools.on_route(asked.terms.route)
        admit(asked.kind, asked.args, asked.name, asked.terms, tools)

    def _asked(self, schedule: Schedule) -> Asked:
        asked = drafts.asked_of(schedule.request.document)
        route, client = schedule.request.route, schedule.request.client
        terms = msgspec.structs.replace(asked.terms, route=route, client=client)
        return Asked(asked.kind, still_served(asked.args), schedule.name or asked.name, terms)

    async def _changed(
        self, schedule_id: str, apply: Callable[[Schedule], Schedule]
    ) -> ScheduleView:
        changed = await asyncio.to_thread(self._store.change, schedule_id, apply)
        self._wake.set()
        return await self._view(changed, self._clock.now_ms())

    async def _view(self, schedule: Schedule, now_ms: int) -> ScheduleView:
        last: TaskView | None = None
        if schedule.claim is not None and schedule.claim.created:
            with suppress(TaskNotFound):  # deleted since
                last = await self._tasks.get(schedule.claim.task_id)
        return ScheduleView(schedule, schedule.next_at(now_ms), last)

    def _is_going(self, task_id: str) -> bool:
        """Return whether the task is live and may have an owner; under the schedule's lock."""
        ledger = self._context.ledger
        try:
            record = ledger.read(task_id)
        except EngineError:
            return False
        if not isinstance(record, TaskRecord) or not record.is_live:
            return False
        owners = Owners(ledger.root, self._context.maintenance.lease, self._context.own.run_of)
        return not owners.of(record).dead


def _with_args(schedule: Schedule, args: Mapping[str, Any]) -> Asked:
    """Return the request of a schedule with changed arguments."""
    before = drafts.asked_of(schedule.request.document)
    merged = {**before.args, **own_names(before.kind, args)}
    kept = {name: value for name, value in merged.items() if value is not None}
    return Asked(before.kind, kept, before.name, before.terms)


def _checked(asked: Asked, tools: Tools | None) -> tuple[dict[str, Any], list[Problem]]:
    """Return the document of the request and its mistakes. Raises ScheduleSecret.

    With `tools` also what the operator does not allow is a mistake. Without them a missing
    variable is none: the program that starts the run needs it.
    """
    if asked.kind == ENVELOPE:
        return {}, [Problem("kind", "not_schedulable", "is driven by an agent; nothing runs it")]
    if needs_this_process(asked.kind, asked.args):
        message = "uses a browser of the program that starts it, which a later run has not"
        return {}, [Problem("args", "not_schedulable", message)]
    try:
        admit(asked.kind, asked.args, asked.name, asked.terms, tools)
    except InvalidArguments as error:
        return {}, [*error.problems]
    document, was_secret = drafts.storable(asked)
    if was_secret or drafts.lacks(asked):
        raise ScheduleSecret()
    return document, []


def _option_problems(options: Mapping[str, Any]) -> list[Problem]:
    found = [
        Problem(name, "unknown_argument", "is no option of a schedule")
        for name in options
        if name not in _OPTIONS
    ]
    if options.get("missed") not in (None, *MISSED):
        found.append(Problem("missed", "wrong_value", f"must be one of {', '.join(MISSED)}"))
    grace = options.get("grace_minutes")
    if grace is not None and (type(grace) is not int or not 0 <= grace <= MOST_GRACE_MINUTES):
        message = f"must be from 0 to {MOST_GRACE_MINUTES:,} minutes"
        found.append(Problem("grace_minutes", "out_of_range", message))
    return found


__all__ = ["USUAL_GRACE_MINUTES", "ScheduleSecret", "ScheduleView", "Schedules", "Started"]
