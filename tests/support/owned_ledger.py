"""Fixtures: a real ledger in a real folder, with the lease of this very process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger

__all__ = ["lease", "ledger", "root", "task_id"]


@pytest.fixture
def root(home: Path) -> Path:
    return home / "tasks"


@pytest.fixture
def lease(root: Path) -> Iterator[Lease]:
    lease = Lease.acquire(root)
    yield lease
    lease.release()


@pytest.fixture
def ledger(root: Path, lease: Lease) -> Ledger:
    return Ledger(root, lease=lease)


@pytest.fixture
def task_id(ledger: Ledger) -> str:
    """A task that is RUNNING, owned by this process."""
    return ledger.claim(ledger.create("crawl", {"url": "http://site.test/"}).task_id).task_id
