"""Bundled change notices of a ledger, and the schedule of rescans.

Notices (`directory_watcher`) come from watchdog's thread; `ChangeQueue` makes sets of task ids of
them, at once when idle, else every 50 ms. They may be lost, so `rescan` requests a routine scan
each 5 s, and a whole one each 1.5 s (and at once) while the watch is incomplete.
Source: ledger rule "watching is a hint, the scan is the truth".
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from engine.ledger.directory_watcher import DirectoryWatcher, open_watcher
from engine.ledger.files import unusable
from engine.ledger.filesystem_checks import ANSWER_S, SILENT_WORDS, unreliable_notices
from engine.model.errors import LedgerUnusable
from engine.model.records import META_NAME, TaskId

FLUSH_S = 0.05  # one atomic write is 8-21 raw events; a reader sees them as one
NO_DESCRIPTORS = {errno.EMFILE, errno.ENFILE}
TASK_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Changes:
    """Task ids that may have changed; with `rescan`, any task may have.

    `whole` asks for a scan of every task; without it, notices are complete and the scan is routine.
    """

    ids: frozenset[TaskId] = frozenset()
    rescan: bool = False
    whole: bool = False


class ChangeQueue:
    """Bundle change notices into one call to the loop per bundle; the first goes out at once.

    A callback costs the loop 50-90 us under Qt, so a thousand notices must not cause a thousand
    calls.
    """

    def __init__(self) -> None:
        self.repair_needed = asyncio.Event()  # wakes the watch's own task: something needs repair
        self._lock = threading.Lock()
        self._ids: set[TaskId] = set()
        self._rescan = self._whole = False
        self._scheduled = False
        self._lost = False
        self._lost_at = float("-inf")
        self._flushed_at = float("-inf")
        self._ready = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def close(self) -> None:
        with self._lock:
            self._loop = None

    def put(self, *ids: TaskId, rescan: bool = False, whole: bool = False) -> None:
        """Queue ids from any thread, and schedule one wake-up until the bundle is read."""
        with self._lock:
            self._ids.update(ids)
            self._rescan |= rescan
            self._whole |= whole
            if not self._scheduled:
                self._scheduled = self._call(self._release)

    def report_loss(self) -> None:
        """Record from any thread that notices were dropped, and request a rescan at once."""
        with self._lock:
            self._lost_at = time.monotonic()
            if not self._lost:
                self._lost = self._call(self.repair_needed.set)

    def wake(self) -> None:
        """Wake the watch's own task, from any thread."""
        with self._lock:
            self._call(self.repair_needed.set)

    def pop_lost(self) -> bool:
        """Return whether notices were dropped since the last call, and reset the flag."""
        with self._lock:
            lost, self._lost = self._lost, False
        return lost

    def lost_within(self, seconds: float) -> bool:
        return time.monotonic() - self._lost_at < seconds

    async def next_bundle(self, within_s: float | None) -> Changes:
        """Return all changes since the last call; empty when `within_s` passes without any."""
        try:
            async with asyncio.timeout(within_s):
                await self._ready.wait()
        except TimeoutError:
            return Changes()
        self._ready.clear()
        self._flushed_at = time.monotonic()
        with self._lock:
            bundle = Changes(frozenset(self._ids), self._rescan, self._whole)
            self._ids.clear()
            self._rescan = self._whole = self._scheduled = False
        return bundle

    def _call(self, call: Callable[[], object]) -> bool:
        """Schedule `call` on the loop; False when there is no running loop."""
        if self._loop is None:
            return False
        with contextlib.suppress(RuntimeError):  # the loop was closed before `stop`
            self._loop.call_soon_threadsafe(call)
            return True
        return False

    def _release(self) -> None:
        """Release the bundle on the loop: now, or when `FLUSH_S` since the last one has passed."""
        left = self._flushed_at + FLUSH_S - time.monotonic()
        if left <= 0 or self._loop is None:
            self._ready.set()
        else:
            self._loop.call_later(left, self._ready.set)


