"""A real ledger in a real folder, with the lease of this very process."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from engine.ledger.ledger import Ledger
from engine.model.records import EngineFields
from tests.support.owned_ledger import lease, ledger, root

__all__ = ["lease", "ledger", "root"]
CORPUS = Path(__file__).resolve().parents[2] / "fixtures" / "openchrome"


@pytest.fixture
def task_id(ledger: Ledger) -> str:
    """A task that is RUNNING, owned by this process."""
    record = ledger.create("crawl", {"url": "http://site.test/"}, engine=EngineFields(name="one"))
    return ledger.claim(record.task_id).task_id


@pytest.fixture
def corpus(root: Path, ledger: Ledger) -> Ledger:
    """A ledger that holds the folders which OpenChrome wrote."""
    for folder in (CORPUS / "tasks").iterdir():
        shutil.copytree(folder, root / folder.name)
        os.utime(root / folder.name)  # as if it had just been made
    return ledger
