"""Stages for scenes, and a ledger in a real folder with the lease of this very process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hard.stage import Stage
from tests.hard.syscalls import why_not
from tests.support.owned_ledger import lease, ledger, root, task_id

__all__ = ["lease", "ledger", "root", "stage", "task_id"]


@pytest.fixture(scope="module")  # other modules count their processes
def stage() -> Iterator[Stage]:
    """One that strace may watch, for all tests of a module."""
    if missing := why_not():
        pytest.skip(missing)
    with Stage() as one:
        yield one
