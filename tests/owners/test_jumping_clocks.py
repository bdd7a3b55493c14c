"""A clock that is set, ahead or back, ends nothing, steals nothing and makes nothing old."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine import budgets
from engine.budgets import ToolCall
from engine.budgets.envelopes import DurationMeter, EnvelopeRequest, Envelopes
from engine.execution.task_context import ASLEEP_S, BudgetObserver
from engine.ledger import lock, machine
from engine.ledger.files import Folder
from engine.ledger.ledger import Ledger
from engine.ledger.lock import UNMOVED_S
from engine.ledger.ownership import owner_of
from engine.ledger.reader import LedgerReader
from engine.ledger.reaper import Reaper
from engine.model.errors import LockTimeout
from engine.model.records import Status, TaskRecord, Units
from engine.service import pruning
from engine.service.pruning import Rules
from engine.text import words
from tests.hard.reapers import write_foreign
from tests.support.lock_clock import given_clock
from tests.support.processes import ENGINE, ended, heard, until

DAY_MS, HOUR_MS = 86_400_000, 3_600_000
Beside = Callable[..., subprocess.Popen[str]]


def stepped(monkeypatch: pytest.MonkeyPatch, by_ms: float) -> None:
    """As if the wall clock had been set since this process began."""
    monkeypatch.setattr(machine, "_CLOCK_OFFSET_S", machine._CLOCK_OFFSET_S - by_ms / 1_000)


class Clocks:
    """A wall clock that can be set, and one that cannot."""

    def __init__(self) -> None:
        self.wall = 1_700_000_000_000
        self.awake = 5_000.0

    def now_ms(self) -> int:
        return self.wall

    def awake_s(self) -> float:
        return self.awake

    def work(self, ms: int) -> None:
        self.wall += ms
        self.awake += ms / 1_000

    def jump(self, ms: int) -> None:
        """Set the clock; a sleep of the machine looks just the same."""
        self.wall += ms


JUMP = """
step = 0
real_ns, real = time.time_ns, time.time
time.time_ns = lambda: real_ns() + step * 1_000_000
time.time = lambda: real() + step / 1_000
def jump(*_):
    global step
    step = int(sys.argv[3])
signal.signal(signal.SIGUSR1, jump)
from engine.service.admission import Terms
async def work(engine):
    args = {"url": sys.argv[2], "engine": "static", "respect_robots": False, "delay_ms": 10,
            "max_pages": 30, "max_depth": 100}
    terms = Terms(policy={"maxWallMs": 1_000_000}, enforce=True)
    record = await engine.requests.start("crawl", args, terms=terms)
    say(task_id=record.task_id)
    await engine.tasks.join(record.task_id)
    say(reaped=[one.task_id for one in await engine.commands.reap()])
