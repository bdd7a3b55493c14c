"""Temp files and locks whose owner is gone, and that no sweep will find: they go after a minute.

A sweep goes by dead leases; what is left where the lease went first (a removal that failed, a
shelf, which has no leases) is found here. Only names of our own making are touched, and none
of a process that lives. Looked through once, a folder is looked at again when it has changed.
"""

from __future__ import annotations

import math
import os
import re
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from engine.ledger import lease
from engine.ledger.files import Folder, Unusable
from engine.ledger.lock import OURS, TARGET, TaskLock
from engine.ledger.opening import TEMP, discard

OLD_S: Final = 60.0  # no write takes that long: a temp file is there for milliseconds
_DEPTH: Final = 2  # a task's artifacts, a task run's checkpoints
_SHELVED: Final = re.compile(r"\..+\.tmp")
_LOCKED, _ASIDE = f"{TARGET}{TARGET}", f"{TARGET}{TARGET}.dead-"
_LOG, _SUMMARY = ".items.jsonl", ".json"


class Tidier:
    """Tidies one ledger and the shelves beside it. Keep it between rounds."""

    def __init__(self, root: Path, shelves: Iterable[Path]) -> None:
        self._root = root
        self._shelves = tuple(shelves)
        self._clean: dict[str, int] = {}  # a folder without litter, and when it had last changed

    def tidy(self, old_s: float | None = None) -> int:
        """Remove what is older than `old_s` seconds (a minute); how much there was.

        What resists stays.
        """
        found, old_s = 0, OLD_S if old_s is None else old_s
        for place in (self._root, *self._shelves):
            is_litter = self._is_dead if place == self._root else self._is_shelved
            with suppress(OSError), Folder.at(str(place)) as folder:
                found += self._through(folder, is_litter, time.time() - old_s, _DEPTH)
                if place != self._root:
                    found += _drop_half_contracts(folder, time.time() - old_s)
        return found

    def _through(
        self, folder: Folder, is_litter: Callable[[str], bool], before: float, depth: int
    ) -> int:
        found, is_clean = 0, True
        for name in folder.names():
            if is_litter(name) or _ASIDE in name:
                old = _changed_at(folder, name) < before
                is_clean = is_clean and old
                found += old
                if old:
                    discard(folder, name)
            elif name.endswith(_LOCKED):
                is_clean = False  # somebody may be at work here
                _free(folder, name, before)
            elif depth and not name.startswith("."):
                found += self._below(folder, name, (is_litter, before, depth - 1))
        if is_clean:
            self._clean[folder.path] = folder.facts(".").st_mtime_ns
        return found

    def _below(
        self, folder: Folder, name: str, rest: tuple[Callable[[str], bool], float, int]
    ) -> int:
        with suppress(OSError):
            facts = folder.facts(name)
            path = os.path.join(folder.path, name)
            if stat.S_ISDIR(facts.st_mode) and self._clean.get(path) != facts.st_mtime_ns:
                with folder.enter(name) as inner:
                    return self._through(inner, *rest)
        return 0

    def _is_dead(self, name: str) -> bool:
        found = TEMP.fullmatch(name)
        return found is not None and lease.is_alive(self._root, found[1]) is False

    @staticmethod
    def _is_shelved(name: str) -> bool:
        return _SHELVED.fullmatch(name) is not None


def _changed_at(folder: Folder, name: str) -> float:
    """When, in seconds since 1970; what its writer has put in place meanwhile is never old."""
    try:
        return folder.facts(name).st_ctime
    except FileNotFoundError:
        return math.inf


def _free(folder: Folder, name: str, before: float) -> None:
    """Remove the lock directory `name` if one of us died in it; a peer's is left alone."""
    with suppress(OSError, Unusable):
        if folder.has(OURS) and folder.facts(name).st_ctime < before:
            names = (OURS, name.removesuffix(TARGET), name)
            TaskLock(folder, os.path.basename(folder.path), names=names).free_dead()


def _drop_half_contracts(folder: Folder, before: float) -> int:
    """A log of items without its contract: whoever began it died before anybody was told."""
    names = set(folder.names())
    halves = [name for name in names if name.endswith(_LOG) and _stem(name) not in names]
    old = [name for name in halves if folder.facts(name).st_mtime < before]
    for name in old:
        folder.remove(name)
    return len(old)


def _stem(name: str) -> str:
    return name.removesuffix(_LOG) + _SUMMARY
