"""Web archive of one task: a file of WARC records, written while the task runs.

Each record is a gzip member, so a killed program leaves a readable file. A payload that the task
received before becomes a revisit record. Cookies and credentials are removed. `wacz` packs the file
for a replay program.
"""

from __future__ import annotations

import asyncio
import codecs
import re
import zlib
from base64 import b32encode
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha1
from http import HTTPStatus
from io import BytesIO
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from engine.archive.exchange import MAX_BODY_BYTES, Exchange, Header, LeftOut
from engine.model.config import VERSION
from engine.model.errors import EngineError
from engine.model.records import ARTIFACTS_NAME
from engine.secrets.given_secrets import Hidden, Scrub

FILE_NAME: Final = "archive.warc.gz"
FILE_PATH: Final = f"{ARTIFACTS_NAME}/{FILE_NAME}"
SOFTWARE: Final = f"openchrome-monitor {VERSION}"
MOST_KNOWN: Final = 100_000  # payloads that can be recognised; about 30 MB

Append = Callable[[str, bytes], Awaitable[None]]  # to the file of this name


class _Known(NamedTuple):
    """The first record of a payload, to which later ones refer."""

    url: str
    date: str


class _Encoded(NamedTuple):
    """Members of an exchange. `first` is set if later records of this `digest` may refer to it."""

    data: bytes
    records: int
    digest: str
    first: _Known | None