asyncio.run(with_engine(work))
sys.stdin.readline()  # a signal that comes late must still find its handler
"""


@pytest.mark.thorough("*ahead")
@pytest.mark.case("R29", "R30")
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGUSR1")
@pytest.mark.parametrize("step_ms", [DAY_MS, -HOUR_MS], ids=["a day ahead", "an hour back"])
def test_a_clock_that_is_set_in_the_middle_of_a_run_changes_nothing_about_its_end(
    home: Path, ledger: Ledger, site: Any, beside: Beside, step_ms: int
) -> None:
    began = machine.wall_ms()
    runner = beside(ENGINE + JUMP, home, site.url, step_ms)
    task_id = heard(runner)["task_id"]
    folder = ledger.root / task_id
    until(lambda: (folder / "pages.jsonl").exists())
    runner.send_signal(signal.SIGUSR1)
    reaper = Reaper(ledger)
    until(lambda: reaper.reap() or not _is_live(ledger, task_id))
    assert reaper.reap() == []
    assert ended(runner) == [{"reaped": []}]
    record = ledger.read(task_id)
    assert isinstance(record, TaskRecord)
    assert record.status == "COMPLETED"
    assert record.budget_status == "ok"
    assert record.ended_at is not None
    assert record.started_at is not None
    assert record.ended_at >= record.started_at >= record.created_at >= began
    summary = json.loads((folder / "result.json").read_bytes())["summary"]
    assert summary["total_pages"] == 30
    assert 0 < summary["duration_ms"] < 1_000_000  # which is less than either step
    assert record.engine is not None
    assert 0 < (record.engine.lasted_ms or 0) < 1_000_000


def _is_live(ledger: Ledger, task_id: str) -> bool:
    record = ledger.read(task_id)
    return isinstance(record, TaskRecord) and record.is_live


def metered(ledger: Ledger, clocks: Clocks, limit_ms: int) -> tuple[str, BudgetObserver]:
    fields = {"policy": {"maxWallMs": limit_ms}, "counters": budgets.no_calls()}
    task_id = ledger.create("crawl", {}, fields=fields, now_ms=clocks.wall).task_id
    ledger.claim(task_id)
    times = {"started_at": clocks.wall, "last_activity_at": clocks.wall}
    ledger.mutate(task_id, lambda raw: raw.update(times))
    meter = BudgetObserver(ledger, task_id, True, now_ms=clocks.now_ms, monotonic=clocks.awake_s)
    assert meter.on_tick() == ""
    return task_id, meter


@pytest.mark.case("R30")
@pytest.mark.parametrize("jump_ms", [DAY_MS, -DAY_MS])
def test_a_clock_jump_does_not_change_a_run_s_time(ledger: Ledger, jump_ms: int) -> None:
    clocks = Clocks()
    task_id, meter = metered(ledger, clocks, 1_000)
    clocks.work(500)
    clocks.jump(jump_ms)
    assert meter.on_tick() == ""
    assert meter.on_unit({"url": "http://a.test/"}, Units(done=1)) == ""
    clocks.work(1_000)
    assert meter.on_tick() == "budget"
    meter.on_end()
    raw = ledger.read_raw(task_id)
    assert raw["budget_exceeded"] == ["maxWallMs"]
    assert raw["engine"]["lasted_ms"] == 1_500
    kinds = [(event.data or {}) for event in ledger.read_events(task_id).events]
    assert [data["to"] for data in kinds if "to" in data] == ["exceeded"]


@pytest.mark.case("R30")
def test_a_run_whose_process_stood_still_has_the_time_that_it_worked(ledger: Ledger) -> None:
    clocks = Clocks()
    _, meter = metered(ledger, clocks, 1_000)
    for _ in range(3):
        clocks.work(250)
        assert meter.on_tick() == ""
        clocks.work(round(ASLEEP_S * 1_000) + 1)  # stopped, and then continued
        assert meter.on_tick() == ""
    clocks.work(500)
    assert meter.on_tick() == "budget"


@pytest.mark.case("R30")
def test_others_see_within_a_second_how_long_a_run_has_really_lasted(ledger: Ledger) -> None:
    clocks = Clocks()
    task_id, meter = metered(ledger, clocks, 60_000)
    clocks.work(1_000)
    clocks.jump(DAY_MS)
    assert budgets.at(ledger.read_raw(task_id), clocks.wall).status == "exceeded"
    meter.on_tick()
    assert budgets.at(ledger.read_raw(task_id), clocks.wall).status == "ok"


@pytest.mark.case("R30")
@pytest.mark.parametrize("jump_ms", [DAY_MS, -DAY_MS])
def test_a_jump_uses_up_none_of_an_envelopes_time(ledger: Ledger, jump_ms: int) -> None:
    clocks = Clocks()
    lasting = DurationMeter(clocks.awake_s)
    envelopes = Envelopes(ledger, now_ms=clocks.now_ms, lasting=lasting)
    asked = EnvelopeRequest("look around", policy={"maxWallMs": 1_000})
    task_id = envelopes.start(asked).task_id
    clocks.work(300)
    clocks.jump(jump_ms)
    state = envelopes.record(task_id, ToolCall("navigate", {"url": "http://a.test/"}))
    assert state is not None
    assert state.budget_status == "ok"
    clocks.work(500)
    assert envelopes.state(task_id).budget_status == "warning"
    clocks.work(500)
    envelopes.update(task_id, note="still here")
    assert ledger.read_raw(task_id)["budget_exceeded"] == ["maxWallMs"]
    told = [e.data for e in ledger.read_events(task_id).events if e.kind == "budget"]
    assert [(data or {})["to"] for data in told] == ["exceeded"]
    ended_as = envelopes.finish(task_id, "completed")
    assert ended_as.ended_at is not None
    assert ended_as.ended_at >= ended_as.created_at


@pytest.mark.case("R30")
def test_after_a_restart_an_envelope_goes_on_from_what_was_measured(ledger: Ledger) -> None:
    clocks = Clocks()
    asked = EnvelopeRequest("look around", policy={"maxWallMs": 10_000})
    first = Envelopes(ledger, now_ms=clocks.now_ms, lasting=DurationMeter(clocks.awake_s))
    task_id = first.start(asked).task_id
    clocks.work(1_000)
    clocks.jump(DAY_MS)
    first.update(task_id, note="before the end of the first program")
    clocks.work(2_000)
    second = Envelopes(ledger, now_ms=clocks.now_ms, lasting=DurationMeter(clocks.awake_s))
    second.update(task_id, note="of the second")
    assert ledger.read_raw(task_id)["engine"]["lasted_ms"] == 3_000
    clocks.jump(-DAY_MS)
    clocks.work(1_000)
    second.update(task_id, note="later")
    assert ledger.read_raw(task_id)["engine"]["lasted_ms"] == 4_000


def test_a_task_without_a_budget_of_time_is_not_measured(ledger: Ledger) -> None:
    envelopes = Envelopes(ledger, lasting=DurationMeter())
    task_id = envelopes.start(EnvelopeRequest("look")).task_id
    envelopes.record(task_id, ToolCall("find"))
    assert "lasted_ms" not in ledger.read_raw(task_id)["engine"]


@pytest.mark.case("R30")
@pytest.mark.parametrize("step_ms", [DAY_MS, -DAY_MS])
def test_a_living_process_is_no_other_because_the_clock_was_set(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, step_ms: float
) -> None:
    task_id = write_foreign(ledger.root, os.getpid())
    began_ms = psutil.Process().create_time() * 1_000
    meta = ledger.root / task_id / "meta.json"
    # Its start was written by one clock, and the process' own start is told by the other.
    then = {"started_at": began_ms - abs(step_ms) + 1_000, "created_at": began_ms - 2 * DAY_MS}
    meta.write_text(json.dumps(json.loads(meta.read_text()) | then))
    record = ledger.read(task_id)
    assert isinstance(record, TaskRecord)
    assert owner_of(ledger.root, record).dead
    stepped(monkeypatch, step_ms)
    assert owner_of(ledger.root, record).alive
    assert Reaper(ledger).reap() == []


@pytest.mark.case("R30")
def test_a_clock_jump_ends_no_envelope(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = write_foreign(ledger.root, 0)
    meta = ledger.root / task_id / "meta.json"
    # As it was an hour before the clock was set a day ahead.
    then = {"kind": "browser_task", "last_activity_at": machine.wall_ms() - DAY_MS - HOUR_MS}
    meta.write_text(json.dumps(json.loads(meta.read_text()) | then))
    with monkeypatch.context() as patched:
        stepped(patched, DAY_MS)
        assert Reaper(ledger).reap() == []
    assert [record.task_id for record in Reaper(ledger).reap()] == [task_id]


@pytest.mark.case("R30")
@pytest.mark.parametrize("step_s", [86_400, -3_600, 30])
def test_a_lock_that_is_watched_while_the_clock_is_set_is_not_stolen(
    ledger: Ledger, task_id: str, monkeypatch: pytest.MonkeyPatch, step_s: int
) -> None:
    """The step comes between the first look at the living peer's lock and the decision."""
    clock = given_clock(monkeypatch)
    peers = ledger.root / task_id / ".lock.lock"
    peers.mkdir()
    clock.aged(peers, 0)
    clock.meanwhile = lambda: setattr(clock, "step_s", step_s)
    with (
        Folder.at(str(peers.parent)) as folder,
        pytest.raises(LockTimeout),
        lock.TaskLock(folder, task_id, timeout_s=UNMOVED_S - 1),
    ):
        pass
    assert peers.is_dir()
    assert clock.step_s == step_s


