"""Opening of a ledger's root, and removal of temp files that dead processes left."""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from engine.ledger import lease
from engine.ledger.files import Folder, Unusable
from engine.ledger.listing import task_ids
from engine.ledger.lock import PEERS, TaskLock
from engine.model.errors import LedgerReadOnly, LedgerUnusable
from engine.model.records import ARTIFACTS_NAME

TEMP = re.compile(r"\..+\.([0-9a-f]{16})\.\d+\.tmp", re.ASCII)
_ASIDE = f"{PEERS}.dead-"
_ASIDE_S: Final = 60.0  # a lock directory moved aside is removed at once, unless its mover died


def open_root(root: Path) -> Folder | None:
    """Open the ledger's folder; None while it does not exist. Writes nothing.

    Raises:
        LedgerUnusable: it is no folder, may not be read, or its parents are missing too.
    """
    try:
        return Folder.at(str(root))
    except FileNotFoundError:
        reason = _missing(root)
    except NotADirectoryError:
        reason = "this is not a folder"
    except PermissionError:
        reason = "this folder may not be read by you"
    except OSError as error:
        reason = error.strerror or str(error)
    if not reason:
        return None
    raise LedgerUnusable(path=str(root), reason=reason)


def check_writable(root: Path) -> None:
    """Refuse a root in which no task can be created, whatever may be written below it.

    Raises:
        LedgerReadOnly: it exists and may not be written.
    """
    with suppress(OSError), Folder.at(str(root)) as top:  # acquiring the lease reports other faults
        if not top.is_writable():
            raise LedgerReadOnly(path=str(root))


def _missing(root: Path) -> str:
    if os.path.lexists(root):
        return "this link leads nowhere"
    if root.parent.is_dir() or root.parent.parent.is_dir():
        return ""  # the first program that accepts a task creates it
    return f"there is no such folder, and its parent {root.parent} is not there either"


def sweep(root: Path) -> int:
    """Remove half-written files of dead processes; return their number.

    Only names with a dead lease in them are ours to remove: OpenChrome's own temp files are not
    touched. The leases go last, so that a sweep that dies is repeated.
    """
    dead = lease.dead_leases(root)
    if not dead:
        return 0
    nonces = frozenset(dead)
    swept = 0
    with Folder.at(str(root)) as top:
        swept += _sweep_folder(top, nonces)
        for task_id in list(task_ids(top)):
            with suppress(OSError, Unusable), top.enter(task_id) as folder:
                swept += _sweep_folder(folder, nonces)
                if folder.has(PEERS):
                    TaskLock(folder, task_id).free_dead()
    lease.remove_dead(root, dead)
    return swept


def _sweep_folder(folder: Folder, nonces: frozenset[str]) -> int:
    swept = 0
    for name in folder.names():
        if name == ARTIFACTS_NAME:
            with suppress(OSError), folder.enter(name) as inner:
                swept += _sweep_folder(inner, nonces)
        found = TEMP.fullmatch(name)
        if found is not None and found[1] in nonces:
            discard(folder, name)
            swept += 1
        elif name.startswith(_ASIDE):
            _remove_aside(folder, name)
    return swept


def discard(folder: Folder, name: str) -> None:
    """Remove a temp file, or a folder that was being created under a temp name."""
    with suppress(OSError):
        if not stat.S_ISDIR(folder.facts(name).st_mode):
            folder.remove(name)
            return
        with folder.enter(name) as inner:
            for inside in inner.names():
                inner.remove(inside)
        folder.remove_folder(name)


def _remove_aside(folder: Folder, name: str) -> None:
    with suppress(OSError):
        if time.time() - folder.facts(name).st_ctime > _ASIDE_S:
            folder.remove_folder(name)
