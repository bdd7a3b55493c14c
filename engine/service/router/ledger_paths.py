"""Where a ledger beside may lie, and where it keeps what is no task. Looks at the disk: slow."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from engine.ledger.reader import LedgerReader
from engine.model.errors import LedgerUnusable
from engine.service.router.errors import LedgerAlreadyShown, LedgerInside


def check_apart(root: Path, others: Iterable[Path]) -> None:
    """Refuse a folder that is one of `others`, by whatever path, or lies in it or round it.

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
    """The folder of the task runs and contracts that belong to the tasks in `root`.

    None where nobody knows (the root is not called `tasks`), and where it is the home of the
    own ledger: what is in there stands in the list already.
    """
    place, own = _real(root), _real(own_home)
    if place.name != "tasks" or place.parent == own or _same(place.parent, own):
        return None
    return root.absolute().parent if root.name == "tasks" else place.parent


def number_of_tasks(root: Path) -> int:
    """How many tasks are in there, for who wants to know whether it is a ledger at all.

    Raises:
        LedgerUnusable: it is no folder, is not there, or may not be read.
    """
    if not root.is_dir():
        reason = "this is not a folder" if os.path.lexists(root) else "there is no such folder"
        raise LedgerUnusable(path=str(root), reason=reason)
    return sum(1 for _ in LedgerReader(root).scan())


def _real(place: Path) -> Path:
    return Path(os.path.normcase(os.path.realpath(place)))


def _same(one: Path, other: Path) -> bool:
    """The same folder under two names that are no links: a mount, or letters that are alike."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
