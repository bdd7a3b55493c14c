"""`concurrency: auto` rises while more pages at once load as fast, and falls at once if not."""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kinds.crawl.concurrency_rule import (
    CUT_FROM,
    FIRST_PAUSE_S,
    MEMORY_S,
    MOST,
    RAISE_TO,
    START,
    ConcurrencyRule,
    Interval,
)
from engine.model.machine_load import Machine

GB = 1e9
ROOMY = Machine(cpu=0.3, own_cpu=0.2, free_bytes=16 * GB, total_bytes=24 * GB, tab_bytes=0.1 * GB)
SHORT = ROOMY._replace(free_bytes=0.5 * GB)

INTERVALS = st.builds(
    Interval,
    pages=st.integers(0, 60),
    page_s=st.floats(0.001, 40),
    failed=st.integers(0, 30),
    busy=st.floats(0, 1),
    engine=st.sampled_from(["browser", "static"]),
)
MACHINES = st.builds(
    Machine,
    cpu=st.floats(0, 1),
    own_cpu=st.floats(0, 1),
    free_bytes=st.floats(0, 32 * GB),
    total_bytes=st.just(32 * GB),
    tab_bytes=st.floats(0.05 * GB, GB),
)
STEPS = st.lists(st.tuples(INTERVALS, MACHINES, st.floats(0, 90), st.booleans()), max_size=40)


@given(STEPS, st.integers(1, MOST))
def test_the_number_stays_between_one_and_the_most(steps: list[Any], most: int) -> None:
    rule, now_s = ConcurrencyRule(most), 0.0
    for seen, machine, later_s, is_refused in steps:
        began_s, now_s = now_s, now_s + later_s
        before = rule.number
        if is_refused:
            assert rule.refuse(began_s, now_s) is (rule.number < before)
        else:
            reason = rule.decide(seen, machine, now_s)
            assert (reason is not None) is (rule.number != before)
            assert (reason == "room") is (rule.number > before)
        assert 1 <= rule.number <= most


def after(steps: list[Any]) -> tuple[ConcurrencyRule, float]:
    """Return a rule with a history whose last cut was judged, and its time."""
    rule, now_s = ConcurrencyRule(), 0.0
    for seen, machine, later_s, is_refused in steps:
        now_s += later_s
        if is_refused:
            rule.refuse(now_s, now_s)
        else:
            rule.decide(seen, machine, now_s)
    return rule, now_s + 1


@given(STEPS, INTERVALS, MACHINES, st.data())
def test_more_pressure_never_gives_a_larger_number(
    steps: list[Any], seen: Interval, machine: Machine, data: st.DataObject
) -> None:
    rule, now_s = after(steps)
    if rule._tested is not None:  # the next interval judges a cut, see below
        return
    worse_seen = seen._replace(
        page_s=seen.page_s * data.draw(st.floats(1, 10)),
        failed=seen.failed + data.draw(st.integers(0, 20)) * (seen.pages > 0),
        busy=seen.busy * data.draw(st.floats(0, 1)),
    )
    worse_machine = machine._replace(
        free_bytes=machine.free_bytes * data.draw(st.floats(0, 1)),
        cpu=machine.cpu if machine.is_full else data.draw(st.floats(machine.cpu, 1)),
        tab_bytes=machine.tab_bytes * data.draw(st.floats(1, 3)),
    )
    other = copy.deepcopy(rule)
    enough = seen.pages + seen.failed >= rule.fewest_pages
    rule.decide(seen, machine, now_s)
    other.decide(worse_seen, worse_machine, now_s)
    if enough or not worse_seen.failed:
        assert other.number <= rule.number


@given(STEPS, st.integers(2, MOST))
def test_a_refusal_halves_the_number_at_once_and_those_of_its_flight_do_not_again(
    steps: list[Any], number: int
) -> None:
    rule, now_s = after(steps)
    rule.number = number
    assert rule.refuse(now_s, now_s + 1)
    assert rule.number == number // 2
    assert not any(rule.refuse(began_s, now_s + 2) for began_s in (now_s - 5, now_s, now_s + 0.9))
    assert rule.number == number // 2


