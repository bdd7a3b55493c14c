"""One browser connection to the proxy, and its connection to a server.

A tunnel (https, WebSocket) is relayed unchanged. Of plain http only the requests are parsed, to
know the destination of each and the beginning of the next; responses are relayed raw: a browser
sends one request at a time, so that a new request means the last response is complete. A failed
connection ends without a response, which would be mistaken for the page.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, NamedTuple

from engine.browser.egress import public_addresses
from engine.browser.egress.egress_policy import Place
from engine.model.errors import PageError

if TYPE_CHECKING:
    from engine.browser.egress.proxy_listener import ProxyListener


# Parser of a forward proxy request: the head, and the end of the body.
#
# Strict, because the result decides where bytes go: an ambiguous head is rejected.
# Source: RFC 9112, sections 3.2, 6 and 7.

MAX_HEAD_BYTES = 256 * 1024  # Chromium accepts as much for cookies
MAX_LINE_BYTES = 4_096  # of the sizes and trailers in a chunked body
MAX_HOST = 253  # characters, the DNS limit
CHUNKED = -1
_REQUEST = re.compile(rb"([!#-'*+.0-9A-Z^-z|~-]+) ([^\x00-\x20\x7f]+) HTTP/1\.[01]")
_FIELD = re.compile(rb"[!#-'*+.0-9A-Z^-z|~-]+:[^\x00\r\n]*")
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:@\[\]]+)(?::(\d{1,5}))?")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")
_SCHEME = b"http://"


class BadHead(Exception):
    """Not a valid proxy request; `status` is the response."""

    def __init__(self, status: bytes = b"400 Bad Request") -> None:
        self.status = status


class Head(NamedTuple):
    """Destination of a request; `forward` is sent there, empty for a tunnel.

    `body_bytes` follow it, or chunks if it is `CHUNKED`.
    """

    place: Place
    tunnel: bool
    forward: bytes
    body_bytes: int


def parse(raw: bytes) -> Head:
    """Parse one head, including its empty line.

    Raises:
        BadHead: it is no proxy request, or is ambiguous.
    """
    first, *fields = raw.removesuffix(b"\r\n\r\n").split(b"\r\n")
    match = _REQUEST.fullmatch(first)
    if match is None or not all(map(_FIELD.fullmatch, fields)):
        raise BadHead
    method, target = match.groups()
    if method == b"CONNECT":
        return Head(_place(target, 0), True, b"", 0)
    if target[: len(_SCHEME)].lower() != _SCHEME:
        raise BadHead  # no proxy request: some page connects to this port directly
    authority, path = _split(target[len(_SCHEME) :])
    kept = [b" ".join((method, path, b"HTTP/1.1")), b"Host: " + authority]
    kept += [field for field in map(_forwarded, fields) if field]
    forward = b"\r\n".join(kept) + b"\r\n\r\n"
    return Head(_place(authority, 80), False, forward, _body_bytes(fields))


def _split(rest: bytes) -> tuple[bytes, bytes]:
    end = next((at for at, byte in enumerate(rest) if byte in b"/?#"), len(rest))
    path = rest[end:].partition(b"#")[0]
    return rest[:end], path if path.startswith(b"/") else b"/" + path


def _place(authority: bytes, default_port: int) -> Place:
    match = _AUTHORITY.fullmatch(authority.decode("latin-1"))
    if match is None:
        raise BadHead
    port = int(match.group(2) or default_port)
    try:
        host = public_addresses.canonical_host(match.group(1))
    except ValueError as invalid:
        raise BadHead from invalid
    if not 0 < port < 65_536 or len(host) > MAX_HOST:
        raise BadHead
    return Place(host, port)


def _forwarded(field: bytes) -> bytes:
    """Return the field for the server; empty for hop-by-hop proxy fields."""
    name, _, value = field.partition(b":")
    name = name.lower()
    if name == b"proxy-connection":
        return b"Connection:" + value
    return b"" if name == b"host" or name.startswith(b"proxy-") else field


def _body_bytes(fields: list[bytes]) -> int:
    parts = [field.partition(b":") for field in fields]
    values = {name.lower(): value.strip() for name, _, value in parts}
    names = [name.lower() for name, _, _ in parts]
    length, coding = values.get(b"content-length"), values.get(b"transfer-encoding")
    twice = names.count(b"content-length") > 1 or names.count(b"transfer-encoding") > 1
    if twice or (length is not None and coding is not None):
        raise BadHead  # request smuggling
    if coding is not None:
        if coding.lower() != b"chunked":
            raise BadHead
        return CHUNKED
    if length is not None and not (length.isdigit() and len(length) < 16):
        raise BadHead
    return int(length or 0)


class Body:
    """Tracks a request's body in the stream to find the beginning of the next head."""

    def __init__(self, body_bytes: int) -> None:
        self.done = body_bytes == 0
        self._chunked = body_bytes == CHUNKED
        self._left = max(0, body_bytes)  # of the body, or of the chunk and its line end
        self._trailer = False

    def take(self, data: bytes | bytearray) -> int:
        """Return the number of leading bytes of `data` in the body; 0: more data needed.

        Raises:
            BadHead: the chunks cannot be parsed.
        """
        taken = 0
        while not self.done and taken < len(data):
            used = min(self._left, len(data) - taken)
            if used:
                self._left -= used
                self.done = not self._chunked and not self._left
            else:
                used = self._line(bytes(data[taken : taken + MAX_LINE_BYTES]))
            if not used:
                break
            taken += used
        return taken

    def _line(self, data: bytes) -> int:
        """Return the length of the first line of `data` (a chunk size, or a trailer)."""
        end = data.find(b"\n") + 1
        if not end:
            if len(data) >= MAX_LINE_BYTES:
                raise BadHead
            return 0
        line = data[:end]
        if self._trailer:
            self.done = line in (b"\r\n", b"\n")
            return end
        size = _SIZE.fullmatch(line)
        if size is None:
            raise BadHead
        length = int(size.group(1), 16)
        self._trailer = not length
        self._left = length + 2 if length else 0
        return end


