"""Runs in a real home folder, with a clock and ids that the test knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.contracts.run_lifecycle import Runs
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger


@pytest.fixture
def runs(home: Path) -> Runs:
    return Runs(home, route="cli", agent_id="agent-1", now_ms=lambda: 1_763_784_600_123)


@pytest.fixture
def ledger(home: Path) -> Iterator[Ledger]:
    lease = Lease.acquire(home / "tasks")
    yield Ledger(home / "tasks", lease=lease)
    lease.release()


@pytest.fixture
def not_writable(home: Path) -> Callable[[], None]:
    """Puts a file where the folder of runs should be: that stops root, too."""

    def spoil() -> None:
        place = home / "comet-runs"
        if place.is_dir():
            place.rename(home / "comet-runs-before")
        place.write_text("in the way")

    return spoil
