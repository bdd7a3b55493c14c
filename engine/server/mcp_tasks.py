"""The Tasks extension of MCP (`io.modelcontextprotocol/tasks`, protocol of 2026-07-28).

A client that names the extension gets a task handle from every start of long work. Its states are
the ledger's: the task is a row of the window at once, and any later client finds it by its id.
Source: SEP-2663.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import json
from pydantic import Field

from engine.model.errors import EngineError, NotATaskId, TaskNotFound
from engine.model.records import Status, TaskRecord, TaskView, Unreadable
from engine.model.status import updated_at
from engine.service.engine import Engine
from engine.text import words
from engine.verbs.json_answers import task_data
from engine.verbs.program_verbs import USUAL_BYTES, result_data

Context = ServerRequestContext[Any, Any]

IDENTIFIER: Final = "io.modelcontextprotocol/tasks"
POLL_MS: Final = 1_000
REASON: Final = "cancelled by its client"


class TaskParams(types.RequestParams):
    """Parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str


class UpdateParams(TaskParams):
    """Parameters of `tasks/update`; our tasks ask for no input."""

    input_responses: dict[str, Any] = Field(default_factory=dict)


class TasksExtension:
    """The methods of the extension on one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add_to(self, server: Server[Any]) -> None:
        """Offer the extension and its methods."""
        server.extensions[IDENTIFIER] = {}
        server.add_request_handler("tasks/get", TaskParams, self._get)
        server.add_request_handler("tasks/update", UpdateParams, self._update)
        server.add_request_handler("tasks/cancel", TaskParams, self._cancel)

    def applies_to(self, ctx: Context) -> bool:
        """Return whether this request may be answered with a task handle."""
        return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and _is_declared(ctx)

    async def handle(self, task_id: str) -> dict[str, Any]:
        """Return the handle of a task that is on disk."""
        view = await self._engine.tasks.get(task_id)
        return {"resultType": "task", **_task(view)}

    async def _get(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        _require(ctx)
        view = await self._view(params.task_id)
        found = _task(view)
        if found["status"] == "completed":
            found["result"] = await self._result(view)
        return found

    async def _update(self, ctx: Context, params: UpdateParams) -> dict[str, Any]:
        """Acknowledge; no request for input is ever open, and unknown keys are ignored."""
        _require(ctx)
        await self._view(params.task_id)
        return {}

    async def _cancel(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        _require(ctx)
        view = await self._view(params.task_id)
        try:
            await self._engine.commands.cancel(view.task_id, REASON)
        except EngineError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        return {}

    async def _view(self, task_id: str) -> TaskView:
        try:
            return await self._engine.tasks.get(task_id)
        except (NotATaskId, TaskNotFound) as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        except EngineError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error

    async def _result(self, view: TaskView) -> dict[str, Any]:
        """Return the tool's result: the ended task with the first part of its result."""
        data = await task_data(self._engine, view)
        entry = view.entry
        if isinstance(entry, TaskRecord):
            limits = {"cursor": "", "limit": 20, "max_bytes": USUAL_BYTES}
            data |= await result_data(self._engine, view.task_id, limits)
        failed = isinstance(entry, Unreadable) or entry.status == Status.FAILED
        return {
            "content": [{"type": "text", "text": json.encode(data).decode()}],
            "structuredContent": data,
            "isError": failed,
        }


_STATUS: Final[Mapping[str, str]] = {
    Status.COMPLETED: "completed",
    Status.FAILED: "completed",  # `failed` is for errors of the protocol; the result has isError
    Status.CANCELLED: "cancelled",
}


def _task(view: TaskView) -> dict[str, Any]:
    """Return a task in the extension's shape, without its result."""
    entry = view.entry
    return {
        "taskId": view.task_id,
        "status": "completed"
        if isinstance(entry, Unreadable)
        else _STATUS.get(entry.status, "working"),
        "statusMessage": _message(view),
        "createdAt": _iso(entry.created_at),
        "lastUpdatedAt": _iso(updated_at(view) or entry.created_at),
        "ttlMs": None,
        "pollIntervalMs": POLL_MS,
    }


def _message(view: TaskView) -> str:
    entry = view.entry
    if isinstance(entry, Unreadable):
        return entry.reason
    said = words.status_word(view)
    if progress := words.progress(entry.kind, view.units):
        said = f"{said}, {progress}"
    return said if entry.error is None else f"{said}: {entry.error.message}"


def _iso(ms: float) -> str:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):  # another program may have written any number
        return datetime.fromtimestamp(0, UTC).isoformat(timespec="milliseconds")


def _is_declared(ctx: Context) -> bool:
    capabilities = ctx.session.client_capabilities
    return IDENTIFIER in ((capabilities.extensions if capabilities else None) or {})


def _require(ctx: Context) -> None:
    """Raise unless the client declared the extension."""
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found", data=ctx.method)
    if not _is_declared(ctx):
        required: dict[str, Any] = {"requiredCapabilities": {"extensions": {IDENTIFIER: {}}}}
        message = "Missing required client capability"
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, data=required)
