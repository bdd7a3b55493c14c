"""Snapshot of all tasks: read once, then only where a stamp has changed.

Synchronous, for worker threads, one call at a time. It writes nothing. Long passes pause every few
ms, because a thread that decodes holds the GIL and a window's loop needs it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from engine.ledger.listing import Make, packed, slices
from engine.ledger.meta import interned
from engine.ledger.ownership import Owner, Owners, Runs, is_kept_here
from engine.ledger.reader import LedgerReader
from engine.model.errors import EngineError, LedgerUnusable
from engine.model.records import (
    ENVELOPE,
    EVENTS_NAME,
    LIVE,
    Stamp,
    Status,
    TaskId,
    TaskRecord,
    TaskView,
    Units,
    Unreadable,
)

if TYPE_CHECKING:
    from engine.ledger.read_ahead import ReadAhead

LOAD_AT_ONCE = 128
NAMES_AT_ONCE = 1000
SURE_NS = 60 * 10**9  # a file's time may be this much older than its rename into the folder
KEPT_S = 5.0  # the last good record is shown for this long when a file becomes unreadable
SETTLED_S = 1.0  # without a failed read for this long, the record counts as settled
UNSTABLE_S = 60.0
VERDICT_S = 3.0  # maximum age of a verdict on an owner
PULSE_TASKS = 500  # live tasks read in one pulse
ENDED_AT_ONCE = 800  # ended tasks that a routine survey compares, about 6 ms
ROUNDS = 24  # most routine surveys until each ended task was compared
COARSE_NS = 2 * 10**9  # resolution of the times of a folder
YOUNG_NS = 60 * 10**9  # a record that was written within this time is compared in each
_TIME = 2**64 - 1  # of a packed stamp

Entry = TaskRecord | Unreadable
Read = Callable[[tuple[TaskId, ...]], Iterable[tuple[Entry, int | None]]]  # stamps are packed


@dataclass(slots=True)
class _Live:
    """State of a live task besides its record."""

    offset: int = 0
    size: int = -1
    units: Units | None = None
    last_at: int | float | None = None
    dead: bool = False
    locked: bool = False
    undriven: bool = False
    judged_at: float = float("-inf")
    checked: TaskRecord | None = None


@dataclass(slots=True)
class _ReadTimes:
    """Times of the last good and the last failed read of a record."""

    read_at: float
    failed_at: float


@dataclass(frozen=True, slots=True)
class Difference:
    """Result of a read: new or changed views, and the tasks that were removed."""

    views: tuple[TaskView, ...] = ()
    gone: tuple[TaskId, ...] = ()


class LedgerSnapshot:
    """Last known state of all tasks of one ledger.

    `ours` says whether this process runs a task, `runs` returns its executor's view of an own task;
    both are called in the worker thread.
    """

    def __init__(
        self,
        ledger: LedgerReader,
        ours: Callable[[TaskId], bool],
        make: Make = interned,
        runs: Runs | None = None,
    ) -> None:
        self._ledger, self._ours, self._make = ledger, ours, make
        self._root = os.path.join(ledger.root, "")  # joined once: each pulse reads all live tasks
        self._owners = Owners(ledger.root, ledger.lease, runs)
        self._views: dict[TaskId, TaskView] = {}
        self._stamps: dict[TaskId, int | None] = {}  # packed
        self._live: dict[TaskId, _Live] = {}
        self._unfinished: set[TaskId] = set()
        self._unstable: dict[TaskId, _ReadTimes] = {}  # of records that became unreadable
        self._young: set[TaskId] = set()  # written just before they were read, or unreadable
        self._surveyed: dict[TaskId, int | None] = {}
        self._survey_queue: list[TaskId] = []  # of a round of routine surveys
        self._survey_size = ENDED_AT_ONCE
        self._pulse_queue: list[TaskId] = []
        self._loaded_at_ns = 0
        self._ahead: ReadAhead | None = None
        self._ahead_lock = threading.Lock()
        self._is_closed = False
        self._listed: Stamp | None = None  # of the root when it was listed

    def __len__(self) -> int:
        return len(self._views)

    @property
    def changeable(self) -> frozenset[TaskId]:
        """Tasks that may change without a notice for the root: live, or being created."""
        return frozenset(self._live) | self._unfinished | self._unstable.keys()

    def survey(self, *, whole: bool = True) -> tuple[list[TaskId], tuple[TaskId, ...]]:
        """List all folders once: ids to read, newest first, and the removed ones.

        Unless `whole`, the survey is routine: ended tasks, whose records are final, are compared
        in turn, and the folders are listed only if the root has changed, and once a round.
        Comparing all of 10,000 each 5 s took 1.3 % of a processor.

        Raises LedgerUnusable; then the state is unknown, and no task counts as removed.
        """
        root, left = self._root_stamp(), set[TaskId]()
        chosen = None if whole else self._choose()
        if chosen is not None and root is not None and root == self._listed:
            compared = self._ledger.compare_only(chosen, self._stamps)  # the same folders
        else:
            left.update(self._views, self._unfinished)
            compared = self._ledger.compare(self._stamps, chosen)
        changed: list[tuple[int, TaskId, int | None]] = []
        for ids, stamps in chain.from_iterable(slices(compared, 1)):
            left.difference_update(ids)  # no list of all is made: 25 MB for 100,000 at every survey
            for task_id, stamp in stamps:
                mark = packed(stamp)
                news = mark is None or self._stamps.get(task_id) != mark
                if news and not self._restore_stamp(task_id, stamp):
                    changed.append((stamp.mtime_ns if stamp else 0, task_id, mark))
        self._loaded_at_ns = 0
        self._listed = root
        if chosen is not None:
            del self._survey_queue[-self._survey_size :]
        left = {task_id for task_id in left if not self._awaits_folder(task_id)}
        gone = tuple(task_id for task_id in self._views if task_id in left) if left else ()
        for task_id in left:
            self._forget(task_id)
        changed.sort(key=itemgetter(0), reverse=True)
        self._surveyed = {task_id: mark for _, task_id, mark in changed}
        return list(self._surveyed), gone

    def _root_stamp(self) -> Stamp | None:
        """Stamp of the root; None while its time may be too coarse to show a next change."""
        stamp = self._ledger.root_stamp()
        if stamp is None or stamp.mtime_ns > time.time_ns() - COARSE_NS:
            return None
        return stamp

    def _choose(self) -> set[TaskId]:
        """Return the tasks that a routine survey compares, besides unknown ones."""
        stamp, since = self._stamps.get, time.time_ns() - YOUNG_NS
        self._young = {one for one in self._young if (stamp(one) or _TIME) & _TIME > since}
        unread = {one for one, mark in self._surveyed.items() if stamp(one, 0) != mark}
        if not self._survey_queue:
            self._survey_queue = list(self._stamps)
            self._survey_size = max(ENDED_AT_ONCE, -(-len(self._stamps) // ROUNDS))
            self._listed = None  # list the root once a round, whatever its stamp
        turn = {one for one in self._survey_queue[-self._survey_size :] if one in self._stamps}
        return turn | unread | self._young | self.changeable

    def list_ids(self) -> list[TaskId]:
        """All task ids, in no order: for the first read of a large ledger."""
        parts = slices(self._ledger.folders(NAMES_AT_ONCE), 1)
        return [task_id for part in parts for task_id in part[0]]

    def begin_load(self, task_ids: Collection[TaskId]) -> None:
        """Begin to read tasks of `list_ids`, with a child process where one helps."""
        ahead = self._ledger.read_ahead(task_ids)
        with self._ahead_lock:
            if not self._is_closed:
                self._ahead = ahead
                return
        ahead.close()

    @property
    def left(self) -> int:
        """The number of tasks that `load_next` has still to read."""
        return 0 if (ahead := self._ahead) is None else ahead.left

    def load_next(self, most: int) -> Difference:
        """Read the next tasks of `begin_load`, about `most`. Raises LedgerUnusable."""
        self._loaded_at_ns = self._loaded_at_ns or time.time_ns()
        views: list[TaskView] = []
        try:
            for _ in slices(self._parts(most, views), 1):
                pass
        except LedgerUnusable:
            if not views:
                raise
            # They are known by now, so that no survey would name them; the next call raises.
        return Difference(tuple(views))

    def _parts(self, most: int, views: list[TaskView]) -> Iterator[None]:
        """Add the next views in small parts."""
        left = most
        while (ahead := self._ahead) is not None and left > 0:
            ended, others = self._ledger.next_ended(ahead, min(left, LOAD_AT_ONCE), self._make)
            if not ended and not others:
                self.end_load()
                return
            left -= len(ended) + len(others)
            # Equal to `_view`, at a fifth of the time; a record's id was checked before.
            loaded = {
                one.task_id: TaskView(one, ((ours := one.engine) and ours.units) or one.units)
                for one in ended
            }
            if others:
                loaded |= self._read_live(others)
            # Dicts are invariant in their values.
            self._views.update(loaded)  # type: ignore[arg-type]
            views += loaded.values()
            yield

    def end_load(self) -> Difference:
        """End the child process of `begin_load`, if there is one. Idempotent, from any thread."""
        with self._ahead_lock:
            ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.close()
        return Difference()

    def close(self) -> None:
        """End the child process; none is started any more. Idempotent, from any thread."""
        self._is_closed = True
        self.end_load()

    def views(self) -> Mapping[TaskId, TaskView]:
        """Copy of the last known views; safe during another call, because the copy is one step."""
        return self._views.copy()

    def clear(self) -> tuple[TaskId, ...]:
        """Forget all but runs of this process, which wait; return the ids that were shown."""
        gone = tuple(task_id for task_id in self._views if not self._awaits_folder(task_id))
        for task_id in (*gone, *self._unfinished):
            self._forget(task_id)
        self._surveyed, self._survey_queue, self._listed = {}, [], None
        return gone

    def load(self, task_ids: Iterable[TaskId]) -> Difference:
        """Read the tasks that the last survey named. Raises LedgerUnusable."""
        # A stamp may be older than the data read here: then the next survey names the task again.
        mark, entries = self._surveyed.get, self._ledger.entries
        return self._apply(
            task_ids,
            lambda part: ((one, mark(TaskId(one.task_id))) for one in entries(part, self._make)),
        )

    def _restore_stamp(self, task_id: TaskId, stamp: Stamp | None) -> bool:
        """Stamp a task that `load_next` left without one; later writes are read again."""
        view = self._views.get(task_id) if self._loaded_at_ns else None
        if view is None or stamp is None or task_id in self._stamps:
            return False
        if sure := stamp.mtime_ns < self._loaded_at_ns - SURE_NS:
            # Use its own id: the scan's is another string object.
            self._stamps[view.task_id] = packed(stamp)
        return sure

    def _read_live(self, task_ids: list[str]) -> dict[str, TaskView]:
        """Read live tasks, and those that need a full read or are gone again."""
        found = self._ledger.read_kept(task_ids, self._make)
        for task_id in set(task_ids).difference(entry.task_id for entry, _ in found):
            self._is_gone(TaskId(task_id))
        return {entry.task_id: self._add_new(entry, mark) for entry, mark in found}

    def _add_new(self, entry: Entry, mark: int | None) -> TaskView:
        task_id = TaskId(entry.task_id)
        view = self._view(task_id, entry)
        self._keep_stamp(view, entry, mark)
        return view

    def _keep_stamp(self, view: TaskView, entry: Entry, mark: int | None) -> None:
        if isinstance(entry, Unreadable) or isinstance(view.entry, Unreadable):
            # A stamp does not show rights or a failing disk: read again at every survey.
            mark = None
        task_id = TaskId(entry.task_id)
        self._stamps[task_id] = mark
        if (mark or _TIME) & _TIME > time.time_ns() - YOUNG_NS:
            self._young.add(task_id)

    def refresh(self, task_ids: Iterable[TaskId]) -> Difference:
        """Read these tasks again. Raises LedgerUnusable."""
        read = self._ledger.read_kept
        return self._apply(task_ids, lambda part: read(part, self._make))

    def _apply(self, task_ids: Iterable[TaskId], read: Read) -> Difference:
        left = dict.fromkeys(task_ids)
        views: list[TaskView] = []
        for part in slices(tuple(left)):
            for entry, mark in read(part):
                task_id = TaskId(entry.task_id)
                del left[task_id]
                self._unfinished.discard(task_id)
                view = self._checked_view(task_id, entry, mark)
                self._keep_stamp(view, entry, mark)
                self._show(task_id, view, views)
        return Difference(tuple(views), tuple(filter(self._is_gone, left)))

    def pulse(self) -> Difference:
        """Read changes that cause no notice: progress, dead owners, folders that stay empty."""
        views: list[TaskView] = []
        for task_id in chain.from_iterable(slices(self._next_round())):
            if self._has_changed(task_id, self._live[task_id]):
                view = self._view_with_stale(task_id, self._views[task_id].entry)
                if isinstance(view.entry, Unreadable):
                    self._keep_stamp(view, view.entry, None)
                self._show(task_id, view, views)
        made = self.refresh((*self._unfinished, *self._unstable))
        return Difference((*views, *made.views), made.gone)

    @property
    def is_round_over(self) -> bool:
        """Whether the latest pulses have read all live tasks."""
        return not self._pulse_queue

    def of(self, entry: Entry) -> TaskView:
        """Build the view of a record that was just read."""
        return self._view(TaskId(entry.task_id), entry)

    def with_last_units(self, view: TaskView) -> TaskView:
        """Complete the view of an ended task by its last progress.

        OpenChrome's records do not hold it. Its events are read for it, so not for a whole list.
        """
        entry = view.entry
        if view.units is not None or isinstance(entry, Unreadable) or entry.status in LIVE:
            return view
        return replace(view, units=self._last_units(view.task_id))

    def _show(self, task_id: TaskId, view: TaskView, into: list[TaskView]) -> None:
        if self._views.get(task_id) != view:
            self._views[task_id] = view
            into.append(view)

    def _is_gone(self, task_id: TaskId) -> bool:
        """Handle a failed read: forget a removed task; keep one whose meta.json is missing."""
        if os.path.isdir(self._ledger.root / task_id):
            if task_id not in self._views:
                self._unfinished.add(task_id)
            else:
                self._note_failure(task_id)
            return False
        if self._awaits_folder(task_id):
            return False
        shown = task_id in self._views
        self._forget(task_id)
        return shown

    def _next_round(self) -> list[TaskId]:
        """Return the next live tasks in round-robin order, because there may be thousands."""
        if not self._pulse_queue:
            self._pulse_queue = list(self._live)
        turn, self._pulse_queue = self._pulse_queue[:PULSE_TASKS], self._pulse_queue[PULSE_TASKS:]
        return [task_id for task_id in turn if task_id in self._live]

    def _has_changed(self, task_id: TaskId, live: _Live) -> bool:
        view = self._views[task_id]
        if not view.ours and time.monotonic() - live.judged_at > VERDICT_S:
            return True
        if view.ours and (
            not self._is_ours(task_id, view.entry) or view.away != self._is_away(view.entry)
        ):
            return True
        return live.size >= 0 and self._events_size(task_id) != live.size

    def _view(self, task_id: TaskId, entry: Entry) -> TaskView:
        if isinstance(entry, Unreadable):
            self._live.pop(task_id, None)
            return TaskView(entry)
        stored = entry.units
        if entry.status not in LIVE:
            if stored is None and task_id in self._views:
                stored = self._last_units(task_id)
            self._live.pop(task_id, None)
            return TaskView(entry, stored)
        live = self._live.setdefault(task_id, _Live())
        if entry.status == Status.RUNNING:
            self._read_on(task_id, live)
        ours = self._is_ours(task_id, entry)
        dead = not ours and self._is_dead(entry, live)
        undriven = not ours and live.undriven
        if dead and (refused := self._refused(entry, live)) is not None:
            return self._view(task_id, refused)
        return TaskView(
            entry=entry,
            units=live.units or stored,
            last_event_at=live.last_at,
            orphaned=dead,
            ours=ours,
            foreign=not (ours or dead or undriven or is_kept_here(entry)),
            locked=dead and live.locked,
            away=ours and self._is_away(entry),
            undriven=undriven,
        )

    def _checked_view(self, task_id: TaskId, entry: Entry, mark: int | None) -> TaskView:
        """Build the view of an entry; for a file that is being rewritten, keep the last good
        record."""
        if not self._unstable and not self._ledger.has_refused and isinstance(entry, TaskRecord):
            return self._view(task_id, entry)  # fast path, because this runs for every task
        if (refused := self._ledger.refused(task_id, mark)) is not None:
            return self._view(task_id, refused)
        if isinstance(entry, Unreadable):
            if self._note_failure(task_id):
                return replace(self._views[task_id], stale=True)
        elif (times := self._unstable.get(task_id)) is not None:
            times.read_at = time.monotonic()
            if times.read_at - times.failed_at >= SETTLED_S:
                del self._unstable[task_id]
        return self._view_with_stale(task_id, entry)

    def _view_with_stale(self, task_id: TaskId, entry: Entry) -> TaskView:
        view = self._view(task_id, entry)
        doubted = task_id in self._unstable and isinstance(entry, TaskRecord)
        return replace(view, stale=True) if doubted else view

    def _note_failure(self, task_id: TaskId) -> bool:
        """Record a failed read; return whether the last good record is still shown."""
        now, shown = time.monotonic(), self._views.get(task_id)
        if shown is None or (isinstance(shown.entry, Unreadable) and task_id not in self._unstable):
            return False
        times = self._unstable.setdefault(task_id, _ReadTimes(now, now))
        times.failed_at = now
        if now - times.read_at > UNSTABLE_S:
            del self._unstable[task_id]
        return isinstance(shown.entry, TaskRecord) and now - times.read_at < KEPT_S

    def _is_ours(self, task_id: TaskId, entry: Entry) -> bool:
        """Return whether this process owns it; the lease shows that before the task is queued."""
        if isinstance(entry, TaskRecord) and self._owners.is_own(entry):
            return entry.kind == ENVELOPE or not self._owners.of(entry).dead
        return self._ours(task_id)

    def _is_away(self, entry: Entry) -> bool:
        """Return whether this process runs it, and waits for its folder."""
        if not isinstance(entry, TaskRecord) or not self._owners.is_own(entry):
            return False
        return self._owners.of(entry).owner is Owner.AWAY

    def _awaits_folder(self, task_id: TaskId) -> bool:
        """Return whether it is a run of this process whose folder is missing just now."""
        view = self._views.get(task_id)
        if view is None or not view.ours or not self._owners.knows_runs:
            return False
        entry = view.entry
        if not isinstance(entry, TaskRecord) or not self._owners.is_own(entry):
            return False
        return entry.kind != ENVELOPE and not self._owners.of(entry).dead

    def _last_units(self, task_id: TaskId) -> Units | None:
        """Progress of an ended task whose record does not hold it."""
        shown = self._views.get(task_id)
        live = self._live.get(task_id) or _Live(units=None if shown is None else shown.units)
        if live.units is None or task_id in self._live:
            self._read_on(task_id, live)
        return live.units

    def _read_on(self, task_id: TaskId, live: _Live) -> None:
        """Read the events behind the last offset."""
        if (size := self._events_size(task_id)) != live.size:
            live.size = size
            try:
                units, last_at, live.offset = self._ledger.tail_units(task_id, live.offset)
            except (EngineError, OSError):
                return  # just removed, or inaccessible: a task without progress, no more
            live.units = units or live.units
            live.last_at = last_at or live.last_at

    def _events_size(self, task_id: TaskId) -> int:
        try:
            return os.lstat(f"{self._root}{task_id}{os.sep}{EVENTS_NAME}").st_size
        except OSError:
            return 0

    def _is_dead(self, entry: TaskRecord, live: _Live) -> bool:
        now = time.monotonic()
        if now - live.judged_at > VERDICT_S:
            live.judged_at = now
            found = self._owners.of(entry)
            live.dead = found.dead or (live.dead and found.owner is Owner.AWAY)
            live.locked = found.owner is Owner.LOCKED
            live.undriven = found.undriven
        return live.dead

    def _refused(self, entry: TaskRecord, live: _Live) -> Unreadable | None:
        """Read an orphan strictly, as the reaper will: it cannot end an unreadable record."""
        if live.checked is entry:
            return None
        live.checked = entry
        try:
            found = self._ledger.read(entry.task_id)
        except EngineError:
            return None
        return found if isinstance(found, Unreadable) else None

    def _forget(self, task_id: TaskId) -> None:
        self._views.pop(task_id, None)
        self._stamps.pop(task_id, None)
        self._young.discard(task_id)
        self._listed = None  # it may be back before the root's stamp shows that
        self._live.pop(task_id, None)
        self._unfinished.discard(task_id)
        self._unstable.pop(task_id, None)
