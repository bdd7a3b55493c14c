from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.records import EngineFields, ErrorInfo, TaskRecord, TaskView, Units, Unreadable
from engine.text import words
from engine.text.messages import ENGLISH

NOW = 1_780_000_000_000.0


def a_view(status: str = "RUNNING", **fields: Any) -> TaskView:
    of_view = ("units", "ours", "foreign", "undriven")
    seen = {key: fields.pop(key) for key in of_view if key in fields}
    base: dict[str, Any] = {"kind": "crawl", "created_at": NOW - 60_000}
    return TaskView(
        TaskRecord(task_id="00000000000000aa", status=status, **(base | fields)), **seen
    )


@pytest.mark.parametrize("message_id", sorted(ENGLISH))
def test_every_message_names_its_fields(message_id: str) -> None:
    names = [
        name for _, name, _, _ in string.Formatter().parse(ENGLISH[message_id]) if name is not None
    ]
    assert all(name.isidentifier() for name in names)


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (0, "0 s"),
        (59_999, "59 s"),
        (60_000, "1 min"),
        (3_599_999, "59 min"),
        (7_200_000, "2 h"),
        (259_200_000, "3 d"),
    ],
)
def test_a_span_is_short(ms: float, said: str) -> None:
    assert words.span(ms) == said


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (-3, "under 1 ms"),
        (0, "under 1 ms"),
        (0.4, "under 1 ms"),
        (1, "1 ms"),
        (400, "400 ms"),
        (999.4, "999 ms"),
        (999.6, "1.0 s"),
        (1_000, "1.0 s"),
        (12_000, "12 s"),
        (245_000, "4 min 05 s"),
        (7_800_000, "2 h 10 min"),
    ],
)
def test_what_a_task_took_is_never_told_as_nothing(ms: float, said: str) -> None:
    assert words.took(ms) == said


@pytest.mark.parametrize(
    ("ms", "said"),
    [(1, "~5 s"), (12_400, "~10 s"), (59_000, "~1 min"), (235_000, "~4 min"), (7_300_000, "~2 h")],
)
def test_time_left_is_rounded(ms: float, said: str) -> None:
    assert words.time_left(ms) == said


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e18))
def test_no_time_is_too_odd_for_the_clock(at: float) -> None:
    assert isinstance(words.clock(at, NOW), str)
    assert isinstance(words.ago(at, NOW), str)
    assert isinstance(words.time_left(at), str)


@pytest.mark.parametrize(
    ("units", "said"),
    [
        (Units(41, 120), "41/120"),
        (Units(137), "137 pages"),
        (Units(1), "1 page"),
        (Units(3, 0), "3 pages"),
        (None, ""),
    ],
)
def test_progress_without_a_total_counts_pages(units: Units | None, said: str) -> None:
    assert words.progress("crawl", units) == said


def test_the_row_is_one_sentence_for_ears() -> None:
    view = a_view(args_summary={"url": "https://example.com/"}, units=Units(41, 120))
    assert (
        words.row_sentence(view, words.status_word(view))
        == "Crawl example.com, running, 41 of 120 pages"
    )


def test_an_unknown_status_is_shown_as_it_is() -> None:
    assert words.status_word(a_view("DREAMING")) == "DREAMING"
    assert (
        words.why(a_view("DREAMING"), NOW)
        == "Its status is “DREAMING”, which this program does not know."
    )


def test_a_cancel_request_to_another_process_says_who_must_act() -> None:
    view = a_view(cancel_requested_at=NOW - 3000, foreign=True)
    assert words.why(view, NOW) == "Asked to stop 3 s ago; the process that runs it must act."


def test_a_failure_says_how_long_and_why() -> None:
    view = a_view(
        "FAILED", started_at=NOW - 5000, ended_at=NOW, error=ErrorInfo("disk full", "no_space")
    )
    assert words.why(view, NOW) == "Failed after 5.0 s: disk full"


def test_a_task_that_failed_while_it_waited_says_that_it_never_started() -> None:
    error, ours = ErrorInfo("its process is gone", "orphaned"), EngineFields()
    view = a_view("FAILED", started_at=None, ended_at=NOW, error=error, engine=ours)
    assert words.why(view, NOW) == "Failed before it started: its process is gone"
    assert words.why(view, NOW, with_error=False) == "Failed before it started."
    unknown = a_view("FAILED", started_at=None, ended_at=NOW, error=error)
    assert words.why(unknown, NOW) == "Failed after an unknown time: its process is gone"


def test_a_task_that_ended_before_its_start_is_not_said_to_have_taken_no_time() -> None:
    began = NOW - 5000
    back = a_view("COMPLETED", started_at=began, ended_at=began - 60_000)  # a clock was set back
    assert words.why(back, NOW) == "Finished after an unknown time."
    corrected = a_view("COMPLETED", started_at=began, ended_at=began - 3)
    assert words.why(corrected, NOW) == "Finished after under 1 ms."


