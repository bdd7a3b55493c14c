"""Verbs of schedules.

The command line has commands of its own to add one and to run what is due, which wait for its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine.model.errors import InvalidArguments, Problem
from engine.model.ledger_ids import SIGN
from engine.model.records import TaskRecord, Unreadable
from engine.query import span_ms
from engine.schedules.schedule import MINUTE_MS
from engine.service import drafts
from engine.service.rerun import Asked
from engine.service.schedules import MISSED, ScheduleView, Started
from engine.verbs import schemas
from engine.verbs.json_answers import view_data
from engine.verbs.model import BY_CALLER, CALLER, Caller, Param, Verb, object_of
from engine.verbs.program_verbs import with_references

if TYPE_CHECKING:
    from engine.service.engine import Engine

Given = Mapping[str, Any]
Data = dict[str, Any]
NOTIFY: Final = ("changes", "never")

SCHEDULE_ID: Final = Param(
    "schedule_id", "the schedule's id: 16 hex digits", positional=True, required=True
)
RULE: Final = (
    Param("every", "repeat after this time: 30m, 6h, 2d"),
    Param("daily", "repeat every day at this time of the zone: 07:30"),
    Param("cron", "repeat by a cron line of five fields: '30 7 * * 1-5'"),
    Param("zone", "the time zone of daily and cron (this computer's): Europe/Berlin"),
)
OPTIONS: Final = (
    Param("missed", "what to do with missed runs: once (one run for all) or skip"),
    Param("grace", "how late a run may start before it counts as missed: 10m"),
    Param("notify", "let the window report runs that found changes: changes or never"),
)


def schedule_data(view: ScheduleView | Unreadable) -> Data:
    """Encode a schedule with its next occurrence and its last run."""
    if isinstance(view, Unreadable):
        return {"schedule_id": view.task_id, "reason": view.reason, "path": view.path}
    found: Data = msgspec.to_builtins(view.schedule)
    found["request"] = view.schedule.request.document
    found["kind"] = view.schedule.kind
    found["next_at"] = view.next_at
    found["last"] = view_data(view.last) if view.last is not None else None
    return found


def started_data(done: Started) -> Data:
    """Encode what was started, skipped and refused, and what could not be read."""
    return {
        "tasks": [one.task_id for one in done.tasks],
        "skipped": [
            {"schedule_id": schedule.schedule_id, **msgspec.to_builtins(skip)}
            for schedule, skip in done.skips
        ],
        "refused": [
            {"schedule_id": schedule.schedule_id, **msgspec.to_builtins(refusal)}
            for schedule, refusal in done.refused
        ],
        "failed": [
            {"schedule_id": schedule_id, "message": message} for schedule_id, message in done.failed
        ],
    }


async def _list(engine: Engine, given: Given) -> Data:
    found = [schedule_data(one) for one in await engine.schedules.all()]
    return {"schedules": found, "count": len(found)}


async def _show(engine: Engine, given: Given) -> Data:
    return schedule_data(await engine.schedules.get(given["schedule_id"]))


async def _add(engine: Engine, given: Given) -> Data:
    options, problems = _options(given), list[Problem]()
    rule = _rule(given, problems)
    if (given["request"] is None) == (given["task_id"] is None):
        message = "give either this, or task_id to repeat the request of a task"
        problems.append(Problem("request", "one_of_two", message))
    if problems:
        raise InvalidArguments(tuple(problems))
    caller = given[CALLER] or Caller()
    first: str | None = None
    if given["task_id"] is not None:
        asked = await engine.requests.asked(given["task_id"])
        if SIGN not in given["task_id"]:
            first = await engine.tasks.ledger_id(given["task_id"])
    else:
        asked = _with_reference(drafts.asked_of(object_of("request", given["request"])))
    try:
        view = await engine.schedules.add(
            asked, rule, first_task=first, route=caller.route, client=caller.client, **options
        )
    except InvalidArguments as error:
        raise InvalidArguments(tuple(map(_placed, error.problems))) from None
    return schedule_data(view)


_NAMES: Final = {"daily_at": "daily", "every_minutes": "every", "grace_minutes": "grace"}
_OF_RULE: Final = frozenset(param.name for param in (*RULE, *OPTIONS))
_OF_REQUEST: Final = frozenset({"kind", "args", "name", *drafts.TERMS})


def _placed(problem: Problem) -> Problem:
    """Return a mistake of a new schedule with the path that the request has."""
    head = problem.path.split(".")[0].split("[")[0]
    if head == "rule":  # of all that make one
        return problem
    if head in _NAMES or head in _OF_RULE:
        return replace(problem, path=_NAMES.get(head, head))
    place = "request" if head in _OF_REQUEST else "request.args"
    return replace(problem, path=f"{place}.{problem.path}" if problem.path else place)


def _with_reference(asked: Asked) -> Asked:
    """Convert passwords `env:NAME` to references, as a start does."""
    return replace(asked, args=with_references(asked.args))


async def _change(engine: Engine, given: Given) -> Data:
    await _check_program(engine, given)
    options, problems = _options(given), list[Problem]()
    rule: Data | None = _rule(given, problems)
    if problems:
        raise InvalidArguments(tuple(problems))
    if rule is not None and set(rule) == {"zone"}:
        known = msgspec.to_builtins(
            (await engine.schedules.get(given["schedule_id"])).schedule.rule
        )
        rule = {**{name: known[name] for name in ("daily_at", "cron") if name in known}, **rule}
    args = None
    if given["args"] is not None:
        args = with_references(object_of("args", given["args"]))
    try:
        view = await engine.schedules.change(
            given["schedule_id"], rule=rule or None, name=given["name"], args=args, **options
        )
    except InvalidArguments as error:
        raise InvalidArguments(tuple(map(_placed_change, error.problems))) from None
    return schedule_data(view)


def _placed_change(problem: Problem) -> Problem:
    """Return a mistake of a changed schedule with the path that the request has."""
    head = problem.path.split(".")[0].split("[")[0]
    if head in _NAMES or head in _OF_RULE or head in ("rule", "name", "args"):
        return replace(problem, path=_NAMES.get(problem.path, problem.path))
    return replace(problem, path=f"args.{problem.path}")


async def _pause(engine: Engine, given: Given) -> Data:
    return schedule_data(await engine.schedules.pause(given["schedule_id"]))


async def _resume(engine: Engine, given: Given) -> Data:
    return schedule_data(await engine.schedules.resume(given["schedule_id"]))


async def _remove(engine: Engine, given: Given) -> Data:
    await _check_program(engine, given)
    await engine.schedules.remove(given["schedule_id"])
    return {"removed": given["schedule_id"]}


async def _run_now(engine: Engine, given: Given) -> TaskRecord:
    await _check_program(engine, given)
    return await engine.schedules.run_now(given["schedule_id"])


async def _check_program(engine: Engine, given: Given) -> None:
    caller = given[CALLER] or Caller()
    await engine.schedules.check_program(given["schedule_id"], caller.route)


async def _run(engine: Engine, given: Given) -> Started:
    if given["schedule_id"] is None:
        return await engine.schedules.run_due()
    return Started(tasks=[await engine.schedules.run_now(given["schedule_id"])])


def _rule(given: Given, problems: list[Problem]) -> Data:
    names = {"daily": "daily_at", "cron": "cron", "zone": "zone"}
    rule = {names[name]: given[name] for name in names if given[name] is not None}
    if given["every"] is not None:
        minutes = _minutes("every", given["every"], problems)
        rule |= {"every_minutes": minutes} if minutes is not None else {}
    return rule


def _options(given: Given) -> Data:
    problems = list[Problem]()
    options: Data = {"missed": given["missed"]}
    if given["missed"] not in (None, *MISSED):
        message = f"must be one of {', '.join(MISSED)}"
        problems.append(Problem("missed", "wrong_value", message))
    if given["notify"] not in (None, *NOTIFY):
        message = f"must be one of {', '.join(NOTIFY)}"
        problems.append(Problem("notify", "wrong_value", message))
    if given["grace"] is not None:
        options["grace_minutes"] = _minutes("grace", given["grace"], problems)
    if given["notify"] is not None:
        options["notify"] = given["notify"] == NOTIFY[0]
    if problems:
        raise InvalidArguments(tuple(problems))
    return options


def _minutes(name: str, text: str, problems: list[Problem]) -> int | None:
    length_ms = span_ms(text)
    if length_ms is None or length_ms % MINUTE_MS:
        message = "must be a length of whole minutes, such as 30m, 6h or 2d"
        problems.append(Problem(name, "invalid_value", message))
        return None
    return int(length_ms // MINUTE_MS)


VERBS: tuple[Verb, ...] = (
    Verb("schedules list", "List schedules, oldest first.", (), _list),
    Verb("schedules show", "Show one schedule.", (SCHEDULE_ID,), _show),
    Verb(
        "schedules add",
        "Repeat a task by a rule.",
        (
            Param(
                "request",
                "the kind, its arguments and terms, as to start it",
                "json",
                schema=schemas.request_schema(),
            ),
            Param("task_id", "repeat the request of this task, instead of a request"),
            *RULE,
            *OPTIONS,
            BY_CALLER,
        ),
        _add,
        accepts=True,
        faces=("mcp", "http"),
    ),
    Verb(
        "schedules change",
        "Change the rule, the name, the options or the arguments of a schedule.",
        (
            SCHEDULE_ID,
            Param("name", "a name for the list"),
            Param("args", "arguments to change; null restores a default", "json"),
            *RULE,
            *OPTIONS,
            BY_CALLER,
        ),
        _change,
    ),
    Verb(
        "schedules pause",
        "Start nothing of a schedule until it is resumed.",
        (SCHEDULE_ID,),
        _pause,
    ),
    Verb(
        "schedules resume",
        "Go on with a paused schedule; the runs of the pause are not missed.",
        (SCHEDULE_ID,),
        _resume,
    ),
    Verb(
        "schedules remove",
        "Delete a schedule; its tasks stay.",
        (SCHEDULE_ID, BY_CALLER),
        _remove,
    ),
    Verb(
        "schedules run-now",
        "Start a run of a schedule now; the next run stays due.",
        (SCHEDULE_ID, BY_CALLER),
        _run_now,
        accepts=True,
        faces=("mcp", "http"),
    ),
    Verb(
        "schedules run",
        "Start what is due, or one schedule now, and wait for its end.",
        (Param("schedule_id", "run this schedule now", positional=True),),
        _run,
        accepts=True,
        faces=("cli",),
    ),
)
