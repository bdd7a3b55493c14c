"""Consent banners are dismissed by the installed rules, and the page is read without them."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.browser.chromium import consent_rules
from engine.browser.chromium.consent_rules import ConsentRules
from engine.browser.page import consent, crawl_tab
from engine.browser.page.crawl_tab import Tab
from engine.export.exporter import Order
from engine.ledger.reader import LedgerReader
from engine.pages.fetch import PageOptions
from engine.results.units import unit_of
from engine.sample.site import Answer
from tests.browser.conftest import LIMITS_MS, Making, Pages
from tests.support.consent_package import missing, package, stand_in
from tests.support.engines import opened
from tests.support.far_limits import FAR_S
from tests.support.serving import running, served

BANNER = (
    "<div id=manager></div><p>the content</p>"
    "<div id=banner>We value your privacy <button id=accept onclick=\"chosen('yes')\">Yes</button>"
    "<button id=reject onclick=\"chosen('no')\">No</button></div>"
    "<script>if (document.cookie.includes('chosen')) banner.remove();"
    "function chosen(how) { document.cookie = 'chosen=' + how; banner.remove();"
    " document.body.append('consent: ' + how) }</script>"
)
LATE = "await new Promise((go) => setTimeout(() => go(true), 1_500))"
OPTED_OUT = {"cmp": "stand-in", "result": "opted_out"}
FAILED = {"cmp": "stand-in", "result": "failed"}
WIRE: Any = object()
QUICK = PageOptions(timeout_ms=100_000)


@pytest.fixture(autouse=True)
def patient_banners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a banner, its script and its end as long as a crowded machine needs for them."""
    for limit in ("OPT_OUT_S", "POPUP_S", "EVAL_S", "ATTACH_S"):
        monkeypatch.setattr(consent, limit, FAR_S)


async def test_a_banner_is_rejected_and_is_no_part_of_the_content(
    browsing: Making, pages: Pages
) -> None:
    pages["/"] = BANNER
    async with browsing(pages.url, consent=stand_in()) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
        assert "the content" in page.text
        assert "consent: no" in page.text
        assert "privacy" not in page.text
        assert page.consent == {"cmp": "stand-in", "result": "opted_out"}
        again = await made.fetcher.fetch(pages.url, QUICK)
        assert "privacy" not in again.text
        assert again.consent == {}


