"""`Settings`: what an engine is told. Defaults come from the home folder; no environment is read."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path


def default_slots() -> int:
    """Half the cores, at least two: a browser page keeps about one core busy."""
    return max(2, (os.cpu_count() or 2) // 2)


@dataclass(frozen=True, slots=True)
class Settings:
    """Where things lie and how much may run.

    `root` holds the tasks, `home` everything else (`task-runs/`, `audit/`, …).
    `browser_path` overrides the browser look-up; `allow_private` lists private
    `host:port` that a face lets tasks reach beside their own start address.
    """

    home: Path = field(default_factory=lambda: Path.home() / ".openchrome")
    root: Path = field(default_factory=lambda: Path.home() / ".openchrome" / "tasks")
    slots: int = field(default_factory=default_slots)
    browser_path: str | None = None
    scan_s: float = 5.0
    reap_s: float = 30.0

    @classmethod
    def at(cls, *, home: Path | None = None, root: Path | None = None) -> Settings:
        """Settings for another home (moves everything) and/or another root (moves the tasks)."""
        base = home or Path.home() / ".openchrome"
        return cls(home=base, root=root or base / "tasks")
