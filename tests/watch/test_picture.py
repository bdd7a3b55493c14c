"""The picture is read once: a survey names only what has changed since."""

from pathlib import Path

from engine.store.lease import Lease
from engine.store.ledger import Ledger
from engine.store.look import LedgerLook
from engine.store.picture import Picture
from tests.watch.folders import task_id, write_meta


def test_a_survey_of_an_unchanged_ledger_names_nothing_to_read_again(tmp_path: Path) -> None:
    for number in range(20):
        write_meta(tmp_path, number, "COMPLETED")
    picture = Picture(LedgerLook(tmp_path), lambda _: False)
    named, _ = picture.survey()
    assert len(named) == 20
    picture.load(named)
    assert picture.survey() == ([], ())
    write_meta(tmp_path, 7, "COMPLETED", note="written again")
    assert picture.survey() == ([task_id(7)], ())


def test_a_record_written_between_survey_and_reading_is_named_again(tmp_path: Path) -> None:
    write_meta(tmp_path, 1)
    picture = Picture(LedgerLook(tmp_path), lambda _: False)
    named, _ = picture.survey()
    write_meta(tmp_path, 1, "COMPLETED", note="newer than the stamp")
    picture.load(named)
    assert picture.survey()[0] == named


def test_a_task_of_this_process_is_its_own_before_it_has_reached_the_queue(tmp_path: Path) -> None:
    lease = Lease.acquire(tmp_path)
    try:
        ledger = Ledger(tmp_path, lease=lease)
        record = ledger.create("crawl", {})
        view = Picture(ledger, lambda _: False).of(record)
    finally:
        lease.release()
    assert (view.ours, view.foreign, view.orphaned) == (True, False, False)
