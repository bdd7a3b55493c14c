"""Hung, suspended, closed and failed starts end within their limits with a message."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from engine.browser import direct
from engine.browser.chromium.browser_options import InstanceOptions
from engine.browser.chromium.driver import alive
from engine.browser.page import bundle_parts
from engine.browser.page.evidence import TabCamera
from engine.browser.page.failures import PageTooHeavy
from engine.egress.egress_policy import Policy
from engine.kinds.crawl import crawl
from engine.kinds.crawl.crawl import Awake
from engine.kinds.evidence_kind import EVIDENCE
from engine.kinds.spec import Tools
from engine.model.config import Settings
from engine.model.errors import BrowserGone, PageError, UnitTimeout
from engine.model.records import Status
from engine.pages import fetch
from engine.sample.site import Answer
from engine.service.engine import Engine
from tests.commands.conftest import do, task
from tests.hard.kill_program import family
from tests.supervision.conftest import Place, Running, until
from tests.support.memory_context import MemoryContext

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.thorough
@pytest.mark.case("R74")
@pytest.mark.usefixtures("patience")
async def test_an_endless_script_keeps_the_browser(home: Path, place: Place) -> None:
    place.pages["/"] = "fine"
    async with opened(home) as engine:
        options = InstanceOptions(policy=Policy.for_start(place.url))
        launched = await engine.instances.launch(options)
        instance = launched.id
        endless = do("evaluate", script="while (true) {}", timeout=500)
        go, last = do("goto", url=place.url), do("evaluate", script="1")
        stuck = await run(engine, go, endless, last, instanceId=instance)
        assert [each["status"] for each in stuck["commands"]] == ["success", "error", "skipped"]
        assert stuck["commands"][1]["error"]["code"] == "COMMAND_TIMEOUT"
        assert launched.pages == [], "the page that hangs burns on"
        again = await run(engine, go, instanceId=instance)
        assert again["status"] == "completed"
        assert engine._parts.browser.starts == 1


@pytest.mark.case("R78")
async def test_closing_the_engine_cancels_its_crawl(home: Path, place: Place) -> None:
    place.pages["/"] = "<script>setTimeout(() => { for (;;); }, 50)</script>fine"
    place.pages |= {f"/{number}": "x" for number in range(5)}
    async with opened(home) as engine:
        args = {"url": place.url, "delay_ms": 0, "respect_robots": False, "timeout_ms": 100_000}
        task_id = (await engine.requests.start("crawl", args)).task_id
        assert await asyncio.to_thread(until, lambda: place.hits["/"])
        children = family(os.getpid())
        async with asyncio.timeout(60):  # not as long as the page may take
            await engine.close()
        entry: Any = (await engine.tasks.get(task_id)).entry
        assert entry.status == Status.CANCELLED
    assert await asyncio.to_thread(until, lambda: not any(map(alive, children)))


@pytest.mark.case("R80")
@pytest.mark.parametrize("program", ["missing", "broken", "folder"])
async def test_a_crawl_without_a_browser_that_starts_fails_with_the_way_out(
    home: Path, place: Place, tmp_path: Path, program: str
) -> None:
    if program == "broken" and sys.platform == "win32":
        pytest.skip("the program is a shell script")
    path, tries = tmp_path / "chrome", tmp_path / "tries"
    if program == "broken":
        path.write_text(f"#!/bin/sh\necho x >> {tries}\necho it is broken >&2\nexit 7\n")
        path.chmod(0o755)
    elif program == "folder":
        path.mkdir()
    async with opened(home, browser_path=str(path)) as engine:
        args = {"url": place.url, "delay_ms": 0, "respect_robots": False, "concurrency": 4}
        ended = [await engine.requests.start("crawl", args) for _ in range(2)]
        records = [await engine.tasks.wait(one.task_id, 90_000) for one in ended]
    for record in records:
        assert record.status == Status.FAILED
        assert record.error is not None
        assert record.error.message.startswith("Chromium could not be started: ")
        assert record.error.code in ("browser_missing", "browser_failed")
    if program == "broken":
        assert "it is broken" in str(records[0].error)
        most = 4 if direct.AVAILABLE else 3  # over the pipe once, before Playwright
        assert tries.read_text().count("x") == most, "asked in vain again and again"
    assert place.hits["/"] == 0


CRAWL = """
    import asyncio, json, sys, tempfile
    from pathlib import Path
    from engine.model.config import Settings
    from engine.service.engine import Engine
    from engine.kinds.crawl import crawl as awake

    awake.BEAT_S, awake.STILL_S = 0.2, 1.0  # the clocks of this try run faster

    async def main(url, home):
        engine = Engine(Settings.at(home=Path(home)), accepts=True)
        await engine.open()
        args = {"url": url, "delay_ms": 0, "respect_robots": False, "timeout_ms": 6000}
        task = await engine.requests.start("crawl", {**args, "concurrency": 2})
        ended = await engine.tasks.wait(task.task_id, 120_000)
        pages = (Path(home) / "tasks" / task.task_id / "pages.jsonl").read_text().splitlines()
        await engine.close()
        errors = [page["error"] for page in map(json.loads, pages) if "error" in page]
        print(json.dumps({"status": ended.status, "pages": len(pages), "errors": errors}))

    asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.thorough
