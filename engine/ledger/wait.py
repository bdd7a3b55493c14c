"""Wait for a task's end, whichever process ends it.

Every wait of a loop on one ledger shares one poller: a watch on each awaited folder (never on
meta.json itself, whose inode is replaced by every write) and one poll of all of them each 100 ms,
for changes without a notice. No thread is blocked while nothing happens. Source: ledger rule "wait:
watch + bounded poll, within 200 ms".
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from weakref import WeakKeyDictionary

from engine.ledger.directory_watcher import DirectoryWatcher, open_watcher
from engine.ledger.filesystem_checks import HeldFolder, Presence
from engine.ledger.reader import LedgerReader
from engine.model.errors import (
    LedgerUnusable,
    TaskNotFound,
    TaskRemoved,
    TaskUnreadable,
    WaitTimeout,
)
from engine.model.records import META_NAME, TaskId, TaskRecord, Unreadable

POLL_S = 0.1
AWAY_S = 60.0
REMOVED_S = 0.5  # a folder that is replaced by a copy is missing for a moment


async def wait_terminal(
    ledger: LedgerReader, task_id: str, timeout_ms: int = 60_000, away_s: float = AWAY_S
) -> TaskRecord:
    """Return the record once the task has ended; at once when it already has.

    An absent folder is waited for as well, `away_s` at the most.

    Raises:
        WaitTimeout: it did not end within `timeout_ms`; it goes on.
        TaskRemoved: its folder was removed meanwhile.
        TaskUnreadable: its meta.json cannot be used, also not at a second read.
        NotATaskId, TaskNotFound: there is nothing to wait for.
    """
    entry = await asyncio.to_thread(ledger.read, task_id)
    if isinstance(entry, TaskRecord) and entry.is_terminal:
        return entry
    held = await asyncio.to_thread(HeldFolder, ledger.root, entry.task_id)
    try:
        async with (
            asyncio.timeout(timeout_ms / 1000),
            _awaited(ledger.root, entry.task_id) as woken,
        ):
            absence = _Absence(held, away_s)
            return await _end(ledger, TaskId(entry.task_id), woken, absence)
    except TimeoutError as late:
        raise WaitTimeout(task_id=task_id, timeout_ms=timeout_ms) from late
    finally:
        held.close()


class _Absence:
    """Timer for how long a folder has been away."""

    def __init__(self, held: HeldFolder, limit_s: float) -> None:
        self._held, self._limit_s = held, limit_s
        self._absent_since: float | None = None

    def reset(self) -> None:
        self._absent_since = None

    async def may_return(self) -> bool:
        """Return whether the folder may still come back."""
        now = time.monotonic()
        self._absent_since = now if self._absent_since is None else self._absent_since
        removed = await asyncio.to_thread(self._held.check) is Presence.REMOVED
        return now - self._absent_since <= (
            min(REMOVED_S, self._limit_s) if removed else self._limit_s
        )


async def _end(
    ledger: LedgerReader, task_id: TaskId, woken: asyncio.Event, absence: _Absence
) -> TaskRecord:
    doubted = False
    while True:
        woken.clear()
        try:
            entry = await asyncio.to_thread(ledger.read, task_id)
        except (TaskNotFound, LedgerUnusable) as gone:
            if not await absence.may_return():
                raise TaskRemoved(task_id=task_id) from gone
            await asyncio.sleep(POLL_S)
            continue
        absence.reset()
        if isinstance(entry, TaskRecord) and entry.is_terminal:
            return entry
        if isinstance(entry, Unreadable) and doubted:
            raise TaskUnreadable(task_id=task_id, reason=entry.reason, path=entry.path)
        # Another tool may be writing in place: read a second time.
        doubted = isinstance(entry, Unreadable)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_S if doubted else None):
                await woken.wait()


_pollers: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Path, _FolderPoller]] = (
    WeakKeyDictionary()
)


@asynccontextmanager
async def _awaited(root: Path, task_id: str) -> AsyncIterator[asyncio.Event]:
    """Yield an event, set whenever the task may have changed; the last wait ends the poller."""
    here = _pollers.setdefault(asyncio.get_running_loop(), {})
    poller = here.get(root)
    if poller is None:
        poller = here[root] = _FolderPoller(root)
    woken = poller.enter(task_id)
    try:
        yield woken
    finally:
        if not poller.leave(task_id, woken):
            del here[root]
            await poller.close()


class _FolderPoller:
    """Poll and watch the folders of awaited tasks."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._waiters: dict[str, set[asyncio.Event]] = {}
        self._stamps: dict[str, tuple[int, int, int] | None] = {}
        self._entered = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._folders = _Folders(root, lambda one: loop.call_soon_threadsafe(self._wake, one))
        self._runner = asyncio.create_task(self._run(), name="wait poller")

    def enter(self, task_id: str) -> asyncio.Event:
        woken = asyncio.Event()
        self._waiters.setdefault(task_id, set()).add(woken)
        self._entered.set()
        return woken

    def leave(self, task_id: str, woken: asyncio.Event) -> bool:
        """Remove a wait; return whether others are left."""
        events = self._waiters[task_id]
        events.remove(woken)
        if not events:
            del self._waiters[task_id]
            self._stamps.pop(task_id, None)
        return bool(self._waiters)

    async def close(self) -> None:
        self._runner.cancel()
        await asyncio.wait({self._runner})

    async def _run(self) -> None:
        # Opened while polling: the first import of watchdog may take longer than a poll.
        opening = asyncio.create_task(asyncio.to_thread(self._folders.open), name="wait watcher")
        opening.add_done_callback(lambda _: self._entered.set())  # poll again, now with watches
        try:
            while True:
                self._entered.clear()
                seen = await asyncio.to_thread(self._folders.watch_and_stat, tuple(self._waiters))
                for task_id, stamp in seen.items():
                    if stamp != self._stamps.get(task_id, ()):
                        self._stamps[task_id] = stamp
                        self._wake(task_id)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        await self._entered.wait()
        finally:
            opening.cancel()  # its thread finds the folders closed, so no wait ends late
            await asyncio.wait({opening})
            if self._folders.shut():
                await asyncio.to_thread(self._folders.close)

    def _wake(self, task_id: str) -> None:
        for woken in self._waiters.get(task_id, ()):
            woken.set()


