"""Screenshots show no typed text, in whatever form a page repeats it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.browser.chromium.browser_options import PLAIN, BrowserLook, InstanceOptions
from engine.browser.chromium.devices import device_named
from engine.browser.page import screenshot_masking
from engine.browser.page.screenshot_masking import TRIES, MaskingFailed, masked_screenshot
from engine.egress.egress_policy import Policy
from engine.sample.site import Answer
from engine.secrets.value_search import Echoes
from tests.support.kept_browser import KeptSession

pytestmark = pytest.mark.usefixtures("kept_browser")

ONE, OTHER = "Aunt5ecretAx", "Zvor9acheqZw"  # the same width where all letters are as wide
STYLE = "<style>*{font:16px monospace}input,select{width:300px}</style>"
WAYS = [
    "<p>Hello VALUE, welcome</p>",
    "<p>HALF1<b>HALF2</b></p>",
    "<p id=p></p><script>p.innerHTML=[...'VALUE'].map((l) => '<b>' + l + '</b>').join('')</script>",
    "<p style='text-transform:uppercase'>VALUE</p>",
    "<p>HALF1&shy;HALF2</p>",
    "<style>p::before{content:attr(data-x)}</style><p data-x='VALUE'></p>",
    "<x-y></x-y><script>document.querySelector('x-y').attachShadow({mode: 'closed'})"
    ".innerHTML = '<p>VALUE</p>'</script>",
    "<iframe srcdoc='<pre>VALUE</pre>'></iframe>",
    "<iframe srcdoc=\"<iframe srcdoc='<pre>VALUE</pre>'></iframe>\"></iframe>",
    "<input value='VALUE'>",
    "<input id=f><script>f.value = 'VALUE'</script>",
    "<textarea>VALUE</textarea>",
    "<input placeholder='VALUE'>",
    "<input type=submit value='VALUE'>",
    "<select><option>VALUE</select>",
    "<div style='height:90px;overflow:auto' id=d><div style='height:400px'></div><p>VALUE</p>"
    "</div><script>d.scrollTop = 999</script>",
    "<p style='position:fixed;bottom:9px;right:40px'>VALUE</p>",
    "<p style='transform:rotate(30deg) translate(200px,90px)'>VALUE</p>",
    "<svg><text y=20>VALUE</text></svg>",
    "<div style='height:2000px'></div><p>VALUE</p><script>scrollTo(0, 9999)</script>",
]


@asynccontextmanager
async def one_page(site: Any, look: BrowserLook = PLAIN) -> AsyncIterator[tuple[Any, Any]]:
    """A page of an instance, and its DevTools session."""
    session = KeptSession()
    try:
        policy = Policy.for_start(site.url)
        options = InstanceOptions(policy=policy, width=900, height=400, look=look)
        async with session.instance(options) as instance:
            page = await instance.new_page()
            yield page, instance.wire(page)
    finally:
        await session.aclose()


def with_value(markup: str, value: str) -> str:
    half = len(value) // 2
    filled = markup.replace("VALUE", value).replace("HALF1", value[:half])
    return STYLE + filled.replace("HALF2", value[half:])


async def test_two_pictures_that_differ_in_a_value_alone_are_the_same_picture(site: Any) -> None:
    async with one_page(site) as (page, wire):
        echoes = Echoes([ONE, OTHER])
        for way in WAYS:
            bare, hidden = [], []
            for value in (ONE, OTHER):
                await page.set_content(with_value(way, value))
                bare.append(await page.screenshot())
                hidden.append(await masked_screenshot(page, wire, echoes, page.screenshot))
            assert bare[0] != bare[1], way
            assert hidden[0] == hidden[1], way


@pytest.mark.parametrize("head", ["", "<meta name=viewport content='width=device-width'>"])
async def test_a_device_that_zooms_out_shows_no_value_either(site: Any, head: str) -> None:
    phone = BrowserLook(device=device_named("Pixel 7"))
    async with one_page(site, phone) as (page, wire):
        bare, hidden = [], []
        for value in (ONE, OTHER):
            space = "<div style='width:900px;height:1200px'></div>"
            shown = f"<p style='margin-left:500px;font:40px monospace'>{value}</p>"
            await page.set_content(head + space + shown + space)
            await page.evaluate("scrollTo(0, 900)")
            bare.append(await page.screenshot())
            hidden.append(
                await masked_screenshot(page, wire, Echoes([ONE, OTHER]), page.screenshot)
            )
        assert bare[0] != bare[1]
        assert hidden[0] == hidden[1]


async def test_a_frame_of_another_site_is_looked_into_and_painted_over(site: Any) -> None:
    elsewhere = site.url.replace("127.0.0.1", "localhost")
    site.answers["/outer"] = Answer(
        body=f"<iframe src='{elsewhere}/inner'></iframe>".encode(), content_type="text/html"
    )
    session = KeptSession()
    try:
        allowed = [site.url.partition("//")[2], elsewhere.partition("//")[2]]
        async with session.instance(InstanceOptions(policy=Policy(None, allowed))) as instance:
            page = await instance.new_page()
            pictures = []
            for value in (ONE, OTHER):
                inner = with_value("<p>VALUE</p>", value).encode()
                site.answers["/inner"] = Answer(body=inner, content_type="text/html")
                await page.goto(f"{site.url}/outer")
                wire = instance.wire(page)
                pictures.append(
                    await masked_screenshot(page, wire, Echoes([ONE, OTHER]), page.screenshot)
                )
            assert await page.frames[1].inner_text("p") == OTHER
            assert pictures[0] == pictures[1]
    finally:
        await session.aclose()


async def test_a_page_that_shows_nothing_of_it_is_not_touched(site: Any) -> None:
    async with one_page(site) as (page, wire):
        await page.set_content(with_value("<p>VALUE</p>", ONE))
        plain = await page.screenshot()
        assert await masked_screenshot(page, wire, Echoes([OTHER]), page.screenshot) == plain


async def test_a_text_that_never_stands_still_gets_no_picture(site: Any) -> None:
    async with one_page(site) as (page, wire):
        await page.set_content(f"<p id=p style='position:fixed'>{ONE}</p><script>x = 0</script>")
        taken = []

        async def shoot() -> bytes:  # the page moves it meanwhile, at any pace of this machine
            taken.append(await page.screenshot())
            await page.evaluate("p.style.left = `${x += 7}px`")
            return taken[-1]

        with pytest.raises(MaskingFailed):
            await masked_screenshot(page, wire, Echoes([ONE]), shoot)
        assert len(taken) == TRIES


async def test_a_silent_page_has_no_screenshot(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with one_page(site) as (page, wire):
        await page.set_content(f"<p>{ONE}</p>")
        async with page.expect_console_message(timeout=60_000):
            busy = asyncio.create_task(page.evaluate("console.log('busy'); while (true);"))
        monkeypatch.setattr(screenshot_masking, "LOOK_S", 2.0)
        with pytest.raises(MaskingFailed):
            async with asyncio.timeout(100):
                await masked_screenshot(page, wire, Echoes([ONE]), page.screenshot)
        busy.cancel()


async def test_a_page_can_neither_see_nor_undo_what_covers_it(site: Any) -> None:
    async with one_page(site) as (page, wire):
        await page.set_content(
            f"<p>{ONE}</p><script>window.seen = 0; new MutationObserver((all) => {{"
            "seen += all.length }).observe(document, {subtree: true, childList: true,"
            "attributes: true, characterData: true});"
            "OffscreenCanvas = undefined; createImageBitmap = undefined; atob = () => '';"
            "Array.prototype.map = () => []; Uint8Array.from = () => new Uint8Array()</script>"
        )
        plain = await page.screenshot()
        await page.evaluate("seen = 0")
        hidden = await masked_screenshot(page, wire, Echoes([ONE]), page.screenshot)
        assert hidden != plain
        assert await page.evaluate("seen") == 0


@pytest.mark.parametrize(
    ("value", "texts", "found"),
    [
        ("Ada", ["Ada", "Adamant", "hello ADA!"], {0, 2}),
        ("Lovelace", ["Ada  love", "LACE, dear", "other"], {0, 1}),
        ("4111222233334444", ["4111 2222 3333 4444", "4111-2222-3333-4444", "4111"], {0, 1}),
        ("two words", ["two\n   words", "twowords", "two", "worlds"], {0, 1}),
        ("ab", ["ab"], set()),
        ("   ", ["   ", "x"], set()),
    ],
)
def test_a_value_is_found_in_all_spellings(value: str, texts: list[str], found: set[int]) -> None:
    assert Echoes([value]).within(texts) == found


def test_what_was_only_on_the_way_is_found_where_nothing_stands_beside_it() -> None:
    assert Echoes([], ["Adalo"]).within(["Adalo", "Adalovelace"]) == {0}


@given(
    value=st.text("abcXYZ019äß", min_size=4, max_size=20),
    before=st.text(" .x", max_size=5),
    cuts=st.lists(st.integers(0, 30), max_size=4),
)
def test_a_value_is_found_across_text_nodes(value: str, before: str, cuts: list[int]) -> None:
    whole = before + value
    ends = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    texts = [whole[start:end] for start, end in pairwise(ends)]
    found = Echoes([value]).within(texts)
    left = "".join(text for at, text in enumerate(texts) if at not in found)
    assert value.casefold() not in left.casefold()
    assert found
