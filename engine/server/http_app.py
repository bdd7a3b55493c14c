"""ASGI application of the HTTP face: REST over the verbs, event streams, WebSocket, MCP.

Everything but `GET /` needs the token, see `access`. The routes of verbs come from `http_routes`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from engine.kinds.traits import COMMANDS_TRAITS
from engine.model.errors import EngineError, InvalidArguments, Problem, ResultMissing
from engine.server import event_streams, openapi
from engine.server.access import MOST_BYTES, Access, Guard
from engine.server.access_file import AccessFile
from engine.server.api_page import api_page
from engine.server.change_feed import ChangeFeed
from engine.server.http_answers import (
    FAILED,
    NO_ROUTE,
    WRONG_METHOD,
    Refused,
    error_response,
    json_response,
    refusal_response,
)
from engine.server.http_routes import (
    CANCEL,
    FACE,
    ID,
    LIST,
    ROUTES,
    START,
    TASK,
    HttpRoute,
    location,
)
from engine.server.json_input import parsed
from engine.server.mcp_server import McpServer
from engine.server.websocket_messages import Messages
from engine.service.admission import client_name
from engine.service.engine import Engine
from engine.service.stop_plan import Stopped
from engine.verbs.json_answers import Data, answer_data, tasks_data, view_data
from engine.verbs.model import CALLER, Caller, Verb
from engine.verbs.program_verbs import events_data, read_file, settled
from engine.verbs.verb_table import VERBS

log = logging.getLogger(__name__)

MCP_PATH: Final = "/mcp"
MCP_SESSIONS: Final = 200
MCP_IDLE_S: Final = 30 * 60.0
MOST_LOGGED: Final = 200  # characters of a path
MANY: Final = 100  # tasks that are encoded in a thread
_SUBMITTED: Final = ("task_name", "commands")  # a body of seed 002 has one of them

Handler = Callable[[Request], Awaitable[Response]]


class HttpApp:
    """The application of one engine; `stopping` ends what lasts. Enter `lifespan` around it."""

    def __init__(self, engine: Engine, access: Access, mcp: McpServer) -> None:
        self.stopping = asyncio.Event()
        self._engine = engine
        self._mcp = mcp
        self._feed = ChangeFeed(engine)
        self._messages = Messages(engine, self.stopping)
        self._sessions = StreamableHTTPSessionManager(
            mcp.server,
            security_settings=TransportSecuritySettings(
                enable_dns_rebinding_protection=True,
                allowed_hosts=[*access.hosts],
                allowed_origins=[*access.origins],
            ),
            session_idle_timeout=MCP_IDLE_S,
            max_request_body_size=MOST_BYTES,
            max_sessions=MCP_SESSIONS,
        )
        self.starlette = self._starlette()
        self._asgi = Guard(self.starlette, access)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._asgi(scope, receive, send)
        except Exception:  # it was answered by `_on_failure`, if an answer had not begun
            log.exception("a request of %s failed", scope["path"][:MOST_LOGGED])

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Run what belongs to no single request: the MCP sessions and the live list."""
        try:
            async with self._sessions.run():
                yield
        finally:
            await self._feed.close()
            await self._mcp.close()

    def _starlette(self) -> Starlette:
        handlers: dict[str, dict[str, Handler]] = {}
        for route in ROUTES:
            handlers.setdefault(route.path, {})[route.method] = self._handler(route)
        handlers["/tasks/{id}/events"] = {"GET": self._events}
        handlers["/tasks/{id}/result"] = {"GET": self._result}
        handlers["/tasks/{id}/files/{name:path}"] = {"GET": self._file}
        handlers["/events"] = {"GET": self._changes}
        handlers["/openapi.json"] = {"GET": self._openapi}
        handlers["/"] = {"GET": self._page}
        app = Starlette(
            routes=[
                *(_route(path, methods) for path, methods in handlers.items()),
                Route(MCP_PATH, _McpEndpoint(self._sessions, self.stopping)),
                WebSocketRoute("/ws", self._socket),
                WebSocketRoute("/", self._socket),
            ],
            exception_handlers={
                EngineError: _on_error,
                Refused: _on_refused,
                HTTPException: _on_router,
                Exception: _on_failure,
            },
        )
        app.router.redirect_slashes = False  # a redirect would name the Host of the request
        return app

    def _handler(self, route: HttpRoute) -> Handler:
        if route is START:
            return self._start
        if route is TASK:
            return self._task

        async def handle(request: Request) -> Response:
            return await self._answer(request, route)

        return handle

    async def _answer(self, request: Request, route: HttpRoute) -> Response:
        """Call the verb of a route and encode what it returns."""
        given = route.given(_id(request), _query(request, route), await _body(request))
        call = self._call(request, route.verb, given)
        if route.waits:
            call = event_streams.until_left(call, request.receive, self.stopping)
        answer = await call
        if isinstance(answer, Stopped):
            await settled(self._engine, answer)
        if route is LIST and len(answer.views) > MANY:
            data = await asyncio.to_thread(tasks_data, answer)
        else:
            data = await answer_data(self._engine, route.verb.name, answer)
        if route is CANCEL:
            return await self._cancelled(answer.refused, data)
        if route.created:
            headers = {"Location": location(route, data)}
            data = await self._shown(data) if route is START else data
            return json_response(data, 201, headers)
        return await asyncio.to_thread(json_response, data)  # some have megabytes

    def _call(self, request: Request, verb: Verb, given: Mapping[str, Any]) -> Awaitable[Any]:
        if verb.needs_caller:
            given = {**given, CALLER: Caller(route=FACE, client=_client(request))}
        return verb.call(self._engine, given)

    async def _start(self, request: Request) -> Response:
        """Start a task; a body in the shape of seed 002 is a command task."""
        body = await _body(request)
        if not any(name in body for name in _SUBMITTED):
            return await self._answer(request, START)
        START.given(None, _query(request, START), {})  # refuses a query
        data = await self._call(request, VERBS["submit"], {"task": body})
        task_id = data["task"]["id"]
        data["meta"] = view_data(await self._engine.tasks.get(task_id))
        return json_response(data, 201, {"Location": f"/tasks/{task_id}"})

    async def _task(self, request: Request) -> Response:
        given = TASK.given(_id(request), _query(request, TASK), await _body(request))
        data = await self._shown(await self._call(request, TASK.verb, given))
        return await asyncio.to_thread(json_response, data)

    async def _cancelled(
        self, refused: tuple[EngineError, ...], data: Mapping[str, Any]
    ) -> Response:
        """Answer the cancel of one task: the task, or why it was refused."""
        if refused:
            return error_response(refused[0])
        shown = await self._shown(data["tasks"][0])
        return await asyncio.to_thread(json_response, shown)

    async def _shown(self, data: Data) -> Data:
        """Return a task as this face shows it, from its record.

        A command task has the shape of seed 002, with its record under `meta`.
        """
        if data.get("kind") != COMMANDS_TRAITS.name:
            return data
        task = await self._engine.tasks.command_task(data["task_id"])
        return {"task": task, "meta": data}

    async def _events(self, request: Request) -> Response:
        task_id, headers = _id(request), request.headers
        offset = event_streams.start_offset(
            headers.get("last-event-id"), request.query_params.get("offset")
        )
        view = await self._engine.tasks.get(task_id)
        if _prefers_json(headers.get("accept", "")):
            return json_response(await events_data(self._engine, view.task_id, offset))
        blocks = event_streams.task_events(self._engine, view.task_id, offset)
        return event_streams.StreamedAnswer(blocks, event_streams.SSE_TYPE, self.stopping)

    async def _result(self, request: Request) -> Response:
        view = await self._engine.tasks.get(_id(request))
        file = await self._engine.tasks.result(view.task_id)
        if file is None:
            raise ResultMissing(task_id=view.task_id)
        return event_streams.result_answer(file, self.stopping)

    async def _file(self, request: Request) -> Response:
        data, kind = await read_file(self._engine, _id(request), request.path_params["name"])
        return Response(data, 200, {"Content-Disposition": "attachment"}, kind)

    async def _changes(self, request: Request) -> Response:
        blocks = event_streams.list_changes(self._feed)
        return event_streams.StreamedAnswer(blocks, event_streams.SSE_TYPE, self.stopping)

    async def _openapi(self, request: Request) -> Response:
        return json_response(openapi.document())

    async def _page(self, request: Request) -> Response:
        html, policy = api_page(AccessFile(self._engine.settings.home).path)
        return Response(html, 200, {"Content-Security-Policy": policy}, "text/html")

    async def _socket(self, socket: WebSocket) -> None:
        await self._messages.serve(socket, Caller(FACE, _client(socket)))


