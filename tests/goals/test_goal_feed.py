"""Task runs as rows: the open ones and those that ended lately, live, and nothing trusted."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from engine.contracts.contract_progress import RunView
from engine.contracts.contract_service import Goals
from engine.ledger.ledger import Ledger
from engine.model.errors import TaskNotFound
from engine.model.records import EventSlice, TaskRecord, TaskView, Unreadable
from engine.model.status import Reason
from engine.query.attention_reasons import reasons
from engine.service.contracts import record_of
from engine.service.engine import Engine
from engine.service.feed import Batch
from engine.service.stop_plan import Fate, fate
from tests.support.engines import opened

DAY_MS = 24 * 3600 * 1000


class Rows:
    """What a list that follows the runs shows now."""

    def __init__(self, engine: Engine) -> None:
        self._changes = engine.contracts.run_changes()
        self.views: dict[str, TaskView] = {}

    async def next(self) -> Batch:
        async with asyncio.timeout(60):
            batch = await anext(self._changes)
        self.views |= {str(view.task_id): view for view in batch.views}
        for one in batch.gone:
            self.views.pop(one, None)
        return batch

    def record(self, run_id: str) -> TaskRecord:
        entry = self.views[run_id].entry
        assert isinstance(entry, TaskRecord)
        return entry

    async def close(self) -> None:
        await self._changes.aclose()


@pytest.fixture
def elsewhere(home: Path) -> Goals:
    """Another process that writes the same folders."""
    return Goals(home, lambda: Ledger(home / "tasks"))


async def test_task_runs_are_rows_of_the_list(home: Path, elsewhere: Goals) -> None:
    given = {"goal": "Visit them all", "ledger_task_ids": ["0" * 16]}
    run_id = elsewhere.runs.start(given, {"expected_total": 120}).run_id
    elsewhere.runs.update(
        run_id, {"completed_items": ["a", "b"], "failed_items": [{"item": "c", "reason": "gone"}]}
    )
    async with opened(home) as engine:
        rows = Rows(engine)
        await rows.next()
        record = rows.record(run_id)
        assert (record.kind, record.status, record.objective) == (
            "task_run",
            "RUNNING",
            "Visit them all",
        )
        units = rows.views[run_id].units
        assert units is not None
        assert (units.done, units.total, units.failed) == (3, 120, 1)
        await rows.close()


async def test_a_foreign_help_request_is_listed_first(home: Path, elsewhere: Goals) -> None:
    run_id = elsewhere.runs.start({"goal": "Log in"}).run_id
    async with opened(home) as engine:
        rows = Rows(engine)
        await rows.next()
        await asyncio.to_thread(elsewhere.runs.needs_help, run_id, {"reason": "a captcha"})
        while rows.record(run_id).status != "NEEDS_HELP":
            await rows.next()
        view = rows.views[run_id]
        assert reasons(view, 0)[0] is Reason.HELP
        assert fate(view) is Fate.AT_ONCE
        resumed = await engine.contracts.resume(run_id, "the captcha is solved")
        assert resumed.status == "RUNNING"
        while rows.record(run_id).status != "RUNNING":
            await rows.next()
        await rows.close()


async def test_a_cancelled_run_has_the_reason_in_its_events(home: Path, elsewhere: Goals) -> None:
    run_id = elsewhere.runs.start({"goal": "Log in"}).run_id
    async with opened(home) as engine:
        rows = Rows(engine)
        await rows.next()
        record = await engine.commands.cancel(run_id, "no longer wanted")
        assert record.status == "CANCELLED"
        while rows.record(run_id).status != "CANCELLED":
            await rows.next()
        events: EventSlice = await engine.tasks.events(run_id)
        found = {event.kind: event.data for event in events.events}
        assert found["cancel_requested"] == {"reason": "no longer wanted"}
        assert "cancelled" in found
        await rows.close()


async def test_what_is_neither_a_task_nor_a_run_cannot_be_cancelled(home: Path) -> None:
    async with opened(home) as engine:
        with pytest.raises(TaskNotFound):
            await engine.commands.cancel("0" * 16)


async def test_old_runs_are_omitted_and_damaged_ones_shown(home: Path, elsewhere: Goals) -> None:
    old, new, torn = (elsewhere.runs.start({"goal": name}).run_id for name in ("a", "b", "c"))
    for run_id in (old, new):
        elsewhere.completing.run(run_id, {})
    meta = home / "task-runs" / old / "meta.json"
    raw = json.loads(meta.read_bytes())
    meta.write_text(json.dumps({**raw, "completed_at": raw["completed_at"] - 2 * DAY_MS}))
    (home / "task-runs" / torn / "meta.json").write_text("{")
    async with opened(home) as engine:
        rows = Rows(engine)
        await rows.next()
        assert set(rows.views) == {new, torn}
        assert isinstance(rows.views[torn].entry, Unreadable)
        await rows.close()


@pytest.mark.thorough
async def test_runs_of_a_new_folder_are_listed(home: Path, elsewhere: Goals) -> None:
    async with opened(home) as engine:
        rows = Rows(engine)
        waiting = asyncio.ensure_future(rows.next())
        await asyncio.sleep(0)
        run_id = (await asyncio.to_thread(elsewhere.runs.start, {"goal": "Log in"})).run_id
        await waiting
        assert set(rows.views) == {run_id}
        await rows.close()


@pytest.mark.parametrize(
    "damage",
    [
        {"status": 7},
        {"goal": ["x"], "created_at": "soon"},
        {"forced": "yes", "completed_at": float("inf")},
        {"completed_items": {}, "failed_items": [1], "updated_at": -1},
        {"progress_summary": {"a": 1}, "bulk_contract_id": 9},
    ],
)
def test_no_value_of_a_run_is_trusted(damage: dict[str, Any]) -> None:
    raw = {"run_id": "0" * 16, "goal": "g", "status": "RUNNING", "created_at": 5, **damage}
    record = record_of(RunView(raw))
    assert isinstance(record.status, str)
    assert record.ended_at is None
    assert record.engine is not None
    assert record.engine.forced_at is None


async def test_a_forced_run_shows_its_flag(home: Path, elsewhere: Goals) -> None:
    run_id = elsewhere.runs.start({"goal": "g"}, {"expected_total": 9}).run_id
    async with opened(home) as engine:
        await engine.contracts.complete(
            run_id, force=engine.contracts.force("seen enough of it", "ada@desk")
        )
        record = record_of(engine.goals.runs.get(run_id))
    assert record.engine is not None
    assert record.engine.forced_at is not None
