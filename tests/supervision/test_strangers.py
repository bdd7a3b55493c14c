"""Other programs of this machine that connect to a crawl's proxy and say nothing."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from pathlib import Path

import pytest

from engine.browser.chromium.browser_session import BrowserSession
from tests.supervision.conftest import Place, Running, crawled

pytestmark = pytest.mark.usefixtures("patience")
PAGES = 40
BEHIND = "127.0.0.2"  # this machine by a spelling for which the browser asks its proxy
STRANGERS = 700  # more than the proxy has room for


@pytest.mark.case("R92")
@pytest.mark.skipif(sys.platform != "linux", reason="there is no such address")
@pytest.mark.parametrize("told", [True, False])
async def test_silent_connections_to_the_proxy_cost_no_page(
    home: Path, browser: Running, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not the system tells whose the connections are."""
    if not told:
        monkeypatch.setattr("engine.browser.chromium.driver.Family.ports", lambda _: None)
    place, paths = Place(BEHIND), [f"/{number}" for number in range(1, PAGES)]
    place.server.start()
    place.pages = {path: f"<p>{path}</p>" for path in paths} | {"/": place.links(*paths)}
    async with browser() as session:
        crawling = asyncio.create_task(
            crawled(session, home, place.url, concurrency=3, retries=0, max_pages=PAGES)
        )
        held = await crowd(session, crawling)
        kept = await crawling
        for one in held:
            one.close()
    place.server.stop()
    assert len(held) >= STRANGERS
    assert len(kept) == PAGES
    assert not [page["error"] for page in kept.values() if "error" in page]
    assert not [path for path, page in kept.items() if "attempts" in page]


async def crowd(session: BrowserSession, crawling: asyncio.Task[object]) -> list[socket.socket]:
    """Connect to every port of the proxy, as long as the crawl goes on."""
    held: list[socket.socket] = []
    while not crawling.done():
        ports = [listener.port for listener in session.proxy._listeners if listener.port][1:]
        for port in ports * (len(held) < 2 * STRANGERS) * 50:
            one = socket.socket()
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                one.connect(("127.0.0.1", port))
            held.append(one)
        await asyncio.sleep(0.005)
    return held