class _McpEndpoint:
    """The Streamable HTTP transport of MCP; its open streams end with the server."""

    def __init__(self, sessions: StreamableHTTPSessionManager, stopping: asyncio.Event) -> None:
        self._sessions = sessions
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await event_streams.first(
            self._sessions.handle_request(scope, receive, send), self._stopping.wait()
        )


def _route(path: str, handlers: Mapping[str, Handler]) -> Route:
    async def handle(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await handlers[method](request)

    return Route(path, handle, methods=[*handlers])


def _id(request: Request) -> str:
    return str(request.path_params.get(ID, ""))


def _query(request: Request, route: HttpRoute) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = request.query_params.multi_items()
    if found and not route.by_query:
        message = "belongs into the body"
        raise InvalidArguments(
            tuple(Problem(name[:200], "not_allowed", message) for name, _ in found)
        )
    return found


async def _body(request: Request) -> dict[str, Any]:
    """Return the body's JSON object; an empty body is an empty object.

    Raises:
        Refused: it is no JSON, or nested too deeply.
        InvalidArguments: it is no object.
    """
    body = await request.body()
    if not body:
        return {}
    data = await parsed(body)
    if not isinstance(data, dict):
        raise InvalidArguments((Problem("", "wrong_type", "the body must be a JSON object"),))
    return data


def _client(request: Request | WebSocket) -> str | None:
    """Return the client's name: its own header, or the first product of its User-Agent."""
    given = request.headers.get("x-client-name")
    agent = request.headers.get("user-agent", "")
    return client_name(given or agent.partition("/")[0].partition(" ")[0])


def _prefers_json(accept: str) -> bool:
    return "application/json" in accept and event_streams.SSE_TYPE not in accept


async def _on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, EngineError)
    return error_response(error)


async def _on_refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return refusal_response(error.refusal)


async def _on_router(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code != 405:
        return refusal_response(NO_ROUTE)
    answer = refusal_response(WRONG_METHOD)
    answer.headers.update(error.headers or {})
    return answer


async def _on_failure(request: Request, error: Exception) -> Response:
    return refusal_response(FAILED)
