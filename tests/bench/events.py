"""The cost of the Events tab on a file of any size: opening it and searching for a text.

A window on a ledger with one task whose events fill `--megabytes`: wall time from the click
until the newest events are in the table, then the search of all of it with the processor time
of the window's own thread in one go meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QWidget

from tests.bench.report import report
from tests.support.task_folders import task_id, write_meta

OPEN_MS, BUSY_MS = 500.0, 50.0
PATIENCE_S = 120.0
BEGAN = 1_780_000_000_000


def main(words: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="tests.bench events", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    megabytes = parser.parse_args(words).megabytes
    from gui.app import make_application
    from gui.startup.loop import run
    from gui.style.theme import Theme, apply_theme

    app = make_application()
    apply_theme(app, Theme.LIGHT)
    with tempfile.TemporaryDirectory(prefix="oc-events-") as folder:
        lines = plant(Path(folder) / "home" / "tasks", megabytes)
        facts = run(app, _measured(Path(folder)))
    rows = [(name, value) for name, value in facts.items()]
    report("events", ("what", "ms"), rows, {"megabytes": megabytes, "events": lines, **facts})
    busy = max(value for name, value in facts.items() if name.endswith("busy_ms"))
    return 1 if facts["open_ms"] > OPEN_MS or busy > BUSY_MS else 0


def plant(root: Path, megabytes: int) -> int:
    """One ended task with so many MB of events; how many they are."""
    folder = write_meta(root, 1, "COMPLETED", created_at=BEGAN)
    first, block = 0, list[str]()
    with (folder / "events.jsonl").open("w") as file:
        while file.tell() < megabytes * 1_000_000:
            for number in range(first, first + 10_000):
                message = f"https://a.test/{number}" + ("#needle" * (number % 100_000 == 99))
                data = {"unitsDone": number, "unitsTotal": 9_999_999, "message": message}
                event = {"ts": BEGAN + number, "kind": "progress", "data": data}
                block.append(json.dumps(event, separators=(",", ":")) + "\n")
            file.writelines(block)
            first += 10_000
            block.clear()
    return first


async def _measured(folder: Path) -> dict[str, Any]:
    from engine.model.config import Settings
    from gui.context.preferences import Memory
    from gui.startup.crash_handler import CrashHandler
    from gui.startup.session import Session
    from tests.loop_monitor import Heartbeat

    settings = Settings.at(home=folder / "home")
    session = Session(settings, Memory(folder / "w.ini"), CrashHandler(), accepts=False)
    loaded = asyncio.Event()
    session.window.bridge.loaded.connect(loaded.set)
    session.open()
    await loaded.wait()
    beat = Heartbeat()
    beat.start()
    window, tab = session.window, session.window.details.events
    window.details.restore_state("events")
    await asyncio.sleep(0.2)
    beat.take()
    began = time.perf_counter()
    window.table.select_ids([task_id(1)])
    await _until(lambda: tab.model.rowCount() > 500)
    opened = (time.perf_counter() - began) * 1000
    await _until(lambda: len(tab.model.kept) >= 50_000)
    reading = beat.take()
    began = time.perf_counter()
    tab.finding.field.setText("NEEDLE")
    tab.finding.settle()
    await _until(lambda: not tab.finder.busy)
    searched = (time.perf_counter() - began) * 1000
    found, searching = len(tab.finder.places), beat.take()
    began = time.perf_counter()
    tab.finding.step(1)
    await _until(lambda: tab.table.current_place() >= 0)
    jumped = (time.perf_counter() - began) * 1000
    tab.follow.setChecked(True)
    await _until(lambda: len(tab.model.kept) >= 50_000)
    beat.take()
    window.details.restore_state("timeline")
    await _until(lambda: bool(_rows_of_the_timeline(window.details)))
    await asyncio.sleep(0.2)
    timeline = beat.take()
    beat.stop()
    await session.close()
    return {
        "open_ms": opened,
        "read_busy_ms": reading.busy_ms,
        "search_ms": searched,
        "search_busy_ms": searching.busy_ms,
        "jump_ms": jumped,
        "timeline_busy_ms": timeline.busy_ms,
        "found": found,
    }


def _rows_of_the_timeline(details: QWidget) -> int:
    from gui.details.timeline import Timeline

    return sum(tab.model.rowCount() for tab in details.findChildren(Timeline))


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.002)


if __name__ == "__main__":
    raise SystemExit(main())
