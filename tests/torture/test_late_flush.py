"""A change whose folder could not be flushed has failed and may be repeated."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.ledger.ledger import Ledger
from engine.model.errors import LedgerWriteFailed, TransitionError
from engine.model.records import Status

Fail = Callable[[], None]


@pytest.fixture
def folders_fail(monkeypatch: pytest.MonkeyPatch) -> Fail:
    """From then on the next flush of a folder fails, once, and those of files do not."""
    fsync = os.fsync

    def begin() -> None:
        left = [1]

        def flush(fd: int) -> None:
            if stat.S_ISDIR(os.fstat(fd).st_mode) and left:
                left.pop()
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            fsync(fd)

        monkeypatch.setattr(os, "fsync", flush)

    return begin


pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows flushes no folder")


@pytest.mark.case("R20")
def test_a_claim_can_be_repeated_after_a_failure(ledger: Ledger, folders_fail: Fail) -> None:
    task_id = ledger.create("crawl", {"url": "http://site.test/"}).task_id
    folders_fail()
    with pytest.raises(LedgerWriteFailed, match="Input/output error"):
        ledger.claim(task_id)
    assert ledger.claim(task_id).status == Status.RUNNING
    with pytest.raises(TransitionError):  # and not a third time: it is flushed by now
        ledger.claim(task_id)


@pytest.mark.case("R20")
def test_a_failed_end_can_be_repeated(ledger: Ledger, task_id: str, folders_fail: Fail) -> None:
    folders_fail()
    with pytest.raises(LedgerWriteFailed):
        ledger.finish(task_id, Status.COMPLETED)
    ledger.write_result(task_id, [b"{}"])  # as its runner does, and it is no step back
    assert ledger.finish(task_id, Status.COMPLETED).status == Status.COMPLETED
    kinds = [event.kind for event in ledger.read_events(task_id).events]
    assert kinds == ["started", "completed"]
    with pytest.raises(TransitionError):
        ledger.finish(task_id, Status.COMPLETED)


@pytest.mark.case("R20")
def test_an_end_by_another_is_not_taken_for_ours_after_a_request_that_was_not_flushed(
    ledger: Ledger, root: Path, task_id: str, folders_fail: Fail
) -> None:
    folders_fail()
    with pytest.raises(LedgerWriteFailed):
        ledger.request_cancel(task_id)
    Ledger(root, lease=ledger.lease).finish(task_id, Status.FAILED)
    with pytest.raises(TransitionError):
        ledger.write_result(task_id, [b"{}"])
    with pytest.raises(TransitionError):
        ledger.finish(task_id, Status.FAILED)
    kinds = [event.kind for event in ledger.read_events(task_id).events]
    assert kinds == ["started", "cancelled"]


@pytest.mark.case("R20")
def test_unflushed_claims_are_not_taken(ledger: Ledger, root: Path, folders_fail: Fail) -> None:
    task_id = ledger.create("crawl", {"url": "http://site.test/"}).task_id
    folders_fail()
    with pytest.raises(LedgerWriteFailed):
        ledger.claim(task_id)
    with pytest.raises(TransitionError):
        Ledger(root, lease=ledger.lease).claim(task_id)


@pytest.mark.case("R03")
def test_a_task_that_is_told_as_failed_is_not_there(ledger: Ledger, folders_fail: Fail) -> None:
    """Its folder is flushed twice: the first time before it has its name."""
    before = os.listdir(ledger.root)
    folders_fail()
    with pytest.raises(LedgerWriteFailed):
        ledger.create("crawl", {"url": "http://site.test/"})
    assert os.listdir(ledger.root) == before


@pytest.mark.case("R03")
def test_unflushed_tasks_are_removed(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync, root = os.fsync, os.stat(ledger.root).st_ino

    def flush(fd: int) -> None:
        if os.fstat(fd).st_ino == root:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(fd)

    before = os.listdir(ledger.root)
    monkeypatch.setattr(os, "fsync", flush)
    with pytest.raises(LedgerWriteFailed):
        ledger.create("crawl", {"url": "http://site.test/"})
    assert os.listdir(ledger.root) == before
