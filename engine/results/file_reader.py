"""Reader of one task's folder for display: units, files and screenshots. It writes nothing.

Everything is read on a thread and in parts, so that a result larger than memory can be shown. A
cancelled call leaves no thread reading for longer than one part takes.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

import msgspec

from engine.ledger.holes import is_hole, seek_behind
from engine.ledger.json_stream import is_deep_text
from engine.ledger.reader import LedgerReader
from engine.ledger.routing import OWN_ONLY, Router, routed, routed_parts
from engine.model.blocked_places import Refusals, refusal
from engine.model.errors import TaskUnreadable
from engine.model.ledger_ids import plain_id
from engine.model.records import ARTIFACTS_NAME
from engine.results.evidence_documents import text_file
from engine.results.json_tree import (
    BLOCK,
    Broken,
    Hit,
    Kind,
    Node,
    Read,
    Rest,
    Scan,
    Search,
    members,
    unescaped,
)
from engine.results.site_audit import Audit, audit
from engine.results.units import (
    Difference,
    Differences,
    ResultPart,
    Unit,
    UnitPart,
    UnitReader,
    changed_lines,
    differences,
    read_result,
    text_of_unit,
    whole_unit,
)

SEARCH_BLOCK: Final = 1024 * 1024


class FileFacts(msgspec.Struct, frozen=True):
    """File by its name in the task's folder (`artifacts/…` below it); changed at ms."""

    name: str
    size_bytes: int
    changed_at: float

    @property
    def is_json(self) -> bool:
        return self.name.endswith((".json", ".jsonl"))

    @property
    def is_picture(self) -> bool:
        return self.name.lower().endswith((".png", ".jpg", ".jpeg", ".webp"))


class JsonMistake(msgspec.Struct, frozen=True):
    """The first place at which a file is no JSON, from 1."""

    line: int
    column: int


class FilePart(msgspec.Struct, frozen=True):
    """Range of bytes of a file, cut at line ends where possible."""

    data: bytes
    start: int
    size: int


def read_part(reader: LedgerReader, task_id: str, name: str, start: int, most: int) -> FilePart:
    """Read at most `most` bytes from `start`; a line cut at the end is left for the next part."""
    with reader.open_whole(task_id, name) as file:
        size = file.seek(0, 2)
        start = max(0, min(start, size))
        file.seek(start)
        data = file.read(most)
    cut = data.rfind(b"\n") + 1
    if start + len(data) < size and cut > most // 2:
        data = data[:cut]
    return FilePart(data, start, size)


def find_in(
    opened: Callable[[], BinaryIO],
    needle: str,
    start: int,
    on_progress: Callable[[int, int], None],
    stop: threading.Event,
) -> int:
    """Find the next byte offset of `needle` from `start`, ignoring case; -1 for none.

    `on_progress` is called with (bytes read, file size) after each block.
    """
    wanted = needle.encode().lower()
    with opened() as file:
        size = file.seek(0, 2)
        file.seek(start)
        kept, at = b"", start
        while (block := file.read(SEARCH_BLOCK)) and not stop.is_set():
            if is_hole(block):
                at, kept = seek_behind(file.seek, at + len(block)), b""
                on_progress(at, size)
                continue
            data = kept + block.lower()
            found = data.find(wanted)
            if found >= 0:
                return at - len(kept) + found
            at += len(block)
            kept = data[len(data) - len(wanted) + 1 :] if len(wanted) > 1 else b""
            on_progress(at, size)
    return -1


T = TypeVar("T")
PART_S, LONGEST_S = 0.05, 0.4
MOST_CHECKED: Final = 1024 * 1024  # bytes: the decoder needs 15 ms, in which no other thread runs
MOST_VALUE: Final = 8 * 1024 * 1024  # bytes of one value that is read whole
MOST_INNER: Final = 64 * 1024 * 1024  # of a string that contains JSON
OnProgress = Callable[[int, int], None]


class HitPart(msgspec.Struct, frozen=True):
    """Hits since the last part of a search; `done` of `size` bytes are searched."""

    hits: tuple[Hit, ...]
    done: int
    size: int
    passed_over: int = 0