def test_a_stall_says_for_how_long() -> None:
    view = a_view(started_at=NOW - 120_000, ours=True)
    assert words.why(view, NOW, stalled=True) == "No progress for 2 min. Running in this window."


def test_an_unreadable_folder_says_the_reason() -> None:
    view = TaskView(Unreadable("00000000000000bb", "meta.json: line 3\u2028is odd", "/x/meta.json"))
    assert words.why(view, NOW) == "Its folder cannot be read: meta.json: line 3 is odd"


def test_braces_in_a_strangers_text_are_only_text() -> None:
    view = a_view("FAILED", error=ErrorInfo("{0.__class__} {boom}"))
    assert words.why(view, NOW).endswith("{0.__class__} {boom}")


@pytest.mark.parametrize(
    ("shown", "total", "selected", "said"),
    [
        (214, 12480, 3, "Showing 214 of 12,480 · 3 selected"),
        (5, 5, 0, "5 tasks"),
        (1, 1, 1, "1 task · 1 selected"),
        (0, 0, 0, "No tasks yet"),
    ],
)
def test_the_line_under_the_list_counts(shown: int, total: int, selected: int, said: str) -> None:
    assert words.showing(shown, total, selected) == said


def test_a_crawl_whose_pages_failed_does_not_read_as_a_success() -> None:
    ended = {"started_at": NOW - 2900, "ended_at": NOW}
    view = a_view("COMPLETED", units=Units(1, 1, failed=1), **ended)
    assert words.why(view, NOW) == "Finished after 2.9 s; 1 of 1 pages failed."
    view = a_view("COMPLETED", units=Units(41, 41), **ended)
    assert words.why(view, NOW) == "Finished after 2.9 s."


def test_failed_units_are_told_as_a_part_of_the_done_ones() -> None:
    told = words.progress_spoken("commands", Units(2, 3, failed=1))
    assert told == "2 of 3 commands, 1 of them failed"
    assert words.progress_spoken("crawl", Units(40, failed=9)) == "40 pages, 9 of them failed"


def test_a_recording_is_called_by_its_label_and_a_snapshot_by_its_objective() -> None:
    labelled = {"label": "order two lamps", "url": "http://shop.example/"}
    assert words.task_name(a_view(kind="recording", args_summary=labelled)) == "order two lamps"
    snapshot = a_view(kind="oc_session_snapshot", args_summary={"objective": "pay", "label": 7})
    assert words.task_name(snapshot) == "pay"
    asked_for = a_view(args_summary={"url": "https://a.example/"}, objective="collect prices")
    assert words.task_name(asked_for) == "a.example"


def test_an_agents_task_counts_its_calls() -> None:
    counters = {"toolCalls": 7, "failureCalls": 1}
    record = a_view(kind="browser_task", counters=counters).entry
    assert isinstance(record, TaskRecord)
    assert words.progress(record.kind, record.units) == "7 calls · 1 failed"
    odd = a_view(kind="browser_task", counters={"toolCalls": "7"}).entry
    crawl = a_view(counters=counters).entry
    assert isinstance(odd, TaskRecord)
    assert isinstance(crawl, TaskRecord)
    assert odd.units is None
    assert crawl.units is None


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("crawl", "it stops after the page it is on."),
        ("commands", "it stops after the command it is on."),
        ("recording", "it ends now, its actions are kept."),
    ],
)
def test_a_task_stops_after_what_its_kind_does(kind: str, said: str) -> None:
    view = a_view(kind=kind, cancel_requested_at=NOW - 3000, ours=True)
    assert words.why(view, NOW) == f"Asked to stop 3 s ago; {said}"


def test_who_leads_a_task_from_outside_is_said() -> None:
    view = a_view(kind="browser_task", pid=7, foreign=True)
    assert words.why(view, NOW) == "Driven by another program (process 7)."


def test_an_envelope_whose_host_has_ended_says_how_it_goes_on() -> None:
    view = a_view(kind="browser_task", pid=7, undriven=True, last_activity_at=NOW - 3 * 3_600_000)
    assert words.why(view, NOW) == (
        "No program drives it now: its host (process 7) has ended, and it was last used 3 h ago."
        " Without further use it ends as orphaned in 21 h."
    )


def test_a_recording_that_was_asked_to_end_says_so() -> None:
    engine = EngineFields(stop_requested_at=NOW - 2000)
    view = a_view(kind="recording", engine=engine, ours=True)
    said = "Stop requested 2 s ago; its actions are kept."
    assert words.why(view, NOW) == said