async def test_a_page_that_was_at_rest_before_its_banner_went_is_read_again_once(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    again = Tab._extract_again

    async def read(tab: Tab, *args: Any) -> Any:
        reads.append("again")
        return await again(tab, *args)

    monkeypatch.setattr(Tab, "_extract_again", read)
    script = stand_in().script.replace('await evaluate("IS_READY")', LATE)
    pages["/"] = BANNER
    async with browsing(pages.url, consent=ConsentRules("1", script, stand_in().rules)) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
    assert reads == ["again"]
    assert page.consent["result"] == "opted_out"
    assert "privacy" not in page.text


@pytest.mark.thorough
async def test_each_page_of_several_sites_in_one_tab_has_its_banner_rejected(
    browsing: Making, pages: Pages
) -> None:
    """Contexts of different processes may have the same number."""
    pages["/"] = BANNER.replace("document.cookie.includes('chosen')", "false")
    places = [f"{host}:{pages.server.port}" for host in ("127.0.0.1", "localhost")]
    async with browsing(pages.url, consent=stand_in(), allow_private=places) as made:
        for place in places * 3:
            page = await made.fetcher.fetch(f"http://{place}/", QUICK)
            assert page.consent == {"cmp": "stand-in", "result": "opted_out"}, place
            assert "privacy" not in page.text


class Told:
    """The script in one tab at `http://site.test/`, and what its documents send."""

    def __init__(self) -> None:
        self.banners = consent.ConsentBanners(stand_in())
        self.page: Any = SimpleNamespace(url="")
        self.tab = consent.TabConsent(self.banners, cast("Any", self.page), cast("Any", self))
        self.asked: list[int] = []  # the contexts in which a banner was to be rejected
        self.answers: list[dict[str, Any]] = []  # what each of them sends then
        self.leads_to = ""  # then
        self.open("http://site.test/")

    async def send(self, method: str, given: dict[str, Any]) -> None:
        assert method == "Runtime.evaluate"
        self.asked.append(given["contextId"])
        for message in self.answers:
            await self.tell(given["contextId"], **message)
        if self.leads_to:
            self.open(self.leads_to)

    async def tell(self, context_id: int, **message: Any) -> dict[str, str]:
        payload = json.dumps({"cmp": "stand-in", **message})
        event = {"name": consent.BINDING, "executionContextId": context_id, "payload": payload}
        await self.tab._on_called(cast("Any", self), event)
        return self.tab.outcome

    async def show(self, context_id: int = 1) -> dict[str, str]:
        return await self.tell(context_id, type="popupFound")

    def remove(self, context_id: int) -> None:
        self.tab._on_destroyed(cast("Any", self), {"executionContextId": context_id})

    def open(self, url: str) -> None:
        self.page.url = url
        self.tab._on_document({"frame": {"url": url}})

    async def reject(self) -> bool:
        return await self.tab.reject(asyncio.get_running_loop().time() + FAR_S)


CLICKED = {"type": "clicked"}
REFUSED = {"type": "optOutResult", "result": False}
DONE = {"type": "optOutResult", "result": True}, {"type": "autoconsentDone", "isCosmetic": False}


async def test_a_message_of_an_earlier_page_is_not_of_the_next_one() -> None:
    told = Told()
    assert await told.show() == FAILED
    told.tab.begin()
    assert await told.show(2) == {}  # its document is still there
    told.open("http://site.test/next")
    assert await told.show(1) == {}
    assert await told.show(3) == FAILED


async def test_a_banner_whose_document_is_gone_is_not_rejected() -> None:
    told = Told()
    await told.show()
    told.open("http://site.test/next")
    assert not await told.reject()
    assert told.asked == []


@pytest.mark.parametrize("end", [*DONE, "http://site.test/"])
async def test_the_end_of_a_rejection_is_waited_for(end: Any) -> None:
    told = Told()
    await told.show()
    told.tab._on_document({"frame": {"url": "http://site.test/frame", "parentId": "P"}})
    rejecting = asyncio.ensure_future(told.reject())
    await asyncio.sleep(0)
    assert told.asked == [1]
    assert not rejecting.done()
    if isinstance(end, str):
        told.open(end)
    else:
        await told.tell(1, **end)
    for _ in range(9):
        await asyncio.sleep(0)
    assert rejecting.done() == (end is not DONE[1])
    rejecting.cancel()


async def test_an_interim_page_may_lead_back() -> None:
    told = Told()
    far_s = asyncio.get_running_loop().time() + FAR_S
    told.open("http://site.test/saving")
    returning = asyncio.ensure_future(told.tab.returns_to("http://site.test/#top", far_s))
    for address in ("http://site.test/saved", "http://site.test/"):
        await asyncio.sleep(0)
        assert not returning.done()
        told.open(address)
    assert await returning


async def test_a_manager_that_shows_no_banner_is_waited_for_on_a_few_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consent, "POPUP_S", 0.05)
    told = Told()
    for number in range(consent.MOST_VAIN):
        assert told.banners.may_show("site.test", "stand-in")
        await told.tell(number, type="cmpDetected")
        assert not await told.reject()
        told.tab.begin()
        told.open("http://site.test/")
    assert not told.banners.may_show("site.test", "stand-in")


async def test_all_banners_of_a_page_are_rejected_and_each_context_is_asked_once() -> None:
    told = Told()
    told.answers = [*DONE]
    for context_id in (1, 2, 1, 3):
        await told.show(context_id)
    assert await told.reject()
    await told.show(2)
    assert not await told.reject()
    assert (told.asked, told.tab.outcome) == ([1, 2, 3], OPTED_OUT)


async def test_banners_that_come_again_and_again_are_not_rejected_for_ever() -> None:
    told, rounds = Told(), 0
    told.answers = [*DONE]
    await told.show()
    while await told.reject():
        rounds += 1
        await told.show(1 + rounds)
    assert rounds == consent.MAX_ROUNDS
    assert told.tab.outcome == FAILED


@pytest.mark.parametrize("order", [[REFUSED, *DONE], [*DONE, REFUSED]])
async def test_a_banner_that_is_not_rejected_makes_the_page_a_failed_one(
    order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consent, "POPUP_S", 0.05)
    told = Told()
    told.answers, told.leads_to = [CLICKED, *order], "http://site.test/"
    await told.show()
    assert await told.reject()
    assert not await told.reject()
    assert told.tab.outcome == FAILED


@pytest.mark.parametrize("removed", [1, 2])
async def test_a_banner_whose_frame_is_removed_is_not_waited_for(removed: int) -> None:
    told = Told()
    await told.show(1)
    if removed == 2:
        await told.show(2)
        told.remove(2)
        told.answers = [*DONE]
    rejecting = asyncio.ensure_future(told.reject())
    await asyncio.sleep(0)
    assert told.asked == [1]
    if removed == 1:
        assert not rejecting.done()
        told.remove(1)
    assert await rejecting


