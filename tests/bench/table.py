"""The cost of the live table: loading, sorting, filtering, a frame, and a flood of changes.

Times are processor time of the window's thread, so that a busy machine changes them less; `busy`
is what it works in one flush, repaint included. Of each sort first what it costs cold, when no
column has been read, then with columns that were read in slices, as the window does in idle time
(they take `columns read` in all, and the loop waits for one `step` at the most). Names of 20,000
tasks or more are made in slices, which a cold sort by them includes.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import msgspec

from engine.model.records import TaskRecord, TaskView, Units
from engine.query import Filter
from tests.bench.report import report, share

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

FLUSH_HZ = 25
FLOOD_PER_S = 20_000
FLUSHES = 150
WARM_UP = 10
ROUNDS = 3
BATCH = 500
SORTS = (
    [("age", True)],
    [("task", False)],
    [("updated", True)],
    [("progress", False)],
    [("status", False)],
    [("started", True)],
    [("ended", False)],
    [("took", True)],
    [("average", False)],
    [("rate", False)],
    [("status", False), ("task", False)],
    [("status", False), ("host", True), ("age", False)],
)
FILTERS = (
    *("host7", "host7 99", "h", "", "took:>1m"),
    *(
        "status:failed",
        "kind:crawl host:host7.example",
        "(status:failed OR status:running) age:<7h",
    ),
)


def made_views(count: int, now_ms: float) -> list[TaskView]:
    """`count` crawls of all ages; one in a hundred runs."""
    dice = random.Random(7)
    views = []
    for number in range(count):
        running = number % 100 == 0
        created = now_ms - dice.randrange(10**8)
        record = TaskRecord(
            task_id=f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}",
            kind="crawl",
            status="RUNNING" if running else dice.choice(("COMPLETED", "FAILED", "CANCELLED")),
            created_at=created,
            started_at=created + 5,
            ended_at=None if running else created + dice.randrange(10**6),
            args_summary={"url": f"https://host{dice.randrange(50)}.example/{dice.random()}"},
        )
        views.append(TaskView(record, units=Units(dice.randrange(50), 100)))
    return sorted(views, key=lambda view: -view.entry.created_at)


def cpu_ms(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return (time.thread_time() - began) * 1000


class Bench:
    """One table with `count` tasks."""

    def __init__(self, count: int) -> None:
        from PySide6.QtWidgets import QApplication

        from gui.tasks.task_model import TaskModel
        from gui.tasks.task_table import TaskTable

        self.app = QApplication.instance() or QApplication([])
        self.model, self.table = TaskModel(), TaskTable()
        self.table.setModel(self.model)
        self.table.resize(1200, 1080)
        self.table.show()
        self.count = count
        self.views = made_views(count, time.time() * 1000)
        self.made: list[float] = []
        self.steps: list[float] = []
        self.slices: list[float] = []
        self.rows: list[list[Any]] = []
        self.facts: dict[str, float] = {}

    def note(self, what: str, key: str, values: Sequence[float]) -> None:
        median, worst = share(values, 0.5), max(values)
        self.rows.append([f"{what}, {self.count:,} tasks", median, share(values, 0.99), worst])
        self.facts[f"{key}_{self.count // 1000}k_ms"] = median
        self.facts[f"{key}_{self.count // 1000}k_worst_ms"] = worst

    def turn(self, work: Callable[[], object]) -> float:
        """One turn of the window's loop with `work` in it, and the repaint it causes."""
        return cpu_ms(lambda: (work(), self.app.processEvents()))

    def run(self) -> None:
        batches = [self.views[at : at + BATCH] for at in range(0, self.count, BATCH)]
        puts = [self.turn(partial(self.model.put_many, batch)) for batch in batches]
        gc.collect()
        gc.freeze()  # the window does so, too, once the list is read
        self.note(f"put {BATCH}", "put", puts)
        # The least that any order costs here: one sort of as many records by their ids.
        bare = [view.entry for view in self.views]
        random.Random(1).shuffle(bare)
        floor = [cpu_ms(lambda: sorted(bare, key=attrgetter("task_id"))) for _ in range(5)]
        self.note("reference: sorted() by id", "reference_sort", floor)
        self.sorts()
        self.model.set_sort([("age", False)])
        steps = self.model.prepare_texts()
        texts = [cpu_ms(partial(next, steps, None)) for _ in range(self.count // 500 + 1)]
        self.note("texts for the first search, in all", "texts", [sum(texts)])
        self.note("  one step of it", "texts_step", texts)
        for text in FILTERS:
            times = []
            for _ in range(5):
                self.model.set_filter(Filter.of("no-such-thing"))
                times.append(cpu_ms(partial(self._type, text)))
                self.app.processEvents()
            self.note(f"filter '{text}'", f"filter_{text.replace(' ', '_') or 'cleared'}", times)
        frames = [self.turn(self.table.viewport().update) for _ in range(30)]
        self.note("whole frame", "frame", frames)
        self.flood()

    def sorts(self) -> None:
        """Each of them cold, with the columns read in slices, and used before."""
        spent: dict[str, list[list[float]]] = {}
        for _ in range(ROUNDS):
            cold = []
            for keys in SORTS:
                self.model.drop_columns()
                cold.append(self._sorted(keys))
            self.model.drop_columns()
            self._read_columns()
            for keys, first in zip(SORTS, cold, strict=True):
                name = "+".join(key for key, _ in keys)
                times = [first, self._sorted(keys), self._sorted(keys)]
                spent.setdefault(name, []).append(times)
        floor = self.facts[f"reference_sort_{self.count // 1000}k_ms"]
        for name, rounds in spent.items():
            cold, ready, again = ([times[at] for times in rounds] for at in range(3))
            self.note(f"sort by {name}, cold", f"sort_{name}_cold", cold)
            self.note("  with its columns read", f"sort_{name}", ready)
            self.note("  used before", f"sort_{name}_again", again)
            self.facts[f"sort_{name}_cold_{self.count // 1000}k_ratio"] = min(cold) / floor
        self.note("columns read, in all", "columns_read", self.made)
        self.note("  one step of it", "columns_read_step", self.steps)
        if self.slices:
            self.note("names for a sort, one slice", "names_slice", self.slices)

    def _sorted(self, keys: list[tuple[str, bool]]) -> float:
        """ms of this sort, from another order."""
        self.model.set_sort([("kind", False)])
        self.app.processEvents()
        spent = cpu_ms(partial(self.model.set_sort, keys))
        while self.model.is_sorting:
            self.slices.append(cpu_ms(self.app.processEvents))
            spent += self.slices[-1]
        self.app.processEvents()
        return spent

    def _read_columns(self) -> None:
        from gui.window.list_area import EXPENSIVE

        header = self.table.header()
        shown = [one.key for one in header.columns if header.is_wanted(one.key)]
        keys = (*shown, *EXPENSIVE, "host")
        steps = self.model.prepare_columns(keys)
        spent = [cpu_ms(partial(next, steps, None))]
        while self.model.lacks_columns(keys):
            spent.append(cpu_ms(partial(next, steps, None)))
        self.made.append(sum(spent))
        self.steps += spent

    def _type(self, text: str) -> None:
        self.model.set_filter(Filter.of(text))

    def flood(self) -> None:
        """20,000 progress reports a second over all tasks, flushed 25 times a second."""
        self.model.set_sort([("age", False)])
        # Everything runs now, so that everything can report progress.
        running = [
            msgspec.structs.replace(
                view,
                entry=msgspec.structs.replace(view.entry, status="RUNNING", ended_at=None),
                last_event_at=time.time() * 1000,
            )
            for view in self.views[: min(self.count, 10_000)]
        ]
        for at in range(0, len(running), BATCH):
            self.model.put_many(running[at : at + BATCH])
        self.app.processEvents()
        dice, busy = random.Random(3), []
        wall, cpu = time.perf_counter(), time.process_time()
        for flush in range(FLUSHES):
            now = time.time() * 1000
            chosen = dice.sample(range(len(running)), FLOOD_PER_S // FLUSH_HZ)
            news = [
                msgspec.structs.replace(
                    running[at], units=Units(50 + flush, 200), last_event_at=now
                )
                for at in chosen
            ]
            busy.append(self.turn(partial(self.model.put_many, news)))
            rest = wall + (flush + 1) / FLUSH_HZ - time.perf_counter()
            time.sleep(max(0.0, rest))  # the frame rate of the flood
        busy = busy[WARM_UP:]
        self.note("flood, busy a flush", "flood_busy", busy)
        key = f"flood_{self.count // 1000}k"
        self.facts[f"{key}_p99_ms"] = share(busy, 0.99)
        share_of_core = (time.process_time() - cpu) / (time.perf_counter() - wall)
        self.facts[f"{key}_core_share"] = share_of_core


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="table")
    parser.add_argument("--tasks", type=int, nargs="*", default=[10_000, 100_000])
    rows: list[list[Any]] = []
    facts: dict[str, float] = {}
    for count in parser.parse_args(words).tasks:
        bench = Bench(count)
        bench.run()
        bench.table.close()
        rows += bench.rows
        facts |= bench.facts
    report("table", ("ms of processor time", "median", "p99", "worst"), rows, facts)
    return 0
