"""A living process keeps its tasks, also when it is idle or its lease file is lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.ledger import machine, ownership
from engine.ledger.lease import RUNNERS, Lease, dead_leases, is_alive
from engine.ledger.ledger import Ledger
from engine.ledger.ownership import Owner, Ownership, owner_of
from engine.ledger.reaper import Reaper
from engine.model.records import EngineFields, TaskRecord
from tests.hard import reapers
from tests.support.endless_site import endless
from tests.support.processes import ENGINE, LEDGER, ended, heard, told, until

Beside = Callable[..., subprocess.Popen[str]]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")

HOLD = """
from engine.model.records import Status
task_id = ledger.create("crawl", {"url": "http://site.test/"}).task_id
ledger.claim(task_id)
say(task_id=task_id, nonce=lease.nonce)
for line in sys.stdin:
    say(**{"renew": lambda: {"renewed": lease.renew()},
           "create": lambda: {"task_id": ledger.create("crawl", {}).task_id},
           "finish": lambda: {"status": ledger.finish(task_id, Status.COMPLETED).status},
           "release": lambda: {"released": lease.release()},
           }[line.strip()]())
"""


def owner(ledger: Ledger, task_id: str) -> Ownership:
    record = ledger.read(task_id)
    assert isinstance(record, TaskRecord)
    return owner_of(ledger.root, record)


def taken_away(root: Path, how: str) -> None:
    """What a cleaner, or a person, does to the leases."""
    runners = root / RUNNERS
    if how == "the file":
        for path in runners.iterdir():
            path.unlink()
    elif how == "the folder":
        shutil.rmtree(runners)
    else:
        runners.rename(root / ".runners-old")
        runners.mkdir()


@pytest.mark.case("R25")
def test_many_reapers_end_no_task_of_a_living_process() -> None:
    found = reapers.beside_the_living(3, 4, 0.3)
    assert found["looks"] >= 3
    assert (found["runs"], found["false"], found["unfinished"]) == (5, 0, 0)


RUN = """
async def work(engine):
    args = {"url": sys.argv[2], "engine": "static", "respect_robots": False, "delay_ms": 50,
            "max_pages": 1_000_000, "max_depth": 100}
    record = await engine.requests.start("crawl", args)
    say(task_id=record.task_id)
    await engine.tasks.join(record.task_id)
