"""Locations of other ledgers: choice, overlap checks, home and number of tasks.

Reads the disk: slow, for threads.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.ledger.reader import LedgerReader
from engine.model.errors import EngineError, LedgerUnusable
from engine.service.router.errors import LedgerAlreadyShown, LedgerInside


def check_apart(root: Path, others: Iterable[Path]) -> None:
    """Reject a folder that equals, contains or is inside one of `others`, by any path.

    Raises:
        LedgerAlreadyShown, LedgerInside.
    """
    place = _real(root)
    for other in others:
        there = _real(other)
        if place == there or _same(place, there):
            raise LedgerAlreadyShown(path=str(root), other=str(other))
        if place.is_relative_to(there):
            raise LedgerInside(inner=str(root), outer=str(other))
        if there.is_relative_to(place):
            raise LedgerInside(inner=str(other), outer=str(root))


def home_of(root: Path, own_home: Path) -> Path | None:
    """Return the folder of the task runs and contracts of the tasks in `root`.

    None if it is unknown (the root is not called `tasks`), or if it is the home of the own
    ledger, whose runs are in the list already.
    """
    place, own = _real(root), _real(own_home)
    if place.name != "tasks" or place.parent == own or _same(place.parent, own):
        return None
    return root.absolute().parent if root.name == "tasks" else place.parent


def number_of_tasks(root: Path) -> int:
    """Count the tasks in a folder, to check that it is a ledger.

    Raises:
        LedgerUnusable: it is no folder, is missing, or cannot be read.
    """
    if not root.is_dir():
        reason = "this is not a folder" if os.path.lexists(root) else "there is no such folder"
        raise LedgerUnusable(path=str(root), reason=reason)
    return sum(1 for _ in LedgerReader(root).scan())


def _real(place: Path) -> Path:
    return Path(os.path.normcase(os.path.realpath(place)))


def _same(one: Path, other: Path) -> bool:
    """Return whether both are the same folder: a mount, or names that differ in case only."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


USUAL: Final = "tasks"  # name of the task folder inside a home


@dataclass(frozen=True, slots=True)
class Found:
    """A folder that can be shown beside others, and how many tasks are in it."""

    path: Path
    tasks: int


def look_at(folder: Path, others: Iterable[Path]) -> Found:
    """Return the ledger in this folder; for a home, its tasks.

    Raises:
        LedgerUnusable: it is missing, or cannot be read.
        LedgerAlreadyShown, LedgerInside: it is one of `others`, or inside one.
    """
    path = ledger_at(folder) or folder
    check_apart(path, others)
    return Found(path.absolute(), number_of_tasks(path))


def ledger_at(folder: Path) -> Path | None:
    """The folder itself if it holds tasks (or will, by its name), or the one in it that does."""
    for place in (folder, folder / USUAL):
        if _holds_tasks(place):
            return place
    return folder if folder.name == USUAL and folder.is_dir() else None


def _holds_tasks(place: Path) -> bool:
    try:
        return place.is_dir() and next(iter(LedgerReader(place).scan()), None) is not None
    except (EngineError, OSError):
        return False
