"""A wait that a site requests is one event with host, seconds and reason."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kinds import host_delay
from engine.kinds.context import UnitStopped
from engine.kinds.host_delay import FEWEST_SWEPT, HostTurns, Pace
from engine.model.records import TaskEvent
from engine.sample.site import Answer
from engine.text.words import Wait, wait_of, wait_words
from tests.support.engines import opened, until
from tests.support.far_limits import FAR_S
from tests.support.line_files import whole_lines
from tests.support.memory_context import MemoryContext
from tests.support.serving import served


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


def now_at(ctx: PassingTime, *paces: Pace) -> list[Callable[[], Awaitable[float]]]:
    """Return for each crawl what waits for its turn at a.test and returns the time of it."""

    async def turn(pace: Pace) -> float:
        await pace.turn("a.test")
        return ctx.now_s

    return [partial(turn, pace) for pace in paces]


async def test_crawls_of_one_host_take_turns_by_the_shorter_of_their_delays() -> None:
    ctx, turns = PassingTime(), HostTurns()
    slow, fast, free = now_at(ctx, *(Pace(ctx, delay_s, turns) for delay_s in (10.0, 2.0, 0.0)))
    assert [await one() for one in (slow, fast, fast)] == [100.0, 102.0, 104.0]
    assert await slow() == 110.0, "the other one is no reason to wait longer"
    assert await fast() == 112.0
    assert await free() == 112.0, "a crawl without a delay does not wait for others"
    assert await fast() == 114.0, "nor others for it"


async def test_a_wait_for_other_crawls_is_told_of_once_a_minute() -> None:
    ctx, turns = PassingTime(), HostTurns()
    other = PassingTime()
    first, second = Pace(other, 5.0, turns), Pace(ctx, 5.0, turns)
    for _ in range(20):
        other.now_s = ctx.now_s
        await first.turn("a.test")
        await second.turn("a.test")
    assert told(ctx)[0] == ("a.test", 5.0, "other_tasks")
    assert len(told(ctx)) == pytest.approx((ctx.now_s - 100.0) / 60, abs=1)
    alone = PassingTime()
    pace = Pace(alone, 5.0, HostTurns())
    await asyncio.gather(*(pace.turn("a.test") for _ in range(3)))
    assert told(alone) == [], "its own delay is no news"


async def test_an_answer_that_asks_to_wait_holds_every_crawl_of_the_host() -> None:
    ctx, turns = PassingTime(), HostTurns()
    first, second = Pace(ctx, 0.0, turns), Pace(ctx, 0.0, turns)
    first.hold("a.test", 30)
    await second.turn("b.test")
    assert ctx.now_s == 100.0
    await second.turn("a.test")
    assert ctx.now_s == 130.0
    assert told(ctx) == [("a.test", 30.0, "retry_after")]


async def test_a_crawl_that_is_stopped_gives_its_turn_back() -> None:
    turns = HostTurns()
    first, second = object(), object()

    def reserve(owner: object, *, stops: bool = False) -> float:
        with suppress(UnitStopped), turns.reserve(owner, "a.test", 30.0, 100.0) as turn:
            if stops:
                raise UnitStopped
        return turn.at_s

    assert reserve(first) == 100.0
    assert reserve(first, stops=True) == 130.0
    assert reserve(second) == 130.0


async def test_a_page_that_waits_takes_a_turn_that_was_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_delay, "LOOK_S", 0.01)
    ctx, turns = MemoryContext(), HostTurns()
    pages = [Pace(ctx, 2 * FAR_S, turns).turn("a.test") for _ in range(2)]
    async with asyncio.timeout(FAR_S), asyncio.TaskGroup() as group:
        with suppress(UnitStopped), turns.reserve(turns, "a.test", 2 * FAR_S, ctx.monotonic()):
            waiting = [group.create_task(page) for page in pages]
            await asyncio.sleep(0.05)
            raise UnitStopped
        done, left = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert (len(done), len(left)) == (1, 1), "they are as far from each other as before"
        await asyncio.sleep(0.05)
        assert not any(one.done() for one in left)
        left.pop().cancel()


@given(
    st.lists(st.sampled_from([0.1, 0.3, 1.0, 2.5, 30.0]), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.floats(0, 3)), max_size=40),
)
def test_no_two_turns_are_closer_than_the_delays_allow(
    delays: list[float], asks: list[tuple[int, float]]
) -> None:
    turns, now_s = HostTurns(), 100.0
    reserved: list[tuple[float, int]] = []
    for number, passes_s in asks:
        owner, now_s = number % len(delays), now_s + passes_s
        with turns.reserve(owner, "a.test", delays[owner], now_s) as turn:
            reserved.append((turn.at_s, owner))
        assert turn.at_s >= now_s
        assert turn.others_s >= 0.0
    for (first_s, one), (second_s, other) in combinations(reserved, 2):
        least_s = min(delays[one], delays[other])
        assert abs(first_s - second_s) >= least_s - 1e-6


def test_hosts_without_turns_are_forgotten() -> None:
    turns = HostTurns()
    for number in range(10 * FEWEST_SWEPT):
        with turns.reserve(turns, f"{number}.test", 1.0, float(number)):
            pass
    assert len(turns) <= 2 * FEWEST_SWEPT


@pytest.mark.parametrize("kind", ["crawl", "crawl_sitemap"])
async def test_tasks_of_one_engine_keep_the_delay_of_a_host_together(home: Path, kind: str) -> None:
    args = {"engine": "static", "delay_ms": 600_000, "respect_robots": False}

    with served(lambda _: Answer(b"<a href=/1>1</a>")) as url:
        async with opened(home) as engine:
            first = await engine.requests.start("crawl", {"url": url, **args})
            pages = home / "tasks" / first.task_id / "pages.jsonl"
            await until(lambda: whole_lines(pages))
            second = await engine.requests.start(kind, {"url": url, **args})

            async def waits() -> list[Wait]:
                events = (await engine.tasks.events(second.task_id)).events
                return [one for one in map(wait_of, events) if one is not None]

            async with asyncio.timeout(FAR_S):
                while not (found := await waits()):
                    await asyncio.sleep(0.05)
            assert found[0].reason == "other_tasks"
            assert 300 < found[0].seconds <= 1_800
            for task in (first, second):
                await engine.commands.cancel(task.task_id)
                ended = await engine.tasks.wait(task.task_id, int(FAR_S * 1_000))
                assert ended.status == "CANCELLED"


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
