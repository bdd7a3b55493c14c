"""Verbs of tasks: list, get, cancel, wait, rerun, retry, resume, reap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine.model.errors import InvalidArguments, Problem
from engine.model.kind_traits import kind_of_word, offered_kinds
from engine.model.records import Status
from engine.service.stop_plan import NotConfirmed, Plan, Stopped, answers, plan
from engine.verbs.model import (
    BY_CALLER,
    CALLER,
    SINCE_HELP,
    Caller,
    Param,
    TaskPage,
    Verb,
    object_of,
)

if TYPE_CHECKING:
    from engine.service.engine import Engine

TASK_ID = Param("task_id", "the task's id: 16 hex digits", positional=True, required=True)
TASK_IDS = Param("task_ids", "one or more task ids", "many", positional=True)
STATUSES = {"items": {"type": "string", "enum": [*map(str, Status)]}}
VARIABLES = Param("variables", "names and values that its commands need, kept nowhere", "json")
QUERY_HELP = "in the filter language, as in 'status:failed host:example.com age:<1h \"timeout\"'"


_QUOTED = "for one of another program use a query, as in 'kind:\"crawls\"'"


async def _list(engine: Engine, given: Mapping[str, Any]) -> TaskPage:
    status, limit = known_states(given["status"], [*map(str, Status)]), given["limit"]
    found = await engine.tasks.list(
        status=status,
        kind=known_kinds(given["kind"]),
        since=given["since"],
        query=given["query"] or "",
        limit=limit + 1,  # the last one shows that there are more
    )
    return TaskPage(found[:limit], len(found) > limit)


def known_states(given: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the states in the spelling of `known`, which ignores case.

    Raises:
        InvalidArguments: with every word that is none of them.
    """
    spelt = {word.casefold(): word for word in known}
    problems = tuple(
        Problem("status", "unknown_status", f"'{word}' is no state (there are: {', '.join(known)})")
        for word in given
        if word.casefold() not in spelt
    )
    if problems:
        raise InvalidArguments(problems)
    return [spelt[word.casefold()] for word in given]


def known_kinds(given: Sequence[str]) -> list[str]:
    """Return the stored names of kinds, each given by a word as in a query.

    Raises:
        InvalidArguments: with every word that is a likely slip.
    """
    found = {word: kind_of_word(word) for word in given}
    there = ", ".join(offered_kinds())
    problems = tuple(
        Problem("kind", "unknown_kind", f"'{word}' is no kind (there are: {there}; {_QUOTED})")
        for word, kind in found.items()
        if kind is None
    )
    if problems:
        raise InvalidArguments(problems)
    return [kind for kind in found.values() if kind is not None]


async def _get(engine: Engine, given: Mapping[str, Any]) -> Any:
    return await engine.tasks.get(given["task_id"])


async def _cancel(engine: Engine, given: Mapping[str, Any]) -> Plan | Stopped:
    """Return the plan (`dry_run`), or the result of the cancel requests."""
    task_ids, query = given["task_ids"], given["all_matching"]
    problem = choice_problem(task_ids, query)
    if problem is not None:
        raise InvalidArguments((problem,))
    if query is None and not given["dry_run"]:
        return await engine.commands.cancel_all(task_ids, given["reason"])
    if query is None:
        views = [await engine.tasks.get(task_id) for task_id in task_ids]
    else:
        views = await engine.tasks.list(query=query, limit=None)
    chosen = plan(views, answers)
    if given["dry_run"]:
        return chosen
    if chosen.ids and not given["yes"]:
        raise NotConfirmed(number=len(chosen.ids))
    return await engine.commands.cancel_all(chosen.ids, given["reason"])


def choice_problem(task_ids: Sequence[str], query: str | None) -> Problem | None:
    """Require either ids or a non-empty query, which by mistake would match every task."""
    if query is not None and task_ids:
        return Problem("all_matching", "one_of_two", "give either ids or a query, not both")
    if query is None and not task_ids:
        return Problem("task_ids", "missing", "give the ids of tasks, or --all-matching QUERY")
    if query is not None and not query.strip():
        return Problem(
            "all_matching", "empty", "must not be empty; status:live means all that live"
        )
    return None


async def _wait(engine: Engine, given: Mapping[str, Any]) -> Any:
    return await engine.tasks.wait(given["task_id"], given["timeout_ms"])


def _variables(given: Mapping[str, Any]) -> dict[str, Any]:
    values = given["variables"]
    return {} if values is None else object_of("variables", values)


async def _rerun(engine: Engine, given: Mapping[str, Any]) -> Any:
    caller = given[CALLER] or Caller()
    return await engine.requests.rerun(
        given["task_id"], _variables(given), client=caller.client, route=caller.route
    )


async def _retry(engine: Engine, given: Mapping[str, Any]) -> Any:
    caller = given[CALLER] or Caller()
    return await engine.requests.retry(
        given["task_id"], _variables(given), client=caller.client, route=caller.route
    )


async def _resume(engine: Engine, given: Mapping[str, Any]) -> Any:
    caller, pages = given[CALLER] or Caller(), given["max_pages"]
    changes = {} if pages is None else {"max_pages": pages}
    return await engine.requests.resume(
        given["task_id"], changes=changes, client=caller.client, route=caller.route
    )


async def _reap(engine: Engine, given: Mapping[str, Any]) -> Any:
    # Opening an accepting engine already reaps.
    return [
        *engine.reaped,
        *await engine.commands.reap(),
        *await engine.commands.settled(),
    ]


VERBS: tuple[Verb, ...] = (
    Verb(
        "list",
        "List tasks, newest first.",
        (
            Param("status", "only this status (repeatable)", "many", schema=STATUSES),
            Param("kind", "only this kind, such as crawl or sitemap (repeatable)", "many"),
            Param("since", SINCE_HELP, "time"),
            Param("query", QUERY_HELP),
            Param("limit", "maximum number", "number", default=50),
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
        (
            TASK_IDS,
            Param("all_matching", "all that match a query, " + QUERY_HELP),
            Param("dry_run", "only show what would happen to which", "flag", default=False),
            Param("yes", "do not ask; the query means these tasks", "flag", default=False),
            Param("reason", "why, kept in the task's events"),
        ),
        _cancel,
    ),
    Verb(
        "wait",
        "Wait until a task has ended.",
        (TASK_ID, Param("timeout_ms", "give up after so many ms", "number", default=60_000)),
        _wait,
    ),
    Verb(
        "rerun",
        "Start a task's request once more, as a new task.",
        (TASK_ID, VARIABLES, BY_CALLER),
        _rerun,
        accepts=True,
        faces=("mcp", "http"),  # the command line shows its progress, see cli.rerun
    ),
    Verb(
        "retry",
        "Start a new task over the failed or missing pages, or commands, of an ended one.",
        (TASK_ID, VARIABLES, BY_CALLER),
        _retry,
        accepts=True,
        faces=("mcp", "http"),  # as `rerun`
    ),
    Verb(
        "resume",
        "Start a new crawl that keeps the pages of a stopped one and goes on from there.",
        (
            TASK_ID,
            Param("max_pages", "another maximum of pages, those that are kept included", "number"),
            BY_CALLER,
        ),
        _resume,
        accepts=True,
        faces=("mcp", "http"),  # as `rerun`
    ),
    Verb("reap", "End what dead processes left behind.", (), _reap, accepts=True),
)
