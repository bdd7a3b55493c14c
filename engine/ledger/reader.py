"""Read-only half of the ledger: nothing here creates, changes or touches a file."""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar

from engine.ledger import event_search, journal, listing, meta, task_files
from engine.ledger.event_search import Found, Needle
from engine.ledger.files import MIB, Folder, Unusable, unusable
from engine.ledger.lease import Lease
from engine.ledger.listing import AT_ONCE, packed
from engine.ledger.machine import wall_ms
from engine.ledger.meta import Mark, mark_of, read_meta, read_stable
from engine.ledger.result_assembly import GeneratedStream, JoinedResult, assemble, head_apart
from engine.model.errors import (
    EngineError,
    LedgerMissing,
    NotATaskId,
    TaskNotFound,
    TaskUnreadable,
)
from engine.model.process_limits import is_shortage
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

if TYPE_CHECKING:
    from engine.ledger.read_ahead import ReadAhead

T = TypeVar("T")
Compared = tuple[list[TaskId], list[tuple[TaskId, Stamp | None]]]

COMPARED_AT_ONCE = 128  # tasks: half a millisecond of a scan with an open root folder
MOST_REREAD = 100  # unreadable tasks of a list that are read a second time
MOST_REFUSED = 1_000
DOCUMENT_CAP = 8 * MIB  # a task file has 1 MiB at most, plus its states and ids


def _is_record(entry: TaskRecord | Unreadable | None) -> bool:
    return isinstance(entry, TaskRecord)


def _compared_at_once(root: Folder) -> int:
    # On Windows each stamp takes longer, and pauses come only between parts.
    return AT_ONCE if root.fd is None else COMPARED_AT_ONCE


def _changed_stamps(
    root: Folder, ids: list[TaskId], known: Mapping[TaskId, int | None]
) -> list[tuple[TaskId, Stamp | None]]:
    same = listing.have_stamps(root, ids, list(map(known.get, ids)))
    return [] if same else list(listing.stamps_of(root, ids))