asyncio.run(with_engine(work))
"""


@pytest.mark.case("R26")
def test_a_paused_process_keeps_runs(home: Path, ledger: Ledger, site: Any, beside: Beside) -> None:
    runner = beside(ENGINE + RUN, home, endless(site))
    task_id = heard(runner)["task_id"]
    pages = ledger.root / task_id / "pages.jsonl"
    until(lambda: pages.exists() and pages.read_bytes().count(b"\n") >= 3)
    runner.send_signal(signal.SIGSTOP)
    until(lambda: psutil.Process(runner.pid).status() == psutil.STATUS_STOPPED)
    stopped_at, looks = time.monotonic(), 0
    reaper = Reaper(ledger)
    while looks < 3 or time.monotonic() - stopped_at < 2:
        assert reaper.reap() == []
        assert owner(ledger, task_id).alive
        looks += 1
    assert psutil.Process(runner.pid).status() == psutil.STATUS_STOPPED
    size = pages.stat().st_size
    runner.send_signal(signal.SIGCONT)
    until(lambda: pages.stat().st_size > size)
    ledger.request_cancel(task_id)
    ended(runner)
    record = ledger.read(task_id)
    assert isinstance(record, TaskRecord)
    assert record.status == "CANCELLED"
    result = json.loads((pages.parent / "result.json").read_bytes())
    assert len(result["pages"]) == pages.read_bytes().count(b"\n")


def put_in_its_place(root: Path, what: str) -> None:
    """Something that is no lease stands where the only lease was."""
    runners = root / RUNNERS
    if what == "a file for all":
        shutil.rmtree(runners)
        runners.write_text("x")
        return
    if what == "a link for all":
        runners.rename(root / ".elsewhere")
        runners.symlink_to(root / ".elsewhere")
        return
    (lease,) = runners.iterdir()
    lease.unlink()
    if what == "a folder":
        lease.mkdir()
        (lease / "precious").write_text("x")
    elif what == "a pipe":
        os.mkfifo(lease)
    else:
        lease.symlink_to(lease)


@pytest.mark.parametrize(
    "what", ["a folder", "a pipe", "a circle of links", "a file for all", "a link for all"]
)
def test_a_lease_path_with_another_file_type(home: Path, beside: Beside, what: str) -> None:
    root = home / "tasks"
    root.mkdir()
    holder = beside(LEDGER + HOLD, root)
    word = heard(holder)
    put_in_its_place(root, what)
    looker = Ledger(root)
    assert owner(looker, word["task_id"]).alive
    holder.kill()
    holder.wait()
    assert owner(looker, word["task_id"]).dead


@pytest.mark.parametrize("how", ["the file", "the folder", "another folder"])
def test_a_removed_lease_ends_no_living_task(ledger: Ledger, beside: Beside, how: str) -> None:
    holder = beside(LEDGER + HOLD, ledger.root)
    word = heard(holder)
    taken_away(ledger.root, how)
    assert owner(ledger, word["task_id"]).alive
    assert Reaper(ledger).reap() == []
    told(holder, "renew")
    assert heard(holder) == {"renewed": True}
    assert is_alive(ledger.root, word["nonce"])
    told(holder, "finish")
    assert heard(holder) == {"status": "COMPLETED"}


def test_a_new_task_puts_its_owners_lease_back(ledger: Ledger, beside: Beside) -> None:
    holder = beside(LEDGER + HOLD, ledger.root)
    nonce = heard(holder)["nonce"]
    taken_away(ledger.root, "the folder")
    told(holder, "create")
    made = heard(holder)["task_id"]
    assert is_alive(ledger.root, nonce)
    holder.kill()
    holder.wait()
    assert made in {record.task_id for record in Reaper(ledger).reap()}


@pytest.mark.parametrize("how", ["the file", "the folder", "another folder"])
def test_a_death_without_lease_is_detected(ledger: Ledger, beside: Beside, how: str) -> None:
    holder = beside(LEDGER + HOLD, ledger.root)
    task_id = heard(holder)["task_id"]
    taken_away(ledger.root, how)
    holder.kill()
    holder.wait()
    (record,) = Reaper(ledger).reap()
    assert record.task_id == task_id
    assert record.error is not None
    assert record.error.message == f"orphaned: process {holder.pid} is gone"


def test_a_task_of_this_process_ends_with_its_lease(root: Path, ledger: Ledger) -> None:
    gone = Lease.acquire(root)
    task_id = Ledger(root, lease=gone).create("crawl", {}).task_id
    taken_away(root, "the file")
    assert owner(ledger, task_id).alive
    gone.release()
    assert owner(ledger, task_id).dead


def test_a_lease_is_restored_in_a_replaced_root(root: Path, lease: Lease) -> None:
    root.rename(root.with_name("moved"))
    assert lease.renew() is False
    assert not root.exists()
    root.mkdir()
    assert lease.renew() is False  # it may be the place of a disk that is not mounted
    assert os.listdir(root) == []
    assert lease.renew(anew=True) is True
    assert is_alive(root, lease.nonce)
    assert is_alive(root.with_name("moved"), lease.nonce) is False
    lease.release()
    assert os.listdir(root / RUNNERS) == []


def test_a_lease_that_stands_is_left_as_it_is(root: Path, lease: Lease) -> None:
    before = (root / RUNNERS / lease.nonce).stat()
    assert lease.renew() is True
    assert (root / RUNNERS / lease.nonce).stat() == before
    lease.release()
    assert lease.renew() is False
    assert os.listdir(root / RUNNERS) == []


def in_container(
    beside: Beside, script: str, root: Path
) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """Start `script` in a pid namespace, and return it with its first word."""
    within = ("unshare", "-p", "-f", "--mount-proc", "--kill-child")
    if subprocess.run([*within, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no pid namespace can be made here")
    container = beside(script, root, before=within)
    return container, heard(container)


@pytest.mark.case("R28")
@pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux'")
def test_a_container_run_without_lease_lives(
    ledger: Ledger, task_id: str, beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process cannot be seen from here: its lease has to stay away before it counts as dead."""
    script = LEDGER + (
        "inside = ledger.claim(ledger.create('crawl', {}).task_id).task_id\n"
        "say(task_id=inside, nonce=lease.nonce)\n"
        "sys.stdin.readline(); lease.renew(); say(renewed=True); sys.stdin.readline()\n"
    )
    container, word = in_container(beside, script, ledger.root)
    monkeypatch.setattr(ownership, "MISSING_S", 1_000.0)  # however late the next look comes
    (ledger.root / RUNNERS / word["nonce"]).unlink()
    assert Reaper(ledger).reap() == []
    assert owner(ledger, word["task_id"]).owner is Owner.UNKNOWN
    told(container)
    heard(container)
    assert owner(ledger, word["task_id"]).alive
    container.kill()
    container.wait()
    monkeypatch.setattr(ownership, "MISSING_S", 0.5)
    (ledger.root / RUNNERS / word["nonce"]).unlink()
    until(lambda: Reaper(ledger).reap())


