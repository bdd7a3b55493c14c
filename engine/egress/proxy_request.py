"""Parser of a forward proxy request: the head, and the end of the body.

Strict, because the result decides where bytes go: an ambiguous head is rejected.
Source: RFC 9112, sections 3.2, 6 and 7.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from engine.egress import public_addresses
from engine.egress.egress_policy import Place

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


def absolute(forward: bytes, place: Place, field: bytes = b"") -> bytes:
    """Convert a head for a server to one for an upstream proxy, with the further `field`.

    The address in it is the canonical one that was checked.
    """
    first, rest = forward.split(b"\r\n", 1)
    method, path, version = first.split(b" ")
    target = b"http://" + str(place).encode("ascii") + path
    return b" ".join((method, target, version)) + b"\r\n" + field + rest


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


MAX_INTERIM_HEADS = 20  # servers send one or two; a slow one repeats `102 Processing`
MAX_INTERIM_BYTES = 64 * 1024
_MAX_LINE_BYTES = 4_096
_JUNK_BYTES = 4  # that Chromium skips before a first line
_BEGIN = re.compile(rb".{0,4}?HTTP", re.DOTALL | re.IGNORECASE)
_LINE = re.compile(_BEGIN.pattern + rb"[^\r\n]*[\r\n]", re.DOTALL | re.IGNORECASE)
_INTERIM = re.compile(
    _BEGIN.pattern + rb"[^ \r\n]* +0*1[0-9]{2}(?![0-9])", re.DOTALL | re.IGNORECASE
)
_STATUS = re.compile(
    _BEGIN.pattern + rb"[^ \r\n]* +0*([0-9]{3})(?![0-9])", re.DOTALL | re.IGNORECASE
)
_SWITCHED = b"101"  # the rest belongs to another protocol
END_OF_HEAD = re.compile(rb"\n\r?\n")  # as leniently as Chromium reads an answer


class TooManyInterim(Exception):
    """The server sends interim heads and no answer."""


class AnswerStart:
    """Looks at the bytes of one answer until its final head begins.

    An answer may be preceded by interim heads (status 1xx), and a browser reads them for as long
    as they come, at the cost of all its pages. Nothing else of an answer is parsed. Lines are read
    as leniently as Chromium reads them. Source: RFC 9110, section 15.2.
    """

    def __init__(self) -> None:
        self.status = 0  # of the final head, once its first line is complete
        self.interim_bytes = 0  # of whole interim heads, after which the final one begins
        self._heads = 0
        self._rest = bytearray()  # of an incomplete interim head, or of a first line
        self._searched = 0  # bytes of it that contain no end

    def is_final(self, data: bytes) -> bool:
        """Take the next bytes; return whether the final head has begun.

        Raises:
            TooManyInterim: the limit of heads or of their bytes is exceeded.
        """
        self._rest += data
        at = 0
        while (interim := _INTERIM.match(self._rest, at)) is not None:
            if interim[0].endswith(_SWITCHED):
                return True
            end = END_OF_HEAD.search(self._rest, max(at, self._searched))
            if end is None:
                break
            self._heads += 1
            self.interim_bytes += end.end() - at
            self._check(0)
            at = self._searched = end.end()
        del self._rest[:at]
        self._searched = max(0, len(self._rest) - len(b"\n\r")) if interim else 0
        if interim is None:
            return self._shows_final()
        self._check(len(self._rest))
        return False

    def _shows_final(self) -> bool:
        """Return whether a first line that is not interim can no longer become it."""
        found = _STATUS.match(self._rest)
        self.status = int(found[1]) if found is not None else 0
        if _BEGIN.match(self._rest) is None:
            return len(self._rest) >= _JUNK_BYTES + len(b"HTTP")
        return len(self._rest) > _MAX_LINE_BYTES or _LINE.match(self._rest) is not None

    def _check(self, incomplete_bytes: int) -> None:
        size = self.interim_bytes + incomplete_bytes
        if self._heads > MAX_INTERIM_HEADS or size > MAX_INTERIM_BYTES:
            raise TooManyInterim
