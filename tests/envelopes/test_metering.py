"""Budgets of tasks that do their own work: one unit is one call; nothing is killed unasked."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from engine import budgets
from engine.execution.task_context import BudgetObserver
from engine.ledger.ledger import Ledger
from engine.model.errors import InvalidArguments
from engine.model.records import Status, Units
from engine.service.admission import Terms
from tests.support.engines import opened
from tests.support.far_limits import be_patient
from tests.support.line_files import whole_lines

CRAWL = {"engine": "static", "delay_ms": 0, "respect_robots": False, "concurrency": 1}


def result_of(home: Path, task_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / "tasks" / task_id / "result.json").read_bytes())
    return found


def told(home: Path, task_id: str) -> list[tuple[str, str]]:
    found = whole_lines(home / "tasks" / task_id / "events.jsonl")
    return [(e["data"]["from"], e["data"]["to"]) for e in found if e["kind"] == "budget"]


async def test_a_crawl_over_its_budget_goes_on_and_says_so(home: Path, site: Any) -> None:
    terms = Terms(policy={"maxToolCalls": 4})
    async with opened(home) as engine:
        record = await engine.requests.start(
            "crawl", {"url": site.url, **CRAWL, "max_pages": 6}, terms=terms
        )
        assert record.policy == {"maxToolCalls": 4}
        ended = await engine.tasks.wait(record.task_id)
        meta = await engine.tasks.meta(record.task_id)
        state = await engine.contracts.budgets(record.task_id)
    assert ended.status == Status.COMPLETED
    assert meta["counters"]["toolCalls"] == 6
    assert meta["budget_status"] == "exceeded"
    assert meta["budget_exceeded"] == ["maxToolCalls"]
    assert meta["recommended_next"] == "change_strategy_or_verify"
    assert told(home, record.task_id) == [("ok", "warning"), ("warning", "exceeded")]
    assert state is not None
    assert [gauge.key for gauge in state.gauges] == ["maxToolCalls"]


async def test_enforced_it_ends_failed_with_its_pages_kept(home: Path, site: Any) -> None:
    terms = Terms(policy={"maxToolCalls": 4}, enforce=True)
    async with opened(home) as engine:
        args = {"url": site.url, **CRAWL, "max_pages": 40}
        record = await engine.requests.start("crawl", args, terms=terms)
        ended = await engine.tasks.wait(record.task_id)
        await engine.tasks.join(record.task_id)
        (run,) = engine.runs.list_runs()
    assert ended.status == Status.FAILED
    assert ended.error is not None
    assert ended.error.code == "BUDGET_EXCEEDED"
    assert "over its budget (maxToolCalls: 5 of 4) and" in ended.error.message
    result = result_of(home, record.task_id)
    assert result["summary"]["stopped_by"] == "budget"
    assert len(result["pages"]) == result["summary"]["total_pages"] == 5
    assert run.status == "failed"


async def test_the_time_budget_ends_a_task_with_a_hung_page(home: Path, site: Any) -> None:
    terms = Terms(policy={"maxWallMs": 300}, enforce=True)
    async with opened(home) as engine:
        args = {"url": f"{site.url}/hang", **CRAWL, "timeout_ms": 600_000}
        record = await engine.requests.start("crawl", args, terms=terms)
        ended = await engine.tasks.wait(record.task_id, timeout_ms=150_000)
    assert ended.status == Status.FAILED
    assert ended.error is not None
    assert ended.error.code == "BUDGET_EXCEEDED"
    assert ended.budget_exceeded == ["maxWallMs"]


async def test_a_failure_streak_of_pages_counts_and_heals(home: Path, site: Any) -> None:
    terms = Terms(policy={"maxFailureStreak": 1, "allowedDomains": ["127.0.0.1"]})
    async with opened(home) as engine:
        args = {"url": site.url, **CRAWL, "max_pages": 3}
        record = await engine.requests.start("crawl", args, terms=terms)
        ended = await engine.tasks.wait(record.task_id)
    assert ended.counters is not None
    assert ended.counters["failureStreak"] == 0
    assert not ended.budget_exceeded


async def test_a_task_without_a_policy_pays_nothing(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        record = await engine.requests.start("crawl", {"url": site.url, **CRAWL, "max_pages": 3})
        await engine.tasks.wait(record.task_id)
        meta = await engine.tasks.meta(record.task_id)
        assert await engine.contracts.budgets(record.task_id) is None
    assert not {"policy", "counters", "budget_status", "budget_exceeded"} & set(meta)
    assert told(home, record.task_id) == []


@pytest.mark.parametrize(
    ("terms", "places"),
    [
        (Terms(policy={"maxToolCalls": 0, "x": 1}), ["policy.maxToolCalls", "policy.x"]),
        (Terms(enforce=True), ["enforce"]),
        (Terms(phase="rest"), ["phase"]),
        (Terms(agent_id=""), ["agent_id"]),
    ],
)
async def test_wrong_terms_start_nothing(home: Path, terms: Terms, places: list[str]) -> None:
    async with opened(home) as engine:
        with pytest.raises(InvalidArguments) as refused:
            await engine.requests.start("crawl", {"url": "nowhere"}, terms=terms)
        assert [p.path for p in refused.value.problems] == ["url", *places]
        assert await engine.tasks.list() == []


class Clocks:
    """A wall clock and a stopwatch that only the test moves."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000


