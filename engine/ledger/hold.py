"""The hold on new starts: one file of the ledger that every program reads before it starts a task.

The file is the state: while it is there, waiting tasks stay PENDING. It begins with a dot, so no
listing takes it for a task, and OpenChrome ignores it. A file that cannot be used holds as well,
because somebody put it there.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Final

import msgspec

from engine.ledger.files import Folder, Unusable, writing
from engine.ledger.lease import Lease, temporary_lease
from engine.ledger.lock import kernel_lock
from engine.model import redact
from engine.model.records import Hold

NAME: Final = ".hold.json"
_LOCK: Final = ".hold.lock"
_CAP: Final = 1024 * 1024
_REASON_CHARACTERS: Final = 500
_BY_CHARACTERS: Final = 200
_TRIES, _PAUSE_S = 10, 0.02
_MOST_RELEASED: Final = 10_000  # ids that are kept; the oldest go first


def read_hold(root: Path, tasks: Collection[str] = (), known: Hold | None = None) -> Hold | None:
    """Return the hold on new starts, or None. Writes nothing and never raises.

    `known` is returned while the ledger is away: its folder cannot be opened, or is an empty mount
    point without any of `tasks`. Otherwise a hold would end with a cable.
    """
    try:
        with Folder.at(str(root)) as top:
            is_there = not tasks or any(map(top.has, tasks))
            return _read(top) if is_there else known
    except OSError:
        return known


def hold_starts(
    root: Path, by: str, now_ms: int, *, reason: str = "", lease: Lease | None = None
) -> Hold:
    """Hold new starts and return the hold; an earlier one is kept with its time and its author.

    Raises:
        LockTimeout, LedgerReadOnly, LedgerWriteFailed, LedgerUnusable.
    """
    since = Hold(
        since=now_ms,
        by=redact.text(by)[:_BY_CHARACTERS],
        reason=redact.text(reason)[:_REASON_CHARACTERS],
    )
    return _change(root, lease, lambda before: before or since) or since


def release_starts(root: Path, *, lease: Lease | None = None) -> Hold | None:
    """End the hold and return it; None where there was none. Raises as `hold_starts`."""
    found = read_hold(root)
    if found is not None:
        _change(root, lease, lambda before: None)
    return found


def release_tasks(root: Path, ids: Iterable[str], *, lease: Lease | None = None) -> Hold | None:
    """Let these tasks start in spite of the hold, which stays for all others; return it.

    Raises as `hold_starts`.
    """
    wanted = tuple(ids)

    def add(before: Hold | None) -> Hold | None:
        if before is None:
            return None
        released = tuple(dict.fromkeys((*before.released, *wanted)))
        return msgspec.structs.replace(before, released=released[-_MOST_RELEASED:])

    return _change(root, lease, add) if read_hold(root) is not None else None


def _change(
    root: Path, lease: Lease | None, change: Callable[[Hold | None], Hold | None]
) -> Hold | None:
    with (
        temporary_lease(root, lease) as writer,
        writing(str(root)),
        Folder.at(str(root)) as top,
        kernel_lock(top, _LOCK, NAME),
    ):
        before = _read(top)
        after = change(before)
        if after is None:
            _remove(top)
        elif after != before:
            data = msgspec.json.format(msgspec.json.encode(after))
            top.replace(NAME, [data], temp=writer.temp_name(NAME[1:]), durable=True)
        return after


def _remove(top: Folder) -> None:
    """Remove the file. Raises OSError when it stays, so that no release is reported in vain."""
    for _ in range(_TRIES):
        top.remove(NAME)
        if not top.has(NAME):
            top.sync()
            return
        time.sleep(_PAUSE_S)  # Windows refuses while a reader has it open, which is short
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), NAME)


def _read(top: Folder) -> Hold | None:
    try:
        return msgspec.json.decode(top.read(NAME, _CAP), type=Hold)
    except FileNotFoundError:
        return None
    except (OSError, Unusable, msgspec.MsgspecError, ValueError, RecursionError):
        return Hold()
