"""Answers of verbs as JSON data, for `--json`, MCP and HTTP."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine.budgets import has_budget
from engine.contracts.bulk_progress import BulkCompletionRefused
from engine.ledger.machine import wall_ms
from engine.model import redact
from engine.model.display import elide_right
from engine.model.errors import EngineError, InvalidArguments, QueryError
from engine.model.records import Hold, TaskRecord, TaskView, Unreadable
from engine.model.status import standing, updated_at
from engine.service.stop_plan import Fate, Plan, Stopped
from engine.verbs.model import TaskPage

if TYPE_CHECKING:
    from engine.service.engine import Engine

Data = dict[str, Any]


def view_data(view: TaskView, whole: Mapping[str, Any] | None = None) -> Data:
    """Encode a task: its record, and derived values under `view`.

    `whole` is its meta.json with unknown fields, where it was requested.
    """
    updated = updated_at(view)
    derived: Data = {
        "standing": standing(view).value,
        "orphaned": view.orphaned,
        "foreign": view.foreign,
        "locked": view.locked,
        "away": view.away,
        "stale": view.stale,
        "undriven": view.undriven,
        # As the times of meta.json: readers with strict types take no 1763773200123.0.
        "updated_at": None if updated is None else int(updated),
    }
    if isinstance(view.entry, TaskRecord) and view.entry.budget_status is not None:
        from engine.query.attention_reasons import budget_at  # few tasks have budgets

        derived["budget_status"] = budget_at(view.entry, wall_ms())
    if view.units is not None:
        derived["units"] = msgspec.to_builtins(view.units)
    record = (
        msgspec.to_builtins(view.entry) if whole is None else {**whole, "task_id": view.task_id}
    )
    if "args_summary" in record:  # another program may have stored a token in an address
        record["args_summary"] = redact.value(record["args_summary"])
    return {**record, "view": derived}


BRIEF_CHARS: Final = 200  # of one text of a brief task
_MOST_PATH: Final = 4_096  # a path that is cut leads nowhere
_BRIEF_RECORD: Final = (
    *("task_id", "kind", "status", "pid", "created_at", "started_at", "ended_at"),
    *("cancel_requested_at", "result_path", "objective", "phase", "budget_status"),
    *("budget_exceeded", "recommended_next", "reason"),
)
_BRIEF_ENGINE: Final = ("name", "client", "command_task_id", "parent_task_id", "schedule")


def brief(task: Data) -> Data:
    """Shorten an encoded task to what one needs to choose it from a list.

    Every field keeps its name and place, and those of the contract are all there; `args_summary`
    has only the address, and the texts that name the task. An agent pays for each byte, and reads
    the rest of one task with its id.
    """
    from engine.query.subject import SAID, address_in  # most answers list no tasks

    args = task.get("args_summary") or {}
    short = {name: args[name] for name in SAID if isinstance(args.get(name), str)}
    url = address_in(args) or args.get("url")
    if isinstance(url, str) and url:
        short["url"] = url
    ours, view = task.get("engine") or {}, task["view"]
    parts = {
        "error": _cut(task.get("error") or {}),
        "engine": _cut({name: ours[name] for name in _BRIEF_ENGINE if ours.get(name)}),
        "view": {name: value for name, value in view.items() if value is not False},
    }
    record = _cut({name: task[name] for name in _BRIEF_RECORD if name in task})
    if "reason" not in task:  # of one that cannot be read
        record["args_summary"] = _cut(short)
    return record | {name: part for name, part in parts.items() if part}


def _cut(texts: Data) -> Data:
    most = {"result_path": _MOST_PATH}
    return {
        name: elide_right(value, most.get(name, BRIEF_CHARS)) if isinstance(value, str) else value
        for name, value in texts.items()
    }


def described(error: EngineError) -> Data:
    """Encode an error with the code and sentences that users see."""
    found: Data = {"code": error.code, "title": error.title, "message": str(error)}
    if error.advice:
        found["advice"] = error.advice
    if fields := {name: one for name, one in error.fields.items() if _is_plain(name, one)}:
        found["fields"] = fields
    if isinstance(error, QueryError):
        found["position"] = error.position
        found["mistakes"] = [
            {"code": each.code, "position": each.position, "message": str(each)}
            for each in error.all
        ]
    if isinstance(error, BulkCompletionRefused):
        found.update(error.data())
    if isinstance(error, InvalidArguments):
        found["problems"] = [
            {"path": each.path, "code": each.code, "message": each.message}
            for each in error.problems
        ]
    return found


def _is_plain(name: str, value: object) -> bool:
    """Return whether a field is a value of its own; `message` is the sentence itself."""
    return name != "message" and isinstance(value, str | int | float | bool | None)


def described_for_programs(error: EngineError, names: Mapping[str, str]) -> Data:
    """Encode an error as `described`, with arguments (`timeout_ms`) instead of options.

    `names` has the face's names of operations, by verb.
    """
    error.name_step(names)
    found = described(error)
    for name in ("message", "advice"):
        if name in found:
            found[name] = _OPTION.sub(_as_argument, found[name])
    for problem in found.get("problems", ()):
        problem["message"] = _OPTION.sub(_as_argument, problem["message"])
    return found


_OPTION: Final = re.compile(r"--(timeout-ms|all-matching|dry-run|yes|reason|force|status|limit)\b")


def _as_argument(option: re.Match[str]) -> str:
    return option[1].replace("-", "_")


def tasks_data(page: TaskPage, hold: Hold | None = None) -> Data:
    """Encode a list of tasks with their number, and the hold that keeps waiting ones.

    `more`: the list ends at its limit, and more tasks match.
    """
    tasks = [view_data(view) for view in page.views]
    found: Data = {"tasks": tasks, "count": len(tasks), "more": page.more}
    return found if hold is None else {**found, "hold": msgspec.to_builtins(hold)}


def plan_data(plan: Plan) -> Data:
    """Encode the plan of a cancel: task ids by effect, and their numbers."""
    ids = {fate.value: [view.task_id for view in plan.of(fate)] for fate in Fate}
    counts = {name: len(found) for name, found in ids.items()}
    return {"dry_run": True, "counts": counts, "ids": ids}


def changed_data(views: Sequence[TaskView], refused: Sequence[EngineError]) -> Data:
    """Encode changed tasks, and the errors of refused changes."""
    return {
        "tasks": [view_data(view) for view in views],
        "refused": [described(error) for error in refused],
    }


async def task_data(engine: Engine, view: TaskView) -> Data:
    """Encode one task with everything in its meta.json, its budgets and its contract."""
    readable = not isinstance(view.entry, Unreadable)
    whole = await engine.tasks.meta(view.task_id) if readable else None
    return {**view_data(view, whole), **await task_facts(engine, view, whole or {})}


async def task_facts(engine: Engine, view: TaskView, whole: Mapping[str, Any]) -> Data:
    """Return a task's `envelope`, and its contract as in `contract show`, where it has them."""
    record, found = view.entry, Data()
    if not isinstance(record, TaskRecord):
        return found
    budgets = await engine.contracts.budgets(view.task_id) if has_budget(whole) else None
    if budgets is not None:
        found["envelope"] = msgspec.to_builtins(budgets)
    link = record.engine.contract_id if record.engine is not None else None
    if link:
        from engine.contracts.contract_progress import contract_data  # most tasks have none

        with suppress(EngineError):  # `contract show` reports the error
            found |= contract_data(await asyncio.to_thread(engine.goals.contracts.get, link))
    return found


