"""Presence of a task's folder: there, away for now, or removed.

An unplugged drive, a network failure or a sync tool that moves a folder is no removal. The folder
is held open, so that the system can distinguish a removed folder (link count 0) from one that was
moved or unmounted. A root without `.runners` is another folder in its place: the mount point of an
absent disk, or an emptied ledger.
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

_ABSENT_NAMES: Final = (
    *("ENOENT", "ENOTDIR", "ENODEV", "ENXIO", "EIO", "ESTALE", "ENOTCONN", "EREMOTEIO"),
    *("EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETUNREACH", "ETIMEDOUT"),
)
SILENT_WORDS: Final = "the ledger folder does not answer"
ANSWER_S: Final = 5.0  # a dead network mount never answers; it is reported after this time
_ABSENT: Final = frozenset(getattr(errno, name, errno.ENOENT) for name in _ABSENT_NAMES)


class Presence(StrEnum):
    """Location state of a task's folder."""

    THERE = "there"
    AWAY = "away"  # the folder or its ledger is not there now, and may come back
    REMOVED = "removed"  # the folder was deleted; its ledger is there


def may_be_away(error: EngineError) -> bool:
    """Return whether an absent folder can cause this error."""
    if isinstance(error, LedgerWriteFailed):
        cause = error.__cause__
        return isinstance(cause, OSError) and cause.errno in _ABSENT
    return isinstance(error, TaskNotFound | LedgerUnusable | TaskUnreadable)


class FolderProbe:
    """Probe folders in a daemon thread, because a dead network mount never answers.

    The caller waits no longer than it wants, and the thread keeps no program alive.
    """

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._thread = threading.Thread(target=self._probe, name="ask for a folder", daemon=True)
        self._thread.start()

    def responded(self, within_s: float) -> bool:
        """Wait for the probe; True when the system answered, with any result."""
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def _probe(self) -> None:
        for folder in self._folders:
            with suppress(OSError), os.scandir(folder) as found:
                next(found, None)


def is_missing(root: Path) -> bool:
    """Return whether a ledger's folder is missing, or empty like a mount point."""
    try:
        with os.scandir(root) as found:
            return next(found, None) is None
    except FileNotFoundError:
        return True
    except OSError:
        return False  # the code that opens the folder reports the reason


class HeldFolder:
    """Folder of one task, held open until `close`. For worker threads, one at a time."""

    def __init__(self, root: Path, task_id: str) -> None:
        self._root, self._task_id = root, task_id
        self._held: Folder | None = None
        self._was_present = False
        self.replaced = False  # another folder has replaced the first one
        with suppress(OSError):
            self.check()

    def close(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def check(self) -> Presence:
        """Return where the folder is now; one that came back is held from then on."""
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
            self._keep_open(found)
            return Presence.THERE

    def _judge(self, top: Folder) -> Presence:
        if not top.has(RUNNERS) or top.has(self._task_id):  # the second case is a link or a file
            return Presence.AWAY
        if self._held is None or self._held.fd is None:
            return Presence.AWAY if self._was_present else Presence.REMOVED
        try:
            return Presence.AWAY if os.fstat(self._held.fd).st_nlink else Presence.REMOVED
        except OSError:
            return Presence.AWAY

    def _keep_open(self, found: Folder) -> None:
        self._was_present = True
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
