"""Browsers, renderers and drivers that die or hang under a crawl: every page once, none lost."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from engine.browser.chromium.browser_options import BrowserVariant, FetcherOptions, Limits
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.chromium.driver import alive
from engine.egress.egress_policy import Policy
from engine.model.errors import BrowserGone
from engine.pages.fetch import PageOptions
from tests.hard.kill_browser import crawl_under_fire, kill_browser, kill_driver, kill_renderer
from tests.supervision.conftest import (
    Place,
    Running,
    browsers,
    crawled,
    processes,
    renderers,
    until,
)
from tests.support.far_limits import be_patient

no_stop = pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be stopped there")


@pytest.mark.case("R72")
@pytest.mark.usefixtures("patience")
async def test_a_crashed_page_is_loaded_again(home: Path, place: Place, browser: Running) -> None:
    paths = [f"/{number}" for number in range(1, 10)]
    place.pages = {path: f"<p>{path}</p>" for path in paths}
    place.pages["/"] = place.links(*paths)
    for path in ("/3", "/6"):
        place.acts[path] = partial(die_once, place, path)
    async with browser() as session:
        kept = await crawled(session, home, place.url)
        assert session.starts == 1
    assert [path for path, page in kept.items() if "error" in page] == []
    assert kept.keys() == place.pages.keys()
    assert {place.hits["/3"], place.hits["/6"]} == {2}


@pytest.mark.case("R72")
@pytest.mark.usefixtures("patience")
async def test_a_crashing_page_fails_alone(home: Path, place: Place, browser: Running) -> None:
    place.pages = {"/": place.links("/deadly", "/fine"), "/fine": "fine"}
    place.pages["/deadly"] = "<script>fetch('/kill')</script>"  # by then it holds the page
    place.acts["/kill"] = kill_renderers
    async with browser() as session:
        kept = await crawled(session, home, place.url)
    assert kept["/deadly"]["error"] == "the page crashed twice"
    assert "error" not in kept["/fine"]
    assert place.hits["/deadly"] == 2


@pytest.mark.case("R73")
@pytest.mark.usefixtures("patience")
async def test_a_browser_crash_fails_one_page(home: Path, place: Place, browser: Running) -> None:
    paths = [f"/{number}" for number in range(1, 7)]
    place.pages = {path: f"<p>{path}</p>" for path in paths} | {"/deadly": "x"}
    place.pages["/"] = place.links("/deadly", *paths)
    # The others are under way when it happens: once that is nobody's fault but the deadly one's.
    place.acts["/deadly"] = kill_browser
    async with browser() as session:
        kept = await crawled(session, home, place.url, concurrency=3)
        assert session.starts in (2, 3), "the last of them may leave nothing to start one for"
    assert {path: page["error"] for path, page in kept.items() if "error" in page} == {
        "/deadly": "crashed the browser twice"
    }
    assert kept.keys() == place.pages.keys()


@pytest.mark.case("R73")
@pytest.mark.usefixtures("patience")
async def test_a_driver_that_dies_in_the_middle_costs_no_page_and_doubles_none(home: Path) -> None:
    # Once: a page that was set apart for the first death would be to blame for a second one.
    told = await crawl_under_fire(home, pages=16, every=9, kill=kill_driver)
    assert told["kills"] >= 1
    assert (told["status"], told["pages"]) == ("COMPLETED", 16)
    assert (told["doubled"], told["failed"]) == (0, 0)


@no_stop
@pytest.mark.case("R73")
@pytest.mark.parametrize("what", ["browser", "driver"])
async def test_hung_browsers_are_replaced(
    place: Place, browser: Running, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.pages = {"/": "<p>fine</p>", "/next": "<p>next</p>"}
    async with browser(Limits(look_s=0.1)) as session:
        options = FetcherOptions(policy=Policy.for_start(place.url), pages=1)
        async with session.fetcher(options) as fetcher:
            with monkeypatch.context() as at_first:
                be_patient(at_first)  # nothing hangs yet
                await fetcher.fetch(place.url, PageOptions(timeout_ms=100_000))
            stopped = (browsers() if what == "browser" else processes("run-driver"))[0]
            family = [stopped, *stopped.children(recursive=True)]
            stopped.send_signal(signal.SIGSTOP)
            with pytest.raises(BrowserGone):
                await fetcher.fetch(f"{place.url}/next", PageOptions(timeout_ms=500))
            be_patient(monkeypatch)  # the fresh ones may be slow, and do not hang
            monkeypatch.setattr("engine.browser.chromium.driver.ANSWER_S", 2.0)  # the old one does
            fetched = await fetcher.fetch(f"{place.url}/next", PageOptions(timeout_ms=100_000))
            assert fetched.text == "next"
            assert await asyncio.to_thread(until, lambda: not any(map(alive, family)))
            assert session.starts == 2


@pytest.mark.case("R73")
@pytest.mark.usefixtures("patience")
async def test_a_paused_browser_only_delays_its_page(place: Place, browser: Running) -> None:
    if sys.platform == "win32":
        pytest.skip("a process cannot be stopped there")
    place.pages = {"/": "<p>fine</p>"}
    async with browser() as session:
        options = FetcherOptions(policy=Policy.for_start(place.url), pages=1)
        async with session.fetcher(options) as fetcher:
            await fetcher.fetch(place.url, PageOptions())
            (stopped,) = browsers()
            stopped.send_signal(signal.SIGSTOP)
            goes_on = threading.Timer(0.5, lambda: os.kill(stopped.pid, signal.SIGCONT))
            goes_on.start()
            late = PageOptions(timeout_ms=100_000)
            assert (await fetcher.fetch(place.url, late)).text == "fine"
            goes_on.join()
            assert session.starts == 1


# Held back by the page itself: the site has one thread, which must answer others meanwhile.
LATE = """<script>const ask = async () => {
    const told = await (await fetch('/may-end')).text();
    if (told.includes('yes')) document.body.innerHTML = '<p id=late>late</p>';
    else setTimeout(ask, 50);
}; ask()</script>"""


@pytest.mark.usefixtures("patience")
async def test_recycling_lets_old_pages_finish(place: Place, browser: Running) -> None:
    place.pages = {"/": "<p>fine</p>", "/late": LATE, "/may-end": "no"}
    late_options = PageOptions(wait_for="#late", timeout_ms=100_000)
    limits = Limits(browser_pages=2, driver_pages=2, look_s=0.05)
    async with browser(limits) as session:
        options = FetcherOptions(policy=Policy.for_start(place.url), pages=2)
        async with session.fetcher(options) as fetcher:
            await fetcher.fetch(place.url, PageOptions())
            (first,) = browsers()
            late = asyncio.ensure_future(fetcher.fetch(f"{place.url}/late", late_options))
            await turned_worn(session)
            await fetcher.fetch(place.url, PageOptions())
            assert session.starts == 2
            assert first.is_running()
            place.pages["/may-end"] = "yes"
            assert (await late).text == "late"
            assert place.hits["/late"] == 1
            await fetcher.fetch(place.url, PageOptions())
            assert await asyncio.to_thread(until, lambda: not alive(first))
            drivers = lambda: len(processes("run-driver")) == 1  # noqa: E731
            assert await asyncio.to_thread(until, drivers)


async def turned_worn(session: BrowserSession) -> None:
    async with asyncio.timeout(60):
        while not all(one.worn for one in session._running.values()):
            await asyncio.sleep(0.02)


@pytest.mark.usefixtures("patience")
async def test_a_worn_browser_goes_on_where_no_fresh_one_can_be_had(
    place: Place, browser: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.pages = {"/": "<p>fine</p>"}
    async with browser(Limits(browser_pages=1, look_s=0.05)) as session:
        options = FetcherOptions(policy=Policy.for_start(place.url), pages=1)
        async with session.fetcher(options) as fetcher:
            await fetcher.fetch(place.url, PageOptions())
            await turned_worn(session)
            monkeypatch.setattr(session, "_path", "/nowhere/chrome")
            assert (await fetcher.fetch(place.url, PageOptions())).text == "fine"
        assert session.starts == 1


@pytest.mark.parametrize(
    "flood",
    [
        "let n = 0; setInterval(() => {"
        " for (let i = 0; i < 20; i++) history.replaceState(0, '', `/${n++}`) }, 5); 0",
        "setTimeout(() => { for (;;) console.log('x'.repeat(1000)) }, 0); 0",
    ],
    ids=["history", "console"],
)
async def test_flooding_ends_with_its_page(place: Place, browser: Running, flood: str) -> None:
    from engine.browser.chromium.browser_options import InstanceOptions

    place.pages = {"/": "<p>fine</p>"}
    async with browser() as session:
        instance = await session.open_instance(InstanceOptions(Policy.for_start(place.url)))
        page = await instance.page()
        await page.goto(place.url)
        flooding = renderers()
        await page.evaluate(flood)
        await asyncio.sleep(0.5)  # the flood itself, nothing is waited for here
        await instance.close()
        assert await asyncio.to_thread(until, lambda: not any(map(alive, flooding)))


def kill_renderers() -> None:
    """Also those of tabs that are free: which of them holds the page is not known here."""
    for one in renderers():
        one.kill()


def die_once(place: Place, path: str) -> None:
    if place.hits[path] <= 1:
        kill_renderer()


@pytest.mark.thorough
@no_stop
async def test_a_driver_that_stands_still_leaves_no_profile_in_the_temp_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, browser: Running
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # read by the driver
    async with browser() as session:
        await session._chromium(BrowserVariant(lean=True))
        (driver,) = processes("run-driver")
        assert list(tmp_path.glob("*profile*"))
        driver.suspend()
    assert not list(tmp_path.glob("*profile*"))
