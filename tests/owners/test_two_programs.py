"""Two programs on one root: a paused one, and two busy ones."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.ledger.files import Folder
from engine.ledger.ledger import How, Ledger
from engine.ledger.lock import TaskLock
from engine.ledger.reaper import Reaper
from engine.model.config import Settings
from engine.model.errors import LockTimeout
from engine.model.records import TERMINAL, TaskRecord
from engine.service.engine import Engine
from tests.support.endless_site import endless
from tests.support.processes import ENGINE, LEDGER, ended, heard, told, until

Beside = Callable[..., subprocess.Popen[str]]
ENDS = {"completed", "failed", "cancelled"}
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")

STOPS_INSIDE = """
tries = []
def change(raw):
    tries.append(raw.get("n", 0))
    raw["n"] = raw.get("n", 0) + 1
    if len(tries) == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
sys.stdin.readline()
ledger.mutate(sys.argv[2], change)
say(tries=tries)
lease.release()
"""


def stopped_inside(ledger: Ledger, task_id: str, beside: Beside) -> subprocess.Popen[str]:
    program = beside(LEDGER + STOPS_INSIDE, ledger.root, task_id)
    told(program)
    until(lambda: psutil.Process(program.pid).status() == psutil.STATUS_STOPPED)
    return program


def count(raw: dict[str, Any]) -> None:
    raw["n"] = raw.get("n", 0) + 1


def test_a_program_that_stands_still_inside_a_lock_keeps_only_that_task_waiting(
    ledger: Ledger, task_id: str, beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = ledger.claim(ledger.create("crawl", {}).task_id).task_id
    program = stopped_inside(ledger, task_id, beside)
    assert (ledger.root / task_id / ".lock.lock").is_dir()
    with (
        Folder.at(str(ledger.root / task_id)) as folder,
        pytest.raises(LockTimeout, match="stayed locked"),
        TaskLock(folder, task_id, timeout_s=0.4),
    ):
        pass
    ledger.mutate(other, count)
    assert ledger.read_raw(other)["n"] == 1
    assert Reaper(ledger).reap() == []
    assert isinstance(ledger.read(task_id), TaskRecord)  # looking waits for nobody
    program.send_signal(signal.SIGCONT)
    ledger.mutate(task_id, count, wait_s=90)
    assert ended(program) == [{"tries": [0]}]
    assert ledger.read_raw(task_id)["n"] == 2


def test_a_stolen_lock_is_taken_again(ledger: Ledger, task_id: str, beside: Beside) -> None:
    """OpenChrome calls a lock stale after 10 s; what was read before that must not be written."""
    program = stopped_inside(ledger, task_id, beside)
    folder = ledger.root / task_id
    (folder / ".lock.lock").rmdir()
    (folder / ".lock.lock").mkdir()  # it is the peer's now
    meta = folder / "meta.json"
    staged = folder / "meta.json.peer"
    staged.write_text(meta.read_text().replace("{", '{\n  "n": 10,', 1))
    staged.replace(meta)
    (folder / ".lock.lock").rmdir()
    program.send_signal(signal.SIGCONT)
    assert ended(program) == [{"tries": [0, 10]}]
    assert ledger.read_raw(task_id)["n"] == 11


@pytest.mark.case("R27")
def test_a_wrongly_ended_runner(home: Path, ledger: Ledger, site: Any, beside: Beside) -> None:
    script = """
async def work(engine):
    args = {"url": sys.argv[2], "engine": "static", "respect_robots": False, "delay_ms": 20,
            "max_pages": 1_000_000, "max_depth": 100}
    record = await engine.requests.start("crawl", args)
    say(task_id=record.task_id)
    await engine.tasks.join(record.task_id)
asyncio.run(with_engine(work))
"""
    runner = beside(ENGINE + script, home, endless(site))
    task_id = heard(runner)["task_id"]
    folder = ledger.root / task_id
    pages = folder / "pages.jsonl"
    until(lambda: pages.exists() and b"\n" in pages.read_bytes())

    def bury(raw: dict[str, Any]) -> None:
        raw.update(status="FAILED", ended_at=raw["started_at"] + 1)
        raw["error"] = {"message": "orphaned: somebody was wrong", "code": "orphaned"}

    ledger.mutate(task_id, bury)
    before = (folder / "meta.json").read_bytes()
    ended(runner)
    assert (folder / "meta.json").read_bytes() == before
    events = ledger.read_events(task_id).events
    assert (events[-1].data or {})["phase"] == "lost ownership"
    assert [event.kind for event in events if event.kind in ENDS] == []
    assert (folder / "pages.jsonl").read_bytes().count(b"\n") >= 1


BUSY = """
import random
from engine.model.errors import EngineError
from engine.model.records import TaskRecord
from engine.service import pruning
from engine.service.pruning import Rules
from engine.ledger.reader import LedgerReader
from engine.ledger.machine import wall_ms
chance = random.Random(sys.argv[2])
later = lambda: wall_ms() + 3_600_000
args = {"url": sys.argv[3], "engine": "static", "respect_robots": False, "delay_ms": 0,
        "max_pages": 4}
