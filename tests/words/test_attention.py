from __future__ import annotations

import msgspec
import pytest

from engine.model.records import ErrorInfo, TaskRecord, TaskView, Unreadable
from engine.model.status import Facet, Reason, Standing, facets, moment, standing, updated_at
from engine.query.attention_reasons import FAILED_RECENTLY_MS, reasons

NOW = 1_780_000_000_000.0


def a_view(
    status: str, *, orphaned: bool = False, last: float | None = None, **fields: object
) -> TaskView:
    record = TaskRecord(
        task_id="00000000000000aa", kind="crawl", status=status, created_at=NOW - 60_000
    )
    record = msgspec.structs.replace(record, **fields)
    return TaskView(record, orphaned=orphaned, last_event_at=last)


UNREADABLE = TaskView(Unreadable("00000000000000bb", "not JSON", "/x/meta.json", NOW))


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (a_view("PENDING"), Standing.PENDING),
        (a_view("RUNNING"), Standing.RUNNING),
        (a_view("RUNNING", cancel_requested_at=NOW), Standing.CANCELLING),
        (a_view("CANCELLED", cancel_requested_at=NOW), Standing.CANCELLED),
        (a_view("RUNNING", orphaned=True), Standing.ORPHANED),
        (a_view("RUNNING", orphaned=True, cancel_requested_at=NOW), Standing.ORPHANED),
        (a_view("running"), Standing.UNKNOWN),
        (a_view(""), Standing.UNKNOWN),
        (UNREADABLE, Standing.UNREADABLE),
    ],
)
def test_the_state_shown_follows_from_the_record(view: TaskView, expected: Standing) -> None:
    assert standing(view) is expected


def test_a_failure_needs_attention_for_a_day_and_no_longer() -> None:
    ended = NOW - FAILED_RECENTLY_MS + 1
    assert reasons(a_view("FAILED", ended_at=ended), NOW) == (Reason.FAILED,)
    assert reasons(a_view("FAILED", ended_at=ended), NOW + 1) == ()


def test_silence_is_a_stall_after_thirty_seconds_at_the_earliest() -> None:
    view = a_view("RUNNING", started_at=NOW - 90_000, last=NOW - 30_000)
    assert reasons(view, NOW) == (Reason.STALLED,)
    assert reasons(view, NOW - 1) == ()


def test_slow_units_get_more_time_before_they_count_as_stalled() -> None:
    view = a_view("RUNNING", last=NOW - 40_000)
    assert reasons(view, NOW, stall_after_ms=50_000) == ()


def test_an_agents_task_may_be_silent() -> None:
    assert reasons(a_view("RUNNING", kind="browser_task", last=NOW - 600_000), NOW) == ()


def test_only_what_still_runs_can_stall_or_be_orphaned() -> None:
    assert reasons(a_view("COMPLETED", last=NOW - 600_000, orphaned=True), NOW) == ()


def test_reasons_come_most_pressing_first() -> None:
    view = a_view("RUNNING", orphaned=True, budget_status="exceeded")
    assert reasons(view, NOW) == (Reason.ORPHANED, Reason.BUDGET)


def test_a_reaped_orphan_counts_as_failed_and_as_orphaned() -> None:
    view = a_view("FAILED", error=ErrorInfo("orphaned: pid 9", "orphaned"), ended_at=NOW)
    found = facets(view, standing(view), reasons(view, NOW))
    assert found == {Facet.ALL, Facet.ATTENTION, Facet.FAILED, Facet.ORPHANED}


def test_an_unknown_status_counts_in_all_only() -> None:
    view = a_view("DREAMING")
    assert facets(view, standing(view), ()) == {Facet.ALL}


@pytest.mark.parametrize("odd", [True, "5", None, float("nan"), float("inf"), -1, 0, 10**400])
def test_what_is_no_time_reads_as_none(odd: object) -> None:
    assert moment(odd) is None


def test_updated_is_the_newest_of_what_is_known() -> None:
    view = a_view("RUNNING", started_at=NOW - 9, last_activity_at=NOW - 5, last=NOW - 7)
    assert updated_at(view) == NOW - 5
    assert updated_at(a_view("PENDING")) == NOW - 60_000


@pytest.mark.parametrize("kind", ["browser_task", "recording"])
def test_what_waits_for_somebody_stalls_only_while_it_is_stopping(kind: str) -> None:
    assert reasons(a_view("RUNNING", kind=kind, last=NOW - 600_000), NOW) == ()
    asked = a_view("RUNNING", kind=kind, last=NOW - 600_000, cancel_requested_at=NOW - 500_000)
    assert reasons(asked, NOW) == (Reason.STALLED,)