class LedgerReader:
    """Tasks below `root`, read-only; a missing root has none.

    Raises LedgerUnusable when `root` is no folder or may not be read. Calls with a task id raise
    NotATaskId or TaskNotFound.
    """

    lease: Lease | None = None  # a reader has none

    def __init__(self, root: Path, *, now_ms: Callable[[], int] = wall_ms) -> None:
        self.root = root.absolute()
        self._now_ms = now_ms
        self._refused: dict[str, tuple[Stamp | None, Unreadable]] = {}
        found = self._open_root()
        if found is not None:
            found.close()

    def read(self, task_id: str) -> TaskRecord | Unreadable:
        """Read one task strictly; Unreadable gives the reason why it cannot be used."""
        with self._task(task_id) as folder:
            found = read_stable(lambda: mark_of(folder), lambda: self._entry(task_id), _is_record)
            if isinstance(found, Unreadable) and len(self._refused) < MOST_REFUSED:
                self._refused[task_id] = listing.stamp(folder, META_NAME), found
        if found is None:
            raise TaskNotFound(task_id=task_id, root=str(self.root))
        return found

    @property
    def has_refused(self) -> bool:
        """Whether `read` has refused any record so far."""
        return bool(self._refused)

    def refused(self, task_id: str, stamp: int | None) -> Unreadable | None:
        """Verdict of `read` on a record that a list accepts, if it has not changed since."""
        mark, found = self._refused.get(task_id, (None, None))
        return found if mark is not None and packed(mark) == stamp else None

    def _entry(self, task_id: str) -> TaskRecord | Unreadable | None:
        root = self._open_root()
        if root is None:
            return None
        with root:
            strictly = listing.read_many(root, [task_id], self._now_ms(), meta.decode_strict)
            return next((found.entry for found in strictly), None)

    def read_raw(self, task_id: str) -> dict[str, Any]:
        """Read the whole meta.json with every field. Raises TaskUnreadable."""
        with self._task(task_id) as folder:
            return self._read_strict(folder, task_id)[1]

    def read_many(self, ids: Iterable[str]) -> list[listing.Found]:
        """Read (id, record or Unreadable, stamp) of each existing task; used by lists."""
        root = self._open_root()
        if root is None:
            return []
        with root:
            return list(listing.read_many(root, ids, self._now_ms()))

    def read_kept(
        self, ids: Iterable[str], make: listing.Make
    ) -> list[tuple[TaskRecord | Unreadable, int | None]]:
        """Read as `read_many`, reduced for a list: no two large records are in memory at once."""
        root = self._open_root()
        if root is None:
            return []
        with root:
            found = listing.read_many(root, ids, self._now_ms())
            return [listing.for_list(one, make) for one in found]

    def entries(
        self, ids: Iterable[str], make: listing.Make = meta.interned
    ) -> list[TaskRecord | Unreadable]:
        """Read as `read_many`, without stamps and a fifth faster, for callers that have them."""
        root = self._open_root()
        if root is None:
            return []
        with root:
            return list(listing.entries(root, ids, self._now_ms(), make))

    def ended(
        self, ids: Collection[str], make: listing.Make = meta.interned
    ) -> tuple[list[TaskRecord], list[str]]:
        """Read those of `ids` that have ended, the fastest way; return the other ids besides."""
        root = self._open_root()
        if root is None:
            return [], list(ids)
        with root:
            return listing.ended(root, ids, make)

    def read_ahead(self, task_ids: Collection[TaskId]) -> ReadAhead:
        """Begin the first read of these tasks, with a child process where one helps."""
        from engine.ledger.read_ahead import ReadAhead  # for large ledgers alone

        ahead, root = ReadAhead(task_ids), self._open_root()
        if root is not None:
            with root:
                ahead.start(root)
        return ahead

    def next_ended(
        self, ahead: ReadAhead, most: int, make: listing.Make
    ) -> tuple[list[TaskRecord], list[str]]:
        """Read the next tasks of a first read, and return as `ended`.

        Both lists are empty at its end, or without a root.
        """
        root = self._open_root()
        if root is None:
            return [], []
        with root:
            arrived, ids = ahead.take(root, most)
            return listing.ended(root, ids, make, arrived)

    def folders(self, at_once: int) -> Iterator[list[TaskId]]:
        """Yield all task ids in no order, in lists of `at_once`, without opening the folders."""
        root = self._open_root()
        if root is not None:
            with root:
                yield from listing.folders(root, at_once)

    def scan(self) -> Iterator[tuple[TaskId, Stamp | None]]:
        """Yield every task with the stamp of its meta.json (None: it has none): one cheap pass."""
        root = self._open_root()
        if root is not None:
            with root:
                yield from listing.stamps(root)

    def compare(
        self, known: Mapping[TaskId, int | None], chosen: Collection[TaskId] | None = None
    ) -> Iterator[Compared]:
        """Yield all tasks in small parts: their ids, and the stamps of a part that is not as
        `known`, by packed stamps. With `chosen`, only the stamps of these and of unknown tasks."""
        root = self._open_root()
        if root is not None:
            with root:
                for ids in listing.folders(root, _compared_at_once(root)):
                    some = ids
                    if chosen is not None:
                        some = [one for one in ids if one in chosen or one not in known]
                    yield ids, _changed_stamps(root, some, known)

    def compare_only(
        self, chosen: Collection[TaskId], known: Mapping[TaskId, int | None]
    ) -> Iterator[Compared]:
        """Compare these tasks as `compare` does, without a list of the folders."""
        root = self._open_root()
        if root is not None:
            with root:
                left = iter(chosen)
                while ids := list(islice(left, _compared_at_once(root))):
                    yield ids, _changed_stamps(root, ids, known)

    def root_stamp(self) -> Stamp | None:
        """Stamp of the root, which changes with each folder that is made in it or removed."""
        try:
            facts = os.stat(self.root)
        except OSError:
            return None
        return Stamp(facts.st_ino, facts.st_mtime_ns, facts.st_size)

    def stamp(self, task_id: str) -> Stamp | None:
        """Stamp of one meta.json; None when it is missing."""
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
        """List the newest `limit` tasks (None: all) that match; Unreadable ones only without a
        filter.

        `since` is in ms since 1970 and includes its own moment. With a limit, large records are
        held whole only for the tasks that are returned. Source: seed 000, invariant 8.
        """
        root = self._open_root()
        if root is None:
            return []
        reduced: set[str] | None = None if limit is None else set()
        with root:
            ids = [task_id for part in listing.folders(root, AT_ONCE) for task_id in part]
            found = list(listing.entries(root, ids, self._now_ms(), meta.interned, reduced))
        whole = [one for one in found if isinstance(one, TaskRecord)]
        if 0 < len(ids) - len(whole) <= MOST_REREAD:
            found = [*whole, *self._reread({*ids}.difference(one.task_id for one in whole))]
        chosen = listing.newest(found, status, kind, since)[:limit]
        return [*self._whole(chosen, reduced)] if reduced else chosen

    def _whole(
        self, entries: Iterable[TaskRecord | Unreadable], reduced: Collection[str]
    ) -> Iterator[TaskRecord | Unreadable]:
        """Read the `reduced` records of a list whole; one that changed its state stays as it was
        when it was chosen."""
        for entry in entries:
            if entry.task_id in reduced and isinstance(entry, TaskRecord):
                found = next((one.entry for one in self.read_many([entry.task_id])), None)
                if isinstance(found, TaskRecord) and found.status == entry.status:
                    yield found
                    continue
            yield entry

    def _reread(self, ids: set[TaskId]) -> Sequence[TaskRecord | Unreadable]:
        """Read unreadable or absent tasks again; another tool may be rewriting one."""
        return read_stable(
            lambda: [mark for task_id in ids for mark in self._meta_marks(task_id)],
            lambda: [one.entry for one in self.read_many(ids)],
            lambda entries: len(entries) == len(ids) and all(map(_is_record, entries)),
        )

    def _meta_marks(self, task_id: TaskId) -> Sequence[Mark]:
        with suppress(EngineError, OSError), self._task(task_id) as folder:
            return mark_of(folder)
        return ()

    def read_events(
        self, task_id: str, offset: int = 0, limit_bytes: int = MIB, *, whole: bool = False
    ) -> EventSlice:
        """Read events from byte `offset`, about `limit_bytes` of them; continue at `next_offset`.

        An unfinished last line is left for the next call, or counted as skipped when `whole` says
        that nothing more will come.
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
        """Read the newest events, each converted by `make`; or a part of the others.

        `make` gets the event and the byte at which its line begins; `before` is the byte at which
        that part ends, `since` the one at which it begins.
        """
        with self._task(task_id) as folder, self._readable(task_id, EVENTS_NAME):
            if before is not None:
                return event_search.earlier(folder, EVENTS_NAME, before, make)
            if since is not None:
                return event_search.later(folder, EVENTS_NAME, since, make)
            return event_search.newest(folder, EVENTS_NAME, make)

    def find_events(self, task_id: str, needle: Needle, since: int = 0) -> Found:
        """Search a text in the events, some MiB from byte `since`; see `event_search`."""
        with self._task(task_id) as folder, self._readable(task_id, EVENTS_NAME):
            return event_search.find(folder, EVENTS_NAME, needle, since)

    def event_place(self, task_id: str, ts_ms: float) -> int:
        """Byte offset of the first event that is not before `ts_ms`."""
        with self._task(task_id) as folder, self._readable(task_id, EVENTS_NAME):
            return event_search.place_of(folder, EVENTS_NAME, ts_ms)

    def event_blocks(self, task_id: str) -> Iterator[tuple[bytes, int]]:
        """Yield all events as raw blocks, each with the size of the file."""
        with self._task(task_id) as folder, self._readable(task_id, EVENTS_NAME):
            yield from event_search.blocks(folder, EVENTS_NAME)

    def unit_times(self, task_id: str, since: int = 0) -> UnitTimes:
        """Durations of finished units, some MiB of them from byte `since`; see `journal`."""
        with self._task(task_id) as folder, self._readable(task_id, PAGES_NAME):
            return journal.read_unit_times(folder, PAGES_NAME, since)

    def tail_units(
        self, task_id: str, from_offset: int = 0
    ) -> tuple[Units | None, float | None, int]:
        """Newest progress and event time behind `from_offset`, and the offset to continue at.

        None where there is nothing new. Reads 64 KiB at most, so it is cheap on any file.
        """
        with self._task(task_id) as folder:
            return journal.tail(folder, EVENTS_NAME, from_offset)

    def read_pages(self, task_id: str) -> Iterator[dict[str, Any]]:
        """Yield the finished units in order, one at a time; torn lines are skipped."""
        for line in self.raw_pages(task_id):
            yield journal.page(line)

    def raw_pages(
        self, task_id: str, offset: int = 0, on_lost: journal.OnLost = lambda: None
    ) -> Iterator[bytes]:
        """Yield the units as JSON objects in bytes, for `assemble`."""
        with self._task(task_id) as folder, self._readable(task_id, PAGES_NAME):
            yield from journal.page_lines(folder, PAGES_NAME, offset, on_lost)

    def placed_pages(
        self, task_id: str, offset: int = 0, on_lost: journal.OnLost = lambda: None
    ) -> Iterator[tuple[bytes, int]]:
        """Yield as `raw_pages`, each with the byte at which the next one begins."""
        with self._task(task_id) as folder, self._readable(task_id, PAGES_NAME):
            yield from journal.placed_pages(folder, PAGES_NAME, offset, on_lost)

    def files(self, task_id: str) -> tuple[tuple[str, int, float], ...]:
        """List every file of the task (name, bytes, mtime in ms), those in `artifacts/` last."""
        with self._task(task_id) as folder:
            return tuple(task_files.listed(folder))

    def open_file(self, task_id: str, name: str) -> BinaryIO:
        """Open one of `files` for reading. Raises TaskUnreadable where that fails."""
        with self._task(task_id) as folder, self._readable(task_id, name):
            return task_files.open_listed(folder, name)

    def open_whole(self, task_id: str, name: str) -> BinaryIO:
        """Open as `open_file`; result.json always includes its units."""
        file = self.open_file(task_id, name)
        found = head_apart(file) if name == RESULT_NAME else None
        if found is None or next(self.raw_pages(task_id), None) is None:
            return file
        file.close()
        return io.BufferedReader(JoinedResult(*found, self.open_file(task_id, PAGES_NAME)))

    def place(self, task_id: str, name: str) -> Path | None:
        """Path of one of `files`, for another program; None for a link or a missing file."""
        with self._task(task_id) as folder, suppress(OSError, Unusable):
            if task_files.is_listed(folder, name):
                return (self.root / task_id / name).absolute()
        return None

    def open_result(self, task_id: str) -> BinaryIO:
        """Open result.json by its fixed path (never by `result_path`). Raises ResultMissing."""
        with self._task(task_id) as folder, self._readable(task_id, RESULT_NAME):
            return task_files.open_result(folder, task_id)

    def whole_result(self, task_id: str) -> BinaryIO:
        """Open the result including its units; the stream may not be seekable.

        Raises ResultMissing.
        """
        file = self.open_result(task_id)
        found = head_apart(file)
        if found is None or next(self.raw_pages(task_id), None) is None:
            return file
        file.close()
        return io.BufferedReader(GeneratedStream(assemble(*found, self.raw_pages(task_id))))

    def has_result(self, task_id: str) -> bool:
        with self._task(task_id) as folder:
            return folder.has(RESULT_NAME)

    def read_document(self, task_id: str, name: str) -> bytes | None:
        """Read a kind's own file (see records.DOCUMENTS); None when it is missing."""
        with self._task(task_id) as folder, self._readable(task_id, name):
            return folder.read(name, DOCUMENT_CAP) if folder.has(name) else None

    def read_artifact(self, task_id: str, name: str) -> bytes | None:
        """Read a file under the task's `artifacts/`; None where none can be read."""
        with self._task(task_id) as folder:
            return task_files.read_artifact(folder, name)

    def file_size(self, task_id: str, name: str) -> int:
        """Size of one of the task's files in bytes; 0 when it is missing."""
        with self._task(task_id) as folder:
            return folder.facts(name).st_size if folder.has(name) else 0

    def _open_root(self) -> Folder | None:
        return task_files.open_root(self.root)

    @contextmanager
    def _task(self, task_id: str) -> Iterator[Folder]:
        """Hold the task's folder open, so that nothing in it can be swapped during a call."""
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
                # A link in its place, as reported by systems other than Linux.
                if error.errno == errno.ELOOP:
                    raise TaskNotFound(task_id=task_id, root=str(self.root)) from error
                raise unusable(error, str(self.root / task_id), listing.link_or(error)) from error
        with folder:
            yield folder

    @contextmanager
    def _readable(self, task_id: str, name: str) -> Iterator[None]:
        """Convert errors for an invalid or inaccessible file to TaskUnreadable.

        A lack of descriptors says nothing about the file.
        """
        try:
            yield
        except Unusable as error:
            raise self._unreadable(task_id, str(error), name) from error
        except OSError as error:
            if is_shortage(error):
                raise unusable(error, str(self.root / task_id)) from error
            raise self._unreadable(task_id, listing.link_or(error), name) from error

    def _unreadable(self, task_id: str, reason: str, name: str = META_NAME) -> TaskUnreadable:
        path = os.path.join(self.root, task_id, name)
        return TaskUnreadable(task_id=task_id, reason=reason, path=path)

    def _read_strict(self, folder: Folder, task_id: str) -> tuple[bytes, dict[str, Any]]:
        """Read meta.json as bytes and as the whole dict, strictly."""
        with self._readable(task_id, META_NAME):
            try:
                return read_meta(folder)
            except FileNotFoundError as error:
                raise Unusable("was never finished") from error


