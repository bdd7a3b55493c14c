"""Programs that start what is due, killed at random instants: no run comes twice, none is lost.

Several programs look at the same schedules by one clock, which this rig moves on in steps and
sometimes sets back. Each claims, creates, confirms and ends what is due as the engine does. Some
are killed in the middle and started again. In the end, every occurrence of every schedule has
exactly one task, or a skip because the run before was still going.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.ledger.ownership import Owners
from engine.model.errors import EngineError, TaskExists
from engine.model.records import EngineFields, ScheduleLink, Status, TaskRecord
from engine.schedules.rules import Rule
from engine.schedules.schedule import Claim, Schedule, StoredRequest
from engine.schedules.schedule_store import ScheduleStore
from tests.hard.figures import Figures

REPO = Path(__file__).resolve().parents[2]
START_MS = 1_767_225_600_000
STEP_MS = 60_000
PROGRAMS = 3
SCHEDULES = 3
KILLED_AFTER_S = 0.25  # at most; a look takes some milliseconds
LIMIT_S = 600.0
CLOCK = "clock"


def program(root: Path) -> None:
    """Start what is due by the clock in a file, until that file is gone."""
    lease = Lease.acquire(root)
    ledger, store = Ledger(root, lease=lease), ScheduleStore(root)
    owners = Owners(root, lease)

    def is_going(task_id: str) -> bool:
        try:
            record = ledger.read(task_id)
        except EngineError:
            return False
        live = isinstance(record, TaskRecord) and record.is_live
        return live and not owners.of(record).dead  # type: ignore[arg-type]

    print("ready", flush=True)
    while (now_ms := _clock(root)) is not None:
        for schedule in store.all():
            if isinstance(schedule, Schedule):
                _look(schedule.schedule_id, now_ms, ledger, store, is_going)
    lease.release()


def _look(
    schedule_id: str,
    now_ms: int,
    ledger: Ledger,
    store: ScheduleStore,
    is_going: Callable[[str], bool],
) -> None:
    found, decision = store.claim_due(schedule_id, now_ms, is_going)
    if decision is None or decision.claim is None:
        return
    claim: Claim = decision.claim
    link = ScheduleLink(schedule_id, claim.due_at)
    engine = EngineFields(schedule=link, parent_task_id=claim.parent)
    try:
        ledger.create("crawl", {}, engine=engine, fields={"task_id": claim.task_id})
    except TaskExists:
        store.confirm(found.schedule_id, claim.task_id)
        return
    store.confirm(found.schedule_id, claim.task_id)
    ledger.claim(claim.task_id)
    ledger.append_event(claim.task_id, "log", {"phase": "ran", "note": str(os.getpid())})
    ledger.finish(claim.task_id, Status.COMPLETED)


def _clock(root: Path) -> int | None:
    try:
        return int((root.parent / CLOCK).read_text() or 0)
    except (FileNotFoundError, ValueError):
        return None if not (root.parent / CLOCK).exists() else 0


def measure(*, short: bool, rounds: int | None = None) -> Figures:
    """Move the clock on for `rounds` steps, with kills."""
    rounds = rounds or (40 if short else 1_500)
    home = Path(tempfile.mkdtemp(prefix="oc-schedules-"))
    try:
        return _measure(home, rounds)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _measure(home: Path, rounds: int) -> Figures:
    root, chance = home / "tasks", random.Random(rounds)
    root.mkdir()
    store = ScheduleStore(root)
    request = StoredRequest({"kind": "crawl", "args": {}})
    made = [
        store.create(
            Schedule("", request, Rule(every_minutes=1 + n, start_at=START_MS), after=START_MS)
        )
        for n in range(SCHEDULES)
    ]
    now_ms, kills, skips = START_MS, 0, set[tuple[str, int]]()
    _set_clock(home, now_ms)
    programs = [_start(root) for _ in range(PROGRAMS)]
    deadline = time.monotonic() + LIMIT_S
    try:
        for _ in range(rounds):
            now_ms += STEP_MS
            _set_clock(home, now_ms)
            if chance.random() < 0.1:  # set back, and on again
                _set_clock(home, now_ms - chance.randrange(20) * STEP_MS)
                time.sleep(chance.random() * KILLED_AFTER_S)
                _set_clock(home, now_ms)
            if chance.random() < 0.6:
                time.sleep(chance.random() * KILLED_AFTER_S)
                victim = chance.randrange(PROGRAMS)
                programs[victim].kill()
                programs[victim].communicate()
                programs[victim] = _start(root)
                kills += 1
            skips |= _skips_until_decided(store, made, now_ms, deadline)
    finally:
        (home / CLOCK).unlink()
        errors = [program.communicate(timeout=90)[1] for program in programs]
    return _judged(root, made, skips, now_ms, kills, [one for one in errors if one.strip()])


def _start(root: Path) -> subprocess.Popen[str]:
    code = "import sys; from pathlib import Path; from tests.hard.schedules import program; "
    code += "program(Path(sys.argv[1]))"
    started = subprocess.Popen(
        [sys.executable, "-c", code, str(root)],
        cwd=REPO,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    started.stdout.readline()
    return started


def _set_clock(home: Path, now_ms: int) -> None:
    temp = home / f"{CLOCK}.new"
    temp.write_text(str(now_ms))
    temp.replace(home / CLOCK)


def _skips_until_decided(
    store: ScheduleStore, made: list[Schedule], now_ms: int, deadline: float
) -> set[tuple[str, int]]:
    """Wait until no schedule has something due or a pending claim; return what was skipped."""
    while time.monotonic() < deadline:
        found = [store.read(one.schedule_id) for one in made]
        if all((one.next_at(one.after) or 0) > now_ms and one.pending is None for one in found):
            return {(one.schedule_id, skip.due_at) for one in found for skip in one.skips}
        time.sleep(0.005)  # the programs send no notice
    raise AssertionError("what is due was not started in time")


def _judged(
    root: Path,
    made: list[Schedule],
    skips: set[tuple[str, int]],
    now_ms: int,
    kills: int,
    errors: list[str],
) -> Figures:
    tasks: Counter[tuple[str, int]] = Counter()
    ran = ends = 0
    for place in root.iterdir():
        if len(place.name) != 16 or place.name.startswith("."):
            continue
        raw: dict[str, Any] = json.loads((place / "meta.json").read_text())
        link = raw["engine"]["schedule"]
        tasks[link["id"], int(link["due_at"])] += 1
        with suppress(FileNotFoundError):
            lines = (place / "events.jsonl").read_text().splitlines()
            ran += sum('"ran"' in line for line in lines)
            ends += sum('"completed"' in line for line in lines)
    misses = [f"a program broke down: {one[-300:]}" for one in errors]
    misses += [f"{key} ran {number} times" for key, number in tasks.items() if number > 1]
    expected = skipped = 0
    for schedule in made:
        step = STEP_MS * (schedule.rule.every_minutes or 1)
        dues = set(range(START_MS + step, now_ms + 1, step))
        expected += len(dues)
        lost = [due for due in dues if not tasks[schedule.schedule_id, due]]
        skipped += len(lost)
        # A living program may still be ending the last run.
        unexplained = [due for due in lost if (schedule.schedule_id, due) not in skips]
        misses += [f"{schedule.schedule_id} lost {due}" for due in unexplained]
    if ran > len(tasks):
        misses.append(f"{ran} bodies ran for {len(tasks)} tasks")
    facts = {
        "occurrences": expected,
        "tasks": len(tasks),
        "skipped": skipped,
        "bodies that ran": ran,
        "completed": ends,
        "programs killed": kills,
    }
    return Figures("no run twice, none lost", facts, misses)
