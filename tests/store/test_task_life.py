"""A task from its creation to its end: the files after each step."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from engine.ledger import task_files
from engine.ledger.files import Folder
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.model.errors import (
    LedgerReadOnly,
    LedgerUnusable,
    NotATaskId,
    ResultMissing,
    TaskNotFound,
    TransitionError,
)
from engine.model.records import EngineFields, ErrorInfo, Status, Units

ARGS = {"url": "http://site.test/", "max_pages": 3}


def kinds(ledger: Ledger, task_id: str) -> list[str]:
    return [event.kind for event in ledger.read_events(task_id).events]


def test_a_new_task_is_pending_private_and_says_who_owns_it(ledger: Ledger, lease: Lease):
    before = os.umask(0)
    try:
        record = ledger.create("crawl", ARGS, engine=EngineFields(name="mine"))
    finally:
        os.umask(before)
    folder = ledger.root / record.task_id
    assert (record.status, record.args_summary) == ("PENDING", ARGS)
    assert record.engine is not None
    assert (record.engine.runner, record.engine.name) == (lease.nonce, "mine")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "meta.json").stat().st_mode) == 0o600
    assert record == ledger.read(record.task_id)


@pytest.mark.case("R12")
def test_two_starts_in_one_millisecond_are_two_tasks(ledger: Ledger):
    made = {ledger.create("crawl", ARGS, now_ms=1_000).task_id for _ in range(50)}
    assert len(made) == 50


@pytest.mark.case("R13")
def test_an_id_that_is_taken_is_left_alone_and_another_is_made(ledger: Ledger, monkeypatch):
    nonces = iter(["same", "same", "other"])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(nonces))
    first = ledger.create("crawl", ARGS, now_ms=1_000)
    before = (ledger.root / first.task_id / "meta.json").read_bytes()
    second = ledger.create("crawl", ARGS, now_ms=1_000)
    assert second.task_id != first.task_id
    assert (ledger.root / first.task_id / "meta.json").read_bytes() == before
    assert not [name for name in os.listdir(ledger.root) if name.endswith(".tmp")]


@pytest.mark.case("R13")
def test_an_empty_folder_with_the_new_id_is_not_replaced(ledger: Ledger):
    (ledger.root / ("0" * 16)).mkdir()
    with Folder.at(str(ledger.root)) as root:
        assert not task_files.place_task(root, "0" * 16, {"meta.json": b"{}"}, ".new.x.tmp")
    assert os.listdir(ledger.root / ("0" * 16)) == []


def test_the_whole_way_leaves_result_meta_and_event_in_that_order(ledger: Ledger, task_id: str):
    ledger.append_page(task_id, {"url": "http://site.test/", "depth": 0})
    ledger.append_event(task_id, "progress", {"unitsDone": 1, "unitsTotal": 1})
    ledger.write_result(task_id, [b'{"summary":', b"{}}"])
    record = ledger.finish(task_id, Status.COMPLETED, units=Units(done=1, total=1))
    assert record.status == "COMPLETED"
    assert record.result_path == str(ledger.root / task_id / "result.json")
    assert record.engine is not None
    assert record.engine.units == Units(done=1, total=1)
    assert kinds(ledger, task_id) == ["started", "progress", "completed"]
    with ledger.open_result(task_id) as result:
        assert json.load(result) == {"summary": {}}
    assert sorted(os.listdir(ledger.root / task_id)) == [
        ".lock",
        "events.jsonl",
        "lock",
        "meta.json",
        "pages.jsonl",
        "result.json",
    ]


@pytest.mark.case("R09")
@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED, Status.CANCELLED])
def test_what_has_ended_is_never_written_again(ledger: Ledger, task_id: str, status: Status):
    ledger.finish(task_id, status, error=ErrorInfo(message="why", code="c"))
    path = ledger.root / task_id / "meta.json"
    before, inode = path.read_bytes(), path.stat().st_ino
    other = Ledger(ledger.root)
    for change in (
        lambda: ledger.claim(task_id),
        lambda: ledger.finish(task_id, Status.FAILED),
        lambda: ledger.write_result(task_id, [b"{}"]),
        lambda: other.mutate(task_id, lambda raw: raw.update(status="RUNNING")),
        lambda: other.mutate(task_id, lambda raw: raw.update(note="x")),
    ):
        with pytest.raises(TransitionError):
            change()
    assert other.request_cancel(task_id).status == status  # nothing to do: success
    assert (path.read_bytes(), path.stat().st_ino) == (before, inode)


def test_a_task_is_claimed_once(ledger: Ledger):
    task_id = ledger.create("crawl", ARGS).task_id
    ledger.claim(task_id)
    with pytest.raises(TransitionError, match="RUNNING -> RUNNING"):
        ledger.claim(task_id)
    assert kinds(ledger, task_id) == ["started"]


def test_a_pending_task_is_cancelled_at_once(ledger: Ledger):
    task_id = ledger.create("crawl", ARGS).task_id
    record = Ledger(ledger.root).request_cancel(task_id, "not needed, password=hunter2")
    assert record.status == "CANCELLED"
    assert record.ended_at is not None
    assert kinds(ledger, task_id) == ["cancel_requested", "cancelled"]
    assert b"hunter2" not in (ledger.root / task_id / "events.jsonl").read_bytes()
    with pytest.raises(TransitionError):
        ledger.claim(task_id)


def test_a_running_task_is_asked_and_the_first_request_stands(ledger: Ledger, task_id: str):
    first = ledger.request_cancel(task_id, "first")
    again = ledger.request_cancel(task_id, "second")
    assert first.status == "RUNNING"
    assert first.cancel_requested_at == again.cancel_requested_at is not None
    asked = [e for e in ledger.read_events(task_id).events if e.kind == "cancel_requested"]
    assert [event.data for event in asked] == [{"reason": "first"}]


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED])
def test_a_request_on_disk_wins_over_any_other_end(ledger: Ledger, task_id: str, status: Status):
    ledger.request_cancel(task_id)
    record = ledger.finish(task_id, status)
    assert record.status == "CANCELLED"
    assert record.result_path is None
    assert kinds(ledger, task_id)[-1] == "cancelled"


def test_an_envelope_is_cancelled_at_once_whoever_owns_it(corpus: Ledger):
    record = corpus.request_cancel("6dddcd153288550e")
    assert (record.kind, record.status, record.phase) == ("browser_task", "CANCELLED", "done")


@pytest.mark.case("R29")
def test_a_clock_that_was_set_back_does_not_end_a_task_before_it_began(root: Path, lease: Lease):
    now = [5_000_000]
    ledger = Ledger(root, lease=lease, now_ms=lambda: now[0])
    task_id = ledger.create("crawl", ARGS).task_id
    ledger.claim(task_id)
    now[0] -= 3_600_000
    record = ledger.finish(task_id, Status.COMPLETED)
    assert record.ended_at == record.started_at == 5_000_000


def test_large_clean_arguments_are_cut_and_kept_whole_for_a_re_run(ledger: Ledger):
    args = {"url": "http://site.test/", "include_patterns": ["x" * 100] * 30}
    record = ledger.create("crawl", args)
    assert set(record.args_summary) == {"_truncated", "_bytes"}
    assert record.engine is not None
    assert record.engine.args == args
    secret = ledger.create("crawl", {**args, "password": "hunter2"})
    assert secret.engine is not None
    assert secret.engine.args is None


@pytest.mark.parametrize(
    "given", ["", "..", "A" * 16, "0" * 15, "0" * 17, "0" * 16 + "\n", "٠" * 16, "../" + "0" * 13]
)
def test_only_a_task_id_becomes_a_path(ledger: Ledger, given: str):
    before = sorted(os.listdir(ledger.root))
    for ask in (ledger.read, ledger.read_raw, ledger.request_cancel, ledger.stamp, ledger.claim):
        with pytest.raises(NotATaskId, match="is not a task id"):
            ask(given)
    assert sorted(os.listdir(ledger.root)) == before


def test_an_unknown_id_is_said_to_be_unknown(ledger: Ledger):
    with pytest.raises(TaskNotFound, match="There is no task 0000000000000000"):
        ledger.request_cancel("0" * 16)
    with pytest.raises(TaskNotFound):
        ledger.append_event("0" * 16, "log")
    assert not (ledger.root / ("0" * 16)).exists()


def test_the_list_filters_by_status_kind_time_and_number(ledger: Ledger):
    ids = [ledger.create("crawl", ARGS, now_ms=1_000 * n).task_id for n in range(1, 6)]
    other = ledger.create("recording", ARGS, now_ms=10_000).task_id
    ledger.request_cancel(ids[0])
    assert [entry.task_id for entry in ledger.list()] == [other, *reversed(ids)]
    assert [entry.task_id for entry in ledger.list(limit=2)] == [other, ids[4]]
    assert [entry.task_id for entry in ledger.list(status=["CANCELLED"])] == [ids[0]]
    assert [entry.task_id for entry in ledger.list(kind=["recording"])] == [other]
    assert [entry.task_id for entry in ledger.list(since=5_000)] == [other, ids[4]]


def test_artifacts_stay_inside_the_task_whatever_their_name(ledger: Ledger, task_id: str):
    for name in ("../../evil.png", "a/b\\c.png", ".hidden", "con.txt", "", "x" * 300 + ".png"):
        place = ledger.write_artifact(task_id, name, b"data")
        assert place.count("/") == 1
        assert (ledger.root / task_id / place).read_bytes() == b"data"
    assert sorted(os.listdir(ledger.root.parent)) == ["tasks"]


def test_a_result_that_is_not_there_is_said_to_be_missing(ledger: Ledger, task_id: str):
    with pytest.raises(ResultMissing):
        ledger.open_result(task_id)


@pytest.mark.parametrize("make", ["file", "dangling", "orphaned"])
def test_a_root_that_cannot_be_one_is_named_with_its_reason(tmp_path: Path, make: str):
    root = tmp_path / "root"
    if make == "file":
        root.write_text("no folder")
    elif make == "dangling":
        root.symlink_to(tmp_path / "nowhere")
    else:
        root = tmp_path / "no" / "such" / "place" / "tasks"
    for opened in (lambda: Ledger(root), lambda: Lease.acquire(root)):
        with pytest.raises(LedgerUnusable) as told:
            opened()
        assert str(root) in str(told.value)
    assert not (tmp_path / "no").exists()
    assert not (tmp_path / "nowhere").exists()


def test_looking_at_a_root_that_is_not_made_yet_finds_nothing_and_makes_nothing(tmp_path: Path):
    look = Ledger(tmp_path / "home" / "tasks")
    assert look.list() == []
    assert list(look.scan()) == []
    with pytest.raises(TaskNotFound):
        look.read("0" * 16)
    assert os.listdir(tmp_path) == []


def test_a_ledger_without_a_lease_takes_no_task(ledger: Ledger):
    with pytest.raises(LedgerReadOnly):
        Ledger(ledger.root).create("crawl", ARGS)


@pytest.mark.parametrize(
    ("asked", "status"), [({"forced_at": 5}, Status.COMPLETED), ({}, Status.FAILED)]
)
def test_a_stored_force_overrules(ledger: Ledger, asked: dict[str, Any], status: Status) -> None:
    task_id = ledger.create("crawl", {}).task_id
    ledger.claim(task_id)
    ledger.mutate(task_id, lambda raw: raw["engine"].update(asked))
    error = ErrorInfo(message="two are missing", code="bulk_incomplete")
    record = ledger.finish(task_id, Status.FAILED, error=error)
    assert record.status == status
    assert (record.error is None) == (status == Status.COMPLETED)
    assert (record.result_path is not None) == (status == Status.COMPLETED)


def test_a_force_overrules_no_other_failure_and_no_request_to_stop(ledger: Ledger) -> None:
    for code, cancel, status in (
        ("nothing_taken", False, Status.FAILED),
        ("bulk_incomplete", True, Status.CANCELLED),
    ):
        task_id = ledger.create("crawl", {}).task_id
        ledger.claim(task_id)
        ledger.mutate(task_id, lambda raw: raw["engine"].update({"forced_at": 5}))
        if cancel:
            ledger.request_cancel(task_id)
        error = ErrorInfo(message="no", code=code)
        assert ledger.finish(task_id, Status.FAILED, error=error).status == status