class WatchSet:
    """Watches on the root and on the followed tasks. `repair` and `close` run in worker threads."""

    def __init__(
        self,
        root: Path,
        queue: ChangeQueue,
        open_watcher: Callable[[], DirectoryWatcher],
        notice_check: Callable[[Path], str],
    ) -> None:
        self.wanted: frozenset[TaskId] = frozenset()
        self._root = root
        self._queue = queue
        self._open_watcher = open_watcher
        self._notice_check = notice_check
        self._notice_warning = ""
        self._lock = threading.Lock()
        self._closed = False
        self._watcher: DirectoryWatcher | None = None
        self._inode: tuple[int, int] | None = None
        self._root_listener = _RootListener(self, queue)
        self._listeners: dict[TaskId, _TaskListener] = {}
        self._ended: set[_TaskListener] = set()  # filled by watchdog's thread

    def repair(self) -> tuple[str, str]:
        """Restore missing watches; return why the root is gone, and why notices are incomplete."""
        with self._lock:
            return ("", "") if self._closed else self._repair()

    def close(self) -> None:
        """Stop watching for good; a later `repair` does nothing."""
        with self._lock:
            self._closed = True
            self._drop()

    def root_ended(self) -> None:
        """Handle the root's end in watchdog's thread: a new folder may get the same inode."""
        self._queue.wake()

    def task_ended(self, listener: _TaskListener) -> None:
        self._ended.add(listener)
        self._queue.put(listener.task_id)

    def _repair(self) -> tuple[str, str]:
        try:
            # Distinguishes a file and an unreadable folder from a usable one.
            with os.scandir(self._root):
                found = os.stat(self._root)
        except OSError as error:
            if error.errno in NO_DESCRIPTORS:  # says nothing about the folder
                return "", _watch_failure(error)
            self._drop()
            return str(_unusable(self._root, error)), ""
        inode = (found.st_dev, found.st_ino)
        if inode != self._inode or self._root_listener.closed:
            self._drop()
        try:
            self._watch_root(inode)
            self._watch_tasks()
        except OSError as error:
            return "", _watch_failure(error)
        return "", self._notice_warning

    def _drop(self) -> None:
        watcher, self._watcher = self._watcher, None
        self._inode = None
        self._listeners.clear()
        if watcher is not None:
            watcher.close()

    def _watch_root(self, inode: tuple[int, int]) -> None:
        if self._watcher is not None:
            return
        watcher = self._open_watcher()
        self._root_listener = _RootListener(self, self._queue)
        try:
            watcher.watch_folder(Path(os.path.realpath(self._root)), self._root_listener)
        except OSError:
            watcher.close()
            raise
        self._watcher, self._inode = watcher, inode
        # Notices are used all the same: they make updates quick.
        self._notice_warning = self._notice_check(self._root)

    def _watch_tasks(self) -> None:
        if self._watcher is None or self._watcher.recursive:
            return
        wanted = self.wanted
        while self._ended:
            listener = self._ended.pop()
            if self._listeners.get(listener.task_id) is listener:
                del self._listeners[listener.task_id]
        for task_id in self._listeners.keys() - wanted:
            self._listeners.pop(task_id).unwatch()
        for task_id in wanted - self._listeners.keys():
            self._watch_task(task_id, self._watcher)

    def _watch_task(self, task_id: TaskId, watcher: DirectoryWatcher) -> None:
        listener = _TaskListener(task_id, self, self._queue)
        try:
            listener.unwatch = watcher.watch_folder(self._root / task_id, listener)
        except (FileNotFoundError, NotADirectoryError):
            return  # the reader notices its removal
        self._listeners[task_id] = listener
        # Changes between the reader's last read and this watch caused no notice.
        self._queue.put(task_id)


class _RootListener:
    def __init__(self, watch_set: WatchSet, queue: ChangeQueue) -> None:
        self.closed = False
        self._watch_set, self._queue = watch_set, queue

    def on_change(self, name: str) -> None:
        """Queue a created or removed task; under a deep watch, also a changed meta.json."""
        task, _, inner = name.partition("/")
        if inner in ("", META_NAME) and TASK_ID.fullmatch(task):
            self._queue.put(TaskId(task))

    def on_end(self) -> None:
        self.closed = True
        self._watch_set.root_ended()

    def on_overflow(self) -> None:
        self._queue.report_loss()


class _TaskListener:
    unwatch: Callable[[], None]

    def __init__(self, task_id: TaskId, watch_set: WatchSet, queue: ChangeQueue) -> None:
        self.task_id, self._watch_set, self._queue = task_id, watch_set, queue

    def on_change(self, name: str) -> None:
        if name == META_NAME:  # temp names, locks and dot files change no task
            self._queue.put(self.task_id)

    def on_end(self) -> None:
        self._watch_set.task_ended(self)

    def on_overflow(self) -> None:
        self._queue.report_loss()


def _unusable(root: Path, error: OSError) -> LedgerUnusable:
    words = {
        errno.ENOENT: "the ledger folder is gone",
        errno.ENOTDIR: "this is a file, not a folder",
        errno.EACCES: "the folder may not be read",
    }
    return unusable(error, str(root), words.get(error.errno or 0, ""))


