"""The look of a task over the direct connection: what pages and servers see, as with Playwright.

Workers of workers are compared with their own worker instead: Playwright does not always give them
the locale (one page of about 40 on a busy machine).
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest

from engine.browser.chromium import launch
from engine.browser.chromium.browser_options import PLAIN, BrowserLook, FetcherOptions
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.chromium.devices import device_named
from engine.egress.egress_policy import Policy
from engine.egress.own_headers import own_headers
from engine.pages.fetch import PageOptions
from engine.pages.static_engine import SHARED_AGENT
from engine.sample.site import Answer
from tests.support.heard_requests import Listener, two_sites

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Playwright serves all crawls")
Heard = list[tuple[str, list[tuple[str, str]]]]
PATHS = ("/", "/frame", "/asked", "/worker.js", "/of-worker", "/nested.js", "/of-nested")
SEEN = """[navigator.userAgent, navigator.platform, navigator.languages,
  navigator.userAgentData && JSON.stringify(navigator.userAgentData), innerWidth, innerHeight,
  screen.width, screen.height, screen.orientation.type, screen.orientation.angle,
  navigator.maxTouchPoints, 'ontouchstart' in window, devicePixelRatio,
  matchMedia('(pointer: coarse)').matches, matchMedia('(max-width: 500px)').matches,
  Intl.DateTimeFormat().resolvedOptions().timeZone, new Date(0).toString(),
  Intl.DateTimeFormat().resolvedOptions().locale, (1234.5).toLocaleString()]"""
HEAD = "<meta name=viewport content='width=device-width, initial-scale=1'>"
TELL = f"document.body.append(JSON.stringify({SEEN}))"
# Told at last: what the worker says, when the frame has been served, too.
TELL_PARTS = """const one = (target) => new Promise((done) => target.onmessage = done);
  Promise.all([one(new Worker('/worker.js')), one(window)]).then(([{data}]) => {
    const told = document.createElement('p'); told.id = 'told';
    told.append(JSON.stringify(data)); document.body.append(told) })"""
OF_WORKER = """[navigator.userAgent, navigator.languages, navigator.platform,
  new Date(0).toString(), (1234.5).toLocaleString()]"""
IN_WORKER = f"""fetch('/of-worker').then(() => {{
  new Worker('/nested.js').onmessage = (e) => postMessage([{OF_WORKER}, e.data]); }})"""
IN_NESTED = f"fetch('/of-nested').then(() => postMessage({OF_WORKER}))"
PHONE = BrowserLook(device=device_named("Pixel 7"), locale="de-DE", timezone="Europe/Berlin")
LOOKS: dict[str, tuple[BrowserLook, str | None]] = {
    "plain": (PLAIN, None),
    "phone": (PHONE, None),
    "phone across": (BrowserLook(device=device_named("Pixel 7 landscape")), None),
    "iphone": (BrowserLook(device=device_named("iPhone 15")), None),
    "desktop": (BrowserLook(device=device_named("Desktop Chrome"), viewport=(900, 700)), None),
    "named": (
        BrowserLook(viewport=(390, 844), user_agent="Phone/1", locale="fr", timezone="Asia/Tokyo"),
        None,
    ),
    "locale": (BrowserLook(locale="pt-BR"), None),
    "zone": (BrowserLook(timezone="America/Lima"), None),
    "both engines": (PLAIN, SHARED_AGENT),
}
# Frames of other sites have no process of their own in a usual headless browser.
APART = "--site-per-process"
TOLD = PageOptions(wait_for="#told", timeout_ms=100_000)


async def told(
    session: BrowserSession, options: FetcherOptions, sites: tuple[Listener, Listener]
) -> Any:
    """What pages tell of themselves, and the headers that the servers heard."""
    own, other = sites
    own.heard.clear()
    other.heard.clear()
    async with session.fetcher(options) as fetcher:
        found = [
            await fetcher.fetch(f"{own.url}/", msgspec.structs.replace(TOLD, fresh=fresh))
            for fresh in (False, True)
        ]
    heard = sorted(
        (path, sorted(sent.items())) for path, sent in (*own.heard, *other.heard) if path in PATHS
    )
    return [page.text for page in found], heard


def of_documents(text: str) -> tuple[str, Any]:
    """What a page and its worker tell, without the worker of the worker."""
    page, _, workers = text.partition("\n\n")
    return page, json.loads(workers)[0]


def outside_nested(heard: Heard) -> Heard:
    return [one for one in heard if one[0] != "/of-nested"]


def expect_nested_alike(texts: list[str], heard: Heard) -> None:
    """What the worker of a worker tells and sends is what its worker does."""
    for text in texts:
        worker, nested = json.loads(text.partition("\n\n")[2])
        assert nested == worker
    of_worker, of_nested = (
        [[one for one in sent if one[0] != "referer"] for path, sent in heard if path == asked]
        for asked in ("/of-worker", "/of-nested")
    )
    assert of_nested == of_worker


@pytest.mark.own_browser
@pytest.mark.timeout(900)  # many cases in one browser
@pytest.mark.parametrize("apart", [pytest.param(False, marks=pytest.mark.thorough), True])
async def test_a_look_is_the_same_over_both_connections(
    subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    if apart:
        monkeypatch.setattr(launch, "FLAGS", (*launch.FLAGS, APART))
    session = BrowserSession(os.environ.get("OC_BROWSER"))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(session.aclose)
        sites = stack.enter_context(two_sites())
        own, other = sites
        own["/"] = (
            f"{HEAD}<script>{TELL_PARTS}</script><iframe src={other.url}/frame></iframe>"
            f"<script>{TELL}</script>"
        )
        own["/worker.js"] = Answer(IN_WORKER.encode(), 200, "text/javascript")
        own["/nested.js"] = Answer(IN_NESTED.encode(), 200, "text/javascript")
        own["/of-worker"] = own["/of-nested"] = other["/asked"] = "x"
        seen = f"encodeURIComponent(JSON.stringify({SEEN}))"
        # Chromium tells a frame with a process of its own its size after its scripts began.
        other["/frame"] = (
            f"{HEAD}<script>const tell = () => innerWidth ? fetch('/asked', {{headers: {{'X-Seen': "
            f"{seen}}}}}).then(() => parent.postMessage(1, '*')) : setTimeout(tell, 10); tell()"
            "</script>"
        )
        policy = Policy(None, [one.place for one in sites])
        sent = own_headers([("X-Team", "birds")], [own.url])
        looks = LOOKS | {"headers": (BrowserLook(headers=sent), None)}
        for name in ("phone", "named") if apart else looks:
            look, agent = looks[name]
            options = FetcherOptions(policy, pages=1, look=look, user_agent=agent)
            with subtests.test(name):
                direct = msgspec.structs.replace(options, direct=True)
                (texts, heard), known = [
                    await told(session, one, sites) for one in (direct, options)
                ]
                told_there, heard_there = known
                assert [*map(of_documents, texts)] == [*map(of_documents, told_there)]
                assert outside_nested(heard) == outside_nested(heard_there)
                expect_nested_alike(texts, heard)
                assert texts[0].count("Mozilla") + texts[0].count("Phone/1") >= 3  # workers, too
                assert {path for path, _ in heard} == set(PATHS)
