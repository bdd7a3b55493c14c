"""What a browser says to a forward proxy: one request's head, and where its body ends.

Strict, because what is read here decides where bytes go: a head that two readers could
understand differently is refused. Source: RFC 9112, sections 3.2, 6 and 7.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from engine.browser.egress import public_addresses
from engine.browser.egress.egress_policy import Place

MAX_HEAD_BYTES = 256 * 1024  # Chromium itself takes that much of cookies
MAX_LINE_BYTES = 4_096  # of the sizes and trailers in a chunked body
MAX_HOST = 253  # characters, of any name that can be looked up
CHUNKED = -1
_REQUEST = re.compile(rb"([!#-'*+.0-9A-Z^-z|~-]+) ([^\x00-\x20\x7f]+) HTTP/1\.[01]")
_FIELD = re.compile(rb"[!#-'*+.0-9A-Z^-z|~-]+:[^\x00\r\n]*")
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:@\[\]]+)(?::(\d{1,5}))?")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")
_SCHEME = b"http://"


class BadHead(Exception):
    """Not a request that a browser would send to a proxy; `status` answers it."""

    def __init__(self, status: bytes = b"400 Bad Request") -> None:
        self.status = status


class Head(NamedTuple):
    """Where a request goes; `forward` is what is sent there, nothing for a tunnel.

    `body_bytes` follow it, or chunks when it is `CHUNKED`.
    """

    place: Place
    tunnel: bool
    forward: bytes
    body_bytes: int


def parse(raw: bytes) -> Head:
    """Read one head, its empty line included.

    Raises:
        BadHead: it is no proxy request, or cannot be understood in one way only.
    """
    first, *fields = raw.removesuffix(b"\r\n\r\n").split(b"\r\n")
    said = _REQUEST.fullmatch(first)
    if said is None or not all(map(_FIELD.fullmatch, fields)):
        raise BadHead
    method, target = said.groups()
    if method == b"CONNECT":
        return Head(_place(target, 0), True, b"", 0)
    if target[: len(_SCHEME)].lower() != _SCHEME:
        raise BadHead  # no proxy request at all: some page talks to this port itself
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
    said = _AUTHORITY.fullmatch(authority.decode("latin-1"))
    if said is None:
        raise BadHead
    port = int(said.group(2) or default_port)
    try:
        host = public_addresses.canonical_host(said.group(1))
    except ValueError as odd:
        raise BadHead from odd
    if not 0 < port < 65_536 or len(host) > MAX_HOST:
        raise BadHead
    return Place(host, port)


def _forwarded(field: bytes) -> bytes:
    """The field as the server may see it; nothing for what is between browser and proxy."""
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
        raise BadHead  # the way in of request smuggling
    if coding is not None:
        if coding.lower() != b"chunked":
            raise BadHead
        return CHUNKED
    if length is not None and not (length.isdigit() and len(length) < 16):
        raise BadHead
    return int(length or 0)


class Body:
    """Follows a request's body through the stream, to know where the next head begins."""

    def __init__(self, body_bytes: int) -> None:
        self.done = body_bytes == 0
        self._chunked = body_bytes == CHUNKED
        self._left = max(0, body_bytes)  # of the body, or of the chunk and its line's end
        self._trailer = False

    def take(self, data: bytes | bytearray) -> int:
        """How many bytes at the beginning of `data` belong to it; 0: more are needed.

        Raises:
            BadHead: its chunks cannot be read.
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
        """The length of the line (a chunk's size, or a trailer) that `data` begins with."""
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