@pytest.mark.case("R30")
def test_a_clock_jump_prunes_no_new_task(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    old = ledger.claim(ledger.create("crawl", {}).task_id).task_id
    ledger.finish(old, Status.COMPLETED)
    long_ago = machine.wall_ms() - 40 * DAY_MS
    meta = ledger.root / old / "meta.json"
    times = dict.fromkeys(("created_at", "started_at", "ended_at", "last_activity_at"), long_ago)
    meta.write_text(json.dumps(json.loads(meta.read_text()) | times))
    rules = Rules(older_than_ms=30 * DAY_MS)
    reader = LedgerReader(ledger.root)
    shown = pruning.preview(reader, rules, machine.age_clock_ms())
    assert [one.task_id for one in shown.tasks] == [old]
    stepped(monkeypatch, 35 * DAY_MS)  # by the clock as it was, it is five days old
    shown = pruning.preview(reader, rules, machine.age_clock_ms())
    assert shown.tasks == ()
    assert pruning.prune(reader, shown, delete=True).gone == ()
    assert meta.exists()


@pytest.mark.case("R29")
def test_future_times_are_flagged_and_keep_the_order(ledger: Ledger) -> None:
    now = machine.wall_ms()
    past = [ledger.create("crawl", {}, now_ms=now - n * 1_000).task_id for n in range(3)]
    same = sorted(ledger.create("crawl", {}, now_ms=now - 5_000).task_id for _ in range(3))
    ahead = ledger.create("crawl", {}, now_ms=now + DAY_MS).task_id
    back = ledger.create("crawl", {}, now_ms=now - HOUR_MS).task_id  # set back just then
    order = [ahead, *past, *reversed(same), back]
    for _ in range(3):
        assert [entry.task_id for entry in ledger.list()] == order
        ledger.request_cancel(order[4])
    assert words.age(now + DAY_MS, now) == "in 24 h"
    assert words.age(now + 30_000, now) == "0 s"  # clocks of two machines differ by as much
    assert words.age(now - 30_000, now) == "30 s"


def test_the_careful_clock_only_steps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def tells(behind_ms: int) -> bool:
        before, told, after = machine.wall_ms(), machine.age_clock_ms(), machine.wall_ms()
        return before - 2_000 < told + behind_ms < after + 2_000

    assert tells(0)
    with monkeypatch.context() as patched:
        stepped(patched, DAY_MS)
        assert tells(DAY_MS)
    stepped(monkeypatch, -DAY_MS)
    assert tells(0)
