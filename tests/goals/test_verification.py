"""Seed 001's own verification, its nine steps in order, on the sample site and a real browser."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.contracts.bulk_progress import BulkCompletionRefused
from engine.model.config import Settings
from engine.service.engine import Engine
from engine.verbs.verb_table import VERBS

Answer = dict[str, Any]


@asynccontextmanager
async def opened(home: Path, site: Any) -> AsyncIterator[Engine]:
    settings = Settings.at(home=home)
    private = (f"127.0.0.1:{site.port}",)
    made = Settings(home=settings.home, root=settings.root, allow_private=private)
    engine = Engine(made, accepts=True)
    await engine.open()
    try:
        yield engine
    finally:
        await engine.close()


async def call(engine: Engine, name: str, **given: Any) -> Any:
    """A verb as every face calls it, with the defaults of what is not given."""
    verb = VERBS[name]
    empty: dict[str, Any] = {"flag": False, "many": ()}
    asked = {one.name: empty.get(one.shape, one.default) for one in verb.params}
    asked.update({one.name: one.default for one in verb.params if one.default is not None})
    return await verb.call(engine, {**asked, **given})


async def visit(engine: Engine, url: str) -> str:
    """Open a page and read it with the browser tools; its text."""
    went = await call(engine, "navigate", url=url)
    assert went.ok, went
    read = await call(engine, "read_page")
    assert read.ok, read
    return str(read.text)


async def test_the_seeds_nine_steps(home: Path, site: Any) -> None:
    urls = [f"{site.url}/page/{number}" for number in (1, 2, 3)]
    async with opened(home, site) as engine:
        # 1. A task run with a contract over three URLs.
        contract = {"expected_total": 3, "item_key": "url", "items": urls}
        goal = "Visit three URLs and collect their titles"
        began: Answer = await call(engine, "task-run start", goal=goal, contract=contract)
        run_id = began["task_run"]["run_id"]
        contract_id = began["bulk_progress_contract"]["contract_id"]
        # 2. Only the first one is visited.
        assert "Field notes 1" in await visit(engine, urls[0])
        # 3. It is recorded.
        await call(
            engine,
            "task-run update",
            run_id=run_id,
            completed_items=(urls[0],),
            current_cursor=urls[1],
        )
        # 4. and 5. Completing is rejected, with what is missing and what to do next.
        with pytest.raises(BulkCompletionRefused) as refused:
            await call(engine, "complete", run_id=run_id)
        said = refused.value.data()
        assert said["completion_guard"]["missing_count"] == 2
        action = f"Continue processing url items from cursor {urls[1]}."
        assert said["completion_guard"]["suggested_next_action"] == action
        assert said["hint"]["missing_count"] == 2
        found: Answer = await call(engine, "task-run get", run_id=run_id)
        assert found["task_run"]["status"] == "RUNNING"
        named: Answer = await call(
            engine, "contract show", contract_id=contract_id, include_items=True
        )
        assert named["missing_items"] == urls[1:]
        # 6. and 7. The other two, then it completes, with all three items.
        for url in urls[1:]:
            await visit(engine, url)
        await call(engine, "contract update", contract_id=contract_id, completed=tuple(urls[1:]))
        ended: Answer = await call(engine, "complete", run_id=run_id, include_items=True)
        assert ended["task_run"]["status"] == "COMPLETED"
        assert ended["task_run"]["completed_items"] == urls
        assert "forced" not in ended["task_run"]
    # 9. After a restart it is all still there.
    async with opened(home, site) as engine:
        found = await call(engine, "task-run get", run_id=run_id, include_items=True)
        assert found["task_run"]["completed_items"] == urls
        assert found["task_run"]["current_cursor"] == urls[1]
        assert found["completion_guard"]["allowed"]


@pytest.mark.parametrize("way", ["recorded", "min_completed", "block", "force"])
async def test_the_eighth_step_one_url_fails(home: Path, site: Any, way: str) -> None:
    """It completes with its reason where failure is allowed, and else only by force."""
    urls = [f"{site.url}/page/{number}" for number in (1, 2)] + [f"{site.url}/status/500"]
    terms: Answer = {"expected_total": 3, "item_key": "url"}
    if way in ("block", "force"):
        terms["failed_policy"] = "block"
    if way == "min_completed":
        terms["min_completed"] = 3
    async with opened(home, site) as engine:
        began = await call(engine, "task-run start", goal="three", contract=json.dumps(terms))
        run_id = began["task_run"]["run_id"]
        await call(engine, "task-run update", run_id=run_id, completed_items=tuple(urls[:2]))
        with pytest.raises(BulkCompletionRefused):
            await call(engine, "complete", run_id=run_id)
        await call(
            engine, "task-run update", run_id=run_id, failed_items=(urls[2],), reason="HTTP 500"
        )
        if way == "recorded":
            ended = await call(engine, "complete", run_id=run_id, include_items=True)
        else:
            with pytest.raises(BulkCompletionRefused):
                await call(engine, "complete", run_id=run_id)
            if way != "force":
                return
            reason = "the third page is known to be broken"
            forcing = {"force": True, "reason": reason, "by": "ann"}
            ended = await call(engine, "complete", run_id=run_id, include_items=True, **forcing)
            assert ended["task_run"]["forced"]["reason"] == reason
    assert ended["task_run"]["status"] == "COMPLETED"
    assert ended["task_run"]["failed_items"] == [{"item": urls[2], "reason": "HTTP 500"}]
    assert ended["task_run"]["completed_items"] == urls[:2]
    async with opened(home, site) as engine:
        found = await call(engine, "task-run get", run_id=run_id, include_items=True)
        assert found["task_run"]["failed_items"] == [{"item": urls[2], "reason": "HTTP 500"}]
