"""Is a task's folder there, away for now, or removed? Asked while a run or a wait needs it.

A drive may be unplugged, a network folder drop out, a sync tool put a folder aside: that is
no removal. The folder is held open, so that the system can tell a removed folder (no name
leads to it any more) from one that was moved or unmounted. A root without `.runners` is
another folder in its place: the mount point of a disk that is away, or an emptied ledger.
"""

from __future__ import annotations

import errno
import os
import threading
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from engine.ledger.files import Folder
from engine.ledger.lease import RUNNERS
from engine.model.errors import (
    EngineError,
    LedgerUnusable,
    LedgerWriteFailed,
    TaskNotFound,
    TaskUnreadable,
)
from engine.model.records import META_NAME

_GONE_NAMES: Final = (
    *("ENOENT", "ENOTDIR", "ENODEV", "ENXIO", "EIO", "ESTALE", "ENOTCONN", "EREMOTEIO"),
    *("EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETUNREACH", "ETIMEDOUT"),
)
SILENT_WORDS: Final = "the ledger folder does not answer"
ANSWER_S: Final = 5.0  # a dead network mount never answers: after so long that is told
_GONE: Final = frozenset(getattr(errno, name, errno.ENOENT) for name in _GONE_NAMES)


class Presence(StrEnum):
    """Where a task's folder is."""

    THERE = "there"
    AWAY = "away"  # the folder or its ledger is not there now, and may come back
    REMOVED = "removed"  # the folder was deleted; its ledger is there


def may_be_away(error: EngineError) -> bool:
    """Can this error come of a folder that is away?"""
    if isinstance(error, LedgerWriteFailed):
        cause = error.__cause__
        return isinstance(cause, OSError) and cause.errno in _GONE
    return isinstance(error, TaskNotFound | LedgerUnusable | TaskUnreadable)


class Answer:
    """Asks the system for a folder in a thread of its own: a dead network mount never answers.

    Whoever waits is not held up for longer than wanted, and the thread keeps no program alive.
    """

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._thread = threading.Thread(target=self._ask, name="ask for a folder", daemon=True)
        self._thread.start()

    def came(self, within_s: float) -> bool:
        """Did the system answer, whatever it said?"""
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def _ask(self) -> None:
        for folder in self._folders:
            with suppress(OSError), os.scandir(folder) as found:
                next(found, None)


def is_missing(root: Path) -> bool:
    """Is the folder of a ledger missing, or empty without our mark, as a mount point is?"""
    try:
        with os.scandir(root) as found:
            return next(found, None) is None
    except FileNotFoundError:
        return True
    except OSError:
        return False  # why it cannot be read is told by whoever opens it


class HeldFolder:
    """The folder of one task, held open until `close`. For worker threads, one at a time."""

    def __init__(self, root: Path, task_id: str) -> None:
        self._root, self._task_id = root, task_id
        self._held: Folder | None = None
        self._seen = False
        self.replaced = False  # another folder came back in its place since it was first seen
        with suppress(OSError):
            self.look()

    def close(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def look(self) -> Presence:
        """Where the folder is now; one that came back is held from then on."""
        try:
            top = Folder.at(str(self._root))
        except OSError:
            return Presence.AWAY
        with top:
            try:
                found = top.enter(self._task_id)
            except OSError:
                return self._judge(top)
            if not found.has(META_NAME):  # half removed, or half copied back
                found.close()
                return Presence.AWAY
            self._hold(found)
            return Presence.THERE

    def _judge(self, top: Folder) -> Presence:
        if not top.has(RUNNERS) or top.has(self._task_id):  # the latter is a link, or a file
            return Presence.AWAY
        if self._held is None or self._held.fd is None:
            return Presence.AWAY if self._seen else Presence.REMOVED
        try:
            return Presence.AWAY if os.fstat(self._held.fd).st_nlink else Presence.REMOVED
        except OSError:
            return Presence.AWAY

    def _hold(self, found: Folder) -> None:
        self._seen = True
        held = self._held
        if held is not None and _same(held, found):
            found.close()
            return
        self.replaced = self.replaced or held is not None
        self._held = found
        if held is not None:
            held.close()


def _same(held: Folder, found: Folder) -> bool:
    if held.fd is None or found.fd is None:
        return True
    try:
        return os.path.samestat(os.fstat(held.fd), os.fstat(found.fd))
    except OSError:
        return False
