"""Removal of one folder: to the trash unchanged, or deleted for good. Nothing else is removed."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from engine.ledger.files import Folder
from engine.retention.errors import DeleteFailed, NoTrash

_REMOVAL_PREFIX: Final = ".pruned-"
_NAME = re.compile(rf"{re.escape(_REMOVAL_PREFIX)}[0-9a-f]{{16}}-[0-9a-f]{{8}}", re.ASCII)


def to_trash(root: Path, task_id: str) -> None:
    """Move the task's folder to the system's trash.

    Raises:
        NoTrash: there is none, or it does not take the folder.
    """
    from send2trash import send2trash

    place = root / task_id
    try:
        send2trash(os.fspath(place))
    except OSError as error:
        reason = (error.strerror or str(error) or "there is no trash here").rstrip(".")
        raise NoTrash(task_id=task_id, reason=reason) from error


def delete(root: Path, task_id: str) -> None:
    """Delete the task's folder for good; links in it are removed, their targets stay.

    It is renamed first, so that no reader sees half a task; after a crash the next call of `sweep`
    removes the renamed folder.

    Raises:
        DeleteFailed: the system refuses; `path` is the remaining folder.
    """
    renamed = f"{_REMOVAL_PREFIX}{task_id}-{secrets.token_hex(4)}"
    place = root / task_id
    try:
        with Folder.at(str(root)) as top:
            top.enter(task_id).close()  # a folder, and no link to one
            top.rename(task_id, renamed)
        place = root / renamed
        shutil.rmtree(place)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DeleteFailed(task_id=task_id, reason=reason, path=str(place)) from error


def sweep(root: Path) -> None:
    """Delete folders that an interrupted `delete` had renamed; failures are left."""
    with suppress(OSError), Folder.at(str(root)) as top:
        for name in top.names():
            if _NAME.fullmatch(name):
                shutil.rmtree(root / name, ignore_errors=True)
