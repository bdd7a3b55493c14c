"""Stages for scenes, and a ledger in a real folder with the lease of this very process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.store.lease import Lease
from engine.store.ledger import Ledger
from tests.hard.stage import Stage
from tests.hard.syscalls import why_not


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    """One that strace may watch, for all tests of this process."""
    if missing := why_not():
        pytest.skip(missing)
    with Stage() as one:
        yield one


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
    record = ledger.create("crawl", {"url": "http://site.test/"})
    return ledger.claim(record.task_id).task_id
