"""The limit of a request begins when it has a connection, for which it may have to wait."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterator
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.async_api import CDPSession, Error

from engine.browser.direct.devtools_connection import Emitter
from engine.browser.page import extraction_options, request_queue
from engine.browser.page.request_queue import Connections, RequestQueue
from engine.egress.proxy_listener import MOST_IN_ALL, MOST_TO_PLACE
from engine.pages.fetch import PageOptions
from engine.sample.site import Answer
from tests.browser.conftest import Making, Pages
from tests.support.engines import until

PATIENT = PageOptions(timeout_ms=200_000)
HELD_S = extraction_options.REQUEST_MS / 1000 + 2  # longer than the limit of a request
ASKS = """<p>page</p><script>for (const path of PATHS) fetch(path).then((answer) => answer.text())
  .then((text) => document.body.append(text))</script>"""


def asking(*paths: str) -> str:
    return ASKS.replace("PATHS", f"{[*paths]}")


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are informed soon, so that a stalled machine has most of the limit for it."""
    monkeypatch.setattr(request_queue, "QUEUED_S", 0.1)


@pytest.mark.thorough
@pytest.mark.own_browser
@pytest.mark.usefixtures("soon")
async def test_pages_wait_for_requests_that_wait_for_a_connection(
    browsing: Making, subtests: pytest.Subtests
) -> None:
    async def load(*, direct: bool) -> None:
        pages = Pages()
        held = [f"/held/{number}" for number in range(MOST_TO_PLACE)]
        for path in held:
            pages[path] = Answer(b" slow", 200, "text/plain", delay_s=HELD_S)
        for path in ("/own", "/other"):
            pages[path] = Answer(f" {path}".encode(), 200, "text/plain")
        pages["/"], pages["/beside"] = asking(*held, "/own"), asking("/other")
        pages.server.start()
        # So many tabs that they are followed through Playwright, too.
        async with browsing(pages.url, direct=direct, pages=MOST_TO_PLACE + 1) as made:
            first = asyncio.create_task(made.fetcher.fetch(pages.url, PATIENT))
            await until(lambda: all(pages.hits[path] for path in held))
            beside = await made.fetcher.fetch(f"{pages.url}/beside", PATIENT)
            whole = await first
        pages.server.stop()
        with subtests.test(direct=direct):
            assert beside.settled
            assert "/other" in beside.text
            assert whole.settled
            assert whole.text.count("slow") == MOST_TO_PLACE
            assert "/own" in whole.text

    await asyncio.gather(load(direct=True), load(direct=False))


# A frame that is added when all connections are in use, to the page or to a frame in it.
ADDS = """<iframe hidden src=/around></iframe><script>
onmessage = ({ data }) => document.body.append(data);
onload = async () => {
  await Promise.all(PATHS.map((path) => fetch(path))); // the heads of the answers
  const frame = OWNER.createElement("iframe");
  frame.hidden = true;
  frame.src = "/data";
  OWNER.body.append(frame);
}</script>"""


@pytest.mark.own_browser
@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    "owner", ["document", pytest.param("frames[0].document", marks=pytest.mark.thorough)]
)
async def test_pages_wait_for_frames_that_wait_for_a_connection(
    browsing: Making, owner: str, subtests: pytest.Subtests
) -> None:
    async def load(*, direct: bool) -> None:
        pages = Pages()
        held = [f"/held/{number}" for number in range(MOST_TO_PLACE)]
        for path in held:
            pages[path] = Answer(b" slow" * 20, 200, "text/plain", spread_s=HELD_S)
        pages["/around"] = "around"
        pages["/data"] = "<script>top.postMessage('the data', '*')</script>"
        pages["/"] = "<p>page</p>" + ADDS.replace("OWNER", owner).replace("PATHS", f"{held}")
        pages.server.start()
        async with browsing(pages.url, direct=direct) as made:
            found = await made.fetcher.fetch(pages.url, PATIENT)
        pages.server.stop()
        with subtests.test(direct=direct):
            assert "the data" in found.text
            assert found.settled

    await asyncio.gather(load(direct=True), load(direct=False))


