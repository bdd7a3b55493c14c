"""From a meta.json renamed into place by another process to the changed row."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from engine.ledger.reader import LedgerReader
from engine.ledger.watch import Watch
from engine.model.records import TaskRecord
from engine.service.feed import Batch, Feed
from tests.bench.report import report, share
from tests.support.task_folders import elsewhere, now_ns, write_meta

TASKS = 100
RENAMES = """
import random
root, count, tasks = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
times = []
for number in range(count):
    time.sleep(random.uniform(0.005, 0.08))  # arrivals at random times
    fresh = number % 10 == 9  # now and then a task that was not there before
    times.append(now_ns())
    write_meta(root, tasks + number if fresh else random.randrange(tasks), objective=str(number))
print(json.dumps(times), flush=True)
"""


async def delivered(root: Path, renames: int, take: Callable[[Batch], None]) -> list[float]:
    """Milliseconds from just before each rename until its row was taken by `take`."""
    feed = Feed(LedgerReader(root), Watch(root), ours=lambda _: False)
    seen: dict[int, int] = {}
    loaded = asyncio.Event()

    async def read() -> None:
        async for batch in feed.batches():
            take(batch)
            now = now_ns()
            for view in batch.views:
                if isinstance(view.entry, TaskRecord) and view.entry.objective:
                    seen.setdefault(int(view.entry.objective), now)
            if batch.complete:
                loaded.set()

    reading = asyncio.create_task(read())
    await loaded.wait()
    await asyncio.sleep(0.5)  # the watches on the live tasks are in place by then
    child = elsewhere(RENAMES, root, renames, TASKS)
    said, _ = await asyncio.to_thread(child.communicate)
    await asyncio.sleep(0.5)
    await feed.close()
    await reading
    times: list[int] = json.loads(said)
    # A record that was replaced again before it was read has no row of its own.
    return [(seen[number] - time) / 1e6 for number, time in enumerate(times) if number in seen]


def in_the_model(root: Path, renames: int) -> list[float] | None:
    """The same, as far as the changed row in the window's model; None without Qt."""
    with contextlib.suppress(ImportError):
        from PySide6.QtWidgets import QApplication

        from gui.startup.loop import run
        from gui.tasks.task_model import TaskModel

        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
        app = QApplication([])
        model = TaskModel()

        def take(batch: Batch) -> None:
            model.put_many(batch.views)
            model.drop_many(batch.gone)

        late = run(app, delivered(root, renames, take))
        model.deleteLater()
        return late
    return None


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench rename_to_row", description=__doc__)
    parser.add_argument("--renames", type=int, default=400)
    renames = parser.parse_args(argv).renames
    found: dict[str, list[float]] = {}
    for name in ("feed", "model"):
        with tempfile.TemporaryDirectory() as place:
            root = Path(place)
            for number in range(TASKS):
                write_meta(root, number)
            if name == "feed":
                found[name] = asyncio.run(delivered(root, renames, lambda batch: None))
            elif (late := in_the_model(root, renames)) is not None:
                found[name] = late
    rows = [
        (name, renames, len(late), share(late, 0.5), share(late, 0.99), max(late))
        for name, late in found.items()
    ]
    facts: dict[str, object] = {"renames": renames}
    for name, late in found.items():
        facts |= {f"{name}_p50_ms": share(late, 0.5), f"{name}_p99_ms": share(late, 0.99)}
    heads = ("up to", "renames", "rows", "p50 ms", "p99 ms", "max ms")
    report("rename_to_row", heads, rows, facts)