async def answer_data(engine: Engine, name: str, answer: Any) -> Any:
    """Encode the return value of the verb `name`."""
    encode = ENCODERS.get(name)
    return msgspec.to_builtins(answer) if encode is None else await encode(engine, answer)


async def brief_answer_data(engine: Engine, name: str, answer: Any) -> Any:
    """As `answer_data`, with each task of an answer that may have many shortened."""
    data = await answer_data(engine, name, answer)
    if name in _OF_MANY and "tasks" in data:
        data["tasks"] = [brief(task) for task in data["tasks"]]
    return data


async def _listed(engine: Engine, page: TaskPage) -> Data:
    return tasks_data(page, await engine.start_hold.read())


async def _current(engine: Engine, record: TaskRecord) -> Data:
    return view_data(await engine.tasks.get(record.task_id))


async def _stopped(engine: Engine, answer: Plan | Stopped) -> Data:
    if isinstance(answer, Plan):
        return plan_data(answer)
    return await _changed(engine, answer.records, answer.refused)


async def _reaped(engine: Engine, records: Sequence[TaskRecord]) -> Data:
    return await _changed(engine, records, engine.commands.unreaped)


async def _changed(
    engine: Engine, records: Sequence[TaskRecord], refused: Sequence[EngineError]
) -> Data:
    views = [await engine.tasks.get(record.task_id) for record in records]
    return changed_data(views, refused)


async def _runs(engine: Engine, found: Sequence[Data]) -> Data:
    return {"runs": [*found], "count": len(found)}


_OF_MANY: Final = ("list", "cancel", "reap")
ENCODERS: Final[Mapping[str, Callable[[Engine, Any], Awaitable[Any]]]] = {
    "list": _listed,
    "get": task_data,
    "cancel": _stopped,
    "reap": _reaped,
    "runs list": _runs,
    **dict.fromkeys(("start", "wait", "update", "finish", "rerun", "retry", "resume"), _current),
    "schedules run-now": _current,
}
