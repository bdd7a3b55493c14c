"""What pages and servers see of a task that looks like another device."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine.browser.chromium.browser_options import (
    PLAIN,
    BrowserLook,
    FetcherOptions,
    InstanceOptions,
)
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.chromium.devices import device_named, devices, names_near
from engine.browser.chromium.user_agent import metadata_of, system_of
from engine.egress.egress_policy import Policy
from engine.pages.fetch import PageOptions
from tests.support.device_list import FILE, file_of, playwright_devices
from tests.support.engines import until
from tests.support.heard_requests import Listener, two_sites
from tests.support.kept_browser import KeptSession

pytestmark = pytest.mark.usefixtures("kept_browser")

SEEN = """() => ({
  agent: navigator.userAgent, platform: navigator.platform, languages: navigator.languages,
  brands: navigator.userAgentData.brands.map((one) => one.brand).sort(),
  versions: navigator.userAgentData.brands.map((one) => one.version),
  mobile: navigator.userAgentData.mobile, system: navigator.userAgentData.platform,
  inner: [innerWidth, innerHeight], screen: [screen.width, screen.height],
  touch: navigator.maxTouchPoints > 0 && "ontouchstart" in window,
  coarse: matchMedia("(pointer: coarse)").matches, narrow: matchMedia("(max-width: 500px)").matches,
  ratio: devicePixelRatio, zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  locale: Intl.DateTimeFormat().resolvedOptions().locale,
})"""
HEAD = "<meta name=viewport content='width=device-width, initial-scale=1'>"
PIXEL = BrowserLook(device=device_named("Pixel 7"), locale="de-DE", timezone="Europe/Berlin")
IPHONE = BrowserLook(device=device_named("iPhone 15"))


@pytest.fixture
def sites() -> Iterator[tuple[Listener, Listener]]:
    with two_sites() as found:
        yield found


@asynccontextmanager
async def session_of(kind: type[BrowserSession] = KeptSession) -> AsyncIterator[BrowserSession]:
    session = kind()
    try:
        yield session
    finally:
        await session.aclose()


@asynccontextmanager
async def looking(
    sites: tuple[Listener, Listener], look: BrowserLook, **options: Any
) -> AsyncIterator[Any]:
    allowed = Policy(None, [one.place for one in sites])
    async with (
        session_of() as session,
        session.instance(InstanceOptions(allowed, look=look, **options)) as instance,
    ):
        yield instance


async def test_a_page_sees_the_device_in_every_way(sites: tuple[Listener, Listener]) -> None:
    sites[0]["/"] = HEAD
    async with looking(sites, PIXEL) as instance:
        page = await instance.page()
        await page.goto(sites[0].url)
        seen = await page.evaluate(SEEN)
    device = device_named("Pixel 7")
    assert device is not None
    version = device.user_agent.partition("Chrome/")[2].partition(".")[0]
    assert seen == {
        "agent": device.user_agent,
        "platform": "Linux armv81",
        "languages": ["de-DE"],
        "brands": ["Chromium", "Google Chrome", "Not)A;Brand"],
        "versions": [version, version, "99"],
        "mobile": True,
        "system": "Android",
        "inner": list(device.size),
        "screen": list(device.screen),
        "touch": True,
        "coarse": True,
        "narrow": True,
        "ratio": 1,
        "zone": "Europe/Berlin",
        "locale": "de-DE",
    }


async def test_client_hints_name_the_browser_of_the_user_agent(
    sites: tuple[Listener, Listener],
) -> None:
    own, other = sites
    own["/"] = f"<img src=/picture><iframe src={other.url}/frame></iframe>"
    other["/frame"] = "<script>fetch('/later')</script>"
    async with looking(sites, PIXEL) as instance:
        page = await instance.page()
        await page.goto(own.url)
        await until(lambda: "/later" in other.paths)
    for site, path in ((own, "/"), (own, "/picture"), (other, "/frame"), (other, "/later")):
        hints = site.header(path, "sec-ch-ua")
        assert hints is not None
        assert "Google Chrome" in hints, path
        assert "Headless" not in hints, path
        assert site.header(path, "sec-ch-ua-mobile") == "?1", path
        assert site.header(path, "sec-ch-ua-platform") == '"Android"', path
        assert site.header(path, "user-agent") == PIXEL.agent, path
        assert site.header(path, "accept-language") == "de-DE", path


async def test_a_browser_without_client_hints_sends_none(sites: tuple[Listener, Listener]) -> None:
    own, other = sites
    own["/"] = f"<img src=/picture><iframe src={other.url}/frame></iframe>"
    other["/frame"] = "<script>fetch('/later')</script>"
    async with looking(sites, IPHONE) as instance:
        page = await instance.page()
        await page.goto(own.url)
        await until(lambda: "/later" in other.paths)
        seen = await page.evaluate(SEEN)
    assert seen["agent"] == IPHONE.agent
    assert (seen["platform"], seen["brands"]) == ("iPhone", [])
    for site in sites:
        assert not any(name.startswith("sec-ch-ua") for _, sent in site.heard for name in sent)
        assert all(sent["user-agent"] == IPHONE.agent for _, sent in site.heard)


@pytest.mark.own_browser
async def test_frames_in_processes_of_their_own_look_alike(
    sites: tuple[Listener, Listener], monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.browser.chromium import launch

    monkeypatch.setattr(launch, "FLAGS", (*launch.FLAGS, "--site-per-process"))
    own, other = sites
    own["/"] = f"<iframe src={other.url}/frame></iframe>"
    other["/frame"] = "<script>fetch('/later')</script>"
    allowed = Policy(None, [one.place for one in sites])
    async with (
        session_of(BrowserSession) as session,
        session.instance(InstanceOptions(allowed, look=IPHONE)) as instance,
    ):
        page = await instance.page()
        await page.goto(own.url)
        await until(lambda: "/later" in other.paths)
        targets = await instance.chromium.navigation_filter._session.send("Target.getTargets")
        assert any(one["type"] == "iframe" for one in targets["targetInfos"])
        seen = [await frame.evaluate(SEEN) for frame in page.frames]
    assert [one["agent"] for one in seen] == [IPHONE.agent] * 2
    assert [one["brands"] for one in seen] == [[]] * 2
    for path in ("/frame", "/later"):
        assert other.header(path, "user-agent") == IPHONE.agent
        assert other.header(path, "sec-ch-ua") is None


@pytest.mark.thorough("look1")
@pytest.mark.parametrize("look", [PIXEL, IPHONE])
async def test_a_window_that_a_page_opens_looks_alike(
    sites: tuple[Listener, Listener], look: BrowserLook
) -> None:
    """User agent and headers at once; scripts of its first page may see Chromium's brands."""
    own, _ = sites
    own["/"] = "<a href=/window target=_blank>open</a>"
    own["/window"] = own["/second"] = f"{HEAD}<script>early = ({SEEN})()</script>"
    async with looking(sites, look, windows=True) as instance:
        page = await instance.page()
        await page.goto(own.url)
        async with page.context.expect_page() as opening:
            await page.click("a")
        window = await opening.value
        await window.wait_for_load_state()
        early = await window.evaluate("early")
        await until(lambda: window in instance.pages)
        await window.goto(f"{own.url}/second")
        second = await window.evaluate("early")
    hints = metadata_of(look.agent or "")
    assert early["agent"] == second["agent"] == look.agent
    wanted = sorted(one["brand"] for one in hints["brands"]) if hints else []
    assert second["brands"] == wanted
    for path in ("/window", "/second"):
        assert own.header(path, "user-agent") == look.agent
        assert own.header(path, "sec-ch-ua-mobile") == ("?1" if hints else None)
        assert "Headless" not in str(own.header(path, "sec-ch-ua"))


