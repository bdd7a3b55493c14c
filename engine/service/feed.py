"""Live list: every task in batches, newest first, and then changes.

All reading happens in worker threads (`engine.ledger.snapshot`), triggered by the watch.
Drawn in docs/architecture.md, "From a changed folder to a repainted cell".
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Sequence
from functools import partial

import msgspec

from engine.ledger.meta import compact, interned
from engine.ledger.ownership import Runs
from engine.ledger.reader import LedgerReader
from engine.ledger.snapshot import Difference, LedgerSnapshot
from engine.ledger.watch import Changes, Watch
from engine.model.errors import LedgerUnusable
from engine.model.records import TaskId, TaskRecord, TaskView, Unreadable

log = logging.getLogger(__name__)

FIRST = 100  # one or two screens, at once
PART = 500
MANY_AT_ONCE = 2_000  # for larger ledgers: each part costs a thread switch
MANY = 20_000
PULSE_S = 0.25  # progress of live tasks: 4 Hz is as fast as people read numbers
SLOW_PULSE_S = 0.5  # until two looks in a row find a change, and again after QUIET_ROUNDS
QUIET_ROUNDS = 2  # of all live tasks, whose first may have begun before the last change
COMPLETED = 100  # rows of one answer whose events may be read, for progress outside their records
NOTHING = Difference()


class Batch(msgspec.Struct, frozen=True):
    """New, changed and removed tasks.

    `loaded` of `total` tasks were sent so far; `complete` once all were. An empty batch reports
    that the watch's `state` changed, that the ledger is empty, or that `call` requested it.
    """

    views: tuple[TaskView, ...] = ()
    gone: tuple[TaskId, ...] = ()
    loaded: int = 0
    total: int = 0
    complete: bool = False

    def tells_of(self, ids: Collection[str]) -> bool:
        """Return whether the batch holds a change, or the removal, of any of these tasks."""
        found = [view.entry.task_id for view in self.views if view.entry.task_id in ids]
        return bool(found) or any(task_id in ids for task_id in self.gone)


class PulsePace:
    """Pause between two looks at live tasks.

    Slow for tasks that change less often than they are looked at: other programs write each second.
    """

    def __init__(self) -> None:
        self._quiet = 0
        self._changed = False

    def hurry(self) -> float:
        """Return the longest pause after a change that was noticed in another way."""
        self._quiet = 0
        return PULSE_S

    def after(self, changed: bool, is_round_over: bool) -> float:
        """Return the pause after a look that found, or did not find, a change."""
        if changed and self._changed:
            self._quiet = 0
        elif not changed:
            self._quiet += is_round_over
        self._changed = changed
        return PULSE_S if self._quiet < QUIET_ROUNDS else SLOW_PULSE_S


class Feed:
    """One reader's live list of a ledger. Without a watch only `look` works.

    `ours` returns whether this process runs a task, and `runs` its state in this process (see
    `engine.ledger.ownership`); both are called in worker threads. A `light` feed omits fields
    that only the view of a single task needs.
    """

    def __init__(
        self,
        ledger: LedgerReader,
        watch: Watch | None,
        *,
        ours: Callable[[TaskId], bool],
        light: bool = False,
        runs: Runs | None = None,
    ) -> None:
        self.watch = watch
        self._ledger = ledger
        self._snapshot = LedgerSnapshot(ledger, ours, compact if light else interned, runs)
        self._todo: Sequence[TaskId] = ()
        self._done = 0
        self._loading = True
        self._called = False
        self._closed = threading.Event()

    def look(self, task_ids: Iterable[str]) -> list[TaskView]:
        """Return the list rows of these tasks, in this order; for a worker thread.

        Raises:
            NotATaskId, TaskNotFound.
        """
        views = [self._snapshot.of(self._ledger.read(task_id)) for task_id in task_ids]
        return self.complete(views)

    def show(self, entries: Iterable[TaskRecord | Unreadable]) -> list[TaskView]:
        """Return the list rows of these records; for a worker thread."""
        return [self._snapshot.of(entry) for entry in entries]

    def complete(self, views: Sequence[TaskView]) -> list[TaskView]:
        """Add the last progress of ended tasks to the first rows; for a worker thread."""
        first = map(self._snapshot.with_last_units, views[:COMPLETED])
        return [*first, *views[COMPLETED:]]

    def ended(self) -> Iterator[TaskId]:
        """Yield the ended tasks among those read so far. From any thread."""
        for task_id, view in self._snapshot.views().items():
            if isinstance(view.entry, TaskRecord) and view.entry.is_terminal:
                yield task_id

    def nudge(self, task_id: TaskId) -> None:
        """Report a change by this process at once. From any thread."""
        if self.watch is not None:
            self.watch.nudge(task_id)

    def rescan(self) -> None:
        """Read every folder again."""
        if self.watch is not None:
            self.watch.rescan()

    def call(self) -> None:
        """Request a batch soon, even an empty one. From any thread."""
        self._called = True
        if self.watch is not None:
            self.watch.wake()

    async def close(self) -> None:
        """End `batches`. Idempotent."""
        self._closed.set()
        if self.watch is not None:
            self.watch.rescan()  # wakes the reader, which then sees that the feed is closed
            await self.watch.stop()

    async def batches(self) -> AsyncGenerator[Batch, None]:
        """Yield all tasks, newest-changed first, then changes, until `close`.

        For one reader, once.
        """
        watch = self.watch
        if watch is None:
            return
        await watch.start()
        told, pulse_at, pace = "", time.monotonic(), PulsePace()
        try:
            while not self._closed.is_set():
                changes = await watch.changes(self._patience_s(pulse_at))
                pulse, changed, noticed = (began := time.monotonic()) >= pulse_at, False, False
                for look in self._looks(changes, pulse):
                    difference = await self._looked(look, watch)
                    if difference.views or difference.gone:
                        changed = True
                        noticed |= look != self._snapshot.pulse
                        yield self._batch(difference)
                    elif look == self._snapshot.end_load:
                        yield self._batch(NOTHING)  # the last tasks may have been removed
                    if self._closed.is_set():
                        return
                if noticed:
                    pulse_at = min(pulse_at, began + pace.hurry())
                if pulse:
                    pulse_at = began + pace.after(changed, self._snapshot.is_round_over)
                if watch.state != told or self._called:
                    told, self._called = watch.state, False
                    yield self._batch(NOTHING)
                watch.follow(self._snapshot.changeable)
        finally:
            self._snapshot.close()
            await watch.stop()

    def _looks(self, changes: Changes, pulse: bool) -> Iterator[Callable[[], Difference]]:
        """Yield the steps for a worker thread; each runs after the previous one."""
        if changes.ids:
            yield partial(self._snapshot.refresh, changes.ids)
        if changes.rescan:
            self._loading = not len(self._snapshot)
            yield partial(self._survey, changes.whole)
            size = FIRST
            if self._snapshot.left:
                while self._snapshot.left:
                    yield partial(self._snapshot.load_next, size)
                    size = MANY_AT_ONCE
                yield self._snapshot.end_load
            while part := self._todo[self._done : self._done + size]:
                self._done += len(part)
                size = PART
                yield partial(self._snapshot.load, part)
        if pulse:
            yield self._snapshot.pulse

    def _survey(self, whole: bool) -> Difference:
        """Compare stamps, see `LedgerSnapshot.survey`; the next steps read the differences.

        Newest first, except in a very large ledger, where finding the newest would delay all
        rows.
        """
        gone: tuple[TaskId, ...] = ()
        self._done = 0
        if not len(self._snapshot) and len(names := self._snapshot.list_ids()) > MANY:
            self._snapshot.begin_load(names)
            self._todo = ()
        else:
            self._todo, gone = self._snapshot.survey(whole=whole)
        return Difference(gone=gone)

    async def _looked(self, look: Callable[[], Difference], watch: Watch) -> Difference:
        try:
            return await asyncio.to_thread(look)
        except LedgerUnusable:
            # Without a free descriptor, for example, nothing is known until the next rescan.
            self._todo, self._done = (), 0
            self._snapshot.end_load()
            return Difference(gone=self._snapshot.clear()) if watch.state == "gone" else NOTHING
        except OSError as error:  # of one task: the next steps continue
            log.warning("a part of the ledger could not be looked at: %s", error)
            return NOTHING

    def _batch(self, difference: Difference) -> Batch:
        loaded = len(self._snapshot)
        left = self._snapshot.left + len(self._todo) - self._done if self._loading else 0
        return Batch(
            views=difference.views,
            gone=difference.gone,
            loaded=loaded,
            total=loaded + left,
            complete=not left,
        )

    def _patience_s(self, pulse_at: float) -> float | None:
        """Return how long to wait for a change; None without live tasks, which need no pulse."""
        if not self._snapshot.changeable:
            return None
        return max(0.0, pulse_at - time.monotonic())