def metered(ledger: Ledger, clocks: Clocks, policy: dict[str, Any], *, enforce: bool) -> Any:
    fields = {
        "policy": budgets.defaulted(policy, envelope=False),
        "counters": budgets.no_calls(),
        "budget_status": "ok",
    }
    record = ledger.create("crawl", {}, fields=fields)
    ledger.claim(record.task_id)
    began = {"started_at": clocks.ms, "last_activity_at": clocks.ms}
    ledger.mutate(record.task_id, lambda raw: raw.update(began))
    meter = BudgetObserver(
        ledger, record.task_id, enforce, now_ms=clocks.now_ms, monotonic=clocks.monotonic
    )
    return record.task_id, meter


def test_the_record_is_written_at_most_once_a_second_and_at_the_end(ledger: Ledger) -> None:
    clocks = Clocks()
    task_id, meter = metered(ledger, clocks, {"maxToolCalls": 1_000}, enforce=False)
    written = set()
    for number in range(200):
        clocks.ms += 50
        meter.on_unit({"url": f"http://a.test/{number}"}, Units(done=number + 1))
        written.add(ledger.read_raw(task_id)["counters"]["toolCalls"])  # each write has its own
    assert 9 <= len(written) <= 12  # ten seconds
    assert ledger.read_raw(task_id)["counters"]["toolCalls"] < 200
    meter.on_end()
    assert ledger.read_raw(task_id)["counters"]["toolCalls"] == 200


def test_what_was_counted_just_before_a_pause_is_written_by_the_clock(ledger: Ledger) -> None:
    clocks = Clocks()
    task_id, meter = metered(ledger, clocks, {"maxToolCalls": 9}, enforce=False)
    meter.on_unit({}, Units(done=1))
    meter.on_unit({}, Units(done=2))
    assert ledger.read_raw(task_id)["counters"]["toolCalls"] == 1
    clocks.ms += 1_000
    assert meter.on_tick() == ""
    assert ledger.read_raw(task_id)["counters"]["toolCalls"] == 2


@pytest.mark.parametrize("enforce", [True, False])
def test_time_running_out_is_an_edge_of_its_own(ledger: Ledger, root: Path, enforce: bool) -> None:
    clocks = Clocks()
    task_id, meter = metered(ledger, clocks, {"maxWallMs": 1_000}, enforce=enforce)
    answers = []
    for _ in range(5):
        clocks.ms += 300
        answers.append(meter.on_tick())
    assert answers == ["", "", "", "budget" if enforce else "", "budget" if enforce else ""]
    assert told(root.parent, task_id) == [("ok", "warning"), ("warning", "exceeded")]
    clocks.ms += 1_000  # the record follows as soon as it may be written again
    meter.on_tick()
    assert ledger.read_raw(task_id)["budget_status"] == "exceeded"


def test_failures_of_units_make_the_streak(ledger: Ledger) -> None:
    clocks = Clocks()
    task_id, meter = metered(ledger, clocks, {"maxFailureStreak": 2}, enforce=True)
    failed = [1, 2, 2, 3, 4, 5]
    answers = [
        meter.on_unit({}, Units(done=done, failed=count)) for done, count in enumerate(failed, 1)
    ]
    assert answers == ["", "", "", "", "", "budget"]
    meter.on_end()
    assert ledger.read_raw(task_id)["counters"]["failureCalls"] == 5


async def test_an_exceeded_budget_stops_the_body(home: Path, site: Any) -> None:
    """Two seconds are promised, of which no test may be sure; the page would take ten minutes."""
    terms = Terms(policy={"maxWallMs": 1}, enforce=True)
    async with opened(home) as engine:
        args = {"url": f"{site.url}/hang", **CRAWL, "timeout_ms": 600_000}
        record = await engine.requests.start("crawl", args, terms=terms)
        async with asyncio.timeout(150):
            await engine.tasks.join(record.task_id)
        ended = (await engine.tasks.get(record.task_id)).entry
    assert getattr(ended, "status", "") == Status.FAILED


@pytest.mark.parametrize("engine_name", ["static", "browser"])
@pytest.mark.parametrize(("domain", "opened_pages"), [("127.0.0.1", 2), ("elsewhere.test", 0)])
async def test_a_crawl_opens_nothing_outside_of_its_allowed_domains(
    home: Path,
    site: Any,
    engine_name: str,
    domain: str,
    opened_pages: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    be_patient(monkeypatch)
    args = {"url": site.url, **CRAWL, "engine": engine_name, "max_pages": 2}
    async with opened(home) as engine:
        terms = Terms(policy={"allowedDomains": [domain]})
        record = await engine.requests.start("crawl", args, terms=terms)
        ended = await engine.tasks.wait(record.task_id, timeout_ms=150_000)
    pages = result_of(home, record.task_id)["pages"]
    assert len([page for page in pages if not page.get("error")]) == opened_pages
    assert (ended.status == Status.COMPLETED) == bool(opened_pages)
    if not opened_pages:
        assert "not one of the task's allowed domains" in pages[0]["error"]
        assert not site.hits
        assert ended.budget_exceeded == ["allowedDomains"]