async def test_a_crawls_pages_look_alike_in_a_fresh_context_too(
    sites: tuple[Listener, Listener],
) -> None:
    own, _ = sites
    own["/"] = own["/again"] = f"{HEAD}<p id=p></p><script>p.textContent = innerWidth</script>"
    allowed = Policy(None, [own.place])
    look = BrowserLook(
        viewport=(390, 844), user_agent="Phone/1", locale="fr", timezone="Asia/Tokyo"
    )
    async with (
        session_of() as session,
        session.fetcher(FetcherOptions(allowed, look=look)) as fetcher,
    ):
        first = await fetcher.fetch(f"{own.url}/", PageOptions(screenshot="all"))
        fresh = await fetcher.fetch(f"{own.url}/again", PageOptions(fresh=True))
    assert (first.text.strip(), fresh.text.strip()) == ("390", "390")
    assert first.screenshot is not None
    assert first.screenshot[16:24] == (390).to_bytes(4, "big") + (844).to_bytes(4, "big")
    for path in ("/", "/again"):
        assert own.header(path, "user-agent") == "Phone/1"
        assert own.header(path, "sec-ch-ua") is None  # Playwright alone would send Chromium's
        assert own.header(path, "accept-language") == "fr"


async def test_a_task_without_a_look_sends_what_chromium_sends(
    sites: tuple[Listener, Listener],
) -> None:
    sites[0]["/"] = ""
    async with looking(sites, PLAIN) as instance:
        page = await instance.page()
        await page.goto(sites[0].url)
        assert await page.evaluate("[innerWidth, innerHeight]") == [1280, 800]
    assert "Chrome/" in str(sites[0].header("/", "user-agent"))


