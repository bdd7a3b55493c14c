"""A write that fails leaves the old file whole, no litter, and a sentence."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import ModuleType

import filelock
import pytest

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.model.errors import EngineError, LedgerReadOnly, LedgerWriteFailed
from engine.model.records import Status

CODES = [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS]


def raising(code: int):
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def names(ledger: Ledger) -> list[str]:
    return sorted(str(path.relative_to(ledger.root)) for path in ledger.root.rglob("*"))


@pytest.mark.case("R03", "R20")
@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_failed_change_is_atomic(ledger: Ledger, task_id: str, monkeypatch, call: str, code: int):
    path = ledger.root / task_id / "meta.json"
    before, listed = path.read_bytes(), names(ledger)
    with monkeypatch.context() as fault:
        fault.setattr(os, call, raising(code))
        with pytest.raises(EngineError) as told:
            ledger.finish(task_id, Status.COMPLETED)
    expected = LedgerReadOnly if code == errno.EROFS else LedgerWriteFailed
    assert isinstance(told.value, expected)
    if expected is LedgerWriteFailed:
        assert str(told.value) == f"Cannot write the task ledger: {os.strerror(code)}"
    assert path.read_bytes() == before
    assert names(ledger) == listed
    assert ledger.finish(task_id, Status.COMPLETED).status == "COMPLETED"  # nothing stays locked


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors by /proc")
@pytest.mark.parametrize("place", [(os, "write"), (filelock, "lock_descriptor")])
def test_a_failed_lease_leaves_nothing(ledger: Ledger, monkeypatch, place: tuple[ModuleType, str]):
    before, is_open = names(ledger), os.listdir("/proc/self/fd")
    with monkeypatch.context() as fault:
        fault.setattr(*place, raising(errno.ENOSPC))
        with pytest.raises(LedgerWriteFailed):
            Lease.acquire(ledger.root)
    assert len(os.listdir("/proc/self/fd")) == len(is_open)
    assert names(ledger) == before


@pytest.mark.case("R03")
@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
@pytest.mark.parametrize("call", ["mkdir", "write", "fsync", "rename"])
def test_an_unwritable_task_does_not_exist(ledger: Ledger, monkeypatch, call: str, code: int):
    before = names(ledger)
    with monkeypatch.context() as fault:
        fault.setattr(os, call, raising(code))
        with pytest.raises((LedgerReadOnly, LedgerWriteFailed)):
            ledger.create("crawl", {"url": "http://site.test/"})
    assert names(ledger) == before


def test_a_result_is_whole_or_not_there(ledger: Ledger, task_id: str):
    def chunks():
        yield b"half"
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    ledger.write_result(task_id, [b"old"])
    listed = names(ledger)
    with pytest.raises(LedgerWriteFailed):
        ledger.write_result(task_id, chunks())
    with ledger.open_result(task_id) as result:
        assert result.read() == b"old"
    assert names(ledger) == listed


@pytest.mark.case("R05")
def test_a_torn_event_costs_itself_only(ledger: Ledger, task_id: str, monkeypatch):
    write = os.write
    with monkeypatch.context() as fault:
        fault.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:10]))
        with pytest.raises(LedgerWriteFailed, match="No space left"):
            ledger.append_event(task_id, "progress", {"unitsDone": 1, "unitsTotal": 2})
    ledger.append_event(task_id, "log", {"note": "after"})
    events = ledger.read_events(task_id)
    assert [event.kind for event in events.events] == ["started", "log"]
    assert events.skipped == 1


@pytest.mark.case("R06")
def test_a_change_holds_without_its_event(ledger: Ledger, task_id: str, monkeypatch):
    events = ledger.root / task_id / "events.jsonl"
    events.unlink()
    events.mkdir()  # nothing can be appended there
    assert ledger.finish(task_id, Status.COMPLETED).status == "COMPLETED"


def test_a_record_never_grows_beyond_what_can_be_read(ledger: Ledger, task_id: str):
    with pytest.raises(LedgerWriteFailed, match="larger than 1 MiB"):
        ledger.mutate(task_id, lambda raw: raw.update(note="x" * 1024 * 1024))
    assert ledger.read(task_id) == ledger.list()[0]


@pytest.mark.case("R19")
def test_a_transition_flushes_file_and_folder(ledger: Ledger, task_id: str, monkeypatch):
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def traced_fsync(fd: int) -> None:
        place = os.readlink(f"/proc/self/fd/{fd}")
        steps.append(f"flush {Path(place).name.split('.')[1] if '.tmp' in place else 'folder'}")
        fsync(fd)

    def traced_replace(*args, **kwargs) -> None:
        steps.append(f"rename {args[1]}")
        replace(*args, **kwargs)

    if not Path("/proc/self/fd").exists():
        pytest.skip("only Linux tells the name behind a descriptor")
    monkeypatch.setattr(os, "fsync", traced_fsync)
    monkeypatch.setattr(os, "replace", traced_replace)
    ledger.write_result(task_id, [b"{}"])
    ledger.finish(task_id, Status.COMPLETED)
    assert steps[:6] == [
        "flush result",
        "rename result.json",
        "flush folder",
        "flush meta",
        "rename meta.json",
        "flush folder",
    ]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
@pytest.mark.case("R50")
def test_a_read_only_ledger_can_be_looked_at(ledger: Ledger, task_id: str):
    os.chmod(ledger.root / task_id, 0o500)
    try:
        assert ledger.list()[0].task_id == task_id
        with pytest.raises(LedgerReadOnly):
            ledger.request_cancel(task_id)
    finally:
        os.chmod(ledger.root / task_id, 0o700)
