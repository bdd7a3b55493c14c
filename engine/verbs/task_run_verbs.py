"""Verbs of task runs (seed 001)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import to_builtins

from engine.contracts.contract_progress import run_data
from engine.contracts.task_runs import USUAL_RUNS
from engine.model.records import Unreadable
from engine.service.engine import Engine
from engine.verbs.contract_verbs import (
    NAMED,
    WHOLE,
    Given,
    asked,
    item_params,
    object_of,
    with_reasons,
)
from engine.verbs.model import Param, Verb

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
    status = [word.upper() for word in given["status"]]
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


VERBS: tuple[Verb, ...] = (
    Verb(
        "task-run start",
        "Begin a task run: a goal, with a contract if it is repetitive.",
        (
            Param("goal", "what is to be reached", bare=True),
            Param("success_criteria", "how one sees that it is (again for more)", "many"),
            Param("session_id", "the session that it belongs to"),
            Param("workflow_id", "the workflow that it belongs to"),
            Param("ledger_task_ids", "a task that works for it (again for more)", "many"),
            Param("contract", "its contract as a JSON object", "json"),
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
            Param("status", "only this status (again for more)", "many"),
            Param("since", "created at or after this time, ms since 1970", "number"),
            Param("limit", "at most so many (1 to 200)", "number", default=USUAL_RUNS),
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
            Param("ledger_task_ids", "a task that works for it (again for more)", "many"),
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