async def test_the_list_of_devices_is_playwrights() -> None:
    listed = await asyncio.wait_for(playwright_devices(), 60)
    assert FILE.read_text("utf-8") == file_of(listed), "run python -m tests.support.device_list"
    assert len(json.loads(FILE.read_text("utf-8"))["devices"]) == len(devices()) == len(listed)
    assert FILE.stat().st_size < 60_000


def test_a_device_is_found_in_any_case_and_else_its_neighbours_are_named() -> None:
    found = device_named(" iphone  15")
    assert found is not None
    assert found.name == "iPhone 15"
    assert device_named("iPhone 99") is None
    assert "iPhone 15" in names_near("iPhone 15x")
    assert names_near("") == []


@pytest.mark.parametrize(
    ("agent", "system", "model", "brand"),
    [
        (
            "Mozilla/5.0 (Linux; Android 11; Pixel 4a (5G)) AppleWebKit/537.36 (KHTML, like Gecko)"
            " Chrome/140.0.1.2 Mobile Safari/537.36",
            "Android",
            "Pixel 4a (5G)",
            "Google Chrome",
        ),
        (
            "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko)"
            " Chrome/140.0.0.0 Safari/537.36",
            "Android",
            "",
            "Google Chrome",
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
            " Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0",
            "Windows",
            "",
            "Microsoft Edge",
        ),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko)"
            " Chrome/140.0.0.0 Safari/537.36",
            "macOS",
            "",
            "Google Chrome",
        ),
    ],
)
def test_hints_are_read_from_the_user_agent(
    agent: str, system: str, model: str, brand: str
) -> None:
    found = metadata_of(agent)
    assert found is not None
    assert (found["platform"], found["model"]) == (system, model)
    assert found["brands"][0] == {"brand": brand, "version": "140"}
    assert found["mobile"] == (" Mobile" in agent)
    assert all(one["version"].count(".") == 3 for one in found["fullVersionList"])


@pytest.mark.parametrize(
    "agent",
    [
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0",
        "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/60.0.0.0",
        "MyBot/1.0 (+https://example.com/bot)",
    ],
)
def test_browsers_that_send_no_hints_have_none(agent: str) -> None:
    assert metadata_of(agent) is None


def test_every_device_has_a_known_system_or_none() -> None:
    for device in devices().values():
        system = system_of(device.user_agent)
        assert system.hint in {"", "Android", "iOS", "Windows", "macOS", "Linux"}, device.name
        assert "; " not in system.model, device.name
        assert "Build" not in system.model, device.name
