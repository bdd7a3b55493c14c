"""Packing of a task's WARC file as WACZ 1.1.1, which ReplayWeb.page and py-wacz read.

The file inside is stored, not compressed once more, so that a reader can jump to each record. Its
CDXJ index has one line for each answer, sorted by address and time.
"""

from __future__ import annotations

import json
import re
import zipfile
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from gzip import compress
from hashlib import sha256
from itertools import islice
from typing import Any, BinaryIO, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode

from engine.archive.task_archive import SOFTWARE
from engine.archive.warc_members import Record, fields_of, members, record_of

WARC: Final = "data.warc.gz"
INDEX: Final = "index.cdx.gz"
WACZ_VERSION: Final = "1.1.1"
LINES: Final = 1_024  # of the index in one compressed part, as in pywb
BLOCK: Final = 1024 * 1024
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the time of an entry says nothing; the records have theirs

Tell = Callable[[int, int], None]  # bytes done, bytes in total


class About(NamedTuple):
    """The title of the archive, and when it was packed (ISO 8601)."""

    title: str
    created: str


class Packed(NamedTuple):
    """Numbers of a packed archive; `missing` counts the pages without a record."""

    records: int
    pages: int
    missing: int


class Page(NamedTuple):
    """A page of the task: the addresses by which it may be recorded, and its facts."""

    urls: tuple[str, ...]
    title: str
    seed: bool


def write_wacz(
    out: BinaryIO, warc: BinaryIO, pages: Iterable[Page], about: About, tell: Tell
) -> Packed:
    """Write the archive of `warc` into `out`; `tell` may raise to stop."""
    total = 2 * warc.seek(0, 2)
    dates: dict[str, str] = {}
    lines: list[str] = []
    size = 0

    def read(done: int) -> None:
        nonlocal size
        size = done
        tell(done, total)

    for capture in captures(warc, WARC, read):
        lines.append(capture.line)
        _note(dates, capture)
    lines.sort()
    listed, missing = _listed(pages, dates)
    with zipfile.ZipFile(out, "w", allowZip64=True) as archive:
        files = _Files(archive)
        blocks = _blocks(warc, size, lambda done: tell(size + done, total))
        files.add(f"archive/{WARC}", blocks, size)
        index, parts = _index(lines)
        files.add(f"indexes/{INDEX}", [index], len(index))
        places, told = "".join(parts).encode(), "".join(_page_lines(listed)).encode()
        files.add("indexes/index.idx", [places], len(places))
        files.add("pages/pages.jsonl", [told], len(told), packed=True)
        files.finish(about, listed)
    return Packed(len(lines), len(listed), missing)


def _note(dates: dict[str, str], capture: Capture) -> None:
    """Note the last capture of an address: a page that was tried again is the last one."""
    if "method" not in capture.fields:
        dates[str(capture.fields["url"])] = capture.date


class _Listed(NamedTuple):
    url: str
    date: str
    page: Page


def _listed(pages: Iterable[Page], dates: Mapping[str, str]) -> tuple[list[_Listed], int]:
    """Return the pages that have a record, and the number of the others."""
    found: list[_Listed] = []
    missing = 0
    for page in pages:
        url = next((url for url in page.urls if url.partition("#")[0] in dates), None)
        if url is None:
            missing += 1
        else:
            found.append(_Listed(url, dates[url.partition("#")[0]], page))
    return found, missing


def _page_lines(pages: Iterable[_Listed]) -> Iterator[str]:
    yield json.dumps({"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}) + "\n"
    for url, date, page in pages:
        told: dict[str, Any] = {
            "id": sha256(f"{url} {date}".encode()).hexdigest()[:32],
            "url": url,
            "ts": date,
            "title": page.title,
        }
        if page.seed:
            told["seed"] = True
        yield json.dumps(told) + "\n"


def _index(lines: list[str]) -> tuple[bytes, list[str]]:
    """Return the compressed index, and the lines by which a reader finds its parts."""
    parts: list[bytes] = []
    told = [f"!meta 0 {json.dumps({'format': 'cdxj-gzip-1.0', 'filename': INDEX})}\n"]
    offset = 0
    rest = iter(lines)
    while some := list(islice(rest, LINES)):
        part = compress("".join(some).encode(), mtime=0)
        place = {"offset": offset, "length": len(part), "digest": _digest(part), "filename": INDEX}
        key = " ".join(some[0].split(" ", 2)[:2])
        told.append(f"{key} {json.dumps(place)}\n")
        parts.append(part)
        offset += len(part)
    return b"".join(parts), told


def _digest(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


def _blocks(file: BinaryIO, size: int, tell: Callable[[int], None]) -> Iterator[bytes]:
    file.seek(0)
    done = 0
    while done < size and (block := file.read(min(BLOCK, size - done))):
        yield block
        done += len(block)
        tell(done)


class _Files:
    """Entries of the archive, with the list of them that its description has."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._resources: list[dict[str, Any]] = []

    def add(self, path: str, blocks: Iterable[bytes], size: int, *, packed: bool = False) -> None:
        digest = sha256()
        entry = _entry(path, packed)
        # Readers miss the data behind the longer head that an entry of unknown size has.
        entry.file_size = size
        with self._archive.open(entry, "w") as inside:
            for block in blocks:
                inside.write(block)
                digest.update(block)
        told = {"name": path.rpartition("/")[2], "path": path}
        told["hash"] = f"sha256:{digest.hexdigest()}"
        self._resources.append({**told, "bytes": size})

    def finish(self, about: About, pages: list[_Listed]) -> None:
        """Write the description, and its digest."""
        main = {"mainPageUrl": pages[0].url, "mainPageDate": pages[0].date} if pages else {}
        told = {
            "profile": "data-package",
            "wacz_version": WACZ_VERSION,
            "title": about.title,
            "created": about.created,
            "software": SOFTWARE,
            **main,
            "resources": self._resources,
        }
        data = json.dumps(told, indent=2).encode()
        self._archive.writestr(_entry("datapackage.json", True), data)
        digest = json.dumps({"path": "datapackage.json", "hash": _digest(data)}, indent=2)
        self._archive.writestr(_entry("datapackage-digest.json", True), digest)


def _entry(path: str, packed: bool) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(path, _EPOCH)
    made.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    return made


# The index. Keys are written as ReplayWeb.page, pywb and cdxj-indexer write them: the address in
# SURT form, with the method and the body of a request that is no GET.

_DIGITS: Final = re.compile(r"\D")
_WWW: Final = re.compile(r"www\d*\.")
_STAMP: Final = 14  # digits of an index's time, down to seconds
_MOST_QUERY: Final = 4_096  # characters of a request's body in a key, as in pywb
_NOT_MODIFIED: Final = "304"
_REVISIT: Final = "warc/revisit"


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
        "mime": _REVISIT if headers.get("warc-type") == "revisit" else mime,
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
    query = _query(body, given.get("content-type", ""))[:_MOST_QUERY]
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