class TaskArchive:
    """Records exchanges in the order in which they end; see `exchange.Archive`.

    `append` writes to a file of the task, also to its end if it is cancelled. `size_bytes` is the
    size of a file that a continued task left. From the first record that would exceed `most_bytes`
    on, none is added; `on_full` is called once.
    """

    def __init__(
        self,
        append: Append,
        scrub: Scrub,
        *,
        size_bytes: int = 0,
        most_bytes: int | None = None,
        on_full: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._most_bytes, self._on_full = most_bytes, on_full
        self.is_full = False
        self._append = append
        self._scrub = scrub
        self._size_bytes = size_bytes
        self._records = 0
        self._left_out: Counter[LeftOut] = Counter()
        self._known: dict[str, _Known] = {}  # by digest
        self._order = asyncio.Lock()
        self._failed: EngineError | None = None

    async def record(self, exchange: Exchange) -> None:
        """Append the records of an exchange.

        Raises:
            EngineError: the file could not be written, now or before.
        """
        self.check()
        if len(exchange.body) > MAX_BODY_BYTES:
            body = exchange.body[:MAX_BODY_BYTES]
            exchange = replace(exchange, body=body, truncated="length")
        begun = False  # to write or count the answer, which a cancellation does not change
        try:
            async with self._order:
                if self.is_full:
                    self.leave_out("over_limit")
                    return
                encoded = await asyncio.to_thread(self._encoded, exchange)
                if self._exceeds(len(encoded.data)):
                    self.is_full = begun = True
                    self.leave_out("over_limit")
                    if self._on_full is not None:
                        await self._on_full()
                    return
                begun = True  # from here on the records are written, and later ones may refer to it
                self._note(encoded)
                await self._append(FILE_NAME, encoded.data)
        except EngineError as failed:
            self._failed = self._failed or failed
            raise
        except (UnicodeError, ValueError):  # an answer that no record can hold
            self.leave_out("unreadable")
        except asyncio.CancelledError:
            if not begun:
                self.leave_out("unfinished")
            raise

    def _exceeds(self, size_bytes: int) -> bool:
        return self._most_bytes is not None and self._size_bytes + size_bytes > self._most_bytes

    def conceal(self, hidden: Iterable[Hidden]) -> None:
        """Mask these values, too, in later records."""
        self._scrub = self._scrub.with_more(hidden)

    def check(self) -> None:
        """Raise the error of the first write that failed, after which records are missing."""
        if self._failed is not None:
            raise self._failed

    def leave_out(self, reason: LeftOut) -> None:
        """Count an answer that has no record."""
        self._left_out[reason] += 1

    def summary(self) -> dict[str, Any]:
        """Return the fields for the summary of the task."""
        told: dict[str, Any] = {
            "file": FILE_PATH,
            "records": self._records,
            "bytes": self._size_bytes,
            "left_out": self._left_out.total(),
        }
        return {**told, **dict(sorted(self._left_out.items()))}

    def _note(self, encoded: _Encoded) -> None:
        self._size_bytes += len(encoded.data)
        self._records += encoded.records
        if encoded.first is not None:
            if len(self._known) >= MOST_KNOWN:
                del self._known[next(iter(self._known))]
            self._known[encoded.digest] = encoded.first

    def _encoded(self, exchange: Exchange) -> _Encoded:
        """Return the records to append. For a thread."""
        body = cleaned(exchange.body, exchange.headers, self._scrub)
        asked = cleaned(exchange.request_body, (), self._scrub)
        exchange = replace(exchange, body=body, request_body=asked)
        digest = _payload_digest(body)
        known = self._known.get(digest) if body and not exchange.truncated else None
        encoded = _encode(exchange, self._scrub, known, digest)
        if self._size_bytes:
            return encoded
        head = _warcinfo()
        return encoded._replace(data=head + encoded.data, records=encoded.records + 1)


# WARC 1.1 records of one exchange.
#
# Bodies arrive decoded, so `Content-Encoding` and `Transfer-Encoding` are kept as `X-Orig-…`, and
# `Content-Length` is that of the record, as in the archives of Browsertrix. HTTP/2 and HTTP/3 are
# written as HTTP/1.1.

_WARC_VERSION: Final = "1.1"
_PROTOCOL: Final = "HTTP/1.1"
# Logins and sessions, which no file may hold.
_REQUEST_SECRETS: Final = frozenset({"authorization", "cookie", "cookie2", "proxy-authorization"})
_RESPONSE_SECRETS: Final = frozenset({"set-cookie", "set-cookie2"})
_ENCODINGS: Final = frozenset({"content-encoding", "transfer-encoding"})
_LENGTH: Final = "content-length"
_TEXTS: Final = re.compile(
    r"text/|[^;]*(?:json|xml|javascript|ecmascript|x-www-form-urlencoded|svg|mpegurl)",
    re.IGNORECASE,
)
_WEB_CODECS = re.compile(
    r"utf-(?:8|16|32)|ascii|iso8859-|latin|cp\d|koi8-|gb|big5|euc_|shift_jis|iso2022_jp|mac-", re.I
)
_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_BREAKS: Final = re.compile(r"[\r\n\0]+")
_GZIP: Final = zlib.MAX_WBITS + 16
_TEXT_LEVEL, _OTHER_LEVEL = 6, 1  # images and fonts are compressed already


def _writer(out: BytesIO) -> Any:
    from warcio.warcwriter import WARCWriter  # 40 ms, which only an archive needs

    return WARCWriter(out, gzip=False, warc_version=_WARC_VERSION)


def _http_head(line: str, headers: list[Header], **kind: Any) -> Any:
    from warcio.statusandheaders import StatusAndHeaders  # as above

    return StatusAndHeaders(line, headers, **kind)


def _warcinfo() -> bytes:
    """Return the record that begins a file."""
    out = BytesIO()
    writer = _writer(out)
    told = {"software": SOFTWARE, "format": "WARC File Format 1.1"}
    writer.write_record(writer.create_warcinfo_record(FILE_NAME, told))
    return _member(out.getvalue(), _TEXT_LEVEL)


def _payload_digest(body: bytes) -> str:
    """Return the digest of a payload as WARC files write it."""
    # Identifies a payload, protects nothing; it is the digest that all readers know.
    return "sha1:" + b32encode(sha1(body, usedforsecurity=False).digest()).decode()


def _encode(exchange: Exchange, scrub: Scrub, known: _Known | None, digest: str) -> _Encoded:
    """Return the response and request records; a `known` payload becomes a revisit record.

    The body must be clean (`cleaned`), and `digest` its own.
    """
    url, date = _clean_url(exchange.url, scrub), _warc_date(exchange.at_ms)
    out = BytesIO()
    writer = _writer(out)
    http = _response_head(exchange, scrub)
    extra = {"WARC-Date": date}
    if exchange.peer:
        extra["WARC-IP-Address"] = exchange.peer
    if exchange.truncated:
        extra["WARC-Truncated"] = exchange.truncated
    if known is not None:
        response = writer.create_revisit_record(url, digest, *known, http, extra)
    else:
        extra["WARC-Payload-Digest"] = digest
        response = writer.create_warc_record(
            url, "response", BytesIO(exchange.body), len(exchange.body), "", extra, None, http
        )
    writer.write_record(response)
    is_text = known is not None or _is_text_type(_value(exchange.headers, "content-type"))
    data = _member(out.getvalue(), _TEXT_LEVEL if is_text else _OTHER_LEVEL)
    data += _request(exchange, scrub, response.rec_headers.get_header("WARC-Record-ID"), url, date)
    refers = known is None and exchange.body and not exchange.truncated
    return _Encoded(data, 2, digest, _Known(url, date) if refers else None)


def _request(exchange: Exchange, scrub: Scrub, response_id: str, url: str, date: str) -> bytes:
    out = BytesIO()
    writer = _writer(out)
    body = exchange.request_body
    extra = {"WARC-Date": date, "WARC-Concurrent-To": response_id}
    http = _request_head(exchange, scrub, url, len(body))
    record = writer.create_warc_record(
        url, "request", BytesIO(body), len(body), "", extra, None, http
    )
    writer.write_record(record)
    return _member(out.getvalue(), _TEXT_LEVEL)


def _response_head(exchange: Exchange, scrub: Scrub) -> Any:
    given = [(name, value) for name, value in exchange.headers if _is_kept(name, _RESPONSE_SECRETS)]
    headers: list[Header] = []
    size = str(len(exchange.body))
    for name, value in given:
        lower = name.lower()
        if lower in _ENCODINGS or (lower == _LENGTH and value.strip() != size):
            headers.append((f"X-Orig-{name}", value))
        elif lower != _LENGTH:
            headers.append((name, value))
    if exchange.body or any(name.lower() == _LENGTH for name, _ in given):
        headers.append(("Content-Length", size))
    line = f"{exchange.status} {exchange.reason or _phrase(exchange.status)}"
    line = line.encode("ascii", "replace").decode("ascii")  # the only one that a record takes
    return _http_head(_plain(line, scrub), _clean(headers, scrub), protocol=_PROTOCOL)


def _request_head(exchange: Exchange, scrub: Scrub, url: str, size: int) -> Any:
    headers = [
        (name, value)
        for name, value in exchange.request_headers
        if _is_kept(name, _REQUEST_SECRETS) and name.lower() != _LENGTH
    ]
    place, slash, path = url.partition("://")[2].partition("/")
    if not any(name.lower() == "host" for name, _ in headers):
        headers.insert(0, ("Host", place))
    if size:
        headers.append(("Content-Length", str(size)))
    line = f"{exchange.method} {slash or '/'}{path} {_PROTOCOL}"
    return _http_head(line, _clean(headers, scrub), is_http_request=True)


def _is_kept(name: str, secrets: frozenset[str]) -> bool:
    return bool(name) and not name.startswith(":") and name.lower() not in secrets


def _clean(headers: Iterable[Header], scrub: Scrub) -> list[Header]:
    return [(_plain(name, scrub), _plain(value, scrub)) for name, value in headers]


def _plain(text: str, scrub: Scrub) -> str:
    return scrub.hide(_BREAKS.sub(" ", text))


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def _value(headers: Iterable[Header], wanted: str) -> str:
    return next((value for name, value in headers if name.lower() == wanted), "")


def _member(data: bytes, level: int) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, _GZIP)
    return packer.compress(data) + packer.flush()


