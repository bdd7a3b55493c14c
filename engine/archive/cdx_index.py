"""CDXJ index of a WARC file: one line for each answer, sorted by address and time.

Keys are written as ReplayWeb.page, pywb and cdxj-indexer write them: the address in SURT form, with
the method and the body of a request that is no GET.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode

from engine.archive.warc_members import Record, fields_of, members, record_of

_DIGITS: Final = re.compile(r"\D")
_WWW: Final = re.compile(r"www\d*\.")
_STAMP: Final = 14  # digits of an index's time, down to seconds
MOST_QUERY: Final = 4_096  # characters of a request's body in a key, as in pywb
_NOT_MODIFIED: Final = "304"
REVISIT: Final = "warc/revisit"


class Capture(NamedTuple):
    """One answer in the file: its key, its time as in the record, and the fields of its line."""

    key: str
    date: str
    fields: dict[str, Any]
    record_id: str

    @property
    def line(self) -> str:
        stamp = _DIGITS.sub("", self.date)[:_STAMP]
        return f"{self.key} {stamp} {json.dumps(self.fields)}\n"


def captures(file: BinaryIO, name: str, tell: Callable[[int], None]) -> Iterator[Capture]:
    """Yield the answers of a WARC file, which is called `name` in the index.

    `tell` is called with the number of bytes read.
    """
    waiting: Capture | None = None
    for member in members(file):
        tell(member.end)
        record = record_of(member)
        if record is None:
            continue
        kind = record.headers.get("warc-type")
        if kind == "request":
            if waiting is not None:
                yield _with_request(waiting, record)
            waiting = None
        elif kind in ("response", "revisit"):
            if waiting is not None:
                yield waiting
            place = {"length": member.length, "offset": member.offset, "filename": name}
            waiting = _capture(record, {key: str(value) for key, value in place.items()})
            if kind == "response" and waiting.fields["status"] == _NOT_MODIFIED:
                waiting = None  # its address has an earlier record, which a replay shows
    if waiting is not None:
        yield waiting


def _capture(record: Record, place: dict[str, str]) -> Capture:
    headers = record.headers
    url = headers.get("warc-target-uri", "")
    head = record.block.partition(b"\r\n\r\n")[0]
    status = head.partition(b"\r\n")[0].decode("latin-1").split(" ")[1:2]
    mime = fields_of(head).get("content-type", "").partition(";")[0].strip()
    fields = {
        "url": url,
        "mime": REVISIT if headers.get("warc-type") == "revisit" else mime,
        "status": "".join(status),
        "digest": headers.get("warc-payload-digest", ""),
        **place,
    }
    date = headers.get("warc-date", "")
    return Capture(surt(url), date, fields, headers.get("warc-record-id", ""))


def _with_request(capture: Capture, request: Record) -> Capture:
    """Add the method and body of a request that is no GET, by which a replay finds its answer."""
    if request.headers.get("warc-concurrent-to") != capture.record_id:
        return capture
    head, _, rest = request.block.partition(b"\r\n\r\n")
    method = head.partition(b" ")[0].decode("latin-1")
    if method in ("GET", "HEAD"):
        return capture
    given = fields_of(head)
    size = given.get("content-length", "0")
    body = rest[: int(size)] if size.isdigit() else b""
    query = _query(body, given.get("content-type", ""))[:MOST_QUERY]
    url = str(capture.fields["url"])
    whole = f"{url}{'&' if '?' in url else '?'}__wb_method={method}&{query}"
    fields = {**capture.fields, "method": method, "requestBody": query}
    return capture._replace(key=surt(whole), fields=fields)


def _query(body: bytes, content_type: str) -> str:
    """Return a request's body as a query."""
    kind = content_type.partition(";")[0].strip().lower()
    text = body.decode("utf-8", "replace")
    if kind == "application/x-www-form-urlencoded":
        return urlencode(parse_qsl(text, keep_blank_values=True))
    if kind.endswith("json") or kind == "text/plain":
        try:
            return urlencode(list(_pairs(json.loads(text))))
        except (ValueError, RecursionError):
            pass
    return "__wb_post_data=" + b64encode(body).decode() if body else ""


def _pairs(given: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the plain values of a JSON document with the names of their fields."""
    known: dict[str, int] = {}
    for key, value in _values(given, name):
        known[key] = known.get(key, 0) + 1
        yield (key if known[key] == 1 else f"{key}.{known[key]}_"), value


def _values(given: object, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(given, dict):
        for key, value in given.items():
            yield from _values(value, str(key))
    elif isinstance(given, list):
        for value in given:
            yield from _values(value, name)
    elif name:
        yield name, given if isinstance(given, str) else json.dumps(given)


def surt(url: str) -> str:
    """Return the sort key of an address: its host's names in reverse order, then its path."""
    scheme, sign, rest = url.lower().partition("://")
    if not sign or scheme not in ("http", "https"):
        return url
    place, _, path = rest.partition("/")
    if "?" in place:  # an address without a path
        place, _, query = place.partition("?")
        path = f"?{query}"
    host, colon, port = place.rpartition(":")
    if not colon or not port.isdigit():
        host, port = place, ""
    host = _WWW.sub("", host, count=1) if _WWW.match(host) else host
    path, mark, query = path.partition("?")
    if query:
        query = "&".join(sorted(query.split("&")))
    names = ",".join(reversed(host.split(".")))
    return f"{names}{f':{port}' if port else ''})/{path}{mark if query else ''}{query}"