@pytest.mark.case("R31")
@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be stopped there")
def test_pages_late_by_a_suspend_are_retried(home: Path, place: Place) -> None:
    from tests.hard.kill_program import reaped

    paths = [f"/{number}" for number in range(1, 4)]
    place.pages = {path: f"<p>{path}</p>" for path in paths} | {"/": place.links(*paths)}
    asked = [sys.executable, "-c", textwrap.dedent(CRAWL), place.url, str(home)]
    slow = {path: place.hits[path] for path in paths}
    for path in paths[:2]:  # the first two are answered when they are asked for again
        place.acts[path] = partial(never_at_first, place, path)
    program = subprocess.Popen(asked, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    try:
        assert until(lambda: place.hits["/1"] > slow["/1"])
        stopped = [psutil.Process(program.pid), *family(program.pid)]
        for process in stopped:
            process.suspend()
        found = reaped(Settings.at(home=home).root)
        assert found["reaped"] == 0, "it sleeps, it is not dead"
        time.sleep(8.0)  # the sleep itself, longer than a page may take: nothing is waited for
        for process in reversed(stopped):
            process.resume()
        said, _ = program.communicate(timeout=150)
    finally:
        program.kill()
    assert said.strip() == '{"status": "COMPLETED", "pages": 4, "errors": []}'


@pytest.mark.case("R31")
async def test_stops_differ_from_busy_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(crawl, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(crawl, "_slept_s", lambda: 0.0)
    with Awake() as watch:
        before = now[0]
        now[0] += crawl.STILL_S - 0.1  # the busy loop
        assert watch.since(before)
        now[0] += crawl.STILL_S + 0.1  # the stop
        assert not watch.since(before)
        assert watch.since(now[0] + 0.1)


@pytest.mark.case("R31")
async def test_suspend_shows_with_a_stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = [10.0]
    monkeypatch.setattr(crawl, "_slept_s", lambda: slept[0])
    with Awake(still_s=500.0) as watch:
        before = time.monotonic()
        assert watch.since(before)
        slept[0] += 600
        assert not watch.since(before)
        assert watch.since(time.monotonic())


def test_a_page_comes_again_for_a_death_and_for_what_a_sleep_explains() -> None:
    crash, slow, answer = (PageError(kind, kind) for kind in ("crash", "timeout", "http"))
    gone, late = BrowserGone(url="x"), UnitTimeout(label="x", limit_s=1.0)
    assert [*map(fetch.is_unproved, (crash, gone, slow, late))] == [1, 1, 0, 0]
    assert [*map(fetch.is_of_a_sleep, (slow, gone, late, crash, answer))] == [1, 1, 1, 0, 0]
    assert fetch.is_unproved(PageTooHeavy())


def test_no_kind_of_timeout_names_the_address_that_its_page_record_has() -> None:
    late = UnitTimeout(label="http://site.test/a", limit_s=45.0)
    assert fetch.failure_of(late) == ("the page did not answer within 45 s", "timeout", 0)
    assert fetch.first_error(late) == "the page did not answer within 45 s"
    rules = UnitTimeout(label=fetch.ROBOTS, limit_s=35.0)
    assert fetch.failure_of(rules).error == "robots.txt did not answer within 35 s"


@pytest.mark.thorough
async def test_a_page_that_hangs_takes_the_time_of_all_parts_of_its_evidence_once(
    home: Path, place: Place, browser: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.pages["/"] = "fine"
    monkeypatch.setattr(bundle_parts, "LEAST_S", 2.0)
    monkeypatch.setattr(TabCamera, "open", hung_once_open(TabCamera.open))
    async with browser() as session:
        context = MemoryContext()
        tools = Tools(Settings(home=home, root=home / "tasks"), session)
        include = ["console", "network", "dom", "screenshot", "phash"]
        given = {
            "url": place.url,
            "timeout_ms": 10_000,  # of which a crowded machine takes some to open the page
            "include": include,
            "network_window_ms": 100,
        }
        await EVIDENCE.body(EVIDENCE.parse(given), context, tools)
    errors = {part["part"]: part.get("error", "") for part in context.pages}
    assert not errors["console"]
    assert not errors["network"]
    assert all(errors[part] for part in ("dom", "screenshot", "phash"))
    for part in ("screenshot", "phash"):  # they wait no more: the time is used up
        assert "did not answer within 10 s" in errors[part]


def never_at_first(place: Place, path: str) -> Answer | None:
    return Answer(stops="before") if place.hits[path] <= 1 else None


def hung_once_open(open_page: Any) -> Any:
    async def open_and_hang(camera: TabCamera) -> Any:
        found = await open_page(camera)
        await camera._tab.page.evaluate("setTimeout(() => { for (;;); }, 0); 0")
        return found

    return open_and_hang


class opened:
    """`async with opened(home) as engine:`, closed with the block."""

    def __init__(self, home: Path, **given: Any) -> None:
        settings = {"browser_path": os.environ.get("OC_BROWSER"), **given}
        self._engine = Engine(replace(Settings.at(home=home), **settings), accepts=True)

    async def __aenter__(self) -> Engine:
        await self._engine.open()
        return self._engine

    async def __aexit__(self, *_: object) -> None:
        await self._engine.close()


async def run(engine: Engine, *commands: dict[str, Any], **fields: Any) -> dict[str, Any]:
    record = await engine.requests.start("commands", task(*commands, **fields))
    await engine.tasks.wait(record.task_id, 150_000)
    found = await engine.tasks.command_task(record.task_id)
    assert found is not None
    return found