class TaskFileReader:
    """Reader of task folders. Calls raise NotATaskId, TaskNotFound, TaskUnreadable."""

    part_name = "reading"

    def __init__(self, root: Path, router: Router = OWN_ONLY) -> None:
        self._root = root
        self.router = router
        self._inner: OrderedDict[tuple[str, str, tuple[int, ...]], bytes] = OrderedDict()

    @routed_parts
    async def units(
        self, task_id: str, since: int = 0, number: int = 0
    ) -> AsyncGenerator[UnitPart, None]:
        """Yield the units from the first one, or those behind `since` (a part's `resume`)."""
        reader = await asyncio.to_thread(lambda: UnitReader(self._reader(), task_id, since, number))
        part = UnitPart(())
        while not part.last:
            part = await asyncio.to_thread(reader.part)
            yield part

    @routed()
    async def unit(self, task_id: str, unit: Unit) -> dict[str, Any] | None:
        """Read one whole unit; None where it no longer exists."""
        return await _stopping(lambda stop: whole_unit(self._reader(), task_id, unit, stop))

    @routed()
    async def unit_text(self, task_id: str, unit: Unit) -> str:
        """Read the text of one unit by which runs are compared."""

        def work(stop: threading.Event) -> str:
            reader = self._reader()
            return text_of_unit(reader, task_id, whole_unit(reader, task_id, unit, stop))

        return await _stopping(work)

    @routed()
    async def result(
        self, task_id: str, cursor: str, most: int, most_bytes: int
    ) -> ResultPart | None:
        """Read a part of the result; see `read_result`."""
        return await asyncio.to_thread(
            lambda: read_result(self._reader(), task_id, cursor, most, most_bytes)
        )

    @routed()
    async def refusals(self, task_id: str) -> Refusals:
        """Collect every request that the task's browser was refused, from all of its events."""
        found, at = Refusals(), -1
        behind = 0
        while behind != at:
            at = behind
            part = await asyncio.to_thread(self._reader().read_events, task_id, at)
            found.add(filter(None, map(refusal, part.events)))
            behind = part.next_offset
        return found

    async def differences(
        self,
        before: str,
        after: str,
        on_progress: Callable[[int], None],
    ) -> Differences:
        """Compare two runs, also of two ledgers.

        `on_progress` is called on the thread with the number of units read.
        """
        links = [self.router.of(one) for one in (before, after)]
        rooms: list[TaskFileReader] = [
            link.part(self.part_name) if link else self for link in links
        ]
        runs = [plain_id(before), plain_id(after)]

        def work(stop: threading.Event) -> Differences:
            earlier, later = zip((room._reader() for room in rooms), runs, strict=True)
            return differences(earlier, later, on_progress, stop)

        link = links[1] or links[0]
        return await (link.ask(_stopping(work)) if link else _stopping(work))

    async def text_difference(self, before: str, after: str, one: Difference) -> tuple[str, ...]:
        """Return the lines by which a unit's text differs between two runs; see `changed_lines`.

        Returns none where its text is the same, or no longer there.
        """
        if one.units is None:
            return ()
        texts = [
            await self.unit_text(task_id, unit)
            for task_id, unit in zip((before, after), one.units, strict=True)
        ]
        return await asyncio.to_thread(changed_lines, *texts)

    @routed()
    async def audit(self, task_id: str, on_progress: OnProgress = lambda *_: None) -> Audit:
        """Compute the reports about a crawl's pages; see `site_audit.audit` for errors.

        `on_progress` is called on the thread with the bytes read and the bytes in total.
        """
        return await _stopping(lambda stop: audit(self._reader(), task_id, stop, on_progress))

    @routed()
    async def files(self, task_id: str) -> tuple[FileFacts, ...]:
        """List the task's files, those in `artifacts/` last."""
        found = await asyncio.to_thread(lambda: self._reader().files(task_id))
        return tuple(FileFacts(*one) for one in found)

    @routed()
    async def place(self, task_id: str, name: str) -> Path | None:
        """Return a file's path for another program; None for a link, a folder or a missing file."""
        return await asyncio.to_thread(lambda: self._reader().place(task_id, name))

    @routed()
    async def part(self, task_id: str, name: str, start: int, most: int) -> FilePart:
        """Read a range of bytes of a file."""
        return await asyncio.to_thread(
            lambda: read_part(self._reader(), task_id, name, start, most)
        )

    @routed()
    async def document(self, task_id: str, row: Mapping[str, Any], most: int) -> str | None:
        """Read the text in the file of an evidence part; None for a unit without such a file."""
        name = text_file(row)
        if not name:
            return None
        found = await asyncio.to_thread(lambda: read_part(self._reader(), task_id, name, 0, most))
        return found.data.decode("utf-8", "replace")

    @routed()
    async def find(
        self, task_id: str, name: str, needle: str, start: int, on_progress: OnProgress
    ) -> int:
        """Find the next byte offset of `needle` in a file; -1 for none."""
        return await _stopping(
            lambda stop: find_in(lambda: self.open(task_id, name), needle, start, on_progress, stop)
        )

    @routed()
    async def picture(self, task_id: str, name: str) -> bytes | None:
        """Read a file under `artifacts/` by its plain name; None where there is none."""
        given = name.removeprefix(f"{ARTIFACTS_NAME}/")
        return await asyncio.to_thread(lambda: self._reader().read_artifact(task_id, given))

    @routed_parts
    async def members(
        self, task_id: str, name: str, node: Node, rest: Rest | None = None, most: int = 500
    ) -> AsyncGenerator[list[Node | Rest], None]:
        """Yield the members of `node` in a JSON file in parts; those behind `rest` if given."""

        def begin() -> Iterator[Node | Rest | None]:
            inside = (*node.inside, node.start) if node.kind == "json" else node.inside
            with self._bytes(task_id, name, inside) as source:
                scan = source.scan(node.start if node.kind != "json" else 0)
                kind = _enter(scan, node.kind, rest is None)
                if rest is not None:
                    scan = source.scan(rest.start)
                number = 0 if rest is None else rest.number
                yield from members(scan, kind, number, most, inside)

        parts: AsyncIterator[list[Node | Rest]] = _in_parts(begin(), self._broken(task_id, name))
        async for part in parts:
            yield part

    @routed()
    async def mistake(self, task_id: str, name: str) -> JsonMistake | None:
        """Find the first mistake in a JSON file of up to 1 MiB.

        The tree finds no others than those at which it cannot go on: a bare word is shown.
        """
        return await asyncio.to_thread(self._mistake, task_id, name)

    def _mistake(self, task_id: str, name: str) -> JsonMistake | None:
        with self.open(task_id, name) as file:
            data = file.read(MOST_CHECKED + 1)
        if len(data) > MOST_CHECKED or is_deep_text(data):
            return None
        try:
            json.loads(data.decode("utf-8-sig", "replace"), strict=False)
        except json.JSONDecodeError as error:
            return JsonMistake(error.lineno, error.colno)
        except ValueError:  # a number of too many digits
            return None
        return None

    @routed_parts
    async def search(self, task_id: str, name: str, needle: str) -> AsyncGenerator[HitPart, None]:
        """Yield every name and value in a JSON file that contains `needle`, ignoring case."""
        size = await asyncio.to_thread(self._size, task_id, name)
        where: list[Search] = []

        def begin() -> Iterator[Hit | None]:
            with self._bytes(task_id, name, ()) as source:
                where.append(Search(source.scan(), needle, lines=name.endswith(".jsonl")))
                yield from where[0].hits()

        async for hits in _in_parts(begin(), self._broken(task_id, name)):
            at = where[0]
            yield HitPart(tuple(hits), min(at.place, size), size, at.passed_over)

    @routed()
    async def value(self, task_id: str, name: str, node: Node) -> bytes | None:
        """Read one whole value as written; None where it is larger than 8 MiB."""

        def work() -> bytes | None:
            with self._bytes(task_id, name, node.inside) as source:
                return _read_value(source.read, node.start, MOST_VALUE)

        try:
            return await asyncio.to_thread(work)
        except Broken as error:
            raise self._broken(task_id, name)(error) from error

    def _size(self, task_id: str, name: str) -> int:
        with self.open(task_id, name) as file:
            return file.seek(0, 2)

    def _reader(self) -> LedgerReader:
        return LedgerReader(self._root)

    def _bytes(self, task_id: str, name: str, inside: tuple[int, ...]) -> _Source:
        return _Source(self, task_id, name, inside)

    def open(self, task_id: str, name: str) -> BinaryIO:
        """Open one of the task's files; the result always includes its units."""
        there = self.router.of(task_id)
        if there is not None:
            found: BinaryIO = there.part(self.part_name).open(plain_id(task_id), name)
            return found
        return self._reader().open_whole(task_id, name)

    def inner(self, task_id: str, name: str, inside: tuple[int, ...]) -> bytes:
        """Unescape the string that begins at `inside[-1]`. Raises Broken."""
        key = (task_id, name, inside)
        found = self._inner.get(key)
        if found is None:
            with self._bytes(task_id, name, inside[:-1]) as source:
                raw = _read_value(source.read, inside[-1], MOST_INNER)
            if raw is None:
                raise Broken(inside[-1])
            found = self._inner[key] = unescaped(raw[1:-1]).encode("utf-8", "replace")
            while len(self._inner) > 1:
                self._inner.popitem(last=False)
        return found

    def _broken(self, task_id: str, name: str) -> Callable[[Broken], TaskUnreadable]:
        path = str(self._root / task_id / name)
        return lambda error: TaskUnreadable(task_id=task_id, reason=f"{name}: {error}", path=path)


