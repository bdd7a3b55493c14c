"""Addresses with `#` in real Chromium: opened as typed, separate pages on request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.export.exporter import Order
from engine.model.errors import InvalidArguments
from engine.model.records import TaskRecord
from engine.sample.site import Answer
from engine.service.admission import Terms
from engine.service.engine import Engine
from fixtures.site.site import Site
from tests.kinds.hash_routed import BANG, PATH, ROUTES, answers, text_of
from tests.results.reading import csv_rows
from tests.support.engines import opened
from tests.support.written_files import contents

PAGES: dict[str, Any] = {
    "delay_ms": 0,
    "respect_robots": False,
    "max_pages": 60,
    "output_format": "text",
}


@pytest.fixture
def start(site: Site) -> str:
    site.answers.update(answers())
    return site.url + PATH


async def done(
    desk: Engine, kind: str, contract: dict[str, Any] | None = None, **args: Any
) -> dict[str, Any]:
    """Start it, wait for it, and give its result."""
    task_id = (await desk.requests.start(kind, args, terms=Terms(contract=contract))).task_id
    await desk.tasks.wait(task_id, 150_000)
    await desk.tasks.join(task_id)
    found: dict[str, Any] = json.loads((desk.settings.root / task_id / "result.json").read_bytes())
    return {**found, "task_id": task_id}


async def test_routes_are_pages_with_their_own_content(home: Path, site: Site, start: str) -> None:
    async with opened(home) as engine:
        contract = {"items": [start + route for route in ROUTES]}
        found = await done(engine, "crawl", contract, url=start, fragments="routes", **PAGES)
        task_id = found["task_id"]
        record = (await engine.tasks.get(task_id)).entry
        assert isinstance(record, TaskRecord)
        assert record.engine is not None
        told = engine.goals.contracts.get(str(record.engine.contract_id)).contract
        place = home / "pages.csv"
        await engine.exports.to_file(Order(task_id, "csv"), place)
    pages = {page["url"].removeprefix(start): page for page in found["pages"]}
    assert sorted(pages) == sorted(["", *ROUTES])
    for route, page in pages.items():
        assert text_of(route) in page["content"], route
        assert "drawn 1" in page["content"], route  # of a document that was loaded for it
        assert (page["status"], page["settled"], page["final_url"]) == (200, True, start + route)
    assert site.hits[PATH] == len(pages)
    summary = found["summary"]
    assert (summary["total_pages"], summary["failed"]) == (41, 0)
    assert "links_fragments" not in summary
    assert sorted(told.completed) == sorted(start + route for route in ROUTES)
    rows = csv_rows(place.read_text("utf-8-sig"))
    assert {row["url"] for row in rows} == {start + route for route in pages}


async def test_without_routes_fragments_are_counted(home: Path, site: Site, start: str) -> None:
    async with opened(home) as engine:
        found = await done(engine, "crawl", url=f"{start}#/orders", **PAGES)
        auto = await done(engine, "crawl", url=f"{start}{BANG}", engine="auto", **PAGES)
    (page,) = found["pages"]
    assert page["url"] == f"{start}#/orders"
    assert "Order 37" in page["content"]
    # Two of the menu and the orders; itself it has opened, and `#/` is the page without.
    assert found["summary"]["links_fragments"] == 2 + 37
    assert site.hits[PATH] == 2  # without a script it would be the same page for every route
    (page,) = auto["pages"]
    assert ("put away" in page["content"], page["engine_used"]) == (True, "browser")


async def test_evidence_and_snapshot_keep_the_route(home: Path, site: Site, start: str) -> None:
    routes = ["#/orders/5", "#/about", BANG, "#/orders/1"]
    async with opened(home) as engine:
        bundle = await done(engine, "oc_evidence_bundle", url=f"{start}#/orders/5", include=["dom"])
        dom = (engine.settings.root / bundle["task_id"] / "artifacts" / "dom.html").read_text()
        tabs = [start + route for route in routes]
        asked: dict[str, Any] = {
            "objective": "look",
            "tabs": tabs,
            "visit": True,
            "screenshot": False,
        }
        snapshot = await done(engine, "oc_session_snapshot", **asked)
    assert (bundle["url"], bundle["final_url"]) == (f"{start}#/orders/5",) * 2
    assert bundle["status"] == 200
    assert "Item number 5." in dom
    told = [(tab["url"], tab["final_url"], tab["title"], tab["status"]) for tab in snapshot["tabs"]]
    titles = ["Order 5", "About", "Archive", "Order 1"]
    assert told == [(tab, tab, title, 200) for tab, title in zip(tabs, titles, strict=True)]
    assert site.hits[PATH] == 1 + len(tabs)  # each a document of its own


async def test_a_recording_begins_at_the_route(home: Path, start: str) -> None:
    async with opened(home) as engine:
        asked: dict[str, Any] = {"url": f"{start}#/about", "headless": True, "duration_ms": 1_000}
        found = await done(engine, "recording", **asked)
    assert found["url"] == f"{start}#/about"
    assert found["actions"][0]["url"] == f"{start}#/about"


async def test_an_agent_and_a_command_go_to_the_route(home: Path, site: Site, start: str) -> None:
    goto = {"tool_name": "browser_navigate", "intention": "open"}
    read = {"tool_name": "browser_content", "intention": "read"}
    commands = [
        step
        for route in ("#/about", "#/orders")
        for step in (
            {**goto, "args": {"action": "goto", "url": start + route}},
            {**read, "args": {"action": "get_text", "selector": "h1"}},
        )
    ]
    async with opened(home, allow_private=(site.url[7:],)) as engine:
        task = {"task_name": "see", "task_intention": "see", "commands": commands}
        task_id = (await engine.requests.start("commands", task)).task_id
        await engine.tasks.wait(task_id, 150_000)
        ran = await engine.tasks.command_task(task_id)
        agent = [
            await engine.agents.call("navigate", {"url": start + route}, agent_id="ada")
            for route in ("#/about", "#/orders")
        ]
    assert ran is not None
    results = [command["result"] for command in ran["commands"]]
    assert [one["url"] for one in results[::2]] == [f"{start}#/about", f"{start}#/orders"]
    assert ["About" in str(results[1]), "Orders" in str(results[3])] == [True, True]
    assert ["#/about" in str(agent[0]), "#/orders" in str(agent[1])] == [True, True]


async def test_a_failed_route_is_retried_unchanged(home: Path, site: Site, start: str) -> None:
    site.answers[PATH] = Answer(b"<p>later", 503)
    site.robots = "User-agent: *\nDisallow: /*about\n"  # robots.txt knows no fragment
    async with opened(home) as engine:
        typed = f"{start}#/about"
        asked = {"url": typed, "fragments": "routes", **PAGES, "respect_robots": True}
        found = await done(engine, "crawl", **asked)
        site.answers.update(answers())
        again = (await engine.requests.remainder(found["task_id"])).request
        assert again is not None
        (page,) = (await done(engine, "crawl", **again.args))["pages"]
        entry = (await engine.tasks.get(found["task_id"])).entry
    assert isinstance(entry, TaskRecord)
    assert entry.args_summary["url"] == typed
    assert (page["url"], "by hand" in page["content"]) == (typed, True)


async def test_a_secret_in_a_fragment_is_not_stored(home: Path, site: Site, start: str) -> None:
    script = "<p id=p></p><script>p.textContent = location.hash.length</script>"
    site.answers["/landed"] = Answer(script.encode())
    secret = "Xk7vQ9z2LmWp4Rt8"
    async with opened(home) as engine:
        for fragment in (f"#access_token={secret}", f"#/landed?access_token={secret}"):
            found = await done(engine, "crawl", url=f"{site.url}/landed{fragment}", **PAGES)
            (page,) = found["pages"]
            assert page["content"].strip() == str(len(fragment))
            assert "access_token=[redacted]" in page["url"]
            await done(engine, "oc_evidence_bundle", url=f"{site.url}/landed{fragment}")
    for file, data in contents(home).items():
        assert secret.encode() not in data, file


@pytest.mark.parametrize(
    ("kind", "args", "path"),
    [
        ("crawl", {"url": "http://a.test/", "fragments": "routes"}, "fragments"),
        ("crawl", {"url": "http://a.test/#/b"}, "url"),
        ("crawl_sitemap", {"url": "http://a.test/", "fragments": "routes"}, "fragments"),
    ],
)
async def test_an_engine_without_scripts_is_not_asked_for_routes(
    home: Path, kind: str, args: dict[str, Any], path: str
) -> None:
    async with opened(home) as engine:
        with pytest.raises(InvalidArguments) as refused:
            await engine.requests.start(kind, {**args, "engine": "static"})
    assert [(problem.path, problem.code) for problem in refused.value.problems] == [
        (path, "not_together")
    ]
