"""Folders that OpenChrome wrote are read as it reads them, and kept whole by our updates."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from engine.ledger.ledger import Ledger
from engine.ledger.ownership import owner_of
from engine.ledger.reaper import Reaper
from engine.model.errors import TaskNotFound, TaskUnreadable, TransitionError
from engine.model.records import LIVE, Status, TaskRecord, Unreadable

CORPUS = Path(__file__).resolve().parents[2] / "fixtures" / "openchrome"
INDEX = json.loads((CORPUS / "INDEX.json").read_bytes())
TASKS = {Path(task["path"]).name: task for task in INDEX["tasks"]}
READ = {name: task for name, task in TASKS.items() if task["peer"]["readMetaSync"] is not None}


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with its time and bytes."""
    return {
        str(path.relative_to(root)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in root.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("task_id", READ, ids=lambda name: READ[name]["what"][:40])
def test_each_record_is_what_openchrome_reads_field_for_field(corpus: Ledger, task_id: str):
    expected = READ[task_id]["peer"]["readMetaSync"]
    raw = corpus.read_raw(task_id)
    assert raw == expected
    assert list(raw) == list(expected)
    record = corpus.read(task_id)
    assert isinstance(record, TaskRecord)
    assert record.task_id == task_id  # the folder's name, whatever the file says
    assert (record.kind, record.status, record.created_at) == (
        expected["kind"],
        expected["status"],
        expected["created_at"],
    )


@pytest.mark.case("R32")
def test_the_list_is_in_openchromes_order_and_shows_what_it_hides(corpus: Ledger):
    listed = corpus.list(limit=None)
    made = {name: task["peer"]["readMetaSync"]["created_at"] for name, task in READ.items()}
    ours = [entry.task_id for entry in listed if isinstance(entry, TaskRecord)]
    theirs = INDEX["peer_list_order_created_at_desc"]
    assert [made[name] for name in ours] == [made[name] for name in theirs]
    assert set(ours) == set(theirs)
    hidden = {entry.task_id: entry.reason for entry in listed if isinstance(entry, Unreadable)}
    assert set(hidden) == {"00000000000000a1"}  # a2 is too young to tell
    assert hidden["00000000000000a1"].startswith("meta.json is cut short (line ")


def test_a_folder_without_meta_is_shown_after_five_seconds(corpus: Ledger, root: Path):
    folder = root / "00000000000000a2"
    with pytest.raises(TaskNotFound):
        corpus.read(folder.name)
    ten_s_ago = folder.stat().st_mtime - 10
    os.utime(folder, (ten_s_ago, ten_s_ago))
    entry = corpus.read(folder.name)
    assert isinstance(entry, Unreadable)
    assert entry.reason == "was never finished"
    assert entry in corpus.list(limit=None)
    with pytest.raises(TaskUnreadable, match="was never finished"):
        corpus.request_cancel(folder.name)
    assert os.listdir(folder) == [".lock"]


def test_the_reaper_chooses_what_openchrome_would_except_for_reused_pids(corpus: Ledger):
    theirs = {name for name, task in TASKS.items() if task["peer"]["reaper_would_reap"]}
    verdicts = {
        name: owner_of(corpus.root, record)
        for name in READ
        if isinstance(record := corpus.read(name), TaskRecord) and record.status in LIVE
    }
    ours = {name for name, verdict in verdicts.items() if verdict.dead}
    assert theirs <= ours
    # pid 1 of this machine began after these tasks: OpenChrome does not look at start times.
    for name in ours - theirs:
        assert READ[name]["peer"]["readMetaSync"]["pid"] == 1
        assert "reused" in verdicts[name].sentence


def test_reaping_the_corpus_keeps_every_field_and_ends_only_the_dead(corpus: Ledger):
    before = {name: corpus.read_raw(name) for name in READ}
    reaped = {record.task_id for record in Reaper(corpus).reap()}
    assert set(INDEX["peer_reapOrphans_returns"]) <= reaped
    for name, old in before.items():
        new = corpus.read_raw(name)
        if name not in reaped:
            assert new == old
            continue
        assert new["status"] == "FAILED"
        assert new["error"]["code"] == "orphaned"
        assert new["ended_at"] >= new.get("started_at", 0)
        assert new.get("last_activity_at", 0) >= old.get("last_activity_at", 0)
        ours = {"status", "error", "ended_at", "last_activity_at"}  # as the end of a task sets them
        assert {key: value for key, value in new.items() if key in old.keys() - ours} == {
            key: value for key, value in old.items() if key not in ours
        }


@pytest.mark.parametrize("task_id", READ)
def test_an_update_of_ours_keeps_each_field_it_does_not_know(corpus: Ledger, task_id: str):
    path = corpus.root / task_id / "meta.json"
    old, before = corpus.read_raw(task_id), path.read_bytes()

    def touch(raw):
        raw["last_activity_at"] = 1

    if old["status"] not in LIVE:
        with pytest.raises(TransitionError):
            corpus.mutate(task_id, touch)
        assert path.read_bytes() == before
        return
    corpus.mutate(task_id, touch)
    new = corpus.read_raw(task_id)
    assert {**new, "last_activity_at": old.get("last_activity_at")} == old
    assert [key for key in new if key in old] == list(old)


@pytest.mark.case("R36")
def test_a_lone_surrogate_is_kept_on_disk_and_shown_as_a_replacement(corpus: Ledger):
    task_id = "fb55147eef7d527e"
    path = corpus.root / task_id / "meta.json"
    raw = json.loads(path.read_bytes())
    raw["status"] = "RUNNING"  # so that it may be written at all
    escape = b"\\ud83d"
    path.write_bytes(path.read_bytes().replace(b'"COMPLETED"', b'"RUNNING"', 1))
    assert escape in path.read_bytes()
    corpus.mutate(task_id, lambda raw: raw.update(last_activity_at=1))
    assert escape in path.read_bytes()
    record = corpus.read(task_id)
    assert isinstance(record, TaskRecord)
    assert "\ufffd" in json.dumps(record.args_summary, ensure_ascii=False)


@pytest.mark.case("R32")
def test_looking_changes_no_file_and_makes_none(corpus: Ledger):
    before = tree(corpus.root)
    look = Ledger(corpus.root)
    for entry in look.list(limit=None):
        look.read(entry.task_id)
        look.read_events(entry.task_id)
        look.tail_units(entry.task_id)
        list(look.read_pages(entry.task_id))
        if isinstance(entry, TaskRecord):
            owner_of(look.root, entry)
    list(look.scan())
    assert tree(corpus.root) == before


def test_a_cut_last_event_line_costs_one_line(corpus: Ledger):
    slice_ = corpus.read_events("00000000000000a4", whole=True)
    assert slice_.skipped == 1
    kinds = [event.kind for event in slice_.events]
    corpus.append_event("00000000000000a4", "log", {"note": "after"})
    again = corpus.read_events("00000000000000a4")
    assert [event.kind for event in again.events] == [*kinds, "log"]
    assert again.skipped == 1


@pytest.mark.case("R40")
def test_unknown_words_are_shown_as_they_are_and_not_changed(corpus: Ledger):
    record = corpus.read("00000000000000a3")
    assert isinstance(record, TaskRecord)
    assert record.status not in set(Status)
    with pytest.raises(TransitionError):
        corpus.mutate(record.task_id, lambda raw: raw.update(status="FAILED"))
    assert corpus.request_cancel(record.task_id) == record
