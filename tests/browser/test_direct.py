"""The direct connection to the browser: the same results as Playwright's, start, and fallback."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from engine.browser.chromium import browser_session
from engine.browser.chromium.browser_options import FetcherOptions
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.chromium.driver import alive
from engine.browser.direct import direct_browser, process
from engine.egress.egress_policy import Policy
from engine.kinds.crawl.browser_connection import WHY, UsedConnection, is_direct
from engine.kinds.crawl.crawl_args import parse_crawl
from engine.kinds.crawl.crawl_kind import fetchers
from engine.kinds.registry import KINDS
from engine.kinds.spec import Head, Tools
from engine.model.config import Settings
from engine.model.errors import BrowserFailed, InvalidArguments, PageError
from engine.pages.fetch import Fetcher, PageOptions
from engine.sample.site import Answer, title_of
from fixtures.site.site import Site
from tests.browser.conftest import LIMITS_MS, Pages, command
from tests.support.at_once import ended
from tests.support.memory_context import MemoryContext
from tests.support.processes import ENGINE, heard, started, until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Playwright serves all crawls")
TABS = 3  # of each connection
MEASURED = ("response_ms", "render_ms")
# What depends on the moment: how far a page was that is stopped, never ends, or writes by a timer.
UNSTABLE = {
    "huge?mb=4": ("facts", "settled", "bytes", "transferred_bytes"),
    "ever": ("html",),
    "late": ("html", "text"),  # a timer writes, for which a page with text does not wait
}
OF_THE_SITE = (
    *("/static/1", "/js/1", "/js/2", "/hidden", "/links?n=300", "/schemes", "/duplicates"),
    *("/charset", "/charset?how=meta", "/empty", "/short", "/no-content", "/files/archive.zip"),
    *("/files/doc.pdf", "/files/image.png", "/files/data.json", "/files/notes.txt"),
    *("/dialogs", "/popup", "/late", "/handler", "/iframe", "/unicode", "/rtl", "/hostile"),
    *("/meta-refresh", "/base", "/loop", "/redirect/3", "/redirect/40", "/redirect/nowhere"),
    *("/status/404", "/status/500", "/status/503", "/auth", "/slow?ms=300", "/slow-body?ms=300"),
    *("/static/1#top", "/huge?mb=4", "/redirect/to?url=http://127.0.0.1:9/", "/nowhere"),
)
AT_THEIR_LIMIT = ("/ever", "/hang", "/hang-body")
BUSY = "/busy-script"
SHOWN = "document.body.append(JSON.stringify(shown))"
OWN: dict[str, str | Answer] = {
    "/opens": "<script>window.open('/a'); open('about:blank')</script>"
    "<a target=_blank href=/a>a</a>",
    "/moves": "<p>one</p><script>location.replace('/moved')</script>",
    "/moved": "<p>two</p><script>if (!location.hash) location.hash = 'three'</script>",
    "/later": "<p>one</p><script>setTimeout(() => { location = '/moved' }, 100_000)</script>",
    "/pushes": "<p>x</p><script>history.pushState(0, '', '/pushed?x=1')</script>",
    "/rewrites": "<p>old</p><script>onload = () => { document.open();"
    " document.write('<title>new</title><p>written'); document.close() }</script>",
    "/worker": "<script>navigator.serviceWorker.register('/sw.js').then("
    "() => document.body.append('registered'), e => document.body.append(`not ${e}`))</script>",
    "/leaves": "<script>onbeforeunload = () => 'stay'; onunload = () => alert(1)</script>left",
    "/looks": "<script>const at = (one) => matchMedia(one).matches; const shown = ["
    "innerWidth, innerHeight, screen.width, devicePixelRatio, document.hasFocus(),"
    "document.visibilityState, navigator.userAgent, navigator.webdriver, navigator.language,"
    "at('(prefers-color-scheme: light)'), at('(hover: hover)'), at('(pointer: fine)'),"
    "at('(prefers-reduced-motion: reduce)'), Intl.DateTimeFormat().resolvedOptions().timeZone,"
    f"navigator.plugins.length, Notification.permission, typeof chrome]; {SHOWN}</script>",
    "/held": "<p>text</p><script>fetch('/late-answer').then(r => r.text()).then("
    "t => document.body.append(t))</script>",
    "/late-answer": Answer(b"answer", delay_s=0.7),
    "/prompts": "<script>document.body.append(String(prompt('x')), String(confirm('y')))</script>",
    "/none": Answer(b"", 204),
    "/many-headers": Answer(
        b"<title>h</title>x", headers=(("X-Robots-Tag", "noindex"), ("X-Robots-Tag", "nofollow"))
    ),
    "/busy": Answer(b"later", 503, headers=(("Retry-After", "7"),)),
    "/sandboxed": Answer(
        b"<title>s</title><p>in a sandbox", headers=(("Content-Security-Policy", "sandbox"),)
    ),
    "/xml": Answer(b"<feed><title>t</title><a href='/x'>x</a></feed>", 200, "application/xml"),
    "/svg": Answer(
        b'<svg xmlns="http://www.w3.org/2000/svg"><text y="20">s</text></svg>', 200, "image/svg+xml"
    ),
    "/shadow": "<x-a></x-a><script>document.querySelector('x-a').attachShadow({mode: 'open'})"
    ".innerHTML = '<p>inside</p><a href=/in>in</a>'</script>",
    "/cookies": "<script>document.cookie = 'a=' + 'b'.repeat(3000)</script>set",
    "/surrogate": "<script>document.title = '\\ud800 half';"
    " document.body.append('\\udfff')</script>",
    "/frames": "<iframe srcdoc='<p>inner</p><script>parent.document.title = 7</script>'></iframe>"
    "<iframe src=/moved></iframe>",
    "/modules": "<script type=module src=/module.js></script><p>before</p>",
    "/module.js": Answer(b"document.body.append('from a module')", 200, "text/javascript"),
    "/cut": Answer(b"<title>c</title><p>begin", stops="midway"),
}

# A title or a text that both must have found.
KNOWN = {
    **{path: title_of(1) for path in ("/static/1", "/js/1", "/static/1#top")},
    "/moves": "two",
    "/rewrites": "written",
    "/worker": "not NotSupportedError: Failed to register",
    "/held": "answer",
    "/modules": "from a module",
    "/sandboxed": "in a sandbox",
    "/prompts": "nullfalse",
    "/shadow": "inside",
    "/frames": "inner",
}


def expect_equal(path: str, one: Any, other: Any) -> None:
    assert one == other
    assert KNOWN.get(path, "") in str(one)


@pytest.fixture
def site() -> Iterator[Site]:
    with Site(pages=2_000) as made:
        yield made


class Both:
    """Fetchers of one session over both connections."""

    def __init__(self, direct: Fetcher, playwright: Fetcher) -> None:
        self.direct, self.playwright = direct, playwright

    async def told(self, url: str, options: PageOptions) -> tuple[Any, Any]:
        """What both say of a page."""
        one, other = await asyncio.gather(
            told_by(self.direct, url, options), told_by(self.playwright, url, options)
        )
        return one, other

    async def told_at_a_limit(self, url: str, holds: str = "", **asked: Any) -> tuple[Any, Any]:
        """What both say of a page at the first limit at which both have come as far.

        Args:
            holds: what both say of a page that came so far.
        """
        for limit_ms in LIMITS_MS:
            one, other = await self.told(url, PageOptions(timeout_ms=limit_ms, **asked))
            if one == other and holds in json.dumps(one, default=str):
                break
        return one, other


async def told_by(fetcher: Fetcher, url: str, options: PageOptions) -> Any:
    try:
        try:
            fetched = await fetcher.fetch(url, options)
        except PageError as doubted:
            if not doubted.unproved:
                raise
            # As a crawl does: pages before it may have been the reason.
            fetched = await fetcher.fetch(url, msgspec.structs.replace(options, fresh=True))
    except PageError as failed:
        return type(failed), failed.kind, str(failed), failed.status
    found = msgspec.to_builtins(fetched)
    path = url.rpartition("/")[2]
    left_out = (*MEASURED, *UNSTABLE.get(path, ()))
    return {name: value for name, value in found.items() if name not in left_out}


async def both(stack: AsyncExitStack, session: BrowserSession, start: str) -> Both:
    opened = [
        session.fetcher(FetcherOptions(Policy.for_start(start), pages=TABS, direct=is_direct))
        for is_direct in (True, False)
    ]
    return Both(*[await stack.enter_async_context(one) for one in opened])


@pytest.mark.thorough
@pytest.mark.own_browser
@pytest.mark.timeout(900)  # many cases in one browser
async def test_odd_pages_of_the_site_are_equal(site: Site, subtests: pytest.Subtests) -> None:
    session = BrowserSession(os.environ.get("OC_BROWSER"))
    try:
        async with AsyncExitStack() as stack:
            made = await both(stack, session, site.url)
            patient = PageOptions(timeout_ms=100_000)
            cases = {path: made.told(site.url + path, patient) for path in OF_THE_SITE}
            cases |= {path: made.told_at_a_limit(site.url + path) for path in AT_THEIR_LIMIT}
            told = await ended(cases)
            # It takes all of a processor, also from the pages beside it.
            told |= await ended({BUSY: made.told_at_a_limit(site.url + BUSY)})
    finally:
        await session.aclose()
    for path, case in told.items():
        with subtests.test(path):
            expect_equal(path, *case.result())


@pytest.mark.thorough
@pytest.mark.own_browser
@pytest.mark.timeout(900)  # many cases in one browser
async def test_pages_that_do_odd_things_are_equal(
    pages: Pages, canary: Pages, subtests: pytest.Subtests
) -> None:
    for path, answer in OWN.items():
        pages[path] = answer
    canary["/"] = "<p>elsewhere</p>"
    pages["/elsewhere"] = f"<p>here</p><iframe src={canary.url}/></iframe>"
    pages["/led"] = f"<script>location = '{canary.url}/'</script>"
    pages["/sent"] = Answer(b"", 302, headers=(("Location", f"{canary.url}/"),))
    session = BrowserSession(os.environ.get("OC_BROWSER"))
    try:
        async with AsyncExitStack() as stack:
            made = await both(stack, session, pages.url)
            patient = PageOptions(timeout_ms=100_000)
            paths = [path for path in OWN if path not in ("/cut", "/cookies")]
            paths += ["/elsewhere", "/led", "/sent"]
            cases = {path: made.told(pages.url + path, patient) for path in paths}
            told = await ended({**cases, "/cut": made.told_at_a_limit(f"{pages.url}/cut")})
            # The pages beside it would have its cookie as well.
            told |= await ended({"/cookies": made.told(f"{pages.url}/cookies", patient)})
    finally:
        await session.aclose()
    for path, case in told.items():
        with subtests.test(path):
            expect_equal(path, *case.result())
    assert not canary.hits


def words_of(browser: psutil.Process) -> list[str]:
    """Its switches, without the folder of its profile and the port of its proxy."""
    known = ("--user-data-dir=", "--proxy-server=")
    return [one for one in command(browser)[1:] if not one.startswith(known)]


def children(sign: str) -> list[psutil.Process]:
    found = psutil.Process().children(recursive=True)
    return [one for one in found if sign in " ".join(command(one))]


def last_of_each(words: list[str]) -> dict[str, str]:
    """Each switch with its value: of two with one name the last counts."""
    return {name: value for name, _, value in (one.partition("=") for one in words)}


@pytest.mark.own_browser
@pytest.mark.parametrize("block_resources", [True, False])
async def test_a_browser_starts_with_the_switches_that_playwright_gives_it(
    pages: Pages, block_resources: bool
) -> None:
    pages["/"] = "x"
    seen: list[dict[str, str]] = []
    for is_piped in (True, False):
        session = BrowserSession(os.environ.get("OC_BROWSER"))
        policy = Policy.for_start(pages.url)
        options = FetcherOptions(policy, block_resources=block_resources, direct=is_piped)
        try:
            async with session.fetcher(options) as fetcher:
                await fetcher.fetch(pages.url, PageOptions())
                first = next(one for one in children("--user-data-dir=") if _is_root(one))
                seen.append(last_of_each(words_of(first)))
        finally:
            await session.aclose()
    assert seen[0] == seen[1]


def _is_root(browser: psutil.Process) -> bool:
    words = command(browser)
    is_guard = words[:1] == ["/bin/sh"]
    return not is_guard and not any(one.startswith("--type=") for one in words)


async def crawled(
    session: BrowserSession, home: Path, url: str, **args: Any
) -> tuple[MemoryContext, Head]:
    kind, context = KINDS["crawl"], MemoryContext()
    asked = {"url": url, "delay_ms": 0, "respect_robots": False, **args}
    tools = Tools(Settings(home=home, root=home / "tasks"), session)
    return context, await kind.body(kind.parse(asked), context, tools)


@pytest.mark.own_browser
@pytest.mark.parametrize(
    ("asked", "used"), [("auto", "direct"), ("direct", "direct"), ("playwright", "playwright")]
)
async def test_a_result_tells_the_connection(
    pages: Pages, tmp_path: Path, asked: str, used: str
) -> None:
    pages["/"] = "<a href=/next>next</a>"
    session = BrowserSession(os.environ.get("OC_BROWSER"))
    try:
        context, head = await crawled(session, tmp_path, pages.url, connection=asked)
        assert bool(children("run-driver")) is (used == "playwright")
    finally:
        await session.aclose()
    assert head["summary"]["connection"] == used
    assert [page["status"] for page in context.pages] == [200, 404]


@pytest.mark.own_browser
async def test_a_crawl_goes_on_through_playwright_where_the_pipe_does_not_start(
    pages: Pages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(24, "no pipe today")

    monkeypatch.setattr(direct_browser, "start", fails)
    pages["/"] = "fine"
    session = BrowserSession(os.environ.get("OC_BROWSER"))
    try:
        context, head = await crawled(session, tmp_path, pages.url, connection="auto")
        with pytest.raises(BrowserFailed, match="no pipe today"):
            await crawled(session, tmp_path, pages.url, connection="direct")
    finally:
        await session.aclose()
    assert head["summary"]["connection"] == "playwright"
    assert [page["content"].strip() for page in context.pages] == ["fine"]
    (note,) = [note for phase, note, _ in context.notes if phase == "connection"]
    assert note.startswith("The direct connection does not start, so Playwright is used: ")


@pytest.fixture
def failed_starts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The programs that were started over the pipe, which always fails."""
    programs: list[str] = []

    def fails(program: str, _: object) -> None:
        programs.append(program)
        raise OSError(24, "no pipe today")

    monkeypatch.setattr(direct_browser, "start", fails)
    monkeypatch.setattr(browser_session, "FAILED_FOR_S", 0.0)
    return programs


