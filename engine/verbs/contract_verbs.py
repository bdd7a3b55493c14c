"""Verbs of contracts, envelopes and task runs (seed 001); `complete` also ends tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from engine.budgets.envelopes import PHASES
from engine.contracts.bulk_progress import POLICIES, SCOPES, BulkCompletionRefused
from engine.contracts.completing import Force, contract_link, force_of
from engine.contracts.contract_progress import contract_data, run_data
from engine.contracts.task_runs import USUAL_RUNS
from engine.model.errors import InvalidArguments, Problem
from engine.model.lifecycle import TASK_RUN
from engine.model.records import TERMINAL, Status, TaskRecord, Unreadable
from engine.verbs.model import (
    BY_CALLER,
    CALLER,
    OF_SHAPE,
    SINCE_HELP,
    TEXT,
    Caller,
    Param,
    Verb,
    object_of,
)
from engine.verbs.task_verbs import TASK_ID, known_states

if TYPE_CHECKING:
    from engine.service.engine import Engine

Given = Mapping[str, Any]
ENDS: Final = ("completed", "failed", "cancelled")


def contract_schema() -> dict[str, Any]:
    """Return the schema of a contract (seed 001), with its fields by name."""
    number, flag = dict(OF_SHAPE["number"]), dict(OF_SHAPE["flag"])
    return {
        "type": "object",
        "properties": {
            "items": {**OF_SHAPE["many"], "description": "every item that has to be done"},
            "item_key": {**TEXT, "description": "what an item is: url, row_id, …"},
            "expected_total": {**number, "description": "how many, where they have no names"},
            "min_completed": {**number, "description": "how many must at least be completed"},
            "stop_condition": {**TEXT, "description": "what ends it where no total is known"},
            "stop_satisfied": {**flag, "description": "that condition is met"},
            "failed_policy": {"type": "string", "enum": [*POLICIES]},
            "cursor": {**TEXT, "description": "where to go on"},
            "scope": {"type": "string", "enum": [*SCOPES]},
        },
    }


def _enum(values: Iterable[str]) -> dict[str, Any]:
    return {"enum": [*values]}


def asked(given: Given, whole: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Merge the fields of the JSON in `whole` and the fields given by name, which override.

    Raises:
        InvalidArguments: `whole` is no JSON object.
    """
    fields: dict[str, Any] = {}
    if given.get(whole) is not None:
        fields.update(object_of(whole, given[whole]))
    for name in names:
        value = given.get(name)
        if value is not None and value is not False and value != ():
            fields[name] = [*value] if isinstance(value, tuple) else value
    return fields


def with_reasons(fields: dict[str, Any], given: Given) -> dict[str, Any]:
    """Add the common reason to items without their own.

    Raises:
        InvalidArguments: there is none.
    """
    problems: list[Problem] = []
    for name in ("failed", "skipped", "failed_items", "skipped_items"):
        items = fields.get(name)
        if isinstance(items, list):
            reason = given.get("reason")
            if reason is None and any(isinstance(item, str) for item in items):
                message = "needs a reason: give it with --reason"
                problems.append(Problem(name, "missing", message))
            fields[name] = [
                {"item": item, "reason": reason} if isinstance(item, str) else item
                for item in items
            ]
    if problems:
        raise InvalidArguments(tuple(problems))
    return fields


async def _complete(engine: Engine, given: Given) -> Any:
    status, force = _status(given), _force(engine, given)
    named = given["include_items"]
    try:
        ended = await engine.contracts.complete(given["run_id"], status=status, force=force)
    except BulkCompletionRefused as refused:
        refused.items = await _items_of(engine, given["run_id"]) if named else {}
        raise
    if isinstance(ended, TaskRecord):
        return {"task": to_builtins(ended)}
    if named:
        ended = await asyncio.to_thread(engine.goals.runs.get, ended.run_id, include_items=True)
    return run_data(ended, include_items=named)


async def _items_of(engine: Engine, subject: str) -> dict[str, Any]:
    """Return the contract of a task run or task with its items."""
    if engine.goals.runs.has(subject):
        run = await asyncio.to_thread(engine.goals.runs.get, subject, include_items=True)
        found = run_data(run, include_items=True)
    else:
        link = contract_link(await engine.tasks.meta(subject)) or ""
        view = await asyncio.to_thread(engine.goals.contracts.get, link, include_items=True)
        found = contract_data(view, include_items=True)
    return {name: found[name] for name in ("bulk_progress_contract", "missing_items")}


def _status(given: Given) -> Status:
    word = str(given["status"] or Status.COMPLETED).upper()
    if word not in TERMINAL:
        wrong = Problem("status", "invalid_value", "must be completed, failed or cancelled")
        raise InvalidArguments((wrong,))
    return Status(word)


