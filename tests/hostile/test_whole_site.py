"""A crawl of the whole hostile site, as an operator would start it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import psutil
import pytest

from fixtures.hostile.program import HostileProgram
from fixtures.hostile.site import FRONT, SAFE
from tests.hostile.conftest import crawled, left_over


def _everything_in(folder: Path) -> set[Path]:
    return {place for place in folder.rglob("*") if place.is_file()}


@pytest.mark.thorough
@pytest.mark.case("R61", "R62")
@pytest.mark.timeout(900)
async def test_the_hostile_site_is_crawled_to_its_end_and_reaches_nothing_else(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    descriptors = psutil.Process().num_fds() if hasattr(os, "fork") else 0
    with HostileProgram() as site:
        told = await crawled(
            home,
            f"{site.url}/",
            max_pages=160,
            max_depth=3,
            concurrency=4,
            timeout_ms=6_000,  # two dozen pages take all of it, and some of them twice
            exclude_patterns=[
                *("/busy/**", "/memory**", "/slow/**", "/flood/**", "/behave/busy*"),
                # The first of each is met; they take all of their time.
                *("/many/*", "/frames/nested?*"),
            ],
        )
        asked = site.told()
    assert told.summary["stopped_by"] == "max_pages"
    assert told.summary["total_pages"] == 160
    for path in SAFE:
        assert "error" not in told.pages[path], told.pages[path]
    assert asked["canary"] == []
    assert all(isinstance(page.get("error", ""), str) for page in told.pages.values())
    assert told.error("/forbidden/1") == "Blocked by robots.txt"
    assert asked["hits"].get("/forbidden/1", 0) == 0
    met = [path for path in FRONT if path in told.pages]
    assert len(met) > 75
    assert told.summary["links_outside"] > 0
    assert told.summary["links_not_web"] > 15
    assert _everything_in(tmp_path) == _everything_in(home)
    assert await asyncio.to_thread(left_over) == []
    if descriptors:
        assert psutil.Process().num_fds() <= descriptors + 5
    assert "Traceback" not in "".join(capfd.readouterr())
