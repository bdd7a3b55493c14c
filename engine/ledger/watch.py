"""Bundled change notices of a ledger, and the schedule of full rescans.

Notices (`directory_watcher`) become sets of task ids: at once when idle, else every 50 ms. They may
be lost, so `rescan` requests a scan of every folder each 5 s, and each 1.5 s (and at once) while
the watch is incomplete. Source: ledger rule "watching is a hint, the scan is the truth".
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

from engine.ledger.change_queue import ChangeQueue, Changes
from engine.ledger.directory_watcher import DirectoryWatcher, open_watcher
from engine.ledger.filesystem_checks import unreliable_notices
from engine.ledger.folder_presence import ANSWER_S, SILENT_WORDS
from engine.model.errors import LedgerUnusable
from engine.model.records import META_NAME, TaskId

NO_DESCRIPTORS = {errno.EMFILE, errno.ENFILE}
TASK_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)


class WatchSet:
    """Watches on the root and on the followed tasks. `mend` and `close` run in worker threads."""

    def __init__(
        self,
        root: Path,
        post: ChangeQueue,
        ears: Callable[[], DirectoryWatcher],
        doubt: Callable[[Path], str],
    ) -> None:
        self.wanted: frozenset[TaskId] = frozenset()
        self._root = root
        self._post = post
        self._open = ears
        self._ask_doubt = doubt
        self._doubt = ""
        self._lock = threading.Lock()
        self._closed = False
        self._ears: DirectoryWatcher | None = None
        self._inode: tuple[int, int] | None = None
        self._root_listener = _RootListener(self, post)
        self._held: dict[TaskId, _TaskListener] = {}
        self._ended: set[_TaskListener] = set()  # filled by watchdog's thread

    def mend(self) -> tuple[str, str]:
        """Restore missing watches; return why the root is gone, and why notices are incomplete."""
        with self._lock:
            return ("", "") if self._closed else self._mend()

    def close(self) -> None:
        """Stop watching for good; a later `mend` does nothing."""
        with self._lock:
            self._closed = True
            self._drop()

    def root_ended(self) -> None:
        """Handle the root's end in watchdog's thread: a new folder may get the same inode."""
        self._post.wake()

    def task_ended(self, listener: _TaskListener) -> None:
        self._ended.add(listener)
        self._post.put(listener.task_id)

    def _mend(self) -> tuple[str, str]:
        try:
            # Distinguishes a file and an unreadable folder from a usable one.
            with os.scandir(self._root):
                found = os.stat(self._root)
        except OSError as why:
            if why.errno in NO_DESCRIPTORS:  # says nothing about the folder
                return "", _deaf(why)
            self._drop()
            return str(_unusable(self._root, why)), ""
        inode = (found.st_dev, found.st_ino)
        if inode != self._inode or self._root_listener.over:
            self._drop()
        try:
            self._hold_root(inode)
            self._hold_tasks()
        except OSError as why:
            return "", _deaf(why)
        return "", self._doubt

    def _drop(self) -> None:
        ears, self._ears = self._ears, None
        self._inode = None
        self._held.clear()
        if ears is not None:
            ears.close()

    def _hold_root(self, inode: tuple[int, int]) -> None:
        if self._ears is not None:
            return
        ears = self._open()
        self._root_listener = _RootListener(self, self._post)
        try:
            ears.listen(Path(os.path.realpath(self._root)), self._root_listener)
        except OSError:
            ears.close()
            raise
        self._ears, self._inode = ears, inode
        # Notices are used all the same: they make updates quick.
        self._doubt = self._ask_doubt(self._root)

    def _hold_tasks(self) -> None:
        if self._ears is None or self._ears.deep:
            return
        wanted = self.wanted
        while self._ended:
            listener = self._ended.pop()
            if self._held.get(listener.task_id) is listener:
                del self._held[listener.task_id]
        for task_id in self._held.keys() - wanted:
            self._held.pop(task_id).leave()
        for task_id in wanted - self._held.keys():
            self._hold(task_id, self._ears)

    def _hold(self, task_id: TaskId, ears: DirectoryWatcher) -> None:
        listener = _TaskListener(task_id, self, self._post)
        try:
            listener.leave = ears.listen(self._root / task_id, listener)
        except (FileNotFoundError, NotADirectoryError):
            return  # the reader notices its removal
        self._held[task_id] = listener
        # Changes between the reader's last read and this watch caused no notice.
        self._post.put(task_id)


class _RootListener:
    def __init__(self, listening: WatchSet, post: ChangeQueue) -> None:
        self.over = False
        self._listening, self._post = listening, post

    def heard(self, name: str) -> None:
        """Queue a created or removed task; under a deep watch, also a changed meta.json."""
        task, _, inner = name.partition("/")
        if inner in ("", META_NAME) and TASK_ID.fullmatch(task):
            self._post.put(TaskId(task))

    def ended(self) -> None:
        self.over = True
        self._listening.root_ended()

    def lost(self) -> None:
        self._post.lose()


class _TaskListener:
    leave: Callable[[], None]

    def __init__(self, task_id: TaskId, listening: WatchSet, post: ChangeQueue) -> None:
        self.task_id, self._listening, self._post = task_id, listening, post

    def heard(self, name: str) -> None:
        if name == META_NAME:  # temp names, locks and dot files change no task
            self._post.put(self.task_id)

    def ended(self) -> None:
        self._listening.task_ended(self)

    def lost(self) -> None:
        self._post.lose()


def _unusable(root: Path, why: OSError) -> LedgerUnusable:
    words = {
        errno.ENOENT: "the ledger folder is gone",
        errno.ENOTDIR: "this is a file, not a folder",
        errno.EACCES: "the folder may not be read",
    }
    reason = words.get(why.errno or 0, why.strerror or str(why))
    return LedgerUnusable(path=str(root), reason=reason)


def _deaf(why: OSError) -> str:
    words = {
        errno.ENOSPC: "the system's limit of file watches is used up",
        errno.EMFILE: "the limit of open files or watchers is used up",
        errno.ENFILE: "the system's limit of open files is used up",
    }
    return words.get(why.errno or 0, why.strerror or str(why))


GONE_S = 1.0  # rows must be back within 2 s of the folder's return


class Watch:
    """Watch the root and the followed tasks' folders, and report the state of the watch.

    `state` is live, polling, gone or silent (it does not answer), `reason` a sentence when it is
    not live; `deaf` is set while notices will stay incomplete. `doubt` returns why notices for a
    folder are unreliable. Changes have one reader, on the loop that called `start`; `nudge` may be
    called from any thread.
    """

    def __init__(
        self,
        root: Path,
        *,
        scan_s: float = 5.0,
        poll_s: float = 1.5,
        ears: Callable[[], DirectoryWatcher] = open_watcher,
        doubt: Callable[[Path], str] = unreliable_notices,
    ) -> None:
        self.root = root
        self.state = "live"
        self.reason = ""
        self.deaf = ""
        self._period = {"live": scan_s, "polling": poll_s, "gone": GONE_S, "silent": GONE_S}
        self._post = ChangeQueue()
        self._listening = WatchSet(root, self._post, ears, doubt)
        self._keeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start watching; the first `changes` requests a rescan. A second call does nothing."""
        if self._keeper is not None:
            return
        self._post.open(asyncio.get_running_loop())
        await self._mend()
        self._post.put(rescan=True)
        self._keeper = asyncio.create_task(self._keep(), name="watch-keeper")

    async def stop(self) -> None:
        """Stop the own task and watchdog's threads. A second call does nothing."""
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        keeper.cancel()
        await asyncio.gather(keeper, return_exceptions=True)
        self._post.close()
        await asyncio.to_thread(self._listening.close)

    def follow(self, ids: Collection[TaskId]) -> None:
        """Watch exactly these tasks' folders (the live ones), besides the root."""
        wanted = frozenset(ids)
        if wanted != self._listening.wanted:
            self._listening.wanted = wanted
            self._post.attention.set()

    def nudge(self, task_id: TaskId) -> None:
        """Queue a change made by this process, without waiting for the file system."""
        self._post.put(task_id)

    def rescan(self) -> None:
        """Request a scan of everything, now."""
        self._post.put(rescan=True)

    def wake(self) -> None:
        """Make `changes` return soon, with any changes there are. From any thread."""
        self._post.put()

    async def changes(self, within_s: float | None = None) -> Changes:
        """Wait for the next bundle; an empty one when `within_s` is over or `state` changed."""
        return await self._post.take(within_s)

    async def _keep(self) -> None:
        due = time.monotonic() + self._period[self.state]
        while True:
            lost = await self._woken(due - time.monotonic())
            before = self.state
            await self._mend(lost)
            now = time.monotonic()
            if lost or now >= due or self.state != before:
                self._post.put(rescan=True)
                due = now + self._period[self.state]

    async def _woken(self, within_s: float) -> bool:
        """Sleep until a repair or a scan is due; True when notices were lost."""
        try:
            async with asyncio.timeout(max(0.0, within_s)):
                await self._post.attention.wait()
        except TimeoutError:
            return False
        self._post.attention.clear()
        return self._post.take_lost()

    async def _mend(self, lost: bool = False) -> None:
        """Restore the watches as far as possible, and update `state`.

        `lost`: notices were dropped since the last call, however late that was noticed.
        """
        if lost or self._post.lost_within(self._period["polling"]):
            overflow = "the system dropped change notices"
        else:
            overflow = ""
        words = f"{self.root}: {SILENT_WORDS}"
        silent = asyncio.get_running_loop().call_later(ANSWER_S, self._tell, "silent", words)
        try:
            gone, self.deaf = await asyncio.to_thread(self._listening.mend)
        finally:
            silent.cancel()
        trouble = self.deaf or overflow
        if gone:
            state, reason = "gone", gone
        elif trouble:
            every = f"{self._period['polling']:g} s"
            state, reason = "polling", f"Looking every {every}: {trouble}."
        else:
            state, reason = "live", ""
        self._tell(state, reason)

    def _tell(self, state: str, reason: str) -> None:
        if (state, reason) != (self.state, self.reason):
            self.state, self.reason = state, reason
            self._post.put()