class _Source:
    """Context manager for the bytes of a file, or of a string in it that contains JSON."""

    def __init__(
        self, file_reader: TaskFileReader, task_id: str, name: str, inside: tuple[int, ...]
    ) -> None:
        self._file_reader, self._at = file_reader, (task_id, name)
        self._inside = inside
        self._file: BinaryIO | None = None
        self._data = b""

    def __enter__(self) -> _Source:
        if self._inside:
            self._data = self._file_reader.inner(*self._at, self._inside)
        else:
            self._file = self._file_reader.open(*self._at)
        return self

    def read(self, at: int) -> bytes:
        """Return the block from byte `at`; empty at the end."""
        if self._file is None:
            return self._data[at : at + BLOCK]
        self._file.seek(at)
        return self._file.read(BLOCK)

    def scan(self, place: int = 0) -> Scan:
        """Return a cursor at byte `place`."""
        return Scan(self.read, place, self._behind)

    def _behind(self, at: int) -> int:
        return at if self._file is None else seek_behind(self._file.seek, at)

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def _enter(scan: Scan, kind: Kind, step: bool) -> Kind:
    """Skip the opening bracket of `kind`; the kind of embedded JSON follows from its bracket."""
    if kind == "lines":
        return kind
    first = scan.peek()
    if first not in (b"{", b"["):
        raise Broken(scan.place)
    if step:
        scan.step()
    return "object" if first == b"{" else "array"


