"""Rules of repetition: the next occurrence in a time zone, across changes of its clock."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.errors import InvalidArguments
from engine.schedules.rules import (
    MINUTE_MS,
    MOST_COUNTED,
    Due,
    Rule,
    latest,
    next_after,
    rule_of,
    zones,
)

BERLIN = "Europe/Berlin"
# Summer time at 2 h, at midnight, of half an hour, none; a day that a zone skipped whole.
ZONES = (
    *(BERLIN, "America/New_York", "America/Santiago", "Australia/Lord_Howe"),
    *("Asia/Kolkata", "Pacific/Apia", "UTC"),
)
START_MS, END_MS = 1_230_768_000_000, 1_893_456_000_000  # 2009 to 2030

instants = st.integers(START_MS, END_MS)
times = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.integers(0, 59))
rules = st.one_of(
    st.builds(
        lambda every, at: Rule(every_minutes=every, start_at=at), st.integers(1, 9_000), instants
    ),
    st.builds(lambda at, zone: Rule(daily_at=at, zone=zone), times, st.sampled_from(ZONES)),
    st.builds(
        lambda line, zone: Rule(cron=line, zone=zone),
        st.sampled_from(("30 2 * * *", "0 */6 * * *", "15 1,2,3 * * 0", "0 0 1 * *", "5 4 L * *")),
        st.sampled_from(ZONES),
    ),
)


def ms(zone: str, *at: int, fold: int = 0) -> int:
    moment = datetime(*at, tzinfo=ZoneInfo(zone), fold=fold)  # type: ignore[arg-type, misc]
    return int(moment.astimezone(UTC).timestamp()) * 1000


@given(rules, instants)
def test_the_next_occurrence_is_later_and_no_other_comes_before_it(rule: Rule, at_ms: int) -> None:
    found = next_after(rule, at_ms)
    assert found is not None
    assert found > at_ms
    between = at_ms + (found - at_ms) // 2
    assert next_after(rule, between) == found or between >= found
    assert next_after(rule, found - 1) == found


@given(rules, instants, st.integers(0, 20 * 86_400_000))
def test_the_latest_due_one_is_the_last_of_the_chain_of_next_ones(
    rule: Rule, at_ms: int, span_ms: int
) -> None:
    chain, at = list[int](), next_after(rule, at_ms)
    while at is not None and at <= at_ms + span_ms and len(chain) < MOST_COUNTED:
        chain.append(at)
        at = next_after(rule, at)
    found = latest(rule, at_ms, at_ms + span_ms)
    if len(chain) < MOST_COUNTED:
        assert found == (Due(chain[-1], len(chain)) if chain else None)
    else:
        assert found is not None
        assert found.number == MOST_COUNTED
        after = next_after(rule, found.at_ms)
        assert found.at_ms <= at_ms + span_ms < (after or END_MS * 2)


@given(times, st.sampled_from(ZONES), st.dates(date(2009, 1, 1), date(2029, 12, 1)))
def test_a_time_of_day_comes_once_on_every_day_of_its_zone(at: str, zone: str, day: date) -> None:
    rule, place = Rule(daily_at=at, zone=zone), ZoneInfo(zone)
    clock = time.fromisoformat(at)
    first = datetime.combine(day, time(), place).astimezone(UTC)
    found, expected = list[int](), list[int]()
    moment = next_after(rule, int(first.timestamp()) * 1000 - 1)
    end_ms = int((first + timedelta(days=400)).timestamp()) * 1000
    while moment is not None and moment < end_ms:
        found.append(moment)
        moment = next_after(rule, moment)
    for number in range(402):
        naive = datetime.combine(day + timedelta(days=number), clock)
        local = naive.replace(tzinfo=place, fold=0)
        there = local.astimezone(UTC).astimezone(place)
        while there.replace(tzinfo=None) != naive:  # it does not exist: the next that does
            naive += timedelta(minutes=1)
            local = naive.replace(tzinfo=place, fold=0)
            there = local.astimezone(UTC).astimezone(place)
        expected.append(int(local.astimezone(UTC).timestamp()) * 1000)
    assert found == [one for one in dict.fromkeys(expected) if one < end_ms]


def test_an_hour_that_summer_time_skips_runs_at_the_next_valid_instant() -> None:
    rule = Rule(daily_at="02:30", zone=BERLIN)
    found = next_after(rule, ms(BERLIN, 2026, 3, 29, 0, 0))
    assert found == ms(BERLIN, 2026, 3, 29, 3, 0)
    assert next_after(rule, found) == ms(BERLIN, 2026, 3, 30, 2, 30)


def test_an_hour_that_comes_twice_runs_once_also_when_asked_in_its_second_pass() -> None:
    rule = Rule(cron="30 2 * * *", zone=BERLIN)
    first = next_after(rule, ms(BERLIN, 2026, 10, 25, 0, 0))
    assert first == ms(BERLIN, 2026, 10, 25, 2, 30, fold=0)
    second_pass = ms(BERLIN, 2026, 10, 25, 2, 10, fold=1)
    assert next_after(rule, second_pass) == ms(BERLIN, 2026, 10, 26, 2, 30)


def test_an_interval_counts_elapsed_time_from_its_start() -> None:
    rule = Rule(every_minutes=90, start_at=1_000)
    assert next_after(rule, 1_000) == 1_000 + 90 * MINUTE_MS
    assert next_after(rule, 1_000 + 90 * MINUTE_MS) == 1_000 + 180 * MINUTE_MS
    assert next_after(rule, 0) == 1_000 + 90 * MINUTE_MS


def test_a_year_of_missed_minutes_is_counted_to_a_limit_and_its_last_is_found() -> None:
    rule = Rule(cron="* * * * *", zone=BERLIN)
    after, until = ms(BERLIN, 2025, 1, 1), ms(BERLIN, 2026, 1, 1, 0, 0, 30)
    assert latest(rule, after, until) == Due(ms(BERLIN, 2026, 1, 1), MOST_COUNTED)


def test_a_broken_clock_beyond_the_year_2100_finds_nothing_due() -> None:
    assert next_after(Rule(daily_at="07:30"), 10**15) is None
    assert next_after(Rule(daily_at="07:30"), -1) is None


@pytest.mark.parametrize(
    ("given_rule", "path", "word"),
    [
        ({}, "rule", "one of"),
        ({"every_minutes": 5, "cron": "* * * * *"}, "rule", "one of"),
        ({"every_minutes": 0}, "every_minutes", "1 minute"),
        ({"every_minutes": True}, "every_minutes", "whole number"),
        ({"daily_at": "25:00"}, "daily_at", "07:30"),
        ({"cron": "0 0 * *"}, "cron", "five fields"),
        ({"cron": "0 0 * * * *"}, "cron", "five fields"),
        ({"cron": "99 * * * *"}, "cron", "bad minute"),
        ({"cron": "0 0 30 2 *"}, "cron", "day-of-month"),
        ({"daily_at": "07:30", "zone": "Berlin"}, "zone", "Europe/Berlin"),
        ({"daily_at": "07:30", "zone": "../../etc/passwd"}, "zone", "time zone"),
        ({"daily_at": "07:30", "weekly": 1}, "weekly", "no part"),
    ],
)
def test_a_mistake_in_a_rule_is_named_with_the_way_out(
    given_rule: dict[str, object], path: str, word: str
) -> None:
    with pytest.raises(InvalidArguments) as refused:
        rule_of(given_rule, START_MS)
    problem = refused.value.problems[0]
    assert problem.path == path
    assert word in problem.message


def test_every_zone_of_the_list_is_accepted() -> None:
    assert BERLIN in zones()
    for zone in zones()[::20]:
        assert rule_of({"daily_at": "7:05", "zone": zone}, START_MS).daily_at == "07:05"
