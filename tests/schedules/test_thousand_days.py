"""A thousand days with sleep, summer time, a clock that is set, two programs and kills.

The files are real, the clock is not. Every occurrence of the rule is run once, or is covered by
exactly one skip whose reason is true.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from engine.schedules.rules import Rule, next_after
from engine.schedules.schedule import MINUTE_MS, Claim, Decision, Schedule, StoredRequest
from engine.schedules.schedule_store import ScheduleStore

DAYS = 1_000
DAY_MS, HOUR_MS = 86_400_000, 3_600_000
START_MS = 1_735_689_600_000  # 2025: the days until 2027 change the clock five times
LOOK_MS = 20_000
BERLIN = ZoneInfo("Europe/Berlin")

RULES = {
    "interval": Rule(every_minutes=23 * 60, start_at=START_MS),
    "time of day in the hour that changes": Rule(daily_at="02:30", zone="Europe/Berlin"),
    "cron line": Rule(cron="15 7,19 * * 1-5", zone="America/New_York"),
}


@dataclass
class World:
    """Two programs on one machine: its clock, its tasks, and what was decided."""

    chance: random.Random
    store: ScheduleStore
    schedule: Schedule
    now_ms: int = START_MS  # the time that really passes
    set_by_ms: int = 0
    tasks: dict[str, int] = field(default_factory=dict)  # when each ends, by the true time
    started: list[Claim] = field(default_factory=list)
    decided: list[tuple[int, Decision]] = field(default_factory=list)
    kills: int = 0

    @property
    def wall_ms(self) -> int:
        return self.now_ms + self.set_by_ms

    def is_going(self, task_id: str) -> bool:
        return self.tasks.get(task_id, 0) > self.now_ms

    def look(self) -> None:
        """One program looks for what is due; it may be killed after each step."""
        before = self.store.read(self.schedule.schedule_id)
        found, decision = self.store.claim_due(before.schedule_id, self.wall_ms, self.is_going)
        assert found.after >= before.after
        if decision is None:
            return
        if before.pending is None or decision.skip is not None:
            self.decided.append((before.after, decision))
        if decision.claim is None:
            self.check_reason(before, decision)
        if decision.claim is None or self.is_killed():
            return
        if decision.claim.task_id not in self.tasks:  # as an exclusive mkdir
            lasts_ms = self.chance.choice((5, 20, 90, 700)) * MINUTE_MS
            killed = self.is_killed()
            self.tasks[decision.claim.task_id] = self.now_ms + (0 if killed else lasts_ms)
            self.started.append(decision.claim)
            if killed:
                return
        self.store.confirm(found.schedule_id, decision.claim.task_id)

    def check_reason(self, before: Schedule, decision: Decision) -> None:
        """Nothing runs only while the last run goes on, or too late under the rule to skip."""
        assert decision.skip is not None
        if decision.skip.why == "running":
            assert before.claim is not None
            assert self.is_going(before.claim.task_id)
        else:
            assert before.missed == "skip"
            assert self.wall_ms - decision.skip.due_at > before.grace_minutes * MINUTE_MS

    def is_killed(self) -> bool:
        killed = self.chance.random() < 0.05
        self.kills += killed
        return killed

    def pass_time(self) -> None:
        """Go on to the next look that can decide something, with sleeps and a set clock."""
        event = self.chance.random()
        if event < 0.03:
            self.now_ms += self.chance.randrange(10 * DAY_MS)  # asleep, or both programs closed
        elif event < 0.05:
            self.set_by_ms += self.chance.choice((-1, 1)) * self.chance.randrange(2 * DAY_MS)
        else:
            # The time of a `Schedule` that is set back can lie far behind what is decided.
            next_at = self.store.read(self.schedule.schedule_id).next_at(self.wall_ms)
            assert next_at is not None
            away_ms = min(next_at - self.wall_ms, DAY_MS)
            self.now_ms += max(0, away_ms) + self.chance.randrange(LOOK_MS)


@pytest.mark.thorough("*skip")
@pytest.mark.parametrize("missed", ["once", "skip"])
@pytest.mark.parametrize("name", RULES)
def test_no_run_comes_twice_and_none_is_lost_but_by_the_rule(
    name: str, missed: str, tmp_path: Path
) -> None:
    rule, store = RULES[name], ScheduleStore(tmp_path)
    request = StoredRequest({"kind": "crawl", "args": {"url": "https://example.com/"}})
    schedule = Schedule("", request, rule, missed=missed, after=START_MS)  # type: ignore[arg-type]
    world = World(random.Random(f"{name} {missed}"), store, store.create(schedule))
    while world.now_ms < START_MS + DAYS * DAY_MS:
        world.pass_time()
        looks = 1 + (world.chance.random() < 0.5)  # the second program looks, too
        for _ in range(looks):
            world.look()
    ids = [claim.task_id for claim in world.started]
    assert len(set(ids)) == len(ids)
    dues = [claim.due_at for claim in world.started]
    assert dues == sorted(set(dues), key=lambda due: due or 0)
    assert_all_is_accounted_for(world, rule)
    assert world.kills > 10
    assert len(dues) > 100


def assert_all_is_accounted_for(world: World, rule: Rule) -> None:
    """Every occurrence belongs to one decision, and each decision has the number that it says."""
    due = occurrences(rule)
    at, upcoming = START_MS, next(due)
    runs = {claim.due_at for claim in world.started}
    pending = world.store.read(world.schedule.schedule_id).pending
    for after, decision in world.decided:
        assert after == at
        inside = list[int]()
        while upcoming <= decision.after:
            inside.append(upcoming)
            upcoming = next(due)
        assert inside
        assert decision.after == inside[-1]
        claim, skip = decision.claim, decision.skip
        ran = [one for one in inside if one in runs]
        waits = claim is not None and claim == pending
        if claim is not None and not waits and claim.due_at in inside:
            assert ran == [claim.due_at]  # with "once" the latest of all that were missed
        assert len(inside) == len(ran) + (skip.number if skip else 0) + waits
        at = decision.after


def occurrences(rule: Rule) -> Iterator[int]:
    """Occurrences by other means than the rule's own where that is simple."""
    if rule.every_minutes is not None:
        at_ms = START_MS
        while True:
            at_ms += rule.every_minutes * MINUTE_MS
            yield at_ms
    if rule.daily_at is None:
        found = next_after(rule, START_MS)
        while found is not None:
            yield found
            found = next_after(rule, found)
    day = datetime.fromtimestamp(START_MS / 1000, BERLIN).replace(hour=2, minute=30, tzinfo=None)
    while True:
        at_ms = int(day.replace(tzinfo=BERLIN).timestamp()) * 1000
        skipped = datetime.fromtimestamp(at_ms / 1000, BERLIN).replace(tzinfo=None) != day
        if skipped:  # 02:30 does not exist on this day: 03:00 is the next that does
            at_ms = int(day.replace(hour=3, minute=0, tzinfo=BERLIN).timestamp()) * 1000
        if at_ms > START_MS:
            yield at_ms
        day += timedelta(days=1)
