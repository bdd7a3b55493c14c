"""Attention by time alone, and acknowledged tasks that stay quiet."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.records import EngineFields, ErrorInfo, TaskRecord, TaskView, Unreadable
from engine.model.status import Reason
from engine.query.attention_reasons import FAILED_RECENTLY_MS, changes_at, reasons, seen, unseen

NOW = 1_780_000_000_000.0


def a_view(status: str, last: float | None = None, **fields: Any) -> TaskView:
    record = TaskRecord("00000000000000aa", "crawl", status, created_at=NOW - 60_000)
    return TaskView(msgspec.structs.replace(record, **fields), last_event_at=last)


def acknowledged(view: TaskView, now_ms: float = NOW) -> set[str]:
    return {seen(view, reason) for reason in reasons(view, now_ms)}


def test_a_run_that_waits_for_a_person_is_the_most_pressing() -> None:
    view = a_view("NEEDS_HELP", kind="task_run", budget_status="exceeded")
    assert reasons(view, NOW) == (Reason.HELP, Reason.BUDGET)


def test_a_crawl_that_its_contract_refused_says_so_instead_of_merely_failed() -> None:
    view = a_view("FAILED", ended_at=NOW, error=ErrorInfo("76 missing", "bulk_incomplete"))
    assert reasons(view, NOW) == (Reason.CONTRACT,)


def test_a_limit_of_time_runs_out_while_nothing_is_called() -> None:
    view = a_view("RUNNING", started_at=NOW, policy={"maxWallMs": 5000}, last=NOW)
    assert reasons(view, NOW + 5000) == ()
    assert changes_at(view, NOW) == NOW + 5001
    assert reasons(view, NOW + 5001) == (Reason.BUDGET,)


def test_time_that_was_measured_counts_from_where_it_was_measured() -> None:
    engine = EngineFields(lasted_ms=1000, lasted_at=NOW + 9000)  # it slept for eight seconds
    view = a_view("RUNNING", NOW, started_at=NOW, policy={"maxWallMs": 5000}, engine=engine)
    assert reasons(view, NOW + 9000) == ()
    assert reasons(view, NOW + 13_001) == (Reason.BUDGET,)


def test_a_budget_of_what_has_ended_is_history_after_a_day() -> None:
    view = a_view("COMPLETED", ended_at=NOW, budget_status="exceeded")
    assert reasons(view, NOW) == (Reason.BUDGET,)
    assert reasons(view, NOW + FAILED_RECENTLY_MS) == ()


@pytest.mark.parametrize(
    "view",
    [
        a_view("FAILED", ended_at=NOW),
        a_view("RUNNING", NOW - 60_000, started_at=NOW - 90_000),
        a_view("RUNNING", NOW, budget_status="exceeded", budget_exceeded=["maxToolCalls"]),
        a_view("NEEDS_HELP", kind="task_run"),
        TaskView(Unreadable("00000000000000bb", "not JSON", "/x/meta.json", NOW)),
    ],
)
def test_what_was_acknowledged_stays_quiet_while_it_is_the_same(view: TaskView) -> None:
    found = reasons(view, NOW)
    assert len(found) == 1
    assert unseen(view, found, ()) == found
    assert unseen(view, found, acknowledged(view)) == ()


def test_a_second_stall_and_a_further_budget_are_news() -> None:
    stall = a_view("RUNNING", NOW - 60_000, started_at=NOW - 90_000)
    again = msgspec.structs.replace(stall, last_event_at=NOW - 31_000)
    assert unseen(again, reasons(again, NOW), acknowledged(stall)) == (Reason.STALLED,)
    over = a_view("RUNNING", NOW, budget_status="exceeded", budget_exceeded=["maxToolCalls"])
    more = a_view("RUNNING", NOW, budget_status="exceeded", budget_exceeded=["a", "maxWallMs"])
    assert unseen(more, reasons(more, NOW), acknowledged(over)) == (Reason.BUDGET,)


VIEWS = st.builds(
    a_view,
    st.sampled_from(["PENDING", "RUNNING", "FAILED", "COMPLETED", "NEEDS_HELP"]),
    last=st.none() | st.integers(-100_000, 0).map(lambda ms: NOW + ms),
    started_at=st.none() | st.integers(-100_000, 0).map(lambda ms: NOW + ms),
    ended_at=st.none() | st.integers(-100_000, 0).map(lambda ms: NOW + ms),
    policy=st.none() | st.fixed_dictionaries({"maxWallMs": st.integers(1, 200_000)}),
    budget_status=st.sampled_from([None, "ok", "exceeded"]),
    engine=st.none()
    | st.builds(
        EngineFields,
        lasted_ms=st.none() | st.integers(0, 200_000),
        lasted_at=st.none() | st.integers(-100_000, 0).map(lambda ms: NOW + ms),
    ),
)


@given(VIEWS, st.integers(0, 2 * 86_400_000))
def test_nothing_changes_before_the_moment_that_was_foretold(view: TaskView, later: int) -> None:
    at = changes_at(view, NOW)
    moment = NOW + later
    if at is None or moment < at:
        assert reasons(view, moment) == reasons(view, NOW)
