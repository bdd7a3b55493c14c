"""A crawl with a contract at its very end, hundreds of times: natural, forced, and cancelled."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from engine.budgets.envelopes import Envelopes, envelope_request
from engine.contracts.bulk_progress import BulkCompletionRefused
from engine.model.errors import EngineError
from engine.model.records import EngineFields, Status, TaskId, TaskRecord
from tests.rules.contract_bench import FORCE, THREE, Bench
from tests.support.engines import until

ROUNDS = 100
RUN_OF = {"COMPLETED": "completed", "FAILED": "failed", "CANCELLED": "aborted"}


def tried(act: Callable[[str], TaskRecord], task_id: str) -> bool:
    """Did it go through (and not come too late)?"""
    try:
        return not act(task_id).is_terminal
    except EngineError:
        return False


async def alone(bench: Bench, number: int) -> float:
    """How long a crawl takes that nobody ends (s): that is the machine's to say."""
    began = time.monotonic()
    await bench.executor.join(bench.submit(f"run-alone-{number}"))
    return time.monotonic() - began


@pytest.mark.thorough("acts[01]")
@pytest.mark.parametrize("acts", [("force",), ("cancel",), ("force", "cancel"), ("force", "force")])
async def test_all_records_agree_on_a_crawl_end(bench: Bench, acts: tuple[str, ...]) -> None:
    chance = random.Random(7)
    seen: Counter[str] = Counter()
    for number in range(ROUNDS):
        if number % 10 == 0:  # a machine is not as quick all the time
            alone_s = min([await alone(bench, number + again) for again in range(2)])
        # The first is sure to be ended from outside, and the second to end by itself.
        pages = (*THREE, {}) if number == 0 else THREE
        task_id = bench.submit(f"run-{number}", pages=pages)
        if number == 0:
            # awaited before the next round names another task
            await until(lambda: bench.ledger.read_raw(task_id)["status"] == "RUNNING")  # noqa: B023
        if number == 1:
            await bench.executor.join(task_id)
        late = [chance.uniform(0, 1.2 * alone_s) for _ in acts]

        async def rival(name: str, delay_s: float, task_id: TaskId = task_id) -> bool:
            await asyncio.sleep(delay_s)  # so that each moment of the crawl is met
            return await asyncio.to_thread(tried, getattr(bench, name), task_id)

        done = await asyncio.gather(*map(rival, acts, late))
        await bench.executor.join(task_id)
        raw = bench.ledger.read_raw(task_id)
        status = raw["status"]
        forced = bench.contract(task_id).forced
        asked = {name for name, ok in zip(acts, done, strict=True) if ok}
        if "cancel_requested_at" in raw:
            assert status == "CANCELLED"
        else:
            # Its end may find a force that is written down and has yet to ask: see `enforced`.
            by_force = "force" in asked or (forced is not None and "force" in acts)
            assert status == ("COMPLETED" if by_force else "FAILED")
            assert (forced is not None) == (status == "COMPLETED")
            assert "error" not in raw or raw["error"]["code"] == "bulk_incomplete"
        assert bench.ends(task_id) == [status.lower()]
        run = bench.runs.get_run(f"run-{number}")
        assert run is not None
        assert run.status == RUN_OF[status]
        assert ("result_path" in raw) == (status == "COMPLETED")
        seen[status] += 1
    assert len(seen) > 1


def plain_finish(envelopes: Envelopes, task_id: str) -> TaskRecord:
    """Again and again, until the guard lets it pass or somebody else was first."""
    while True:
        try:
            return envelopes.finish(task_id, "completed")
        except BulkCompletionRefused:
            pass


async def test_an_envelope_that_passed_by_a_force_shows_it_for_ever(bench: Bench) -> None:
    """A plain finish and a forced one at once: COMPLETED never stands without the force."""
    ours, theirs = (
        Envelopes(ledger, guard=goals.completing.guards)
        for ledger, goals in ((bench.ledger, bench.goals), (bench.other, bench.others))
    )
    request = envelope_request({"objective": "look around"}, {})

    def create(link: str | None) -> TaskRecord:
        return ours.start(request, EngineFields(contract_id=link))

    def forced(task_id: str) -> TaskRecord:
        def finish(*before: Any) -> TaskRecord:
            return ours.finish(task_id, "completed", before=before)

        return bench.goals.completing.task(task_id, Status.COMPLETED, FORCE, finish)

    for _ in range(ROUNDS):
        task_id = bench.goals.accept("browser_task", {"expected_total": 2}, None, create).task_id
        acts = (partial(plain_finish, theirs), forced)
        await asyncio.gather(*(asyncio.to_thread(tried, act, task_id) for act in acts))
        assert bench.ledger.read_raw(task_id)["status"] == "COMPLETED"
        assert bench.contract(task_id).forced is not None
        assert bench.ends(task_id) == ["completed"]
