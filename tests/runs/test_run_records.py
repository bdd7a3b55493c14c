"""A run's record survives the program, failed writes and other writers."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.contracts.run_lifecycle import Runs
from engine.contracts.run_store import envelope
from engine.ledger.record_store import RecordUnreadable
from tests.runs.run_files import stored, transitions


def test_each_transition_is_a_line_in_the_linked_audit_session(runs: Runs, home: Path) -> None:
    run = runs.start_run("thread-1", deferred=True)
    runs.start_run("thread-1", run_id=run.run_id)
    runs.update_run(run.run_id, audit_session_id="browser-audit-1")
    runs.complete_run(run.run_id)
    runs.complete_run(run.run_id)
    own = home / "audit" / runs.audit.session_id / "lifecycle.jsonl"
    linked = home / "audit" / "browser-audit-1" / "lifecycle.jsonl"
    lines = [json.loads(line) for line in own.read_text().splitlines()]
    assert [(line["from"], line["to"]) for line in lines] == [
        (None, "pending"),
        ("pending", "running"),
    ]
    (last,) = map(json.loads, linked.read_text().splitlines())
    assert last == {
        "ts": "2025-11-22T04:10:00.123Z",
        "event": "lifecycle",
        "from": "running",
        "to": "completed",
        "runId": run.run_id,
        "taskThreadId": "thread-1",
        "auditSessionId": "browser-audit-1",
        "agentId": "agent-1",
        "route": "cli",
        "fallbackUsed": False,
    }


def test_runs_and_their_unknown_fields_persist(runs: Runs, home: Path) -> None:
    run = runs.start_run("thread-1")
    place = home / "comet-runs" / f"{run.run_id}.json"
    place.write_text(json.dumps({**stored(home, run.run_id), "theirs": {"x": 1}}))
    again = Runs(home)
    assert again.get_run(run.run_id) == run
    again.complete_run(run.run_id)
    assert stored(home, run.run_id)["theirs"] == {"x": 1}


def test_failed_writes_are_atomic(runs: Runs, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.start_run("thread-1")
    before = stored(home, run.run_id)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        assert runs.complete_run(run.run_id).status == "completed"
    assert stored(home, run.run_id) == before
    assert not list((home / "comet-runs").glob(".*.tmp"))
    assert "No space left" in runs.notice
    # Never None here.
    assert runs.get_run(run.run_id).status == "completed"  # type: ignore[union-attr]


def test_memory_is_written_later(runs: Runs, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        run = runs.start_run("thread-1")
    assert runs.start_run("thread-1", run_id=run.run_id) == run
    assert stored(home, run.run_id) == envelope(run)
    assert runs.notice == ""


def test_runs_may_live_in_memory(runs: Runs, home: Path, not_writable: Callable[[], None]) -> None:
    assert runs.notice == ""
    not_writable()
    run = runs.start_run("thread-1", deferred=True)
    runs.start_run("thread-1", run_id=run.run_id)
    ended = runs.complete_run(run.run_id)
    assert ended.status == "completed"
    assert runs.get_run(run.run_id) == ended
    assert runs.list_runs() == [ended]
    assert "memory only" in runs.notice
    assert Runs(home).get_run(run.run_id) is None


def test_a_damaged_record_is_told_left_alone_and_hides_no_other(runs: Runs, home: Path) -> None:
    good, bad = runs.start_run("thread-1"), runs.start_run("thread-2")
    place = home / "comet-runs" / f"{bad.run_id}.json"
    for damage in (b"", b"{", b"[]", b'{"runId": 3}', json.dumps(envelope(good)).encode()):
        place.write_bytes(damage)
        with pytest.raises(RecordUnreadable):
            runs.get_run(bad.run_id)
        with pytest.raises(RecordUnreadable):
            runs.complete_run(bad.run_id)
        assert place.read_bytes() == damage
        assert runs.list_runs() == [good]


def test_the_newest_runs_come_first_and_can_be_picked_by_state(home: Path) -> None:
    now = [1_000_000_000_000]
    runs = Runs(home, now_ms=lambda: now[0])
    made = []
    for number in range(5):
        now[0] += 1_000
        made.append(runs.start_run(f"thread-{number}").run_id)
    runs.complete_run(made[1])
    assert [run.run_id for run in runs.list_runs(limit=2)] == made[:2:-1]
    assert [run.run_id for run in runs.list_runs(status=["completed"])] == [made[1]]
    assert len(runs.list_runs(limit=None)) == 5


def test_looking_for_runs_makes_no_folder(runs: Runs, home: Path) -> None:
    assert runs.list_runs() == []
    assert runs.get_run("nobody") is None
    assert not list(home.iterdir())


END_RUN = """
import sys
from pathlib import Path
from engine.contracts.run_lifecycle import Runs
runs = Runs(Path(sys.argv[1]))
sys.stdin.readline()
getattr(runs, sys.argv[3])(sys.argv[2], *sys.argv[4:])
"""


def test_of_ends_by_several_processes_and_threads_one_counts(runs: Runs, home: Path) -> None:
    ids = [runs.start_run("thread-1").run_id for _ in range(4)]
    ways = [("abort_run", "a"), ("fail_run", "f"), ("abort_run", "b")]
    children = [
        subprocess.Popen(
            [sys.executable, "-c", END_RUN, str(home), run_id, *way], stdin=subprocess.PIPE
        )
        for run_id in ids[:2]
        for way in ways
    ]
    threads = [
        threading.Thread(target=getattr(runs, way[0]), args=(run_id, way[1]))
        for run_id in ids
        for way in ways
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.close()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(150)
    assert [child.wait(150) for child in children] == [0] * len(children)
    ends = [line["runId"] for line in transitions(home) if line["from"] == "running"]
    assert sorted(ends) == sorted(ids)
