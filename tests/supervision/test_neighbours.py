"""A page's fault in its tab, browser or cookie jar does not fail another page."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple, cast

import psutil
import pytest

from engine.browser.chromium.browser_options import MIB, Limits
from engine.browser.chromium.browser_session import BrowserRecycler
from engine.browser.chromium.driver import Family, alive
from engine.browser.chromium.launch import Chromium
from engine.browser.chromium.tab_pool import CrawlContext, TabPool
from engine.browser.page.crawl_tab import first_script
from engine.kinds.crawl.concurrency import most_tabs
from engine.model.errors import OnlyErrorAnswers
from engine.sample.site import Answer, Request
from tests.supervision.conftest import Place, Running, crawled, limit_page, limit_settling
from tests.support.at_once import ended
from tests.support.engines import until
from tests.support.far_limits import FAR_S
from tests.support.processes import started
from tests.support.processes import until as wait_until
from tests.support.serving import running

FAR_MS = 100_000  # no page comes to it, except as the test says
pytestmark = pytest.mark.usefixtures("patience")
HONEST = [f"/page/{number}" for number in range(8)]
BY_SCRIPT = """<p>flood</p><script>for (let at = 0; at < 100; at += 1)
document.cookie = `c${at}=${"x".repeat(1200)}; path=/`;</script>"""
BY_HEADERS = tuple(("Set-Cookie", f"c{at}={'x' * 1200}; path=/; HttpOnly") for at in range(35))
SHORT = tuple(("Set-Cookie", f"c{at}={'x' * 500}; path=/; HttpOnly") for at in range(10))


class CookiePlace(Place):
    """Answers a `Cookie` header that is longer than `most` with `status`; the server cuts 64 kB."""

    most = 8_190
    status = 431
    refused_after_s = 0.0

    def __init__(self) -> None:
        super().__init__()
        self.cookies: dict[str, str] = {}  # by path, of the last request

    def _answer(self, request: Request) -> Answer:
        given = self.cookies[request.path] = request.headers.get("cookie", "")
        if len(given) <= self.most:
            return super()._answer(request)
        self.hits["refused"] += 1
        return Answer(b"", self.status, delay_s=self.refused_after_s)


@pytest.fixture
def cookie_place() -> CookiePlace:
    made = CookiePlace()
    made.pages["/"] = made.links("/flood", *HONEST)
    made.pages.update((path, "<p>fine</p>") for path in HONEST)
    return made


@pytest.mark.thorough
@pytest.mark.case("R91")
async def test_a_page_that_fills_the_cookie_jar_costs_no_other_page(
    home: Path, cookie_place: CookiePlace, browser: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = cookie_place
    opened = TabPool._open

    async def open_slowly(pool: TabPool) -> CrawlContext:
        await asyncio.sleep(1)  # as on a busy machine: meanwhile no page uses the full cookie jar
        return await opened(pool)

    monkeypatch.setattr(TabPool, "_open", open_slowly)
    floods = {"script": (), "headers": BY_HEADERS, "short": SHORT}
    made.server.start()
    async with browser() as session:
        for name, status, concurrency in (
            *(("script", 431, 3), ("headers", 431, 3), ("headers", 400, 1), ("short", 502, 1)),
        ):
            text = BY_SCRIPT if name == "script" else "<p>flood</p>"
            answer = Answer(text.encode(), headers=floods[name])
            made.acts["/flood"] = partial(copy, answer)
            made.status, made.most = status, 4_096 if name == "short" else 8_190
            kept = await crawled(session, home, made.url, concurrency=concurrency, retries=0)
            failed = {path: page["error"] for path, page in kept.items() if "error" in page}
            assert not failed, (name, status)
            assert len(kept) == 2 + len(HONEST)
            tried = [page for page in kept.values() if "earlier_errors" in page]
            assert all(page["attempts"] == 2 for page in tried)
            told = {one for page in tried for one in page["earlier_errors"]}
            # A server that closes on unread headers (120 kB) sends an end or a reset.
            assert told <= {f"HTTP {status}", "the server sent nothing", "the connection was cut"}
            if name != "script":
                most = most_tabs(concurrency)
                assert 1 <= len(tried) <= most, "those that were asked for at once"
    made.server.stop()


@pytest.mark.case("R91")
async def test_a_page_whose_parts_were_refused_for_the_cookies_of_another_is_taken_again(
    home: Path, cookie_place: CookiePlace, browser: Running
) -> None:
    made = cookie_place
    made.pages["/"] = made.links("/shown", "/later")
    made.pages["/later"] = "<p>fine</p>"
    flooded = [BY_SCRIPT]
    # What another page does while this one waits for its part.
    made.acts["/shown"] = lambda: Answer(
        f"""<p>page</p>{flooded.pop() if flooded else ""}
        <script>fetch("/part").then((answer) => answer.ok ? answer.text() : "no part")
        .then((text) => document.body.append(text), () => 0)</script>""".encode()
    )
    made.pages["/part"] = "<p>the part</p>"
    made.server.start()
    async with browser() as session:
        kept = await crawled(session, home, made.url, retries=0)
    made.server.stop()
    assert "the part" in kept["/shown"]["content"]
    assert kept["/shown"]["attempts"] == 2
    assert "attempts" not in kept["/later"]


@pytest.mark.case("R91")
async def test_of_the_cookies_that_a_script_sets_the_oldest_stay_and_no_page_is_refused(
    home: Path, cookie_place: CookiePlace, browser: Running
) -> None:
    made = cookie_place
    start = Answer(made.pages["/"].encode(), headers=(("Set-Cookie", "login=ann; path=/"),))
    made.acts["/"] = partial(copy, start)
    made.pages["/flood"] = BY_SCRIPT
    made.server.start()
    async with browser() as session:
        kept = await crawled(session, home, made.url, concurrency=1, retries=0)
    made.server.stop()
    assert not made.hits["refused"]
    assert not [path for path, page in kept.items() if "attempts" in page]
    assert all("login=ann" in made.cookies[path] for path in HONEST)


@pytest.mark.case("R91")
@pytest.mark.parametrize("changes", [150, 1_000])
async def test_a_page_that_changes_its_address_often_leaves_the_next_page_its_own_changes(
    home: Path, place: Place, browser: Running, changes: int
) -> None:
    script = """<p>page</p><script>for (let at = 0; at < {}; at += 1)
    history.replaceState(null, "", `?${{at}}`)</script>"""
    place.pages = {
        "/": place.links("/first", "/next"),
        "/first": script.format(changes),
        "/next": script.format(100),
    }
    async with browser() as session:
        kept = await crawled(session, home, place.url)
    last = min(changes, 200) - 1  # Chromium ignores what is above that
    assert kept["/first"]["final_url"] == f"{place.url}/first?{last}"
    assert kept["/next"]["final_url"] == f"{place.url}/next?99"


# What is deleted of them are those that other pages send as well.
OF_ITS_OWN = """<p>flood</p><script>for (const [path, most] of [["/x", 7], ["/", 60]])
for (let at = 0; at < most; at += 1)
document.cookie = `c${at}=${"x".repeat(1200)}; path=${path}`;</script>"""


@pytest.mark.case("R91")
@pytest.mark.parametrize("what", ["page", "part"])
async def test_a_page_that_is_refused_for_cookies_which_are_deleted_by_now_is_taken_again(
    home: Path, cookie_place: CookiePlace, browser: Running, what: str
) -> None:
    made = cookie_place
    made.status, made.refused_after_s = 400, 2.0
    made.pages["/"] = made.links("/late", "/x/flood")
    made.pages |= {"/x/flood": OF_ITS_OWN, "/part": "the part"}
    part = """<p>page</p><script>const read = async (path) => (await fetch(path)).text();
    read("/slow").then(() => read("/part")).then((text) => document.body.append(text))</script>"""
    onward = Answer(b"", 307, headers=(("Location", "/part"),), delay_s=1.0)
    made.pages["/late"] = part
    if what == "page":
        made.acts["/late"] = partial(copy, onward)
    made.acts["/slow"] = partial(copy, Answer(b"slow", delay_s=1.0))
    made.server.start()
    async with browser() as session:
        kept = await crawled(session, home, made.url, concurrency=2, retries=0)
    made.server.stop()
    assert "error" not in kept["/late"]
    assert "the part" in kept["/late"]["content"]


FULL = """<p>full</p><script>for (const one of [localStorage, sessionStorage])
try { for (let at = 0;; at += 1) one[at] = "x".repeat(1e5) } catch {}</script>"""


@pytest.mark.thorough("sessionStorage")
@pytest.mark.case("R97")
@pytest.mark.parametrize("storage", ["localStorage", "sessionStorage"])
async def test_a_page_that_finds_no_room_in_its_storage_is_taken_again_without_it(
    home: Path, place: Place, browser: Running, storage: str
) -> None:
    writes = f"""<p>page</p><script>{storage}.mine = "1".repeat(1e6);
    document.body.append("was written")</script>"""
    place.pages = {"/": place.links("/full", *HONEST), "/full": FULL}
    place.pages |= dict.fromkeys(HONEST, writes)
    async with browser() as session:
        kept = await crawled(session, home, place.url, retries=0)
    assert all("was written" in kept[path]["content"] for path in HONEST)
    again = [path for path, page in kept.items() if page.get("attempts") == 2]
    assert again == HONEST[:1], "the others had room in a context that nobody filled"


async def test_a_site_that_refuses_without_cookies_is_asked_once(
    home: Path, cookie_place: CookiePlace, browser: Running
) -> None:
    made = cookie_place
    made.most = -1
    made.server.start()
    async with browser() as session:
        with pytest.raises(OnlyErrorAnswers, match="HTTP 431"):
            await crawled(session, home, made.url, retries=0)
    made.server.stop()
    assert made.hits["refused"] == 1


@pytest.mark.thorough
async def test_a_hanging_page_has_two_attempts(
    home: Path, place: Place, browser: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_page(monkeypatch, "/loop")
    place.pages["/"] = place.links("/loop", *HONEST[:2])
    place.pages |= dict.fromkeys(HONEST[:2], "<p>fine</p>")
    place.pages["/loop"] = "<p>loop</p><script>for (;;);</script>"
    async with browser() as session:
        kept = await crawled(session, home, place.url, timeout_ms=FAR_MS, retries=2)
    assert [path for path, page in kept.items() if "error" in page] == ["/loop"]
    assert kept["/loop"]["attempts"] == 2


@pytest.mark.thorough
@pytest.mark.case("R93")
@pytest.mark.parametrize("connection", ["playwright", "direct"])
async def test_a_page_that_floods_its_browser_is_ended_and_the_pages_beside_it_are_kept(
    home: Path,
    place: Place,
    browser: Running,
    connection: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.browser.chromium.browser_session.SLOW_S", 0.5)
    limit_page(monkeypatch, "/flood", limit_s=15.0)
    script = first_script()
    endless = re.sub(r"(MOST_LINES\s*=\s*)1000", r"\1Infinity", script)  # else it floods nothing
    assert endless != script
    monkeypatch.setattr("engine.browser.chromium.tab_pool.first_script", lambda **_: endless)
    place.pages = dict.fromkeys(HONEST, "<p>fine</p>")
    place.pages["/"] = place.links(*HONEST[:3], "/flood", *HONEST[3:])
    does = "console.log('x'.repeat(1000))"
    place.pages["/flood"] = f"<script>onload = () => {{ for (;;) {does} }}</script>"
    async with browser() as session:
        kept = await crawled(
            session,
            home,
            place.url,
            concurrency=3,
            timeout_ms=FAR_MS,
            retries=0,
            connection=connection,
        )
        (chromium,) = session._running.values()
        flooded = chromium.was_flooded(0.0) or session.starts > 1
    # The direct connection skips such messages undecoded, and may keep up with them.
    assert flooded or connection == "direct"
    assert [path for path, page in kept.items() if "error" in page] == ["/flood"]
    assert len(kept["/flood"]["earlier_errors"]) == 1, "to blame only when it was alone"


class Silent:
    """A browser that says nothing; looking at its memory takes until `looked` is set."""

    alive, idle, shared = True, False, True
    total_bytes = held_bytes = pages = 0

    def __init__(self) -> None:
        self.family = self
        self.looked = threading.Event()
        self.ended, self.given_up = asyncio.Event(), asyncio.Event()
        self.asked = 0
        self.driver = self.load = self

    def weigh(self, *_: object) -> None:
        self.looked.wait()

    async def answers(self, limit_s: float) -> bool:
        self.asked += not self.ended.is_set()
        return False

    async def end_flood(self) -> bool:
        is_first = not self.ended.is_set()
        self.ended.set()
        return is_first

    def was_flooded(self) -> bool:
        return self.ended.is_set()

    def give_up(self) -> None:
        self.given_up.set()

    async def kill(self) -> None: ...


# The limit of a page beside one that holds all connections, and of those after it: above what a
# machine stands still for, below the 30 s for which requests outlive their page.
HELD_MS = 25_000
BEHIND = "127.0.0.2"  # this machine by a spelling for which the browser asks its proxy
WITH_PARTS = """<link rel=stylesheet href=/style><p>page</p><p id=at></p>
<script>document.getElementById("at").textContent = "the script's text"</script>"""


HOLDS = """for (let at = 0; at < 50; at += 1)
fetch(`${origin}/never?${at}`, { keepalive: true }).catch(() => 0);"""
IN_FRAME = f"""const frame = document.body.appendChild(document.createElement("iframe"));
{{ const {{ fetch }} = frame.contentWindow; {HOLDS} }}"""


BEACONS = "for (let at = 0; at < 50; at += 1) navigator.sendBeacon(`/never?${at}`)"
EVENTS = """for (let at = 0; at < 50; at += 1) new EventSource(`/never?${at}`);
EventSource = Proxy = null"""
ON_LEAVING = f'addEventListener("pagehide", () => {{ {HOLDS} }})'


class Holding(NamedTuple):
    """A page that holds connections, and how many pages may be taken again for it."""

    host: str
    holds: str
    concurrency: int
    most_again: int


HOLDING = {
    "fetches": Holding("127.0.0.1", HOLDS, 3, 2),  # those beside it
    "beacons": Holding("127.0.0.1", BEACONS, 1, 0),
    "events": Holding("127.0.0.1", EVENTS, 1, 0),
    "leaving": Holding("127.0.0.1", ON_LEAVING, 1, 1),
    "proxied": Holding(BEHIND, HOLDS, 3, 2),
    "proxied-frame": Holding(BEHIND, IN_FRAME, 1, 1),
    "proxied-leaving": Holding(BEHIND, ON_LEAVING, 3, 4),
}


@pytest.mark.thorough
@pytest.mark.case("R93")
async def test_a_page_that_holds_the_connections_of_its_site_costs_no_other_page(
    home: Path, browser: Running, subtests: pytest.Subtests
) -> None:
    # Each with a browser of its own; they wait for the limit of a page at the same time.
    turn = asyncio.Lock()
    cases = {name: held_up(home / name, browser, one, turn) for name, one in HOLDING.items()}
    for name, case in (await ended(cases)).items():
        with subtests.test(name):
            case.result()


async def held_up(home: Path, browser: Running, one: Holding, turn: asyncio.Lock) -> None:
    """Crawl a site with such a page; it has its turn until the connections are held."""
    place = Place(one.host)
    place.pages = dict.fromkeys(HONEST, WITH_PARTS)
    place.acts["/style"] = lambda: Answer(b"p { color: #333 }", content_type="text/css")
    beside, later = HONEST[:3], HONEST[3:]
    place.pages["/"] = place.links(beside[0], "/holds", *beside[1:])
    place.pages["/holds"] = f"{place.links(*later)}<script>{one.holds}</script>"  # left for them
    place.acts["/never"] = lambda: Answer(stops="before")
    asked = {"concurrency": one.concurrency, "timeout_ms": HELD_MS, "retries": 0}
    with running(place):
        async with browser() as session, asyncio.TaskGroup() as group, turn:
            crawling = group.create_task(crawled(session, home, place.url, **asked))
            await until(lambda: place.hits["/never"] >= 6 or crawling.done())
    kept = crawling.result()
    assert place.hits["/never"] >= 6
    assert not [path for path in HONEST if "script's text" not in kept[path]["content"]]
    assert not [path for path, page in kept.items() if "error" in page]
    again = [path for path, page in kept.items() if page.get("attempts", 1) > 1]
    assert len(again) <= one.most_again, "later pages had a context of their own"


@pytest.mark.thorough
@pytest.mark.case("R93")
async def test_a_page_that_never_settles_has_one_attempt(
    home: Path, browser: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(BEHIND)
    limit_settling(monkeypatch, "/waits", lambda: place.hits["/never"], limit_s=5.0)
    waits = """<p>page</p><script>fetch("/never").catch(() => 0)</script>"""
    place.pages = {"/": place.links("/waits", HONEST[0]), "/waits": waits, HONEST[0]: "fine"}
    place.acts["/never"] = lambda: Answer(stops="before")
    place.server.start()
    async with browser() as session:
        kept = await crawled(session, home, place.url, timeout_ms=FAR_MS, retries=0)
    place.server.stop()
    assert not kept["/waits"]["settled"]
    assert "attempts" not in kept["/waits"]


@contextmanager
def hinting(names: tuple[str, ...], hinted: list[str]) -> Iterator[str]:
    """A site of which `/hints` is answered with interim heads without end; `hinted` has each."""
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </s.css>; rel=preload; as=style\r\n\r\n" * 50

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_GET(self) -> None:
            with contextlib.suppress(OSError):
                if self.path == "/hints":
                    self.wfile.write(hints)
                    hinted.append(self.path)
                while self.path == "/hints":
                    self.wfile.write(hints)
            body = b"<p>fine</p>"
            if self.path == "/":
                body = " ".join(f'<a href="{name}">link</a>' for name in names).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.thorough
@pytest.mark.case("R93")
async def test_a_server_that_sends_interim_heads_without_end_costs_no_page_beside_it(
    home: Path, browser: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The network service has two seconds to answer; the browser itself has all the time it needs.
    monkeypatch.setattr("engine.browser.chromium.launch.ANSWER_S", 2.0)
    answers, hinted = Chromium.answers, list[str]()
    monkeypatch.setattr(Chromium, "answers", lambda one, limit_s=FAR_S: answers(one, limit_s))
    limit_page(monkeypatch, "/hints", lambda: len(hinted))
    with hinting((HONEST[0], "/hints", *HONEST[1:]), hinted) as url:
        async with browser() as session:
            kept = await crawled(session, home, url, concurrency=3, timeout_ms=FAR_MS, retries=2)
    assert [path for path, page in kept.items() if "error" in page] == ["/hints"]
    assert kept["/hints"]["attempts"] == 2, "to blame when it was alone"
    assert not [path for path in HONEST if "fine" not in kept[path]["content"]]
    assert all(page.get("attempts", 1) <= 2 for page in kept.values())


@pytest.mark.case("R93")
@pytest.mark.parametrize(("shared", "times"), [(True, 2), (False, 4)])
async def test_a_silent_browser_drops_its_busiest_page(shared: bool, times: int) -> None:
    silent = Silent()
    silent.shared = shared
    upkeep = BrowserRecycler(Limits(look_s=0.01), lambda: [cast(Chromium, silent)])
    upkeep.start()
    try:
        await silent.ended.wait()  # which comes beside the look at its memory
        assert silent.asked == times
        if not shared:
            await silent.given_up.wait()  # what it says is a queue that nobody needs
    finally:
        silent.looked.set()
        await upkeep.stop(1.0)


# A program in the place of the browser, and its child in the place of a page.
FIRST_PROCESS = """
import subprocess, sys, time
does = {"computes": "while True: pass", "waits": "import time; time.sleep(1000)"}
first, page = sys.argv[1:]
page = subprocess.Popen([sys.executable, "-c", does[page], "--type=renderer"])
print(page.pid, flush=True)
exec(does[first])
"""


@contextmanager
def processes(first: str, page: str) -> Iterator[tuple[Family, psutil.Process]]:
    """The family of a first process and of one that runs a page, and the latter."""
    root = started(FIRST_PROCESS, first, page)
    assert root.stdout is not None
    renderer = psutil.Process(int(root.stdout.readline()))
    family = Family(psutil.Process(root.pid))
    try:
        yield family, renderer
    finally:
        family.end()
        root.communicate(timeout=90)


@pytest.mark.case("R93")
@pytest.mark.parametrize(("first", "page"), [("waits", "computes"), ("computes", "waits")])
def test_a_page_is_kept_if_it_is_not_what_delays_the_browser(first: str, page: str) -> None:
    with processes(first, page) as (family, renderer):
        found = [family.end_flooding_page() for _ in range(2)]  # the first may have come too early
        assert (found, alive(renderer)) == ([False, False], True)


@pytest.mark.case("R93")
def test_a_page_is_ended_that_keeps_the_browser_busy() -> None:
    with processes("computes", "computes") as (family, renderer):
        wait_until(family.end_flooding_page, FAR_S)
        wait_until(lambda: not alive(renderer), FAR_S)


@pytest.mark.case("R75")
async def test_late_growth_blames_no_next_page(home: Path, place: Place, browser: Running) -> None:
    place.pages["/"] = place.links("/next", "/last") + "<script>localStorage.left = 1</script>"
    place.pages["/last"] = "<p>fine</p>"
    hoard = "for (;;) if (kept.length < 75) kept.push(new Uint8Array(8 << 20).fill(1))"
    # What it dies of was left by the page before: in a fresh context it is not there any more.
    place.pages["/next"] = f"""<p>fine</p><script>kept = [];
    if (localStorage.left) setTimeout(() => {{ {hoard} }})</script>"""
    async with browser(Limits(renderer_bytes=300 * MIB, look_s=0.1)) as session:
        kept = await crawled(session, home, place.url, timeout_ms=100_000, retries=0)
    assert [page.get("error") for page in kept.values()] == [None] * 3
    assert kept["/next"]["earlier_errors"] == ["page used too much memory"]
    assert place.hits["/next"] == 2
