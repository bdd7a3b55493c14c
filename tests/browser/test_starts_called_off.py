"""Closing a browser at any stage of its launch ends it before `close` returns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import psutil
import pytest

from engine.browser import direct
from engine.browser.chromium import browser_session as sessions
from engine.browser.chromium import driver as driving
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.chromium.driver import Driver, alive
from tests.browser.conftest import command

LIMIT_S = 60.0


@pytest.fixture(autouse=True)
def time_to_close(patience: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is ended at once needs longer for it on a machine that stands still meanwhile."""
    for room, limit in ((sessions, "CLOSE_S"), (driving, "CALL_OFF_S"), (driving, "SETTLE_S")):
        monkeypatch.setattr(room, limit, LIMIT_S)


def children() -> list[psutil.Process]:
    """Every living process below this one."""
    found = psutil.Process().children(recursive=True)
    return [one for one in found if alive(one)]


def drivers() -> list[psutil.Process]:
    return [one for one in children() if "run-driver" in command(one)]


def no_browser_yet(_: BrowserSession) -> bool:
    return True


def waits_for_its_turn(browser: BrowserSession) -> bool:
    return browser.status()[0] == "starting"


def process_runs(_: BrowserSession) -> bool:
    return bool(drivers())


def process_stands_still(_: BrowserSession) -> bool:
    for one in drivers():
        one.suspend()
    return bool(drivers())


def driver_answers(browser: BrowserSession) -> bool:
    return browser._driver is not None


def browser_runs(_: BrowserSession) -> bool:
    return any("--no-first-run" in command(one) for one in children())


def ready(browser: BrowserSession) -> bool:
    return browser.status()[0] == "ready"


STAGES = (
    no_browser_yet,
    waits_for_its_turn,
    process_runs,
    process_stands_still,
    driver_answers,
    browser_runs,
    ready,
)
STAGES_OF_A_PIPE = (no_browser_yet, waits_for_its_turn, browser_runs, ready)
Stage = Callable[[BrowserSession], bool]


async def come_to(stage: Stage, browser: BrowserSession) -> None:
    until = time.monotonic() + LIMIT_S
    while not stage(browser):
        assert time.monotonic() < until, f"it never came to {stage.__name__}"
        await asyncio.sleep(0.002)


async def gone(before: list[psutil.Process]) -> bool:
    """Has every process ended that was not there before? The system needs a moment for it."""
    until = time.monotonic() + LIMIT_S
    while any(one not in before for one in children()):
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.02)
    return True


@pytest.mark.skipif(not direct.AVAILABLE, reason="Playwright serves all crawls")
@pytest.mark.parametrize("cancelled", [True, False], ids=["cancelled", "not cancelled"])
@pytest.mark.parametrize("stage", STAGES_OF_A_PIPE, ids=lambda stage: stage.__name__)
async def test_a_close_at_any_stage_of_a_direct_launch_leaves_nothing(
    stage: Stage, cancelled: bool
) -> None:
    await expect_nothing_left(stage, cancelled)


@pytest.mark.usefixtures("through_playwright")
@pytest.mark.parametrize("cancelled", [True, False], ids=["cancelled", "not cancelled"])
@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.__name__)
async def test_a_close_at_any_launch_stage_leaves_nothing(stage: Stage, cancelled: bool) -> None:
    await expect_nothing_left(stage, cancelled)


async def expect_nothing_left(stage: Stage, cancelled: bool) -> None:
    processes, tasks = children(), asyncio.all_tasks()
    browser = BrowserSession()
    start = asyncio.create_task(browser.warm())
    start.add_done_callback(lambda one: one.cancelled() or one.exception())
    await come_to(stage, browser)
    if cancelled:
        start.cancel()
        await asyncio.wait({start})
    async with asyncio.timeout(2 * LIMIT_S):
        await browser.aclose()
    # At once, not some turns later: the loop may end with the close.
    assert asyncio.all_tasks() <= (tasks if cancelled else tasks | {start})
    assert await gone(processes)
    await asyncio.wait({start})


@pytest.mark.usefixtures("through_playwright")
async def test_a_browser_that_nobody_waits_for_any_more_is_taken_back() -> None:
    browser = BrowserSession()
    try:
        start = asyncio.create_task(browser.warm())
        await come_to(driver_answers, browser)
        await come_to(browser_runs, browser)
        start.cancel()
        await asyncio.wait({start})
        await come_to(lambda one: not browser_runs(one), browser)
        assert drivers()
        await browser.warm()
        assert browser_runs(browser)
    finally:
        await browser.aclose()


async def test_a_driver_called_off_ends_with_all_its_tasks_before_the_start_returns() -> None:
    tasks = asyncio.all_tasks()
    for turns in (0, 1, 2, 5, 10, 20, 50, 100):
        start = asyncio.create_task(Driver.start())
        for _ in range(turns):
            await asyncio.sleep(0.001)
        start.cancel()
        await asyncio.wait({start})
        if not start.cancelled():  # it was ready before the cancel reached it
            await start.result().stop(5)
        assert asyncio.all_tasks() <= tasks, f"after {turns} turns"


async def test_two_drivers_that_start_at_once_each_know_their_own_process() -> None:
    before = children()
    one, other = await asyncio.gather(Driver.start(), Driver.start())
    await one.stop(5)
    async with asyncio.timeout(LIMIT_S):
        while not await other.answers():  # within 2 s, which a crowded machine may take
            assert other.alive
    await other.stop(5)
    assert not other.alive
    assert await gone(before)


async def test_a_stop_that_was_called_off_is_made_good_by_the_next_one() -> None:
    tasks = asyncio.all_tasks()
    driver = await Driver.start()
    stop = asyncio.create_task(driver.stop(5))
    await asyncio.sleep(0)
    stop.cancel()
    await asyncio.wait({stop})
    await driver.stop(5)
    assert asyncio.all_tasks() <= tasks
    assert not driver.alive, "it was ended by the second one"