def _read_value(read: Read, start: int, most: int) -> bytes | None:
    scan = Scan(read, start)
    for _ in scan.skip():
        if scan.place - start > most:
            return None
    size, at, parts = scan.place - start, start, []
    while size > 0 and (block := read(at)):
        parts.append(block[:size])
        at += len(block)
        size -= len(block)
    return b"".join(parts) if scan.place - start <= most else None


async def _in_parts(
    found: Iterator[T | None], broken: Callable[[Broken], TaskUnreadable]
) -> AsyncIterator[list[T]]:
    """Consume `found` on a thread: the first part after 50 ms, later ones up to 400 ms long.

    Each part costs a thread switch. Pauses count, so that no part takes forever.
    """

    def consume(part: list[T], part_s: float) -> bool:
        until = time.perf_counter() + part_s
        for one in found:
            if one is not None:
                part.append(one)
            if time.perf_counter() > until:
                return False
        return True

    ended, part_s = False, PART_S
    while not ended:
        part: list[T] = []
        try:
            ended = await asyncio.to_thread(consume, part, part_s)
        except Broken as error:
            yield part  # the members before the place where it breaks off
            raise broken(error) from error
        part_s = min(2 * part_s, LONGEST_S)
        yield part


async def _stopping(work: Callable[[threading.Event], T]) -> T:
    """Run `work` on a thread and stop it when the caller is cancelled."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(work, stop)
    finally:
        stop.set()