@pytest.mark.own_browser
async def test_a_pipe_that_does_not_start_is_tried_once_until_another_browser_is_chosen(
    pages: Pages, tmp_path: Path, failed_starts: list[str]
) -> None:
    pages["/"] = "fine"
    path = os.environ.get("OC_BROWSER")
    session = BrowserSession(path)
    try:
        await session.warm()
        for block_resources in (True, False):
            context, head = await crawled(
                session, tmp_path, pages.url, block_resources=block_resources
            )
            assert head["summary"]["connection"] == "playwright"
            assert [phase for phase, _, _ in context.notes].count("connection") == 1
        assert len(failed_starts) == 1
        with pytest.raises(BrowserFailed, match="no pipe today"):
            await crawled(session, tmp_path, pages.url, connection="direct")
        assert len(failed_starts) == 2  # it has no alternative
        session.use(path)
        await crawled(session, tmp_path, pages.url)
        assert len(failed_starts) == 3
    finally:
        await session.aclose()


@pytest.mark.own_browser
async def test_a_crawl_that_fell_back_stays_with_playwright_in_its_next_fetcher(
    pages: Pages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failed_starts: list[str]
) -> None:
    monkeypatch.setattr(browser_session, "PIPE_FAILED_FOR_S", 0.0)
    pages["/"] = "fine"
    session, context = BrowserSession(os.environ.get("OC_BROWSER")), MemoryContext()
    used, args = UsedConnection(context), parse_crawl({"url": pages.url})
    tools = Tools(Settings(home=tmp_path, root=tmp_path / "tasks"), session)
    open_fetcher = fetchers(Policy.for_start(pages.url), used, tools)
    try:
        async with open_fetcher("browser", args) as first, open_fetcher("browser", args) as other:
            await first.fetch(pages.url, PageOptions())
            await other.fetch(pages.url, PageOptions())
        assert len(failed_starts) == 2
        async with open_fetcher("browser", args) as again:
            assert used.name == "playwright"
            await again.fetch(pages.url, PageOptions())
        assert len(failed_starts) == 2
    finally:
        await session.aclose()
    assert used.name == "playwright"
    assert [phase for phase, _, _ in context.notes].count("connection") == 1


