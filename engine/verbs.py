"""The verbs that every face offers: name, what it asks for, and the call. Faces only render.

A verb's `call` gets an open engine and the request's values by name, and returns records;
`accepts` says whether the engine has to be one that takes tasks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from engine.service import Engine

Shape = Literal["text", "number", "flag", "many"]


@dataclass(frozen=True, slots=True)
class Param:
    """One value that a verb asks for. `positional` ones come without a name on a command line."""

    name: str
    help: str
    shape: Shape = "text"
    positional: bool = False
    required: bool = False
    default: Any = None


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing that can be asked of the engine."""

    name: str
    help: str
    params: tuple[Param, ...]
    call: Callable[[Engine, Mapping[str, Any]], Awaitable[Any]]
    accepts: bool = False


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


VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
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
}
