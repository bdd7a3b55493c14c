"""The snapshot is read once; a survey lists only later changes."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from engine.ledger import listing
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.ledger.reader import LedgerReader
from engine.ledger.snapshot import LedgerSnapshot
from engine.model.records import Stamp, TaskId
from tests.support.engines import opened
from tests.support.task_folders import task_id, write_meta


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
    met = snapshot.load_new(snapshot.list_ids())
    seen = careful.load(careful.survey()[0])
    assert set(map(msgspec.json.encode, met.views)) == set(map(msgspec.json.encode, seen.views))
    assert snapshot.survey() == ([task_id(21)], ())  # it has no meta.json yet


def test_what_was_written_while_a_large_ledger_was_met_is_read_again(tmp_path: Path) -> None:
    for number in range(5):
        aged(write_meta(tmp_path, number, "FAILED"))
    snapshot = LedgerSnapshot(LedgerReader(tmp_path), lambda _: False)
    snapshot.load_new(snapshot.list_ids())
    write_meta(tmp_path, 3, "FAILED", note="another program wrote into an ended task")
    assert snapshot.survey() == ([task_id(3)], ())
    snapshot.load([TaskId(task_id(3))])
    aged(write_meta(tmp_path, 4, "COMPLETED"))
    assert snapshot.survey() == ([task_id(4)], ())


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