def _force(engine: Engine, given: Given) -> Force | None:
    if given["force"]:
        caller = given[CALLER] or Caller()
        by = given["by"] or caller.client or engine.settings.agent_id or "unknown"
        return force_of(given["reason"], by)
    if given["reason"] is not None:
        raise InvalidArguments((Problem("reason", "not_allowed", "goes with force alone"),))
    return None


async def _start_contract(engine: Engine, given: Given) -> Any:
    fields = asked(given, "contract", CONTRACT_FIELDS)
    return contract_data(await asyncio.to_thread(engine.goals.contracts.start, fields))


async def _update_contract(engine: Engine, given: Given) -> Any:
    fields = with_reasons(asked(given, "update", UPDATE_FIELDS), given)
    update = engine.goals.contracts.update
    return contract_data(await asyncio.to_thread(update, given["contract_id"], fields))


async def _show_contract(engine: Engine, given: Given) -> Any:
    named = given["include_items"]
    get = engine.goals.contracts.get
    view = await asyncio.to_thread(get, given["contract_id"], include_items=named)
    return contract_data(view, include_items=named)


async def _check_contract(engine: Engine, given: Given) -> Any:
    view = await asyncio.to_thread(engine.goals.contracts.get, given["contract_id"])
    return {"contract_id": view.contract.contract_id, "completion_guard": to_builtins(view.guard)}


async def _list_contracts(engine: Engine, given: Given) -> Any:
    views = await asyncio.to_thread(engine.goals.contracts.list)
    found = [
        to_builtins(view) if isinstance(view, Unreadable) else contract_data(view)
        for view in views[: given["limit"]]
    ]
    return {"bulk_progress_contracts": found, "count": len(found)}


CONTRACT = Param("contract_id", "the contract's id: 16 hex digits", positional=True, required=True)
NAMED = Param("include_items", "name the items, too", "flag", default=False)
WHOLE = "as a JSON object; what is given by name wins"
TERMS = (
    Param("expected_total", "how many items there are", "number"),
    Param("min_completed", "how many must at least be completed", "number"),
    Param("stop_condition", "what ends the work where no total is known"),
    Param("stop_satisfied", "that condition is met", "flag", default=False),
    Param(
        "failed_policy",
        "allow (failed items count as accounted for) or block",
        schema=_enum(POLICIES),
    ),
    Param("cursor", "where to go on"),
)
CONTRACT_FIELDS = (*(each.name for each in TERMS), "items", "item_key", "scope", "run_id")
UPDATE_FIELDS = (*(each.name for each in TERMS), "completed", "failed", "skipped")


def item_params(suffix: str = "") -> tuple[Param, ...]:
    """Return the parameters of item states, named as for contracts or task runs."""
    return (
        Param(f"completed{suffix}", "an item that is done (repeatable)", "many"),
        Param(f"failed{suffix}", "an item that failed (repeatable; with a reason)", "items"),
        Param(f"skipped{suffix}", "an item left out (repeatable; with a reason)", "items"),
        Param("reason", "why these items failed or were left out"),
    )


RUN = Param("run_id", "the task run's id: 16 hex digits", positional=True, required=True)
CURSOR = Param("current_cursor", "where to go on")
START_FIELDS = ("goal", "success_criteria", "session_id", "workflow_id", "ledger_task_ids")
RUN_ITEMS = ("completed_items", "failed_items", "skipped_items")


async def _start_run(engine: Engine, given: Given) -> Any:
    fields = asked(given, "", START_FIELDS)
    contract = None if given["contract"] is None else object_of("contract", given["contract"])
    return run_data(await asyncio.to_thread(engine.goals.runs.start, fields, contract))


async def _get_run(engine: Engine, given: Given) -> Any:
    named, get = given["include_items"], engine.goals.runs.get
    view = await asyncio.to_thread(
        get, given["run_id"], include_items=named, events=given["events"]
    )
    return run_data(view, include_items=named)


async def _list_runs(engine: Engine, given: Given) -> Any:
    status = known_states(given["status"], [*TASK_RUN.steps])
    views = await asyncio.to_thread(engine.goals.runs.list, status, given["since"], given["limit"])
    found = [
        to_builtins(view) if isinstance(view, Unreadable) else run_data(view)["task_run"]
        for view in views
    ]
    return {"task_runs": found, "count": len(found)}


def _changing(change: str, *names: str) -> Callable[[Engine, Given], Any]:
    """Build a call of the run method `change` with these fields."""

    async def call(engine: Engine, given: Given) -> Any:
        fields = with_reasons(asked(given, "update", names), given)
        view = await asyncio.to_thread(getattr(engine.goals.runs, change), given["run_id"], fields)
        return run_data(view)

    return call


async def _update(engine: Engine, given: Given) -> Any:
    return await engine.contracts.update(given["task_id"], phase=given["phase"], note=given["note"])


async def _finish(engine: Engine, given: Given) -> Any:
    return await engine.contracts.finish(given["task_id"], given["outcome"], note=given["note"])


