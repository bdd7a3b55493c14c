"""SIGKILL at random instants of a process that does ledger operations: nothing said is lost.

The worker says each operation *after* it returned, through a pipe; what was said is
acknowledged. After each kill the ledger is opened as the next program would, and every
acknowledged operation is looked for, every file read, every folder searched for litter.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.ledger.reaper import Reaper
from engine.model.records import LIVE, Status, TaskRecord, Units, Unreadable
from engine.service.maintenance import Tidier
from tests.hard.figures import Figures

PROMISED = {
    "lost": "acknowledged operations are lost",
    "unreadable": "tasks cannot be read",
    "torn_result": "results are not whole",
    "alive": "tasks of the dead still look alive",
    "litter": "files are left behind",
}


def work(root: Path) -> None:
    """Do tasks for ever, saying what is done: `<operation> <id> <number>`."""
    lease = Lease.acquire(root)
    ledger = Ledger(root, lease=lease)
    while True:
        task_id = ledger.create("crawl", {"url": "http://site.test/", "pad": "x" * 500}).task_id
        say("create", task_id)
        ledger.claim(task_id)
        say("claim", task_id)
        for number in range(1, 4):
            ledger.append_page(
                task_id, {"url": f"http://site.test/{number}", "depth": 0, "c": "y" * 3_000}
            )
            say("page", task_id, number)
            ledger.append_event(task_id, "progress", {"unitsDone": number, "unitsTotal": 3})
            say("event", task_id, number)
        ledger.mutate(task_id, lambda raw: raw.update(touched=True))
        say("touch", task_id)
        ledger.write_result(task_id, (b"%d\n" % number * 2_000 for number in range(1, 9)))
        say("result", task_id)
        ledger.finish(task_id, Status.COMPLETED, units=Units(done=3, total=3))
        say("finish", task_id)


def say(operation: str, task_id: str, number: int = 0) -> None:
    os.write(1, f"{operation} {task_id} {number}\n".encode())


def kill_once(root: Path, after_s: float) -> list[tuple[str, str, int]]:
    """Start a worker, kill it `after_s` after its first word; what it had acknowledged."""
    command = [sys.executable, "-m", "tests.hard.kill_ledger", "--work", str(root)]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert worker.stdout is not None
    first = worker.stdout.readline()
    time.sleep(after_s)  # the random instant itself, nothing is waited for here
    worker.send_signal(signal.SIGKILL)
    rest = worker.stdout.read()
    worker.stdout.close()
    worker.wait()
    lines = [line.split() for line in (first + rest).decode().splitlines() if line.count(" ") == 2]
    return [(operation, task_id, int(number)) for operation, task_id, number in lines]


def examine(root: Path, said: list[tuple[str, str, int]]) -> Counter[str]:
    """Open the ledger as the next program does and count what is not as it was promised."""
    wrong: Counter[str] = Counter()
    lease = Lease.acquire(root)
    try:
        ledger = Ledger(root, lease=lease)
        Tidier(root, ()).tidy_after_death()
        Reaper(ledger).settle()  # as `octask reap` does, which waits for locks of the dead
        entries = {entry.task_id: entry for entry in ledger.list(limit=None)}
        wrong["unreadable"] = sum(isinstance(entry, Unreadable) for entry in entries.values())
        wrong["alive"] = sum(getattr(entry, "status", "") in LIVE for entry in entries.values())
        for operation, task_id, number in said:
            entry = entries.get(task_id)
            if not isinstance(entry, TaskRecord) or not kept(ledger, entry, operation, number):
                wrong["lost"] += 1
        for task_id in entries:
            wrong["torn_result"] += not result_is_whole(ledger, task_id)
        left = litter(root)
        wrong["litter"] = len(left)
        if left:
            print("left behind:", *left, sep="\n  ")
    finally:
        lease.release()
    return wrong


def kept(ledger: Ledger, record: TaskRecord, operation: str, number: int) -> bool:
    """Is this acknowledged operation on disk?"""
    task_id = record.task_id
    match operation:
        case "claim":
            return record.started_at is not None
        case "page":
            return len(list(ledger.read_pages(task_id))) >= number
        case "event":
            events = ledger.read_events(task_id).events
            done = [event.data for event in events if event.kind == "progress"]
            return len(done) >= number
        case "touch":
            return ledger.read_raw(task_id).get("touched") is True
        case "result":
            return ledger.has_result(task_id)
        case "finish":
            return record.status == Status.COMPLETED
    return True


def result_is_whole(ledger: Ledger, task_id: str) -> bool:
    """Whole or not there: either the worker's whole result, or the reaper's, made of the pages."""
    if not ledger.has_result(task_id):
        return True
    with ledger.open_result(task_id) as result:
        data = result.read()
    if data.startswith(b"{"):
        made: dict[str, Any] = json.loads(data)
        return len(made["pages"]) == made["summary"]["total_pages"]
    return data == b"".join(b"%d\n" % number * 2_000 for number in range(1, 9))


def litter(root: Path) -> list[str]:
    found = [str(path) for path in root.rglob("*") if path.name.endswith(".tmp")]
    found += [str(path) for path in root.rglob(".lock.lock*")]
    found += [str(path) for path in (root / ".runners").iterdir()]
    held = [path for path in found if "/.runners/" in path]
    return [path for path in found if path not in held] + held[1:]  # one lease is our own


def measure(*, short: bool) -> Figures:
    """200 kills, or (`short`) ten."""
    if sys.platform == "win32":
        return Figures("G1", {"kills": "there is no SIGKILL"})
    return run(10 if short else 200, random.randrange(2**32))


def run(kills: int, seed: int) -> Figures:
    """So many kills, at instants that `seed` chooses."""
    chance = random.Random(seed)
    wrong: Counter[str] = Counter()
    acknowledged, slowest_s, last = 0, 0.0, Counter[str]()
    for _ in range(kills):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "home" / "tasks"
            said = kill_once(root, chance.uniform(0, 0.12))
            last[said[-1][0]] += 1
            acknowledged += len(said)
            began = time.monotonic()
            wrong += examine(root, said)
            slowest_s = max(slowest_s, time.monotonic() - began)
    facts = {
        "kills": kills,
        "seed": seed,
        "acknowledged": acknowledged,
        **{name: wrong[name] for name in PROMISED},
        "slowest_recovery_s": round(slowest_s, 2),
        "killed_after": dict(last),
    }
    misses = [f"{wrong[name]}: {promise}" for name, promise in PROMISED.items() if wrong[name]]
    return Figures("G1", facts, misses)


if __name__ == "__main__":
    work(Path(sys.argv[2]))
