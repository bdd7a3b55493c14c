"""A record that another tool rewrites in place: the last good value stays, with a quiet mark."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from engine.ledger import snapshot
from engine.ledger.reader import LedgerReader
from engine.ledger.snapshot import LedgerSnapshot
from engine.model.config import Settings
from engine.model.records import TaskRecord, TaskView, Unreadable
from engine.service.engine import Engine
from engine.text import words
from tests.support.engines import until
from tests.support.task_folders import task_id, write_meta

REPO = Path(__file__).resolve().parents[2]


async def views_of(engine: Engine, number: int, seen: list[TaskView]) -> None:
    async with aclosing(engine.tasks.changes()) as batches:
        async for batch in batches:
            seen += [view for view in batch.views if view.task_id == task_id(number)]


@pytest.mark.parametrize(
    "status", ["RUNNING", pytest.param("COMPLETED", marks=pytest.mark.thorough)]
)
async def test_a_list_keeps_the_last_good_value(
    tmp_path: Path, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "KEPT_S", 1_000.0)  # a tool may stand still between two writes
    write_meta(tmp_path / "tasks", 1, status, pid=os.getpid())
    path = tmp_path / "tasks" / task_id(1) / "meta.json"
    engine = Engine(Settings.at(home=tmp_path), accepts=False)
    await engine.open()
    seen: list[TaskView] = []
    following = asyncio.create_task(views_of(engine, 1, seen))
    await until(lambda: seen)
    tool = [sys.executable, "-m", "tests.hard.rewriter", str(path), "7"]
    program = await asyncio.to_thread(subprocess.run, tool, cwd=REPO, check=False)
    assert program.returncode == 0
    await until(lambda: not seen[-1].stale)
    following.cancel()
    await engine.close()
    assert not [view for view in seen if isinstance(view.entry, Unreadable)]
    # One that has ended is looked at every 5 s at first, and may be met whole each time.
    assert status == "COMPLETED" or any(view.stale for view in seen)
    assert words.badges(seen[-1]) == []


def test_lasting_damage_is_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_meta(tmp_path, 1, "COMPLETED")
    shown = LedgerSnapshot(LedgerReader(tmp_path), lambda _: False)
    shown.load(shown.survey()[0])
    (tmp_path / task_id(1) / "meta.json").write_text("{")
    # A view, not a removed id.
    (first,) = shown.refresh([task_id(1)]).views  # type: ignore[list-item]
    assert isinstance(first.entry, TaskRecord)
    assert words.badges(first) == ["being rewritten, as last read"]
    monkeypatch.setattr(snapshot, "KEPT_S", 0.0)
    (then,) = shown.pulse().views
    assert isinstance(then.entry, Unreadable)


@pytest.mark.parametrize("first", range(3), ids=["cut", "absent", "empty"])
@pytest.mark.parametrize("look", ["read", "read_raw", "list"])
def test_one_look_waits_until_a_file_that_is_being_written_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int, look: str
) -> None:
    write_meta(tmp_path, 1, "COMPLETED")
    path = tmp_path / task_id(1) / "meta.json"
    data = path.read_bytes()
    steps = iter([data[:40], None, b"", data][first:])

    def next_step(_: float = 0) -> None:
        path.unlink() if (step := next(steps)) is None else path.write_bytes(step)

    next_step()
    monkeypatch.setattr("engine.ledger.meta.time.sleep", next_step)
    ledger = LedgerReader(tmp_path)
    match look:
        case "read":
            assert isinstance(ledger.read(task_id(1)), TaskRecord)
        case "read_raw":
            assert ledger.read_raw(task_id(1))["status"] == "COMPLETED"
        case _:
            assert [type(entry) for entry in ledger.list()] == [TaskRecord]


def test_old_damage_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_meta(tmp_path, 1, "COMPLETED")
    path = tmp_path / task_id(1) / "meta.json"
    path.write_text("{")
    os.utime(path, (1_000, 1_000))
    monkeypatch.setattr("engine.ledger.meta.time.sleep", lambda _: pytest.fail("it waited"))
    assert [type(entry) for entry in LedgerReader(tmp_path).list()] == [Unreadable]