def _watch_failure(error: OSError) -> str:
    words = {
        errno.ENOSPC: "the system's limit of file watches is used up",
        errno.EMFILE: "the limit of open files or watchers is used up",
        errno.ENFILE: "the system's limit of open files is used up",
    }
    return words.get(error.errno or 0, error.strerror or str(error))


GONE_S = 1.0  # rows must be back within 2 s of the folder's return


class Watch:
    """Watch the root and the followed tasks' folders, and report the state of the watch.

    `state` is live, polling, gone or silent (it does not answer), `reason` a sentence when it is
    not live; `lasting_fault` is set while notices will stay incomplete. `notice_check` returns why
    notices for a folder are unreliable. Changes have one reader, on the loop that called `start`;
    `nudge` may be called from any thread.
    """

    def __init__(
        self,
        root: Path,
        *,
        scan_s: float = 5.0,
        poll_s: float = 1.5,
        gone_s: float = GONE_S,
        open_watcher: Callable[[], DirectoryWatcher] = open_watcher,
        notice_check: Callable[[Path], str] = unreliable_notices,
    ) -> None:
        self.root = root
        self.state = "live"
        self.reason = ""
        self.lasting_fault = ""
        self._period = {"live": scan_s, "polling": poll_s, "gone": gone_s, "silent": GONE_S}
        self._queue = ChangeQueue()
        self._watch_set = WatchSet(root, self._queue, open_watcher, notice_check)
        self._maintainer: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start watching; the first `changes` requests a rescan. A second call does nothing."""
        if self._maintainer is not None:
            return
        self._queue.open(asyncio.get_running_loop())
        await self._repair()
        self.rescan()
        self._maintainer = asyncio.create_task(self._maintain(), name="watch maintenance")

    async def stop(self) -> None:
        """Stop the own task and watchdog's threads. A second call does nothing."""
        maintainer, self._maintainer = self._maintainer, None
        if maintainer is None:
            return
        maintainer.cancel()
        await asyncio.gather(maintainer, return_exceptions=True)
        self._queue.close()
        await asyncio.to_thread(self._watch_set.close)

    def follow(self, ids: Collection[TaskId]) -> None:
        """Watch exactly these tasks' folders (the live ones), besides the root."""
        wanted = frozenset(ids)
        if wanted != self._watch_set.wanted:
            self._watch_set.wanted = wanted
            self._queue.repair_needed.set()

    def nudge(self, task_id: TaskId) -> None:
        """Queue a change made by this process, without waiting for the file system."""
        self._queue.put(task_id)

    def rescan(self) -> None:
        """Request a scan of everything, now."""
        self._queue.put(rescan=True, whole=True)

    def wake(self) -> None:
        """Make `changes` return soon, with any changes there are. From any thread."""
        self._queue.put()

    async def changes(self, within_s: float | None = None) -> Changes:
        """Wait for the next bundle; an empty one when `within_s` is over or `state` changed."""
        return await self._queue.next_bundle(within_s)

    async def _maintain(self) -> None:
        due = time.monotonic() + self._period[self.state]
        while True:
            lost = await self._wait_for_work(due - time.monotonic())
            before = self.state
            await self._repair(lost)
            now = time.monotonic()
            changed = self.state != before
            if lost or now >= due or changed:
                self._queue.put(rescan=True, whole=lost or changed or self.state != "live")
                due = now + self._period[self.state]

    async def _wait_for_work(self, within_s: float) -> bool:
        """Sleep until a repair or a scan is due; True when notices were lost."""
        try:
            async with asyncio.timeout(max(0.0, within_s)):
                await self._queue.repair_needed.wait()
        except TimeoutError:
            return False
        self._queue.repair_needed.clear()
        return self._queue.pop_lost()

    async def _repair(self, lost: bool = False) -> None:
        """Restore the watches as far as possible, and update `state`.

        `lost`: notices were dropped since the last call, however late that was noticed.
        """
        if lost or self._queue.lost_within(self._period["polling"]):
            overflow = "the system dropped change notices"
        else:
            overflow = ""
        words = f"{self.root}: {SILENT_WORDS}"
        silent = asyncio.get_running_loop().call_later(ANSWER_S, self._set_state, "silent", words)
        try:
            gone, self.lasting_fault = await asyncio.to_thread(self._watch_set.repair)
        finally:
            silent.cancel()
        trouble = self.lasting_fault or overflow
        if gone:
            state, reason = "gone", gone
        elif trouble:
            every = f"{self._period['polling']:g} s"
            state, reason = "polling", f"Looking every {every}: {trouble}."
        else:
            state, reason = "live", ""
        self._set_state(state, reason)

    def _set_state(self, state: str, reason: str) -> None:
        if (state, reason) != (self.state, self.reason):
            self.state, self.reason = state, reason
            self._queue.put()
