"""Durations are computed from events, and idle time is compressed."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.model.records import TaskEvent, UnitTime
from gui.details import timeline_spans
from gui.details.timeline_spans import IDLE, Scale, Span, gaps, lanes, picture_of, spans_of
from gui.engine_link.task_events import event_row, mark_failures

NOW = 1_780_000_000_000.0


def rows(*events: tuple[float, str, dict[str, object]]) -> list[object]:
    return [event_row(TaskEvent(NOW + at, kind, data)) for at, kind, data in events]


def told(spans: list[Span]) -> list[tuple[float, float, bool, str]]:
    return [(span.start - NOW, span.end - NOW, span.exact, span.tone) for span in spans]


def test_a_call_tells_its_time_and_a_page_its_own() -> None:
    found = spans_of(
        rows(  # type: ignore[arg-type]  # rows stand in for events and commands
            (0, "started", {}),
            (500, "tool_call", {"tool": "navigate", "ok": False, "durationMs": 300}),
            (900, "progress", {"unitsDone": 1, "message": "https://a.test/"}),
            (950, "progress", {"unitsDone": 2, "message": "https://b.test/: HTTP 500"}),
        ),
        [UnitTime("https://a.test/", 250), UnitTime("https://b.test/", 400, failed=True)],
    )
    assert told(found) == [
        (0, 0, True, "running"),
        (200, 500, True, "bad"),
        (550, 950, True, "bad"),
        (650, 900, True, "running"),
    ]


def test_where_only_an_end_is_told_it_began_at_the_latest_after_what_came_before() -> None:
    found = spans_of(
        rows(  # type: ignore[arg-type]  # rows stand in for events and commands
            (0, "started", {}),
            (400, "progress", {"unitsDone": 1, "message": "one"}),
            (500, "log", {"note": "x"}),
            (700, "progress", {"unitsDone": 2, "message": "two"}),
        ),
        [],
    )
    assert told(found)[1:] == [
        (0, 400, False, "running"),
        (400, 700, False, "running"),
        (500, 500, True, ""),
    ]


def test_commands_tell_both_ends_and_their_events_nothing_new() -> None:
    command = UnitTime("browser_navigate goto", 40, NOW + 10, about="open it")
    # Rows stand in for events and commands.
    found = spans_of(rows((60, "progress", {"unitsDone": 1})), [command])  # type: ignore[arg-type]
    assert told(found) == [(10, 50, True, "running")]
    assert (found[0].name, found[0].text) == ("browser_navigate goto", "open it")


def test_events_without_time_are_omitted(monkeypatch: object) -> None:
    odd = [event_row(TaskEvent(float("nan"), "log", {}))]
    many = rows(*((n, "log", {}) for n in range(timeline_spans.MOST + 5)))
    # Rows stand in for events and commands.
    found = spans_of([*odd, *many], [])  # type: ignore[list-item]
    assert len(found) == timeline_spans.MOST
    assert found[0].start == NOW + 5


def test_what_is_idle_is_what_lies_between() -> None:
    spans = [Span(0, 10, "", ""), Span(2, 50, "", ""), Span(60, 60, "", ""), Span(200, 210, "", "")]
    assert gaps(spans, 20) == [(60, 200)]
    assert gaps(spans, 10) == [(50, 60), (60, 200)]
    assert gaps([], 1) == []


MOMENTS = st.lists(st.integers(0, 100_000), min_size=2, max_size=20, unique=True).map(sorted)


@given(moments=MOMENTS, fold=st.floats(0.001, 0.2), at=st.lists(st.integers(-10, 100_010)))
def test_a_scale_is_monotonic_and_inverts(moments: list[int], fold: float, at: list[int]) -> None:
    idle = [(float(a), float(b)) for a, b in zip(moments[1::2], moments[2::2], strict=False)]
    scale = Scale(moments[0], moments[-1], idle, fold)
    lengths = [scale.length(ts) for ts in sorted(at)]
    assert lengths == sorted(lengths)
    assert all(0 <= length <= scale.whole for length in lengths)
    assert scale.whole <= max(1, moments[-1] - moments[0]) + 1
    for ts in at:
        inside = min(max(ts, moments[0]), moments[-1])
        assert abs(scale.moment(scale.length(ts)) - inside) <= 1.01  # it is 1 ms long at least


@given(starts=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 20)), max_size=30).map(sorted))
def test_parallel_spans_get_separate_lanes(starts: list[tuple[int, int]]) -> None:
    spans = [Span(start, start + took, "", "") for start, took in starts]
    most = 40
    given_lanes = lanes(spans, most)
    for lane in set(given_lanes):
        mine = [span for span, at in zip(spans, given_lanes, strict=True) if at == lane]
        assert all(a.end <= b.start for a, b in pairwise(mine))
    assert all(lane < 2 for lane in lanes(spans, 2))


PIECES = st.lists(
    st.tuples(st.integers(1, 99_000), st.integers(0, 30_000)), min_size=1, max_size=25
)


@given(pieces=PIECES, a=st.integers(0, 130_000), b=st.integers(0, 130_000))
def test_a_range_finds_overlapping_spans(pieces: list[tuple[int, int]], a: int, b: int) -> None:
    units = [UnitTime("unit", took, NOW + start) for start, took in pieces]
    picture = picture_of((), units, None, "Idle")
    assert picture is not None
    low, high = NOW + min(a, b), NOW + max(a, b)
    expected = [one for one in picture.spans if one.end >= low and one.start <= high]
    assert picture.between((low, high)) == expected
    assert [one for one in picture.rows if one.tone != IDLE] == picture.spans
    assert sum(one.took_ms for one in picture.rows if one.tone == IDLE) == sum(
        end - start for start, end in picture.idle
    )


def test_what_was_there_stays_the_same_object_while_more_comes() -> None:
    units = [UnitTime("unit", 5, NOW + at) for at in range(10)]
    first = picture_of((), units[:6], None, "Idle")
    assert first is not None
    assert picture_of((), units[:6], first, "Idle") is first
    more = picture_of((), units, first, "Idle")
    assert more is not None
    assert all(old is new for old, new in zip(first.spans, more.spans, strict=False))
    assert (len(more.spans), picture_of((), [], more, "Idle")) == (10, None)


def test_progress_of_a_failed_unit_has_the_tone_of_errors_without_its_record() -> None:
    told = [
        (1.0, "progress", {"unitsDone": 1, "message": "http://a.test/1"}),
        (2.0, "progress", {"unitsDone": 2, "unitsFailed": 1, "message": "http://a.test/2: gone"}),
    ]
    marked, failures = mark_failures([event_row(TaskEvent(*one)) for one in told], None)
    assert failures == 1
    assert [span.tone for span in spans_of(marked, [])] == ["running", "bad"]
