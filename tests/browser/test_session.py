"""One browser, its tabs, and everything that can happen to them: nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from engine.browser import direct
from engine.browser.chromium import browser_session as sessions
from engine.browser.chromium.browser_options import FetcherOptions
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.chromium.driver import alive
from engine.browser.page.crawl_tab import Tab
from engine.egress.egress_policy import Policy
from engine.model.errors import BrowserFailed, BrowserGone, BrowserMissing, PageError, ShuttingDown
from engine.pages.fetch import PageOptions
from fixtures.site.site import Site
from tests.browser.conftest import Made, Making, Pages, command
from tests.support.engines import until

pytestmark = pytest.mark.own_browser

REPOSITORY = Path(__file__).resolve().parents[2]


def below(pid: int) -> list[psutil.Process]:
    """The browser's processes, and the driver's, that run below `pid`."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def the_browser(pid: int) -> psutil.Process:
    """Chromium's main process below `pid`: the one that has a profile and no type."""
    return next(
        process
        for process in below(pid)
        if "--type=" not in (line := " ".join(command(process))) and "--user-data-dir=" in line
    )


async def gone(processes: list[psutil.Process], limit_s: float = 60.0) -> list[psutil.Process]:
    """What of `processes` still runs after `limit_s`; returns as soon as nothing does."""
    until = time.monotonic() + limit_s
    while True:
        left = [process for process in processes if alive(process)]
        if not left or time.monotonic() > until:
            return left
        await asyncio.sleep(0.05)


def target(made: Made) -> list[str]:
    """The ids of the tabs that wait for their next page."""
    return [tab.frame_id for tab in made.fetcher._crawl_context.free]


async def test_a_healthy_tab_is_used_again(browsing: Making, site: Site) -> None:
    async with browsing(site.url) as made:
        await made.fetcher.fetch(f"{site.url}/static/1", PageOptions())
        first = target(made)
        for number in (2, 3):
            await made.fetcher.fetch(f"{site.url}/js/{number}", PageOptions())
        assert target(made) == first
        assert len(first) == 1


async def test_no_more_tabs_are_open_than_asked_for(browsing: Making, site: Site) -> None:
    async with browsing(site.url, pages=2) as made:
        urls = [f"{site.url}/js/{number}" for number in range(1, 9)]
        await asyncio.gather(*(made.fetcher.fetch(url, PageOptions()) for url in urls))
        assert len(target(made)) == 2
        assert len(made.fetcher._crawl_context.context.pages) == 2


