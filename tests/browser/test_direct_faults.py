"""What a direct connection to the browser survives: cancelling, odd messages, hung browsers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from playwright.async_api import Error

from engine.browser.chromium import launch
from engine.browser.chromium.browser_options import BrowserVariant, FetcherOptions
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.chromium.locate import locate
from engine.browser.direct import devtools_connection, process, pushed
from engine.browser.direct.devtools_connection import Connection
from engine.browser.direct.direct_browser import DirectBrowser, DirectContext
from engine.browser.page import extraction_options
from engine.browser.page.failures import PageTooLarge
from engine.egress.egress_policy import Policy
from engine.egress.proxy import Proxy
from engine.kinds.crawl.browser_connection import WHY_PROXY, is_direct
from engine.kinds.crawl.crawl_kind import with_secrets
from engine.kinds.spec import Tools
from engine.model.config import Settings
from engine.model.errors import InvalidArguments, PageError
from engine.model.proxies import DefaultProxy
from engine.pages.fetch import PageOptions
from engine.sample.site import Answer
from engine.service.admission import admit
from tests.browser.conftest import Making, Pages, command
from tests.browser.test_direct import both, crawled
from tests.support import engines
from tests.support.processes import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Playwright serves all crawls")
LEAN = BrowserVariant(lean=True, direct=True)


def children(sign: str) -> list[psutil.Process]:
    found = psutil.Process().children(recursive=True)
    return [one for one in found if sign in " ".join(command(one))]


@asynccontextmanager
async def started() -> AsyncIterator[launch.Chromium]:
    """A browser as a crawl starts it."""
    proxy = Proxy()
    found = locate(os.environ.get("OC_BROWSER"), headless=True)
    chromium = await launch.launch(None, found, proxy, LEAN)
    try:
        yield chromium
    finally:
        await chromium.kill()
        await proxy.close()


def direct(chromium: launch.Chromium) -> DirectBrowser:
    browser: Any = chromium.browser
    assert isinstance(browser, DirectBrowser)
    return browser


async def context_of(chromium: launch.Chromium) -> DirectContext:
    listener = await chromium.proxy.blocking_listener()
    told = {"server": listener.server, "bypass": listener.bypass}
    return await direct(chromium).new_context(
        proxy=told, service_workers="block", accept_downloads=False
    )


async def tabs_of(browser: DirectBrowser) -> list[str]:
    told = await browser.root.send("Target.getTargets")
    return [one["targetId"] for one in told["targetInfos"] if one["type"] == "page"]


async def soon(condition: Any) -> None:
    async with asyncio.timeout(90):
        while not await condition():
            await asyncio.sleep(0.02)  # the browser sends no event for it


@pytest.mark.own_browser
async def test_a_task_that_is_cancelled_while_it_opens_a_tab_leaves_none() -> None:
    async with started() as chromium:
        browser, context = direct(chromium), await context_of(chromium)
        for delay_s in (0, 0, 0.002, 0.005, 0.01, 0.02, 0.04):
            opening = asyncio.create_task(context.new_page())
            await asyncio.sleep(delay_s)
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
        page = await context.new_page()

        async def one_is_left() -> bool:
            return await tabs_of(browser) == [page.target_id]

        await soon(one_is_left)
        assert browser.is_connected()
        assert not context._attached
        assert not context._opening


class Wire(asyncio.Transport):
    """The other end of a pipe; `connection` gets what a test says."""

    def __init__(self, made: Connection) -> None:
        super().__init__()
        self.made, self.sent = made, b""
        made.connection_made(self)

    def write(self, data: Any) -> None:
        self.sent += data

    def says(self, text: str) -> None:
        self.made.data_received(text.encode() + b"\0")


def wired() -> Wire:
    return Wire(Connection(lambda: None))


DEEP = "[" * 50_000 + "]" * 50_000


async def test_an_answer_that_cannot_be_decoded_fails_its_command_alone() -> None:
    wire = wired()
    first, second = [wire.made.root.begin(f"X.{number}") for number in range(2)]
    wire.made.root.on("X.deep", print)
    wire.says(f'{{"method":"X.deep","params":{{"x":{DEEP}}}}}')
    wire.says(f'{{"id":1,"result":{{"x":{DEEP}}}}}')
    wire.says("nothing at all")
    wire.says('{"id":2,"result":{"y":1}}')
    assert await second == {"y": 1}
    with pytest.raises(Error, match=r"X\.0.*too large or too deep"):
        await first


async def test_a_listener_that_fails_is_reported_and_ends_nothing() -> None:
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, one: told.append(one))
    wire = wired()
    heard: list[Any] = []
    wire.made.root.on("X.told", lambda event: event["no such key"])
    wire.made.root.on("X.told", heard.append)
    wire.says('{"method":"X.told","params":{"a":1}}')
    assert heard == [{"a": 1}]
    assert [type(one["exception"]) for one in told] == [KeyError]


async def test_a_message_above_the_limit_is_dropped_as_it_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(devtools_connection, "MOST_BYTES", 1_000, raising=False)
    wire = wired()
    first, second = [wire.made.root.begin(f"X.{number}") for number in range(2)]
    wire.made.data_received(b'{"id":1,"resu')
    wire.made.data_received(b'lt":{"x":"')
    for _ in range(100):
        wire.made.data_received(b"x" * 100)
        assert sum(map(len, wire.made._parts)) <= 1_100
    wire.made.data_received(b'"}}\0{"id":2,')
    wire.made.data_received(b'"result":{"y":1}}\0')
    assert await second == {"y": 1}
    with pytest.raises(Error, match="too large or too deep"):
        await first


@pytest.mark.own_browser
async def test_a_huge_answer_ends_neither_its_tab_nor_the_browser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(devtools_connection, "MOST_BYTES", 1_000_000, raising=False)
    async with started() as chromium:
        page = await (await context_of(chromium)).new_page()
        asked = {"expression": "console.log('x'.repeat(5e6)); 'x'.repeat(5e6)"}
        with pytest.raises(Error, match="too large or too deep"):
            await page.session.send("Runtime.evaluate", asked)
        told = await page.session.send("Runtime.evaluate", {"expression": "1 + 1"})
        assert told["result"]["value"] == 2


@pytest.mark.own_browser
@pytest.mark.parametrize("address", ["/", "/grows"])
async def test_a_page_above_the_limit_of_a_message_fails_at_once_and_alone(
    pages: Pages, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr(devtools_connection, "MOST_BYTES", 1_000_000)
    pages["/"] = f"<p>{'many words ' * 150_000}</p>"
    pages["/small"] = "<p>few words</p>"
    pages["/grows"] = (  # is asked once more, by a command
        "<p id=p></p><script>onload = () => { p.textContent = 'some words '.repeat(50);"
        " import('/more.js') }</script>"
    )
    more = b"p.textContent = 'many words '.repeat(150000)"
    pages["/more.js"] = Answer(more, 200, "text/javascript", delay_s=0.6)
    session = BrowserSession(os.environ.get("OC_BROWSER"))
    options = FetcherOptions(Policy.for_start(pages.url), pages=1, direct=True)
    try:
        async with session.fetcher(options) as fetcher:
            with pytest.raises(PageTooLarge, match="larger than a direct connection can carry"):
                await fetcher.fetch(f"{pages.url}{address}", PageOptions(timeout_ms=100_000))
            small = await fetcher.fetch(f"{pages.url}/small", PageOptions())
    finally:
        await session.aclose()
    assert (small.text.strip(), session.starts) == ("few words", 1)


@pytest.mark.own_browser
async def test_a_browser_that_does_not_answer_is_ended_with_its_profile() -> None:
    async with started() as chromium:
        browser = direct(chromium)
        os.kill(browser.process.pid, signal.SIGSTOP)
        await chromium.kill()

        async def is_gone() -> bool:
            return not os.path.exists(browser.process.profile)

        await soon(is_gone)
        assert not browser.is_connected()
        until(lambda: not children(browser.process.profile))  # its guard is ended last


@pytest.mark.own_browser
async def test_a_browser_is_closed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    kill = os.killpg

    def note(group: int, number: int) -> None:
        killed.append(group)
        kill(group, number)

    async with started() as chromium:
        browser = direct(chromium)
        monkeypatch.setattr(os, "killpg", note)
        await asyncio.gather(browser.close(), browser.close(), browser.process.end())
        await browser.close()
        await browser.process.end()
    assert killed == [browser.process.pid]


@pytest.mark.own_browser
async def test_a_browser_that_is_killed_is_cleared_away_and_replaced(pages: Pages) -> None:
    pages["/"] = "<p>here</p>"
    session = BrowserSession(os.environ.get("OC_BROWSER"))
    options = FetcherOptions(Policy.for_start(pages.url), pages=1, direct=True)
    try:
        async with session.fetcher(options) as fetcher:
            await fetcher.fetch(pages.url, PageOptions())
            (chromium,) = session._running.values()
            first = direct(chromium).process
            os.kill(first.pid, signal.SIGKILL)

            async def is_gone() -> bool:
                return not os.path.exists(first.profile)

            await soon(is_gone)
            assert not psutil.pid_exists(first.pid)
            again = await fetcher.fetch(pages.url, PageOptions())
    finally:
        await session.aclose()
    assert again.text.strip() == "here"
    assert session.starts == 2


@pytest.mark.own_browser
async def test_a_browser_that_is_killed_during_a_crawl_costs_no_page(
    pages: Pages, tmp_path: Path
) -> None:
    paths = [f"/{number}" for number in range(1, 41)]
    for path in paths:
        pages[path] = f"<p>page {path}</p>"
    pages["/"] = "".join(f"<a href={path}>{path}</a>" for path in paths)
    session = BrowserSession(os.environ.get("OC_BROWSER"))
    asked = {"connection": "direct", "concurrency": 4, "max_pages": 100}
    crawling = asyncio.create_task(crawled(session, tmp_path, pages.url, **asked))
    try:

        async def is_under_way() -> bool:
            return bool(pages.hits["/9"])

        await soon(is_under_way)
        (chromium,) = session._running.values()
        os.kill(direct(chromium).process.pid, signal.SIGKILL)
        context, head = await crawling
        assert session.starts == 2
    finally:
        crawling.cancel()
        await session.aclose()
    texts = [page["content"].strip() for page in context.pages if page["url"] != f"{pages.url}/"]
    assert sorted(texts) == sorted(f"page {path}" for path in paths)
    assert head["summary"]["connection"] == "direct"
    until(lambda: not children("--user-data-dir="))  # the system needs a moment for it


def test_a_browser_whose_guard_does_not_start_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(24, "Too many open files")

    program = tmp_path / "sleeper"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setattr(process, "_guard", fails)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(OSError, match="Too many"):
        process.start(str(program), [])
    until(lambda: not children("sleeper") and not children("sleep 600"))
    assert not list(tmp_path.glob(f"{process.PROFILE}*"))
    assert len(os.listdir("/dev/fd")) == before


ODD = {
    "/left": "<p>one</p><script>setTimeout(() => { location = '/there' }, 1500)</script>",
    "/there": "<p>two</p>",
}


@pytest.mark.thorough("/left*")
@pytest.mark.own_browser
@pytest.mark.parametrize(
    ("path", "asked", "text"),
    [
        ("/left", {"wait_for": "#never"}, "two"),
        ("/there", {"wait_for": "#never"}, "two"),
        ("/there", {"wait_for": "p["}, "not a selector"),
        ("/there", {"load_more": "p["}, "not a selector"),
    ],
)
async def test_waiting_for_an_element_ends_alike_over_both_connections(
    pages: Pages, path: str, asked: dict[str, Any], text: str
) -> None:
    for name, answer in ODD.items():
        pages[name] = answer
    session = BrowserSession(os.environ.get("OC_BROWSER"))
    try:
        async with AsyncExitStack() as stack:
            made = await both(stack, session, pages.url)
            one, other = await made.told_at_a_limit(pages.url + path, text, **asked)
    finally:
        await session.aclose()
    assert one == other
    assert text in json.dumps(one, default=str)


@pytest.mark.parametrize("kind", ["crawl", "crawl_sitemap"])
def test_a_proxy_of_the_settings_with_a_password_is_refused_before_the_task_starts(
    tmp_path: Path, kind: str
) -> None:
    environ = {
        "OC_PROXY": "http://proxy.example:3128",
        "OC_PROXY_USERNAME": "ann",
        "OC_PROXY_PASSWORD": "secret",
    }
    settings = replace(
        Settings.at(home=tmp_path), environ=environ, proxy=DefaultProxy.of_environment(environ)
    )
    tools = Tools(settings, BrowserSession())
    given = {"url": "https://birds.example/", "connection": "direct"}
    with pytest.raises(InvalidArguments) as refused:
        admit(kind, given, tools=tools)
    assert [(one.path, one.message) for one in refused.value.problems] == [
        ("connection", WHY_PROXY)
    ]
    parsed = admit(kind, {**given, "connection": "auto"}, tools=tools).parsed
    pages = getattr(parsed, "pages", parsed)
    policy = Policy.for_start("https://birds.example/", proxy=settings.proxy.upstream())
    assert not is_direct(with_secrets(pages, None, policy))
    asked = msgspec.structs.replace(pages, connection="direct")
    with pytest.raises(InvalidArguments):
        with_secrets(asked, None, policy)


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ("echo '[1:2:ERROR] no paper' >&2; exit 7", "it ended at once (exit code 7); no paper"),
        ("kill -9 $$", "it ended at once (exit code -9)"),
    ],
)
async def test_a_browser_that_ends_at_once_is_reported_with_its_words(
    tmp_path: Path, ends: str, told: str
) -> None:
    program = tmp_path / "chrome"
    program.write_text(f"#!/bin/sh\n{ends}\n")
    program.chmod(0o755)
    with pytest.raises(Error) as failed:
        await DirectBrowser.launch(str(program), [])
    assert launch.reason_of(failed.value.message) == told


@pytest.mark.own_browser
async def test_the_sessions_of_a_pages_parts_end_with_the_page() -> None:
    async with started() as chromium:
        page = await (await context_of(chromium)).new_page()
        pipe = direct(chromium).connection
        worker = "self.made = new Worker(URL.createObjectURL(new Blob(['for (;;);'])))"
        await page.session.send("Runtime.evaluate", {"expression": worker})

        async def is_attached() -> bool:
            return bool(page.session.parts)

        await soon(is_attached)
        (part,) = page.session.parts
        waiting = pipe.session(part).begin("Runtime.evaluate", {"expression": "1"})
        pipe.forget(page.session.id)  # as when its end is announced before that of its parts
        with pytest.raises(Error, match="has been closed"):
            await asyncio.wait_for(waiting, 10)
        assert part not in pipe._sessions


async def test_the_page_after_one_that_failed_is_loaded_to_its_end(
    pages: Pages, kept_browser: type[BrowserSession]
) -> None:
    pages["/around"] = Answer(b"", 302, headers=(("Location", "/around"),))
    pages["/next"] = Answer(b"<title>next</title><p>whole", 200, "text/html", delay_s=0.05)
    session = kept_browser(os.environ.get("OC_BROWSER"))
    options = FetcherOptions(Policy.for_start(pages.url), pages=1, direct=True)
    try:
        async with session.fetcher(options) as fetcher:
            for _ in range(8):
                with suppress(PageError):
                    await fetcher.fetch(f"{pages.url}/around", PageOptions(timeout_ms=100_000))
                found = await fetcher.fetch(f"{pages.url}/next", PageOptions(timeout_ms=100_000))
                assert (found.title, found.text, found.settled) == ("next", "whole", True)
                assert not found.truncated
    finally:
        await session.aclose()


@pytest.mark.thorough
async def test_a_page_that_was_led_on_is_not_taken_for_the_next_document(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = pushed.PushedExtraction._change

    async def change_while_it_leaves(self: pushed.PushedExtraction, given: Sequence[str]) -> bool:
        await engines.until(lambda: pages.hits["/next"])
        return await change(self, given)  # Chromium holds it back until the next document comes

    monkeypatch.setattr(extraction_options, "REQUEST_MS", 3_000)
    monkeypatch.setattr(pushed, "PROBE_S", 0.1)
    monkeypatch.setattr(pushed.PushedExtraction, "_change", change_while_it_leaves)
    pages["/next"] = Answer(b"<!doctype html><p>the real page", 200, "text/html", delay_s=6.0)
    pages["/"] = "<p>one moment<script>onload = () => { location = '/next' }</script>"
    async with browsing(pages.url, direct=True) as made:
        found = await made.fetcher.fetch(pages.url, PageOptions(timeout_ms=100_000))
    assert "the real page" in found.text
