"""A task's request once more: with all that it was started under, or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.model.records import TaskRecord
from engine.service.admission import Terms
from engine.service.engine import Engine
from engine.service.rerun import CannotRepeat, RequestHidden, RequestUnknown
from tests.support.engines import opened

ARGS = {"engine": "static", "delay_ms": 0, "respect_robots": False, "max_pages": 2}


async def ended(engine: Engine, record: TaskRecord) -> TaskRecord:
    return await engine.tasks.wait(record.task_id, 100_000)


async def test_budgets_a_contract_and_metadata_come_along(home: Path, site: Any) -> None:
    terms = Terms(
        objective="the docs",
        policy={"maxToolCalls": 50},
        enforce=True,
        contract={"min_completed": 1, "stop_condition": "all seen", "failed_policy": "block"},
        metadata={"ticket": 7},
    )
    async with opened(home) as engine:
        first = await ended(
            engine, await engine.requests.start("crawl", {"url": site.url, **ARGS}, terms=terms)
        )
        second = await ended(engine, await engine.requests.rerun(first.task_id))
        assert first.engine is not None
        assert second.engine is not None
        assert second.engine.parent_task_id == first.task_id
        assert second.args_summary == first.args_summary
        assert (second.objective, second.policy) == (first.objective, first.policy)
        assert second.engine.enforce
        assert second.engine.metadata == {"ticket": 7}
        assert second.engine.contract_id not in (None, first.engine.contract_id)
        assert first.engine.contract_id is not None
        asked = engine.goals.terms_of(first.engine.contract_id)
        assert asked == engine.goals.terms_of(str(second.engine.contract_id))
        assert asked["min_completed"] == 1
        assert (asked["stop_condition"], asked["failed_policy"]) == ("all seen", "block")


async def test_named_items_are_asked_for_again_by_name(home: Path, site: Any) -> None:
    items = [f"{site.url}/static/1", f"{site.url}/static/2"]
    async with opened(home) as engine:
        terms = Terms(contract={"items": items})
        args = {"url": f"{site.url}/static/", **ARGS}
        first = await ended(engine, await engine.requests.start("crawl", args, terms=terms))
        second = await ended(engine, await engine.requests.rerun(first.task_id))
        assert second.engine is not None
        link = str(second.engine.contract_id)
        assert engine.goals.terms_of(link)["items"] == items
        assert engine.goals.contracts.get(link).contract.expected_total == 2


async def test_an_envelope_is_opened_anew(home: Path) -> None:
    async with opened(home) as engine:
        terms = Terms(objective="compare prices", policy={"maxToolCalls": 3})
        first = await engine.requests.start("browser_task", {}, terms=terms)
        await engine.contracts.update(first.task_id, phase="act", note="half way")
        await engine.contracts.finish(first.task_id, "failed", note="no luck")
        second = await engine.requests.rerun(first.task_id)
        assert (second.status, second.phase) == ("RUNNING", "explore")
        assert second.objective == "compare prices"
        assert second.policy is not None
        assert second.policy["maxToolCalls"] == 3


@pytest.mark.parametrize(
    "args",
    [
        {"url": "http://ann:hunter2@x.test/"},
        {"url": "http://x.test/?token=hunter2hunter2"},
        {"url": "http://x.test/", "include_patterns": ["http://a:b@x.test/*"]},
    ],
)
async def test_whatever_held_a_secret_is_not_repeated(home: Path, args: dict[str, Any]) -> None:
    async with opened(home) as engine:
        record = await engine.requests.start("crawl", {**ARGS, **args})
        await engine.commands.cancel(record.task_id)
        with pytest.raises(RequestHidden) as refused:
            await engine.requests.rerun(record.task_id)
        assert "hunter2" not in str(refused.value)
        assert len(await engine.tasks.list()) == 1


async def test_a_mark_of_the_redactor_is_enough_in_an_older_record(home: Path) -> None:
    async with opened(home) as engine:
        record = await engine.requests.start(
            "crawl", {"url": "http://x.test/?token=[redacted]", **ARGS}
        )
        await engine.commands.cancel(record.task_id)
        with pytest.raises(CannotRepeat):
            await engine.requests.rerun(record.task_id)


async def test_what_another_program_made_is_not_known_whole(home: Path) -> None:
    folder = home / "tasks" / ("0" * 16)
    folder.mkdir(parents=True)
    meta = {"task_id": folder.name, "kind": "crawl", "status": "COMPLETED", "created_at": 1}
    meta["args_summary"] = {"url": "http://x.test/"}
    (folder / "meta.json").write_text(json.dumps(meta))
    async with opened(home) as engine:
        with pytest.raises(RequestUnknown):
            await engine.requests.rerun(folder.name)


async def test_an_envelope_begins_again_in_the_phase_that_it_began_in(home: Path) -> None:
    async with opened(home) as engine:
        terms = Terms(objective="look around", phase="act")
        first = await engine.requests.start("browser_task", {}, terms=terms)
        await engine.contracts.update(first.task_id, phase="verify")
        await engine.contracts.finish(first.task_id, "completed")
        second = await engine.requests.rerun(first.task_id)
        assert second.phase == "act"


async def test_the_new_task_is_of_the_caller_that_wants_it(home: Path, site: Any) -> None:
    contract = {"items": [f"{site.url}/static/1"]}  # not visited, so it can be retried
    args = {"url": f"{site.url}/static/2", **ARGS, "max_pages": 1}
    terms = Terms(client="claude-code", route="cli", contract=contract)
    async with opened(home) as engine:
        first = await ended(engine, await engine.requests.start("crawl", args, terms=terms))
        own = await ended(engine, await engine.requests.rerun(first.task_id))
        theirs = await engine.requests.rerun(first.task_id, client="other", route="http")
        rest = await engine.requests.retry(first.task_id, client="third", route="cli")
        for record in (theirs, rest):
            await ended(engine, record)
    told = [one.engine and (one.engine.client, one.engine.route) for one in (first, own)]
    assert told == [("claude-code", "cli"), (None, None)]
    told = [one.engine and (one.engine.client, one.engine.route) for one in (theirs, rest)]
    assert told == [("other", "http"), ("third", "cli")]


async def test_a_failed_page_with_a_long_address_is_retried_at_the_whole_one(
    home: Path, site: Any
) -> None:
    url = f"{site.url}/gone?{'x' * 400}"  # lists hold the first 300 characters
    async with opened(home) as engine:
        first = await engine.requests.start("crawl", {"url": url, **ARGS, "max_pages": 1})
        await engine.tasks.wait(first.task_id)
        rest = await engine.requests.remainder(first.task_id)
    assert rest.request is not None
    assert rest.request.args["url"] == url


async def test_a_retry_is_named_after_the_task_that_it_retries(home: Path, site: Any) -> None:
    url = f"{site.url}/gone"
    async with opened(home) as engine:
        first = await engine.requests.start("crawl", {"url": url, **ARGS, "max_pages": 1})
        await engine.tasks.wait(first.task_id)
        second = await engine.requests.retry(first.task_id)
        await engine.tasks.wait(second.task_id)
        third = await engine.requests.retry(second.task_id)
        await engine.tasks.wait(third.task_id)
    names = [one.engine and one.engine.name for one in (first, second, third)]
    assert names == [None, *[f"Retry of {url}"] * 2]
