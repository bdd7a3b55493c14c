"""The verification steps of seeds 000, 001 and 004, by the SDK's own client, on every way."""

import asyncio
import os
import signal
from contextlib import suppress
from typing import Any

import pytest
from mcp import Client

from tests.server.conftest import Hosting, data, error, place_of
from tests.support.endless_site import endless

LIVE = ("PENDING", "RUNNING")
FAST = {"delay_ms": 0, "respect_robots": False, "max_depth": 100}

# Each way, and each handshake on a connection that stays and on one of requests alone.
WAYS = (
    *(("memory", "legacy"), ("stdio", "auto"), ("serve", "auto")),
    pytest.param("serve", "legacy", marks=pytest.mark.thorough),
)
pytestmark = pytest.mark.parametrize(("side", "mode"), WAYS)


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    return data(await client.call_tool(tool, arguments))


async def refused(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    return error(await client.call_tool(tool, arguments))


async def with_pages(client: Client, task_id: str, least: int = 1) -> None:
    """Wait until a crawl has finished some pages."""
    while True:
        found = await call(client, "oc_task_get", task_id=task_id)
        if found["view"].get("units", {}).get("done", 0) >= least:
            return
        assert found["status"] in LIVE, found
        await asyncio.sleep(0.1)


async def crawl(client: Client, url: str, pages: int = 10_000) -> str:
    args = {"url": url, "maxPages": pages, "sameOrigin": True, **FAST}
    started = await call(client, "oc_task_start", kind="crawl", args=args)
    assert started["status"] in LIVE
    return str(started["task_id"])


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a cancel of this process wait for the end of its task, however long that takes."""
    monkeypatch.setattr("engine.verbs.program_verbs.SETTLE_MS", 100_000)


@pytest.mark.thorough("serve-auto")
async def test_a_crawl_is_started_listed_cancelled_and_found_again(
    side: str, mode: str, hosting: Hosting, places: list[str], site: Any
) -> None:
    places.append(place_of(site.url))
    async with hosting(side, mode=mode) as client:
        task_id = await crawl(client, endless(site))
        listed = await call(client, "oc_task_list")
        (mine,) = listed["tasks"]
        assert (mine["task_id"], mine["kind"]) == (task_id, "crawl")
        assert mine["status"] in LIVE
        await with_pages(client, task_id)
        answer = await call(client, "oc_task_cancel", task_id=task_id)
        if side == "memory":  # elsewhere it may have to be waited for, on a crowded machine
            assert [one["status"] for one in answer["tasks"]] == ["CANCELLED"]
        ended = await call(client, "oc_task_wait", task_id=task_id, timeout_ms=60_000)
        assert ended["status"] == "CANCELLED"
        found = await call(client, "oc_task_get", task_id=task_id, include_result=True)
        assert found["result"]["pages"], "what was finished is kept"
        # A fast task, waited for to its end.
        short = await crawl(client, site.url, pages=2)
        done = await call(client, "oc_task_wait", task_id=short, timeout_ms=60_000)
        assert done["status"] == "COMPLETED"
    async with hosting(side, mode=mode) as client:  # after a restart
        listed = await call(client, "oc_task_list")
        assert [one["status"] for one in listed["tasks"]] == ["COMPLETED", "CANCELLED"]


@pytest.mark.thorough("serve-auto")
async def test_the_task_of_a_killed_process_is_reaped(
    side: str, mode: str, hosting: Hosting, places: list[str], site: Any
) -> None:
    if side == "memory":
        pytest.skip("the task runs in the process of this test")
    places.append(place_of(site.url))
    with suppress(BaseExceptionGroup):  # a killed `octask serve` cannot say goodbye
        async with hosting(side, mode=mode) as client:
            task_id = await crawl(client, endless(site))
            await with_pages(client, task_id)
            pid = (await call(client, "oc_task_get", task_id=task_id))["pid"]
            assert pid != os.getpid()
            os.kill(pid, signal.SIGKILL)
    async with hosting(side, mode=mode) as client:
        found = await call(client, "oc_task_get", task_id=task_id, include_result=True)
        assert (found["status"], found["error"]["code"]) == ("FAILED", "orphaned")
        assert found["result"]["pages"]


async def test_a_task_outlives_the_host_that_started_it(
    side: str, mode: str, hosting: Hosting, places: list[str], site: Any
) -> None:
    if side != "stdio":
        pytest.skip("the task runs in the process of the server")
    places.append(place_of(site.url))
    async with hosting(side, mode=mode) as client:
        task_id = await crawl(client, endless(site))
        await with_pages(client, task_id)
    async with hosting(side, mode=mode) as client:
        before = (await call(client, "oc_task_get", task_id=task_id))["view"]["units"]["done"]
        await with_pages(client, task_id, before + 1)
        await call(client, "oc_task_cancel", task_id=task_id)
        ended = await call(client, "oc_task_wait", task_id=task_id, timeout_ms=100_000)
        assert ended["status"] == "CANCELLED"


@pytest.mark.thorough("serve-auto")
async def test_a_run_cannot_be_called_complete_before_its_items_are(
    side: str, mode: str, hosting: Hosting, places: list[str], site: Any
) -> None:
    places.append(place_of(site.url))
    urls = [f"{site.url}{path}" for path in ("/", "/about", "/contact")]
    async with hosting(side, mode=mode) as client:
        started = await call(
            client,
            "oc_task_run_start",
            goal="Visit three URLs and collect their titles",
            contract={"expected_total": 3, "item_key": "url", "items": urls},
        )
        run_id = started["task_run"]["run_id"]
        await call(client, "navigate", url=urls[0])
        assert (await call(client, "read_page"))["title"]
        await call(client, "oc_task_run_update", run_id=run_id, completed_items=[urls[0]])
        wrong = await refused(client, "oc_task_run_complete", run_id=run_id)
        assert wrong["code"] == "bulk_completion_guard_failed"
        assert wrong["completion_guard"]["missing_count"] == 2
        assert wrong["completion_guard"]["suggested_next_action"]
        assert wrong["hint"]["severity"] == "warning"
        await call(client, "oc_task_run_update", run_id=run_id, completed_items=urls[1:])
        ended = await call(client, "oc_task_run_complete", run_id=run_id, include_items=True)
        assert ended["task_run"]["status"] == "COMPLETED"
        assert sorted(ended["bulk_progress_contract"]["completed"]) == sorted(urls)
        # Once more with a failed item: recorded with a reason, and allowed by the policy.
        second = await call(
            client,
            "oc_task_run_start",
            goal="Visit them again",
            contract={"items": urls, "item_key": "url", "failed_policy": "block"},
        )
        again = second["task_run"]["run_id"]
        await call(client, "oc_task_run_update", run_id=again, completed_items=urls[:2])
        await call(
            client,
            "oc_task_run_update",
            run_id=again,
            failed_items=[{"item": urls[2], "reason": "it answered 500"}],
            current_cursor="3",
        )
        wrong = await refused(client, "oc_task_run_complete", run_id=again)
        assert wrong["code"] == "bulk_completion_guard_failed"
        forced = await call(
            client,
            "oc_task_run_complete",
            run_id=again,
            force=True,
            force_reason="the third page is known to be broken",
        )
        assert forced["task_run"]["forced"]["reason"] == "the third page is known to be broken"
        assert forced["task_run"]["forced"]["by"] == "mcp", "the name that the client gave itself"
    async with hosting(side, mode=mode) as client:  # after a restart
        found = await call(client, "oc_task_run_get", run_id=again, include_items=True)
        assert found["task_run"]["current_cursor"] == "3"
        assert found["bulk_progress_contract"]["failed"][0]["reason"] == "it answered 500"
        assert len(found["bulk_progress_contract"]["completed"]) == 2


@pytest.mark.thorough("serve-auto")
async def test_an_envelope_counts_the_calls_that_name_it(
    side: str, mode: str, hosting: Hosting, places: list[str], site: Any
) -> None:
    places.append(place_of(site.url))
    async with hosting(side, mode=mode) as client:
        opened = await call(
            client,
            "oc_task_start",
            objective="look around",
            policy={"maxObservationStreak": 2, "maxSameUrlNavigations": 2},
        )
        task_id = opened["task_id"]
        assert (opened["kind"], opened["phase"]) == ("browser_task", "explore")
        for tool, arguments in (
            ("navigate", {"url": site.url}),
            ("read_page", {}),
            ("find", {"query": "about"}),
            ("tabs_context", {}),
            ("page_screenshot", {}),
            ("javascript_tool", {"code": "1 + 1"}),
        ):
            found = await call(client, tool, taskId=task_id, **arguments)
            assert found["task"]["task_id"] == task_id
        counters = found["task"]["counters"]
        assert (counters["toolCalls"], counters["observationCalls"]) == (6, 4)
        assert counters["actionCalls"] == 2
        for _ in range(3):
            found = await call(client, "read_page", taskId=task_id)
        assert found["task"]["budget_status"] == "exceeded"
        assert found["task"]["recommended_next"] == "change_strategy_or_verify"
        for _ in range(2):
            found = await call(client, "navigate", url=site.url, taskId=task_id)
        shown = await call(client, "oc_task_get", task_id=task_id)
        assert "maxSameUrlNavigations" in shown["budget_exceeded"]
        assert len(shown["envelope"]["recent_events"]) == 10
        # Without taskId nothing is counted, and nothing about a task is answered.
        plain = await call(client, "read_page")
        assert "task" not in plain
        before = shown["counters"]["toolCalls"]
        shown = await call(client, "oc_task_get", task_id=task_id)
        assert shown["counters"]["toolCalls"] == before
        moved = await call(client, "oc_task_update", task_id=task_id, phase="verify", note="ok")
        assert moved["phase"] == "verify"
        ended = await call(client, "oc_task_finish", task_id=task_id, outcome="completed")
        assert (ended["status"], ended["phase"]) == ("COMPLETED", "done")