OF_PLAYWRIGHT = {
    "screenshot": "all",
    "click_links": "button",
    "archive": "warc",
    "username": "who",
    "profile": "shop",
}


@pytest.mark.parametrize("name", OF_PLAYWRIGHT)
@pytest.mark.parametrize("kind", ["crawl", "crawl_sitemap"])
def test_an_option_of_playwright_takes_it_for_the_whole_task(name: str, kind: str) -> None:
    given = {"url": "https://birds.example/", "connection": "auto", name: OF_PLAYWRIGHT[name]}
    given |= {"password": "secret"} if name == "username" else {}
    parsed = KINDS[kind].parse(given)
    assert not is_direct(getattr(parsed, "pages", parsed))
    with pytest.raises(InvalidArguments) as refused:
        KINDS[kind].parse({**given, "connection": "direct"})
    assert name in [one.path for one in refused.value.problems if one.message == WHY]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"scroll": True, "wait_for": "p", "load_more": "b", "block_resources": False},
        {"device": "Pixel 7", "locale": "de-DE", "timezone": "Europe/Berlin"},
        {"user_agent": "Mozilla/5.0", "viewport": "800x600", "headers": ["X-Team: birds"]},
        {"engine": "auto"},
    ],
)
def test_plain_options_use_the_direct_connection(asked: dict[str, Any]) -> None:
    auto = {"url": "https://birds.example/", "connection": "auto", **asked}
    assert is_direct(KINDS["crawl"].parse(auto))
    playwright = {"url": "https://birds.example/", "connection": "playwright", **asked}
    assert not is_direct(KINDS["crawl"].parse(playwright))


