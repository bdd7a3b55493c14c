"""The lock shared with OpenChrome: waiting, holding, and taking it from the dead only."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from engine.ledger import lock as lock_module
from engine.ledger.files import Folder
from engine.ledger.ledger import Ledger
from engine.ledger.lock import UNMOVED_S, LockLost, TaskLock, held_by_another
from engine.model.errors import LockTimeout
from tests.support.lock_clock import LockClock, given_clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> LockClock:
    return given_clock(monkeypatch)


@pytest.fixture
def folder(ledger: Ledger, task_id: str):
    with Folder.at(str(ledger.root / task_id)) as folder:
        yield folder


def peers(folder: Folder) -> Path:
    return Path(folder.path) / ".lock.lock"


def add(name: str):
    def change(raw: dict) -> None:
        raw[name] = raw.get(name, 0) + 1

    return change


def test_the_lock_is_the_directory_that_openchrome_looks_for(folder: Folder):
    with TaskLock(folder, "t"):
        assert peers(folder).is_dir()
        assert os.listdir(peers(folder)) == []
        assert (Path(folder.path) / ".lock").read_bytes() == b"{}"
    assert not peers(folder).exists()


def test_two_threads_never_hold_it_at_once(ledger: Ledger, task_id: str):
    def work() -> None:
        for _ in range(25):
            ledger.mutate(task_id, add("n"), wait_s=60)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert ledger.read_raw(task_id)["n"] == 100


def test_a_living_peer_is_waited_for_and_then_named(folder: Folder, clock: LockClock):
    peers(folder).mkdir()
    inode = peers(folder).stat().st_ino
    with (
        pytest.raises(LockTimeout, match="Task t stayed locked"),
        TaskLock(folder, "t", timeout_s=0.2),
    ):
        pass
    assert peers(folder).stat().st_ino == inode


def test_a_lock_that_a_peer_gives_back_is_taken(folder: Folder, clock: LockClock):
    peers(folder).mkdir()

    def given_back() -> None:
        if len(clock.slept) == 3:
            peers(folder).rmdir()

    clock.meanwhile = given_back
    with TaskLock(folder, "t"):
        assert peers(folder).is_dir()
    assert len(clock.slept) == 3


DATES = {"an hour ago": 3_600, "now": 0, "in two hours": -7_200, "in a year": -31_536_000}


@pytest.mark.case("R15")
@pytest.mark.parametrize("age_s", DATES.values(), ids=DATES)
def test_a_dead_peers_lock_is_taken(folder: Folder, clock: LockClock, age_s: int) -> None:
    peers(folder).mkdir()
    clock.aged(peers(folder), age_s)
    with TaskLock(folder, "t"):
        assert UNMOVED_S <= clock.passed_s < UNMOVED_S + 1
    assert [name for name in os.listdir(folder.path) if name.startswith(".lock.lock")] == []


def test_attempts_that_give_up_early_add_to_what_was_seen(folder: Folder, clock: LockClock) -> None:
    peers(folder).mkdir()
    with pytest.raises(LockTimeout), TaskLock(folder, "t", timeout_s=UNMOVED_S - 1):
        pass
    before_s = clock.passed_s
    with TaskLock(folder, "t", timeout_s=2):
        assert clock.passed_s - before_s < 2


def test_the_time_in_which_we_stood_still_proves_nothing(folder: Folder, clock: LockClock) -> None:
    """A container that was paused, a laptop that slept: the peer stood still as we did."""
    peers(folder).mkdir()
    for _ in range(3):
        with pytest.raises(LockTimeout), TaskLock(folder, "t", timeout_s=0.01):
            pass
        clock.slept.append(3_600)
    assert peers(folder).is_dir()


@pytest.mark.case("R30")
def test_a_peer_whose_time_moves_is_alive_however_old_it_looks(folder: Folder, clock: LockClock):
    """A clock that jumped ahead makes every lock look old; the living keep touching theirs."""
    peers(folder).mkdir()
    ages = itertools.count(10_000, -1)

    def touched() -> None:
        clock.aged(peers(folder), next(ages))

    touched()
    clock.meanwhile = touched
    with pytest.raises(LockTimeout), TaskLock(folder, "t"):
        pass
    assert peers(folder).is_dir()


@pytest.mark.case("R30")
@pytest.mark.parametrize("step_s", [7_200, -7_200])
def test_a_clock_jump_keeps_living_locks(folder: Folder, clock: LockClock, step_s: int) -> None:
    clock.step_s = step_s
    peers(folder).mkdir()
    clock.aged(peers(folder), step_s)
    beat_at = 5.0

    def beats() -> None:
        nonlocal beat_at
        if clock.passed_s >= beat_at:
            beat_at += 5.0
            clock.aged(peers(folder), 0)

    clock.meanwhile = beats
    with pytest.raises(LockTimeout), TaskLock(folder, "t"):
        pass
    assert peers(folder).is_dir()


def test_a_dead_peers_lock_with_files_in_it_does_not_block_us(folder: Folder, clock: LockClock):
    peers(folder).mkdir()
    (peers(folder) / "planted").touch()
    with TaskLock(folder, "t"):
        assert os.listdir(peers(folder)) == []


@pytest.mark.parametrize("what", ["a file", "a link to nowhere", "a folder with files"])
def test_what_is_no_lock_is_put_aside_and_kept(folder: Folder, clock: LockClock, what: str) -> None:
    in_the_way = peers(folder)
    if what == "a file":
        in_the_way.write_text("precious")
    elif what == "a link to nowhere":
        in_the_way.symlink_to("nowhere")
    else:
        (in_the_way / "precious").mkdir(parents=True)
    assert held_by_another(folder)
    with TaskLock(folder, "t"):
        assert in_the_way.is_dir()
    assert len(list(in_the_way.parent.glob(".lock.lock.dead-*"))) == 1


def test_a_stolen_lock_repeats_the_change(ledger: Ledger, task_id: str):
    place = ledger.root / task_id / ".lock.lock"
    tries = []

    def change(raw: dict) -> None:
        tries.append(raw.get("n"))
        raw["n"] = raw.get("n", 0) + 1
        if len(tries) == 1:
            place.rmdir()  # as a peer does that takes us for dead

    ledger.mutate(task_id, change)
    assert len(tries) == 2
    assert ledger.read_raw(task_id)["n"] == 1


def test_leaving_does_not_remove_somebody_elses_lock(folder: Folder, clock: LockClock):
    with TaskLock(folder, "t") as lock:
        peers(folder).rmdir()
        peers(folder).mkdir()
        clock.aged(peers(folder), 1)
        with pytest.raises(LockLost):
            lock.check()
    assert peers(folder).is_dir()


DIE_INSIDE = """
import sys, os, signal
from engine.ledger.files import Folder
from engine.ledger.lock import TaskLock
with Folder.at(sys.argv[1]) as folder, TaskLock(folder, "t"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.case("R16")
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_lock_is_free_after_a_death(ledger: Ledger, task_id: str, clock: LockClock) -> None:
    place = ledger.root / task_id
    died = subprocess.run([sys.executable, "-c", DIE_INSIDE, str(place)], check=False, timeout=150)
    assert died.returncode == -signal.SIGKILL
    assert (place / ".lock.lock").is_dir()
    ledger.mutate(task_id, add("n"))
    assert clock.slept == []  # nothing was waited for, let alone the second that a peer is watched
    assert not (place / ".lock.lock").exists()


def test_a_reused_inode_does_not_free_a_living_lock(folder: Folder, clock: LockClock):
    """File systems use an inode again at once: the time must be ours, too."""
    with TaskLock(folder, "t"):
        pass
    peers(folder).mkdir()
    facts = peers(folder).stat()
    record = {"dir": [facts.st_ino, facts.st_mtime_ns - 10**10]}
    (Path(folder.path) / "lock").write_text(json.dumps(record))
    with pytest.raises(LockTimeout), TaskLock(folder, "t", timeout_s=0.3):
        pass


def test_a_peer_that_took_over_a_dead_lock_just_before_us_keeps_it(
    folder: Folder, clock: LockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It removes the dead directory and makes its own, which often has the same inode."""
    rename = Folder.rename
    quicker: list[str] = []

    def after_the_peer(self: Folder, old: str, new: str) -> None:
        if not quicker:
            quicker.append(old)
            clock.aged(peers(folder), 0)
        rename(self, old, new)

    peers(folder).mkdir()
    clock.aged(peers(folder), 20)
    inode = peers(folder).stat().st_ino
    monkeypatch.setattr(Folder, "rename", after_the_peer)
    with pytest.raises(LockTimeout), TaskLock(folder, "t", timeout_s=UNMOVED_S + 1):
        pass
    assert quicker == [".lock.lock"]
    assert peers(folder).stat().st_ino == inode
    assert list(peers(folder).parent.glob(".lock.lock.dead-*")) == []


@pytest.mark.skipif(os.name == "nt", reason="folders have no modes there")
@pytest.mark.parametrize("mode", [0o755, 0o700, 0o500])
def test_only_our_own_directory_is_taken_after_a_second(
    folder: Folder, clock: LockClock, mode: int
) -> None:
    """One of ours died between two writes; a peer may have locked the task in that moment.

    Only the first lock of a Node process has a time of whole milliseconds.
    """
    with TaskLock(folder, "t"):
        pass
    peers(folder).mkdir(mode)
    made_ns = peers(folder).stat().st_mtime_ns | 1
    os.utime(peers(folder), ns=(made_ns, made_ns))
    record = {"dir": None, "trying_ns": made_ns - 1_000_001}
    (Path(folder.path) / "lock").write_text(json.dumps(record))
    assert held_by_another(folder) == (mode != 0o500)
    if mode == 0o500:
        with TaskLock(folder, "t"):
            assert lock_module.WATCH_S <= clock.passed_s < lock_module.WATCH_S + 0.2
        return
    with pytest.raises(LockTimeout), TaskLock(folder, "t", timeout_s=UNMOVED_S - 1):
        pass
    assert peers(folder).is_dir()


def test_after_two_seconds_of_our_use_a_peer_gets_its_turn(folder: Folder, clock: LockClock):
    (Path(folder.path) / "lock").write_bytes(b"")  # what was before was by another clock
    while lock_module.YIELD_S not in clock.slept:  # bounded by the limit of the test
        with TaskLock(folder, "t"):
            clock.sleep(0.1)
    worked_s = 0.1 * clock.slept.index(lock_module.YIELD_S)
    assert lock_module.BUSY_S <= worked_s <= lock_module.BUSY_S + 0.2


def test_a_folder_that_may_not_be_written_is_no_busy_one(folder: Folder, monkeypatch):
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "mkdir", refused)
    monkeypatch.setattr(Folder, "is_writable", lambda _: False)
    with pytest.raises(PermissionError), TaskLock(folder, "t", timeout_s=5):
        pass
