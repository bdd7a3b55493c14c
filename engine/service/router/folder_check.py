"""Check of a folder that the user chose as a ledger. Reads the disk: slow, for threads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.ledger.reader import LedgerReader
from engine.model.errors import EngineError
from engine.service.router.ledger_paths import check_apart, number_of_tasks

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
