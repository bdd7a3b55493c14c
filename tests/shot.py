"""`./dev shot [FILE | --tour]`: the pictures of README and docs, taken by the program itself.

A throw-away ledger is filled with real crawls of the sample site, one of each outcome and
one still under way, and the window is asked for its picture (`--shot`).
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.model.config import Settings
from engine.service.admission import Terms
from engine.service.engine import Engine
from fixtures.site.site import Site

IMAGES = Path("docs/images")
README_PICTURE = IMAGES / "window.png"
# What docs/window.md shows; `--scene` has more.
TOUR = (
    *("dark", "narrow", "empty", "details", "events", "timeline", "items", "commands"),
    *("filter", "several", "ledgers", "start", "cancel", "force", "rerun", "viewer"),
    *("palette", "settings", "doctor", "statistics"),
)
OTHER = "laptop"
LIMIT_S = 300
BUDGETED = Terms(policy={"maxToolCalls": 50, "maxWallMs": 600_000, "maxFailureStreak": 4})
QUICK = {"engine": "static", "delay_ms": 0, "respect_robots": False, "max_depth": 5}


async def take(files: Mapping[str, Path]) -> int:
    """Fill a ledger and take a picture of each scene; the first exit code that is not 0."""
    with tempfile.TemporaryDirectory(prefix="oc-shot-") as place, Site(pages=600) as site:
        settings = Settings.at(home=Path(place) / "here")
        beside = await _another(Path(place) / OTHER, site.url)
        engine = Engine(settings, accepts=True)
        await engine.open()
        try:
            await _fill(engine, site.url)
            for scene, file in files.items():
                others = (beside,) if scene == "ledgers" else ()
                if code := await _picture(file, settings.home, scene, *others):
                    return code
            return 0
        finally:
            await engine.close()


async def _another(home: Path, url: str) -> Path:
    """The ledger of another machine, as it is shared; the folder of its tasks."""
    engine = Engine(Settings.at(home=home), accepts=True)
    await engine.open()
    try:
        for name, more in (("Wiki", {}), ("Shop", {"failOnPage": 3}), ("News", {})):
            args = {"url": url, **QUICK, "max_pages": 12, **more}
            await engine.tasks.wait((await engine.requests.start("crawl", args, name=name)).task_id)
    finally:
        await engine.close()
    return engine.settings.root


async def _fill(engine: Engine, url: str) -> None:
    """A ledger as an operator has it: all kinds, all outcomes, and some still under way."""

    async def crawl(**args: Any) -> str:
        given = {key: args.pop(key) for key in ("name", "terms") if key in args}
        record = await engine.requests.start("crawl", {"url": url, **QUICK, **args}, **given)
        return record.task_id

    ended = [
        await crawl(name="Handbook", max_pages=100),
        await crawl(name="Release notes", max_pages=40),
        await crawl(name="Price list", max_pages=30, failOnPage=12),
        (await engine.requests.start("commands", _steps(url), name="Sign in")).task_id,
        (
            await engine.requests.start("oc_evidence_bundle", {"url": url}, name="Front page")
        ).task_id,
    ]
    for task_id in ended:
        await engine.tasks.wait(task_id)
    stopped = await crawl(name="Forum", max_pages=100, delay_ms=150)
    await _pages_of(engine, stopped, 5)
    await engine.commands.cancel(stopped, "seen enough")
    await engine.tasks.wait(stopped)
    await engine.requests.start(
        "browser_task", {"objective": "Book the cheapest flight"}, terms=BUDGETED
    )
    pages = Terms(contract={"expected_total": 500})
    running = await crawl(name="Knowledge base", max_pages=500, delay_ms=350, terms=pages)
    await crawl(name="Blog", max_pages=400, delay_ms=500)
    await crawl(name="Archive", max_pages=120)
    await _pages_of(engine, running, 40)


def _steps(url: str) -> dict[str, Any]:
    def step(tool: str, intention: str, action: str, **args: Any) -> dict[str, Any]:
        return {"tool_name": tool, "intention": intention, "args": {"action": action, **args}}

    return {
        "task_name": "Look at the front page",
        "task_intention": "See that it stands and leads somewhere",
        "commands": [
            step("browser_navigate", "Open it", "goto", url=url),
            step("browser_content", "Keep what it looks like", "screenshot"),
            step("browser_content", "Read its heading", "get_text", selector="h1"),
            step("browser_interact", "Follow its first link", "click", selector="a"),
        ],
    }


async def _pages_of(engine: Engine, task_id: str, wanted: int) -> None:
    """Wait until the crawl has taken `wanted` pages."""
    async for _ in engine.tasks.changes():
        view = await engine.tasks.get(task_id)
        if view.units is not None and view.units.done >= wanted:
            return


async def _picture(file: Path, home: Path, scene: str, *beside: Path) -> int:
    file.parent.mkdir(parents=True, exist_ok=True)
    platform = {"QT_QPA_PLATFORM": os.environ.get("QT_QPA_PLATFORM", "offscreen")}
    words = [sys.executable, "-m", "gui.app", "--home", str(home), "--shot", str(file)]
    window = await asyncio.create_subprocess_exec(
        *(*words, "--scene", scene),
        *(word for one in beside for word in ("--beside", str(one))),
        env={**os.environ, **platform, "XDG_CONFIG_HOME": str(home / "config")},
    )
    return await window.wait()


def main() -> int:
    words = sys.argv[1:]
    files = {name: IMAGES / f"{name}.png" for name in TOUR} if words == ["--tour"] else {}
    files = files or {"main": Path(words[0]) if words else README_PICTURE}

    async def bounded() -> int:
        async with asyncio.timeout(LIMIT_S):
            return await take(files)

    code = asyncio.run(bounded())
    for file in files.values() if code == 0 else ():
        print(f"{file}: {file.stat().st_size / 1000:.0f} kB")
    return code


if __name__ == "__main__":
    sys.exit(main())
