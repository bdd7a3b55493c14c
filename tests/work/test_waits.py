"""A wait that a site requests is one event with host, seconds and reason."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.kinds.crawl.frontier import Pace
from engine.model.records import TaskEvent
from engine.text.words import Wait, wait_of, wait_words
from tests.support.memory_context import MemoryContext


class PassingTime(MemoryContext):
    """A context in which a pause takes its seconds, and no time."""

    def __init__(self) -> None:
        self.now_s = 100.0
        super().__init__(monotonic=lambda: self.now_s)

    async def pause(self, seconds: float) -> None:
        until = self.now_s + seconds
        await asyncio.sleep(0)
        self.now_s = max(self.now_s, until)


def told(ctx: MemoryContext) -> list[tuple[Any, Any, Any]]:
    facts = [data for phase, _, data in ctx.notes if phase == "wait"]
    return [(data["host"], data["seconds"], data["reason"]) for data in facts]


async def test_a_silence_is_told_of_once_however_many_pages_wait_for_its_end() -> None:
    ctx = PassingTime()
    pace = Pace(ctx, 0.1)
    await pace.turn("a.test")
    for more in (0.0, 0.2, 0.3):  # three answers that were under way
        pace.hold("a.test", 30 + more)
    await asyncio.gather(*(pace.turn("a.test") for _ in range(5)))
    assert told(ctx) == [("a.test", 30.3, "retry_after")]
    await pace.turn("a.test")
    pace.hold("a.test", 600)
    await pace.turn("a.test")
    assert told(ctx)[1:] == [("a.test", 60.0, "retry_after")], "a later one is another wait"


async def test_pages_that_wait_for_their_turns_heed_a_silence_that_comes_meanwhile() -> None:
    ctx = PassingTime()
    pace, asked = Pace(ctx, 1.0), []

    async def ask() -> None:
        await pace.turn("a.test")
        asked.append(ctx.now_s)
        if len(asked) == 1:
            pace.hold("a.test", 30)

    await pace.turn("a.test")
    await asyncio.gather(*(ask() for _ in range(4)))
    assert asked[0] == 101.0
    assert min(asked[1:]) >= 131.0
    assert told(ctx) == [("a.test", 29.0, "retry_after")]


async def test_a_short_silence_and_the_crawls_own_delay_are_not_told_of() -> None:
    ctx = PassingTime()
    pace = Pace(ctx, 20.0)
    for asked_s in (0.0, 5.0):
        await pace.turn("a.test", asked_s)
    pace = Pace(ctx, 0.0)
    pace.hold("a.test", 2.9)
    await pace.turn("a.test", 0.5)
    await pace.turn("a.test", 0.5)
    assert told(ctx) == []


async def test_a_delay_that_the_site_asks_for_is_told_of_once_for_each_host() -> None:
    ctx = PassingTime()
    pace = Pace(ctx, 0.1)
    await pace.turn("a.test", 10.0)
    assert told(ctx) == [], "nothing waits yet"
    for host in ("a.test", "a.test", "b.test", "b.test"):
        await pace.turn(host, 10.0)
    assert told(ctx) == [("a.test", 10.0, "crawl_delay"), ("b.test", 10.0, "crawl_delay")]


def event(**data: object) -> TaskEvent:
    return TaskEvent(1_000, "log", {"phase": "wait", "host": "a.test", "seconds": 30.0, **data})


def test_a_wait_holds_for_its_seconds_and_a_delay_to_the_end() -> None:
    wait, delay = wait_of(event(reason="retry_after")), wait_of(event(reason="crawl_delay"))
    assert wait is not None
    assert delay is not None
    assert [wait.holds(at) for at in (999, 1_000, 30_999, 31_000)] == [False, True, True, False]
    assert delay.holds(10**12)
    assert wait_words(wait) == "a.test asked to wait 30 s before it is asked again (Retry-After)."
    assert wait_words(Wait("a.test", 2.5, "crawl_delay")).startswith("a.test asks for 2.5 s")


@pytest.mark.parametrize(
    "strange",
    [
        {"reason": "mood"},
        {"reason": ["retry_after"]},
        {"host": 5},
        {"seconds": "30"},
        {"seconds": float("nan")},
        {"seconds": -1},
        {"seconds": 10**30},
        {"phase": "egress"},
    ],
)
def test_what_is_no_wait_is_not_taken_for_one(strange: dict[str, object]) -> None:
    assert wait_of(event(**{"reason": "retry_after", **strange})) is None
