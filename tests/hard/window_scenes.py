"""Daily faults, each played to an open window: its messages and their times.

A scene is a coroutine of a `Stage`; it returns its facts and, as sentences, what was missed.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from engine.model.records import TERMINAL, TaskRecord
from fixtures.hostile_ledger.planting import plant, remove_devices
from fixtures.site.site import Site
from gui.startup.session import Session
from gui.tasks.columns import COLUMNS
from tests.loop_monitor import Heartbeat, Pulse
from tests.support.task_folders import elsewhere, task_id, write_meta

RSS_MB, HISTORY_MS, FIRST_S, ALL_S, FRESH_S = 150.0, 500.0, 1.0, 3.0, 2.0
PATIENCE_S = 60.0
CALM = 1.0  # load beside ours: above it wall time tells of the machine
LONG_LINE = 20_000_000
FLOOD = """
import json
root, tasks, turns = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
for turn in range(turns):
    for number in range(tasks):
        status = "COMPLETED" if turn == turns - 1 and number % 3 == 0 else "RUNNING"
        begun = int(time.time() * 1000)
        write_meta(root, number, status, objective=f"{turn} {number}", created_at=begun)
print(now_ns(), flush=True)
sys.stdin.readline()  # tasks of a process that is gone would be ended
"""


@dataclass
class Stage:
    """One window on one ledger, its heartbeat, and what came of the scene."""

    home: Path
    short: bool
    open_window: Callable[[], Session]
    beat: Heartbeat
    facts: dict[str, Any] = field(default_factory=dict)
    misses: list[str] = field(default_factory=list)
    pulses: list[tuple[str, Pulse]] = field(default_factory=list)
    session: Session | None = None

    @property
    def root(self) -> Path:
        return self.home / "tasks"

    async def open(self) -> Session:
        """The window, once its list is complete."""
        self.session = session = self.open_window()
        loaded = asyncio.Event()
        session.window.bridge.loaded.connect(loaded.set)
        self.beat.take()  # making a window is no part of any scene
        session.window.show()
        await asyncio.sleep(0.1)
        self.rest("first paint")
        session.open()
        await asyncio.wait_for(loaded.wait(), PATIENCE_S)
        self.rest("reading the ledger")
        return session

    def rest(self, what: str) -> Pulse:
        """Keep what the loop's heart told since the last rest, as the time of `what`."""
        pulse = self.beat.take()
        self.pulses.append((what, pulse))
        return pulse

    def limit(self, what: str, value: float, most: float, *, wall: bool = True) -> None:
        """Note a fact, and a miss when it is above `most`; a busy machine excuses what is
        `wall` time, and so do the tests that the short form runs beside."""
        self.facts[what] = round(value, 2)
        if value > most and (not wall or (not self.short and other_load() < CALM)):
            self.misses.append(f"{what}: {value:.2f}, and {most:g} is the most")


def other_load() -> float:
    """How many others wanted a processor in the last minute."""
    return max(0.0, float(psutil.getloadavg()[0]) - 1)


async def until(condition: Callable[[], Any], limit_s: float = PATIENCE_S) -> float:
    """Seconds until `condition` holds; `limit_s` when it never does."""
    began = time.monotonic()
    while not condition() and time.monotonic() - began < limit_s:
        await asyncio.sleep(0.005)
    return time.monotonic() - began


def resident_mb() -> float:
    return float(psutil.Process().memory_info().rss) / 1e6


def on_disk(root: Path) -> dict[str, str]:
    """Status and objective of each task as they stand in the files."""
    found = {}
    for place in root.glob("[0-9a-f]*/meta.json"):
        meta = json.loads(place.read_bytes())
        found[place.parent.name] = f"{meta['status']} {meta.get('objective')}"
    return found


def in_table(session: Session) -> dict[str, str]:
    """The same as the table knows it."""
    model = session.window.model
    views = (model.view_of(model.id_at(row)) for row in range(model.rowCount()))
    found = {}
    for view in views:
        entry = view.entry if view is not None else None
        if isinstance(entry, TaskRecord):
            found[entry.task_id] = f"{entry.status} {entry.objective}"
    return found


