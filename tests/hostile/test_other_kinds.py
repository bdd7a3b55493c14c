"""Other kinds of tasks, and the command line, among the same traps."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.model.config import Settings
from engine.model.errors import EngineError
from engine.model.records import Status
from engine.service.engine import Engine
from fixtures.hostile.program import HostileProgram
from fixtures.hostile.rules import SITEMAPS
from tests.support.octask import Octask

NONE = ("sitemap_missing", "sitemap_unmatched")
READ = {"mixed": 12, "long": 30}  # the pages of those that list some


@pytest.mark.thorough
@pytest.mark.case("R61")
async def test_every_hostile_sitemap_ends_in_pages_or_in_a_sentence(home: Path) -> None:
    with HostileProgram() as site:
        engine = Engine(Settings.at(home=home), accepts=True)
        await engine.open()
        try:
            for name in SITEMAPS:
                given = {"sitemap_url": f"{site.url}/sitemaps/{name}.xml", "engine": "static"}
                more = {"delay_ms": 0, "max_pages": 30}
                task = await engine.requests.start("crawl_sitemap", {**given, **more})
                record = await engine.tasks.wait(task.task_id, timeout_ms=150_000)
                assert record.status in (Status.COMPLETED, Status.FAILED), name
                if READ.get(name):
                    assert record.status == Status.COMPLETED, (name, record.error)
                else:
                    assert record.error is None or record.error.code in NONE, name
        finally:
            await engine.close()
        asked = site.told()
    assert asked["canary"] == []
    assert asked["hits"]["/safe/1"] >= 1


@pytest.mark.case("R61", "R69", "R70")
@pytest.mark.parametrize(
    ("kind", "path", "more"),
    [
        ("oc_evidence_bundle", "/behave/popups", {"include": ["dom", "console", "network"]}),
        ("recording", "/behave/alerts", {"duration_ms": 700, "headed": False}),
    ],
)
async def test_bundles_and_recordings_of_traps_end_and_reach_nothing_else(
    home: Path, kind: str, path: str, more: dict[str, object]
) -> None:
    with HostileProgram() as site:
        engine = Engine(Settings.at(home=home), accepts=True)
        await engine.open()
        try:
            task = await engine.requests.start(kind, {"url": site.url + path, **more})
            record = await engine.tasks.wait(task.task_id, timeout_ms=150_000)
        except EngineError as failed:
            pytest.fail(f"{kind} of {path}: {failed}")
        finally:
            await engine.close()
        assert site.told()["canary"] == []
    assert record.status == Status.COMPLETED, record.error


@pytest.mark.case("R61", "R66")
def test_octask_crawls_traps_without_a_traceback_and_refuses_other_schemes(home: Path) -> None:
    octask = Octask(home)
    words = ["--engine", "static", "--delay-ms", "0", "--max-depth", "1", "--timeout-ms", "20000"]
    with HostileProgram() as site:
        traps = ("/text/ansi", "/text/markup", "/save/traversal", "/redirect/canary", "/safe/1")
        said = octask("start", "crawl", site.only(*traps), *words)
        assert "\x1b" not in said
        for scheme in ("file:///etc/passwd", "javascript:alert(1)"):
            refused = octask("start", "crawl", scheme, code=2)
            assert "only http and https addresses can be opened" in refused
        shown = octask("get", octask.tasks()[0]["task_id"], "--result")
        assert "\x1b" not in shown
        assert "download skipped" in shown
        assert "blocked: private address" in shown
        assert site.told()["canary"] == []
