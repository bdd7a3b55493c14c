"""The verbs of tasks: list, get, cancel, wait, reap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.service import Engine
from engine.verbs.model import Param, Verb

TASK_ID = Param("task_id", "the task's id: 16 hex digits", positional=True, required=True)
TASK_IDS = Param("task_ids", "one or more task ids", "many", positional=True, required=True)


async def _list(engine: Engine, given: Mapping[str, Any]) -> Any:
    status = [word.upper() for word in given["status"]]  # as the list shows them, too
    return await engine.list(
        status=status, kind=given["kind"], since=given["since"], limit=given["limit"]
    )


async def _get(engine: Engine, given: Mapping[str, Any]) -> Any:
    return await engine.get(given["task_id"])


async def _cancel(engine: Engine, given: Mapping[str, Any]) -> Any:
    return [await engine.cancel(task_id, given["reason"]) for task_id in given["task_ids"]]


async def _wait(engine: Engine, given: Mapping[str, Any]) -> Any:
    return await engine.wait(given["task_id"], given["timeout_ms"])


async def _reap(engine: Engine, given: Mapping[str, Any]) -> Any:
    return [*engine.reaped, *await engine.reap()]  # opening an accepting engine reaps already


VERBS: tuple[Verb, ...] = (
    Verb(
        "list",
        "List tasks, newest first.",
        (
            Param("status", "only this status (again for more)", "many"),
            Param("kind", "only this kind (again for more)", "many"),
            Param("since", "created at or after this time, ms since 1970", "number"),
            Param("limit", "at most so many", "number", default=50),
        ),
        _list,
    ),
    Verb(
        "get",
        "Show one task.",
        (
            TASK_ID,
            Param("result", "also its result", "flag", default=False),
            Param("events", "also its events", "flag", default=False),
        ),
        _get,
    ),
    Verb(
        "cancel",
        "Ask tasks to stop; what they have finished is kept.",
        (TASK_IDS, Param("reason", "why, kept in the task's events")),
        _cancel,
    ),
    Verb(
        "wait",
        "Wait until a task has ended.",
        (TASK_ID, Param("timeout_ms", "give up after so many ms", "number", default=60_000)),
        _wait,
    ),
    Verb("reap", "End what dead processes left behind.", (), _reap, accepts=True),
)