LINGER_S = 20.0
_END_OF_HEAD = b"\r\n\r\n"
_OPENED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_UNMADE = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_ANSWER = b"HTTP/1.1 %b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Upstream(asyncio.Protocol):
    """The server's side of a connection; paused until the client side attaches."""

    transport: asyncio.Transport

    def __init__(self, place: Place) -> None:
        self.place = place
        self._client: Client | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.pause_reading()  # a server may send before the browser is ready

    def serve(self, client: Client) -> None:
        """Relay to `client` from now on."""
        self._client = client
        self.transport.resume_reading()

    def leave(self) -> None:
        """Close the connection; discard incoming data, flush outgoing data."""
        self._client = None
        self.transport.close()
        if self.transport.get_write_buffer_size():
            asyncio.get_running_loop().call_later(LINGER_S, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._client is not None:
            self._client.moved += len(data)
            self._client.transport.write(data)

    def eof_received(self) -> bool:
        return self._client is not None and self._client.server_ended()

    def pause_writing(self) -> None:
        if self._client is not None:
            self._client.hold()

    def resume_writing(self) -> None:
        if self._client is not None:
            self._client.go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.server_lost()


class Client(asyncio.Protocol):
    """The browser's side of a connection: parses heads, connects, relays."""

    transport: asyncio.Transport

    def __init__(self, listener: ProxyListener) -> None:
        self.moved = 0  # bytes, both ways; the listener detects idle connections by it
        self.has_asked = False  # a whole head has arrived, as browsers send it at once
        self.joined_s = 0.0
        self._listener = listener
        self._buffer = bytearray()
        self._body: Body | None = None
        self._upstream: Upstream | None = None
        self._tunnel: asyncio.Transport | None = None
        self._dialing: asyncio.Task[None] | None = None

    @property
    def expects_head(self) -> bool:
        """Whether a head is incomplete, or the first one has not begun."""
        return not self.has_asked or (bool(self._buffer) and self._dialing is None)

    @property
    def port(self) -> int:
        """The browser's port of the connection; 0 once it is closed."""
        name = self.transport.get_extra_info("peername")
        return int(name[1]) if name else 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if not self._listener.accept(self):
            transport.abort()

    def data_received(self, data: bytes) -> None:
        self.moved += len(data)
        if self._tunnel is not None:
            self._tunnel.write(data)
            return
        self._buffer += data
        self._advance()

    def eof_received(self) -> bool:
        """Half-close a tunnel; close plain http."""
        if self._tunnel is None:
            return False
        self._tunnel.write_eof()
        return True

    def pause_writing(self) -> None:
        if self._upstream is not None:
            self._upstream.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._upstream is not None:
            self._upstream.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._listener.remove(self)
        if self._dialing is not None:
            self._dialing.cancel()
        self._leave_upstream()

    def hold(self) -> None:
        """Pause reading: the server's buffer is full."""
        self.transport.pause_reading()

    def go_on(self) -> None:
        """Resume reading: the server's buffer has room."""
        if self._dialing is None:
            self.transport.resume_reading()

    def server_ended(self) -> bool:
        """Handle the server's end of data; return True to keep a tunnel half open."""
        if self._tunnel is None or self.transport.is_closing():
            return False
        self.transport.write_eof()
        return True

    def server_lost(self) -> None:
        """Close after the server's remaining data is delivered."""
        self._upstream = None
        self.transport.close()

    def _advance(self) -> None:
        try:
            while self._dialing is None and self._step():
                pass
        except BadHead as bad:
            self._listener.invalid_requests += 1
            self.transport.write(_ANSWER % bad.status)
            self.transport.close()

    def _step(self) -> bool:
        """Process one part of the buffer; return False if more data is needed."""
        if self._body is not None and self._upstream is not None:
            taken = self._body.take(self._buffer)
            if taken:
                self._upstream.transport.write(bytes(self._buffer[:taken]))
                del self._buffer[:taken]
            if not self._body.done:
                return False
            self._body = None
        end = self._buffer.find(_END_OF_HEAD) + len(_END_OF_HEAD)
        if end < len(_END_OF_HEAD):
            if len(self._buffer) > MAX_HEAD_BYTES:
                raise BadHead(b"431 Request Header Fields Too Large")
            return False
        head = parse(bytes(self._buffer[:end]))
        self.has_asked = True
        del self._buffer[:end]
        self._begin(head)
        return True

    def _begin(self, head: Head) -> None:
        upstream = self._upstream
        same = upstream is not None and not head.tunnel and upstream.place == head.place
        if upstream is not None and same and not upstream.transport.is_closing():
            self._send(head, upstream)
            return
        self._leave_upstream()
        self.transport.pause_reading()
        loop = asyncio.get_running_loop()
        self._dialing = loop.create_task(self._dial(head), name="connect for the browser")

    async def _dial(self, head: Head) -> None:
        try:
            upstream = await self._listener.connect(head.place)
        except (PageError, OSError):
            if head.tunnel:
                self.transport.write(_UNMADE)
            self.transport.close()
            return
        finally:
            self._dialing = None
        self._upstream = upstream
        if upstream.transport.is_closing():  # the connection closed before it was attached
            self._leave_upstream()
            self.transport.close()
            return
        if head.tunnel:
            self._open_tunnel(upstream)
        else:
            self._send(head, upstream)
        upstream.serve(self)
        self.transport.resume_reading()
        if not head.tunnel:
            self._advance()

    def _open_tunnel(self, upstream: Upstream) -> None:
        self.transport.write(_OPENED)
        self._tunnel = upstream.transport
        if self._buffer:
            self._tunnel.write(bytes(self._buffer))
            self._buffer.clear()

    def _send(self, head: Head, upstream: Upstream) -> None:
        upstream.transport.write(head.forward)
        self._body = Body(head.body_bytes) if head.body_bytes else None

    def _leave_upstream(self) -> None:
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.leave()
