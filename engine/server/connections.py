"""Limits of single connections, which uvicorn does not have: their number, and slow clients.

At most `MOST_CONNECTIONS` are served. As many again are answered 503 when their request arrives,
so that a client sees why; more are closed at once, since each one costs a file descriptor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import h11
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from engine.server.http_answers import (
    BAD_HANDSHAKE,
    BAD_REQUEST,
    HEAD_TIMEOUT,
    TOO_MANY,
    Refusal,
    refusal_bytes,
)

MOST_CONNECTIONS: Final = 200
HEAD_S: Final = 10.0  # for a whole request head, and to discard the body of a refused request
STALL_S: Final = 30.0  # for a client to read something of what is sent to it
REFUSED_S: Final = 2.0  # for the request of a connection beyond the limit


class Deadline:
    """One timer at a time that closes a connection."""

    def __init__(self, close: Callable[[], object]) -> None:
        self._close = close
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, seconds: float) -> None:
        """Start the time, unless it runs."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._close)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


async def _too_many(scope: Scope, receive: Receive, send: Send) -> None:
    headers, body = refusal_bytes(TOO_MANY)
    await send({"type": "http.response.start", "status": TOO_MANY.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class HttpConnection(H11Protocol):
    """HTTP connection with limits on its number and on the time that its client takes."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._head = Deadline(self._late)
        self._stall = Deadline(self._abort)
        self._is_refused = False

    # uvicorn narrows the type of asyncio's own method, too.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        over = len(self.connections) - MOST_CONNECTIONS
        if over > MOST_CONNECTIONS:
            transport.abort()
            return
        self._is_refused = over > 0
        if self._is_refused:
            self.app = _too_many
        self._head.begin(REFUSED_S if self._is_refused else HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head.end()
        self._stall.end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def _watch(self) -> None:
        """Limit the time of an incomplete head, and of a body that is only discarded."""
        waits = self.conn.their_state is h11.IDLE
        discards = self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY
        if (waits or discards) and not self.transport.is_closing():
            self._head.begin(HEAD_S)
        else:
            self._head.end()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall.begin(STALL_S)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stall.end()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._head.end()
        if self._is_refused:
            self.answer(TOO_MANY)
        else:
            super().handle_websocket_upgrade(event)

    def send_400_response(self, msg: str) -> None:
        self.answer(BAD_REQUEST)

    def answer(self, refusal: Refusal) -> None:
        """Send a refusal without an application, and close."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers, body = refusal_bytes(refusal)
            for event in (
                h11.Response(status_code=refusal.status, headers=headers),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _late(self) -> None:
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.answer(HEAD_TIMEOUT)
        else:
            self._abort()

    def _abort(self) -> None:
        self.transport.abort()


class _Handshake(ServerProtocol):
    """WebSocket protocol that refuses a wrong handshake with JSON, like every other request."""

    def accept(self, request: Request) -> Response:
        response = super().accept(request)
        if response.status_code == 101:
            return response
        pairs, body = refusal_bytes(BAD_HANDSHAKE)
        headers = Headers([(name.decode(), value.decode()) for name, value in pairs])
        return Response(BAD_HANDSHAKE.status, "Bad Request", headers, body)


class WebSocketConnection(WebSocketsSansIOProtocol):
    """WebSocket connection that is closed when its client stops reading."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.conn = _Handshake(max_size=self.config.ws_max_size, logger=self.conn.logger)
        self._stall = Deadline(self._abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stall.end()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall.begin(STALL_S)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stall.end()

    def _abort(self) -> None:
        self.transport.abort()
