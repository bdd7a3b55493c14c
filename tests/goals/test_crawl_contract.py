"""A crawl that carries a contract: its pages are the items, and its end is judged by it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from engine.contracts.bulk_progress import BulkCompletionRefused, CannotComplete, Contract
from engine.contracts.completing import force_of
from engine.model.errors import InvalidArguments, TransitionError
from engine.model.records import Status, TaskRecord
from engine.service.admission import Terms
from engine.service.engine import Engine
from tests.support.endless_site import endless
from tests.support.engines import opened, until
from tests.support.faults import disk_full
from tests.support.line_files import whole_lines

STATIC = {"engine": "static", "delay_ms": 0}
REASON = "seen enough of this site today"


async def crawl(engine: Engine, url: str, contract: Any, **args: Any) -> TaskRecord:
    given = {"url": url, **STATIC, **args}
    record = await engine.requests.start("crawl", given, terms=Terms(contract=contract))
    return await engine.tasks.wait(record.task_id)


def link(record: TaskRecord) -> str:
    assert record.engine is not None
    assert record.engine.contract_id is not None
    return record.engine.contract_id


def contract_of(engine: Engine, record: TaskRecord) -> Contract:
    return engine.goals.contracts.get(link(record)).contract


def events(home: Path, record: TaskRecord) -> list[dict[str, Any]]:
    return whole_lines(home / "tasks" / record.task_id / "events.jsonl")


async def test_pages_are_recorded_with_what_became_of_them(home: Path, site: Any) -> None:
    site.robots = "User-agent: *\nDisallow: /page/2\n"
    urls = [f"{site.url}/page/{number}" for number in (1, 2)] + [f"{site.url}/status/500"]
    async with opened(home) as engine:
        record = await crawl(engine, site.url, {"expected_total": 11}, max_pages=30, max_depth=1)
        found = contract_of(engine, record)
    assert record.status == Status.COMPLETED
    assert (found.scope, found.item_key, found.task_id) == ("crawl", "url", record.task_id)
    assert urls[0] in found.completed
    assert [(one.item, one.reason) for one in found.skipped] == [(urls[1], "Blocked by robots.txt")]
    assert found.completed_total + found.skipped_total == 11


async def test_a_failed_page_is_a_failed_item_with_its_reason(home: Path, site: Any) -> None:
    site.robots = ""
    async with opened(home) as engine:
        terms = {"expected_total": 11, "failed_policy": "block"}
        site.answers["/page/3"] = site_error()
        record = await crawl(engine, site.url, terms, max_depth=1, max_pages=30)
        found = contract_of(engine, record)
    assert record.status == Status.FAILED
    assert record.error is not None
    assert record.error.code == "bulk_incomplete"
    assert [(one.item, one.reason) for one in found.failed] == [(f"{site.url}/page/3", "HTTP 503")]


def site_error() -> Any:
    from engine.sample.site import Answer

    return Answer(status=503)


async def test_a_crawl_that_falls_short_fails_with_everything_kept(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        record = await crawl(engine, site.url, {"expected_total": 40}, max_pages=4)
        assert contract_of(engine, record).completed_total == 4
    assert record.status == Status.FAILED
    assert record.error is not None
    assert record.error.code == "bulk_incomplete"
    assert "4/40 url items observed" in record.error.message
    result = json.loads((home / "tasks" / record.task_id / "result.json").read_bytes())
    assert len(result["pages"]) == 4
    told = events(home, record)
    assert [one["kind"] for one in told if one["kind"] != "progress"] == [
        "started",
        "guard",
        "failed",
    ]
    guard = next(one["data"] for one in told if one["kind"] == "guard")
    assert (guard["allowed"], guard["missing_count"]) == (False, 36)


@pytest.mark.parametrize(("pages", "status"), [(4, Status.FAILED), (60, Status.COMPLETED)])
async def test_a_crawl_reports_its_end(home: Path, site: Any, pages: int, status: Status) -> None:
    async with opened(home) as engine:
        terms = {"stop_condition": "no page is left"}
        record = await crawl(engine, site.url, terms, max_pages=pages, max_depth=1)
        assert contract_of(engine, record).stop_satisfied is (status is Status.COMPLETED)
    assert record.status == status


async def test_a_crawl_that_left_links_out_of_a_long_list_has_not_visited_all(
    home: Path, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.pages.extract.MAX_LINKS", 5)
    async with opened(home) as engine:
        terms = {"stop_condition": "no page is left"}
        record = await crawl(engine, site.url, terms, max_pages=60, max_depth=1)
        assert contract_of(engine, record).stop_satisfied is False
    assert record.status == Status.FAILED
    assert record.error is not None
    assert record.error.code == "bulk_incomplete"
    assert "links of pages with too many were not followed" in record.error.message


async def test_named_items_are_levelled_as_the_crawl_does(home: Path, site: Any) -> None:
    items = [site.url, f"{site.url.upper().replace('HTTP', 'http')}/page/1#part", "not visited"]
    async with opened(home) as engine:
        record = await crawl(engine, site.url, {"items": items}, max_pages=2)
        view = engine.goals.contracts.get(link(record), include_items=True)
    assert view.missing == ("not visited",)


@pytest.mark.parametrize(
    ("contract", "field"),
    [
        ({}, "contract.stop_condition"),
        ({"expected_total": -1}, "contract.expected_total"),
        ({"expected_total": 1, "huh": 1}, "contract.huh"),
        ({"expected_total": 1, "run_id": "0" * 16}, "contract.run_id"),
    ],
)
async def test_bad_contracts_are_refused(home: Path, site: Any, contract: Any, field: str) -> None:
    async with opened(home) as engine:
        with pytest.raises(InvalidArguments) as refused:
            await crawl(engine, site.url, contract, max_pages=0)
    paths = {problem.path for problem in refused.value.problems}
    assert {field, "max_pages"} <= paths
    assert not (home / "progress-contracts").exists()
    assert [name for name in os.listdir(home / "tasks") if name[0] != "."] == []


async def test_only_crawls_and_envelopes_carry_a_contract(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        with pytest.raises(InvalidArguments, match="contract"):
            await engine.requests.start(
                "oc_evidence_bundle", {"url": site.url}, terms=Terms(contract={"expected_total": 1})
            )


async def test_refusals_add_nothing(home: Path, site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(home) as engine:
        monkeypatch.setattr("engine.ledger.task_files.place_task", disk_full)
        with pytest.raises(Exception, match="No space left"):
            await crawl(engine, site.url, {"expected_total": 1})
    left = os.listdir(home / "progress-contracts")
    assert [name for name in left if not name.startswith(".lock")] == []


async def test_a_task_without_a_contract_notices_none_of_it(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        record = await crawl(engine, site.url, None, max_pages=3)
    assert record.status == Status.COMPLETED
    assert record.engine is not None
    assert record.engine.contract_id is None
    assert not (home / "progress-contracts").exists()
    assert not (home / "task-runs").exists()
    raw = json.loads((home / "tasks" / record.task_id / "meta.json").read_bytes())
    assert "contract_id" not in raw["engine"]


async def slow_crawl(engine: Engine, site: Any, contract: Any) -> TaskRecord:
    """A crawl that would go on for minutes, with its first page done."""
    args = {"url": endless(site), **STATIC, "delay_ms": 250, "max_pages": 1_000, "max_depth": 50}
    record = await engine.requests.start("crawl", args, terms=Terms(contract=contract))
    path = engine.settings.root / record.task_id / "pages.jsonl"
    await until(path.exists)
    if contract is not None:  # the page is written first and counted there a moment later
        await until(lambda: contract_of(engine, record).completed_total > 0)
    return record


async def test_a_forced_crawl_ends_completed_at_its_next_page(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        record = await slow_crawl(engine, site, {"expected_total": 900})
        with pytest.raises(BulkCompletionRefused):
            await engine.contracts.complete(record.task_id)
        asked = await engine.contracts.complete(record.task_id, force=force_of(REASON, "ann"))
        assert isinstance(asked, TaskRecord)
        ended = await engine.tasks.wait(record.task_id)
        forced = contract_of(engine, record).forced
    assert ended.status == Status.COMPLETED
    assert ended.engine is not None
    units = ended.engine.units
    assert units is not None
    assert units.total is not None
    assert units.done < units.total, "what it lacks stays to be seen"
    assert forced is not None
    assert (forced.reason, forced.by) == (REASON, "ann")
    result = json.loads((home / "tasks" / record.task_id / "result.json").read_bytes())
    assert result["summary"]["stopped_by"] == "forced"
    assert result["pages"]
    told = events(home, record)
    assert [one["data"]["forced"]["reason"] for one in told if "forced" in one.get("data", {})] == [
        REASON
    ]
    assert [one["kind"] for one in told].count("completed") == 1


async def test_what_has_ended_is_never_forced(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        record = await crawl(engine, site.url, {"expected_total": 40}, max_pages=2)
        before = (home / "tasks" / record.task_id / "meta.json").read_bytes()
        with pytest.raises(TransitionError):
            await engine.contracts.complete(record.task_id, force=force_of(REASON, "ann"))
        assert contract_of(engine, record).forced is None
    assert (home / "tasks" / record.task_id / "meta.json").read_bytes() == before


async def test_a_crawl_that_was_asked_to_stop_is_not_forced(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        record = await slow_crawl(engine, site, {"expected_total": 900})
        await engine.commands.cancel(record.task_id)
        with pytest.raises((CannotComplete, TransitionError)):
            await engine.contracts.complete(record.task_id, force=force_of(REASON, "ann"))
        assert (await engine.tasks.wait(record.task_id)).status == Status.CANCELLED
        assert contract_of(engine, record).forced is None


@pytest.mark.parametrize("contract", [None, {"expected_total": 1}])
async def test_a_running_crawl_completes_itself(home: Path, site: Any, contract: Any) -> None:
    async with opened(home) as engine:
        record = await slow_crawl(engine, site, contract)
        with pytest.raises(CannotComplete):
            await engine.contracts.complete(record.task_id)
        with pytest.raises(CannotComplete):
            await engine.contracts.complete(record.task_id, status=Status.FAILED)


@pytest.mark.case("R87", "R88")
async def test_an_envelope_is_guarded_by_its_contract_and_forced_with_a_reason(home: Path) -> None:
    async with opened(home) as engine:
        terms = Terms(contract={"expected_total": 2, "item_key": "url"})
        first, second, third = [
            await engine.requests.start("browser_task", {"objective": "two pages"}, terms=terms)
            for _ in range(3)
        ]
        with pytest.raises(BulkCompletionRefused):
            await engine.contracts.complete(first.task_id)
        forced = await engine.contracts.complete(first.task_id, force=force_of(REASON, "ann"))
        assert isinstance(forced, TaskRecord)
        assert forced.status == Status.COMPLETED
        kept = contract_of(engine, first).forced
        assert kept is not None
        assert kept.reason == REASON
        failed = await engine.contracts.complete(second.task_id, status=Status.FAILED)
        assert failed.status == Status.FAILED
        engine.goals.contracts.update(link(third), {"completed": ["a", "b"]})
        ended = await engine.contracts.complete(third.task_id, force=force_of(REASON, "ann"))
        assert ended.status == Status.COMPLETED
        assert contract_of(engine, third).forced is None  # there was nothing to overrule
    kinds = [one["kind"] for one in events(home, first)]
    assert kinds == ["started", "guard", "guard", "completed"], "its end is the last event"


async def test_a_task_names_its_run_and_the_run_its_task(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        run = engine.goals.runs.start({"goal": "the whole site"})
        terms = Terms(task_run_id=run.run_id)
        record = await engine.requests.start(
            "crawl", {"url": site.url, **STATIC, "max_pages": 1}, terms=terms
        )
        await engine.tasks.wait(record.task_id)
        assert engine.goals.runs.get(run.run_id).raw["ledger_task_ids"] == [record.task_id]
        engine.goals.completing.run(run.run_id, {})
        with pytest.raises(Exception, match="terminal"):
            await engine.requests.start("crawl", {"url": site.url, **STATIC}, terms=terms)
