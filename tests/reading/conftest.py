"""A real ledger with damaged files."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from engine.ledger.ledger import Ledger
from engine.results.file_reader import TaskFileReader
from tests.support.owned_ledger import lease, ledger, root

__all__ = ["lease", "ledger", "root"]


@pytest.fixture
def reading(ledger: Ledger) -> TaskFileReader:
    return TaskFileReader(ledger.root)


@pytest.fixture
def with_file(ledger: Ledger) -> Callable[[str, Any], str]:
    """Makes a task with one more file (text as it is, all else as JSON); its id."""

    def make(name: str, what: Any) -> str:
        task_id = ledger.create("crawl", {"url": "http://site.test/"}).task_id
        ledger.claim(task_id)
        text = what if isinstance(what, str) else json.dumps(what)
        (ledger.root / task_id / name).write_text(text, encoding="utf-8")
        return task_id

    return make
