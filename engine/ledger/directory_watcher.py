"""Change notices of the file system, from watchdog's threads: a hint, never the truth.

The only module that imports watchdog, and only when the first folder is watched (watchdog costs 110
ms of CPU to import). On Linux it uses watchdog's inotify reader directly: an `Observer` keeps one
thread for each folder and delays one half of a rename by up to 500 ms to pair it with the other.
Here 400 folders need one thread, and only event kinds that can change a task are subscribed. Opens,
closes and appends are not among them, so reading a folder never causes a notice.

Other systems watch trees natively, so one deep `Observer` on the root suffices.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver, ObservedWatch
    from watchdog.observers.inotify_c import InotifyEvent, InotifyFD, WatchDescriptor


class Listener(Protocol):
    """Receiver of notices, called in watchdog's thread: store and return, nothing else."""

    def on_change(self, name: str) -> None:
        """The entry `name` (relative, `/` between parts) was created, removed or replaced."""

    def on_end(self) -> None:
        """The folder itself was removed, so no more notices will come."""

    def on_overflow(self) -> None:
        """Notices were dropped: a full scan is needed."""


class DirectoryWatcher(Protocol):
    """Watches folders until closed. Not thread-safe."""

    @property
    def recursive(self) -> bool:
        """Whether a watch on a folder includes its subfolders."""

    def watch_folder(self, folder: Path, listener: Listener) -> Callable[[], None]:
        """Start a watch; the returned function ends it. Raises OSError (ENOSPC: no watches
        left)."""

    def close(self) -> None:
        """Stop all watches and wait until watchdog's threads have ended."""


def open_watcher() -> DirectoryWatcher:
    """Open the best watcher for this system. Raises OSError (EMFILE: none left)."""
    return InotifyWatcher() if sys.platform.startswith("linux") else ObserverWatcher()


class InotifyWatcher:
    """Watcher with one inotify instance and one thread for any number of folders (Linux)."""

    recursive = False

    def __init__(self) -> None:
        from watchdog.observers.inotify_c import InotifyConstants, InotifyFD, Mask

        of = InotifyConstants
        entries = of.IN_CREATE | of.IN_MOVED_TO | of.IN_MOVED_FROM | of.IN_DELETE
        itself = of.IN_DELETE_SELF | of.IN_MOVE_SELF | of.IN_ONLYDIR | of.IN_DONT_FOLLOW
        self._mask = Mask(entries | itself)
        self._fd: InotifyFD = InotifyFD()
        self._fd.start()

    def watch_folder(self, folder: Path, listener: Listener) -> Callable[[], None]:
        from watchdog.observers.inotify_c import CallbackId

        handler = _InotifyHandler(listener)
        number = CallbackId(id(handler))
        wd = self._fd.add_callback(os.fsencode(folder), self._mask, handler, number)
        if wd < 0:  # watchdog ignores EACCES here and returns an invalid watch
            raise PermissionError(f"{folder} cannot be watched")

        def unwatch() -> None:
            if handler.open:
                handler.open = False
                self._fd.remove_callbacks([(wd, number)])

        return unwatch

    def close(self) -> None:
        self._fd.stop()
        self._fd.join()


class _InotifyHandler:
    """Adapter from one folder's inotify events to its listener."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.open = True

    def on_event(self, event: InotifyEvent) -> None:
        if event.name:
            self._listener.on_change(os.fsdecode(event.name))
        elif event.is_move_self:  # the watch would follow the folder to its new place
            self._listener.on_end()

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        if self.open:
            self.open = False
            self._listener.on_end()

    def on_queue_overflow(self) -> None:
        self._listener.on_overflow()


class ObserverWatcher:
    """Watcher on watchdog's own observer, for systems that watch a whole tree at once."""

    recursive = True

    def __init__(self) -> None:
        from watchdog.observers import Observer

        self._observer: BaseObserver = Observer()
        self._observer.start()
        self._handler_counts: Counter[ObservedWatch] = Counter()
        self._overflow_detector = _OverflowDetector()
        logging.getLogger("watchdog").addHandler(self._overflow_detector)

    def watch_folder(self, folder: Path, listener: Listener) -> Callable[[], None]:
        from watchdog import events as of

        kinds: list[type[FileSystemEvent]] = [
            *(of.FileCreatedEvent, of.FileMovedEvent, of.FileDeletedEvent),
            *(of.DirCreatedEvent, of.DirMovedEvent, of.DirDeletedEvent),
        ]
        # no subclass: watchdog is imported late, and `dispatch` is all that it calls
        handler = cast("of.FileSystemEventHandler", _ObserverHandler(folder, listener))
        watch = self._observer.schedule(handler, str(folder), recursive=True, event_filter=kinds)
        self._handler_counts[watch] += 1
        self._overflow_detector.listeners.append(listener)

        def unwatch() -> None:
            self._overflow_detector.listeners.remove(listener)
            self._observer.remove_handler_for_watch(handler, watch)
            self._handler_counts[watch] -= 1
            if not self._handler_counts[watch]:
                self._observer.unschedule(watch)

        return unwatch

    def close(self) -> None:
        logging.getLogger("watchdog").removeHandler(self._overflow_detector)
        self._observer.stop()
        self._observer.join()


class _ObserverHandler:
    """Adapter from one tree's watchdog events to its listener."""

    def __init__(self, folder: Path, listener: Listener) -> None:
        self._folder = str(folder)
        self._listener = listener

    def dispatch(self, event: FileSystemEvent) -> None:
        """Report both paths: an atomic replace shows only in a rename's target."""
        for path in (event.src_path, event.dest_path):
            if not path:
                continue
            name = os.path.relpath(os.fsdecode(path), self._folder)
            if name == os.curdir:
                self._listener.on_end()
            elif not name.startswith(os.pardir):
                self._listener.on_change(name.replace(os.sep, "/"))


class _OverflowDetector(logging.Handler):
    """Log handler that detects dropped events, which watchdog reports only in its log."""

    def __init__(self) -> None:
        super().__init__(level=logging.WARNING)
        self.listeners: list[Listener] = []

    def emit(self, record: logging.LogRecord) -> None:
        for listener in list(self.listeners):
            listener.on_overflow()