def prune():
    look = LedgerReader(home / "tasks")
    shown = pruning.preview(look, Rules(keep=6), later())
    return pruning.prune(look, shown, delete=True, now_ms=later)
async def step(engine):
    ids = [view.task_id for view in await engine.tasks.list()]
    one = chance.choice(ids) if ids else None
    deed = chance.choice(["start", "start", "cancel", "rerun", "prune", "reap", "get", "wait"])
    if deed == "start" or one is None:
        await engine.requests.start("crawl", args)
    elif deed == "prune":
        await asyncio.to_thread(prune)
    elif deed == "reap":
        assert await engine.commands.reap() == []
    elif deed == "wait":
        await engine.tasks.wait(one, timeout_ms=30)
    else:
        parts = {"cancel": engine.commands, "rerun": engine.requests, "get": engine.tasks}
        await getattr(parts[deed], deed)(one)
async def work(engine):
    say(ready=True)
    sys.stdin.readline()
    refused = set()
    for _ in range(int(sys.argv[4])):
        try:
            await step(engine)
        except EngineError as error:
            refused.add(error.code)
    for task_id in engine.own.task_ids:
        await engine.tasks.join(task_id)
    say(refused=sorted(refused))
asyncio.run(with_engine(work))
"""
# What one may be told when the other was quicker, or stood still inside a lock for 15 s.
ALLOWED = {"task_not_found", "task_removed", "ETIMEDOUT", LockTimeout.code}


async def test_two_busy_programs_give_one_end(home: Path, site: Any, beside: Beside) -> None:
    programs = [beside(ENGINE + BUSY, home, seed, site.url, 60) for seed in ("one", "two")]
    for program in programs:
        heard(program)
    for program in programs:
        told(program)
    said = [ended(program) for program in programs]
    codes = {code for words in said for word in words for code in word["refused"]}
    assert codes <= ALLOWED, codes
    root = home / "tasks"
    ledger = Ledger(root)
    entries = ledger.list(limit=None)
    assert entries
    for entry in entries:
        assert isinstance(entry, TaskRecord), entry
        assert entry.status in TERMINAL
        assert entry.error is None
        kinds = [event.kind for event in ledger.read_events(entry.task_id).events]
        assert [kind for kind in kinds if kind in ENDS] == [entry.status.lower()]
        litter = [name for name in os.listdir(root / entry.task_id) if name.endswith(".tmp")]
        assert not litter
    left = [name for name in os.listdir(root) if name.startswith(".") and name != ".runners"]
    assert left == []
    assert os.listdir(root / ".runners") == []
    engine = Engine(Settings(home=home, root=root), accepts=True)
    await engine.open()
    runs = engine.runs.list_runs()
    await engine.close()
    assert {run.status for run in runs} <= {"completed", "aborted"}


async def test_many_who_ask_for_a_task_that_is_held_leave_threads_for_the_others(
    home: Path, ledger: Ledger, task_id: str, beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    def patient(durable: bool, patience_s: float = 150.0) -> How:
        return How(durable, patience_s)

    monkeypatch.setattr("engine.ledger.ledger.How", patient)
    program = stopped_inside(ledger, task_id, beside)
    other = ledger.create("crawl", {}).task_id
    engine = Engine(Settings(home=home, root=home / "tasks"), accepts=True)
    await engine.open()
    try:
        # More than a small machine, or the window, has threads for.
        asked = [asyncio.create_task(engine.commands.cancel(task_id)) for _ in range(40)]
        await asyncio.sleep(0)
        assert (await engine.commands.cancel(other)).status == "CANCELLED"
        assert not any(one.done() for one in asked)
        program.send_signal(signal.SIGCONT)
        answers = await asyncio.gather(*asked)
        assert len({record.cancel_requested_at for record in answers}) == 1
    finally:
        await engine.close()