@pytest.mark.parametrize("how", ["intermediate", "removed", "waiting"])
async def test_the_second_step_of_a_banner_is_waited_for(how: str) -> None:
    told = Told()
    if how == "intermediate":
        told.answers = [{"type": "optOutResult", "result": True}]  # and it is not done
    await told.show(1)
    rejecting = asyncio.ensure_future(told.reject())
    await asyncio.sleep(0)
    if how == "removed":
        told.remove(1)
    elif how == "waiting":
        await told.show(2)
    for _ in range(9):
        await asyncio.sleep(0)
    assert rejecting.done()
    told.answers = [*DONE]
    following = asyncio.ensure_future(told.reject())
    await asyncio.sleep(0)
    await told.show(2)
    assert await following
    assert not await told.reject()
    assert (told.asked, told.tab.outcome) == ([1, 2], OPTED_OUT)


@pytest.mark.parametrize("answers", [[], [*DONE]])
async def test_a_page_that_was_loaded_again_is_watched_for_its_banner(answers: Any) -> None:
    told = Told()
    told.answers, told.leads_to = answers, "http://site.test/"
    await told.show(1)
    for context_id in range(2, consent.MAX_ROUNDS + 2):
        assert await told.reject()
        following = asyncio.ensure_future(told.reject())
        await asyncio.sleep(0)
        assert not following.done()
        following.cancel()
        await told.show(context_id)
    assert not await told.reject()
    assert told.tab.outcome == FAILED


@pytest.mark.parametrize(
    ("leads_to", "answers", "result"),
    [
        ("http://site.test/", [CLICKED], OPTED_OUT),
        ("http://site.test/", [], FAILED),  # the page reloads itself
        ("http://site.test/", [CLICKED, REFUSED], FAILED),
        ("http://site.test/", [CLICKED, DONE[0]], FAILED),  # its second step is not known
        ("http://site.test/?1", [CLICKED], FAILED),
        ("http://x/", [CLICKED], FAILED),
        ("http://site.test/", [*DONE], OPTED_OUT),
    ],
)
async def test_a_page_without_its_banner_after_it_was_loaded_again_was_answered(
    monkeypatch: pytest.MonkeyPatch, leads_to: str, answers: Any, result: dict[str, str]
) -> None:
    monkeypatch.setattr(consent, "POPUP_S", 0.05)
    told = Told()
    told.answers, told.leads_to = answers, leads_to
    await told.show()
    assert await told.reject()
    assert not await told.reject()
    assert told.tab.outcome == result
    assert told.banners.may_show("site.test", "stand-in") == (result == FAILED)


@pytest.mark.parametrize(
    ("url", "is_same"),
    [
        *(("/a?x=1&y=2", True), ("/a?y=2&x=1&z=3", True), ("/a?x=1&y=2#part", True)),
        *(("/b?x=1&y=2", False), ("/a?x=1", False), ("/a?x=2&y=2", False)),
        *(("/a?x=1&y=2#/route", False), ("/a?x=1&y=2#!route", False)),
    ],
)
def test_a_page_is_the_same_with_more_in_its_query(url: str, is_same: bool) -> None:
    site = "http://site.test"
    assert consent.is_same_page(f"{site}{url}", f"{site}/a?x=1&y=2") == is_same
    assert consent.is_same_page(f"https{site[4:]}{url}", f"{site}/a?x=1&y=2") is False
    assert consent.is_same_page(f"{site}/?1", f"{site}/")


async def test_a_manager_is_waited_for_until_its_banner_was_answered() -> None:
    told = Told()
    told.answers = [*DONE]
    await told.show()
    assert told.banners.may_show("site.test", "stand-in")
    assert await told.reject()
    assert not await told.reject()
    assert not told.banners.may_show("site.test", "stand-in")


@pytest.mark.parametrize("answers", [[REFUSED], [*DONE]])
async def test_banners_that_cannot_be_rejected_are_left_alone_after_a_few(answers: Any) -> None:
    told = Told()
    told.answers = answers
    for context_id in range(1, 9):
        told.open("http://site.test/")
        await told.show(context_id)
        while await told.reject():
            await told.show(100 * context_id + told.tab._rounds)  # it is shown again
        assert told.tab.outcome == FAILED
        told.tab.begin()
    assert len(told.asked) == consent.MOST_FAILED * consent.MAX_ROUNDS


