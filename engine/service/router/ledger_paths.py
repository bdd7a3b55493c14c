"""Other ledgers of a window: settings, state, errors, and checks of their folders.

The checks read the disk: slow, for threads.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from engine.ledger.reader import LedgerReader
from engine.model.errors import EngineError, LedgerUnusable


class LedgerAlreadyShown(EngineError):
    """The folder is shown already, by this path or by another one that leads to it."""

    code = "ledger_already_shown"
    title = "That ledger is shown already"
    sentence = "{path} is the same folder as {other}, which is shown already."
    advice_text = "Choose the folder of another ledger."


class LedgerInside(EngineError):
    """One ledger would be inside the other, so that their files would be ambiguous."""

    code = "ledger_inside"
    title = "One ledger lies inside the other"
    sentence = "{inner} lies inside {outer}: they cannot be shown side by side."
    advice_text = "Choose the folder that holds the tasks' own folders, or another ledger."


class BadLabel(EngineError):
    """A label is invalid, or another ledger has it."""

    code = "bad_ledger_label"
    title = "A ledger cannot be called so"
    sentence = "No ledger can be called '{label}': {reason}."
    advice_text = "Use up to 24 small letters, digits and hyphens, and no name twice."


class NoSuchLedger(EngineError):
    """An id names a ledger that is not open in this window."""

    code = "no_such_ledger"
    title = "That ledger is not shown here"
    sentence = "There is no ledger called '{label}' in this window."
    advice_text = "Add its folder to the ledgers of this window."


class LedgerNotOpen(EngineError):
    """The other ledger is known, but not available now."""

    code = "ledger_not_open"
    title = "The ledger is not open"
    sentence = "The ledger '{label}' cannot be asked: {reason}."
    advice_text = "It is opened by itself as soon as {path} can be used."


class LedgerWatchOnly(EngineError):
    """A write to a ledger that is only watched; nothing was written."""

    code = "ledger_watch_only"
    title = "This ledger is only watched"
    sentence = "The ledger '{label}' is only watched here: nothing is changed in {path}."
    advice_text = "Allow changes to it in the settings, or open it in a window of its own."


class ContractsElsewhere(EngineError):
    """A ledger without a home, whose contracts are in a folder that only its program knows."""

    code = "contracts_elsewhere"
    title = "Its contract cannot be looked at from here"
    sentence = "Nobody knows where the contracts of the ledger '{label}' lie: {path} is in no home."
    advice_text = "Open the home that its program uses in a window of its own."


class OnlyInItsOwnWindow(EngineError):
    """An operation reserved for the program that runs the ledger; nothing was changed."""

    code = "only_in_its_own_window"
    title = "This is done where the task runs"
    sentence = "The worker of a task in the ledger '{label}' cannot be ended from here."
    advice_text = "Open {path} in a window of its own."


Standing = Literal["opening", "live", "polling", "gone", "unusable"]


@dataclass(frozen=True, slots=True)
class Beside:
    """Another ledger in the window: its folder and its label.

    `label` is the suffix of its tasks' ids (see `ledger_ids.is_label`) and unique. With
    `watch_only` the ledger is never written.
    """

    path: Path
    label: str
    watch_only: bool = True


@dataclass(frozen=True, slots=True)
class LedgerState:
    """Current state of another ledger.

    `state` is live, polling (no change notices; it is read periodically), gone (its folder is
    missing; it is awaited), opening, or unusable; `reason` is a sentence for users if it is not
    live. `error` prevents an unusable ledger from being opened (title, sentence, advice; None
    during a retry). `tasks` is the number of known tasks.
    """

    label: str
    path: Path
    watch_only: bool = True
    state: Standing = "opening"
    reason: str = ""
    tasks: int = 0
    error: Exception | None = None

    @property
    def beside(self) -> Beside:
        """The settings that the user chose."""
        return Beside(self.path, self.label, self.watch_only)


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