@pytest.mark.case("R28")
@pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux'")
def test_same_named_containers_do_not_reap(ledger: Ledger, task_id: str, beside: Beside) -> None:
    """The same host name and boot, but no process of the other is to be seen."""
    script = LEDGER + (
        "from engine.ledger.reaper import Reaper\n"
        "inside = ledger.claim(ledger.create('crawl', {}).task_id).task_id\n"
        "say(pid=os.getpid(), task_id=inside, ended=[r.task_id for r in Reaper(ledger).reap()])\n"
        "sys.stdin.readline()\n"
    )
    container, word = in_container(beside, script, ledger.root)
    assert (word["pid"], word["ended"]) == (1, [])
    assert Reaper(ledger).reap() == []
    assert owner(ledger, word["task_id"]).alive
    container.kill()
    container.wait()
    until(lambda: owner(ledger, word["task_id"]).dead)
    assert [record.task_id for record in Reaper(ledger).reap()] == [word["task_id"]]


def test_without_boot_id_the_lease_decides(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "boot_id", lambda: "")
    here, gone = Lease.acquire(root), Lease.acquire(root)
    ledger = Ledger(root, lease=here)
    kept = ledger.create("crawl", {}).task_id
    lost = Ledger(root, lease=gone).create("crawl", {}).task_id
    gone.release()
    assert ledger.read_raw(kept)["engine"]["boot_id"] == ""
    assert [record.task_id for record in Reaper(ledger).reap()] == [lost]
    here.release()


@pytest.mark.case("R23")
def test_the_message_names_a_reused_pid(ledger: Ledger) -> None:
    began_ms = psutil.Process().create_time() * 1_000
    task_id = reapers.write_foreign(ledger.root, os.getpid())
    meta = ledger.root / task_id / "meta.json"
    raw = json.loads(meta.read_text())
    meta.write_text(json.dumps(raw | {"started_at": began_ms - 60_000}))
    (record,) = Reaper(ledger).reap()
    assert record.error is not None
    assert record.error.code == "orphaned"
    assert record.error.message == (
        f"orphaned: process {os.getpid()} is another one now (its number was reused)"
    )


@pytest.mark.case("R23")
def test_pids_that_were_really_given_to_others_keep_no_orphan_alive() -> None:
    reused, why_not = reapers.with_reused_pids()
    if reused is None:
        pytest.skip(why_not)
    assert reused["same_pid"]
    assert "its number was reused" in reused["foreign"]
    assert reused["ours"].startswith("orphaned: process")
    assert not reused["living_ended"]


@pytest.mark.case("R21", "R22")
def test_orphans_are_reaped_before_any_start(home: Path, ledger: Ledger, beside: Beside) -> None:
    holder = beside(LEDGER + HOLD, ledger.root)
    running = heard(holder)["task_id"]
    told(holder, "create")
    pending = heard(holder)["task_id"]
    holder.kill()
    holder.wait()
    look = "[v.entry.status for v in await engine.tasks.list()]"
    script = f"async def work(engine):\n    say(tasks={look})\n"
    (word,) = ended(beside(ENGINE + script + "asyncio.run(with_engine(work))", home))
    assert word["tasks"] == ["FAILED", "FAILED"]
    for task_id in (running, pending):
        raw = ledger.read_raw(task_id)
        assert raw["error"] == {
            "message": f"orphaned: process {holder.pid} is gone",
            "code": "orphaned",
        }
        assert raw["ended_at"] >= raw.get("started_at", raw["created_at"])


def test_the_fields_that_tell_an_owner_are_all_written(ledger: Ledger, lease: Lease) -> None:
    record = ledger.create("crawl", {}, engine=EngineFields(name="mine"))
    assert record.engine is not None
    assert record.pid == os.getpid()
    assert (record.engine.host, record.engine.runner) == (machine.host(), lease.nonce)
    assert record.engine.owner_started_at == machine.own_start_ms(os.getpid())


def test_concurrent_starts_on_a_new_home_all_get_a_lease(home: Path) -> None:
    rounds, number = 60, 8
    gate = threading.Barrier(number)
    taken: list[Lease] = []

    def start() -> None:
        for each in range(rounds):
            gate.wait(100)
            taken.append(Lease.acquire(home / str(each) / "tasks"))

    threads = [threading.Thread(target=start) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    for one in taken:
        one.release()
    assert len(taken) == rounds * number


def test_a_copied_ledger_keeps_living_owners(root: Path, ledger: Ledger, task_id: str) -> None:
    """In the copy nobody holds their leases, until each makes its own again."""
    aside = root.with_name("aside")
    root.rename(aside)
    shutil.copytree(aside, root)
    assert dead_leases(root) == []
    assert owner(ledger, task_id).alive
    assert Reaper(Ledger(root)).reap() == []
    assert ledger.lease is not None
    assert ledger.lease.renew()
    assert is_alive(root, ledger.lease.nonce)
