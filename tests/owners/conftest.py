"""A real ledger with the lease of this very process, and other processes beside it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.support.owned_ledger import lease, ledger, root, task_id
from tests.support.processes import started

__all__ = ["beside", "lease", "ledger", "root", "task_id"]


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
        program.communicate(timeout=90)
