"""The size of a page does not determine the memory of the program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.hostile.program import ROOT, HostileProgram

# What a crowded machine may make of 100 MB: given up with its reason is as well as cut.
TOO_LONG = "the page did not answer within 60 s"
_MEASURE = """
import asyncio, json, sys, threading, psutil
from pathlib import Path
from engine.browser.chromium import launch
from tests.hostile.conftest import crawled
launch.ANSWER_S = 60.0  # busy with 100 MB it may say nothing for a while
me, peak, over = psutil.Process(), [0], threading.Event()
def watch():
    while not over.wait(0.02):
        peak[0] = max(peak[0], me.memory_info().rss)
async def main(home, honest, heavy, engine):
    args = {"engine": engine, "max_depth": 1, "timeout_ms": 60_000}
    await crawled(Path(home) / "a", honest, **args)
    before = me.memory_info().rss
    threading.Thread(target=watch).start()
    try:
        told = await crawled(Path(home) / "b", heavy, **args)
    finally:
        over.set()
    cut = {path: page.get("truncated", page.get("error")) for path, page in told.pages.items()}
    print(json.dumps({"grew_mb": (peak[0] - before) / 2**20, "cut": cut}))
asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.case("R68")
@pytest.mark.timeout(500)
@pytest.mark.parametrize("engine", [pytest.param("browser", marks=pytest.mark.thorough), "static"])
def test_huge_pages_take_less_than_100_mb_of_memory(engine: str, tmp_path: Path) -> None:
    heavy = ["/big?mb=60", "/gzip?mb=100", "/line?mb=8"]
    heavy += ["/brotli"] if engine == "browser" else []
    with HostileProgram() as site:
        words = [str(tmp_path), site.only("/safe/1"), site.only(*heavy), engine]
        ran = subprocess.run(
            [sys.executable, "-c", _MEASURE, *words],
            capture_output=True,
            text=True,
            timeout=400,
            cwd=ROOT,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["grew_mb"] < 100, found
    assert all(found["cut"][path] in (True, TOO_LONG) for path in heavy), found
    assert True in found["cut"].values(), found
