"""Browsers without work end after a while, and start again with the next task."""

from __future__ import annotations

import asyncio

import pytest

from engine.browser.chromium.browser_options import FetcherOptions, InstanceOptions, Limits
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.chromium.driver import alive
from engine.egress.egress_policy import Policy
from engine.pages.fetch import PageOptions
from tests.supervision.conftest import Place, Running, browsers, processes, until

SHORT = Limits(look_s=0.02, idle_s=0.5)


@pytest.mark.usefixtures("patience")
async def test_a_browser_without_work_ends_with_its_driver_and_starts_again_when_needed(
    place: Place, browser: Running
) -> None:
    place.pages = {"/": "<p>fine</p>"}
    async with browser(SHORT) as session:
        for _ in range(2):
            await _used_and_ended(session, place)
        assert session.starts == 2
        state, _, reason = session.status()
        assert (state, "had no work" in reason) == ("idle", True)


@pytest.mark.usefixtures("patience")
async def test_a_browser_that_crashed_is_not_told_as_one_without_work(
    place: Place, browser: Running
) -> None:
    place.pages = {"/": "<p>fine</p>"}
    async with browser(SHORT) as session:
        options = FetcherOptions(policy=Policy.for_start(place.url), pages=1)
        async with session.fetcher(options) as fetcher:
            await fetcher.fetch(place.url, PageOptions(timeout_ms=100_000))
            (used,) = browsers()
            used.kill()
            async with asyncio.timeout(60):
                while session.status()[0] != "idle":
                    await asyncio.sleep(0.005)
        assert session.status()[2].startswith("the browser stopped")
        await asyncio.sleep(1.5)  # longer than the limit of browsers without work
        assert session.status()[2].startswith("the browser stopped")


@pytest.mark.usefixtures("patience")
async def test_a_browser_that_another_replaces_is_not_told_as_one_without_work(
    place: Place, browser: Running
) -> None:
    place.pages = {"/": "<p>fine</p>"}
    async with browser() as session:
        options = FetcherOptions(policy=Policy.for_start(place.url), pages=1)
        async with session.fetcher(options) as fetcher:
            await fetcher.fetch(place.url, PageOptions(timeout_ms=100_000))
            session.use(None)
            assert "no work" not in session.status()[2]


async def _used_and_ended(session: BrowserSession, place: Place) -> None:
    options = FetcherOptions(policy=Policy.for_start(place.url), pages=1)
    async with session.fetcher(options) as fetcher:
        fetched = await fetcher.fetch(place.url, PageOptions(timeout_ms=100_000))
        assert fetched.text == "fine"
        (used,) = browsers()
    assert await asyncio.to_thread(until, lambda: not alive(used))
    assert await asyncio.to_thread(until, lambda: not processes("run-driver"))


@pytest.mark.usefixtures("patience")
async def test_a_browser_with_an_open_page_stays_beyond_the_limit(browser: Running) -> None:
    async with browser(SHORT) as session:
        given = InstanceOptions(policy=Policy(None, ()))
        async with session.instance(given) as instance:
            page = await instance.page()
            await asyncio.sleep(1.5)  # longer than the limit: nothing else tells that it stays
            assert await page.evaluate("1 + 1") == 2
        assert session.starts == 1


@pytest.mark.usefixtures("patience")
async def test_the_driver_stays_while_another_browser_uses_it(browser: Running) -> None:
    given = InstanceOptions(policy=Policy(None, ()))
    async with browser(SHORT) as session, session.instance(given) as kept:
        page = await kept.page()
        async with session.instance(InstanceOptions(policy=Policy(None, ()), windows=True)):
            assert _running(session) == 2
        assert await asyncio.to_thread(until, lambda: _running(session) == 1)
        assert await page.evaluate("1 + 1") == 2


def _running(session: BrowserSession) -> int:
    return sum(one.alive for one in session._running.values())


@pytest.mark.usefixtures("patience")
async def test_a_close_of_the_engine_ends_a_browser_that_is_just_ending(browser: Running) -> None:
    async with browser(SHORT) as session:
        async with session.instance(InstanceOptions(policy=Policy(None, ()))):
            (first,) = browsers()
        async with asyncio.timeout(60):
            while _running(session):
                await asyncio.sleep(0.005)
    assert await asyncio.to_thread(until, lambda: not alive(first))
    assert await asyncio.to_thread(until, lambda: not processes("run-driver"))
