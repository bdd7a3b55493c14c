"""Table of all verbs; the browser tools of host agents are verbs made from their own table.

These are not for the command line: each also takes the id of the task whose envelope counts the
call, and the agent id, and returns a `ToolReply`, also for errors.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from engine.agents.reply import refusal
from engine.agents.tool_calls import TOOLS, Tool
from engine.model.errors import InvalidArguments, Problem, TaskNotFound
from engine.verbs import (
    contract_verbs,
    hold_verbs,
    profile_verbs,
    program_verbs,
    result_verbs,
    run_verbs,
    schedule_verbs,
    task_verbs,
)
from engine.verbs.model import BY_CALLER, CALLER, CHECKS, Param, Verb, checked
from engine.verbs.schemas import reading_schema

if TYPE_CHECKING:
    from engine.service.engine import Engine

MOST_ID: Final = 200  # characters of an agent's id
_TASK_ID = Param("task_id", "id of the envelope that counts it")
_AGENT_ID = Param("agent_id", "which browser of this client; by default its own")
_OURS = frozenset({_TASK_ID.name, _AGENT_ID.name, CALLER})


def _calling(tool: Tool) -> Callable[[Engine, Mapping[str, Any]], Awaitable[Any]]:
    async def call(engine: Engine, given: Mapping[str, Any]) -> Any:
        problems = tuple(_problems(given))
        if problems:
            return refusal(InvalidArguments(problems))
        args = {name: value for name, value in given.items() if name not in _OURS}
        caller = given.get(CALLER)
        agent_id = _agent(given.get("agent_id"), caller.client if caller else None)
        task_id = await _folder(engine, given.get("task_id"))
        return await engine.agents.answer(tool.name, args, task_id=task_id, agent_id=agent_id)

    return call


def _problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the mistakes in the parameters that every browser tool has; the tool checks its own."""
    for param in (_TASK_ID, _AGENT_ID):
        value = given.get(param.name)
        if value is None:
            continue
        if found := CHECKS[param.shape](value):
            yield Problem(param.name, *found)
        elif len(value) > MOST_ID:
            yield Problem(param.name, "too_long", f"must be at most {MOST_ID} characters")


def _agent(agent_id: str | None, client: str | None) -> str | None:
    """Return whose browser it is: an agent's id belongs to its client, which others cannot name."""
    if agent_id is None or client is None or agent_id == client:
        return agent_id or client
    return f"{client}/{agent_id}"


async def _folder(engine: Engine, task_id: str | None) -> str | None:
    """Return the id of the task's folder; an unknown id passes, and the reply reports it."""
    if task_id is None:
        return None
    with suppress(TaskNotFound):
        return await engine.tasks.ledger_id(task_id)
    return task_id


def _verb(tool: Tool) -> Verb:
    params = [
        Param(
            arg.name,
            arg.help,
            arg.shape,
            required=arg.required,
            default=arg.default,
            schema=reading_schema(arg.read),
        )
        for arg in tool.args
    ]
    asked = (*params, _TASK_ID, _AGENT_ID, BY_CALLER)
    return Verb(tool.name, tool.help, asked, _calling(tool), accepts=True, faces=("mcp",))


ROOMS = (
    *(task_verbs, hold_verbs, profile_verbs, program_verbs, result_verbs, run_verbs),
    *(contract_verbs, schedule_verbs),
)
VERBS: dict[str, Verb] = {
    **{verb.name: checked(verb) for room in ROOMS for verb in room.VERBS},
    **{name: _verb(tool) for name, tool in TOOLS.items()},  # they return errors as a reply
}
