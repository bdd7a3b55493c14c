"""Packing of a task's WARC file as WACZ 1.1.1, which ReplayWeb.page and py-wacz read.

The file inside is stored, not compressed once more, so that a reader can jump to each record.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from gzip import compress
from hashlib import sha256
from itertools import islice
from typing import Any, BinaryIO, Final, NamedTuple

from engine.archive.cdx_index import Capture, captures
from engine.archive.task_archive import SOFTWARE

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
