"""Tasks as resources of MCP: record, events and result, with subscriptions.

The live list of the ledger is read only while a client has a subscription.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import re
from collections.abc import Callable
from typing import Any, Final

import anyio
import mcp_types as types
import msgspec
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourceUpdated,
    ServerEvent,
)

from engine.model.errors import EngineError
from engine.model.records import TaskRecord
from engine.server.change_feed import LiveReader
from engine.service.engine import Batch, Engine
from engine.text import words
from engine.verbs.json_answers import task_data
from engine.verbs.program_verbs import USUAL_BYTES, events_data, read_file, result_data

log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]

SCHEME: Final = "octask"
MIME: Final = "application/json"
TEXT: Final = "text/plain"
LISTED: Final = 50  # newest tasks in resources/list; every other one is read by its address
UNITS: Final = 20
MOST_SUBSCRIPTIONS: Final = 1_000
_URI: Final = re.compile(
    r"octask://tasks/([0-9a-z_]{1,80})"
    r"(?:/events(?:\?offset=(?P<offset>[0-9]{1,15}))?|/result(?:\?cursor=(?P<cursor>[0-9:]{1,40}))?"
    r"|/files/(?P<file>[A-Za-z0-9._/-]{1,200}))?",
    re.ASCII,
)
PARTS: Final = {
    "": ("Task", "its record, budgets and contract"),
    "/events": ("Events", "its events; ?offset= goes on at a byte"),
    "/result": ("Result", "what it found; ?cursor= goes on where the part before ended"),
}


def uri_of(task_id: str, part: str = "") -> str:
    """Return the address of a task, or of its `/events` or `/result`."""
    return f"{SCHEME}://tasks/{task_id}{part}"


class NewsBus(InMemorySubscriptionBus):
    """Bus that reads the live list of the ledger while it has listeners."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._listening = 0
        self._reader = LiveReader(engine, self._pass_on)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Register `listener`; the first one starts the reading."""
        end = super().subscribe(listener)
        self._listening += 1
        self._reader.begin()
        ended = False

        def unsubscribe() -> None:
            nonlocal ended
            if ended:
                return
            ended = True
            end()
            self._listening -= 1
            if not self._listening:
                self._reader.stop()

        return unsubscribe

    async def close(self) -> None:
        """End the reading."""
        await self._reader.close()

    async def _pass_on(self, batch: Batch) -> None:
        # The first batches hold every task: a change since the subscription may be among them.
        changed = (view.task_id for view in batch.views)
        for task_id in (*changed, *batch.gone):
            for part in PARTS:
                await self.publish(ResourceUpdated(uri=uri_of(task_id, part)))


class TaskResources:
    """Handlers of `resources/*` and `subscriptions/listen`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._bus = NewsBus(engine)
        self.listen = ListenHandler(self._bus)
        self._ends: dict[tuple[int, str], Callable[[], None]] = {}
        self._sending: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """End every subscription."""
        self.listen.close()
        for end in self._ends.values():
            end()
        await self._bus.close()

    async def list(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """List the newest tasks, each with its result where it has ended."""
        found: list[types.Resource] = []
        for view in await self._engine.tasks.list(limit=LISTED):
            name = words.task_name(view) or view.task_id
            state = words.status_word(view)
            found.append(_resource(uri_of(view.task_id), name, state))
            if isinstance(view.entry, TaskRecord) and view.entry.is_terminal:
                uri = uri_of(view.task_id, "/result")
                found.append(_resource(uri, f"{name}: result", state))
        return types.ListResourcesResult(resources=found)

    async def templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """List the addresses that any task has."""
        rows = {**PARTS, "/files/{+name}": ("File", "one of its files, such as artifacts/page.png")}
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=uri_of("{task_id}", part),
                    name=name.lower(),
                    title=name,
                    description=said,
                    mime_type=MIME if part in PARTS else None,
                )
                for part, (name, said) in rows.items()
            ]
        )

    async def read(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Read one task, or a part of its events or its result, as JSON.

        Raises:
            MCPError: the address has another form, or there is no such task.
        """
        found = _read_uri(str(params.uri))
        try:
            if found["file"]:
                return await self._file(found)
            data = await self._read(found)
        except EngineError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        text = msgspec.json.encode(data).decode()
        contents = types.TextResourceContents(uri=str(params.uri), mime_type=MIME, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def _file(self, uri: re.Match[str]) -> types.ReadResourceResult:
        data, kind = await read_file(self._engine, uri[1], uri["file"])
        contents: types.TextResourceContents | types.BlobResourceContents
        if kind in (TEXT, MIME):
            text = data.decode(errors="replace")
            contents = types.TextResourceContents(uri=uri[0], mime_type=kind, text=text)
        else:
            blob = base64.b64encode(data).decode()
            contents = types.BlobResourceContents(uri=uri[0], mime_type=kind, blob=blob)
        return types.ReadResourceResult(contents=[contents])

    async def _read(self, uri: re.Match[str]) -> dict[str, Any]:
        engine, task_id, part = self._engine, uri[1], uri[0][uri.end(1) :]
        if part.startswith("/events"):
            return await events_data(engine, task_id, int(uri["offset"] or 0))
        if part.startswith("/result"):
            limits = {"cursor": uri["cursor"] or "", "limit": UNITS, "max_bytes": USUAL_BYTES}
            return await result_data(engine, task_id, limits)
        return await task_data(engine, await engine.tasks.get(task_id))

    async def subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Send a notification for each change of a task (handshake of 2025)."""
        uri, session = str(params.uri), ctx.session
        _read_uri(uri)
        key = (id(session.client_params), uri)
        if key in self._ends:
            return types.EmptyResult()
        if len(self._ends) >= MOST_SUBSCRIPTIONS:
            raise MCPError(types.INTERNAL_ERROR, "There are too many subscriptions.")

        async def send() -> None:
            try:
                await session.send_resource_updated(uri)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError, MCPError):
                log.debug("a subscriber of %s is gone", uri)
                self._end(key)

        def hear(event: ServerEvent) -> None:
            if isinstance(event, ResourceUpdated) and event.uri == uri:
                sending = asyncio.create_task(send(), name="send a resource update")
                self._sending.add(sending)
                sending.add_done_callback(self._sending.discard)

        self._ends[key] = self._bus.subscribe(hear)
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """End a subscription (handshake of 2025)."""
        self._end((id(ctx.session.client_params), str(params.uri)))
        return types.EmptyResult()

    def _end(self, key: tuple[int, str]) -> None:
        end = self._ends.pop(key, None)
        if end is not None:
            end()


def _resource(uri: str, name: str, state: str) -> types.Resource:
    return types.Resource(uri=uri, name=name, description=state, mime_type=MIME)


def _read_uri(uri: str) -> re.Match[str]:
    """Return the parts of an address. Raises MCPError."""
    found = _URI.fullmatch(uri)
    if found is None:
        raise MCPError(types.INVALID_PARAMS, f"There is no resource {uri[:100]!r}.")
    return found
