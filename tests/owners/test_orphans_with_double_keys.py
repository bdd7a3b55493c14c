"""A record with a duplicate key cannot be ended: every interface reports the same."""

from __future__ import annotations

import json
import os
from contextlib import aclosing
from pathlib import Path

from engine.model.config import Settings
from engine.model.records import Unreadable
from engine.service.engine import Engine
from tests.support.octask import Octask
from tests.support.task_folders import task_id, write_meta


def doubled(root: Path, number: int, status: str, pid: int = 0) -> None:
    """The key `kind` twice, which lists do not look at."""
    write_meta(root, number, status, pid=pid)
    path = root / task_id(number) / "meta.json"
    path.write_text(path.read_text().replace("{", '{"kind": "crawl",', 1))


def test_an_orphan_is_unreadable_for_list_and_get_and_reap_names_it_once(home: Path) -> None:
    root = home / "tasks"
    doubled(root, 1, "RUNNING")
    write_meta(root, 2, "RUNNING", pid=0)
    octask = Octask(home)
    for _ in range(2):
        assert "Unreadable" in octask("list", "--json").replace("unreadable", "Unreadable")
        assert "is there twice" in octask("get", task_id(1))
        said = octask("reap")
        assert said.count("is there twice") == 1
    (found,) = [one for one in octask.tasks() if one["task_id"] == task_id(1)]
    assert found["view"]["standing"] == "unreadable"
    assert not found["view"]["orphaned"]
    assert json.loads((root / task_id(2) / "meta.json").read_text())["status"] == "FAILED"


async def test_what_was_opened_and_found_unreadable_is_listed_so(tmp_path: Path) -> None:
    doubled(tmp_path / "tasks", 1, "COMPLETED")
    doubled(tmp_path / "tasks", 2, "RUNNING", pid=os.getpid())
    engine = Engine(Settings.at(home=tmp_path), accepts=False)
    await engine.open()
    left = {task_id(1), task_id(2)}
    async with aclosing(engine.tasks.changes()) as batches:
        async for batch in batches:
            if batch.complete and len(left) == 2:
                for one in left:
                    assert isinstance((await engine.tasks.get(one)).entry, Unreadable)
            left -= {view.task_id for view in batch.views if isinstance(view.entry, Unreadable)}
            if not left:
                break
    await engine.close()
