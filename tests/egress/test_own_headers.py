"""Headers of a task reach its own site, and no other one by any way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine.browser.chromium import launch
from engine.browser.chromium.browser_instance import Instance
from engine.browser.chromium.browser_options import (
    PLAIN,
    BrowserLook,
    FetcherOptions,
    InstanceOptions,
)
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.chromium.devices import device_named
from engine.egress.egress_policy import Policy
from engine.egress.own_headers import OwnHeaders, own_headers
from engine.model import addresses
from engine.pages.fetch import PageOptions
from engine.pages.static_engine import Sender, open_static
from engine.sample.site import Answer
from tests.egress.conftest import World
from tests.support.heard_requests import Listener, two_sites

OWN, OTHER = "http://own.example", "http://other.example"
HEADERS = own_headers([("X-Key", "k3y-of-own"), ("Accept", "text/special")], [OWN])
LOOK = BrowserLook(headers=HEADERS)
CORS = (("Access-Control-Allow-Origin", "*"), ("Access-Control-Allow-Headers", "*"))


def moved(to: str) -> Answer:
    return Answer(b"", 302, headers=(("Location", to), *CORS))


@pytest.fixture
def sites(world: World) -> Iterator[tuple[Listener, Listener]]:
    with two_sites() as (own, other):
        for name, address, site in (
            ("own.example", "11.0.0.1", own),
            ("other.example", "11.0.0.2", other),
        ):
            world.names[name] = [address]
            world.routes[address] = site.server.port
        yield own, other


def fill(own: Listener, other: Listener) -> None:
    """A page with requests of every type to both sites, directly and by redirects."""
    own["/"] = f"""
      <img src={OTHER}/picture><img src=/moved-picture>
      <link rel=stylesheet href=/sheet><script src=/script></script>
      <iframe src=/frame></iframe><iframe src={OTHER}/frame></iframe>
      <iframe src=/moved-frame></iframe>
      <script>
        document.cookie = "seen=1";
        fetch("/xhr"); fetch("{OTHER}/xhr"); fetch("/moved-xhr");
        navigator.sendBeacon("/beacon", "x");
        new Worker("/worker");
        new Image().src = "/picture";
      </script>"""
    own["/frame"] = "<img src=/picture-in-frame>"
    own["/worker"] = Answer(b"fetch('/xhr-of-worker')", content_type="text/javascript")
    own["/moved-picture"] = moved(f"{OTHER}/moved-picture")
    own["/moved-frame"] = moved(f"{OTHER}/moved-frame")
    own["/moved-xhr"] = moved(f"{OTHER}/moved-xhr")
    own["/xhr-of-others"] = Answer(b"{}", headers=CORS)
    other["/frame"] = f"""
      <img src={OWN}/picture-of-others><script>fetch("{OWN}/xhr-of-others")</script>"""
    other["/moved-xhr"] = Answer(b"{}", headers=CORS)


@asynccontextmanager
async def opened(world: World, **options: Any) -> AsyncIterator[tuple[BrowserSession, Instance]]:
    """An instance whose frames and windows know the names of this world, too."""
    asked = InstanceOptions(world.policy(OWN), **{"look": LOOK, **options})
    async with world.browser() as session, session.instance(asked) as instance:
        public = Policy(None, lookup=world.lookup)
        instance.chromium.navigation_filter._public = public
        yield session, instance


async def settled(site: Listener, *paths: str) -> None:
    async with asyncio.timeout(60):
        while not set(paths) <= site.paths:
            await asyncio.sleep(0.02)


async def test_a_browser_sends_them_to_its_own_site_alone(
    world: World, sites: tuple[Listener, Listener]
) -> None:
    own, other = sites
    fill(own, other)
    async with opened(world) as (_, instance):
        page = await instance.page()
        await page.goto(f"{OWN}/")
        await settled(own, "/xhr-of-worker", "/picture-in-frame", "/xhr-of-others", "/beacon")
        await settled(own, "/xhr", "/moved-xhr", "/picture")
        await settled(other, "/picture", "/xhr", "/moved-picture", "/moved-frame", "/moved-xhr")
    assert other.with_header("x-key") == set()
    # What a script of another site could read is opened without them.
    assert own.paths - own.with_header("x-key") - {"/favicon.ico"} == {"/xhr-of-others"}
    assert own.header("/xhr", "x-key") == "k3y-of-own"
    assert own.header("/picture", "accept") == "text/special"
    assert own.header("/picture", "cookie") == "seen=1"
    assert own.header("/beacon", "content-length") == "1"
    assert other.header("/picture", "accept") != "text/special"


async def test_a_redirect_takes_them_to_no_other_site_and_back_to_the_own_one(
    world: World, sites: tuple[Listener, Listener]
) -> None:
    own, other = sites
    own["/leaves"] = moved(f"{OTHER}/passes")
    other["/passes"] = moved(f"{OWN}/arrives")
    own["/arrives"] = "here"
    options = FetcherOptions(world.policy(OWN), look=LOOK)
    async with world.browser() as session, session.fetcher(options) as fetcher:
        fetched = await fetcher.fetch(f"{OWN}/leaves", PageOptions())
    assert fetched.final_url == f"{OWN}/arrives"
    assert own.with_header("x-key") >= {"/leaves", "/arrives"}
    assert other.with_header("x-key") == set()
    assert other.paths == {"/passes"}


async def test_the_static_engine_sends_them_to_its_own_site_alone() -> None:
    with two_sites() as (own, other):
        own["/"] = "<link rel=stylesheet href=/sheet>text " + f"<a href={other.url}/>x</a>"
        own["/leaves"] = moved(f"{other.url}/passes")
        other["/passes"] = moved(f"{own.url}/arrives")
        own["/arrives"] = f"<link rel=stylesheet href={other.url}/sheet>here"
        sender = Sender("Agent/1", "de-DE", own_headers(HEADERS.pairs, [own.url]))
        policy = Policy(None, [own.place, other.place])
        async with open_static(policy, sender=sender) as fetcher:
            await fetcher.fetch(f"{own.url}/", PageOptions())
            fetched = await fetcher.fetch(f"{own.url}/leaves", PageOptions())
        assert fetched.final_url == f"{own.url}/arrives"
        assert own.with_header("x-key") == own.paths == {"/", "/sheet", "/leaves", "/arrives"}
        assert other.with_header("x-key") == set()
        assert other.paths == {"/passes", "/sheet"}
        for site in (own, other):
            assert site.header("/sheet", "user-agent") == "Agent/1"
            assert site.header("/sheet", "accept-language") == "de-DE"
        assert own.header("/", "accept") == "text/special"


async def test_another_task_in_the_same_browser_sends_none(
    world: World, sites: tuple[Listener, Listener]
) -> None:
    own, _ = sites
    own["/"] = "<img src=/picture><iframe src=/frame></iframe>"
    own["/frame"] = "<img src=/inner>"
    async with (
        opened(world) as (session, first),
        session.instance(InstanceOptions(world.policy(OWN))) as second,
    ):
        assert first.chromium is second.chromium
        mine = await first.page()
        await (await second.page()).goto(f"{OWN}/")
        assert own.with_header("x-key") == set()
        await settled(own, "/inner")
        await mine.goto(f"{OWN}/")
        assert own.with_header("x-key") >= {"/", "/picture", "/frame", "/inner"}


async def test_a_window_that_a_page_opens_sends_them_with_its_first_request(
    world: World, sites: tuple[Listener, Listener]
) -> None:
    own, other = sites
    own["/"] = f"<a href=/window target=_blank>1</a><b onclick=window.open('{OTHER}/window')>2</b>"
    own["/window"] = other["/window"] = "opened"
    async with opened(world, windows=True) as (_, instance):
        page = await instance.page()
        await page.goto(f"{OWN}/")
        for name in ("a", "b"):
            async with page.context.expect_page() as opening:
                await page.click(name)
            await (await opening.value).wait_for_load_state()
    assert own.header("/window", "x-key") == "k3y-of-own"
    assert other.header("/window", "x-key") is None


async def test_requests_are_paused_only_while_a_task_has_headers(
    world: World, sites: tuple[Listener, Listener]
) -> None:
    own, _ = sites
    own["/"] = "<img src=/picture>"
    paused: list[str] = []
    async with opened(world, look=PLAIN) as (session, plain):
        navigation_filter, page = plain.chromium.navigation_filter, await plain.page()
        navigation_filter._session.on(
            "Fetch.requestPaused", lambda event: paused.append(event["resourceType"])
        )
        async with session.instance(InstanceOptions(world.policy(OWN), look=LOOK)) as mine:
            await (await mine.page()).goto(f"{OWN}/")
            assert "Image" in paused
        await page.goto(f"{OWN}/")  # tells that nobody needs it
        paused.clear()
        await page.goto(f"{OWN}/")
        assert paused == ["Document"]


async def test_many_start_addresses_are_served_by_one_pattern(
    world: World, sites: tuple[Listener, Listener]
) -> None:
    own, other = sites
    own["/"] = f"<img src=/picture><img src={OTHER}/picture>"
    many = [OWN, *(f"http://site{number}.example" for number in range(100))]
    look = BrowserLook(headers=own_headers(HEADERS.pairs, many))
    options = InstanceOptions(world.policy(OWN), look=look)
    async with world.browser() as session, session.instance(options) as instance:
        await (await instance.page()).goto(f"{OWN}/")
    assert own.with_header("x-key") >= {"/", "/picture"}
    assert other.with_header("x-key") == set()
    assert "/picture" in other.paths


@pytest.mark.own_browser
async def test_nested_frames_in_their_own_processes_look_like_the_device(
    world: World, sites: tuple[Listener, Listener], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "FLAGS", (*launch.FLAGS, "--site-per-process"))
    own, other = sites
    own["/"] = f"<iframe src={OTHER}/frame></iframe>"
    other["/frame"] = f"<script>fetch('/xhr')</script><iframe src={OWN}/inner></iframe>"
    own["/inner"] = f"<script>fetch('/xhr')</script><iframe src={OTHER}/innermost></iframe>"
    other["/innermost"] = "<script>fetch('/last')</script>"
    look = BrowserLook(device=device_named("iPhone 15"), headers=HEADERS)
    async with opened(world, look=look) as (_, instance):
        page = await instance.page()
        await page.goto(f"{OWN}/")
        await settled(other, "/last")
        seen = [await frame.evaluate("navigator.platform") for frame in page.frames]
    assert seen == ["iPhone"] * 4  # Playwright alone sets the user agent, but not this
    assert {sent["user-agent"] for site in sites for _, sent in site.heard} == {look.agent}
    assert other.with_header("x-key") == set()


def test_values_are_in_no_representation() -> None:
    assert "k3y" not in repr(HEADERS)
    assert "k3y" not in repr(LOOK)
    assert "k3y" not in repr(Sender(headers=HEADERS))


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        (f"{OWN}/x?y#z", True),
        (f"{OWN}:80/", True),
        ("http://OWN.example", True),
        (f"{OWN}:8080/", False),
        ("https://own.example/", False),
        ("http://www.own.example/", False),
        ("http://own.example.evil/", False),
        ("http://evil@own.example/", True),
        ("http://own.example@evil/", False),
        ("file:///etc", False),
        ("not an address", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, sent: bool) -> None:
    address = addresses.parse(url)
    origin = "" if address is None else address.origin
    assert bool(HEADERS.for_origin(origin)) is sent
    assert OwnHeaders().for_origin(origin) == {}
