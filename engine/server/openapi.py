"""OpenAPI 3.1 document of the HTTP face, made of the routes, the verbs and the records."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

from engine.model.config import VERSION
from engine.model.records import EventSlice, TaskRecord, Units
from engine.server.http_answers import BEFORE_VERBS, STATUS
from engine.server.http_routes import CANCEL, LIST, ROUTES, START, TASK, HttpRoute
from engine.verbs import Param
from engine.verbs.schemas import Schema, command_task_schema, object_schema, param_schema

Doc = dict[str, Any]

_JSON: Final = "application/json"
_SSE: Final = "text/event-stream"
_REF: Final = "#/components/schemas/{name}"
TAGS: Final[Mapping[str, str]] = {
    "tasks": "Start tasks, list them, follow them, stop them",
    "contracts": "What has to be done before a task may be called complete",
    "task-runs": "Goals of one or several tasks",
    "runs": "Lifecycle records of runs",
    "schedules": "Requests that repeat by a rule",
    "server": "The description of this server",
}
DESCRIPTION: Final = (
    "Local server of OpenChrome Monitor. Every request but `GET /` needs the header "
    "`Authorization: Bearer TOKEN`; the token is in the file that `octask serve` names. Requests "
    "of other hosts and origins are refused. Bodies are JSON of at most 1 MiB. MCP (Streamable "
    "HTTP) is served at `/mcp`, and the messages task_submit and task_status at the WebSocket "
    "`/ws`."
)
_SUMMARIES: Final[Mapping[str, str]] = {
    START.path + START.method: "Start a task, or a command task",
    CANCEL.path + CANCEL.method: "Cancel a task",
    "/tasks/cancelPOST": "Cancel several tasks, or all that match a query",
    TASK.path + TASK.method: "Show a task, on request with a part of its result and its events",
}
# Errors before a verb: for every operation, and for those with a body.
_ALWAYS: Final = (400, 401, 403, 408, 421, 500, 503)
_WITH_BODY: Final = (413, 415)


@cache
def document() -> Doc:
    """Return the whole document."""
    paths: dict[str, Doc] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    paths |= _others()
    found: Doc = {
        "openapi": "3.1.0",
        "info": {"title": "OpenChrome Monitor", "version": VERSION, "description": DESCRIPTION},
        "tags": [{"name": name, "description": said} for name, said in TAGS.items()],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
            "responses": _error_responses(),
        },
    }
    plain: Doc = msgspec.json.decode(msgspec.json.encode(found))  # tuples become lists
    return plain


def _operation(route: HttpRoute) -> Doc:
    help_text = route.verb.help
    summary = _SUMMARIES.get(route.path + route.method, help_text.rstrip("."))
    found: Doc = {
        "operationId": _operation_id(route.method, route.path),
        "tags": [_tag(route.path)],
        "summary": summary,
        "description": help_text,
        "parameters": [*_path_parameters(route.path), *_query_parameters(route)],
        "responses": _responses(route),
    }
    if route.method == "POST" and route.params:
        required = any(param.required for param in route.params)
        schema: Schema = object_schema(route.params)
        if route is START:
            schema = {"oneOf": [schema, {"$ref": _REF.format(name="CommandTaskRequest")}]}
            required = True
        found["requestBody"] = {"required": required, "content": {_JSON: {"schema": schema}}}
    return {key: value for key, value in found.items() if value != []}


def _operation_id(method: str, path: str) -> str:
    parts = [part.strip("{}") for part in path.split("/") if part]
    return "_".join((method.lower(), *parts)).replace("-", "_").replace(".", "_")


def _tag(path: str) -> str:
    head = path.split("/")[1]
    return head if head in TAGS else "tasks"


def _path_parameters(path: str) -> list[Doc]:
    if "{id}" not in path:
        return []
    said = "the id: 16 hex digits; of a command task also its own id (task_…)"
    told = {"id": said, "name": "the file's name, such as artifacts/page.png"}
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": told[name],
            "schema": {"type": "string"},
        }
        for name in told
        if f"{{{name}}}" in path
    ]


def _query_parameters(route: HttpRoute) -> list[Doc]:
    return [_query_parameter(param) for param in route.params] if route.by_query else []


def _query_parameter(param: Param) -> Doc:
    schema = param_schema(param)
    said = schema.pop("description", "")
    return {
        "name": param.name,
        "in": "query",
        "required": param.required,
        "description": said,
        "schema": schema,
    }


def _responses(route: HttpRoute) -> Doc:
    status = "201" if route.created else "200"
    answer: Doc = {"description": "Done", "content": {_JSON: {"schema": _answer_schema(route)}}}
    if route.created:
        said = "the address of what was made"
        answer["headers"] = {"Location": {"description": said, "schema": {"type": "string"}}}
    codes = [*_ALWAYS]
    if "{id}" in route.path:
        codes.append(404)
    if route.method != "GET":
        codes += [409, *_WITH_BODY]
    if route.waits:
        codes.append(504)
    return {status: answer, **_errors(codes)}


def _errors(codes: list[int] | tuple[int, ...]) -> Doc:
    return {str(code): {"$ref": f"#/components/responses/E{code}"} for code in sorted(codes)}


def _answer_schema(route: HttpRoute) -> Schema:
    if route is LIST:
        return {"$ref": _REF.format(name="TaskList")}
    if route in (TASK, START, CANCEL):
        return {"anyOf": [{"$ref": _REF.format(name=name)} for name in ("Task", "CommandTask")]}
    one = {"wait", "rerun", "retry", "update", "finish"}
    if route.verb.name in one:
        return {"$ref": _REF.format(name="Task")}
    if route.verb.name == "status":
        return {"$ref": _REF.format(name="CommandTask")}
    return {"type": "object"}


def _others() -> dict[str, dict[str, Doc]]:
    """Return the operations that are no verbs."""
    offset = {
        "name": "offset",
        "in": "query",
        "required": False,
        "description": "the byte from which on to send events; Last-Event-ID wins",
        "schema": {"type": "integer", "minimum": 0, "default": 0},
    }
    event = {"$ref": _REF.format(name="Events")}
    text = {"schema": {"type": "string"}}
    return {
        "/tasks/{id}/events": {
            "get": _plain(
                "/tasks/{id}/events",
                "Follow the events of a task",
                "Server-sent events: `event` is the kind, `id` the byte offset behind it, `data` "
                "the event as JSON. After the end of the task comes `end` with its status. With "
                "`Accept: application/json`: one part of them.",
                {_SSE: text, _JSON: {"schema": event}},
                [offset],
            )
        },
        "/tasks/{id}/result": {
            "get": _plain(
                "/tasks/{id}/result",
                "Stream the whole result",
                "The result with all of its units, however large, as one JSON value.",
                {_JSON: {"schema": {}}},
            )
        },
        "/tasks/{id}/files/{name}": {
            "get": _plain(
                "/tasks/{id}/files/{name}",
                "Read a file of a task",
                "A screenshot or another artifact of at most 8 MiB, by its name in `files` of "
                "`GET /tasks/{id}?files=true`. Pages come as plain text.",
                {"image/png": text, "text/plain": text, "application/octet-stream": text},
            )
        },
        "/events": {
            "get": _plain(
                "/events",
                "Follow the changes of all tasks",
                "Server-sent events: `ready` when nothing is missed any more, then `tasks` with "
                "changed tasks and the ids of those that are gone. List the tasks after `ready`.",
                {_SSE: text},
            )
        },
        "/openapi.json": {
            "get": _plain("/openapi.json", "This description", "", {_JSON: {"schema": {}}})
        },
        "/": {
            "get": {
                **_plain("/", "This description as a page", "", {"text/html": text}),
                "security": [],
            }
        },
    }


def _plain(
    path: str,
    summary: str,
    description: str,
    content: Mapping[str, Doc],
    parameters: list[Doc] | None = None,
) -> Doc:
    codes = [*_ALWAYS, 404] if "{id}" in path else [*_ALWAYS]
    is_task = path.startswith(("/tasks", "/events"))
    found: Doc = {
        "operationId": _operation_id("get", path),
        "tags": ["tasks" if is_task else "server"],
        "summary": summary,
        "description": description,
        "parameters": [*_path_parameters(path), *(parameters or [])],
        "responses": {"200": {"description": "Done", "content": dict(content)}, **_errors(codes)},
    }
    return {key: value for key, value in found.items() if value not in ([], "")}


def _schemas() -> Doc:
    records, found = msgspec.json.schema_components(
        (TaskRecord, EventSlice, Units), ref_template=_REF
    )
    view = {
        "type": "object",
        "description": "derived values: its state for people, owner, progress",
        "properties": {
            "standing": {"type": "string"},
            "orphaned": {"type": "boolean"},
            "foreign": {"type": "boolean"},
            "locked": {"type": "boolean"},
            "away": {"type": "boolean"},
            "stale": {"type": "boolean"},
            "undriven": {"type": "boolean"},
            "updated_at": {"type": ["number", "null"]},
            "budget_status": {"type": "string", "description": "now: time runs without calls"},
            "units": records[2],
        },
    }
    task = {"allOf": [records[0], {"type": "object", "properties": {"view": view}}]}
    several = {"type": "array", "items": {"$ref": _REF.format(name="Task")}}
    events = {"type": "array", "items": {"$ref": _REF.format(name="TaskEvent")}}
    return {
        **found,
        "Task": task,
        "TaskList": _object(
            {"tasks": several, "count": {"type": "integer"}, "more": {"type": "boolean"}}
        ),
        "Events": _object({"events": events, "events_next_offset": {"type": "integer"}}),
        "CommandTaskRequest": command_task_schema(),
        "CommandTask": {
            "type": "object",
            "description": "a command task as seed 002 defines it, with its record under meta",
            "properties": {
                "task": {"type": "object"},
                "meta": {"$ref": _REF.format(name="Task")},
            },
            "required": ["task"],
        },
        "Error": _object(
            {
                "error": {
                    "type": "object",
                    "properties": {
                        "code": {"type": "string", "description": "stable; match this one"},
                        "title": {"type": "string"},
                        "message": {"type": "string"},
                        "advice": {"type": "string"},
                        "fields": {"type": "object", "description": "what the sentence names"},
                        "problems": {"type": "array", "items": {"type": "object"}},
                    },
                    "required": ["code", "title", "message"],
                }
            }
        ),
    }


def _object(properties: Doc) -> Schema:
    return {"type": "object", "properties": properties, "required": [*properties]}


def _error_responses() -> Doc:
    """Return one response for each status, with the codes that it may have."""
    codes: dict[int, list[str]] = {500: ["any other error of the program"]}
    for status, kinds in STATUS.items():
        codes.setdefault(status, []).extend(kind.code for kind in kinds)
    for refusal in BEFORE_VERBS:
        codes.setdefault(refusal.status, []).append(refusal.code)
    return {f"E{status}": _error_response(named) for status, named in sorted(codes.items())}


def _error_response(codes: list[str]) -> Doc:
    schema = {"$ref": _REF.format(name="Error")}
    return {"description": "; ".join(codes), "content": {_JSON: {"schema": schema}}}