VERBS: tuple[Verb, ...] = (
    Verb(
        "update",
        "Say in which phase an envelope is, or leave a note; nothing is executed.",
        (
            TASK_ID,
            Param("phase", "explore, act, verify, recover or done", schema=_enum(PHASES)),
            Param("note", "a note; its first 500 characters are kept"),
        ),
        _update,
    ),
    Verb(
        "finish",
        "End an envelope permanently.",
        (
            TASK_ID,
            Param("outcome", "completed, failed or cancelled", required=True, schema=_enum(ENDS)),
            Param("note", "the final note; its first 500 characters are kept"),
        ),
        _finish,
    ),
    Verb(
        "complete",
        "Call a task run, an envelope or a running crawl complete, if its contract allows.",
        (
            Param("run_id", "the task run's or the task's id", positional=True, required=True),
            Param(
                "status", "completed, failed or cancelled", default="completed", schema=_enum(ENDS)
            ),
            Param("force", "overrule the guard; needs a reason, which is kept", "flag"),
            Param("reason", "why it is forced (at least 10 characters)"),
            Param("by", "who forces it"),
            NAMED,
            BY_CALLER,
        ),
        _complete,
    ),
    Verb(
        "contract start",
        "Create a contract: what a repetitive task must do before it is complete.",
        (
            *TERMS,
            Param("items", "an item to process (repeatable)", "many"),
            Param("item_key", "what an item is: url, row_id, …"),
            Param("scope", "task_run, workflow, batch or crawl", schema=_enum(SCOPES)),
            Param("run_id", "the task run that it is for"),
            Param("contract", f"the whole contract {WHOLE}", "json"),
        ),
        _start_contract,
    ),
    Verb(
        "contract update",
        "Record items as completed, failed or skipped, and where to go on.",
        (CONTRACT, *item_params(), *TERMS, Param("update", f"the whole update {WHOLE}", "json")),
        _update_contract,
    ),
    Verb(
        "contract check",
        "Check the contract: is the work complete? (Exit code 5: not yet.)",
        (CONTRACT,),
        _check_contract,
    ),
    Verb("contract show", "Show a contract with its counts.", (CONTRACT, NAMED), _show_contract),
    Verb(
        "contract list",
        "List contracts, newest first.",
        (Param("limit", "maximum number", "number", default=50),),
        _list_contracts,
    ),
    Verb(
        "task-run start",
        "Begin a task run: a goal, with a contract if it is repetitive.",
        (
            Param("goal", "what is to be reached", bare=True),
            Param("success_criteria", "a success criterion (repeatable)", "many"),
            Param("session_id", "the session that it belongs to"),
            Param("workflow_id", "the workflow that it belongs to"),
            Param("ledger_task_ids", "a task that works for it (repeatable)", "many"),
            Param("contract", "its contract as a JSON object", "json", schema=contract_schema()),
        ),
        _start_run,
    ),
    Verb(
        "task-run get",
        "Show a task run with its counts and what its guard says.",
        (RUN, NAMED, Param("events", "also its events", "flag", default=False)),
        _get_run,
    ),
    Verb(
        "task-run list",
        "List task runs, newest first.",
        (
            Param("status", "only this status (repeatable)", "many"),
            Param("since", SINCE_HELP, "time"),
            Param("limit", "maximum number (1 to 200)", "number", default=USUAL_RUNS),
        ),
        _list_runs,
    ),
    Verb(
        "task-run update",
        "Record progress of a task run, or let it go on after it asked for help.",
        (
            RUN,
            Param("progress_summary", "how far it is, in words"),
            *item_params("_items"),
            CURSOR,
            Param("status", "RUNNING: go on after help came (with a resume reason)"),
            Param("resume_reason", "what has changed, so that it can go on"),
            Param("ledger_task_ids", "a task that works for it (repeatable)", "many"),
            Param("workflow_id", "the workflow that it belongs to"),
            Param("update", f"the whole update {WHOLE}", "json"),
        ),
        _changing(
            *("update", "progress_summary", *RUN_ITEMS, "current_cursor", "status"),
            *("resume_reason", "ledger_task_ids", "workflow_id"),
        ),
    ),
    Verb(
        "task-run checkpoint",
        "Put down where a task run stands.",
        (
            RUN,
            Param("summary", "where it stands, in words"),
            CURSOR,
            Param("update", f"the whole checkpoint {WHOLE}", "json"),
        ),
        _changing("checkpoint", "summary", "current_cursor"),
    ),
    Verb(
        "task-run needs-help",
        "Say that a person must act before a task run can go on.",
        (
            RUN,
            Param("reason", "what a person has to do"),
            Param("resume_hint", "how to go on afterwards"),
            CURSOR,
            Param("update", f"the whole call {WHOLE}", "json"),
        ),
        _changing("needs_help", "reason", "resume_hint", "current_cursor"),
    ),
)