@pytest.mark.own_browser
async def test_nothing_is_left_of_a_closed_browser(pages: Pages) -> None:
    pages["/"] = "x"
    session = BrowserSession(os.environ.get("OC_BROWSER"))
    try:
        options = FetcherOptions(Policy.for_start(pages.url), direct=True)
        async with session.fetcher(options) as fetcher:
            await fetcher.fetch(pages.url, PageOptions())
            (profile,) = profiles()
    finally:
        await session.aclose()
    assert not os.path.exists(profile)
    until(lambda: not children("--user-data-dir="))  # the system needs a moment for it
    until(lambda: not children(process.PROFILE))


def profiles() -> set[str]:
    words = [word for one in children("--user-data-dir=") for word in command(one)]
    return {word.partition("=")[2] for word in words if word.startswith("--user-data-dir=")}


ENDLESS = """
async def work(engine):
    args = {"url": sys.argv[2], "delay_ms": 0, "max_pages": 100_000, "connection": "direct"}
    await engine.requests.start("crawl", args)
    say(started=True)
    await asyncio.sleep(600)
asyncio.run(with_engine(work))
"""


def test_an_engine_that_is_killed_leaves_no_browser(site: Site, tmp_path: Path) -> None:
    program = started(ENGINE + ENDLESS, tmp_path, site.url)
    try:
        heard(program)
        until(lambda: site.hits["/page/2"])
        (profile,) = profiles()
        family = children("--user-data-dir=") + children("--type=")
    finally:
        program.kill()
        program.communicate()
    until(lambda: not any(map(alive, family)) and not os.path.exists(profile))


HANGS = """
import json, sys, time
from engine.browser.direct.process import start
started = start(sys.argv[1], [])
print(json.dumps({"pid": started.pid, "profile": started.profile}), flush=True)
time.sleep(600)  # the test kills this engine; the guard has to end the browser then
"""


def test_a_browser_that_hangs_ends_with_its_engine(tmp_path: Path) -> None:
    hung = tmp_path / "chrome"  # neither its pipe nor a signal of a terminal ends it
    hung.write_text("#!/bin/sh\ntrap '' HUP INT TERM\nwhile :; do sleep 1; done\n")
    hung.chmod(0o755)
    program = started(HANGS, hung)
    try:
        told = heard(program)
        browser = psutil.Process(told["pid"])
    finally:
        program.kill()
        program.communicate()
    until(lambda: not alive(browser) and not os.path.exists(told["profile"]))