async def hostile(stage: Stage) -> None:
    """R33: a root full of malformed folders: open, select each, scroll, sort, filter."""
    planted = plant(stage.root)
    try:
        before = resident_mb()
        session = await stage.open()
        window, model = session.window, session.window.model
        listed = {one for one, trap in planted.by_id.items() if trap.listed != "absent"}
        shown = {model.id_at(row) for row in range(model.rowCount())}
        stage.facts["folders"] = len(planted.by_id) + len(planted.ignored)
        stage.facts["rows"] = len(shown)
        if shown != listed:
            stage.misses.append(f"rows that differ from what stands there: {shown ^ listed}")
        slowest = 0.0
        for number, one in enumerate(sorted(shown)[:: 24 if stage.short else 1]):
            window.details.restore_state("events" if number % 2 else "overview")
            await asyncio.sleep(0)
            stage.rest("choosing a tab")
            window.table.select_ids([one])
            await asyncio.sleep(0.03)
            slowest = max(slowest, stage.rest("selecting a row").busy_ms)
        stage.limit("selecting a row, ms of work", slowest, 100, wall=False)
        await _handle(stage, session)
        stage.limit("memory grown by, MB", resident_mb() - before, RSS_MB, wall=False)
    finally:
        remove_devices(stage.root)


async def _handle(stage: Stage, session: Session) -> None:
    window = session.window
    for column in COLUMNS:
        window.model.set_sort([(column.key, True)])
        await asyncio.sleep(0.02)
        stage.rest(f"sorting by {column.key}")
    for row in range(0, window.model.rowCount(), 7):
        window.table.scrollTo(window.model.index(row, 0))
        await asyncio.sleep(0)
    stage.rest("scrolling")
    for text in ("e", "zzz", "\u202e", '"', "A&B", ""):
        window.filter_bar.set_text(text)
        await asyncio.sleep(0.02)
    stage.rest("filtering")
    window.table.selectAll()
    await asyncio.sleep(0.02)
    stage.rest("selecting all")
    window.acts["copy_rows"].trigger()
    await asyncio.sleep(0.02)
    stage.rest("copying all")


async def history(stage: Stage) -> None:
    """R39: 200,000 events, and a line of 20 MB among the newest thousand."""
    folder = write_meta(stage.root, 1, "COMPLETED", created_at=1_780_000_000_000)
    number = 20_000 if stage.short else 200_000
    with (folder / "events.jsonl").open("wb") as file:
        for at in range(number):
            if at == number - 500:
                head = b'{"ts":1780000000000,"kind":"log","data":{"note":"'
                file.write(head + b"x" * LONG_LINE + b'"}}\n')
            data = {"unitsDone": at, "unitsTotal": number, "message": f"https://a.test/{at}"}
            event = {"ts": 1_780_000_000_000 + at, "kind": "progress", "data": data}
            file.write(json.dumps(event).encode() + b"\n")
    session = await stage.open()
    window, model = session.window, session.window.details.events.model
    window.details.restore_state("events")
    began = time.monotonic()
    window.table.select_ids([task_id(1)])
    await until(lambda: model.rowCount() > 1000)
    stage.rest("the newest events")
    stage.limit("the newest 1,000 shown after, ms", (time.monotonic() - began) * 1000, HISTORY_MS)
    texts = [model.row_at(row).text for row in range(model.rowCount())]
    if not any(text.endswith("… (20 MB)") for text in texts):
        stage.misses.append("the line of 20 MB is not shown with its size")
    seconds = await until(lambda: model.rowCount() >= min(number, 50_000))
    stage.facts["the older ones behind it after, s"] = round(seconds, 2)
    stage.facts["events counted"] = model.total
    if model.total != number + 1:
        stage.misses.append(f"{model.total} events are counted, and there are {number + 1}")
    stage.rest("older events")
    window.details.events.table.selectAll()
    await asyncio.sleep(0.02)
    stage.rest("selecting all events")
    window.details.events.copy()
    await asyncio.sleep(0.02)
    stage.rest("copying all events")


async def gone(stage: Stage) -> None:
    """R52: the root vanishes under the window, and comes back."""
    for number in range(200):
        write_meta(stage.root, number, "COMPLETED")
    session = await stage.open()
    window = session.window
    aside = stage.home / "aside"
    stage.root.rename(aside)
    seconds = await until(lambda: window.area.state == "trouble" and not window.model.total)
    stage.facts["emptied after, s"] = round(seconds, 2)
    await asyncio.sleep(0.2)
    aside.rename(stage.root)
    seconds = await until(lambda: window.model.total == 200 and window.area.state == "table")
    stage.limit("rows back after, s", seconds, FRESH_S)


async def flood(stage: Stage) -> None:
    """R56: 400 tasks rewritten 50 times each by another process, which goes on living."""
    tasks, turns = (100, 10) if stage.short else (400, 50)
    for number in range(tasks):
        write_meta(stage.root, number, "COMPLETED")
    session = await stage.open()
    child = elsewhere(FLOOD, stage.root, tasks, turns)
    assert child.stdout is not None
    said = await asyncio.to_thread(child.stdout.readline)
    truth = on_disk(stage.root)
    await until(lambda: in_table(session) == truth)
    if in_table(session) != truth:
        stage.misses.append(f"the table never showed what stands on disk, in {PATIENCE_S:.0f} s")
    late = (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - int(said)) / 1e9
    await asyncio.to_thread(child.communicate)
    stage.facts["rewrites"] = tasks * turns
    stage.limit("right after the flood, s", late, FRESH_S)


