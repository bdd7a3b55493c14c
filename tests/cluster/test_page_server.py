"""The work of a worker: it bounds what engines ask, and keeps nothing for those that left."""

from __future__ import annotations

import asyncio

import pytest

from engine.browser.chromium.browser_options import FetcherOptions
from engine.browser.chromium.browser_session import BrowserSession
from engine.cluster import page_records, page_server
from engine.cluster.page_records import (
    Failed,
    Hello,
    PageReply,
    PageRequest,
    Terms,
    packed,
    unpacked,
)
from engine.cluster.page_server import PageServer
from engine.cluster.wire import Misbehaviour
from engine.model.errors import BrowserFailed
from engine.pages.fetch import PageOptions
from fixtures.site.site import Site
from tests.support.engines import until

MIB = 2**20
URL = "http://127.0.0.1:9/"


@pytest.fixture(autouse=True)
def patient_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pages wait as long as a crowded machine needs: the first one imports its engine."""
    monkeypatch.setattr(page_server, "BUSY_S", 60.0)


def request(url: str, session: str = "one", limit_ms: int = 30_000) -> bytes:
    terms, options = Terms(url, pages=4), PageOptions(timeout_ms=limit_ms)
    return packed(PageRequest(session, terms, "static", url, options))


async def answered(server: PageServer, data: bytes) -> PageReply:
    return unpacked(await server.fetch(data), PageReply, MIB)


async def test_a_worker_tells_its_name_and_slots() -> None:
    server = PageServer("rack\x1b 7", 3)
    hello = unpacked(server.hello(), Hello, MIB)
    assert (hello.name, hello.slots) == ("rack_ 7", 3)


async def test_no_more_pages_load_at_once_than_it_has_slots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = PageServer("w", 1)
    with Site(pages=3) as site:
        async with server.running():
            slow = request(f"{site.url}/slow?ms=60000", limit_ms=600_000)
            long = asyncio.create_task(server.fetch(slow))
            await until(lambda: site.hits["/slow"])
            monkeypatch.setattr(page_server, "BUSY_S", 0.05)
            refused = await answered(server, request(f"{site.url}/static/1", "two"))
            assert refused.failed is not None
            assert refused.failed.what == "busy"
            assert not long.done()
            long.cancel()
            await asyncio.wait({long})
            monkeypatch.setattr(page_server, "BUSY_S", 60.0)
            again = await answered(server, request(f"{site.url}/static/1", "two"))
            assert again.fetched is not None
            assert again.fetched.status == 200


async def test_the_sessions_of_engines_that_left_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_server, "IDLE_S", 0.0)
    monkeypatch.setattr(page_server, "LOOK_S", 0.02)
    server = PageServer("w", 4)
    with Site(pages=3) as site:
        async with server.running():
            for number in range(3):
                await answered(server, request(f"{site.url}/static/1", f"engine {number}"))
            await until(lambda: not server.sessions)
            assert (await answered(server, request(f"{site.url}/static/1"))).fetched is not None


async def test_more_sessions_than_a_worker_can_keep_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_server, "MOST_SESSIONS", 1)
    server = PageServer("w", 4)
    with Site(pages=3) as site:
        async with server.running():
            assert (await answered(server, request(f"{site.url}/static/1"))).fetched is not None
            other = await answered(server, request(f"{site.url}/static/1", "two"))
    assert other.failed is not None
    assert other.failed.what == "busy"


async def test_a_page_that_is_given_up_frees_its_slot() -> None:
    server = PageServer("w", 1)
    with Site(pages=3) as site:
        async with server.running():
            loading = asyncio.create_task(server.fetch(request(f"{site.url}/slow?ms=60000")))
            await until(lambda: site.hits["/slow"])
            loading.cancel()
            await asyncio.wait({loading})
            assert (await answered(server, request(f"{site.url}/static/1"))).fetched is not None


async def test_a_failed_page_is_a_reply_with_its_reason() -> None:
    server = PageServer("w", 4)
    async with server.running():
        data = packed(PageRequest("s", Terms("http://a.test/"), "static", URL, PageOptions()))
        reply = await answered(server, data)
    assert reply.failed is not None
    assert (reply.failed.what, reply.failed.kind) == ("page", "blocked")
    assert reply.refusals == [("127.0.0.1:9", "private address")]


async def test_a_page_that_is_too_large_for_the_way_is_a_failed_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_server, "MOST_REPLY_BYTES", 500)
    server = PageServer("w", 4)
    with Site(pages=3) as site:
        async with server.running():
            reply = await answered(server, request(f"{site.url}/static/"))
    assert reply.failed is not None
    assert reply.failed.kind == "too_large"


async def test_a_page_that_exceeds_a_limit_of_the_way_is_a_failed_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_records, "MAX_HTML_CHARS", 10)
    server = PageServer("w", 4)
    with Site(pages=3) as site:
        async with server.running():
            reply = await answered(server, request(f"{site.url}/static/1"))
    assert reply.failed is not None
    assert (reply.failed.kind, reply.failed.message) == (
        "too_large",
        "the page has more than a cluster carries (html)",
    )


async def test_the_time_in_which_the_browser_starts_is_not_that_of_a_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = asyncio.Event()

    async def slow_start(_: BrowserSession, __: FetcherOptions) -> None:
        await started.wait()
        raise BrowserFailed(reason="it is broken")

    monkeypatch.setattr(BrowserSession, "ensure_started", slow_start)
    monkeypatch.setattr(page_server, "BUSY_S", 0.05)
    server = PageServer("w", 4)
    data = packed(PageRequest("s", Terms("http://127.0.0.1:9/"), "browser", "u", PageOptions()))
    async with server.running():
        early = await answered(server, data)
        assert early.failed is not None
        assert early.failed.what == "busy"
        monkeypatch.setattr(page_server, "BUSY_S", 60.0)
        started.set()
        late = await answered(server, data)
        assert late.failed is not None
        assert (late.failed.what, "it is broken" in late.failed.message) == ("browser", True)


async def test_a_worker_that_is_slow_does_not_blame_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = PageServer("w", 4)
    with Site(pages=3) as site:
        async with server.running():
            await answered(server, request(f"{site.url}/static/1"))
            monkeypatch.setattr(page_server, "OWN_MARGIN_S", -30.0)  # no time is left
            reply = await answered(server, request(f"{site.url}/slow?ms=60000"))
    assert reply.failed == Failed("slow")


async def test_what_is_no_request_is_refused() -> None:
    server = PageServer("w", 4)
    async with server.running():
        for data in (b"", b"\x00", b"\x00\x80", packed(PageReply())):
            with pytest.raises(Misbehaviour):
                await server.fetch(data)


async def test_a_worker_that_ends_loads_no_page() -> None:
    server = PageServer("w", 1)
    with Site(pages=3) as site:
        async with server.running():
            assert (await answered(server, request(f"{site.url}/static/1"))).fetched is not None
        late = await answered(server, request(f"{site.url}/static/1"))
        assert site.hits["/static/1"] == 1
    assert late.failed is not None
    assert late.failed.what == "busy"
