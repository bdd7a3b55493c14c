"""Whatever a page does to reach a private place, nothing arrives there (real Chromium).

Each way is tried from a start on this machine, which the browser loads past the proxy, and
from a public one, which it loads through it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Error

from engine.browser.chromium.browser_options import FetcherOptions, InstanceOptions
from engine.egress.egress_policy import KEPT_S, Policy
from engine.model.errors import PageError
from engine.model.listening import close_server
from engine.pages.fetch import Fetcher, PageOptions
from engine.pages.static_engine import open_static
from fixtures.hostile.reaching import TRAPS
from fixtures.hostile.site import HostileSite
from tests.browser.test_egress import LOOPBACK_SPELLINGS, METADATA, PRIVATE
from tests.egress.conftest import START, World
from tests.support.engines import until

OPTIONS = PageOptions(timeout_ms=100_000, settle_ms=150)
QUIET = PageOptions(timeout_ms=100_000, settle_ms=1_000)
PAGES = "11.0.0.7"
WAYS = [trap.path for trap in TRAPS]
MOVES = [
    f"/redirect/{name}"
    for name in ("canary", "number", "mapped", "metadata", "password", "two-hops", "slashes")
]
# Ways that do reach the canary where it is allowed: the traps are no blanks.
LIVE = {"img", "script", "style", "frame", "fetch", "xhr", "beacon", "websocket", "worker"}
MORE = """<p>more</p><script>
const at = (how) => `http://CANARY/?how=${how}`;
addEventListener('load', () => {
  document.body.insertAdjacentHTML('beforeend', `
    <portal src="${at('portal')}"></portal><fencedframe></fencedframe>
    <a href="${at('anchor')}" attributionsrc="${at('attribution')}" ping="${at('ping')}"></a>
    <img attributionsrc="${at('attributed')}" src="data:,">
    <link rel=compression-dictionary href="${at('dictionary')}">
    <link rel=search href="${at('search')}" type="application/opensearchdescription+xml">
    <form target=_blank action="${at('form')}"></form><iframe src="ftp://CANARY/"></iframe>
    <iframe src="view-source:${at('source')}"></iframe><embed src="file:///etc/passwd">`);
  const rtc = new RTCPeerConnection({iceServers: [
    {urls: 'turn:CANARY?transport=tcp', username: 'u', credential: 'c'},
    {urls: 'turns:CANARY?transport=tcp', username: 'u', credential: 'c'},
    {urls: 'stun:localhost:PORT'}, {urls: 'stun:CANARY'}], iceCandidatePoolSize: 4});
  rtc.onicegatheringstatechange = () => window.gathered = rtc.iceGatheringState === 'complete';
  rtc.createDataChannel('x'); rtc.createOffer().then(o => rtc.setLocalDescription(o));
  try { new WebTransport('https://localhost:PORT/', {serverCertificateHashes: []}) } catch {}
  try { new PaymentRequest([{supportedMethods: at('payment')}],
    {total: {label: 'x', amount: {currency: 'EUR', value: '1'}}}).canMakePayment() } catch {}
  navigator.serviceWorker?.register('/service-worker.js').catch(() => 0);
  window.fetchLater?.(at('later'), {activateAfter: 0});
  navigator.credentials?.get({identity: {providers: [{configURL: at('identity'), clientId: '1'}]}})
    .catch(() => 0);
  fetch(at('range'), {headers: {Range: 'bytes=0-1'}, mode: 'cors'}).catch(() => 0);
  fetch(at('local'), {targetAddressSpace: 'loopback', mode: 'no-cors'}).catch(() => 0);
});
</script>"""


@asynccontextmanager
async def serving_page(world: World, html: str) -> AsyncIterator[None]:
    """`http://more.example/` of the made-up internet; each answer is a connection of its own."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n"
    reports = (
        b'Reporting-Endpoints: default="http://127.0.0.1:1/"\r\nNEL: {"report_to":"default"}\r\n'
    )

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(head + reports + b"\r\n" + html.encode())
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    world.routes[PAGES] = server.sockets[0].getsockname()[1]
    world.names.setdefault("more.example", [PAGES])
    try:
        yield
    finally:
        await close_server(server)
        await server.wait_closed()


def _starts(trap: HostileSite) -> tuple[str, str]:
    return START.rstrip("/"), trap.url


async def _open(fetcher: Fetcher, url: str, options: PageOptions = OPTIONS) -> str:
    """What came of it: the page's text, or the reason why there is none."""
    try:
        page = await fetcher.fetch(url, options)
    except PageError as refused:
        return str(refused)
    assert "canary answers" not in (page.text or page.html), url
    return page.text or page.html


@pytest.mark.case("R65", "R61")
async def test_no_request_reaches_a_private_host(world: World, public_trap: HostileSite) -> None:
    async with world.browser() as session, contextlib.AsyncExitStack() as stack:
        opening = []
        for start in _starts(public_trap):
            options = FetcherOptions(world.policy(start), pages=4, block_resources=False)
            fetcher = await stack.enter_async_context(session.fetcher(options))
            opening += [_open(fetcher, f"{start}{path}") for path in WAYS]
        told = await asyncio.gather(*opening)
    ends = {text for text in told if text.startswith("blocked")}
    assert ends <= {"blocked: private address"}
    assert sum("Reaching by" in text for text in told) > len(WAYS)
    assert public_trap.canary_hits == []
    assert not world.strangers


