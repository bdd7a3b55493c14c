"""G9: nothing that a page does reaches a private place, by whatever door and spelling.

The hostile site is opened as a place of this machine and as one of a made-up internet, in
the browser and by the static engine; its canary must not hear of it. Then 50 spellings of
private addresses, as addresses to open and as what a page asks for, and a name that turns
inwards again and again. The long form also lets `strace` tell every connection of the whole
process tree. `--work` is the part that it looks at.

Then the same traps through an upstream proxy of another process (`--proxied`): its listeners and
that proxy are all that the tree connects to.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.browser.chromium.browser_options import FetcherOptions
from engine.browser.chromium.browser_session import BrowserSession
from engine.egress.egress_policy import KEPT_S, Policy
from engine.egress.proxy_listener import ProxyListener
from engine.model.errors import EngineError
from engine.model.proxies import ProxyChoice
from engine.pages.fetch import Fetcher, PageOptions
from engine.pages.static_engine import open_static
from fixtures.hostile import moving, reaching
from fixtures.hostile.site import HostileSite
from tests.browser.test_egress import LOOPBACK_SPELLINGS, METADATA, PRIVATE
from tests.egress.conftest import PUBLIC, START, World
from tests.hard.figures import Figures
from tests.support.upstream_proxy import upstream

SPELLINGS = [*LOOPBACK_SPELLINGS, *PRIVATE, *METADATA]
SHORT = ("fetch", "websocket", "img", "frame", "worker", "metadata", "names", "redirect-img", "rtc")
TRAPS = [trap.path for trap in (*reaching.TRAPS, *moving.TRAPS) if "/chain/" not in trap.path]
FLIPS = 40
WORK_LIMIT_S = 900
PROXIED = "http://trap.invalid"  # resolves nowhere here
DNS = 53
# Chromium makes a UDP socket for this address, and sends nothing, to learn whether there is IPv6.
IPV6_TEST = "2001:4860:4860::8888"
_IS_UDP = "<UDP"
_CONNECT = re.compile(
    r'sin_port=htons\((\d+)\), sin_addr=inet_addr\("([0-9.]+)"\)'
    r'|sin6_port=htons\((\d+)\).*?inet_pton\(AF_INET6, "([0-9a-f:.]+)"'
)


async def _open(fetcher: Fetcher, url: str, *, settle_ms: int) -> str:
    options = PageOptions(timeout_ms=15_000, settle_ms=settle_ms)
    try:
        return (await fetcher.fetch(url, options)).final_url
    except EngineError as refused:
        return str(refused)


async def _traps(world: World, site: HostileSite, *, short: bool) -> int:
    """Every trap by every door; how many pages that were."""
    paths = [f"/reach/{way}" for way in SHORT] if short else TRAPS
    paths += [f"/redirect/{name}" for name in ("canary", "number", "metadata", "two-hops")]
    settle_ms = 50 if short else 200
    asked = 0
    async with world.browser() as session, contextlib.AsyncExitStack() as stack:
        for start in (START.rstrip("/"), site.url):
            policy = world.policy(start)
            options = FetcherOptions(policy, pages=4, block_resources=False)
            doors = [await stack.enter_async_context(session.fetcher(options))]
            if start == site.url:
                doors.append(await stack.enter_async_context(open_static(policy)))
            opening = [
                _open(door, f"{start}{path}", settle_ms=settle_ms)
                for door in doors
                for path in paths
            ]
            asked += len(await asyncio.gather(*opening))
    return asked


async def _spellings(world: World, site: HostileSite, *, short: bool) -> list[str]:
    """Each spelling opened as a page, by both doors; what was not refused."""
    port = site.canary.rpartition(":")[2]
    urls = [f"http://{host}:{port}/?how=spelled" for host in SPELLINGS]
    urls += [f"https://{host}/" for host in SPELLINGS[: None if not short else 5]]
    policy = world.policy()
    async with (
        world.browser() as session,
        session.fetcher(FetcherOptions(policy, pages=4)) as browser,
        open_static(policy) as static,
    ):
        doors = (browser, static)
        told = await asyncio.gather(
            *(_open(door, url, settle_ms=50) for door in doors for url in urls)
        )
    return [text for text in told if not text.startswith("blocked: ")]


async def _rebinding(world: World, site: HostileSite, *, short: bool) -> int:
    """A public name that turns inwards and back; how often it was looked up.

    Only the browser asks: the static engine would connect to the public address itself.
    """
    url, now = f"http://turns.example:{site.canary.rpartition(':')[2]}/?how=rebound", [0.0]
    world.names["turns.example"] = [PUBLIC, "127.0.0.1", f"{PUBLIC} 127.0.0.1"] * FLIPS
    policy = Policy(None, lookup=world.lookup, now=lambda: now[0])
    before = len(world.asked)
    async with world.browser() as session, session.fetcher(FetcherOptions(policy)) as browser:
        for _ in range(8 if short else FLIPS):
            now[0] += KEPT_S / 2 + 1
            await _open(browser, url, settle_ms=20)
    return len(world.asked) - before


async def _work(*, short: bool) -> dict[str, Any]:
    world = World()
    with HostileSite() as site:
        world.routes[PUBLIC] = int(site.url.rpartition(":")[2])
        told: dict[str, Any] = {
            "pages of traps": await _traps(world, site, short=short),
            "spellings let through": await _spellings(world, site, short=short),
            "look-ups while a name turns": await _rebinding(world, site, short=short),
        }
        hits = site.canary_hits
    own = int(site.url.rpartition(":")[2])
    strangers = sorted(place for place in world.strangers if place != ("127.0.0.1", own))
    return {
        **told,
        "spellings": len(SPELLINGS),
        "canary hits": [f"{hit.how}: {hit.line}" for hit in hits],
        "connections of the proxy": len(world.reached),
        "of these to private places": strangers,
    }


def _watched(*, short: bool) -> dict[str, Any]:
    """The work in a process of its own, every connection of its tree written down."""
    strace = shutil.which("strace")
    words = [sys.executable, "-m", "tests.hard.egress", "--work", *(["--short"] if short else [])]
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "connects")
        if strace and not short:
            words = [strace, "-f", "-qq", "-e", "trace=connect", "-o", str(trace), *words]
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=WORK_LIMIT_S, check=False
        )
        if done.returncode:
            raise SystemExit(done.stderr[-2_000:])
        told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        if not trace.exists():
            return {**told, "strace": "not asked" if short else "not on this machine"}
        return {**told, "addresses connected to": _outside(trace.read_text(errors="replace"))}


async def _through(proxy_url: str, start: str, *, short: bool) -> dict[str, Any]:
    """Every trap by both engines through the proxy; the ports of our own listeners."""
    ports: list[int] = []
    opening = ProxyListener.open

    async def noted(listener: ProxyListener) -> None:
        await opening(listener)
        ports.append(listener.port)

    # Each listener opens as before; the rig has to know its port in the trace.
    ProxyListener.open = noted  # type: ignore[method-assign, assignment]
    paths = [f"/reach/{way}" for way in SHORT] if short else TRAPS
    paths += ["/", *(f"/redirect/{name}" for name in ("canary", "number", "metadata"))]
    policy = Policy.for_start(start, proxy=ProxyChoice(proxy_url).upstream({}))
    options = FetcherOptions(policy, pages=4, block_resources=False)
    told: list[str] = []
    session = BrowserSession(os.environ.get("OC_BROWSER"))
    try:
        async with session.fetcher(options) as browser, open_static(policy) as static:
            for door in (browser, static):
                pages = (_open(door, f"{start}{path}", settle_ms=200) for path in paths)
                told += await asyncio.gather(*pages)
    finally:
        await session.aclose()
    loaded = sum(text.startswith(start) for text in told)
    return {"pages": len(told), "loaded": loaded, "ports": ports}


def proxied(scheme: str, *, short: bool) -> dict[str, Any]:
    """The traps through a proxy, each connection of the process tree written down.

    The start is on this machine, which a browser without a proxy connects to directly; for a
    proxy that resolves names it is a name that resolves nowhere here.
    """
    strace = shutil.which("strace")
    with HostileSite() as site, tempfile.TemporaryDirectory() as folder:
        own = int(site.url.rpartition(":")[2])
        start = PROXIED if scheme == "socks5h" else site.url
        with upstream(scheme, routes={PROXIED.rpartition("/")[2]: own}) as proxy:
            trace = Path(folder, "connects")
            words = [sys.executable, "-m", "tests.hard.egress", "--proxied", proxy.url, start]
            words += ["--short"] if short else []
            if strace:
                words = [
                    strace,
                    "-f",
                    "-qq",
                    "-yy",
                    "-e",
                    "trace=connect",
                    "-o",
                    str(trace),
                    *words,
                ]
            done = subprocess.run(
                words, capture_output=True, text=True, timeout=WORK_LIMIT_S, check=False
            )
            if done.returncode:
                raise SystemExit(done.stderr[-2_000:])
            told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
            ours = {*told.pop("ports"), proxy.port}
            beside = _beside(trace.read_text(errors="replace"), ours) if strace else []
            wanted = {f"{one.host}:{one.port}" for one in proxy.wanted}
            allowed = {site.url.removeprefix("http://"), PROXIED.removeprefix("http://") + ":80"}
        hits = [f"{hit.how}: {hit.line}" for hit in site.canary_hits]
    return {
        **told,
        "canary hits": hits,
        "beside the proxy": beside,
        "asked of the proxy": sorted(wanted - allowed),
    }


def _beside(trace: str, ours: set[int]) -> list[str]:
    """Every place that was connected to but our listeners, the proxy and name servers."""
    found = set()
    lines = [line for line in trace.splitlines() if not (_IS_UDP in line and IPV6_TEST in line)]
    for said in filter(None, map(_CONNECT.search, lines)):
        address, port = said.group(2) or said.group(4), int(said.group(1) or said.group(3))
        if port not in (0, DNS) and not (address == "127.0.0.1" and port in ours):
            found.add(f"{address} {port}")
    return sorted(found)


def _outside(trace: str) -> list[str]:
    """Every address but 127.0.0.1 that a process of the tree called connect() for."""
    found = set()
    for line in trace.splitlines():
        said = _CONNECT.search(line)
        if said:
            found.add(f"{said.group(2) or said.group(4)} {said.group(1) or said.group(3)}")
    return sorted(each for each in found if not each.startswith("127.0.0.1 "))


def measure(*, short: bool) -> Figures:
    """Canary hits, spellings let through, and connections to private places: none of each."""
    told = _watched(short=short)
    misses = [
        f"{name}: {told[name]}"
        for name in ("canary hits", "spellings let through", "of these to private places")
        if told[name]
    ]
    local = [each for each in told.get("addresses connected to", ()) if each.startswith("169.254.")]
    misses += [f"169.254/16 was connected to: {local}"] if local else []
    for scheme in ("http",) if short else ("http", "socks5", "socks5h"):
        through = proxied(scheme, short=short)
        told[f"through {scheme}"] = through
        for name in ("canary hits", "beside the proxy", "asked of the proxy"):
            misses += [f"through {scheme}, {name}: {through[name]}"] if through[name] else []
    return Figures("G9", told, misses)


def main(argv: Sequence[str]) -> int:
    """The part that is looked at from outside: its findings as one line of JSON."""
    short = "--short" in argv
    if "--proxied" in argv:
        at = argv.index("--proxied")
        work = _through(argv[at + 1], argv[at + 2], short=short)
    else:
        work = _work(short=short)
    print(json.dumps(asyncio.run(work)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
