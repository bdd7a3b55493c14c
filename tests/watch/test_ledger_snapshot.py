"""The snapshot is read once; a survey lists only later changes."""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ledger import listing
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.ledger.reader import LedgerReader
from engine.ledger.snapshot import LedgerSnapshot
from engine.model.errors import LedgerUnusable
from engine.model.records import Stamp, TaskId, Unreadable
from tests.support.engines import opened
from tests.support.task_folders import task_id, write_meta
from tests.watch.readers import first_load


def test_a_survey_of_an_unchanged_ledger_names_nothing_to_read_again(tmp_path: Path) -> None:
    for number in range(20):
        write_meta(tmp_path, number, "COMPLETED")
    snapshot = LedgerSnapshot(LedgerReader(tmp_path), lambda _: False)
    named, _ = snapshot.survey()
    assert len(named) == 20
    snapshot.load(named)
    assert snapshot.survey() == ([], ())
    write_meta(tmp_path, 7, "COMPLETED", note="written again")
    assert snapshot.survey() == ([task_id(7)], ())


def test_a_record_written_between_survey_and_reading_is_named_again(tmp_path: Path) -> None:
    write_meta(tmp_path, 1)
    snapshot = LedgerSnapshot(LedgerReader(tmp_path), lambda _: False)
    named, _ = snapshot.survey()
    write_meta(tmp_path, 1, "COMPLETED", note="newer than the stamp")
    snapshot.load(named)
    assert snapshot.survey()[0] == named


def test_a_task_of_this_process_is_its_own_before_it_has_reached_the_queue(tmp_path: Path) -> None:
    lease = Lease.acquire(tmp_path)
    try:
        ledger = Ledger(tmp_path, lease=lease)
        record = ledger.create("crawl", {})
        view = LedgerSnapshot(ledger, lambda _: False).of(record)
    finally:
        lease.release()
    assert (view.ours, view.foreign, view.orphaned) == (True, False, False)


async def test_an_own_envelope_is_not_foreign(tmp_path: Path) -> None:
    async with opened(tmp_path) as engine:
        record = await engine.requests.start("browser_task", {"objective": "look around"})
        here = await engine.tasks.get(record.task_id)
    code = (
        "import asyncio, sys; from pathlib import Path; from engine.model.config import Settings\n"
        "from engine.service.engine import Engine\n"
        "async def look():\n"
        "    engine = Engine(Settings.at(home=Path(sys.argv[1])), accepts=False)\n"
        "    await engine.open(); view = await engine.tasks.get(sys.argv[2])\n"
        "    await engine.close()\n"
        "    print(view.ours, view.foreign, view.orphaned)\n"
        "asyncio.run(look())"
    )
    asked = [sys.executable, "-c", code, str(tmp_path), record.task_id]
    said = await asyncio.to_thread(subprocess.check_output, asked, text=True)
    assert (here.ours, here.foreign, here.orphaned) == (False, False, False)
    assert said.split() == ["False", "True", "False"]


def aged(folder: Path, seconds: float = 3_600) -> None:
    """As if its meta.json had been written that much earlier."""
    file = folder / "meta.json"
    written = file.stat().st_mtime - seconds
    os.utime(file, (written, written))


def test_what_a_large_ledger_holds_is_met_once_and_not_read_again(tmp_path: Path) -> None:
    for number in range(20):
        aged(write_meta(tmp_path, number, "COMPLETED" if number % 2 else "FAILED"))
    aged(write_meta(tmp_path, 20, "PENDING"))
    (tmp_path / task_id(21)).mkdir()
    reader = LedgerReader(tmp_path)
    snapshot, careful = (
        LedgerSnapshot(reader, lambda _: False),
        LedgerSnapshot(reader, lambda _: False),
    )
    met = first_load(snapshot)
    seen = careful.load(careful.survey()[0])
    assert set(map(msgspec.json.encode, met.views)) == set(map(msgspec.json.encode, seen.views))
    assert snapshot.survey() == ([task_id(21)], ())  # it has no meta.json yet