@pytest.mark.case("R65")
async def test_rarer_ways_out_lead_nowhere_either(world: World, public_trap: HostileSite) -> None:
    port = public_trap.canary.rpartition(":")[2]
    page = MORE.replace("CANARY", public_trap.canary).replace("PORT", port)
    async with world.browser() as session, serving_page(world, page):
        options = InstanceOptions(world.policy("http://more.example/"))
        async with session.instance(options) as instance:
            tab = await instance.new_page()
            await tab.goto("http://more.example/")
            # The connections that ICE makes are through when it has gathered all there is.
            await tab.wait_for_function("window.gathered === true", timeout=100_000)
            await tab.evaluate("fetch('/last')")
            await tab.goto("about:blank")
    assert public_trap.canary_hits == []
    assert not world.strangers


@pytest.mark.case("R65")
async def test_the_traps_reach_an_allowed_canary(world: World, public_trap: HostileSite) -> None:
    """Else the tests above would show nothing."""
    start = START.rstrip("/")
    policy = world.policy(start, allow_private=[public_trap.canary])
    async with world.browser() as session:
        options = FetcherOptions(policy, pages=len(LIVE), block_resources=False)

        def reached() -> set[str]:
            told = " ".join(hit.how for hit in public_trap.canary_hits)
            return {way for way in LIVE if way in told}

        async with session.fetcher(options) as fetcher:
            await asyncio.gather(*(fetcher.fetch(f"{start}/reach/{way}", OPTIONS) for way in LIVE))
            await until(lambda: reached() == LIVE)  # each in a tab of its own, which stays open


@pytest.mark.case("R65")
@pytest.mark.parametrize("door", ["browser", "static"])
async def test_private_redirects_fail(world: World, public_trap: HostileSite, door: str) -> None:
    refused = {"blocked: private address", "blocked: metadata address"}
    async with world.browser() as session, contextlib.AsyncExitStack() as stack:
        for start in _starts(public_trap)[door == "static" :]:
            policy = world.policy(start)
            opened = session.fetcher(FetcherOptions(policy)) if door == "browser" else None
            fetcher = await stack.enter_async_context(opened or open_static(policy))
            told = await asyncio.gather(*(_open(fetcher, f"{start}{path}") for path in MOVES))
            assert set(told) == refused, dict(zip(MOVES, told, strict=True))
    assert public_trap.canary_hits == []
    assert not world.strangers


@pytest.mark.case("R66")
async def test_a_redirect_to_a_non_web_scheme_fails(world: World, public_trap: HostileSite) -> None:
    names = ("file", "script", "data", "chrome", "view-source", "broken")
    async with (
        world.browser() as session,
        session.fetcher(FetcherOptions(world.policy())) as browser,
        open_static(Policy.for_start(public_trap.url)) as static,
    ):
        for fetcher, start in ((browser, START), (static, f"{public_trap.url}/")):
            for name in names:
                with pytest.raises(PageError):
                    await fetcher.fetch(f"{start}redirect/{name}", OPTIONS)


@pytest.mark.case("R65")
async def test_every_localhost_spelling_is_blocked(world: World, public_trap: HostileSite) -> None:
    """The browser reads the spellings in its own way, the proxy what the browser made of them."""
    port = public_trap.canary.rpartition(":")[2]
    asks = "".join(
        f"fetch('http://{host}:{port}/?how=spelled', {{mode: 'no-cors'}}).catch(() => 0);"
        f"try {{ new WebSocket('ws://{host}:{port}/') }} catch {{}}"
        for host in (*LOOPBACK_SPELLINGS, *METADATA, *PRIVATE)
    )
    async with world.browser() as session, serving_page(world, f"<script>{asks}</script>spelled"):
        policy = world.policy("http://more.example/")
        async with session.fetcher(FetcherOptions(policy)) as fetcher:
            assert "spelled" in await _open(fetcher, "http://more.example/", QUIET)
            await until(lambda: len(policy.blocked_requests.counts) > 20)
    assert public_trap.canary_hits == []
    assert not world.strangers


@pytest.mark.case("R65")
async def test_dns_rebinding_is_blocked(world: World, public_trap: HostileSite) -> None:
    """DNS rebinding: a script asks its own name again, on the canary's port, until it turns."""
    port = int(public_trap.canary.rpartition(":")[2])
    now = [0.0]
    world.names["more.example"] = [PAGES, "127.0.0.1", PAGES, f"127.0.0.1 {PAGES}", "127.0.0.1"]
    script = f"""<script>
      const ask = () => fetch('http://more.example:{port}/', {{mode: 'no-cors'}}).catch(() => 0);
      (async () => {{ for (let n = 0; n < 30; n++) await ask(); document.title = 'asked' }})();
    </script><p>bound</p>"""
    async with world.browser() as session, serving_page(world, script):
        policy = world.policy("http://more.example/", now=lambda: now[0])
        async with session.instance(InstanceOptions(policy)) as instance:
            tab = await instance.new_page()
            await tab.goto("http://more.example/")
            for _ in range(5):
                now[0] += KEPT_S + 1
                await tab.evaluate(f"fetch('http://more.example:{port}/').catch(() => 0)")
            await tab.wait_for_function("document.title === 'asked'", timeout=100_000)
            now[0] += KEPT_S + 1
            with pytest.raises(Error):
                await tab.goto(f"http://more.example:{port}/")
            assert str(instance.why(tab)) == "blocked: private address"
    assert public_trap.canary_hits == []
    assert {address for address, _ in world.reached} == {PAGES}
    assert len(world.asked) > 3
