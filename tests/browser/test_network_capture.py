"""The capture of a tab includes frames of other sites, and waits for no request that never ends."""

from __future__ import annotations

import asyncio
import time

import pytest
from playwright.async_api import Request

from engine.archive.exchange import Exchange, LeftOut
from engine.browser.chromium.browser_options import FetcherOptions
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.page.network_capture import NetworkCapture
from engine.egress.egress_policy import Policy
from engine.pages.fetch import PageOptions
from engine.profiles.profile import Profile
from engine.profiles.sign_in import SignIn
from tests.archive.rich_site import rich_site


class Kept:
    """An archive in memory."""

    is_full = False

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.left_out: list[LeftOut] = []

    async def record(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)

    def leave_out(self, reason: LeftOut) -> None:
        self.left_out.append(reason)

    def bodies(self) -> dict[str, bytes]:
        return {one.url: one.body for one in self.exchanges}


async def test_frames_of_other_sites_are_kept_with_all_that_they_load() -> None:
    kept, session = Kept(), BrowserSession()
    with rich_site() as rich, rich_site() as other:
        elsewhere = other.url.replace("127.0.0.1", "localhost")
        markup = f"<p>Text</p><iframe src={elsewhere}/second></iframe>".encode()
        rich.extra["/outer"] = (200, {"Content-Type": "text/html"}, markup)
        policy = Policy.for_start(rich.url, named=(elsewhere,))
        options = FetcherOptions(policy, block_resources=False, archive=kept)
        try:
            async with session.fetcher(options) as fetcher:
                await fetcher.fetch(f"{rich.url}/outer", PageOptions(block_resources=False))
        finally:
            await session.aclose()
    bodies = kept.bodies()
    assert bodies[f"{rich.url}/outer"] == markup
    assert b"Text of the second page" in bodies[f"{elsewhere}/second"]
    assert bodies[f"{elsewhere}/tagged.png"].startswith(b"\x89PNG")
    assert kept.left_out == []


async def test_texts_of_a_page_that_was_given_up_are_stored_when_its_tab_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept, session, held = Kept(), BrowserSession(), asyncio.Event()
    may_hold = NetworkCapture._may_hold

    def told(capture: NetworkCapture, exchange: Exchange) -> bool:
        held.set()
        return may_hold(capture, exchange)

    monkeypatch.setattr(NetworkCapture, "_may_hold", told)
    with rich_site() as rich:
        endless = b"<p>Text</p><script>setInterval(() => fetch('/second'), 20)</script>"
        rich.extra["/endless"] = (200, {"Content-Type": "text/html"}, endless)
        made = Profile(name="p", url=rich.url, sites=("other.test",), created_at=1, signed_in_at=1)
        policy = Policy.for_start(rich.url)
        options = FetcherOptions(policy, archive=kept, sign_in=SignIn(made, {"cookies": []}))
        try:
            async with session.fetcher(options) as fetcher:
                given_up = asyncio.create_task(
                    fetcher.fetch(f"{rich.url}/endless", PageOptions(timeout_ms=30_000))
                )
                await held.wait()
                given_up.cancel()
                await asyncio.gather(given_up, return_exceptions=True)
                await fetcher.fetch(f"{rich.url}/second", PageOptions())
                there = kept.bodies()
        finally:
            await session.aclose()
    assert there[f"{rich.url}/endless"] == endless


class Full(Kept):
    """An archive at its limit."""

    is_full = True


async def test_nothing_is_read_for_a_full_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, session, read = Full(), BrowserSession(), list[str]()

    async def body(request: Request, _: object) -> bytes:
        read.append(request.url)
        return b""

    monkeypatch.setattr("engine.browser.page.network_capture._body", body)
    with rich_site() as rich:
        options = FetcherOptions(Policy.for_start(rich.url), archive=kept)
        try:
            async with session.fetcher(options) as fetcher:
                await fetcher.fetch(f"{rich.url}/second", PageOptions())
        finally:
            await session.aclose()
    assert (read, kept.exchanges) == ([], [])
    assert kept.left_out
    assert set(kept.left_out) == {"over_limit"}


class Slow(Kept):
    """An archive on a slow disk."""

    async def record(self, exchange: Exchange) -> None:
        await asyncio.to_thread(time.sleep, 1.0)
        await super().record(exchange)


async def test_a_page_is_left_only_when_its_bodies_are_stored() -> None:
    kept, session = Slow(), BrowserSession()
    with rich_site() as rich:
        policy = Policy.for_start(rich.url)
        options = FetcherOptions(policy, block_resources=False, archive=kept)
        try:
            async with session.fetcher(options) as fetcher:
                await fetcher.fetch(f"{rich.url}/second", PageOptions(block_resources=False))
                there = set(kept.bodies())
        finally:
            await session.aclose()
    assert there >= {f"{rich.url}{path}" for path in ("/second", "/site.css", "/tagged.png")}
