"""Orphans that another program has locked: dead holders delay nothing, living ones lose nothing.

First locks of dead holders, own and Node's, of every date: rows and a start must not wait, and
all are reaped without a restart. Then a Node program that holds the locks of many orphans, while
programs with three clocks try to end them. At last a tool that rewrites a record in place.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

from engine.ledger import machine
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.ledger.reaper import Reaper
from engine.model.config import Settings
from engine.model.records import TaskRecord, Unreadable
from engine.service.engine import Engine
from tests.hard.figures import Figures, most_s
from tests.hard.peer import node_modules
from tests.hard.rewriter import rewrite

REPO = Path(__file__).resolve().parents[2]
HOLDER = Path(__file__).with_name("holder.mjs")
AGES_S = (3_600, 0, -7_200, -31_536_000)
STEPS_S = (0, 7_200, -7_200)
ROWS_S, START_S, REAPED_S, SETTLED_S = 1.0, 1.0, 15.0, 2.0
CRAWL = {"url": "http://site.invalid/", "engine": "static", "max_pages": 1}


def orphan(root: Path, number: int) -> Path:
    folder = root / f"{number:016x}"
    folder.mkdir(parents=True)
    raw = {"task_id": folder.name, "kind": "crawl", "status": "RUNNING", "pid": 0}
    raw |= {"created_at": machine.wall_ms() - number, "args_summary": {}}
    (folder / "meta.json").write_text(json.dumps(raw))
    return folder


def leave_locked(folder: Path, number: int) -> None:
    """As a killed program leaves it: every second one by Node, in four dates."""
    (folder / ".lock").write_bytes(b"{}")
    place = folder / ".lock.lock"
    place.mkdir()
    then = round(time.time() - AGES_S[number // 2 % 4], 3)
    os.utime(place, (then, then))
    if number % 2:
        facts = place.stat()
        (folder / "lock").write_text(json.dumps({"dir": [facts.st_ino, facts.st_mtime_ns]}))


async def beside_dead_locks(orphans: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        for number in range(orphans):
            leave_locked(orphan(home / "tasks", number), number)
        engine = Engine(Settings.at(home=home), accepts=True)
        began = time.monotonic()
        found: dict[str, float] = {}
        left = {f"{number:016x}" for number in range(orphans)}
        await engine.open(list_first=True)
        try:
            async with aclosing(engine.tasks.changes()) as batches:
                async for batch in batches:
                    if "rows s" not in found:
                        found["rows s"] = time.monotonic() - began
                        asked = time.monotonic()
                        await engine.requests.start("crawl", CRAWL)
                        found["start s"] = time.monotonic() - asked
                    entries = [view.entry for view in batch.views]
                    ended = [one for one in entries if isinstance(one, TaskRecord)]
                    left -= {one.task_id for one in ended if one.is_terminal}
                    if not left or time.monotonic() - began > 60:
                        break
            found["reaped s"] = time.monotonic() - began
            found["left"] = len(left)
        finally:
            await engine.close()
    return {name: round(value, 2) for name, value in found.items()}


def settle_by(root: Path, step_s: float, limit_s: float) -> None:
    """Try to end all orphans by a clock that was set before this program began."""
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + step_s
    time.time_ns = lambda: real_ns() + round(step_s * 1e9)
    lease = Lease.acquire(root)
    ended = Reaper(Ledger(root, lease=lease)).settle(limit_s)
    lease.release()
    print(len(ended), flush=True)


def beside_living_locks(locks: int, limit_s: float, steps_s: tuple[int, ...]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "tasks"
        folders = [str(orphan(root, number)) for number in range(locks)]
        modules, why_not = node_modules(Path(place) / "npm")
        command = ["node", str(HOLDER), str(modules or "-"), *folders]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=REPO) as holder:
            assert holder.stdin is not None
            assert holder.stdout is not None
            holder.stdout.readline()
            words = [sys.executable, "-m", "tests.hard.locked", str(root)]
            tries = [
                subprocess.Popen([*words, str(step_s), str(limit_s)], stdout=pipe, cwd=REPO)
                for step_s in steps_s
            ]
            ended = sum(int(one.communicate()[0]) for one in tries)
            holder.stdin.write(b"\n")
            holder.stdin.flush()
            lost = json.loads(holder.stdout.readline())["lost"]
        began = time.monotonic()
        lease = Lease.acquire(root)
        reaped = len(Reaper(Ledger(root, lease=lease)).settle())
        lease.release()
    return {
        "locks": f"{locks} by {'proper-lockfile' if modules else f'hand ({why_not})'}",
        "taken over": ended,
        "lost by Node": lost,
        "reaped after its kill": reaped,
        "reaped after its kill s": round(time.monotonic() - began, 2),
    }


async def beside_a_rewriter(seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        folder = orphan(Path(place) / "tasks", 1)
        path = folder / "meta.json"
        path.write_text(path.read_text().replace('"pid": 0', f'"pid": {os.getpid()}'))
        engine = Engine(Settings.at(home=Path(place)), accepts=False)
        await engine.open()
        unreadable, marked_at, ended = 0, 0.0, 0.0
        tool: asyncio.Task[None] | None = None

        def rewrite_and_tell() -> None:
            nonlocal ended
            rewrite(path, seconds)
            ended = time.monotonic()

        async with aclosing(engine.tasks.changes()) as batches:
            async for batch in batches:
                unreadable += sum(isinstance(view.entry, Unreadable) for view in batch.views)
                if tool is None and batch.complete:
                    tool = asyncio.create_task(asyncio.to_thread(rewrite_and_tell))
                if ended and batch.views and not batch.views[-1].stale:
                    marked_at = time.monotonic()
                if marked_at or (ended and time.monotonic() - ended > 10):
                    break
        await engine.close()
    return {"shown unreadable": unreadable, "settled s": round(marked_at - ended, 2)}


def measure(*, short: bool) -> Figures:
    facts: dict[str, Any] = {}
    found: list[str] = []
    for orphans in (12,) if short else (12, 300):
        one = asyncio.run(beside_dead_locks(orphans))
        facts[f"{orphans} dead locks"] = one
        limits = {"rows s": ROWS_S, "start s": START_S, "reaped s": REAPED_S}
        late = [name for name, most in limits.items() if one[name] > most_s(most, short=short)]
        found += [f"{orphans} dead locks: {name} {one[name]}" for name in late]
        if one["left"]:
            found.append(f"{one['left']} of {orphans} orphans were not reaped")
    if shutil.which("node") is None:
        facts["living locks"] = "there is no node on this machine"
    elif not short:
        facts["living locks"] = living = beside_living_locks(500, 20.0, STEPS_S)
        if living["taken over"] or living["lost by Node"]:
            found.append(f"a living lock was taken over: {living}")
        if living["reaped after its kill"] < 500:
            found.append(f"not all were reaped after the kill: {living}")
    if not short:
        facts["rewritten in place"] = rewritten = asyncio.run(beside_a_rewriter(30.0))
        if rewritten["shown unreadable"] or rewritten["settled s"] > SETTLED_S:
            found.append(f"a record that is rewritten in place: {rewritten}")
    return Figures("G19", facts, found)


if __name__ == "__main__":
    settle_by(Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
