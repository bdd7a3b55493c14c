"""Other ledgers of a window: their settings and their current state."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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
