"""A real ledger with the lease of this very process, and other processes beside it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.store.lease import Lease
from engine.store.ledger import Ledger
from tests.owners.elsewhere import started


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


@pytest.fixture
def beside() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts programs of a test; what still runs at its end is killed."""
    running: list[subprocess.Popen[str]] = []

    def start(script: str, *words: object, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        running.append(started(script, *words, before=before))
        return running[-1]

    yield start
    for program in running:
        program.kill()
        program.communicate(timeout=30)
