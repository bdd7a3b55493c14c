"""Pruning removes exactly its preview, and no task in use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import filelock
import msgspec
import pytest

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.ledger.reader import LedgerReader
from engine.model.records import Status
from engine.service import pruning
from engine.service.pruning import (
    STILL_WRITING_MS,
    DeleteFailed,
    KeepReason,
    NoTrash,
    Rules,
    preview,
    prune,
)
from tests.results.conftest import page

ALL = Rules(keep=0)
LATER = STILL_WRITING_MS + 1_000


def now() -> float:
    return time.time() * 1000


TIMES = ("created_at", "started_at", "last_activity_at", "ended_at")


def later() -> float:
    """When nobody who just ended a task can still be writing."""
    return now() + LATER


def ids(tasks) -> list[str]:
    return [one.task_id for one in tasks]


def test_pruning_removes_what_its_preview_listed(ledger, crawled, trash) -> None:
    old = [crawled(page(1)) for _ in range(3)]
    shown = preview(ledger, ALL, later())
    assert sorted(ids(shown.tasks)) == sorted(old)
    assert sorted(os.listdir(ledger.root)) == sorted([".runners", *old])
    newer = crawled(page(1))
    done = prune(ledger, shown, now_ms=later)
    assert ids(done.gone) == ids(shown.tasks)
    assert (done.size_bytes, done.stayed, done.refused) == (shown.size_bytes, (), ())
    assert sorted(os.listdir(trash)) == sorted(old)
    assert (trash / old[0] / "pages.jsonl").exists()
    assert sorted(os.listdir(ledger.root)) == [".runners", newer]


def test_the_size_is_that_of_all_files(ledger, crawled) -> None:
    task_id = crawled(page(1))
    ledger.write_artifact(task_id, "a.png", b"x" * 1_000)
    place = ledger.root / task_id
    (place / "way").symlink_to("/etc")
    files = [found.lstat().st_size for found in place.rglob("*") if not found.is_dir()]
    files.append((place / "way").lstat().st_size)
    assert preview(ledger, ALL, later()).size_bytes == sum(files)


def test_what_lives_or_is_not_known_stays(ledger, crawled, with_result) -> None:
    gone = crawled(page(1))
    ledger.create("crawl", {})
    crawled(page(1), status=None)
    strange = crawled(page(1))
    meta = ledger.root / strange / "meta.json"
    meta.write_text(meta.read_text().replace("COMPLETED", "ARCHIVED"))
    broken = crawled(page(1))
    (ledger.root / broken / "meta.json").write_text("{")
    shown = preview(ledger, ALL, later())
    assert ids(shown.tasks) == [gone]
    assert shown.kept == {KeepReason.LIVING: 3, KeepReason.UNREADABLE: 1}


def test_what_is_no_task_is_not_touched(ledger, crawled, tmp_path) -> None:
    task_id = crawled(page(1))
    elsewhere = tmp_path / "elsewhere"
    (ledger.root / task_id).rename(elsewhere)
    (ledger.root / task_id).symlink_to(elsewhere)
    (ledger.root / "notes").mkdir()
    (ledger.root / "0123456789abcdef").write_text("a file")
    assert preview(ledger, ALL, later()).tasks == ()


def test_pruning_follows_no_swapped_link(ledger, crawled, tmp_path, trash) -> None:
    task_id = crawled(page(1))
    shown = preview(ledger, ALL, later())
    elsewhere = tmp_path / "elsewhere"
    (ledger.root / task_id).rename(elsewhere)
    (ledger.root / task_id).symlink_to(elsewhere)
    for delete in (False, True):
        assert not prune(ledger, shown, delete=delete, now_ms=later).gone
    assert (elsewhere / "meta.json").exists()


def test_a_link_in_a_tasks_place_is_not_deleted_as_one(ledger, tmp_path) -> None:
    link = ledger.root / ("a" * 16)
    link.symlink_to(tmp_path)
    with pytest.raises(DeleteFailed):
        pruning.delete_for_good(ledger.root, link.name)
    assert link.is_symlink()


def test_deleting_follows_no_link_out_of_the_folder(ledger, crawled, tmp_path) -> None:
    task_id = crawled(page(1))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    (ledger.root / task_id / "way").symlink_to(outside)
    done = prune(ledger, preview(ledger, ALL, later()), delete=True, now_ms=later)
    assert ids(done.gone) == [task_id]
    assert os.listdir(outside) == ["kept"]
    assert os.listdir(ledger.root) == [".runners"]


def test_what_its_living_owner_has_just_ended_stays_for_a_minute(ledger, crawled) -> None:
    task_id = crawled(page(1))
    shown = preview(ledger, ALL, now())
    assert (shown.tasks, shown.kept) == ((), {KeepReason.JUST_ENDED: 1})
    assert ids(preview(ledger, ALL, later()).tasks) == [task_id]


def test_what_a_dead_process_ended_need_not_wait(home, crawled, ledger) -> None:
    other = Lease.acquire(ledger.root)
    theirs = Ledger(ledger.root, lease=other)
    task_id = theirs.create("crawl", {}).task_id
    theirs.claim(task_id)
    theirs.finish(task_id, Status.COMPLETED)
    assert not preview(ledger, ALL, now()).tasks
    other.release()
    assert ids(preview(ledger, ALL, now()).tasks) == [task_id]


HOLDER = """
import sys, filelock, os
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
assert filelock.lock_descriptor(fd, blocking=False)
print("held", flush=True)
sys.stdin.read()
"""


def test_what_another_process_has_locked_stays(ledger, crawled, trash) -> None:
    task_id = crawled(page(1))
    shown = preview(ledger, ALL, later())
    command = [sys.executable, "-c", HOLDER, str(ledger.root / task_id / "lock")]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert preview(ledger, ALL, later()).kept == {KeepReason.LOCKED: 1}
        assert prune(ledger, shown, now_ms=later).stayed == ((task_id, KeepReason.LOCKED),)
    finally:
        holder.communicate(timeout=60)
    assert ids(prune(ledger, shown, now_ms=later).gone) == [task_id]


def test_what_openchrome_has_locked_stays_until_its_lock_is_long_dead(ledger, crawled) -> None:
    task_id = crawled(page(1))
    lock = ledger.root / task_id / ".lock.lock"
    lock.mkdir()
    assert preview(ledger, ALL, later()).kept == {KeepReason.LOCKED: 1}
    os.utime(lock, (time.time() - 90,) * 2)
    assert ids(preview(ledger, ALL, later()).tasks) == [task_id]


def test_what_changed_since_the_preview_stays(ledger, crawled, trash) -> None:
    changed, removed, same = (crawled(page(1)) for _ in range(3))
    shown = preview(ledger, ALL, later())
    meta = ledger.root / changed / "meta.json"
    raw = json.loads(meta.read_text())
    meta.write_text(json.dumps({**raw, "note": "somebody still needs it"}))
    pruning.delete_for_good(ledger.root, removed)
    done = prune(ledger, shown, now_ms=later)
    assert ids(done.gone) == [same]
    assert set(done.stayed) == {(changed, KeepReason.CHANGED), (removed, KeepReason.GONE)}
    assert meta.exists()


def test_the_newest_stay(ledger, crawled) -> None:
    old, middle, new = (crawled(page(1)) for _ in range(3))
    for task_id, ended_at in ((old, 1_000), (middle, 2_000), (new, 3_000)):
        meta = ledger.root / task_id / "meta.json"
        meta.write_text(
            json.dumps({**json.loads(meta.read_text()), **dict.fromkeys(TIMES, ended_at)})
        )
    assert ids(preview(ledger, Rules(keep=1), now()).tasks) == [old, middle]
    assert ids(preview(ledger, Rules(keep=2, older_than_ms=1), now()).tasks) == [old]
    assert ids(preview(ledger, Rules(keep=2, max_bytes=0), now()).tasks) == [old]


def test_one_tasks_trouble_is_not_the_next_ones(ledger, crawled, trash, monkeypatch) -> None:
    first, *rest = sorted(crawled(page(1)) for _ in range(3))
    shown = preview(ledger, ALL, later())
    rename = os.rename

    def stubborn(source, *target):
        if os.fsdecode(source).endswith(first):
            raise PermissionError(13, "Permission denied")
        rename(source, *target)

    monkeypatch.setattr(os, "rename", stubborn)
    done = prune(ledger, shown, now_ms=later)
    assert sorted(ids(done.gone)) == rest
    (refused,) = done.refused
    assert refused.task_id == first
    assert isinstance(refused.error, NoTrash)
    assert "--delete" in refused.error.advice
    assert (ledger.root / first / "meta.json").exists()


def test_a_trash_that_another_program_makes_at_the_same_moment_takes_the_task(
    ledger, crawled, trash, monkeypatch
) -> None:
    task_id = crawled(page(1))
    made = os.makedirs

    def beaten(folder, *mode, **more):
        made(folder, *mode, **more)
        made(folder, *mode, **more)  # ours comes second, and is refused

    monkeypatch.setattr(os, "makedirs", beaten)
    done = prune(ledger, preview(ledger, ALL, later()), now_ms=later)
    assert (ids(done.gone), done.refused) == ([task_id], ())
    assert os.listdir(trash) == [task_id]


def test_a_system_without_a_trash_asks_for_delete(ledger, crawled, trash, monkeypatch) -> None:
    task_id = crawled(page(1))
    trash.parent.parent.write_text("a file where the trash would be")
    done = prune(ledger, preview(ledger, ALL, later()), now_ms=later)
    assert [(one.task_id, one.error.code) for one in done.refused] == [(task_id, "no_trash")]
    done = prune(ledger, preview(ledger, ALL, later()), delete=True, now_ms=later)
    assert ids(done.gone) == [task_id]


def test_a_folder_that_cannot_be_renamed_is_not_half_deleted(ledger, crawled, monkeypatch) -> None:
    task_id = crawled(page(1))
    before = sorted(os.listdir(ledger.root / task_id))

    def busy(*_: object, **__: object):
        raise PermissionError(13, "in use")

    monkeypatch.setattr(os, "rename", busy)
    done = prune(ledger, preview(ledger, ALL, later()), delete=True, now_ms=later)
    assert isinstance(done.refused[0].error, DeleteFailed)
    assert sorted(os.listdir(ledger.root / task_id)) == before


def test_what_a_sudden_death_left_of_a_deletion_goes_with_the_next(ledger, crawled) -> None:
    kept = crawled(page(1))
    left = ledger.root / f".pruned-{'a' * 16}-{'b' * 8}"
    left.mkdir()
    (left / "result.json").write_text("{}")
    (ledger.root / ".pruned-mine").mkdir()
    assert [task for task, _ in ledger.scan()] == [kept]
    prune(ledger, preview(ledger, Rules(older_than_ms=10**12), now()), delete=True)
    assert not left.exists()
    assert (ledger.root / ".pruned-mine").exists()


def test_it_can_be_stopped_between_two_tasks(ledger, crawled) -> None:
    for _ in range(3):
        crawled(page(1))
    shown = preview(ledger, ALL, later())
    asked = iter([False, True])
    done = prune(ledger, shown, delete=True, stop=lambda: next(asked), now_ms=later)
    assert ids(done.gone) == ids(shown.tasks)[:1]


def test_records_beside_the_tasks_stay(ledger, crawled, home) -> None:
    crawled(page(1))
    for name in ("comet-runs", "progress-contracts", "task-runs"):
        (home / name).mkdir(exist_ok=True)
        (home / name / "a.json").write_text("{}")
    prune(ledger, preview(ledger, ALL, later()), delete=True, now_ms=later)
    for name in ("comet-runs", "progress-contracts", "task-runs"):
        assert (home / name / "a.json").exists()


def test_a_ledger_that_is_not_there_has_nothing_to_prune(home) -> None:
    assert preview(LedgerReader(home / "tasks"), ALL, now()).tasks == ()
    assert msgspec.to_builtins(preview(LedgerReader(home / "tasks"), ALL, now()))["kept"] == {}


def test_the_lock_is_only_looked_at(ledger, crawled) -> None:
    """A preview that took locks would make another process wait, and could write."""
    task_id = crawled(page(1))
    before = sorted(os.listdir(ledger.root / task_id))
    preview(ledger, ALL, later())
    assert sorted(os.listdir(ledger.root / task_id)) == before
    fd = os.open(ledger.root / task_id / "lock", os.O_RDWR)
    try:
        assert filelock.lock_descriptor(fd, blocking=False)
    finally:
        os.close(fd)


def test_a_clock_that_was_set_back_makes_no_task_old(ledger, crawled) -> None:
    task_id = crawled(page(1))
    place = ledger.root / task_id / "meta.json"
    meta = json.loads(place.read_text())
    meta["ended_at"] = 1_000  # a second after the beginning of 1970, as a flat battery gives
    place.write_text(json.dumps(meta))
    old = preview(ledger, Rules(older_than_ms=3_600_000), later())
    assert (old.tasks, old.by_rules) == ((), 1)
