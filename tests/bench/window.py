"""A crawl inside the window, its table live, against the bare Playwright loop of `bench crawl`.

Each side is a process of its own, in turn. The window is drawn on an invisible screen (or on
the one that QT_QPA_PLATFORM names) with the crawl's own row and details in sight. The warm-up
of engine and browser is told apart. "Stall" is wall time, so a busy machine lengthens it; "busy"
is the processor time of the window's thread between two sleeps.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.bench.crawl import CONCURRENCY, SIDE_LIMIT_S, Clock, bare_side
from tests.bench.report import report
from tests.bench.sides import Race

CPU_TARGET, PACE_TARGET = 1.20, 0.85
STALL_MS, BUSY_P99_MS, WARM_STALL_MS = 100.0, 8.0, 300.0
SIDES = ("window", "bare")


async def window_side(url: str, pages: int) -> dict[str, float]:
    from engine.model.config import Settings
    from gui.context.preferences import Memory
    from gui.startup.crash_handler import CrashHandler
    from gui.startup.session import Session
    from tests.loop_monitor import Heartbeat

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        session = Session(
            Settings.at(home=home), Memory(Path(folder) / "window.ini"), CrashHandler()
        )
        window, bridge = session.window, session.bridge
        opened = asyncio.Event()
        bridge.opened.connect(opened.set)
        beat = Heartbeat()
        beat.start()
        session.open()
        await opened.wait()
        await bridge.engine.warm()
        await asyncio.sleep(1)  # the window has said so, and rests
        warm_up = beat.take()
        batches: list[int] = []
        bridge.batch.connect(lambda batch: batches.append(len(batch.views)))
        clock = Clock()
        args: dict[str, Any] = {
            "url": f"{url}/",
            "scope": f"{url}/**",
            "max_pages": pages,
            "max_depth": 100,
            "delay_ms": 0,
            "concurrency": CONCURRENCY,
        }
        task = await bridge.engine.requests.start("crawl", args)
        window.requests.started.emit(task.task_id)
        ended = await bridge.engine.tasks.wait(task.task_id, SIDE_LIMIT_S * 1000)
        kept = (home / "tasks" / task.task_id / "pages.jsonl").read_bytes()
        told = clock.told([json.loads(line) for line in kept.splitlines()])
        pulse = beat.take()
        beat.stop()
        assert ended.status == "COMPLETED", ended
        assert window.table.selected_ids() == [task.task_id]
        await session.close()
        return told | {
            "stall_ms": pulse.stall_ms,
            "busy_ms": pulse.busy_ms,
            "busy_p99_ms": pulse.busy_p99_ms,
            "warm_stall_ms": warm_up.stall_ms,
            "warm_busy_ms": warm_up.busy_ms,
            "repaints": len(batches),
        }


def in_window(url: str, pages: int) -> dict[str, float]:
    from gui.app import make_application
    from gui.startup.loop import run
    from gui.style.theme import Theme, apply_theme

    app = make_application()
    apply_theme(app, Theme.LIGHT)
    return run(app, window_side(url, pages))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench window", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.side:
        bare = given.side == "bare"
        told = (
            asyncio.run(bare_side(given.url, given.pages))
            if bare
            else in_window(given.url, given.pages)
        )
        print(json.dumps(told))
        return 0
    serve = [sys.executable, "-m", "fixtures.site", "--port", "0", "--pages", str(given.pages * 2)]
    measured = Race("window", SIDES, SIDE_LIMIT_S).run(serve, given.rounds, given.pages, "/js")
    _tell(measured, given)
    return 0


def _tell(measured: dict[str, list[dict[str, float]]], given: argparse.Namespace) -> None:
    def all_of(key: str) -> list[float]:
        return [told[key] for told in measured["window"]]

    def middle(side: str, key: str) -> float:
        return statistics.median(told[key] for told in measured[side])

    pairs = list(zip(measured["window"], measured["bare"], strict=True))
    facts = {
        "rounds": given.rounds,
        "pages": given.pages,
        "cpu_ratio": middle("window", "cpu_ms") / middle("bare", "cpu_ms"),
        "pace_ratio": middle("window", "pages_s") / middle("bare", "pages_s"),
        "cpu_ratio_of_rounds": statistics.median(a["cpu_ms"] / b["cpu_ms"] for a, b in pairs),
        "pace_ratio_of_rounds": statistics.median(a["pages_s"] / b["pages_s"] for a, b in pairs),
        "cpu_target": CPU_TARGET,
        "pace_target": PACE_TARGET,
        "stall_ms_each": [round(value, 1) for value in all_of("stall_ms")],
        "stall_target_ms": STALL_MS,
        "busy_ms_longest": max(all_of("busy_ms")),
        "busy_p99_ms": max(all_of("busy_p99_ms")),
        "busy_p99_target_ms": BUSY_P99_MS,
        "warm_stall_ms_each": [round(value, 1) for value in all_of("warm_stall_ms")],
        "warm_stall_target_ms": WARM_STALL_MS,
        "warm_busy_ms_longest": max(all_of("warm_busy_ms")),
        "repaints": middle("window", "repaints"),
    }
    rows = [
        (side, *(middle(side, key) for key in ("pages_s", "cpu_ms", "own_ms", "whole")))
        for side in SIDES
    ]
    report("window", ("side", "pages/s", "CPU ms/page", "of it Python", "whole pages"), rows, facts)