class _Folders:
    """Folder watches and stats of a poller, for worker threads."""

    def __init__(self, root: Path, notify: Callable[[str], object]) -> None:
        self._root = root
        self._notify = notify
        self._lock = threading.Lock()
        self._closed = False
        self._watcher: DirectoryWatcher | None = None
        self._listeners: dict[str, _TaskListener] = {}

    def open(self) -> None:
        """Open the watcher; on failure polling continues alone."""
        with self._lock, contextlib.suppress(OSError):
            if not self._closed:
                self._watcher = open_watcher()
        if self._closed:
            self.close()

    def shut(self) -> bool:
        """Mark as closed; return whether `close` has a watcher to end (else `open` does it)."""
        self._closed = True
        return self._watcher is not None

    def close(self) -> None:
        with self._lock:
            watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.close()

    def watch_and_stat(self, task_ids: tuple[str, ...]) -> dict[str, tuple[int, int, int] | None]:
        """Watch exactly these tasks; return the inode, time and size of each meta.json."""
        if self._lock.acquire(blocking=False):  # held while watchdog is being imported
            try:
                self._watch(frozenset(task_ids))
            finally:
                self._lock.release()
        return {task_id: _stamp(self._root / task_id / META_NAME) for task_id in task_ids}

    def _watch(self, wanted: frozenset[str]) -> None:
        if self._watcher is None:
            return
        for task_id in [
            one for one, listener in self._listeners.items() if listener.reset or one not in wanted
        ]:
            self._listeners.pop(task_id).unwatch()
        for task_id in wanted - self._listeners.keys():
            listener = _TaskListener(task_id, self._watcher.recursive, self._notify)
            folder = self._root if self._watcher.recursive else self._root / task_id
            with contextlib.suppress(OSError):
                listener.unwatch = self._watcher.watch_folder(folder, listener)
                self._listeners[task_id] = listener


class _TaskListener:
    """Wake the waits for one task."""

    unwatch: Callable[[], None]

    def __init__(self, task_id: str, recursive: bool, notify: Callable[[str], object]) -> None:
        self.reset = False
        self._task_id = task_id
        self._notify = notify
        self._names = {task_id, f"{task_id}/{META_NAME}"} if recursive else {META_NAME}

    def on_change(self, name: str) -> None:
        if name in self._names:
            self.on_overflow()

    def on_end(self) -> None:
        self.reset = True
        self.on_overflow()

    def on_overflow(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has just been closed
            self._notify(self._task_id)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