def test_what_was_written_while_a_large_ledger_was_met_is_read_again(tmp_path: Path) -> None:
    for number in range(5):
        aged(write_meta(tmp_path, number, "FAILED"))
    snapshot = LedgerSnapshot(LedgerReader(tmp_path), lambda _: False)
    first_load(snapshot)
    write_meta(tmp_path, 3, "FAILED", note="another program wrote into an ended task")
    assert snapshot.survey() == ([task_id(3)], ())
    snapshot.load([TaskId(task_id(3))])
    aged(write_meta(tmp_path, 4, "COMPLETED"))
    assert snapshot.survey() == ([task_id(4)], ())


TURNS = 6


@pytest.fixture(autouse=True)
def _in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Routine surveys compare all ended tasks of a small ledger in TURNS."""
    monkeypatch.setattr("engine.ledger.snapshot.ENDED_AT_ONCE", 1)
    monkeypatch.setattr("engine.ledger.snapshot.ROUNDS", TURNS)


def known_for_long(root: Path, statuses: list[str]) -> LedgerSnapshot:
    """A snapshot of tasks and of a root that were written an hour ago."""
    folders = [write_meta(root, number, status) for number, status in enumerate(statuses)]
    snapshot = LedgerSnapshot(LedgerReader(root), lambda _: False)
    for place in (*(folder / "meta.json" for folder in folders), root):
        aged_s = place.stat().st_mtime - 3_600
        os.utime(place, (aged_s, aged_s))
    snapshot.load(snapshot.survey()[0])
    assert snapshot.survey() == ([], ())
    return snapshot


def routine(snapshot: LedgerSnapshot) -> list[TaskId]:
    return snapshot.survey(whole=False)[0]


def rewrite_long_ago(root: Path, number: int, note: str = "written again") -> None:
    place = write_meta(root, number, "COMPLETED", note=note) / "meta.json"
    os.utime(place, (1_700_000_000, 1_700_000_000))


def test_routine_surveys_compare_each_ended_task_once_a_round(tmp_path: Path) -> None:
    snapshot = known_for_long(tmp_path, ["COMPLETED"] * 60)
    for number in range(60):
        rewrite_long_ago(tmp_path, number)
    parts: list[list[TaskId]] = []
    for _ in range(TURNS):
        parts.append(routine(snapshot))
        snapshot.load(parts[-1])
    assert sorted(chain.from_iterable(parts)) == [task_id(number) for number in range(60)]
    assert max(map(len, parts)) < 60
    for number in range(60):
        rewrite_long_ago(tmp_path, number, "once more")
    assert len(snapshot.survey()[0]) == 60, "a whole survey compares all"


def test_each_routine_survey_compares_live_and_just_written_tasks(tmp_path: Path) -> None:
    snapshot = known_for_long(tmp_path, ["RUNNING", "COMPLETED"])
    for turn in range(TURNS):
        write_meta(tmp_path, 0, "RUNNING", phase=f"turn {turn}")
        os.utime(tmp_path / task_id(0) / "meta.json", (1_700_000_000 + turn,) * 2)
        named = routine(snapshot)
        assert task_id(0) in named
        snapshot.load(named)
    write_meta(tmp_path, 1, "COMPLETED")
    snapshot.load(snapshot.survey()[0])  # known as written just now
    for turn in range(TURNS):
        write_meta(tmp_path, 1, "COMPLETED", note=f"turn {turn}")
        named = routine(snapshot)
        assert task_id(1) in named
        snapshot.load(named)


def test_each_routine_survey_sees_new_and_removed_folders(tmp_path: Path) -> None:
    snapshot = known_for_long(tmp_path, ["COMPLETED"] * 5)
    for turn in range(TURNS):
        new, old = 10 + turn, turn if turn < 5 else 10
        write_meta(tmp_path, new, "COMPLETED")
        shutil.rmtree(tmp_path / task_id(old))
        os.utime(tmp_path, (1_700_000_000 + turn,) * 2)  # long enough ago to tell of each change
        named, gone = snapshot.survey(whole=False)
        assert (task_id(new) in named, gone) == (True, (task_id(old),))
        snapshot.load(named)


def test_a_root_that_changed_just_now_is_listed_in_each_survey(tmp_path: Path) -> None:
    snapshot = known_for_long(tmp_path, ["COMPLETED"] * 5)
    now_s = time.time()
    os.utime(tmp_path, (now_s, now_s))
    assert snapshot.survey(whole=False) == ([], ())
    write_meta(tmp_path, 7, "COMPLETED")
    os.utime(tmp_path, (now_s, now_s))  # as two changes within the resolution of its time
    assert task_id(7) in routine(snapshot)


def test_a_whole_survey_lists_the_root_whatever_its_time(tmp_path: Path) -> None:
    snapshot = known_for_long(tmp_path, ["COMPLETED"])
    at_ns = tmp_path.stat().st_mtime_ns
    for number in range(1, TURNS):
        routine(snapshot)
        write_meta(tmp_path, number, "COMPLETED")
        os.utime(tmp_path, ns=(at_ns, at_ns))
        named = snapshot.survey()[0]
        assert task_id(number) in named
        snapshot.load(named)


def test_the_root_is_listed_once_a_round_whatever_its_time(tmp_path: Path) -> None:
    snapshot = known_for_long(tmp_path, ["COMPLETED"] * TURNS)
    at_ns = tmp_path.stat().st_mtime_ns
    routine(snapshot)
    write_meta(tmp_path, 50, "COMPLETED")
    os.utime(tmp_path, ns=(at_ns, at_ns))
    named = [task_id(50) in routine(snapshot) for _ in range(TURNS)]
    assert named == [False] * (TURNS - 1) + [True]


def test_the_first_routine_survey_of_a_large_ledger_compares_all(tmp_path: Path) -> None:
    for number in range(20):
        aged(write_meta(tmp_path, number, "FAILED"))
    snapshot = LedgerSnapshot(LedgerReader(tmp_path), lambda _: False)
    first_load(snapshot)
    for number in range(20):
        write_meta(tmp_path, number, "FAILED", note="another program wrote into an ended task")
    assert len(routine(snapshot)) == 20


def test_each_routine_survey_names_an_unreadable_record(tmp_path: Path) -> None:
    snapshot = known_for_long(tmp_path, ["COMPLETED"] * TURNS)
    routine(snapshot)  # the first turn of a round
    folder = write_meta(tmp_path, 90)
    (folder / "meta.json").write_text("{")
    for place in (folder / "meta.json", tmp_path):
        os.utime(place, (1_700_000_000,) * 2)
    for _ in range(TURNS):
        snapshot.refresh([TaskId(task_id(90))])  # after a notice
        assert task_id(90) in routine(snapshot)


def test_a_new_task_that_was_named_and_not_read_is_named_again(tmp_path: Path) -> None:
    snapshot = known_for_long(tmp_path, ["COMPLETED"] * TURNS)
    write_meta(tmp_path, 50, "COMPLETED")
    (tmp_path / task_id(51)).mkdir()
    os.utime(tmp_path, (1_700_000_000,) * 2)
    for _ in range(TURNS):
        assert {task_id(50), task_id(51)} == {*routine(snapshot)}


def test_a_changed_task_that_was_named_and_not_read_is_named_again(tmp_path: Path) -> None:
    snapshot = known_for_long(tmp_path, ["COMPLETED"] * TURNS)
    rewrite_long_ago(tmp_path, 0)
    assert task_id(0) in snapshot.survey()[0]
    for _ in range(TURNS):
        assert task_id(0) in routine(snapshot)


def test_a_round_does_not_grow_longer_when_most_tasks_are_removed(tmp_path: Path) -> None:
    snapshot = known_for_long(tmp_path, ["COMPLETED"] * 60)
    routine(snapshot)
    for number in range(10, 60):
        shutil.rmtree(tmp_path / task_id(number))
    assert len(snapshot.survey(whole=False)[1]) == 50
    for number in range(10):
        rewrite_long_ago(tmp_path, number)
    named = set[TaskId]()
    for _ in range(2 * TURNS):
        found = routine(snapshot)
        named.update(found)
        snapshot.load(found)
    assert named == {task_id(number) for number in range(10)}


def test_a_routine_survey_that_failed_is_repeated(tmp_path: Path) -> None:
    root = tmp_path / "tasks"
    root.mkdir()
    snapshot = known_for_long(root, ["COMPLETED"] * 60)
    for number in range(60):
        rewrite_long_ago(root, number)
    named = routine(snapshot)
    snapshot.load(named)
    root.rename(tmp_path / "away")
    root.write_text("no folder")
    with pytest.raises(LedgerUnusable):
        routine(snapshot)
    root.unlink()
    (tmp_path / "away").rename(root)
    for _ in range(TURNS - 1):
        found = routine(snapshot)
        named += found
        snapshot.load(found)
    assert sorted(named) == [task_id(number) for number in range(60)]


def test_tasks_that_were_away_with_their_root_are_named_when_it_is_back(tmp_path: Path) -> None:
    root = tmp_path / "tasks"
    root.mkdir()
    snapshot = known_for_long(root, ["COMPLETED"] * 60)
    routine(snapshot)
    root.rename(tmp_path / "away")
    assert snapshot.refresh([TaskId(task_id(3))]).gone == (task_id(3),)
    (tmp_path / "away").rename(root)
    assert routine(snapshot) == [task_id(3)]


def test_a_record_that_only_a_strict_reader_refuses_is_named_in_each_survey(tmp_path: Path) -> None:
    snapshot = known_for_long(tmp_path, ["COMPLETED"] * TURNS)
    place = write_meta(tmp_path, 90, "RUNNING", pid=2**31 - 1) / "meta.json"
    place.write_text(place.read_text().replace("{", '{"pid": 1, ', 1))
    os.utime(place, (1_700_000_000,) * 2)
    os.utime(tmp_path, (1_700_000_000,) * 2)
    snapshot.load(routine(snapshot))
    entry = snapshot.views()[TaskId(task_id(90))].entry
    assert isinstance(entry, Unreadable)
    for _ in range(TURNS):
        assert task_id(90) in routine(snapshot)
        snapshot.load([TaskId(task_id(90))])


def test_a_cleared_snapshot_lists_the_root_again(tmp_path: Path) -> None:
    snapshot = known_for_long(tmp_path, ["COMPLETED"])
    assert snapshot.clear() == (task_id(0),)
    assert routine(snapshot) == [task_id(0)]


SIZES = st.integers(0, 2**63)
STAMPS = st.builds(Stamp, st.integers(0, 2**128), st.integers(-(2**63), 2**63 - 1), SIZES)


@given(STAMPS, STAMPS)
def test_a_stamp_in_one_number_tells_every_change_of_it(one: Stamp, other: Stamp) -> None:
    assert (listing.packed(one) == listing.packed(other)) is (one == other)
    for near in (1, -1, 2**32, -(2**32), 2**62):
        moved = Stamp(one.inode, one.mtime_ns // 4 + near, one.size)
        assert listing.packed(moved) != listing.packed(
            Stamp(one.inode, one.mtime_ns // 4, one.size)
        )
        grown = Stamp(one.inode, one.mtime_ns, one.size // 4 + abs(near))
        assert listing.packed(grown) != listing.packed(
            Stamp(one.inode, one.mtime_ns, one.size // 4)
        )


def test_a_survey_tells_who_went_in_the_order_in_which_they_had_come(tmp_path: Path) -> None:
    folders = [write_meta(tmp_path, number, "COMPLETED") for number in range(30)]
    snapshot = LedgerSnapshot(LedgerReader(tmp_path), lambda _: False)
    snapshot.load([TaskId(task_id(number)) for number in range(30)])
    for folder in folders[5:20]:
        (folder / "meta.json").unlink()
        folder.rmdir()
    assert snapshot.survey()[1] == tuple(task_id(number) for number in range(5, 20))
    assert set(snapshot.views()) == {task_id(n) for n in (*range(5), *range(20, 30))}
