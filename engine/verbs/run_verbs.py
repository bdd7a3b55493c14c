"""Verbs of runs: the six operations of seed 003, and a list. Replies have its field names."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.contracts.run_store import Run, envelope
from engine.model.lifecycle import RUN
from engine.verbs.model import BY_CALLER, CALLER, Caller, Param, Verb, object_of
from engine.verbs.task_verbs import known_states

if TYPE_CHECKING:
    from engine.service.engine import Engine

RUN_ID = Param("run_id", "the run's id", positional=True, required=True)
REASON = Param("reason", "why, kept in the run")
FACTS = (
    Param("tab_group_id", "the tab group it works in"),
    Param("audit_session_id", "the audit session it is linked to"),
    Param("workflow_id", "the workflow it belongs to"),
    Param("metadata", "a JSON object, laid over what is there", "json"),
)


async def _list(engine: Engine, given: Mapping[str, Any]) -> Any:
    status = known_states(given["status"], [*RUN.steps])
    found = await asyncio.to_thread(engine.runs.list_runs, status=status, limit=given["limit"])
    return [envelope(run) for run in found]


async def _show(engine: Engine, given: Mapping[str, Any]) -> Any:
    return envelope(await asyncio.to_thread(engine.runs.known_run, given["run_id"]))


async def _start(engine: Engine, given: Mapping[str, Any]) -> Any:
    caller = given[CALLER] or Caller()

    def start() -> Run:
        return engine.runs.start_run(
            given["task_thread_id"],
            run_id=given["run_id"],
            deferred=bool(given["deferred"]),
            agent_id=given["agent_id"],
            route=caller.route,
            **_facts(given),
        )

    return envelope(await asyncio.to_thread(start))


async def _update(engine: Engine, given: Mapping[str, Any]) -> Any:
    def update() -> Run:
        return engine.runs.update_run(given["run_id"], **_facts(given))

    return envelope(await asyncio.to_thread(update))


async def _complete(engine: Engine, given: Mapping[str, Any]) -> Any:
    await engine.commands.by_hand(given["run_id"])
    return envelope(await asyncio.to_thread(engine.runs.complete_run, given["run_id"]))


async def _abort(engine: Engine, given: Mapping[str, Any]) -> Any:
    await engine.commands.by_hand(given["run_id"])
    run = await asyncio.to_thread(engine.runs.abort_run, given["run_id"], given["reason"])
    return envelope(run)


async def _fail(engine: Engine, given: Mapping[str, Any]) -> Any:
    await engine.commands.by_hand(given["run_id"])
    run = await asyncio.to_thread(engine.runs.fail_run, given["run_id"], given["reason"])
    return envelope(run)


def _facts(given: Mapping[str, Any]) -> Any:
    found = {param.name: given[param.name] for param in FACTS if given[param.name] is not None}
    if "metadata" in found:
        found["metadata"] = object_of("metadata", found["metadata"])
    return found


VERBS: tuple[Verb, ...] = (
    Verb(
        "runs list",
        "List runs, newest first.",
        (
            Param("status", "only this status (repeatable)", "many"),
            Param("limit", "maximum number", "number", default=50),
        ),
        _list,
    ),
    Verb("runs show", "Show one run.", (RUN_ID,), _show),
    Verb(
        "runs start",
        "Register a run of your own, or start one that is pending.",
        (
            Param(
                "task_thread_id", "the task thread it belongs to", positional=True, required=True
            ),
            Param("run_id", "its id; a new one without it"),
            Param("deferred", "leave it pending", "flag", default=False),
            Param("agent_id", "the agent it runs for"),
            *FACTS,
            BY_CALLER,
        ),
        _start,
    ),
    Verb("runs update", "Add to a running run; its state stays.", (RUN_ID, *FACTS), _update),
    Verb("runs complete", "End a run well.", (RUN_ID,), _complete),
    Verb("runs abort", "End a run on purpose.", (RUN_ID, REASON), _abort),
    Verb(
        "runs fail",
        "End a run with what went wrong.",
        (RUN_ID, Param("reason", "what went wrong", required=True)),
        _fail,
    ),
)
