"""`./dev shot [FILE]`: the picture of the window that README shows, taken by the program itself.

A throw-away ledger is filled with real crawls of the sample site, one of each outcome and
one still under way, and the window is asked for its picture (`--shot`).
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from engine.config import Settings
from engine.sample.site import Site
from engine.service import Engine

README_PICTURE = Path("docs/images/window.png")
LIMIT_S = 120
QUICK = {"engine": "static", "delay_ms": 0, "respect_robots": False, "max_depth": 5}


async def take(file: Path) -> int:
    """Fill a ledger, take the picture, and return the window's exit code."""
    with tempfile.TemporaryDirectory(prefix="oc-shot-") as place, Site(pages=120) as site:
        settings = Settings.at(home=Path(place))
        engine = Engine(settings, accepts=True)
        await engine.open()
        try:
            await _fill(engine, site.url)
            return await _picture(file, settings.home)
        finally:
            await engine.close()


async def _fill(engine: Engine, url: str) -> None:
    async def crawl(**args: Any) -> str:
        name = args.pop("name")
        record = await engine.start("crawl", {"url": url, **QUICK, **args}, name=name)
        return record.task_id

    ended = [
        await crawl(name="Handbook", max_pages=100),
        await crawl(name="Release notes", max_pages=40),
        await crawl(name="Price list", max_pages=30, failOnPage=12),
    ]
    for task_id in ended:
        await engine.wait(task_id)
    stopped = await crawl(name="Forum", max_pages=100, delay_ms=150)
    await _pages_of(engine, stopped, 5)
    await engine.cancel(stopped, "seen enough")
    await engine.wait(stopped)
    running = await crawl(name="Knowledge base", max_pages=120, delay_ms=120)
    await crawl(name="Blog", max_pages=80, delay_ms=350)
    await crawl(name="Archive", max_pages=120)
    await _pages_of(engine, running, 40)


async def _pages_of(engine: Engine, task_id: str, wanted: int) -> None:
    """Wait until the crawl has taken `wanted` pages."""
    async for _ in engine.changes():
        view = await engine.get(task_id)
        if view.units is not None and view.units.done >= wanted:
            return


async def _picture(file: Path, home: Path) -> int:
    file.parent.mkdir(parents=True, exist_ok=True)
    platform = {"QT_QPA_PLATFORM": os.environ.get("QT_QPA_PLATFORM", "offscreen")}
    window = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gui.app", "--home", str(home), "--shot", str(file)),
        env={**os.environ, **platform, "XDG_CONFIG_HOME": str(home / "config")},
    )
    return await window.wait()


def main() -> int:
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else README_PICTURE

    async def bounded() -> int:
        async with asyncio.timeout(LIMIT_S):
            return await take(file)

    code = asyncio.run(bounded())
    if code == 0:
        print(f"{file}: {file.stat().st_size / 1000:.0f} kB")
    return code


if __name__ == "__main__":
    sys.exit(main())
