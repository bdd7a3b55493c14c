"""Checks of every HTTP request before any route: host, origin, token, type and size of the body.

Everything needs the token, except `GET /`: it is a static page with the description of the API and
no data, and a browser cannot send the token. Each answer gets the security headers.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.server.http_answers import (
    BODY_TIMEOUT,
    FOREIGN_ORIGIN,
    JSON_TYPE,
    NOT_AUTHORIZED,
    NOT_JSON_TYPE,
    PREFLIGHT_REFUSED,
    SECURITY_HEADERS,
    TOKEN_IN_ADDRESS,
    TOO_LARGE,
    WRONG_HOST,
    Refusal,
    Refused,
    refusal_response,
)

MOST_BYTES: Final = 1024 * 1024  # of a body or a message: the limit of all parsed input
BODY_S: Final = 30.0
PUBLIC: Final = "/"
PROTOCOL: Final = "bearer."  # browsers can give a WebSocket a subprotocol, but no header
TOKEN_NAMES: Final = frozenset(
    {"token", "access_token", "bearer", "auth", "authorization", "api_key", "apikey", "key"}
)

Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Access:
    """What a request must name (the port of this server) and know (its token)."""

    port: int
    token: str = field(repr=False)

    @property
    def hosts(self) -> Sequence[str]:
        """The values of Host that are ours; any other is a rebound name."""
        return [f"{name}:{self.port}" for name in ("127.0.0.1", "localhost", "[::1]")]

    @property
    def origins(self) -> Sequence[str]:
        return [f"http://{name}:{self.port}" for name in ("127.0.0.1", "localhost")]

    def refusal(self, scope: Scope) -> Refusal | None:
        """Return why a request is refused by its head alone; None if it may go on."""
        headers = scope["headers"]
        hosts = _values(headers, b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return WRONG_HOST
        if any(origin not in self.origins for origin in _values(headers, b"origin")):
            return FOREIGN_ORIGIN
        if _values(headers, b"access-control-request-method"):
            return PREFLIGHT_REFUSED
        if self._has_token(scope.get("query_string", b"")):
            return TOKEN_IN_ADDRESS
        is_public = scope["path"] == PUBLIC and scope.get("method") in ("GET", "HEAD")
        if not is_public and not self._is_authorized(scope):
            return NOT_AUTHORIZED
        return None

    def _has_token(self, query: bytes) -> bool:
        text = query.decode("latin-1")
        if self.token in unquote(text):
            return True
        return any(name.lower() in TOKEN_NAMES for name, _ in parse_qsl(text, True))

    def _is_authorized(self, scope: Scope) -> bool:
        given = _values(scope["headers"], b"authorization")
        if not given and scope["type"] == "websocket":
            offered = scope.get("subprotocols", ())
            given = [f"Bearer {one[len(PROTOCOL) :]}" for one in offered if _is_bearer(one)]
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        right = secrets.compare_digest(token.strip().encode(), self.token.encode())
        return right and scheme.lower() == "bearer"


def chosen_protocol(offered: Sequence[str]) -> str | None:
    """Return the subprotocol to accept: one without the token, where the client offers one."""
    return next((one for one in offered if not _is_bearer(one)), offered[0] if offered else None)


def _is_bearer(protocol: str) -> bool:
    return protocol.startswith(PROTOCOL)


def _values(headers: Headers, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]


class Guard:
    """ASGI application that refuses a request, or passes it to `app` with its whole body."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def secured(message: Message) -> None:
            await send(_secured(message))

        refusal = self._access.refusal(scope)
        try:
            if refusal is not None:
                raise Refused(refusal)
            if scope["type"] == "http" and (length := _body_length(scope["headers"])) is not None:
                receive = _replay(await _read_body(receive, length), receive)
        except Refused as refused:
            await refusal_response(refused.refusal)(scope, receive, secured)
        except ConnectionAbortedError:
            return  # the client left while it sent its body
        else:
            await self._app(scope, receive, secured)


def _secured(message: Message) -> Message:
    """Add the security headers to the start of an answer."""
    if message["type"] not in ("http.response.start", "websocket.http.response.start"):
        return message
    headers = [*message.get("headers", ())]
    present = {name.lower() for name, _ in headers}
    more = [(name, value) for name, value in SECURITY_HEADERS if name not in present]
    return {**message, "headers": [*headers, *more]}


def _body_length(headers: Headers) -> int | None:
    """Return the announced length of the body, 0 for an unknown one; None without a body.

    Raises:
        Refused: it is too large, or of another type than JSON.
    """
    lengths = _values(headers, b"content-length")
    is_chunked = bool(_values(headers, b"transfer-encoding"))
    length = int(lengths[0]) if lengths and lengths[0].isdecimal() else 0
    if not length and not is_chunked:
        return None
    if length > MOST_BYTES:
        raise Refused(TOO_LARGE)
    kinds = _values(headers, b"content-type")
    if len(kinds) != 1 or kinds[0].partition(";")[0].strip().lower() != JSON_TYPE:
        raise Refused(NOT_JSON_TYPE)
    return length


async def _read_body(receive: Receive, length: int) -> bytes:
    """Read the whole body. Raises Refused, or ConnectionAbortedError if the client has left."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise ConnectionAbortedError
                body += message.get("body", b"")
                if len(body) > MOST_BYTES:
                    raise Refused(TOO_LARGE)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise Refused(BODY_TIMEOUT) from None


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body that was read, and then what comes after it."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return left.pop() if left else await receive()

    return replayed
