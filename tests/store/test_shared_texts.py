"""A ledger of 100,000 tasks holds what they have in common once, not 100,000 times."""

from __future__ import annotations

import json
from pathlib import Path

from engine.records import TaskRecord
from engine.store.look import LedgerLook

IDS = [f"{number:016x}" for number in (1, 2)]
META = {
    "kind": "crawl_of_a_kind",
    "status": "A_STATUS_OF_ITS_OWN",
    "engine": {"host": "a-host", "boot_id": "a-boot", "name": "Nightly"},
}


def test_tasks_share_the_texts_that_many_have_and_say_what_they_said(tmp_path: Path) -> None:
    for task_id in IDS:
        (tmp_path / task_id).mkdir()
        text = json.dumps({"task_id": task_id, **META})
        (tmp_path / task_id / "meta.json").write_text(text, "utf-8")
    one, other = LedgerLook(tmp_path).entries(IDS)
    assert isinstance(one, TaskRecord)
    assert isinstance(other, TaskRecord)
    assert one.engine is not None
    assert other.engine is not None
    assert (one.task_id, one.kind, one.status) == (IDS[0], META["kind"], META["status"])
    assert (one.engine.host, one.engine.boot_id) == ("a-host", "a-boot")
    assert one.task_id is IDS[0]
    for a, b in ((one, other), (one.engine, other.engine)):
        shared = [name for name in ("kind", "status", "host", "boot_id") if hasattr(a, name)]
        assert all(getattr(a, name) is getattr(b, name) for name in shared)