@pytest.mark.parametrize(
    "payload",
    [
        *("", "[]", "{}", "x" * 70_000, '{"type": "init"}'),
        '{"type": "popupFound", "cmp": 5}',
        '{"type": "popupFound", "cmp": "' + "x" * consent.MAX_CHARS + '"}',
    ],
)
async def test_a_message_of_another_form_is_ignored(payload: str) -> None:
    tab = consent.TabConsent(consent.ConsentBanners(stand_in()), cast("Any", None), WIRE)
    event = {"name": consent.BINDING, "executionContextId": 1, "payload": payload}
    await tab._on_called(WIRE, event)
    assert tab.outcome == {}


async def test_a_banner_stays_without_the_option(browsing: Making, pages: Pages) -> None:
    pages["/"] = BANNER
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
    assert "privacy" in page.text
    assert page.consent == {}


async def test_a_banner_that_comes_after_its_manager_is_waited_for(
    browsing: Making, pages: Pages
) -> None:
    pages["/"] = (
        "<div id=manager></div><p>the content</p><script>setTimeout(() => {"
        "document.body.insertAdjacentHTML('beforeend', '<div id=banner>We value your privacy"
        "<button id=reject onclick=banner.remove()>No</button></div>')}, 400)</script>"
    )
    async with browsing(pages.url, consent=stand_in()) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
    assert page.consent["result"] == "opted_out"
    assert "privacy" not in page.text


async def test_a_banner_is_waited_for_again_without_the_cookies_of_the_answer(
    browsing: Making, pages: Pages
) -> None:
    pages["/"] = (
        "<div id=manager></div><p>the content</p><script>setTimeout(() => {"
        "document.body.insertAdjacentHTML('beforeend', '<div id=banner>We value your privacy"
        "<button id=reject onclick=banner.remove()>No</button></div>')}, 800)</script>"
    )
    async with browsing(pages.url, consent=stand_in()) as made:
        for fresh in (False, True):
            options = PageOptions(timeout_ms=100_000, fresh=fresh)
            page = await made.fetcher.fetch(pages.url, options)
            assert page.consent == {"cmp": "stand-in", "result": "opted_out"}


async def test_a_page_with_a_banner_loads_no_more_than_it_may(
    browsing: Making, pages: Pages
) -> None:
    more = "this.insertAdjacentHTML('beforebegin', '<p>entry</p>')"
    pages["/"] = BANNER + f'<button id=more onclick="{more}">More</button>'
    script = stand_in().script.replace('await evaluate("IS_READY")', LATE)
    options = PageOptions(timeout_ms=100_000, load_more="#more", max_loads=2)
    async with browsing(pages.url, consent=ConsentRules("1", script, stand_in().rules)) as made:
        page = await made.fetcher.fetch(pages.url, options)
    assert page.consent["result"] == "opted_out"
    assert (page.loads, page.text.count("entry"), page.loads_cut) == (2, 2, True)


async def test_a_page_at_rest_stays_so_when_its_banner_takes_the_time(
    browsing: Making, pages: Pages
) -> None:
    script = stand_in().script.replace('await evaluate("IS_READY")', "await new Promise(() => 0)")
    pages["/"] = BANNER
    async with browsing(pages.url, consent=ConsentRules("1", script, stand_in().rules)) as made:
        for limit_ms in LIMITS_MS:
            page = await made.fetcher.fetch(pages.url, PageOptions(timeout_ms=limit_ms))
            if page.settled:
                break
    assert page.consent == {"cmp": "stand-in", "result": "failed"}
    assert page.settled


async def test_a_banner_that_cannot_be_rejected_is_reported(browsing: Making, pages: Pages) -> None:
    pages["/"] = "<script>manager = 'blocked'</script>" + BANNER
    async with browsing(pages.url, consent=stand_in()) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
    assert page.consent == {"cmp": "stand-in", "result": "failed"}
    assert "privacy" in page.text


async def test_an_opt_out_without_end_is_given_up_at_its_limit(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consent, "OPT_OUT_S", 0.2)
    endless = ConsentRules(
        "1",
        stand_in().script.replace('await evaluate("IS_READY")', "await new Promise(() => 0)"),
        stand_in().rules,
    )
    pages["/"] = BANNER
    async with browsing(pages.url, consent=endless) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
    assert page.consent == {"cmp": "stand-in", "result": "failed"}
    assert page.settled


