"""Verbs for programs alone (MCP and HTTP): start a task, submit a command task, read in parts.

The command line has commands of its own for them, which show progress and stream whole results.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine.kinds.arguments import PASSWORDS
from engine.kinds.traits import COMMANDS_TRAITS
from engine.model.errors import EngineError, InvalidArguments, Problem
from engine.model.records import ARTIFACTS_NAME, ENVELOPE, TaskRecord, TaskView
from engine.results.file_reader import FileFacts
from engine.service.admission import Terms
from engine.service.stop_plan import Stopped
from engine.verbs import schemas
from engine.verbs.contract_verbs import contract_schema
from engine.verbs.json_answers import task_data
from engine.verbs.model import BY_CALLER, CALLER, Caller, Param, Verb, object_of
from engine.verbs.task_verbs import TASK_ID

if TYPE_CHECKING:
    from engine.service.engine import Engine

MOST_UNITS: Final = 1_000
LEAST_BYTES: Final = 1_000
MOST_BYTES: Final = 1024 * 1024
USUAL_BYTES: Final = 64 * 1024  # about 16,000 tokens: a host reads it whole
MOST_FILE_BYTES: Final = 8 * 1024 * 1024
MEDIA_TYPES: Final[Mapping[str, str]] = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "json": "application/json",
    "gz": "application/gzip",
    "zip": "application/zip",
}
SETTLE_MS: Final = 2_000
MOST_SETTLED: Final = 20

Given = Mapping[str, Any]
TERMS: Final = (
    Param("objective", "the objective; without a kind it opens a browser_task"),
    Param("phase", "where a browser_task begins", schema=schemas.PHASE),
    Param("policy", "budgets of the task", "json", schema=schemas.policy_schema()),
    Param("enforce", "end the task when it exceeds a budget", "flag", default=False),
    Param(
        "contract",
        "what must be done before it is complete",
        "json",
        schema=contract_schema(),
    ),
    Param("name", "a name for the list"),
    Param("metadata", "any object; it is returned unchanged", "json"),
    Param("task_run_id", "the task run that it works for"),
    Param("task_thread_id", "the task thread that it belongs to"),
    Param("workflow_id", "the workflow that it belongs to"),
    Param("agent_id", "the agent that it runs for"),
)
_OBJECTS: Final = ("policy", "contract", "metadata")
_OWN_PATHS: Final = frozenset({"kind", "args", *(param.name for param in TERMS)})
SECRET_NAME: Final = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def with_references(args: dict[str, Any]) -> dict[str, Any]:
    """Convert passwords `env:NAME` to references, as `octask start --password env:NAME`."""
    found = dict(args)
    for name in PASSWORDS:
        if isinstance(secret := args.get(name), str) and SECRET_NAME.fullmatch(secret):
            found[name] = {"secret": secret}
    return found


async def _start(engine: Engine, given: Given) -> TaskRecord:
    kind = given["kind"] or (ENVELOPE if given["objective"] else None)
    if kind is None:
        wrong = Problem("kind", "missing", "is needed: what to run, such as crawl")
        raise InvalidArguments((wrong,))
    args = {} if given["args"] is None else object_of("args", given["args"])
    terms = _terms(given)
    args = with_references(args)
    if kind == schemas.SNAPSHOT and terms.objective is not None:
        args.setdefault("objective", terms.objective)
    try:
        return await engine.requests.start(kind, args, name=given["name"], terms=terms)
    except InvalidArguments as error:
        raise InvalidArguments(tuple(map(_placed, error.problems))) from None


def _placed(problem: Problem) -> Problem:
    """Return the problem of an argument with the path that the request has."""
    if problem.path.split(".")[0].split("[")[0] in _OWN_PATHS:
        return problem
    path = f"args.{problem.path}" if problem.path else "args"
    return Problem(path, problem.code, problem.message)


def _terms(given: Given) -> Terms:
    fields = {param.name: given[param.name] for param in TERMS if param.name != "name"}
    for name in _OBJECTS:
        if fields[name] is not None:
            fields[name] = object_of(name, fields[name])
    caller = given[CALLER] or Caller()
    return Terms(**fields, client=caller.client, route=caller.route)


async def settled(engine: Engine, stopped: Stopped) -> None:
    """Wait until stopped tasks have ended, as far as they do within two seconds (seed 000)."""
    waits = (
        engine.tasks.wait(record.task_id, SETTLE_MS)
        for record in stopped.records[:MOST_SETTLED]
        if not record.is_terminal
    )
    await asyncio.gather(*waits, return_exceptions=True)


async def _submit(engine: Engine, given: Given) -> dict[str, Any]:
    task = object_of("task", given["task"])
    caller = given[CALLER] or Caller()
    terms = Terms(client=caller.client, route=caller.route, agent_id=given["agent_id"])
    record = await engine.requests.start(COMMANDS_TRAITS.name, task, terms=terms)
    return await _command_task(engine, record.task_id, results=False)


async def _status(engine: Engine, given: Given) -> dict[str, Any]:
    return await _command_task(engine, given["task_id"], results=given["results"])


async def _command_task(engine: Engine, task_id: str, *, results: bool) -> dict[str, Any]:
    task = await engine.tasks.command_task(task_id, results=results)
    if task is None:
        message = "is no command task; oc_task_get shows tasks of every kind"
        raise InvalidArguments((Problem("task_id", "wrong_kind", message),))
    return {"task": task}


async def _read(engine: Engine, given: Given) -> dict[str, Any]:
    view = await engine.tasks.get(given["task_id"])
    found = await task_data(engine, view)
    if given["result"]:
        found |= await result_data(engine, view.task_id, given)
    if given["events"]:
        found |= await events_data(engine, view.task_id, given["events_offset"])
    if given["files"]:
        files = await readable_files(engine, view)
        found["files"] = [{"name": one.name, "size_bytes": one.size_bytes} for one in files]
    return found


async def result_data(engine: Engine, task_id: str, given: Given) -> dict[str, Any]:
    """Return a part of the result as `result`, and under `result_page` where it goes on."""
    limits = {
        "limit": (given["limit"], 1, MOST_UNITS),
        "max_bytes": (given["max_bytes"], LEAST_BYTES, MOST_BYTES),
    }
    problems = [
        Problem(name, "out_of_range", f"must be from {low:,} to {high:,}")
        for name, (value, low, high) in limits.items()
        if not low <= value <= high
    ]
    if problems:
        raise InvalidArguments(tuple(problems))
    task_id = await engine.tasks.ledger_id(task_id)
    try:
        part = await engine.reading.result(
            task_id, given["cursor"] or "", given["limit"], given["max_bytes"]
        )
    except ValueError as wrong:
        raise InvalidArguments((Problem("cursor", "invalid_value", str(wrong)),)) from None
    if part is None:
        return {"result": None}
    page: dict[str, Any] = {"key": part.key, "first": part.first, "count": len(part.units)}
    if part.cursor:
        page["next_cursor"] = part.cursor
    if part.live:
        page["live"] = True  # the cursor behind the last unit gives what is found later
    if part.cut:
        page["cut"] = [*part.cut]
    return {"result": {**part.head, part.key: [*part.units]}, "result_page": page}


class NoSuchFile(EngineError):
    """The task has no such file that programs may read."""

    code = "no_such_file"
    title = "There is no such file"
    sentence = "Task {task_id} has no file {name} that programs may read."
    advice_text = "The files of a task are listed on request (files, include_files)."


async def readable_files(engine: Engine, view: TaskView) -> list[FileFacts]:
    """Return the artifacts that programs may read: no state of a session, which is a login.

    Names that are no text, as other programs can write them, fit into no answer.
    """
    if not isinstance(view.entry, TaskRecord):
        return []
    only_pictures = view.entry.kind == schemas.SNAPSHOT
    return [
        one
        for one in await engine.reading.files(view.task_id)
        if one.name.startswith(f"{ARTIFACTS_NAME}/")
        and _is_text(one.name)
        and (one.is_picture or not only_pictures)
    ]


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


async def read_file(engine: Engine, task_id: str, name: str) -> tuple[bytes, str]:
    """Return an artifact of at most 8 MiB and its media type; pages are plain text.

    Raises:
        NoSuchFile: there is none of this name, it is larger, or programs may not read it.
    """
    view = await engine.tasks.get(task_id)
    listed = {one.name: one for one in await readable_files(engine, view)}
    found = listed.get(name)
    if found is None or found.size_bytes > MOST_FILE_BYTES:
        raise NoSuchFile(task_id=view.task_id, name=name[:200])
    data = b""
    while len(data) < found.size_bytes:
        part = await engine.reading.part(view.task_id, name, len(data), MOST_FILE_BYTES)
        if not part.data:
            break
        data += part.data
    return data, MEDIA_TYPES.get(name.rpartition(".")[2].lower(), "text/plain")


async def events_data(engine: Engine, task_id: str, offset: int) -> dict[str, Any]:
    """Return events from a byte offset on, and the offset where they go on."""
    part = await engine.tasks.events(task_id, offset)
    events = [msgspec.to_builtins(event) for event in part.events]
    return {"events": events, "events_next_offset": part.next_offset}


VERBS: tuple[Verb, ...] = (
    Verb(
        "start",
        "Start a task in the background and return its record at once.",
        (
            Param("kind", "what to run", schema={"enum": [*schemas.KIND_NAMES]}),
            Param(
                "args", "the arguments of the kind", "json", schema=schemas.start_arguments_schema()
            ),
            *TERMS,
            BY_CALLER,
        ),
        _start,
        accepts=True,
        faces=("mcp", "http"),
    ),
    Verb(
        "submit",
        "Start a command task: a list of browser commands that run one after another.",
        (
            Param(
                "task",
                "the command task",
                "json",
                required=True,
                schema=schemas.command_task_schema(),
            ),
            Param("agent_id", "the agent that it runs for"),
            BY_CALLER,
        ),
        _submit,
        accepts=True,
        faces=("mcp", "http"),
    ),
    Verb(
        "status",
        "Show a command task with the state of each command.",
        (TASK_ID, Param("results", "also what each command returned", "flag", default=True)),
        _status,
        faces=("mcp", "http"),
    ),
    Verb(
        "read",
        "Show one task; on request with a part of its result and of its events.",
        (
            TASK_ID,
            Param("result", "also its result", "flag", default=False),
            Param("cursor", "where the result goes on, as the answer before said"),
            Param(
                "limit",
                "maximum number of units of the result",
                "number",
                default=20,
                schema={"minimum": 1, "maximum": MOST_UNITS},
            ),
            Param(
                "max_bytes",
                "approximate maximum size in bytes",
                "number",
                default=USUAL_BYTES,
                schema={"minimum": LEAST_BYTES, "maximum": MOST_BYTES},
            ),
            Param("events", "also its events", "flag", default=False),
            Param("events_offset", "the byte from which on to read events", "number", default=0),
            Param("files", "also the names of its files (screenshots, …)", "flag", default=False),
        ),
        _read,
        faces=("mcp", "http"),
    ),
)
