"""The check before a completion lists missing items and writes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.contracts.completing import (
    CompletionObstacle,
    CompletionVerdict,
    force_of,
    may_be_completed,
    whoami,
)
from engine.contracts.contract_progress import RunView
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.model.errors import InvalidArguments
from engine.model.records import EngineFields, Status, TaskRecord, TaskView
from engine.query import Filter
from engine.service.admission import Terms
from engine.service.engine import Engine
from tests.support.engines import opened

REASON = "the site was switched off for good"
ITEMS = tuple(f"item {number}" for number in range(250))


def run_of(engine: Engine, terms: dict[str, Any] | None = None) -> str:
    return engine.goals.runs.start({"goal": "Visit them all"}, terms).run_id


async def envelope(engine: Engine, contract: dict[str, Any] | None) -> str:
    terms = Terms(contract=contract)
    args = {"objective": "Visit them all"}
    return (await engine.requests.start("browser_task", args, terms=terms)).task_id


def everything(home: Path) -> dict[str, bytes]:
    found = (path for path in home.rglob("*") if path.is_file() and "lock" not in path.name)
    return {str(path): path.read_bytes() for path in found}


async def test_a_run_says_how_much_is_missing_and_names_all_of_it(home: Path) -> None:
    async with opened(home) as engine:
        run_id = run_of(engine, {"items": list(ITEMS)})
        engine.goals.runs.update(run_id, {"completed_items": list(ITEMS[:41])})
        before = everything(home)
        found = await engine.contracts.prospect(run_id, named=True)
        assert found.verdict is CompletionVerdict.FORCE
        assert found.guard is not None
        assert (found.guard.expected_total, found.guard.missing_count) == (250, 209)
        assert found.missing == ITEMS[41:]
        assert everything(home) == before


async def test_what_has_no_contract_or_fulfils_it_needs_no_force(home: Path) -> None:
    async with opened(home) as engine:
        plain, done = run_of(engine), run_of(engine, {"items": ["a"]})
        engine.goals.runs.update(done, {"completed_items": ["a"]})
        for subject in (plain, done, await envelope(engine, None)):
            assert (await engine.contracts.prospect(subject)).verdict is CompletionVerdict.ALLOWED


async def test_a_run_with_a_damaged_contract_can_be_ended_by_who_answers_for_it(home: Path) -> None:
    async with opened(home) as engine:
        run_id = run_of(engine, {"items": ["a"]})
        (contract,) = (home / "progress-contracts").glob("*.json")
        contract.write_text("torn")
        assert (await engine.contracts.prospect(run_id)).verdict is CompletionVerdict.FORCE


async def test_what_has_ended_is_never_forced(home: Path) -> None:
    async with opened(home) as engine:
        run_id, task_id = run_of(engine), await envelope(engine, {"expected_total": 9})
        await engine.contracts.complete(run_id)
        await engine.commands.cancel(task_id)
        for subject in (run_id, task_id):
            found = await engine.contracts.prospect(subject)
            assert (found.verdict, found.obstacle) == (
                CompletionVerdict.NEVER,
                CompletionObstacle.ENDED,
            )


@pytest.mark.parametrize(
    ("changes", "obstacle"),
    [
        ({"status": "PENDING"}, CompletionObstacle.WAITING),
        ({"cancel_requested_at": 5}, CompletionObstacle.STOPPING),
        ({"engine": {}}, CompletionObstacle.ALONE),
        ({"engine": {"contract_id": "0" * 16}}, CompletionObstacle.UNREADABLE),
    ],
)
async def test_a_crawl_says_what_keeps_it_from_being_forced(
    home: Path, changes: dict[str, Any], obstacle: CompletionObstacle
) -> None:
    async with opened(home) as engine:
        contract = engine.goals.contracts.start({"expected_total": 9}).contract.contract_id
        lease = Lease.acquire(home / "tasks")
        ledger = Ledger(home / "tasks", lease=lease)
        made = ledger.create("crawl", {"url": "https://a.invalid/"}, engine=EngineFields())
        meta = home / "tasks" / made.task_id / "meta.json"
        raw = json.loads(meta.read_bytes())
        raw |= {"status": "RUNNING", "engine": {"contract_id": contract}}
        meta.write_text(json.dumps(raw))
        assert (await engine.contracts.prospect(made.task_id)).verdict is CompletionVerdict.FORCE
        meta.write_text(json.dumps(raw | changes))
        found = await engine.contracts.prospect(made.task_id)
        assert (found.verdict, found.obstacle) == (CompletionVerdict.NEVER, obstacle)
        lease.release()


async def test_a_forced_envelope_carries_the_mark_of_it_for_ever(home: Path) -> None:
    async with opened(home) as engine:
        task_id = await envelope(engine, {"expected_total": 9})
        await engine.contracts.complete(task_id, force=engine.contracts.force(REASON, "ada@desk"))
        view = await engine.tasks.get(task_id)
        assert isinstance(view.entry, TaskRecord)
        assert view.entry.status == Status.COMPLETED
        assert Filter.of("forced:yes").shows(view, 0)


async def test_a_force_that_is_refused_leaves_no_mark(home: Path) -> None:
    async with opened(home) as engine:
        task_id = await envelope(engine, {"expected_total": 9})

        def refuse(*_: object) -> TaskRecord:
            raise InvalidArguments(())

        with pytest.raises(InvalidArguments):
            engine.goals.completing.task(task_id, Status.COMPLETED, force_of(REASON, "x"), refuse)
        view = await engine.tasks.get(task_id)
        assert not Filter.of("forced:yes").shows(view, 0)
        assert (await engine.contracts.prospect(task_id)).verdict is CompletionVerdict.FORCE


async def test_a_force_names_who_sits_here_and_refuses_a_short_reason(home: Path) -> None:
    async with opened(home) as engine:
        assert engine.contracts.force(REASON).by == whoami()
        assert "@" in whoami()
        with pytest.raises(InvalidArguments, match="10"):
            engine.contracts.force("because")


async def test_what_is_not_worth_asking_is_told_by_the_record_alone(home: Path) -> None:
    async with opened(home):
        linked = EngineFields(contract_id="0" * 16)
        cases = (
            (TaskRecord("0" * 16, "crawl", "RUNNING", engine=linked), True),
            (TaskRecord("0" * 16, "crawl", "RUNNING"), False),
            (TaskRecord("0" * 16, "crawl", "PENDING", engine=linked), False),
            (TaskRecord("0" * 16, "crawl", "FAILED", engine=linked), False),
            (TaskRecord("0" * 16, "browser_task", "RUNNING"), True),
            (TaskRecord("0" * 16, "task_run", "NEEDS_HELP"), True),
            (TaskRecord("0" * 16, "task_run", "COMPLETED"), False),
        )
        for record, wanted in cases:
            assert may_be_completed(TaskView(record)) is wanted


async def test_a_run_is_forced_through_the_facade_with_its_reason_kept(home: Path) -> None:
    async with opened(home) as engine:
        run_id = run_of(engine, {"expected_total": 9})
        ended = await engine.contracts.complete(
            run_id, force=engine.contracts.force(REASON, "ada@desk")
        )
        assert isinstance(ended, RunView)
        assert (ended.raw["forced"]["reason"], ended.raw["forced"]["by"]) == (REASON, "ada@desk")