@given(STEPS, st.integers(2, MOST))
def test_short_memory_halves_the_number_at_once_whatever_else_was_measured(
    steps: list[Any], number: int
) -> None:
    rule, now_s = after(steps)
    rule.number = number
    now_s += MEMORY_S
    assert rule.decide(Interval(), SHORT, now_s) == "memory"
    assert rule.number == number // 2
    assert rule.decide(Interval(), SHORT, now_s + MEMORY_S - 1) is None  # tabs are being closed
    rule.decide(Interval(), SHORT, now_s + MEMORY_S)
    assert rule.number == max(1, number // 4)


def test_it_rises_only_with_busy_tabs_enough_pages_and_memory_for_more() -> None:
    good = Interval(20, 0.5, engine="static")
    tight = ROOMY._replace(free_bytes=2.45 * GB, tab_bytes=0.3 * GB)
    for seen, machine, number in (
        (good, ROOMY, START + 1),
        (good._replace(busy=0.8), ROOMY, START),
        (good._replace(pages=4), ROOMY, START),
        (good, ROOMY._replace(cpu=0.97, own_cpu=0.6), START),
        (good, ROOMY._replace(cpu=0.97, own_cpu=0.3), START + 1),  # others' work
        (good, tight, START + 1),
        (good, tight._replace(tab_bytes=0.5 * GB), START),
    ):
        rule = ConcurrencyRule()
        rule.decide(seen, machine, 1.0)
        assert rule.number == number, (seen, machine)


def test_it_reaches_the_most_in_a_few_intervals_where_page_times_stay() -> None:
    rule, numbers = ConcurrencyRule(), list[int]()
    for at in range(5):
        rule.decide(Interval(20, 0.5), ROOMY, float(at))
        numbers.append(rule.number)
    assert numbers == [4, 6, 9, 13, 16]


def test_a_cut_that_did_not_help_makes_the_slower_pages_the_standard() -> None:
    rule = ConcurrencyRule()
    for at in range(5):
        rule.decide(Interval(20, 0.5), ROOMY, float(at))
    assert rule.decide(Interval(20, 2.0), ROOMY, 10.0) == "slow"  # a part with larger pages
    assert rule.number == 12
    assert rule.decide(Interval(20, 2.0), ROOMY, 11.0) is None
    assert rule.decide(Interval(20, 2.0), ROOMY, 12.0) == "room"
    assert rule.number == MOST


def test_a_broken_part_of_a_site_does_not_hold_the_number_down() -> None:
    rule = ConcurrencyRule(start=8)
    broken = Interval(10, 0.5, failed=10)
    assert rule.decide(broken, ROOMY, 1.0) == "failures"
    assert rule.number == 4
    assert rule.decide(broken, ROOMY, 2.0) is None
    assert rule.decide(broken, ROOMY, 3.0) == "room"


def test_failures_that_fewer_pages_at_once_end_keep_the_number_down_for_a_while() -> None:
    rule = ConcurrencyRule(start=8)
    assert rule.decide(Interval(10, 0.5, failed=10), ROOMY, 1.0) == "failures"
    numbers = []
    for at in range(2, 10):
        rule.decide(Interval(20, 0.5), ROOMY, float(at))
        numbers.append(rule.number)
    assert numbers == [5, 6, 7, 7, 7, 7, 7, 7]
    rule.decide(Interval(20, 0.5), ROOMY, 1.0 + FIRST_PAUSE_S)
    assert rule.number == 8


def test_one_page_at_once_is_not_slow_because_of_others() -> None:
    rule = ConcurrencyRule(start=1)
    rule.decide(Interval(9, 0.5, busy=0.5), ROOMY, 1.0)
    assert rule.decide(Interval(9, 5.0), ROOMY, 2.0) is None
    assert rule.decide(Interval(9, 5.0), ROOMY, 3.0) == "room"


def test_refusals_and_slow_pages_at_one_page_at_once_avoid_no_number_for_longer() -> None:
    rule = ConcurrencyRule(start=2)
    assert rule.refuse(0.0, 0.0)
    for at in range(1, 20):
        assert not rule.refuse(float(at), float(at))
    numbers = []
    for now_s in (30.0, FIRST_PAUSE_S - 1, FIRST_PAUSE_S):
        rule.decide(Interval(20, 0.5), ROOMY, now_s)
        numbers.append(rule.number)
    assert numbers == [1, 1, 2]


def test_a_broken_part_of_a_site_is_the_standard_only_as_long_as_it_lasts() -> None:
    rule = ConcurrencyRule(start=8)
    for at in range(1, 3):
        rule.decide(Interval(10, 0.5, failed=10), ROOMY, float(at))  # tested in vain
    rule.decide(Interval(20, 0.5), ROOMY, 3.0)
    assert rule.decide(Interval(10, 0.5, failed=8), ROOMY, 4.0) == "failures"


def test_failures_that_begin_while_a_slow_number_is_tested_cut_it() -> None:
    rule = ConcurrencyRule(start=8)
    rule.decide(Interval(20, 0.5, busy=0.5), ROOMY, 1.0)
    assert rule.decide(Interval(20, 2.0), ROOMY, 2.0) == "slow"
    assert rule.number == 6
    assert rule.decide(Interval(10, 2.0, failed=10), ROOMY, 3.0) == "failures"
    assert rule.number == 3


@pytest.mark.parametrize("start", [8, 2])
def test_a_test_in_vain_does_not_lift_the_limit_of_a_refusal(start: int) -> None:
    rule = ConcurrencyRule(start=start)
    rule.decide(Interval(20, 0.5, busy=0.5), ROOMY, 0.0)
    assert rule.refuse(0.0, 0.0)
    numbers = []
    for at in range(1, 20):
        rule.decide(Interval(20, 2.0), ROOMY, float(at))  # larger pages: slower with any number
        numbers.append(rule.number)
    assert numbers[0] < start // 2 or start == 2
    assert max(numbers) == numbers[-1] == start - 1
    rule.decide(Interval(20, 2.0), ROOMY, FIRST_PAUSE_S)
    assert rule.number == start


# Against a site that is simulated.


@dataclass
class KneeSite:
    """Pages take `page_s` up to `capacity` at once, and in proportion longer beyond it.

    Beyond `allowed` at once the others are refused. Times vary by `noise`.
    """

    capacity: float
    allowed: int = 1_000
    page_s: float = 0.5
    noise: float = 0.1
    seed: int = 1
    refusals: int = 0
    pages: int = 0
    numbers: list[int] = field(default_factory=list)

    def crawl(self, rule: ConcurrencyRule, for_s: float) -> None:
        random, now_s = Random(self.seed), 0.0
        while now_s < for_s:
            number = rule.number
            self.numbers.append(number)
            if number > self.allowed:
                self.refusals += number - self.allowed
                rule.refuse(now_s, now_s + self.page_s)
                now_s += self.page_s
                continue
            times, elapsed_s = list[float](), 0.0
            while elapsed_s < 2.0 or len(times) < rule.fewest_pages:
                page_s = self.page_s * max(1.0, number / self.capacity)
                page_s *= random.uniform(1 - self.noise, 1 + self.noise)
                times.append(page_s)
                elapsed_s += page_s / number
            now_s += elapsed_s
            self.pages += len(times)
            median = sorted(times)[len(times) // 2]
            rule.decide(Interval(len(times), median, engine="static"), ROOMY, now_s)


@settings(max_examples=25)
@given(
    capacity=st.integers(1, 20),
    noise=st.floats(0, 0.2),
    page_s=st.floats(0.2, 4),
    seed=st.integers(),
)
def test_it_converges_to_the_capacity_of_a_site_and_rests_there(
    capacity: int, noise: float, page_s: float, seed: int
) -> None:
    site = KneeSite(capacity, noise=noise, page_s=page_s, seed=seed)
    site.crawl(ConcurrencyRule(), 1_200)
    settled = site.numbers[len(site.numbers) // 3 :]
    reached = min(capacity, MOST)
    assert sum(settled) / len(settled) >= 0.6 * reached
    assert max(settled) <= max(START + 1, (CUT_FROM + 0.6) * capacity)
    changes = sum(a != b for a, b in itertools.pairwise(settled))
    assert changes / len(settled) < 0.15


@settings(max_examples=25)
@given(allowed=st.integers(1, 12), seed=st.integers())
def test_a_site_that_refuses_sees_few_refusals(allowed: int, seed: int) -> None:
    site = KneeSite(100, allowed=allowed, seed=seed)
    site.crawl(ConcurrencyRule(), 1_200)
    assert site.refusals / site.pages < 0.01
    settled = site.numbers[len(site.numbers) // 3 :]
    assert sum(settled) / len(settled) >= 0.75 * allowed


@pytest.mark.parametrize("slowdown", [RAISE_TO + 0.1, CUT_FROM - 0.05])
def test_pages_that_stay_somewhat_slower_test_the_number_after_a_while(slowdown: float) -> None:
    rule = ConcurrencyRule(start=8)
    rule.decide(Interval(20, 0.5, busy=0.5), ROOMY, 0.0)
    slow = Interval(20, (0.5 + 0.02) * slowdown - 0.02)
    reasons = [rule.decide(slow, ROOMY, float(at)) for at in range(1, 30)]
    assert reasons.index("slow") == 20
    assert rule.number > 6  # it was not the cause, and the number is free again