async def test_a_page_without_a_banner_is_read_once(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[str] = []

    def may_show(*_: object) -> bool:
        waits.append("waited")
        return False

    monkeypatch.setattr(consent.ConsentBanners, "may_show", may_show)
    pages["/"] = "<p>plain</p>"
    async with browsing(pages.url, consent=stand_in()) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
    assert (page.text.strip(), page.settled, page.consent) == ("plain", True, {})
    assert waits == []


@pytest.mark.thorough("localhost")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_banner_in_a_frame_is_rejected_there(
    browsing: Making, pages: Pages, host: str
) -> None:
    with running(Pages()) as inner:
        inner["/"] = (
            "<div id=framed>We value your privacy"
            "<button id=reject onclick=\"fetch('/rejected')\">No</button></div>"
        )
        frame = f"http://{host}:{inner.server.port}/"
        pages["/"] = f"<p>the content</p><iframe src='{frame}'></iframe>"
        places = [f"{host}:{inner.server.port}"]
        # The script of a frame is not there before the frame; a page that comes to rest early has
        # no banner, however slow the machine was with it.
        options = PageOptions(timeout_ms=100_000, settle_ms=3_000)
        async with browsing(pages.url, consent=stand_in(), allow_private=places) as made:
            page = await made.fetcher.fetch(pages.url, options)
        assert inner.hits["/rejected"] == 1
    assert page.consent == {"cmp": "stand-in-frame", "result": "opted_out"}


async def test_the_page_neither_sees_nor_calls_the_script(browsing: Making, pages: Pages) -> None:
    pages["/"] = (
        "<p id=seen></p><script>const before = new Set(Object.getOwnPropertyNames(window));"
        "addEventListener('load', () => { const found = Object.getOwnPropertyNames(window)"
        ".filter((name) => /consent/i.test(name)); seen.textContent = "
        "`${found.length} ${typeof openchromeMonitorConsent} ${typeof autoconsentReceiveMessage}`"
        "})</script>"
    )
    async with browsing(pages.url, consent=stand_in()) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
    assert page.text.strip() == "0 undefined undefined"


@pytest.mark.thorough
async def test_a_hostile_page_changes_neither_the_result_nor_the_next_page(
    browsing: Making, pages: Pages
) -> None:
    pages["/hostile"] = (
        "<script>window.autoconsentSendMessage = window.autoconsentReceiveMessage = () => 1;"
        "JSON.parse = JSON.stringify = () => 'junk'; Promise.prototype.then = null;"
        "Array.prototype.filter = () => [['x']]; Object.prototype.type = 'optOutResult';"
        "for (let n = 0; n < 999; n++) postMessage({ type: 'popupFound', cmp: 'junk' }, '*');"
        "Object.defineProperty(window, 'manager', { get() { throw Error('no') } })</script>"
        "<div id=manager></div><div id=banner><button id=reject>No</button></div>"
    )
    pages["/"] = BANNER
    async with browsing(pages.url, consent=stand_in()) as made:
        # This page never comes to rest: it takes all of its limit.
        for limit_ms in LIMITS_MS:
            options = PageOptions(timeout_ms=limit_ms)
            hostile = await made.fetcher.fetch(f"{pages.url}/hostile", options)
            if hostile.consent:
                break
        assert hostile.consent == {"cmp": "stand-in", "result": "failed"}
        page = await made.fetcher.fetch(pages.url, QUICK)
        assert page.consent == {"cmp": "stand-in", "result": "opted_out"}


async def test_a_value_of_the_page_is_not_read_but_judged_in_the_page(
    browsing: Making, pages: Pages
) -> None:
    script = stand_in().script.replace('window.manager !== "blocked"', "window.manager")
    pages["/"] = (
        "<script>manager = { get large() { document.body.append('was read'); return 1 } }</script>"
        + BANNER
    )
    async with browsing(pages.url, consent=ConsentRules("1", script, stand_in().rules)) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
    assert page.consent["result"] == "opted_out"
    assert "was read" not in page.text


def test_only_functions_of_the_installed_script_are_run_in_the_page() -> None:
    banners = consent.ConsentBanners(stand_in())
    assert banners.is_snippet('(() => window.manager !== "blocked")()')
    for code in ("fetch('/x')", "(() => 1)(); steal()", "(() => fetch('/x'))()", "", "()()"):
        assert not banners.is_snippet(code), code


SLOW = stand_in().script.replace(
    "document.querySelector(button).click();",
    "{ document.querySelector(button).click(); await new Promise((go) => setTimeout(go, 60_000)) }",
)
SLOW_RULES = ConsentRules("1", SLOW, stand_in().rules)  # it checks its work for a minute
BOTH = pytest.mark.parametrize("rules", [stand_in(), SLOW_RULES], ids=["quick", "slow"])
ASKED = (
    "<div id=manager></div><p>the content of %s</p><a href=/more>more</a><div id=banner>"
    'We value your privacy<button id=reject onclick="%s">No</button></div>'
)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait no longer than a second for a banner that does not come."""
    monkeypatch.setattr(consent, "POPUP_S", 1.0)


@pytest.mark.thorough("*slow")
@BOTH
@pytest.mark.parametrize(
    "how", ["location.reload()", "location = '/again'", "setTimeout(() => location.reload(), 300)"]
)
@pytest.mark.usefixtures("hasty")
async def test_a_page_that_its_banner_reloads_was_answered(
    browsing: Making, pages: Pages, rules: ConsentRules, how: str
) -> None:
    pages["/"] = BANNER.replace("how; banner.remove();", f"how; {how};")
    pages["/again"] = "<p>saving</p><script>setTimeout(() => location.replace('/'), 300)</script>"
    async with browsing(pages.url, consent=rules) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
    assert page.consent == OPTED_OUT
    assert page.final_url == f"{pages.url}/"
    assert "the content" in page.text
    assert "privacy" not in page.text
    assert page.settled


@pytest.mark.thorough
async def test_an_interim_page_that_leads_back_later_is_waited_for(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consent, "POPUP_S", 4.0)
    pages["/"] = BANNER.replace("how; banner.remove();", "how; location = '/saving';")
    pages["/saving"] = (
        "<p>saving</p><script>setTimeout(() => location.replace('/'), 2_000)</script>"
    )
    async with browsing(pages.url, consent=stand_in()) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
    assert (page.consent, page.final_url) == (OPTED_OUT, f"{pages.url}/")
    assert "privacy" not in page.text


@pytest.mark.usefixtures("hasty")
async def test_elements_are_not_clicked_on_another_page_than_the_one_that_was_read(
    browsing: Making, pages: Pages
) -> None:
    pages["/"] = ASKED % ("home", "location = '/privacy'") + "<i onclick=\"location = '/a'\">a</i>"
    pages["/privacy"] = "<i onclick=\"location = '/b'\">b</i>"
    options = PageOptions(timeout_ms=100_000, click_links="i")
    async with browsing(pages.url, consent=stand_in()) as made:
        page = await made.fetcher.fetch(pages.url, options)
    assert (page.clicked, page.clicks_cut) == ([], True)


@pytest.mark.thorough("*slow")
@BOTH
@pytest.mark.parametrize("later_ms", [0, 700])
async def test_a_banner_that_is_shown_again_at_each_rejection_costs_its_page_nothing(
    browsing: Making, pages: Pages, rules: ConsentRules, later_ms: int
) -> None:
    asked = ASKED % ("home", "location.reload()")
    pages["/"] = asked.replace("<div id=manager></div>", "").replace("id=banner", "id=later") + (
        "<script>function show() { later.id = 'banner'; document.body.insertAdjacentHTML("
        "'beforeend', '<div id=manager></div>') }"
        f"setTimeout(show, sessionStorage.seen ? {later_ms} : 0); sessionStorage.seen = 1</script>"
    )
    pages["/next"] = BANNER
    async with browsing(pages.url, consent=rules) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
        assert "the content" in page.text
        assert page.settled
        assert page.consent == FAILED
        assert pages.hits["/"] == 1 + consent.MAX_ROUNDS
        if rules is not SLOW_RULES:
            following = await made.fetcher.fetch(f"{pages.url}/next", QUICK)
            assert following.consent == OPTED_OUT
            assert "privacy" not in following.text


@pytest.mark.thorough("*slow")
@BOTH
@pytest.mark.parametrize(
    "elsewhere",
    [
        *("/privacy", "/missing", "/hangs", "/cut"),
        *("http://localhost:{port}/privacy", "http://localhost:1/refused"),
    ],
)
@pytest.mark.usefixtures("hasty")
async def test_a_page_whose_banner_leads_elsewhere_is_kept_as_it_was(
    browsing: Making, pages: Pages, rules: ConsentRules, elsewhere: str
) -> None:
    address = elsewhere.format(port=pages.server.port)
    pages["/"] = ASKED % ("home", f"location = '{address}'")
    pages["/privacy"] = "<p>what we do</p>"
    pages["/hangs"] = Answer(b"never", delay_s=FAR_S)
    pages["/cut"] = Answer(b"<p>half" * 999, stops="midway")
    places = [f"localhost:{pages.server.port}"]
    options = PageOptions(timeout_ms=100_000, screenshot="all")
    if elsewhere == "/hangs":
        options = PageOptions(timeout_ms=5_000)
    async with browsing(pages.url, consent=rules, allow_private=places) as made:
        page = await made.fetcher.fetch(pages.url, options)
    assert (page.final_url, page.status) == (f"{pages.url}/", 200)
    assert "the content of home" in page.text
    assert f"{pages.url}/more" in page.links
    assert page.settled
    assert not page.cut_off
    assert page.consent == FAILED
    assert page.screenshot is None  # the tab shows something else


@pytest.mark.thorough("answer2")
@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"busy", 503),
        Answer(b"<!doctype html>"),
        Answer(b"<!doctype html><p>half" * 999, stops="midway"),
    ],
)
async def test_a_page_that_has_nothing_to_show_after_its_rejection_is_kept_as_it_was(
    browsing: Making, answer: Answer
) -> None:
    asked = ASKED % ("home", "location.reload()")
    answers = iter([Answer(f"<!doctype html><title>t</title>{asked}".encode())])
    with served(lambda _: next(answers, answer)) as url:
        async with browsing(url, consent=stand_in()) as made:
            page = await made.fetcher.fetch(url, QUICK)
    assert (page.status, page.consent, page.settled) == (200, FAILED, True)
    assert "the content of home" in page.text


@pytest.mark.usefixtures("hasty")
async def test_what_a_page_loads_more_is_loaded_again_after_its_reload(
    browsing: Making, pages: Pages
) -> None:
    more = "this.insertAdjacentHTML('beforebegin', '<p>entry</p>')"
    reload = BANNER.replace("how; banner.remove();", "how; location.reload();")
    pages["/"] = reload + f'<button id=more onclick="{more}">More</button>'
    options = PageOptions(timeout_ms=100_000, load_more="#more", max_loads=2)
    async with browsing(pages.url, consent=stand_in()) as made:
        page = await made.fetcher.fetch(pages.url, options)
    assert page.consent == OPTED_OUT
    assert (page.loads, page.text.count("entry"), page.loads_cut) == (2, 2, True)


@pytest.mark.thorough("None")
@pytest.mark.parametrize("wait_for", [None, "#article"])
async def test_a_page_that_waits_for_the_answer_to_its_banner_gets_it(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch, wait_for: str | None
) -> None:
    monkeypatch.setattr(crawl_tab, "WALL_S", 2.0)
    pages["/"] = (
        "<div id=manager></div><div id=banner>We value your privacy<button id=reject onclick="
        '"banner.remove(); wall.abort(); setTimeout(show, 600)">No</button></div><script>'
        "const wall = new AbortController(); fetch('/held', wall).catch(() => 0);"
        "function show() { document.body.insertAdjacentHTML('beforeend',"
        " '<p id=article>the content</p>') }</script>"
    )
    pages["/held"] = Answer(b"", delay_s=FAR_S)
    options = PageOptions(timeout_ms=600_000, wait_for=wait_for)  # longer than the test may take
    async with browsing(pages.url, consent=stand_in()) as made:
        page = await made.fetcher.fetch(pages.url, options)
    assert page.consent == OPTED_OUT
    assert "the content" in page.text
    assert page.settled


@pytest.mark.usefixtures("hasty")
async def test_a_page_that_reloads_itself_before_a_rejection_did_not_answer(
    browsing: Making, pages: Pages
) -> None:
    """Its banner is shown once in a session."""
    asked = ASKED % ("home", "banner.remove()")
    pages["/"] = asked.replace("id=banner", "id=banner hidden") + (
        "<script>if (sessionStorage.seen) banner.remove(); else { banner.hidden = false;"
        " sessionStorage.seen = 1; setTimeout(() => location.reload(), 50) }</script>"
    )
    async with browsing(pages.url, consent=SLOW_RULES) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
    assert page.consent != OPTED_OUT


@pytest.mark.thorough("frame*")
@pytest.mark.parametrize("how", ["frame.remove()", "top.location = '/privacy'"])
@pytest.mark.usefixtures("hasty")
async def test_the_end_of_a_frame_is_no_answer_to_its_banner(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(consent, "OPT_OUT_S", 1.5)  # it takes all of this time
    with running(Pages()) as inner:
        inner["/"] = (
            "<div id=framed>We value your privacy"
            "<button id=reject onclick=\"parent.postMessage('rejected', '*')\">No</button></div>"
        )
        pages["/privacy"] = "<p>what we do</p>"
        pages["/"] = (
            f"<p>the content</p><iframe src='http://localhost:{inner.server.port}/'></iframe>"
            "<script>const frame = document.querySelector('iframe');"
            f"addEventListener('message', () => {{ {how} }})</script>"
        )
        places = [f"localhost:{inner.server.port}"]
        options = PageOptions(timeout_ms=100_000, settle_ms=2_000)
        async with browsing(pages.url, consent=SLOW_RULES, allow_private=places) as made:
            page = await made.fetcher.fetch(pages.url, options)
    assert page.consent == {"cmp": "stand-in-frame", "result": "failed"}
    assert "the content" in page.text


COMPLIANZ = (
    "<p>the content</p><div id=cmplz-cookiebanner-container><div class='cmplz-cookiebanner"
    " cmplz-show'>We value your privacy <button class='cmplz-btn cmplz-deny'"
    " onclick=\"this.closest('#cmplz-cookiebanner-container').remove();"
    "document.cookie = 'cmplz_banner-status=dismissed'\">Deny</button></div></div>"
)


@pytest.mark.skipif(bool(missing()), reason=missing() or "it is there")
async def test_the_real_rules_reject_a_known_banner(
    browsing: Making, pages: Pages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consent_rules, "place", lambda: tmp_path / "rules.json")
    found = consent_rules.install_file(Path(os.environ["CONSENT_PACKAGE"]))
    pages["/"] = COMPLIANZ
    pages["/plain"] = Answer(b"<!doctype html><title>t</title><p>plain</p>")
    async with browsing(pages.url, consent=found) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
        assert page.consent == {"cmp": "Complianz banner", "result": "opted_out"}
        assert "the content" in page.text
        assert "privacy" not in page.text
        plain = await made.fetcher.fetch(f"{pages.url}/plain", QUICK)
        assert plain.consent == {}


@pytest.mark.thorough
async def test_a_bundle_of_a_page_whose_banner_leads_nowhere_shows_that_page(
    home: Path, pages: Pages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consent_rules, "place", lambda: tmp_path / "rules.json")
    consent_rules.install_file(package(tmp_path / "given.tgz"))
    pages["/"] = ASKED % ("home", "location = '/hangs'")
    pages["/hangs"] = Answer(b"never", delay_s=FAR_S)
    asked = {"url": pages.url, "dismiss_consent": True, "include": ["dom"], "timeout_ms": 5_000}
    async with opened(home) as engine:
        bundle = await engine.requests.start("oc_evidence_bundle", asked)
        ended = await engine.tasks.wait(bundle.task_id, 100_000)
        assert ended.status == "COMPLETED", ended.error
        head = await engine.tasks.head(bundle.task_id)
    assert head["consent"] == FAILED
    dom = home / "tasks" / bundle.task_id / "artifacts" / "dom.html"
    assert "the content of home" in dom.read_text()


async def test_a_crawl_and_a_bundle_record_what_they_did_with_the_banner(
    home: Path, pages: Pages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consent_rules, "place", lambda: tmp_path / "rules.json")
    consent_rules.install_file(package(tmp_path / "given.tgz"))
    pages["/"] = BANNER
    asked = {"url": pages.url, "dismiss_consent": True}
    async with opened(home) as engine:
        crawled = await engine.requests.start("crawl", {**asked, "max_pages": 1, "delay_ms": 0})
        parts = {"include": ["dom", "console"]}
        bundle = await engine.requests.start("oc_evidence_bundle", {**asked, **parts})
        for record in (crawled, bundle):
            assert (await engine.tasks.wait(record.task_id, 100_000)).status == "COMPLETED"
        (page,) = LedgerReader(engine.settings.root).read_pages(crawled.task_id)
        table = tmp_path / "pages.csv"
        await engine.exports.to_file(Order(crawled.task_id, "csv"), table)
        head = await engine.tasks.head(bundle.task_id)
    expected = {"cmp": "stand-in", "result": "opted_out"}
    assert page["consent"] == head["consent"] == expected
    assert unit_of(page, 0).consent_words == "stand-in: rejected"
    assert "privacy" not in page["content"]
    dom = home / "tasks" / bundle.task_id / "artifacts" / "dom.html"
    assert "privacy" not in dom.read_text()
    assert "a line of the script" not in (dom.parent / "console.jsonl").read_text()
    assert "stand-in,opted_out" in table.read_text()