@pytest.mark.usefixtures("soon")
async def test_a_request_that_waits_for_something_else_has_its_limit(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction_options, "REQUEST_MS", 1_000)
    # Chromium sends the second one only when the first has been answered: it may serve both.
    pages["/held"] = Answer(b"", 200, "text/plain", delay_s=600.0)
    pages["/"] = asking("/held", "/held")
    async with browsing(pages.url, direct=True, pages=7) as made:
        found = await made.fetcher.fetch(pages.url, PATIENT)
    assert pages.hits["/held"] == 1
    assert not found.settled
    assert found.render_ms < PATIENT.timeout_ms / 2


class Reports(Emitter):
    """The network events of one tab, and what its page was told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, int]] = []  # address, and how many requests to it wait
        self.frames: list[list[Any]] = []  # documents that frames wait for, as last told
        self.informed: set[str] = set()  # frames
        self.messages = 0
        self.refuses: set[str] = set()
        self.refused: list[str] = []

    async def send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        if method in self.refuses:
            self.refused.append(method)
            raise Error("refused")
        if method == "Page.createIsolatedWorld":
            self.informed.add(params["frameId"])
        if method == "Runtime.evaluate":
            self.messages += 1
            detail = params["expression"].partition("detail: ")[2].removesuffix(" }))")
            told = json.loads(json.loads(detail))
            self.told += map(tuple, told["queued"])
            self.frames = told.get("frames", self.frames)
        return {"executionContextId": 1}

    def report(self, event: str, request_id: str, url: str = "", **more: Any) -> None:
        request = {"requestId": request_id, "request": {"url": url}, "type": "Fetch"}
        self.emit(f"Network.{event}", {**request, "frameId": "frame", **more})

    def ask(self, request_id: str, url: str, **more: Any) -> None:
        self.report("requestWillBeSent", request_id, url, **more)

    def send_all(self, *request_ids: str) -> None:
        for request_id in request_ids:
            self.report("requestWillBeSentExtraInfo", request_id)


def see_to(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.result())


def following(reports: Reports, connections: Connections) -> RequestQueue:
    made = RequestQueue(cast("CDPSession", reports), connections, "name", "frame", see_to)
    made.begin()
    return made


SITE, OTHER = "https://example.com", "https://example.org"
EVENTS = st.tuples(
    st.sampled_from(
        ["requestWillBeSent", "requestWillBeSentExtraInfo", "responseReceived", "loadingFinished"]
    ),
    st.sampled_from("abcdefgh"),
    st.sampled_from([f"{SITE}/a", f"{SITE}/b", f"{OTHER}/a", "data:,x"]),
)


@given(st.lists(EVENTS, max_size=60))
def test_the_end_of_a_page_returns_all_its_connections(events: list[tuple[str, str, str]]) -> None:
    async def follow() -> None:
        reports, connections = Reports(), Connections()
        queue = following(reports, connections)
        for event, request_id, url in events:
            reports.report(event, request_id, url)
        assert sum(connections.in_use.values()) <= len(queue._sent)
        queue.end()
        assert not connections.in_use
        assert not queue.is_waiting

    asyncio.run(follow())


NUMBERS = [f"{number}" for number in range(MOST_TO_PLACE)]


class Crowd:
    """A tab whose requests hold all connections to a site, and one with a request that waits."""

    def __init__(self) -> None:
        self.connections = Connections()
        self.others, self.own = Reports(), Reports()
        self.queues = [following(one, self.connections) for one in (self.others, self.own)]
        for number in NUMBERS:
            self.others.ask(number, f"{SITE}/{number}", type="Image")
        self.others.send_all(*NUMBERS)

    @property
    def waiting(self) -> list[bool]:
        return [queue.is_waiting for queue in self.queues]

    def end(self) -> None:
        for queue in self.queues:
            queue.end()
        assert not self.connections.in_use


@pytest.fixture
def crowd(soon: None) -> Iterator[Crowd]:
    made = Crowd()
    yield made
    made.end()


async def test_a_page_is_told_how_many_of_its_requests_to_an_address_wait(crowd: Crowd) -> None:
    crowd.own.ask("elsewhere", f"{OTHER}/x")
    for request_id in ("first", "second"):
        crowd.own.ask(request_id, f"{SITE}/x")
    await until(lambda: (f"{SITE}/x", 2) in crowd.own.told)
    assert crowd.waiting == [False, True]
    crowd.others.report("loadingFinished", "0")
    crowd.own.send_all("first")
    await until(lambda: crowd.own.told[-1] == (f"{SITE}/x", 1))
    crowd.own.report("loadingFailed", "second")  # called off by its page
    await until(lambda: crowd.own.told[-1] == (f"{SITE}/x", 0))
    assert crowd.waiting == [False, False]
    assert {address for address, _ in crowd.own.told} == {f"{SITE}/x"}


async def test_a_page_is_told_which_documents_its_frames_wait_for(crowd: Crowd) -> None:
    inner: dict[str, Any] = {"frameId": "inner", "type": "Document"}
    crowd.own.emit("Page.frameNavigated", {"frame": {"id": "frame", "url": f"{SITE}/"}})
    crowd.own.ask("download", f"{OTHER}/file", type="Document")  # the page stays
    crowd.own.ask("elsewhere", f"{OTHER}/x", **inner)
    crowd.own.ask("one", f"{SITE}/x", **inner)
    await until(lambda: crowd.own.frames == [["one", f"{SITE}/x", False]])
    await until(lambda: crowd.own.frames == [["one", f"{SITE}/x", True]])
    crowd.others.report("loadingFinished", "0")
    crowd.own.send_all("one")
    await until(lambda: crowd.own.frames == [["one", f"{SITE}/x", False]])
    crowd.own.ask("two", f"{SITE}/x", **inner)
    crowd.own.report("loadingFailed", "one", canceled=True)  # by an answer without a body
    await until(lambda: [name for name, *_ in crowd.own.frames] == ["two"])
    crowd.own.ask("two", f"{OTHER}/x", redirectResponse={}, **inner)  # whose end is not reported
    await until(lambda: not crowd.own.frames)
    crowd.own.ask("three", f"{SITE}/x", **inner)
    crowd.own.ask("four", f"{SITE}/y", **inner)  # instead of the other one, which has no end
    crowd.own.ask("beside", f"{SITE}/z", frameId="beside", type="Document")
    await until(lambda: [name for name, *_ in crowd.own.frames] == ["four", "beside"])
    crowd.own.emit("Page.frameDetached", {"frameId": "inner"})
    await until(lambda: [name for name, *_ in crowd.own.frames] == ["beside"])
    crowd.own.emit("Page.frameStoppedLoading", {"frameId": "beside"})  # the document before
    crowd.own.ask("film", f"{SITE}/film", frameId="film", type="Document")
    crowd.own.report("responseReceived", "film")
    crowd.own.emit("Page.frameStoppedLoading", {"frameId": "film"})  # the only end of media
    crowd.own.ask("last", f"{SITE}/x", frameId="last", type="Document")
    await until(lambda: [name for name, *_ in crowd.own.frames] == ["beside", "last"])
    crowd.own.report("loadingFinished", "last")
    await until(lambda: [name for name, *_ in crowd.own.frames] == ["beside"])
    crowd.own.emit("Page.frameNavigated", {"frame": {"id": "frame", "url": f"{SITE}/y"}})
    await until(lambda: not crowd.own.frames)
    assert crowd.own.informed == {"frame"}


async def test_a_request_that_finds_a_connection_free_waits_no_longer(crowd: Crowd) -> None:
    crowd.own.ask("waits", f"{SITE}/x")
    await until(lambda: crowd.own.told)
    crowd.queues[0].end()
    await until(lambda: crowd.own.told[-1] == (f"{SITE}/x", 0))


async def test_a_redirect_that_waits_has_the_address_that_its_page_knows(crowd: Crowd) -> None:
    crowd.own.ask("one", f"{OTHER}/x")
    crowd.own.send_all("one")
    crowd.own.ask("one", f"{SITE}/x", redirectResponse={})
    await until(lambda: crowd.own.told)
    assert crowd.own.told[-1] == (f"{OTHER}/x", 1)


async def test_a_request_waits_for_its_preflight_and_not_for_a_connection(crowd: Crowd) -> None:
    crowd.others.report("loadingFinished", "0")
    crowd.own.ask("preflight", f"{SITE}/x", type="Preflight")
    crowd.own.send_all("preflight")
    crowd.own.ask("one", f"{SITE}/x")
    crowd.own.ask("other", f"{SITE}/y")
    await until(lambda: (f"{SITE}/y", 1) in crowd.own.told)
    assert {address for address, _ in crowd.own.told} == {f"{SITE}/y"}


@pytest.mark.parametrize("kind", ["EventSource", "Fetch"])
async def test_a_page_does_not_wait_for_connections_that_it_holds_open_itself(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    if kind == "Fetch":
        monkeypatch.setattr(request_queue, "REQUEST_MS", 0)
    crowd.queues[0].end()
    for number in NUMBERS:
        crowd.own.ask(number, f"{SITE}/{number}", type=kind)
    crowd.own.send_all(*NUMBERS)
    crowd.own.ask("waits", f"{SITE}/x")
    await asyncio.sleep(3 * request_queue.QUEUED_S)
    assert not crowd.own.told
    assert crowd.waiting == [False, False]


async def test_requests_that_share_a_connection_do_not_wait_for_one(crowd: Crowd) -> None:
    crowd.others.report("responseReceived", "0", response={"protocol": "h2"})
    assert not crowd.connections.is_full(SITE)


async def test_an_answer_whose_end_is_not_reported_holds_no_connection(crowd: Crowd) -> None:
    crowd.others.report("responseReceived", "3", response={"protocol": "http/1.1"})
    crowd.own.ask("one", f"{SITE}/x")
    crowd.own.send_all("one")  # it had room, so one of the others has ended
    assert crowd.connections.in_use == {SITE: MOST_TO_PLACE}
    crowd.others.report("loadingFinished", "3")
    assert crowd.connections.in_use == {SITE: MOST_TO_PLACE}


@pytest.mark.parametrize("waits", [True, False])
async def test_the_next_document_may_wait_for_a_connection(crowd: Crowd, waits: bool) -> None:
    queue = crowd.queues[1]
    if not waits:
        crowd.others.report("loadingFinished", "0")
    crowd.own.ask("document", f"{SITE}/next", type="Document")
    if waits:
        await until(lambda: queue.is_leaving("frame"))
        await until(lambda: queue._unsent["document"].waited)
        assert not queue.is_leaving("another")
    crowd.own.send_all("document")
    assert queue.is_leaving("frame") == waits  # it may be answered within its limit
    crowd.own.report("responseReceived", "document")
    assert not queue.is_leaving("frame")


async def test_pages_do_not_wait_for_connections_that_others_hold_open(crowd: Crowd) -> None:
    crowd.queues[0].begin()
    for number in NUMBERS:
        crowd.others.ask(number, f"{SITE}/{number}", type="EventSource")
    crowd.others.send_all(*NUMBERS)
    crowd.own.ask("waits", f"{SITE}/x")
    await until(lambda: crowd.waiting[1])  # so it may be loaded once more
    await asyncio.sleep(3 * request_queue.QUEUED_S)
    assert not crowd.own.told


async def test_connections_that_are_shared_count_once(crowd: Crowd) -> None:
    crowd.others.report("responseReceived", "0", response={"protocol": "h2"})
    for number in range(MOST_IN_ALL):
        crowd.others.ask(f"more {number}", f"{SITE}/{number}", type="Image")
        crowd.others.send_all(f"more {number}")
    assert not crowd.connections.is_full(OTHER)


async def test_a_page_is_told_of_many_requests_at_once(crowd: Crowd) -> None:
    asked = [f"{SITE}/many/{number}" for number in range(50)]
    for url in asked:
        crowd.own.ask(url, url)
    await until(lambda: {address for address, _ in crowd.own.told} == {*asked})
    assert crowd.own.messages < len(asked)


async def test_a_page_that_cannot_be_told_is_told_later(crowd: Crowd) -> None:
    crowd.own.refuses = {"Page.createIsolatedWorld", "Runtime.evaluate"}
    crowd.own.ask("waits", f"{SITE}/x")
    await until(lambda: crowd.own.refused)
    crowd.own.refuses = {"Runtime.evaluate"}
    await until(lambda: "Runtime.evaluate" in crowd.own.refused)
    crowd.own.refuses = set()
    await until(lambda: (f"{SITE}/x", 1) in crowd.own.told)


async def test_a_redirect_returns_the_connection_of_the_request_before() -> None:
    reports, connections = Reports(), Connections()
    queue = following(reports, connections)
    for _ in range(2 * MOST_TO_PLACE):
        reports.ask("one", f"{SITE}/x")
        reports.send_all("one")
    assert connections.in_use == {SITE: 1}
    queue.end()


async def test_a_request_may_be_sent_before_it_is_reported() -> None:
    reports, connections = Reports(), Connections()
    queue = following(reports, connections)
    reports.send_all("one")
    reports.ask("one", f"{SITE}/x")
    assert connections.in_use == {SITE: 1}
    reports.report("loadingFinished", "one")
    assert not connections.in_use
    queue.end()
