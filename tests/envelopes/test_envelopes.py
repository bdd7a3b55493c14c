"""Envelopes on a real ledger: seed 004's tools, one acceptance line at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine import budgets
from engine.budgets import ToolCall
from engine.budgets.envelopes import (
    NOTE_CHARACTERS,
    EnvelopeEnded,
    EnvelopeRequest,
    Envelopes,
    NotAnEnvelope,
    envelope_request,
)
from engine.ledger.ledger import Ledger
from engine.ledger.reaper import Reaper
from engine.model.errors import (
    EngineError,
    InvalidArguments,
    NotATaskId,
    TaskNotFound,
    TransitionError,
)
from engine.model.records import ErrorInfo
from tests.support.lock_retries import patiently

COUNT_CALLS = """
import sys
from pathlib import Path
from engine.budgets import ToolCall
from engine.budgets.envelopes import Envelopes
from engine.ledger.ledger import Ledger
from tests.support.lock_retries import patiently
envelopes = Envelopes(Ledger(Path(sys.argv[1])))
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    call = ToolCall(("read_page", "act")[number % 2])
    patiently(lambda: envelopes.record(sys.argv[2], call))
"""


def events(ledger: Ledger, task_id: str, kind: str = "") -> list[Any]:
    found = ledger.read_events(task_id).events
    return [event.data for event in found if event.kind == kind] if kind else list(found)


def test_a_new_envelope_runs_with_all_counters_zero(envelopes: Envelopes, ledger: Ledger) -> None:
    record = envelopes.start(
        EnvelopeRequest("buy a ticket", policy={"maxToolCalls": 9}, phase="act")
    )
    raw = ledger.read_raw(record.task_id)
    assert (raw["kind"], raw["status"], raw["phase"]) == ("browser_task", "RUNNING", "act")
    assert raw["objective"] == "buy a ticket"
    assert raw["counters"] == budgets.no_calls()
    assert raw["budget_status"] == "ok"
    assert raw["recent_events"] == []
    assert raw["policy"]["maxToolCalls"] == 9
    assert raw["policy"]["maxObservationStreak"] == 6
    assert raw["started_at"] == raw["created_at"]
    assert events(ledger, record.task_id, "started") == [
        {"objective": "buy a ticket", "phase": "act"}
    ]


def test_envelopes_have_openchromes_form(envelopes: Envelopes, ledger: Ledger, root: Path) -> None:
    corpus = Path(__file__).resolve().parents[2] / "fixtures" / "openchrome" / "tasks"
    theirs = json.loads((corpus / "16171a1480277486" / "meta.json").read_text("utf-8"))
    ours = ledger.read_raw(envelopes.start(EnvelopeRequest("lanes")).task_id)
    assert set(theirs) - {"owner", "lanes"} <= set(ours)
    for name in ("policy", "counters", "budget_status", "recent_events", "phase", "status"):
        assert ours[name] == theirs[name]


def test_an_envelope_belongs_to_the_named_process(ledger: Ledger) -> None:
    record = Envelopes(ledger, pid=os.getppid()).start(EnvelopeRequest("outlive the command"))
    raw = ledger.read_raw(record.task_id)
    assert raw["pid"] == os.getppid()
    assert "runner" not in raw["engine"]
    assert ledger.lease is not None
    ledger.lease.release()
    assert Reaper(ledger).reap() == []
    assert ledger.read_raw(record.task_id)["status"] == "RUNNING"


def test_every_mistake_of_a_start_is_named() -> None:
    with pytest.raises(InvalidArguments) as refused:
        envelope_request(
            {"objective": " ", "phase": "think", "why": 1},
            {"policy": {"maxToolCalls": 0, "maxTalk": 1}},
        )
    assert [problem.path for problem in refused.value.problems] == [
        "why",
        "objective",
        "phase",
        "policy.maxToolCalls",
        "policy.maxTalk",
    ]


def test_a_call_is_counted_told_and_answered(envelopes: Envelopes, ledger: Ledger) -> None:
    task_id = envelopes.start(EnvelopeRequest("look around")).task_id
    envelopes.record(task_id, ToolCall("read_page"))
    call = ToolCall("navigate", {"url": "http://site.test/"}, False, 12.4, "s1", "timed out")
    answer = envelopes.record(task_id, call)
    assert answer is not None
    assert answer.counters["actionCalls"] == 1
    assert answer.counters["observationCalls"] == 1
    assert answer.counters["failureCalls"] == 1
    assert answer.counters["sameUrlNavigations"] == {"http://site.test/": 1}
    assert events(ledger, task_id, "tool_call")[1] == {
        "tool": "navigate",
        "ok": False,
        "durationMs": 12,
        "sessionId": "[redacted]",  # whoever knows a session may be able to use it
        "args": '{"url": "http://site.test/"}',
        "summary": "timed out",
    }
    assert ledger.read_raw(task_id)["last_tool_name"] == "navigate"


def test_the_error_of_a_call_is_redacted_and_cut(envelopes: Envelopes, ledger: Ledger) -> None:
    task_id = envelopes.start(EnvelopeRequest("look around")).task_id
    message = "Bearer abcdefgh12345678 was refused. " + "x" * 5_000
    error = ErrorInfo(message, "not_the_owner")
    envelopes.record(task_id, ToolCall("find", ok=False, error=error))
    (told,) = events(ledger, task_id, "tool_call")
    assert told["error"]["code"] == "not_the_owner"
    assert "12345678" not in told["error"]["message"]
    assert len(told["error"]["message"]) == NOTE_CHARACTERS


def test_without_a_task_nothing_is_read(envelopes: Envelopes, ledger: Ledger, root: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    assert envelopes.record(None, ToolCall("read_page")) is None
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_get_tells_counters_phase_budget_and_what_to_do_next(envelopes: Envelopes) -> None:
    task_id = envelopes.start(
        EnvelopeRequest("look", policy={"maxObservationStreak": 2}, phase="verify")
    ).task_id
    for _ in range(3):
        envelopes.record(task_id, ToolCall("find"))
    state = envelopes.state(task_id)
    assert state.phase == "verify"
    assert state.counters["observationStreak"] == 3
    assert state.budget_status == "exceeded"
    assert state.budget_exceeded == ("maxObservationStreak",)
    assert state.recommended_next == "change_strategy_or_verify"
    assert [event["tool"] for event in state.recent_events] == ["find"] * 3


def test_each_budget_edge_is_one_event(envelopes: Envelopes, ledger: Ledger) -> None:
    task_id = envelopes.start(EnvelopeRequest("fail", policy={"maxFailureStreak": 1})).task_id
    for ok in (False, False, False, True, False):
        envelopes.record(task_id, ToolCall(f"tool{ok}", ok=ok))
    told = [(event["from"], event["to"]) for event in events(ledger, task_id, "budget")]
    assert told == [
        ("ok", "warning"),
        ("warning", "exceeded"),
        ("exceeded", "ok"),
        ("ok", "warning"),
    ]


def test_going_over_a_budget_ends_and_refuses_nothing(envelopes: Envelopes, ledger: Ledger) -> None:
    task_id = envelopes.start(EnvelopeRequest("wander", policy={"maxToolCalls": 1})).task_id
    for _ in range(20):
        envelopes.record(task_id, ToolCall("act"))
    raw = ledger.read_raw(task_id)
    assert raw["status"] == "RUNNING"
    assert raw["counters"]["toolCalls"] == 20


def test_update_sets_the_phase_and_counts_no_call(envelopes: Envelopes, ledger: Ledger) -> None:
    task_id = envelopes.start(EnvelopeRequest("steps")).task_id
    envelopes.update(task_id, phase="verify", note="price seen")
    raw = ledger.read_raw(task_id)
    assert raw["phase"] == "verify"
    assert raw["args_summary"]["last_note"] == "price seen"
    assert raw["counters"] == budgets.no_calls()
    assert events(ledger, task_id, "log") == [{"phase": "verify", "note": "price seen"}]


@pytest.mark.parametrize(
    ("outcome", "status"),
    [("completed", "COMPLETED"), ("failed", "FAILED"), ("cancelled", "CANCELLED")],
)
def test_finish_closes_the_envelope_with_its_outcome_and_last_word(
    envelopes: Envelopes, ledger: Ledger, outcome: str, status: str
) -> None:
    task_id = envelopes.start(EnvelopeRequest("end")).task_id
    record = envelopes.finish(task_id, outcome, note="that was it")
    raw = ledger.read_raw(task_id)
    assert record.status == raw["status"] == status
    assert raw["phase"] == "done"
    assert raw["args_summary"]["final_note"] == "that was it"
    assert raw["ended_at"] >= raw["started_at"]
    assert "result_path" not in raw
    assert events(ledger, task_id, outcome) == [{"note": "that was it"}]


def test_an_ended_envelope_refuses_every_change(envelopes: Envelopes, root: Path) -> None:
    task_id = envelopes.start(EnvelopeRequest("end")).task_id
    envelopes.finish(task_id, "completed")
    before = (root / task_id / "meta.json").read_bytes()
    for refused in (
        lambda: envelopes.record(task_id, ToolCall("act")),
        lambda: envelopes.update(task_id, phase="act"),
        lambda: envelopes.finish(task_id, "failed"),
    ):
        with pytest.raises(EnvelopeEnded):
            refused()
    assert (root / task_id / "meta.json").read_bytes() == before


def test_a_task_with_a_body_is_no_envelope(envelopes: Envelopes, ledger: Ledger) -> None:
    task_id = ledger.create("crawl", {"url": "http://site.test/"}).task_id
    for refused in (
        lambda: envelopes.record(task_id, ToolCall("act")),
        lambda: envelopes.update(task_id, phase="act"),
        lambda: envelopes.finish(task_id, "completed"),
    ):
        with pytest.raises(NotAnEnvelope):
            refused()


def test_an_unknown_or_impossible_id_is_told_apart(envelopes: Envelopes) -> None:
    with pytest.raises(TaskNotFound):
        envelopes.record("0123456789abcdef", ToolCall("act"))
    with pytest.raises(NotATaskId):
        envelopes.record("../../etc", ToolCall("act"))


@pytest.mark.parametrize(
    "asked",
    [{"phase": "sleep"}, {"note": 3}, {}],
    ids=["unknown phase", "a note that is no text", "nothing"],
)
def test_a_bad_update_is_refused(envelopes: Envelopes, root: Path, asked: dict[str, Any]) -> None:
    task_id = envelopes.start(EnvelopeRequest("end")).task_id
    before = (root / task_id / "meta.json").read_bytes()
    with pytest.raises(InvalidArguments):
        envelopes.update(task_id, **asked)
    with pytest.raises(InvalidArguments):
        envelopes.finish(task_id, "won")
    assert (root / task_id / "meta.json").read_bytes() == before


def test_stored_envelopes_have_no_secrets(envelopes: Envelopes, root: Path) -> None:
    secret = "hunter2hunter2"
    task_id = envelopes.start(EnvelopeRequest(f"log in with password={secret}")).task_id
    envelopes.update(task_id, note=f"token={secret} " + "n" * 2_000)
    args = {"url": f"http://u:{secret}@site.test/?token={secret}", "password": secret}
    envelopes.record(task_id, ToolCall("navigate", args, summary=f"api_key={secret}"))
    envelopes.record(task_id, ToolCall("act", {"text": secret, "more": "m" * 2_000}))
    envelopes.finish(task_id, "failed", note=f"password: {secret}")
    for path in root.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path
    for line in (root / task_id / "events.jsonl").read_text("utf-8").splitlines():
        assert len(line) < 1_500


def test_fields_of_other_programs_survive_every_call(envelopes: Envelopes, ledger: Ledger) -> None:
    task_id = envelopes.start(EnvelopeRequest("share")).task_id
    ledger.mutate(task_id, lambda raw: raw.update(lanes=[{"x": 1}], _mu_state={"lastP": 0.5}))
    envelopes.record(task_id, ToolCall("act"))
    envelopes.update(task_id, phase="act")
    envelopes.finish(task_id, "completed")
    raw = ledger.read_raw(task_id)
    assert raw["lanes"] == [{"x": 1}]
    assert raw["_mu_state"] == {"lastP": 0.5}


def test_a_guard_may_refuse_completion_but_never_a_failure(ledger: Ledger, root: Path) -> None:
    refusal = TransitionError(subject="x", source="RUNNING", target="COMPLETED")
    asked: list[str] = []

    def guard(meta: Any) -> EngineError:
        asked.append(meta["task_id"])
        return refusal

    envelopes = Envelopes(ledger, guard=guard)
    task_id = envelopes.start(EnvelopeRequest("all items")).task_id
    before = (root / task_id / "meta.json").read_bytes()
    with pytest.raises(TransitionError):
        envelopes.finish(task_id, "completed")
    assert (root / task_id / "meta.json").read_bytes() == before
    assert envelopes.finish(task_id, "failed").status == "FAILED"
    assert asked == [task_id]


@pytest.mark.case("R90")
def test_time_runs_out_between_two_calls_and_the_next_update_tells_it(ledger: Ledger) -> None:
    now = [1_000_000]
    envelopes = Envelopes(ledger, now_ms=lambda: now[0])
    task_id = envelopes.start(EnvelopeRequest("in time", policy={"maxWallMs": 1_000})).task_id
    now[0] += 800
    assert envelopes.state(task_id).budget_status == "warning"
    assert ledger.read_raw(task_id)["budget_status"] == "ok"
    now[0] += 800
    envelopes.update(task_id, note="still here")
    assert ledger.read_raw(task_id)["budget_exceeded"] == ["maxWallMs"]
    assert [data["to"] for data in events(ledger, task_id, "budget")] == ["exceeded"]


def test_concurrent_calls_all_count(envelopes: Envelopes, ledger: Ledger, root: Path) -> None:
    task_id, each = envelopes.start(EnvelopeRequest("together")).task_id, 25
    command = [sys.executable, "-c", COUNT_CALLS, str(root), task_id, str(each)]
    here = Path(__file__).resolve().parents[2]
    children = [subprocess.Popen(command, stdin=subprocess.PIPE, cwd=here) for _ in range(3)]

    def call() -> None:
        for _ in range(each):
            patiently(partial(envelopes.record, task_id, ToolCall("find")))

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.close()
    for thread in threads:
        thread.join(240)
    assert [child.wait(240) for child in children] == [0, 0, 0]
    counters = ledger.read_raw(task_id)["counters"]
    assert counters["toolCalls"] == 5 * each
    assert counters["actionCalls"] + counters["observationCalls"] == 5 * each
    assert len(events(ledger, task_id, "tool_call")) == 5 * each
