"""The limit of a request begins when it has a connection, for which it may have to wait."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.async_api import CDPSession

from engine.browser.direct.devtools_connection import Emitter
from engine.browser.page import extraction_options, request_queue
from engine.browser.page.request_queue import Connections, RequestQueue
from engine.egress.proxy_listener import MOST_TO_PLACE
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
        self.told: list[str] = []

    async def send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "Runtime.evaluate":
            self.told.append(params["expression"])
        return {"executionContextId": 1}

    def report(self, event: str, request_id: str, url: str = "", kind: str = "Fetch") -> None:
        request = {"requestId": request_id, "request": {"url": url}, "type": kind}
        self.emit(f"Network.{event}", {**request, "frameId": "frame"})

    def ask(self, request_id: str, url: str) -> None:
        self.report("requestWillBeSent", request_id, url)


def see_to(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.result())


def following(reports: Reports, connections: Connections) -> RequestQueue:
    made = RequestQueue(cast("CDPSession", reports), connections, "name", see_to)
    made.begin()
    return made


SITE, OTHER = "https://example.com", "https://example.org"
EVENTS = st.tuples(
    st.sampled_from(
        ["requestWillBeSent", "requestWillBeSentExtraInfo", "loadingFinished", "loadingFailed"]
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
        assert min(connections._places.values(), default=1) > 0
        assert connections._places.total() <= len("abcdefgh")
        queue.end()
        assert not connections._places
        assert not queue.is_waiting

    asyncio.run(follow())


async def test_a_page_is_told_once_that_its_request_waits_and_once_that_it_was_sent(
    soon: None,
) -> None:
    first, second, connections = Reports(), Reports(), Connections()
    others, queue = following(first, connections), following(second, connections)
    for number in range(MOST_TO_PLACE):
        first.ask(f"{number}", f"{SITE}/{number}")
        first.report("requestWillBeSentExtraInfo", f"{number}")
    second.ask("elsewhere", f"{OTHER}/x")
    second.ask("waits", f"{SITE}/x")
    assert [queue.is_waiting, others.is_waiting] == [True, False]
    await until(lambda: second.told)
    await asyncio.sleep(3 * request_queue.QUEUED_S)  # for one too many
    (told,) = second.told
    assert "queued" in told
    assert f"{SITE}/x" in told
    first.report("loadingFinished", "0")
    second.report("requestWillBeSentExtraInfo", "waits")
    await until(lambda: len(second.told) > 1)
    assert "sent" in second.told[-1]
    assert not queue.is_waiting
    others.end()
    queue.end()


async def test_a_request_that_finds_a_connection_free_is_told_to_wait_no_longer(soon: None) -> None:
    first, second, connections = Reports(), Reports(), Connections()
    others, queue = following(first, connections), following(second, connections)
    for number in range(MOST_TO_PLACE):
        first.ask(f"{number}", f"{SITE}/{number}")
        first.report("requestWillBeSentExtraInfo", f"{number}")
    second.ask("waits", f"{SITE}/x")
    await until(lambda: second.told)
    others.end()
    await until(lambda: len(second.told) > 1)
    assert "sent" in second.told[-1]
    queue.end()


async def test_a_redirect_returns_the_connection_of_the_request_before() -> None:
    reports, connections = Reports(), Connections()
    queue = following(reports, connections)
    for _ in range(2 * MOST_TO_PLACE):
        reports.ask("one", f"{SITE}/x")
        reports.report("requestWillBeSentExtraInfo", "one")
    assert connections._places == {SITE: 1}
    queue.end()


async def test_a_request_may_be_sent_before_it_is_reported() -> None:
    reports, connections = Reports(), Connections()
    queue = following(reports, connections)
    reports.report("requestWillBeSentExtraInfo", "one")
    reports.ask("one", f"{SITE}/x")
    assert connections._places == {SITE: 1}
    reports.report("loadingFinished", "one")
    assert not connections._places
    queue.end()
