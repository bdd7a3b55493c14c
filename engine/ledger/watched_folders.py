"""The watches on the root and on the followed tasks' folders: held, mended and let go."""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

from engine.ledger.change_queue import Post
from engine.ledger.directory_watcher import Ears
from engine.model.errors import LedgerUnusable
from engine.model.records import META_NAME, TaskId

NO_DESCRIPTORS = {errno.EMFILE, errno.ENFILE}
TASK_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)


class Listening:
    """The watches themselves. `mend` and `close` run in worker threads."""

    def __init__(
        self, root: Path, post: Post, ears: Callable[[], Ears], doubt: Callable[[Path], str]
    ) -> None:
        self.wanted: frozenset[TaskId] = frozenset()
        self._root = root
        self._post = post
        self._open = ears
        self._ask_doubt = doubt
        self._doubt = ""
        self._lock = threading.Lock()
        self._closed = False
        self._ears: Ears | None = None
        self._inode: tuple[int, int] | None = None
        self._root_listener = _RootListener(self, post)
        self._held: dict[TaskId, _TaskListener] = {}
        self._ended: set[_TaskListener] = set()  # filled by watchdog's thread

    def mend(self) -> tuple[str, str]:
        """Watch what should be watched; tells why the root is gone, or what cannot be heard."""
        with self._lock:
            return ("", "") if self._closed else self._mend()

    def close(self) -> None:
        """Stop listening for good; a `mend` that comes late does nothing."""
        with self._lock:
            self._closed = True
            self._drop()

    def root_ended(self) -> None:
        """From watchdog's thread: a new folder may get the same inode, so this is told apart."""
        self._post.wake()

    def task_ended(self, listener: _TaskListener) -> None:
        self._ended.add(listener)
        self._post.put(listener.task_id)

    def _mend(self) -> tuple[str, str]:
        try:
            with os.scandir(self._root):  # tells a file and a closed folder from a usable one
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
        self._doubt = self._ask_doubt(self._root)  # what is heard is still used: it makes it quick

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

    def _hold(self, task_id: TaskId, ears: Ears) -> None:
        listener = _TaskListener(task_id, self, self._post)
        try:
            listener.leave = ears.listen(self._root / task_id, listener)
        except (FileNotFoundError, NotADirectoryError):
            return  # the reader finds out by itself that it went
        self._held[task_id] = listener
        # What was written between the reader's last look and this watch made no hint.
        self._post.put(task_id)


class _RootListener:
    def __init__(self, listening: Listening, post: Post) -> None:
        self.over = False
        self._listening, self._post = listening, post

    def heard(self, name: str) -> None:
        """A task folder came or went; under a deep watch, also a meta.json in one."""
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

    def __init__(self, task_id: TaskId, listening: Listening, post: Post) -> None:
        self.task_id, self._listening, self._post = task_id, listening, post

    def heard(self, name: str) -> None:
        if name == META_NAME:  # temp names, locks and dot files are nobody's business
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
