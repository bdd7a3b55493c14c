"""Schedules over MCP: all that the command line can do with one, with the rights of a program."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from engine.model.records import SCHEDULES_FOLDER
from tests.schedules.changing_site import ChangingSite
from tests.server.conftest import SIDES, Hosting, place_of
from tests.server.test_mcp_verification import call, refused, with_pages
from tests.support.endless_site import endless
from tests.support.octask import FAST, Octask
from tests.support.times_of_day import far_time

STATIC = {"engine": "static", "delay_ms": 0, "respect_robots": False}


@pytest.fixture
def changing() -> Iterator[ChangingSite]:
    with ChangingSite() as found:
        yield found


def on_disk(home: Path) -> dict[str, Any]:
    return {
        place.stem: json.loads(place.read_text())
        for place in (home / "tasks" / SCHEDULES_FOLDER).glob("*.json")
    }


def crawl(url: str, **more: Any) -> dict[str, Any]:
    return {"kind": "crawl", "args": {"url": url, **STATIC, **more}}


async def run_to_its_end(client: Client, schedule_id: str) -> dict[str, Any]:
    started = await call(client, "oc_schedule_run", schedule_id=schedule_id)
    return await call(client, "oc_task_wait", task_id=started["task_id"])


@pytest.mark.thorough("serve")
@pytest.mark.parametrize("side", SIDES)
async def test_a_program_adds_changes_runs_and_removes_a_schedule(
    side: str, hosting: Hosting, home: Path, places: list[str], changing: ChangingSite
) -> None:
    places.append(place_of(changing.url))
    async with hosting(side) as client:
        added = await call(
            client, "oc_schedule_add", request={**crawl(changing.url), "name": "Shop"}, every="6h"
        )
        schedule_id = added["schedule_id"]
        assert added["rule"]["every_minutes"] == 360
        (stored,) = on_disk(home).values()
        assert stored["request"]["route"] == "mcp"
        assert stored["request"]["client"]
        daily = far_time()
        changed = await call(
            client, "oc_schedule_change", schedule_id=schedule_id, daily=daily, missed="skip"
        )
        assert (changed["rule"]["daily_at"], changed["missed"]) == (daily, "skip")
        wider = {"max_pages": 7}
        changed = await call(client, "oc_schedule_change", schedule_id=schedule_id, args=wider)
        assert changed["request"]["args"]["max_pages"] == 7
        none = {"max_pages": 0}
        wrong = await refused(client, "oc_schedule_change", schedule_id=schedule_id, args=none)
        assert "args.max_pages" in [one["path"] for one in wrong["problems"]]
        paused = await call(client, "oc_schedule_pause", schedule_id=schedule_id)
        assert (paused["paused"], paused["next_at"]) == (True, None)
        resumed = await call(client, "oc_schedule_resume", schedule_id=schedule_id)
        assert resumed["next_at"] is not None
        first = await run_to_its_end(client, schedule_id)
        assert (first["status"], first["engine"]["name"]) == ("COMPLETED", "Shop")
        changing.pages["/a"] = "<p>Other</p>"
        second = await run_to_its_end(client, schedule_id)
        assert second["engine"]["schedule"]["changes"]["changed"] == 1
        listed = await call(client, "oc_schedule_list")
        assert [one["last"]["task_id"] for one in listed["schedules"]] == [second["task_id"]]
        shown = await call(client, "oc_schedule_get", schedule_id=schedule_id)
        assert shown["request"]["args"]["url"] == changing.url
        assert await call(client, "oc_schedule_remove", schedule_id=schedule_id) == {
            "removed": schedule_id
        }
        assert (await call(client, "oc_schedule_list"))["count"] == 0
        wrong = await refused(client, "oc_schedule_run", schedule_id=schedule_id)
        assert wrong["code"] == "record_not_found"


async def test_a_program_repeats_a_task_that_has_run(
    hosting: Hosting, places: list[str], changing: ChangingSite
) -> None:
    places.append(place_of(changing.url))
    async with hosting("memory") as client:
        task_id = (await call(client, "oc_task_start", **crawl(changing.url)))["task_id"]
        await call(client, "oc_task_wait", task_id=task_id)
        hour, minute = map(int, far_time().split(":"))
        cron = f"{minute} {hour} * * 1-5"
        added = await call(client, "oc_schedule_add", task_id=task_id, cron=cron)
        changing.pages["/a"] = "<p>Other</p>"
        run = await run_to_its_end(client, added["schedule_id"])
    assert run["engine"]["parent_task_id"] == task_id
    assert run["engine"]["schedule"]["changes"]["changed"] == 1


@pytest.mark.thorough
async def test_a_run_over_standard_input_outlives_its_host_and_is_not_doubled(
    hosting: Hosting, places: list[str], site: Any
) -> None:
    places.append(place_of(site.url))
    request = crawl(endless(site), max_depth=100, max_pages=10_000)
    async with hosting("stdio") as client:
        added = await call(client, "oc_schedule_add", request=request, every="1h")
        schedule_id = added["schedule_id"]
        task_id = (await call(client, "oc_schedule_run", schedule_id=schedule_id))["task_id"]
        await with_pages(client, task_id)
        wrong = await refused(client, "oc_schedule_run", schedule_id=schedule_id)
        assert (wrong["code"], wrong["fields"]["task_id"]) == ("schedule_run_going", task_id)
    async with hosting("stdio") as client:
        before = (await call(client, "oc_task_get", task_id=task_id))["view"]["units"]["done"]
        await with_pages(client, task_id, before + 1)
        await call(client, "oc_task_cancel", task_id=task_id)


async def test_a_program_neither_changes_nor_removes_nor_runs_a_schedule_of_the_operator(
    hosting: Hosting, home: Path, octask: Octask, changing: ChangingSite
) -> None:
    schedule_id = octask("schedules", "add", "crawl", changing.url, *FAST, "--every", "1h").strip()
    before = on_disk(home)
    async with hosting("memory") as client:
        for tool, more in (
            ("oc_schedule_change", {"every": "1m"}),
            ("oc_schedule_change", {"args": {"max_pages": 9}}),
            ("oc_schedule_remove", {}),
            ("oc_schedule_run", {}),
        ):
            wrong = await refused(client, tool, schedule_id=schedule_id, **more)
            assert (wrong["code"], on_disk(home)) == ("schedule_of_operator", before), tool
        assert (await call(client, "oc_task_list"))["count"] == 0
        listed = await call(client, "oc_schedule_list")
        assert [one["schedule_id"] for one in listed["schedules"]] == [schedule_id]
        paused = await call(client, "oc_schedule_pause", schedule_id=schedule_id)
        assert paused["paused"]
        resumed = await call(client, "oc_schedule_resume", schedule_id=schedule_id)
        assert "paused" not in resumed


async def test_a_run_of_a_program_reaches_no_private_address_whoever_starts_it(
    hosting: Hosting, octask: Octask, site: Any
) -> None:
    async with hosting("memory") as client:
        added = await call(client, "oc_schedule_add", request=crawl(site.url), every="1h")
        run = await run_to_its_end(client, added["schedule_id"])
        assert run["status"] == "FAILED"
    assert "FAILED" in octask("schedules", "run", added["schedule_id"], code=1)
    assert site.log == []


async def test_what_the_operator_does_not_allow_is_refused_when_a_schedule_is_added(
    hosting: Hosting, home: Path
) -> None:
    upload = {
        "tool_name": "browser_interact",
        "intention": "send the file",
        "args": {"action": "upload", "selector": "input", "files": ["/etc/passwd"]},
    }
    sending = {"task_name": "Send", "task_intention": "send", "commands": [upload]}
    secret = crawl("https://example.com/", username="ann", password="env:AWS_SECRET")
    async with hosting("memory") as client:
        wrong = await refused(client, "oc_schedule_add", request=secret, every="1h", grace="x")
        assert [(one["path"], one["code"]) for one in wrong["problems"]] == [
            ("grace", "invalid_value")
        ]
        wrong = await refused(client, "oc_schedule_add", request=secret, daily="27:00")
        assert {(one["path"], one["code"]) for one in wrong["problems"]} == {
            ("request.args.password", "missing_secret"),
            ("daily", "invalid_value"),
        }
        request = {"kind": "commands", "args": sending}
        wrong = await refused(client, "oc_schedule_add", request=request, every="1h")
        assert "must lie in the folder that the operator allowed" in wrong["message"]
        typed = crawl("https://example.com/?token=s3cr3t-word")
        wrong = await refused(client, "oc_schedule_add", request=typed, every="1h")
        assert wrong["code"] == "schedule_secret"
    assert on_disk(home) == {}