ALIASES_AT_ONCE: Final = 64
SLACK_MS: Final = 10_000  # file times are rounded, by up to 2 s, and clocks are set back
_COMMAND_TASK_ID = re.compile(r"task_\d{1,16}_[0-9a-z]{1,13}", re.ASCII)


def is_command_task_id(given: str) -> bool:
    """Return whether `given` has the shape of the seed's id."""
    return _COMMAND_TASK_ID.fullmatch(given) is not None


class TaskAliases:
    """Resolve aliases to folder ids; both are immutable, so results are cached."""

    def __init__(self) -> None:
        self._known: dict[str, TaskId] = {}

    def add(self, name: str, task_id: str) -> None:
        """Record the alias of a task that this process accepted, so that no search is needed."""
        self._known[name] = TaskId(task_id)

    def ledger_id(self, reader: LedgerReader, given: str) -> TaskId:
        """Return the folder's id; other text is returned unchanged. May read the whole list.

        Raises:
            TaskNotFound: no task of this ledger has that name.
        """
        if not is_command_task_id(given):
            return TaskId(given)
        if given not in self._known:
            self._search(reader, given)
        found = self._known.get(given)
        if found is None:
            raise TaskNotFound(task_id=given, root=str(reader.root))
        return found

    def _search(self, reader: LedgerReader, given: str) -> None:
        """Read records until `given` is found, those written soonest after its time first."""
        from_ns = (int(given.split("_")[1]) - SLACK_MS) * 1_000_000
        stamps = [
            (stamp.mtime_ns, task_id) for task_id, stamp in reader.scan() if stamp is not None
        ]
        later = sorted(each for each in stamps if each[0] >= from_ns)
        ids = iter([task_id for _, task_id in later])
        while given not in self._known and (part := list(islice(ids, ALIASES_AT_ONCE))):
            for entry in reader.entries(part):
                if isinstance(entry, TaskRecord) and entry.engine and entry.engine.command_task_id:
                    self._known.setdefault(entry.engine.command_task_id, TaskId(entry.task_id))
