"""Work beside a block: its errors are logged, and end neither the block nor the next round."""

from __future__ import annotations

import asyncio

import pytest

from engine.cluster import background
from engine.cluster.background import Tasks, beside, rounds


async def test_a_round_that_fails_is_logged_and_the_next_one_follows(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "PAUSE_S", 0.0)
    calls = 0
    third = asyncio.Event()

    async def look() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            third.set()
            await asyncio.Event().wait()
        raise OSError(11, "Resource temporarily unavailable")

    async with beside(rounds(look)):
        await third.wait()
    assert caplog.text.count("Work in the background failed") == 2


async def test_an_error_beside_a_block_does_not_end_it(caplog: pytest.LogCaptureFixture) -> None:
    async def breaks() -> None:
        raise OverflowError("too far")

    async with beside(breaks()):
        await asyncio.sleep(0)
    assert "too far" in caplog.text


async def test_an_error_of_the_block_stays_what_it_is() -> None:
    with pytest.raises(KeyError):
        async with beside(asyncio.sleep(3_600)):
            raise KeyError


async def test_tasks_end_with_their_owner_and_leave_their_key() -> None:
    tasks, ended = Tasks(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(3_600)
        finally:
            ended.set()

    tasks.begin("a", work())
    await asyncio.sleep(0)
    assert "a" in tasks
    await tasks.end()
    assert ended.is_set()
    assert "a" not in tasks
