"""20,000 renames over 400 tasks by another process; then the same with too few watches."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from engine.ledger.reader import LedgerReader
from engine.ledger.watch import Watch
from engine.model.records import TaskId, TaskRecord
from engine.service.feed import Feed
from tests.bench.report import report
from tests.support.task_folders import elsewhere, now_ns, write_meta

TASKS = 400
TURNS = 50
FEWER = TASKS // 2
LIMIT = Path("/proc/sys/user/max_inotify_watches")
FLOOD = """
root, tasks, turns = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
began = now_ns()
for turn in range(turns):
    for number in range(tasks):
        status = "COMPLETED" if turn == turns - 1 and number % 3 == 0 else "RUNNING"
        write_meta(root, number, status, objective=f"{turn} {number}")
print(json.dumps([began, now_ns()]), flush=True)
"""


async def flooded(root: Path) -> dict[str, object]:
    """Seconds from the end of the burst until the feed's picture is what is on disk."""
    watch = Watch(root)
    feed = Feed(LedgerReader(root), watch, ours=lambda _: False)
    picture: dict[TaskId, str | None] = {}
    states: set[str] = set()
    right_at = 0

    async def read() -> None:
        nonlocal right_at
        async for batch in feed.batches():
            states.add(watch.state)
            for view in batch.views:
                entry = view.entry
                words = entry.status + " " if isinstance(entry, TaskRecord) else ""
                picture[view.task_id] = words + (getattr(entry, "objective", "") or "")
            right_at = now_ns()

    reading = asyncio.create_task(read())
    while len(picture) < TASKS:
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    child = elsewhere(FLOOD, root, TASKS, TURNS)
    said, _ = await asyncio.to_thread(child.communicate)
    began, ended = json.loads(said)
    truth = {name: _words(root / name) for name in os.listdir(root)}
    async with asyncio.timeout(30):
        while picture != truth:
            await asyncio.sleep(0.005)
    await feed.close()
    await reading
    late_s = max(0.0, (right_at - ended) / 1e9)
    rate = TASKS * TURNS / ((ended - began) / 1e9)
    return {"late_s": late_s, "renames_per_s": rate, "states": sorted(states)}


def _words(folder: Path) -> str:
    meta = json.loads((folder / "meta.json").read_bytes())
    return f"{meta['status']} {meta['objective']}"


def once() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        for number in range(TASKS):
            write_meta(root, number)
        return asyncio.run(flooded(root))


def limited() -> dict[str, object] | None:
    """The same in a user namespace of its own whose watch limit is below the number of folders."""
    unshare = shutil.which("unshare")
    if unshare is None or not LIMIT.exists():
        return None
    inside = f"echo {FEWER} > {LIMIT} && exec {sys.executable} -m tests.bench burst --inside"
    done = subprocess.run(
        [unshare, "--user", "--map-root-user", "sh", "-c", inside],
        capture_output=True,
        text=True,
        check=False,
    )
    found: dict[str, object] | None = json.loads(done.stdout) if done.returncode == 0 else None
    return found


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench burst", description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    if parser.parse_args(argv).inside:
        print(json.dumps(once()))
        return
    found = {f"{TASKS} tasks": once(), f"only {FEWER} watches": limited()}
    rows = [
        # Rows are of mixed types.
        (name, TASKS * TURNS, one["renames_per_s"], ", ".join(one["states"]), one["late_s"])  # type: ignore[arg-type]
        if one
        else (name, "", "", "cannot be limited here", "")
        for name, one in found.items()
    ]
    whole, short = found.values()
    facts = {"renames": TASKS * TURNS, "late_s": whole and whole["late_s"]}
    facts |= {"limited_late_s": short and short["late_s"]}
    facts |= {"limited_states": short and short["states"]}
    heads = ("case", "renames", "renames/s", "watch", "right after s")
    report("burst", heads, rows, facts)