def _warc_date(at_ms: int) -> str:
    """Return an instant as WARC 1.1 writes it."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _clean_url(url: str, scrub: Scrub) -> str:
    """Return an address without fragment, credentials and the task's secrets."""
    bare = url.partition("#")[0]
    scheme, sign, rest = bare.partition("://")
    place, slash, path = rest.partition("/")
    return scrub.hide(f"{scheme}{sign}{place.rpartition('@')[2]}{slash}{path}")


def _is_text_type(content_type: str) -> bool:
    """Return whether a body of this type is text; a body without a type may be."""
    return not content_type.strip() or _TEXTS.match(content_type.strip()) is not None


def cleaned(body: bytes, headers: Sequence[Header], scrub: Scrub) -> bytes:
    """Mask the task's secrets in a text body, whatever its character set."""
    content_type = _value(headers, "content-type")
    if not (body and scrub and _is_text_type(content_type)):
        return body
    named = _CHARSET.search(content_type)
    charset = named[1] if named and _is_of_the_web(named[1]) else "utf-8"
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        charset = "utf-16"
    for encoding in dict.fromkeys((charset, "utf-8", "latin-1")):
        body = _hidden(body, encoding, scrub)
    return body


def _is_of_the_web(charset: str) -> bool:
    """Return whether a site may name this codec: some of Python's take quadratic time."""
    try:
        return _WEB_CODECS.match(codecs.lookup(charset).name) is not None
    except LookupError:
        return False


def _hidden(body: bytes, encoding: str, scrub: Scrub) -> bytes:
    """Mask secrets in a body that this encoding can read."""
    try:
        text = body.decode(encoding)
        kept = scrub.hide(text)
        return body if kept == text else kept.encode(encoding)
    except (UnicodeError, LookupError):
        return body
