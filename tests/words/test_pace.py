from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.status import ETA_MIN_MS, STALL_MIN_MS, Pace

START = 1_780_000_000_000.0


def steady(units: int, every_ms: float) -> Pace:
    pace = Pace(START)
    for number in range(1, units + 1):
        pace.seen(number, START + number * every_ms)
    return pace


def test_a_steady_task_has_its_own_speed() -> None:
    assert steady(60, 500).rate == pytest.approx(2.0)


def test_nothing_is_said_before_the_first_unit() -> None:
    pace = Pace(START)
    pace.seen(0, START + 5000)
    assert pace.rate is None
    assert pace.ends_at(100) is None


def test_the_end_is_foreseen_after_five_units_and_ten_seconds() -> None:
    assert steady(4, ETA_MIN_MS).ends_at(100) is None
    assert steady(5, ETA_MIN_MS / 5 - 1).ends_at(100) is None
    pace = steady(5, ETA_MIN_MS / 5)
    assert pace.ends_at(10) == pytest.approx(START + 2 * ETA_MIN_MS)


def test_a_total_that_is_reached_or_unknown_has_no_end_to_foresee() -> None:
    pace = steady(20, 1000)
    assert pace.ends_at(20) is None
    assert pace.ends_at(None) is None


def test_a_change_of_speed_shows_within_a_minute() -> None:
    pace = steady(60, 500)
    for number in range(1, 61):
        pace.seen(60 + number, START + 30_000 + number * 5000)
    assert pace.rate == pytest.approx(0.2, rel=0.05)


def test_a_quick_first_unit_promises_nothing_for_the_others() -> None:
    pace = Pace(START)
    pace.seen(1, START + 500)
    for number in range(1, 8):
        pace.seen(1 + number, START + 500 + number * 2500)
    assert pace.rate == pytest.approx(8 / 18, rel=0.05)


def test_a_stall_is_five_usual_units_but_thirty_seconds_at_least() -> None:
    assert steady(10, 100).stall_after_ms == STALL_MIN_MS
    assert steady(10, 20_000).stall_after_ms == 100_000


def test_a_window_opened_late_takes_the_average_since_the_start() -> None:
    pace = Pace(START)
    pace.seen(100, START + 50_000)
    assert pace.rate == pytest.approx(2.0)


@given(st.lists(st.tuples(st.integers(-5, 10**9), st.floats(0, 1e13)), max_size=40))
def test_no_sequence_of_news_breaks_it(news: list[tuple[int, float]]) -> None:
    pace = Pace()
    for done, at in news:
        pace.seen(done, at)
    assert pace.rate is None or pace.rate > 0
    assert pace.stall_after_ms >= STALL_MIN_MS
