"""A ledger beside the program's own: as a person chose it, and how it is now."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Standing = Literal["opening", "live", "polling", "gone", "unusable"]


@dataclass(frozen=True, slots=True)
class Beside:
    """A ledger to be shown beside the own one: its folder, and what it is called.

    `label` is what its tasks' ids end in (see `ledger_ids.is_label`); it is unique. With
    `watch_only` nothing is ever written there.
    """

    path: Path
    label: str
    watch_only: bool = True


@dataclass(frozen=True, slots=True)
class LedgerState:
    """How a ledger beside the own one is now.

    `state` is live, or polling (no notices of changes: it is looked at now and then), gone
    (its folder is not there; it is waited for), opening, or unusable; `reason` is a sentence
    for people where it is not live. `error` is what keeps an unusable one from being opened
    (title, sentence, advice; None while it is tried again). `tasks` are known of it so far.
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
        """As a person chose it."""
        return Beside(self.path, self.label, self.watch_only)
