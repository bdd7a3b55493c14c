"""The half of the ledger that only looks: nothing here creates, changes or touches a file."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from engine.ledger import event_search, journal, listing, meta, opening, task_files, unit_timing
from engine.ledger.event_search import Found, Needle
from engine.ledger.files import MIB, Folder, Unusable
from engine.ledger.lease import Lease
from engine.ledger.listing import packed
from engine.ledger.machine import wall_ms
from engine.ledger.result_assembly import Joined, Pieces, assemble, head_apart
from engine.ledger.stable_reads import Mark, mark_of, opened, steadily
from engine.ledger.time_slices import AT_ONCE
from engine.model.errors import (
    EngineError,
    LedgerMissing,
    LedgerUnusable,
    NotATaskId,
    TaskNotFound,
    TaskUnreadable,
)
from engine.model.records import (
    EVENTS_NAME,
    META_NAME,
    PAGES_NAME,
    RESULT_NAME,
    EventSlice,
    History,
    Stamp,
    TaskEvent,
    TaskId,
    TaskRecord,
    Units,
    UnitTimes,
    Unreadable,
)

T = TypeVar("T")

MOST_DOUBTED = 100  # unreadable tasks of a list that get a second look
MOST_REFUSED = 1_000
DOCUMENT_CAP = 8 * MIB  # a task file has 1 MiB at most, and its states and ids come on top


def _is_record(entry: TaskRecord | Unreadable | None) -> bool:
    return isinstance(entry, TaskRecord)


class LedgerLook:
    """Tasks below `root`, read-only; the root may be missing, and then there are none.

    Raises LedgerUnusable when `root` is no folder or may not be read. Calls with a task
    id raise NotATaskId or TaskNotFound.
    """

    lease: Lease | None = None  # whoever only looks has none

    def __init__(self, root: Path, *, now_ms: Callable[[], int] = wall_ms) -> None:
        self.root = root.absolute()
        self._now_ms = now_ms
        self._refused: dict[str, tuple[Stamp | None, Unreadable]] = {}
        found = self._open_root()
        if found is not None:
            found.close()

    def read(self, task_id: str) -> TaskRecord | Unreadable:
        """One task as it stands, judged strictly; Unreadable tells why it cannot be used."""
        with self._task(task_id) as folder:
            found = steadily(lambda: mark_of(folder), lambda: self._entry(task_id), _is_record)
            if isinstance(found, Unreadable) and len(self._refused) < MOST_REFUSED:
                self._refused[task_id] = listing.stamp(folder, META_NAME), found
        if found is None:
            raise TaskNotFound(task_id=task_id, root=str(self.root))
        return found

    @property
    def has_refused(self) -> bool:
        """Did `read` refuse any record so far?"""
        return bool(self._refused)

    def refused(self, task_id: str, stamp: int | None) -> Unreadable | None:
        """What `read` found of a record that a list takes for whole, and that was not changed."""
        mark, found = self._refused.get(task_id, (None, None))
        return found if mark is not None and packed(mark) == stamp else None

    def _entry(self, task_id: str) -> TaskRecord | Unreadable | None:
        root = self._open_root()
        if root is None:
            return None
        with root:
            strictly = listing.read_many(root, [task_id], self._now_ms(), meta.strict)
            return next((found.entry for found in strictly), None)

    def read_raw(self, task_id: str) -> dict[str, Any]:
        """The whole meta.json with every field. Raises TaskUnreadable."""
        with self._task(task_id) as folder:
            return self._whole(folder, task_id)[1]

    def read_many(self, ids: Iterable[str]) -> list[listing.Found]:
        """(id, record or Unreadable, stamp) of each task that is there; the way for lists."""
        root = self._open_root()
        if root is None:
            return []
        with root:
            return list(listing.read_many(root, ids, self._now_ms()))

    def read_kept(
        self, ids: Iterable[str], make: listing.Make
    ) -> list[tuple[TaskRecord | Unreadable, int | None]]:
        """As `read_many`, what a list keeps of each: no two large records are held at once."""
        root = self._open_root()
        if root is None:
            return []
        with root:
            found = listing.read_many(root, ids, self._now_ms())
            return [listing.kept(one, make) for one in found]

    def entries(
        self, ids: Iterable[str], make: listing.Make = meta.shared
    ) -> list[TaskRecord | Unreadable]:
        """The same without stamps, a fifth faster: for who has them from `scan`."""
        root = self._open_root()
        if root is None:
            return []
        with root:
            return list(listing.entries(root, ids, self._now_ms(), make))

    def ended(
        self, ids: Collection[str], make: listing.Make = meta.shared
    ) -> tuple[list[TaskRecord], list[str]]:
        """Those of `ids` that have ended, the fastest way; and the ids of the others, if any."""
        root = self._open_root()
        if root is None:
            return [], list(ids)
        with root:
            return listing.ended(root, ids, make)

    def folders(self, at_once: int) -> Iterator[list[TaskId]]:
        """Every task folder there is, looked into or not, in no order, some at a time."""
        root = self._open_root()
        if root is not None:
            with root:
                yield from listing.folders(root, at_once)

    def scan(self) -> Iterator[tuple[TaskId, Stamp | None]]:
        """Every task with the stamp of its meta.json (None: it has none): one cheap pass."""
        root = self._open_root()
        if root is not None:
            with root:
                yield from listing.stamps(root)

    def stamp(self, task_id: str) -> Stamp | None:
        """The stamp of one meta.json; None when it is not there."""
        with self._task(task_id) as folder:
            return listing.stamp(folder, META_NAME)

    def list(
        self,
        *,
        status: Collection[str] = (),
        kind: Collection[str] = (),
        since: float | None = None,
        limit: int | None = 50,
    ) -> list[TaskRecord | Unreadable]:
        """The newest `limit` tasks (None: all) that match; Unreadable ones only without a filter.

        `since` is in ms since 1970 and includes its own moment. Source: seed 000, invariant 8.
        """
        root = self._open_root()
        if root is None:
            return []
        with root:
            ids = [task_id for part in listing.folders(root, AT_ONCE) for task_id in part]
            found = list(listing.entries(root, ids, self._now_ms()))
        whole = [one for one in found if isinstance(one, TaskRecord)]
        if 0 < len(ids) - len(whole) <= MOST_DOUBTED:
            found = [*whole, *self._doubtful({*ids}.difference(one.task_id for one in whole))]
        return listing.newest(found, status, kind, since)[:limit]

    def _doubtful(self, ids: set[TaskId]) -> Sequence[TaskRecord | Unreadable]:
        """Those that looked unreadable or absent; one may just be rewritten by another tool."""
        return steadily(
            lambda: [mark for task_id in ids for mark in self._marks(task_id)],
            lambda: [one.entry for one in self.read_many(ids)],
            lambda entries: len(entries) == len(ids) and all(map(_is_record, entries)),
        )

    def _marks(self, task_id: TaskId) -> Sequence[Mark]:
        with suppress(EngineError, OSError), self._task(task_id) as folder:
            return mark_of(folder)
        return ()

    def read_events(
        self, task_id: str, offset: int = 0, limit_bytes: int = MIB, *, whole: bool = False
    ) -> EventSlice:
        """Events from byte `offset` on, about `limit_bytes` of them; go on at `next_offset`.

        A last line that is not ended is left for the next call, or counted as skipped when
        `whole` says that nothing more will come.
        """
        with self._task(task_id) as folder, self._readable(task_id, EVENTS_NAME):
            return journal.read_events(folder, EVENTS_NAME, offset, limit_bytes, whole)

    def history(
        self,
        task_id: str,
        make: Callable[[TaskEvent, int], T],
        *,
        before: int | None = None,
        since: int | None = None,
    ) -> History[T]:
        """The newest events, each made into what is shown of it; or a part of the others.

        `make` is told the event and the byte at which its line begins; `before` is the byte at
        which that part ends, `since` the one at which it begins.
        """
        with self._task(task_id) as folder, self._readable(task_id, EVENTS_NAME):
            if before is not None:
                return event_search.earlier(folder, EVENTS_NAME, before, make)
            if since is not None:
                return event_search.later(folder, EVENTS_NAME, since, make)
            return event_search.newest(folder, EVENTS_NAME, make)

    def find_events(self, task_id: str, needle: Needle, since: int = 0) -> Found:
        """Where a text stands in the events, some MiB from byte `since` on; see `seeking`."""
        with self._task(task_id) as folder, self._readable(task_id, EVENTS_NAME):
            return event_search.find(folder, EVENTS_NAME, needle, since)

    def event_place(self, task_id: str, ts_ms: float) -> int:
        """The byte at which the first event stands that is not before `ts_ms`."""
        with self._task(task_id) as folder, self._readable(task_id, EVENTS_NAME):
            return event_search.place_of(folder, EVENTS_NAME, ts_ms)

    def event_blocks(self, task_id: str) -> Iterator[tuple[bytes, int]]:
        """All events as they stand, piece by piece, each with the size of the file."""
        with self._task(task_id) as folder, self._readable(task_id, EVENTS_NAME):
            yield from event_search.blocks(folder, EVENTS_NAME)

    def unit_times(self, task_id: str, since: int = 0) -> UnitTimes:
        """How long finished units took, some MiB of them from byte `since` on; see `timing`."""
        with self._task(task_id) as folder, self._readable(task_id, PAGES_NAME):
            return unit_timing.read(folder, PAGES_NAME, since)

    def tail_units(
        self, task_id: str, from_offset: int = 0
    ) -> tuple[Units | None, float | None, int]:
        """What came behind `from_offset`: progress, the newest event's time, where to go on.

        None where nothing came. Reads 64 KiB at most, so it is cheap on any file.
        """
        with self._task(task_id) as folder:
            return journal.tail(folder, EVENTS_NAME, from_offset)

    def read_pages(self, task_id: str, offset: int = 0) -> Iterator[dict[str, Any]]:
        """The finished units in order, one at a time; torn lines are passed over."""
        for line in self.raw_pages(task_id, offset):
            yield journal.page(line)

    def raw_pages(self, task_id: str, offset: int = 0) -> Iterator[bytes]:
        """The same as whole JSON objects in bytes, for `assemble`."""
        with self._task(task_id) as folder, self._readable(task_id, PAGES_NAME):
            yield from journal.page_lines(folder, PAGES_NAME, offset)

    def placed_pages(self, task_id: str, offset: int = 0) -> Iterator[tuple[bytes, int]]:
        """As `raw_pages`, each with the byte at which the next one begins."""
        with self._task(task_id) as folder, self._readable(task_id, PAGES_NAME):
            yield from journal.placed_pages(folder, PAGES_NAME, offset)

    def files(self, task_id: str) -> tuple[tuple[str, int, float], ...]:
        """Every file of the task (name, bytes, changed at in ms), those in `artifacts/` last."""
        with self._task(task_id) as folder:
            return tuple(task_files.listed(folder))

    def open_file(self, task_id: str, name: str) -> BinaryIO:
        """One of `files`, open for reading. Raises TaskUnreadable where it cannot be."""
        with self._task(task_id) as folder, self._readable(task_id, name):
            return task_files.open_listed(folder, name)

    def open_whole(self, task_id: str, name: str) -> BinaryIO:
        """As `open_file`; result.json with its units in it, wherever they stand."""
        file = self.open_file(task_id, name)
        found = head_apart(file) if name == RESULT_NAME else None
        if found is None or next(self.raw_pages(task_id), None) is None:
            return file
        file.close()
        return io.BufferedReader(Joined(*found, self.open_file(task_id, PAGES_NAME)))

    def place(self, task_id: str, name: str) -> Path | None:
        """Where one of `files` stands, for another program; None for a link or what is no file."""
        with self._task(task_id) as folder, suppress(OSError, Unusable):
            if task_files.stands(folder, name):
                return (self.root / task_id / name).absolute()
        return None

    def open_result(self, task_id: str) -> BinaryIO:
        """result.json by its place (never by `result_path`). Raises ResultMissing."""
        with self._task(task_id) as folder, self._readable(task_id, RESULT_NAME):
            return task_files.open_result(folder, task_id)

    def whole_result(self, task_id: str) -> BinaryIO:
        """The same with its units, wherever they stand; then it cannot be searched.

        Raises ResultMissing.
        """
        file = self.open_result(task_id)
        found = head_apart(file)
        if found is None or next(self.raw_pages(task_id), None) is None:
            return file
        file.close()
        return io.BufferedReader(Pieces(assemble(*found, self.raw_pages(task_id))))

    def has_result(self, task_id: str) -> bool:
        with self._task(task_id) as folder:
            return folder.has(RESULT_NAME)

    def read_document(self, task_id: str, name: str) -> bytes | None:
        """A kind's own file (see records.DOCUMENTS); None when it is not there."""
        with self._task(task_id) as folder, self._readable(task_id, name):
            return folder.read(name, DOCUMENT_CAP) if folder.has(name) else None

    def read_artifact(self, task_id: str, name: str) -> bytes | None:
        """A file under the task's `artifacts/`; None where there is none that can be read."""
        with self._task(task_id) as folder:
            return task_files.read_artifact(folder, name)

    def file_size(self, task_id: str, name: str) -> int:
        """How many bytes one of the task's files has; 0 when it is not there."""
        with self._task(task_id) as folder:
            return folder.facts(name).st_size if folder.has(name) else 0

    def _open_root(self) -> Folder | None:
        return opening.open_root(self.root)

    @contextmanager
    def _task(self, task_id: str) -> Iterator[Folder]:
        """The task's folder, held open: nothing in it can be swapped from under us."""
        if not listing.is_task_id(task_id):
            raise NotATaskId(given=task_id)
        root = self._open_root()
        if root is None:
            raise LedgerMissing(task_id=task_id, root=str(self.root))
        with root:
            try:
                folder = root.enter(task_id)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise TaskNotFound(task_id=task_id, root=str(self.root)) from error
            except OSError as error:
                if error.errno == errno.ELOOP:  # a link in its place, as others than Linux say it
                    raise TaskNotFound(task_id=task_id, root=str(self.root)) from error
                reason = listing.link_or(error)
                raise LedgerUnusable(path=str(self.root / task_id), reason=reason) from error
        with folder:
            yield folder

    @contextmanager
    def _readable(self, task_id: str, name: str) -> Iterator[None]:
        """Say of a file that is no file, or that the system keeps back, why it cannot be read."""
        try:
            yield
        except Unusable as error:
            raise self._unreadable(task_id, str(error), name) from error
        except OSError as error:
            raise self._unreadable(task_id, listing.link_or(error), name) from error

    def _unreadable(self, task_id: str, reason: str, name: str = META_NAME) -> TaskUnreadable:
        path = os.path.join(self.root, task_id, name)
        return TaskUnreadable(task_id=task_id, reason=reason, path=path)

    def _whole(self, folder: Folder, task_id: str) -> tuple[bytes, dict[str, Any]]:
        """meta.json as bytes and as the whole dict, judged strictly."""
        with self._readable(task_id, META_NAME):
            try:
                return opened(folder)
            except FileNotFoundError as error:
                raise Unusable("was never finished") from error