async def many(stage: Stage) -> None:
    """R60: thousands of tasks."""
    tasks = 1_000 if stage.short else 5_000
    for number in range(tasks):
        args = {"url": f"https://example.org/{number}"}
        write_meta(stage.root, number, "COMPLETED", created_at=1_780_000_000_000, args_summary=args)
    began = time.monotonic()
    opening = asyncio.ensure_future(stage.open())
    first = await until(lambda: stage.session is not None and stage.session.window.model.total)
    session = await opening
    stage.limit("first rows after, s", first, FIRST_S)
    stage.limit(f"all {tasks} rows after, s", time.monotonic() - began, ALL_S)
    await _handle(stage, session)


async def full_disk(stage: Stage) -> None:
    """A ledger of 256 KiB that fills up while work is asked of it, and is freed again."""
    stage.root.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(stage.root)]
    if (
        sys.platform != "linux"
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        stage.facts["a small disk"] = "cannot be mounted here"
        return
    try:
        await _work_on_a_full_disk(stage)
    finally:
        if stage.session is not None:
            await stage.session.close()
            stage.session = None
        subprocess.run(["umount", "-l", str(stage.root)], check=False)


async def _work_on_a_full_disk(stage: Stage) -> None:
    session = await stage.open()
    bridge = session.bridge
    told: list[object] = []
    bridge.failed.connect(told.append)
    filler = stage.root / ".filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
            file.flush()
    with Site(50) as site:
        for _ in range(3):
            bridge.start("crawl", {"url": site.url, "engine": "static", "max_pages": 2})
        await until(lambda: len(told) >= 3, 20)
        stage.facts["refused for want of room"] = len(told)
        if len(told) < 3 or not session.window.banner.title:
            stage.misses.append("a start on a full disk is not told in a banner")
        filler.unlink()
        args = {"url": site.url, "engine": "static", "max_pages": 2, "delay_ms": 0}
        record = await bridge.engine.requests.start("crawl", args)
        ended = await bridge.engine.tasks.wait(record.task_id, 20_000)
        stage.facts["after room was made"] = ended.status
        if ended.status != "COMPLETED":
            stage.misses.append("after room was made nothing could be started")


async def crawl(stage: Stage) -> None:
    """The sample site in a real browser, its row and details in sight."""
    await _crawl(stage, lambda: asyncio.sleep(0))


async def killed_browser(stage: Stage) -> None:
    """The same, with the browser killed again and again."""

    async def kill() -> None:
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                line = " ".join(process.cmdline())
                if "--user-data-dir=" in line and "--type=" not in line:
                    process.kill()
                    stage.facts["browsers killed"] = stage.facts.get("browsers killed", 0) + 1

    await _crawl(stage, kill)


async def _crawl(stage: Stage, disturb: Callable[[], Awaitable[None]]) -> None:
    session = await stage.open()
    engine, window = session.bridge.engine, session.window
    await engine.warm()
    await asyncio.sleep(0.5)
    stage.facts["warm-up, ms of work"] = round(stage.beat.take().busy_ms, 1)
    pages = 20 if stage.short else 100
    with Site(pages) as site:
        args = {"url": site.url, "max_pages": pages, "delay_ms": 0, "max_depth": 100}
        record = await engine.requests.start("crawl", args)
        window.requests.started.emit(record.task_id)
        for at in (0.2, 0.5, 0.8):
            folder = stage.root / record.task_id / "pages.jsonl"
            await until(partial(_has_lines, folder, at * pages))
            await disturb()
        ended = await engine.tasks.wait(record.task_id, int(PATIENCE_S * 1000))
    stage.facts["pages"] = _lines(stage.root / record.task_id / "pages.jsonl")
    await until(lambda: in_table(session) == on_disk(stage.root), 5)
    if ended.status not in TERMINAL or stage.facts["pages"] != pages:
        stage.misses.append(f"the crawl is {ended.status} with {stage.facts['pages']} pages")


def _has_lines(file: Path, number: float) -> bool:
    return _lines(file) >= number


def _lines(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0


SCENES: dict[str, Callable[[Stage], Awaitable[None]]] = {
    "hostile ledger": hostile,
    "20 MB of events": history,
    "deleted root": gone,
    "full disk": full_disk,
    "flood": flood,
    "5,000 tasks": many,
    "crawl": crawl,
    "killed browser": killed_browser,
}
