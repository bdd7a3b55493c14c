"""Records of a megabyte: a list keeps their short values, and the rest is read when looked at."""

from __future__ import annotations

import tracemalloc
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from engine.ledger.ledger import Ledger
from engine.ledger.listing import Found, for_list
from engine.ledger.meta import LARGE, compact, interned
from engine.ledger.reader import LedgerReader
from engine.ledger.reaper import Reaper
from engine.model.config import Settings
from engine.model.records import TaskRecord, TaskView
from engine.service.engine import Engine
from tests.support.task_folders import task_id, write_meta

HUGE = "x" * 900_000


async def test_a_list_keeps_little_of_a_large_record_and_get_has_all_of_it(tmp_path: Path) -> None:
    args = {"url": "http://site.test/", "script": HUGE, "depth": 3}
    for number, status in enumerate(("COMPLETED", "RUNNING", "FAILED")):
        error = {"message": "y" * 50_000, "code": "failed"}
        write_meta(tmp_path / "tasks", number, status, args_summary=args, error=error)
    engine = Engine(replace(Settings.at(home=tmp_path)), accepts=False, light=True)
    await engine.open()
    found: dict[str, TaskView] = {}
    async with aclosing(engine.tasks.changes()) as batches:
        async for batch in batches:
            found |= {view.task_id: view for view in batch.views}
            if len(found) == 3:
                break
    for view in found.values():
        record = view.entry
        assert isinstance(record, TaskRecord)
        assert len(msgspec.json.encode(record)) < LARGE
        assert record.url == "http://site.test/"
        assert record.args_summary["_truncated"] is True
        assert record.args_summary["depth"] == 3
        whole = (await engine.tasks.get(view.task_id)).entry
        assert isinstance(whole, TaskRecord)
        assert whole.args_summary == args
    await engine.close()


@pytest.mark.parametrize("way", ["window", "reaper", "list"])
def test_large_records_are_looked_at_without_holding_all_of_them(tmp_path: Path, way: str) -> None:
    each = {f"k{number}": "x" * 1_000 for number in range(1_000)}
    for number in range(60):
        write_meta(tmp_path, number, "COMPLETED", args_summary={"blob": each})
    ids = [task_id(number) for number in range(60)]
    ledger = Ledger(tmp_path)
    tracemalloc.start()
    try:
        if way == "reaper":
            assert Reaper(ledger).reap() == []
        elif way == "list":
            listed = ledger.list(limit=3)
            args = [one.args_summary for one in listed if isinstance(one, TaskRecord)]
            assert args == [{"blob": each}] * 3
        else:
            assert len(ledger.read_kept(ids, compact)) == 60
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 30_000_000  # 60 of them take 70


def test_records_of_common_size_are_kept_whole(tmp_path: Path) -> None:
    for number, text in ((1, "z" * 20_000), (2, HUGE)):
        write_meta(tmp_path, number, "COMPLETED", args_summary={"script": text})
    small, large = sorted(
        LedgerReader(tmp_path).read_many([task_id(1), task_id(2)]), key=lambda one: one.task_id
    )
    for found, make in ((small, compact), (large, interned)):
        assert isinstance(found, Found)
        entry, _ = for_list(found, make)
        assert isinstance(entry, TaskRecord)
        assert "_truncated" not in entry.args_summary