async def test_tabs_that_no_page_needs_any_more_are_closed(
    browsing: Making, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.browser.chromium.tab_pool.IDLE_S", 1_000.0)
    async with browsing(site.url, pages=4) as made:
        urls = [f"{site.url}/static/{number}" for number in range(1, 9)]
        await asyncio.gather(*(made.fetcher.fetch(url, PageOptions()) for url in urls))
        assert len(made.fetcher._crawl_context.context.pages) == 4
        await made.fetcher.fetch(f"{site.url}/static/9", PageOptions())
        assert len(made.fetcher._crawl_context.context.pages) == 4, "they may be needed again"
        last = target(made)[-1]
        monkeypatch.setattr("engine.browser.chromium.tab_pool.IDLE_S", 0.0)
        await made.fetcher.fetch(f"{site.url}/static/10", PageOptions())
        assert target(made) == [last]
        await until(lambda: len(made.fetcher._crawl_context.context.pages) == 1)


async def test_an_unused_tab_that_does_not_close_neither_delays_a_page_nor_ends_the_browser(
    browsing: Making, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with browsing(site.url, pages=2) as made:
        urls = [f"{site.url}/static/{number}" for number in range(1, 5)]
        await asyncio.gather(*(made.fetcher.fetch(url, PageOptions()) for url in urls))
        ends, closed = asyncio.Event(), []

        async def close(tab: Tab) -> bool:
            await ends.wait()
            closed.append(tab)
            return False

        monkeypatch.setattr(Tab, "close", close)
        monkeypatch.setattr("engine.browser.chromium.tab_pool.IDLE_S", 0.0)
        async with asyncio.timeout(60):
            await made.fetcher.fetch(f"{site.url}/static/5", PageOptions())
        ends.set()
        await until(lambda: closed)
        await made.fetcher.fetch(f"{site.url}/static/6", PageOptions())
        assert made.fetcher._crawl_context.lives
        assert len(closed) == 1


@pytest.mark.thorough("*/busy-script")
@pytest.mark.parametrize("path", ["/dialogs", "/hang", "/busy-script", "/files/archive.zip"])
async def test_a_spoiled_tab_is_thrown_away(browsing: Making, site: Site, path: str) -> None:
    async with browsing(site.url) as made:
        await made.fetcher.fetch(f"{site.url}/static/1", PageOptions())
        first = target(made)
        with contextlib.suppress(PageError, BrowserGone):
            await made.fetcher.fetch(site.url + path, PageOptions(timeout_ms=1_500))
        page = await made.fetcher.fetch(f"{site.url}/static/2", PageOptions())
        assert page.title == "Field notes 2"
        assert target(made) != first
        assert len(made.fetcher._crawl_context.context.pages) == 1


async def test_dialogs_do_not_hold_a_page_up(browsing: Making, site: Site) -> None:
    async with browsing(site.url) as made:
        page = await made.fetcher.fetch(f"{site.url}/dialogs", PageOptions())
        assert page.settled
        assert page.title == "Dialogs"


async def test_windows_that_a_page_opens_do_not_stay(browsing: Making, site: Site) -> None:
    async with browsing(site.url) as made:
        await made.fetcher.fetch(f"{site.url}/popup", PageOptions())
        await made.fetcher.fetch(f"{site.url}/static/1", PageOptions())
        # Playwright tells of a window, and of its end, when it comes to it.
        await until(lambda: len(made.fetcher._crawl_context.context.pages) == 1)
        assert len(made.fetcher._crawl_context.context.browser.contexts) == 1


@pytest.mark.case("R72")
async def test_the_next_page_works_after_a_renderer_crash(browsing: Making, pages: Pages) -> None:
    pages["/ok"] = "<p>fine</p>"
    pages["/"] = "<script>addEventListener('load', () => fetch('/up'))</script>"
    async with browsing(pages.url) as made:
        await made.fetcher.fetch(f"{pages.url}/ok", PageOptions())
        waiting = asyncio.ensure_future(
            made.fetcher.fetch(pages.url, PageOptions(wait_for=".never", timeout_ms=1_000_000))
        )
        while not pages.hits["/up"]:
            await asyncio.sleep(0.01)
        for process in below(os.getpid()):
            if "--type=renderer" in " ".join(command(process)):
                process.kill()
        with pytest.raises(PageError, match="the page crashed"):
            await waiting  # not until the page's own limit, which is beyond this test's
        page = await made.fetcher.fetch(f"{pages.url}/ok", PageOptions())
        assert page.text == "fine"


@pytest.mark.case("R73")
async def test_a_browser_that_dies_with_pages_is_restarted(browsing: Making, site: Site) -> None:
    async with browsing(site.url, pages=2) as made:
        await made.fetcher.fetch(f"{site.url}/static/1", PageOptions())
        waiting = [
            asyncio.ensure_future(made.fetcher.fetch(f"{site.url}/hang?{number}", PageOptions()))
            for number in range(2)
        ]
        while site.hits["/hang"] < 2:
            await asyncio.sleep(0.01)
        the_browser(os.getpid()).kill()
        for result in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(result, BrowserGone)
        page = await made.fetcher.fetch(f"{site.url}/static/2", PageOptions())
        assert page.title == "Field notes 2"
        assert made.session.starts == 2
        assert made.session.status()[0] == "ready"


@pytest.mark.case("R73")
async def test_a_driver_that_dies_is_started_again(browsing: Making, site: Site) -> None:
    async with browsing(site.url) as made:
        await made.fetcher.fetch(f"{site.url}/static/1", PageOptions())
        driver = next(p for p in below(os.getpid()) if "run-driver" in command(p))
        tree = [driver, *driver.children(recursive=True)]
        driver.kill()
        assert not await gone(tree)
        for _ in range(2):
            try:
                page = await made.fetcher.fetch(f"{site.url}/static/2", PageOptions())
            except BrowserGone:
                continue
            break
        assert page.title == "Field notes 2"


@pytest.mark.case("R78")
async def test_closing_leaves_no_process_behind_even_with_a_page_in_flight(site: Site) -> None:
    session = BrowserSession(os.environ.get("OC_BROWSER"))
    options = FetcherOptions(policy=Policy.for_start(site.url))
    async with session.fetcher(options) as fetcher:
        endless = PageOptions(timeout_ms=1_000_000)
        waiting = asyncio.ensure_future(fetcher.fetch(f"{site.url}/busy-script", endless))
        while not site.hits["/busy-script"]:
            await asyncio.sleep(0.01)
        processes = below(os.getpid())
        assert len(processes) > 2
        await session.aclose()  # does not wait for the page
        with pytest.raises((BrowserGone, PageError, ShuttingDown)):
            await waiting
    assert not await gone(processes)
    assert session.status()[0] == "idle"
    with pytest.raises(ShuttingDown):
        await session.warm()


@pytest.mark.usefixtures("through_playwright")
async def test_playwrights_switches_are_passed_to_the_browser(browsing: Making, site: Site) -> None:
    async with browsing(site.url) as made:
        await made.session.warm()
        line = the_browser(os.getpid()).cmdline()
        for switch in ("--disable-features=", "--blink-settings="):
            given = [
                set(word.removeprefix(switch).split(","))
                for word in line
                if word.startswith(switch)
            ]
            assert len(given) == 2
            assert given[0] <= given[1], "the last one wins: it must repeat the first"
        assert sum(word.startswith("--enable-features=") for word in line) == 1
        if hasattr(os, "geteuid") and os.geteuid() != 0:
            assert "--no-sandbox" not in line


async def test_nothing_starts_before_it_is_needed(site: Site) -> None:
    before = set(below(os.getpid()))  # what an earlier test has ended may still be there
    session = BrowserSession()
    async with session.fetcher(FetcherOptions(policy=Policy.for_start(site.url))):
        assert session.status() == ("idle", "", "")
        assert set(below(os.getpid())) <= before
    await session.aclose()


@pytest.mark.parametrize("module", ["browser.chromium.browser_session", "service.engine", "verbs"])
def test_the_module_can_be_imported_without_playwright(module: str) -> None:
    code = f"import sys, engine.{module}; sys.exit('playwright' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False).returncode == 0


@pytest.mark.case("R80")
async def test_a_wrong_path_is_a_sentence_with_the_way_out(tmp_path: Path) -> None:
    session = BrowserSession(str(tmp_path / "chrome"))
    with pytest.raises(BrowserMissing) as missing:
        await session.warm()
    assert str(missing.value).endswith("chrome is not a program that can be run.")
    assert "OC_BROWSER" in missing.value.advice
    assert session.status()[0] == "missing"
    await session.aclose()


@pytest.mark.skipif(sys.platform == "win32", reason="the program is a shell script")
@pytest.mark.case("R80")
async def test_a_launch_has_three_attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "FAILED_FOR_S", 1_000.0)  # all of them ask within that time
    program = tmp_path / "chrome"
    program.write_text(f"#!/bin/sh\necho x >> {tmp_path}/tries\necho broken library >&2\nexit 7\n")
    program.chmod(0o755)
    session = BrowserSession(str(program))
    answers = await asyncio.gather(*(session.warm() for _ in range(5)), return_exceptions=True)
    assert {type(answer) for answer in answers} == {BrowserFailed}
    assert str(answers[0]) == (
        f"Chromium could not be started: {program}: it ended at once (exit code 7); broken library"
    )
    most = 4 if direct.AVAILABLE else 3  # over the pipe once, before Playwright
    assert (tmp_path / "tries").read_text().count("x") == most
    assert session.status()[0] == "failed"
    processes = below(os.getpid())
    await session.aclose()
    assert not await gone(processes)


@pytest.mark.case("R79")
async def test_kill_9_of_our_process_takes_the_browser_with_it(site: Site) -> None:
    code = """
        import asyncio, sys
        from engine.egress.egress_policy import Policy
        from engine.browser.chromium.browser_session import BrowserSession, FetcherOptions
        from engine.pages.fetch import PageOptions

        async def main(url):
            session = BrowserSession()
            async with session.fetcher(FetcherOptions(policy=Policy.for_start(url))) as fetcher:
                await fetcher.fetch(url + "/static/1", PageOptions())
                await fetcher.fetch(url + "/hang", PageOptions(timeout_ms=60_000))

        asyncio.run(main(sys.argv[1]))
    """
    words = [sys.executable, "-c", textwrap.dedent(code), site.url]
    child = subprocess.Popen(words, cwd=REPOSITORY)
    try:
        while not site.hits["/hang"]:
            assert child.poll() is None
            await asyncio.sleep(0.05)
        processes = below(child.pid)
        names = " ".join(" ".join(command(process)) for process in processes)
        assert "run-driver" in names
        assert "--type=renderer" in names
    finally:
        child.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        child.wait(60)
    assert not await gone(processes)
