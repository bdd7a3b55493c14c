"""A whole window under news: its first load, then 20,000 reports a second, of 100,000 tasks.

Everything that listens to the list is there: sidebar, views, bulk bar, bell, details of a task
that takes part. Times are processor time of the window's thread; `busy` is what it works between
two sleeps of its loop, the repaint included, and `flush` all that it works in 40 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from engine.model.records import TaskView, Units
from engine.service.feed import Batch
from tests.bench.report import report, share
from tests.bench.table import made_views

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

FLUSH_S = 0.04
PER_S = 20_000
RUNNING = 10_000
FLUSHES = 150
WARM_UP = 10
BATCH = 2000
TURN_MS, BUSY_MS, CORE_PERCENT = 50.0, 6.0, 20.0


class Flooded(NamedTuple):
    """ms of work between two sleeps, ms of work in each 40 ms, and % of a core."""

    turns: list[float]
    flushes: list[float]
    percent: float


class Clock:
    """The work of this thread between two sleeps of its loop, ms."""

    def __init__(self) -> None:
        from PySide6.QtCore import QAbstractEventDispatcher

        self.worked: list[float] = []
        self._last = time.thread_time()
        dispatcher = QAbstractEventDispatcher.instance()
        assert dispatcher is not None
        dispatcher.awake.connect(self._note)
        dispatcher.aboutToBlock.connect(self._note)

    def _note(self) -> None:
        now = time.thread_time()
        self.worked.append((now - self._last) * 1000)
        self._last = now

    def take(self) -> list[float]:
        self._note()
        worked, self.worked = self.worked, []
        return worked


def batch(views: list[TaskView], loaded: int, total: int) -> Batch:
    return Batch(views=tuple(views), gone=(), loaded=loaded, total=total, complete=loaded == total)


async def load(bridge: Any, views: list[TaskView], clock: Clock) -> list[float]:
    clock.take()
    for at in range(0, len(views), BATCH):
        loaded = min(len(views), at + BATCH)
        bridge._flow.add(batch(views[at:loaded], loaded, len(views)))
        while bridge._flow._views:
            await asyncio.sleep(0)
    await asyncio.sleep(0.3)
    return clock.take()


def made_news(views: list[TaskView]) -> list[Batch]:
    """A batch for every flush, made before the clock runs: another process reads them."""
    dice, total = random.Random(3), len(views)
    live, now = views[:RUNNING], time.time() * 1000
    return [
        batch([progressed(live[at], flush, now) for at in picked], total, total)
        for flush in range(FLUSHES)
        for picked in [dice.sample(range(len(live)), int(PER_S * FLUSH_S))]
    ]


def progressed(view: TaskView, flush: int, now: float) -> TaskView:
    moment = now + flush * FLUSH_S * 1000
    return msgspec.structs.replace(view, units=Units(50 + flush, 900), last_event_at=moment)


async def flood(bridge: Any, news: list[Batch], clock: Clock) -> Flooded:
    busy: list[float] = []
    clock.take()
    wall, cpu = time.perf_counter(), time.thread_time()
    for flush, told in enumerate(news):
        worked = time.thread_time()
        bridge._flow.add(told)
        await asyncio.sleep(max(0.0, wall + (flush + 1) * FLUSH_S - time.perf_counter()))
        busy.append((time.thread_time() - worked) * 1000)
        if flush == WARM_UP:
            clock.take()
    share_of_core = (time.thread_time() - cpu) / (time.perf_counter() - wall)
    return Flooded(clock.take(), busy[WARM_UP:], share_of_core * 100)


def running(view: TaskView) -> TaskView:
    now = time.time() * 1000
    entry = msgspec.structs.replace(view.entry, status="RUNNING", ended_at=None)
    return msgspec.structs.replace(view, entry=entry, last_event_at=now)


async def measure(count: int) -> None:
    from engine.model.config import Settings
    from gui.context.preferences import Memory
    from gui.startup.crash_handler import CrashHandler
    from gui.startup.session import Session

    with tempfile.TemporaryDirectory() as place:
        home = Path(place) / "home"
        (home / "tasks").mkdir(parents=True)  # a ledger that is gone would stand before the table
        settings = Settings.at(home=home)
        session = Session(settings, Memory(Path(place) / "m.ini"), CrashHandler(), accepts=False)
        session.window.resize(1200, 900)
        session.open()
        await asyncio.sleep(1.0)
        clock = Clock()
        views = made_views(count, time.time() * 1000)
        views[:RUNNING] = map(running, views[:RUNNING])
        turns = await load(session.bridge, views, clock)
        session.window.table.select_ids([views[1].task_id])
        await asyncio.sleep(1.0)
        clock.take()
        assert session.window.area.state == "table"
        busy, flushes, percent = await flood(session.bridge, made_news(views), clock)
        long = sum(1 for turn in turns if turn > TURN_MS)
        rows = [
            ("load: busy, ms", share(turns, 0.5), share(turns, 0.99), max(turns), TURN_MS),
            ("flood: busy, ms", share(busy, 0.5), share(busy, 0.99), max(busy), BUSY_MS),
            ("flood: a flush, ms", share(flushes, 0.5), share(flushes, 0.99), max(flushes), ""),
            ("flood: % of a core", percent, "", "", CORE_PERCENT),
        ]
        facts = {
            "load_s": sum(turns) / 1000,
            "turn_worst_ms": max(turns),
            "turns_too_long": long,
            "busy_median_ms": share(busy, 0.5),
            "flush_p99_ms": share(flushes, 0.99),
            "busy_p99_ms": share(busy, 0.99),
            "core_percent": percent,
        }
        report("flood", ("what", "median", "p99", "worst", "most"), rows, facts)
        await session.close()


def main(argv: list[str]) -> None:
    from gui.app import make_application
    from gui.startup.loop import run

    parser = argparse.ArgumentParser(prog="bench flood", description=__doc__)
    parser.add_argument("--tasks", type=int, default=100_000)
    run(make_application(), measure(parser.parse_args(argv).tasks))
