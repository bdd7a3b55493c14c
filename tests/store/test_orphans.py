"""Only a death that is proved ends a task, and it keeps the pages of the dead."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import psutil
import pytest

from engine.ledger import machine
from engine.ledger.lease import Lease, is_alive
from engine.ledger.ledger import Ledger
from engine.ledger.ownership import Owner, Ownership, owner_of
from engine.ledger.reader import LedgerReader
from engine.ledger.reaper import Reaper
from engine.ledger.result_assembly import assemble
from engine.ledger.snapshot import LedgerSnapshot
from engine.model.records import TaskId, TaskRecord, Units
from engine.model.status import worked_until
from engine.model.tally import Tally

DAY_MS = 24 * 3_600_000
TIMES = (10**399, -(10**399), 1e300, -1e300, "soon", True, None)


def foreign(ledger: Ledger, pid: object, **fields: object) -> str:
    task_id = f"{len(os.listdir(ledger.root)):016x}"
    raw = {"task_id": task_id, "kind": "crawl", "status": "RUNNING", "pid": pid}
    raw |= {"created_at": machine.wall_ms(), **fields}
    (ledger.root / task_id).mkdir()
    (ledger.root / task_id / "meta.json").write_text(json.dumps(raw))
    return task_id


def verdict(ledger: Ledger, task_id: str):
    record = ledger.list(limit=None)
    found = next(entry for entry in record if entry.task_id == task_id)
    assert isinstance(found, TaskRecord)
    return owner_of(ledger.root, found)


def leave_running(root: Path) -> str:
    """A crawl of a process that ends without a word, with two pages done."""
    code = (
        "import os, sys; from pathlib import Path\n"
        "from engine.ledger.lease import Lease; from engine.ledger.ledger import Ledger\n"
        "root = Path(sys.argv[1]); ledger = Ledger(root, lease=Lease.acquire(root))\n"
        "t = ledger.create('crawl', {'url': 'http://site.test/', 'scope': 'http://site.test/**'})\n"
        "ledger.claim(t.task_id)\n"
        "ledger.append_page(t.task_id, {'url': 'http://site.test/', 'depth': 0})\n"
        "ledger.append_page(t.task_id, {'url': 'http://site.test/1', 'depth': 1, 'error': 'x'})\n"
        "ledger.append_event(t.task_id, 'progress', {'unitsDone': 2, 'unitsTotal': 5})\n"
        "print(t.task_id, flush=True); os._exit(1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout.strip()


@pytest.mark.case("R21")
def test_a_killed_crawl_becomes_failed_with_its_pages_as_the_result(root: Path, ledger: Ledger):
    task_id = leave_running(root)
    with (root / task_id / "pages.jsonl").open("ab") as pages:
        pages.write(b'{"url": "http://site.test/2", "dep')  # torn by the death
    shown = ledger.read(task_id)
    assert isinstance(shown, TaskRecord)
    assert owner_of(root, shown).sentence == f"process {shown.pid:.0f} is gone"
    (record,) = Reaper(ledger).reap()
    assert (record.task_id, record.status) == (task_id, "FAILED")
    assert record.error is not None
    assert record.error.code == "orphaned"
    sign = record.last_activity_at
    assert sign is not None
    assert record.started_at is not None
    assert record.ended_at is not None
    assert record.started_at <= sign <= record.ended_at
    assert worked_until(record) == sign
    assert record.error.message == f"orphaned: process {record.pid:.0f} is gone"
    assert record.ended_at is not None
    assert record.started_at is not None
    assert record.ended_at >= record.started_at
    assert record.result_path is None
    assert record.engine is not None
    assert record.engine.units == Units(done=2, total=5)
    with ledger.open_result(task_id) as result:
        made = json.load(result)
    assert [page["url"] for page in made["pages"]] == ["http://site.test/", "http://site.test/1"]
    duration_ms = made["summary"].pop("duration_ms")
    assert duration_ms >= 0
    assert made["summary"] == {
        "total_pages": 2,
        "succeeded": 1,
        "failed": 1,
        "not_loaded": 1,
        "max_depth_reached": 1,
        "scope": "http://site.test/**",
        "stopped_by": "failed",
    }
    last = ledger.read_events(task_id).events[-1]
    assert (last.kind, (last.data or {})["code"]) == ("failed", "orphaned")
    assert Reaper(ledger).reap() == []


@pytest.mark.case("R25")
def test_a_living_owner_is_never_reaped(ledger: Ledger, task_id: str):
    waiting = ledger.create("crawl", {"url": "http://site.test/"}).task_id
    other = Ledger(ledger.root)
    assert Reaper(other).reap() == []
    for name in (task_id, waiting):
        assert verdict(other, name).alive


@pytest.mark.case("R22")
def test_a_pending_task_of_a_dead_owner_is_reaped(root: Path, ledger: Ledger):
    gone = Lease.acquire(root)
    task_id = Ledger(root, lease=gone).create("crawl", {"url": "http://site.test/"}).task_id
    gone.release()
    (record,) = Reaper(ledger).reap()
    assert (record.task_id, record.status, record.started_at) == (task_id, "FAILED", None)
    assert not ledger.has_result(task_id)


def owned(ledger: Ledger, task_id: str, **fields: object) -> None:
    ledger.mutate(task_id, lambda raw: raw["engine"].update(fields))


@pytest.mark.case("R28")
def test_another_machine_is_left_alone_and_another_boot_is_dead(ledger: Ledger, task_id: str):
    owned(ledger, task_id, boot_id="00000000-0000-0000-0000-000000000000", runner="e" * 16)
    assert verdict(ledger, task_id).sentence == "the machine was restarted since"
    assert verdict(ledger, task_id).dead
    owned(ledger, task_id, host="elsewhere")
    assert verdict(ledger, task_id) == Ownership(Owner.UNKNOWN, "running on elsewhere")
    assert Reaper(ledger).reap() == []


def test_a_locked_lease_outweighs_a_boot_id_that_the_clock_has_moved(ledger: Ledger, task_id: str):
    owned(ledger, task_id, boot_id="boot-1")
    assert verdict(ledger, task_id).alive
    assert Reaper(Ledger(ledger.root)).reap() == []


@pytest.mark.parametrize(("system", "same"), [("Darwin", True), ("Linux", False)])
def test_a_mac_that_joins_another_network_is_the_same_machine(monkeypatch, system: str, same: bool):
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "node", lambda: "Studio.local")
    monkeypatch.setattr(machine, "host", machine.host.__wrapped__)
    assert machine.same_host("Studio.local")
    assert machine.same_host("studio.fritz.box") is same
    assert not machine.same_host("other.local")


@pytest.mark.parametrize("time", TIMES, ids=lambda time: f"{time!s:.8}")
@pytest.mark.parametrize("kind", ["crawl", "browser_task"])
def test_an_invalid_start_time_proves_no_death(ledger: Ledger, kind: str, time: object):
    times = {"created_at": time, "started_at": time, "last_activity_at": time}
    living, dead = (foreign(ledger, pid, kind=kind, **times) for pid in (os.getpid(), 0))
    other = foreign(ledger, 0)
    assert verdict(ledger, living).alive
    assert verdict(ledger, dead).dead
    reaper = Reaper(ledger)
    ended = {record.task_id for record in reaper.reap()}
    assert other in ended
    assert {*ended, *reaper.failures} == {dead, other}
    assert (dead in reaper.failures) is (isinstance(time, int) and abs(time) > 1)


def test_a_defect_in_one_task_is_named_and_the_others_are_reaped(ledger: Ledger):
    broken, other = foreign(ledger, 0), foreign(ledger, 0)

    class Defective(Ledger):
        def tail_units(self, task_id, from_offset=0):
            if task_id == broken:
                raise OverflowError("int too large to convert to float")
            return super().tail_units(task_id, from_offset)

    reaper = Reaper(Defective(ledger.root, lease=ledger.lease))
    assert [record.task_id for record in reaper.reap()] == [other]
    assert str(reaper.failures[TaskId(broken)]) == (
        f"Task {broken} is unreadable: it could not be judged (OverflowError)"
    )


@pytest.mark.case("R24")
@pytest.mark.parametrize("pid", [0, -1, 2**31, 2**70, "1", 3.5, True, None, [1], 1e300])
def test_a_task_with_an_invalid_pid_is_reaped(ledger: Ledger, pid: object, monkeypatch):
    def asked(*_: object) -> None:
        raise AssertionError("a system call was made for it")

    monkeypatch.setattr(os, "kill", asked)
    monkeypatch.setattr(psutil, "Process", asked)
    task_id = foreign(ledger, pid)
    assert verdict(ledger, task_id).dead
    (record,) = Reaper(ledger).reap()
    assert record.task_id == task_id
    raw = ledger.read_raw(task_id)
    assert (raw["pid"], raw["status"]) == (pid, "FAILED")


def test_a_foreign_process_that_is_there_is_alive(ledger: Ledger):
    task_id = foreign(ledger, os.getpid())
    assert verdict(ledger, task_id).alive


@pytest.mark.case("R23")
def test_a_pid_that_became_another_process_is_dead(ledger: Ledger):
    began_ms = psutil.Process().create_time() * 1_000
    task_id = foreign(
        ledger, os.getpid(), created_at=began_ms - 60_000, started_at=began_ms - 5_000
    )
    assert "reused" in verdict(ledger, task_id).sentence
    young = foreign(ledger, os.getpid(), created_at=began_ms - 60_000, started_at=began_ms - 1_000)
    assert verdict(ledger, young).alive


def test_an_envelope_without_a_living_maker_has_a_day(ledger: Ledger):
    now = machine.wall_ms()
    fields = {"kind": "browser_task", "created_at": now - 3 * DAY_MS}
    recent = foreign(ledger, 0, **fields, last_activity_at=now - DAY_MS + 60_000)
    old = foreign(ledger, 0, **fields, last_activity_at=now - DAY_MS - 60_000)
    assert verdict(ledger, recent).owner is Owner.UNKNOWN
    snapshot = LedgerSnapshot(LedgerReader(ledger.root), lambda _: False)
    views = {view.task_id: view for view in snapshot.load(snapshot.survey()[0]).views}
    assert views[TaskId(recent)].undriven
    assert not views[TaskId(recent)].foreign, "a dead process drives nothing"
    assert views[TaskId(old)].orphaned
    assert [record.task_id for record in Reaper(ledger).reap()] == [old]


def test_a_task_that_cannot_be_reaped_now_is_named_and_tried_again(ledger: Ledger):
    task_id = foreign(ledger, 0)
    reaper = Reaper(ledger)
    blocked = ledger.root / task_id / "lock"
    blocked.mkdir()
    assert reaper.reap() == []
    assert list(reaper.failures) == [task_id]
    blocked.rmdir()
    assert [record.task_id for record in reaper.reap()] == [task_id]
    assert reaper.failures == {}


def test_a_task_that_ended_since_we_looked_stays_as_it_is(ledger: Ledger):
    task_id = foreign(ledger, 0)

    class Slow(Ledger):
        def read_many(self, ids):
            found = super().read_many(ids)
            ledger.mutate(task_id, lambda raw: raw.update(status="CANCELLED"))
            return found

    assert Reaper(Slow(ledger.root, lease=ledger.lease)).reap() == []
    assert ledger.read_raw(task_id)["status"] == "CANCELLED"


def test_a_lease_lives_as_long_as_its_process_and_no_longer(root: Path):
    lease = Lease.acquire(root)
    assert is_alive(root, lease.nonce) is True
    lease.release()
    assert is_alive(root, lease.nonce) is False
    assert is_alive(root, "../../etc/passwd") is None
    assert os.listdir(root / ".runners") == []


def test_asking_about_a_lease_makes_no_file(root: Path, lease: Lease):
    assert is_alive(root, "a" * 16) is False
    assert os.listdir(root / ".runners") == [lease.nonce]


def test_a_result_is_assembled_without_touching_the_pages():
    pages = [b'{"url":"a","depth":3}', b'{"url":"b","error":"x"}']
    summary = Tally(map(msgspec.json.decode, pages)).outcome("s", 5, "cancelled").summary()
    made = json.loads(b"".join(assemble({"summary": summary}, "pages", pages)))
    assert made["pages"] == [json.loads(page) for page in pages]
    assert (summary["succeeded"], summary["max_depth_reached"]) == (1, 3)
    nothing = json.loads(b"".join(assemble({"summary": summary}, "pages", [])))
    assert nothing == {"summary": summary, "pages": []}


def test_orphans_end_concurrently(root: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    """A start waits for all of them, and each end waits for the disk."""
    for _ in range(8):
        foreign(ledger, 0)
    flush, inside, met, waited = os.fsync, set[int](), threading.Event(), list[bool]()

    def flush_beside_another(fd: int) -> None:
        inside.add(threading.get_ident())
        if len(inside) > 1:
            met.set()
        if not waited:
            waited.append(met.wait(60))
        inside.discard(threading.get_ident())
        flush(fd)

    monkeypatch.setattr(os, "fsync", flush_beside_another)
    ended = Reaper(ledger).reap()
    assert met.is_set()
    assert [record.status for record in ended] == ["FAILED"] * 8
