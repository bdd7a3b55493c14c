"""A real ledger with the lease of this very process, and the envelopes in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.budgets.envelopes import Envelopes
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger


@pytest.fixture
def root(home: Path) -> Path:
    return home / "tasks"


@pytest.fixture
def ledger(root: Path) -> Iterator[Ledger]:
    lease = Lease.acquire(root)
    yield Ledger(root, lease=lease)
    lease.release()


@pytest.fixture
def envelopes(ledger: Ledger) -> Envelopes:
    return Envelopes(ledger)
