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
from engine.browser.page import consent
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
from tests.support.serving import running

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
        page = cast("Any", SimpleNamespace(url="http://site.test/#top"))
        self.tab = consent.TabConsent(self.banners, page, WIRE)
        self.context_id = 0

    async def tell(self, context_id: int, **message: Any) -> dict[str, str]:
        payload = json.dumps({"cmp": "stand-in", **message})
        event = {"name": consent.BINDING, "executionContextId": context_id, "payload": payload}
        await self.tab._on_called(WIRE, event)
        return self.tab.outcome

    async def show(self, context_id: int = 1) -> dict[str, str]:
        self.context_id = context_id
        return await self.tell(context_id, type="popupFound")

    async def answer(self, *, result: bool) -> dict[str, str]:
        return await self.tell(self.context_id, type="optOutResult", result=result)

    def open(self, url: str) -> dict[str, str]:
        self.tab._on_document({"frame": {"url": url}})
        return self.tab.outcome

    async def finish(self) -> bool:
        return await self.tab.finish(asyncio.get_running_loop().time() + FAR_S)


async def test_a_message_of_an_earlier_page_is_not_of_the_next_one() -> None:
    told = Told()
    assert await told.show() == FAILED
    await told.tab.begin()
    assert await told.show() == {}
    assert await told.show(2) == FAILED


async def test_an_end_of_a_document_counts_until_the_banner_has_a_result() -> None:
    told = Told()
    await told.show()
    taken = told.tab.outcome  # of a page that is left before the end of its opt-out
    assert told.open("http://site.test/") == OPTED_OUT
    assert taken == FAILED
    await told.tab.begin()
    await told.show(2)
    await told.answer(result=False)
    assert told.open("http://site.test/") == FAILED


async def test_a_frame_that_moves_to_another_process_is_not_removed() -> None:
    told = Told()
    context = {"id": 7, "name": consent.WORLD, "auxData": {"frameId": "F", "isDefault": False}}
    told.tab._on_context(WIRE, {"context": context})
    await told.show(7)
    told.tab._on_detached({"frameId": "F", "reason": "swap"})
    assert told.tab.outcome == FAILED
    told.tab._on_detached({"frameId": "F", "reason": "remove"})
    assert told.tab.outcome == OPTED_OUT


async def test_frames_are_left_alone_after_a_banner_was_shown_again() -> None:
    told, frame = Told(), cast("Any", None)
    with pytest.raises(AttributeError):  # there is no browser
        await told.tab._attach_frame(frame)
    told.tab._is_stopped = True
    await told.tab._attach_frame(frame)


async def test_a_document_that_ended_on_an_earlier_page_is_none_of_the_next_one() -> None:
    told = Told()
    await told.show()
    told.open("http://site.test/")
    await told.tab.begin()
    assert await told.show(2) == FAILED
    assert not told.tab._is_stopped


async def test_a_page_is_read_again_for_a_few_banners_only() -> None:
    told = Told()
    await told.show()
    await told.answer(result=True)
    finished = []
    for context_id in range(2, 12):
        await told.show(context_id)
        finished.append(await told.finish())
    assert sum(finished) == consent.MAX_BANNERS


async def test_a_manager_is_waited_for_until_it_was_answered_or_often_in_vain() -> None:
    for result in (True, False):
        told, rounds = Told(), 0
        while told.banners.may_show("site.test", "stand-in"):
            rounds += 1
            await told.show(rounds)
            await told.answer(result=result)
            assert await told.finish()
            assert not await told.finish()  # it has one banner
            await told.tab.begin()
        assert rounds == (1 if result else consent.MOST_VAIN)


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
ASKED = (
    "<div id=manager></div><p>the content of %s</p><div id=banner>We value your privacy"
    '<button id=reject onclick="%s">No</button></div>'
)


@pytest.mark.parametrize("reload", ["location.reload()", "location = '/again'"])
async def test_a_page_that_its_banner_reloads_was_answered(
    browsing: Making, pages: Pages, reload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consent, "POPUP_S", 1.0)  # the manager is still there: all of this time
    pages["/"] = BANNER.replace("how; banner.remove();", f"how; {reload};")
    pages["/again"] = "<script>location.replace('/')</script>"
    async with browsing(pages.url, consent=SLOW_RULES) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
    assert page.consent == OPTED_OUT
    assert "the content" in page.text
    assert "privacy" not in page.text
    assert page.settled


async def test_a_page_without_a_manager_after_its_reload_is_not_waited_for(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[str] = []

    def may_show(*_: object) -> bool:
        waits.append("waited")
        return False

    monkeypatch.setattr(consent.ConsentBanners, "may_show", may_show)
    asked = ASKED % ("home", "document.cookie = 'chosen=no'; location.reload()")
    pages["/"] = (
        f"<template>{asked}</template><script>if (!document.cookie.includes('chosen'))"
        " document.body.append(document.querySelector('template').content)</script>"
    )
    async with browsing(pages.url, consent=SLOW_RULES) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
    assert page.consent == OPTED_OUT
    assert waits == []


@pytest.mark.parametrize("rules", [stand_in(), SLOW_RULES])
async def test_a_banner_that_is_shown_again_at_each_rejection_costs_its_page_nothing(
    browsing: Making, pages: Pages, rules: ConsentRules
) -> None:
    pages["/"] = ASKED % ("home", "location.reload()")
    pages["/next"] = BANNER
    async with browsing(pages.url, consent=rules) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
        assert "the content" in page.text
        assert page.settled
        assert page.consent == FAILED
        assert pages.hits["/"] == 3
        if rules is not SLOW_RULES:
            following = await made.fetcher.fetch(f"{pages.url}/next", QUICK)
            assert following.consent == OPTED_OUT
            assert "privacy" not in following.text


@pytest.mark.parametrize("later_ms", [0, 3_000])
async def test_the_banner_of_a_page_that_takes_the_place_of_another_is_rejected(
    browsing: Making, pages: Pages, later_ms: int
) -> None:
    wait = "await new Promise((go) => setTimeout(() => go(true), 1_500))"
    script = SLOW.replace('await evaluate("IS_READY")', wait, 1)
    script = script.replace("60_000", "location.pathname === '/' ? 60_000 : 0")
    pages["/"] = ASKED % ("home", "setTimeout(() => location.replace('/en'), 250)")
    banner = ASKED % ("the place", "banner.remove()")
    pages["/en"] = banner.replace("<div id=banner>", "<div id=later>") + (
        f"<script>setTimeout(() => {{ later.id = 'banner' }}, {later_ms})</script>"
    )
    async with browsing(pages.url, consent=ConsentRules("1", script, stand_in().rules)) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
    assert page.final_url == f"{pages.url}/en"
    assert page.consent == OPTED_OUT
    assert "the content of the place" in page.text
    assert "privacy" not in page.text


async def test_a_button_that_leads_to_another_page_did_not_reject(
    browsing: Making, pages: Pages
) -> None:
    pages["/"] = ASKED % ("home", "location = '/privacy'")
    pages["/privacy"] = "<p>what we do</p>"
    async with browsing(pages.url, consent=SLOW_RULES) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
    assert page.final_url == f"{pages.url}/privacy"
    assert page.consent == FAILED


async def test_a_banner_of_a_page_that_leads_to_another_site_is_not_of_that_page(
    browsing: Making, pages: Pages
) -> None:
    there = f"http://localhost:{pages.server.port}"
    pages["/"] = ASKED % ("home", f"location = '{there}/in'")
    pages["/in"] = "<p>within</p>"
    places = [f"localhost:{pages.server.port}"]
    async with browsing(pages.url, consent=SLOW_RULES, allow_private=places) as made:
        page = await made.fetcher.fetch(pages.url, QUICK)
    assert (page.final_url, page.consent) == (f"{there}/in", {})


FRAMED = (
    "<div id=framed>We value your privacy"
    "<button id=reject onclick=\"parent.postMessage('rejected', '*')\">No</button></div>"
)


@pytest.mark.parametrize(
    ("rejected", "result"),
    [
        ("frame.remove()", "opted_out"),
        ("frame.parentNode.innerHTML = ''", "opted_out"),
        ("location.reload()", "opted_out"),
        ("frame.src += 'settings'", "failed"),
        ("frame.src = elsewhere", "failed"),
        ("frame.replaceWith(frame.cloneNode())", "failed"),
    ],
)
async def test_the_end_of_a_frame_is_the_answer_to_its_banner(
    browsing: Making,
    pages: Pages,
    rejected: str,
    result: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if result == "failed":  # it takes all of this time
        monkeypatch.setattr(consent, "OPT_OUT_S", 2.0)
    with running(Pages()) as inner:
        inner["/"], inner["/settings"] = FRAMED, "<p>no banner</p>"
        frame = f"http://localhost:{inner.server.port}/"
        pages["/"] = (
            f"<p>the content</p><div><iframe src='{frame}'></iframe></div><script>"
            "const frame = document.querySelector('iframe');"
            f"const elsewhere = 'http://127.0.0.1:{inner.server.port}/settings';"
            "if (sessionStorage.rejected) frame.remove();"
            f"addEventListener('message', () => {{ sessionStorage.rejected = 1; {rejected} }})"
            "</script>"
        )
        places = [f"{one}:{inner.server.port}" for one in ("localhost", "127.0.0.1")]
        options = PageOptions(timeout_ms=100_000, settle_ms=3_000)
        async with browsing(pages.url, consent=SLOW_RULES, allow_private=places) as made:
            page = await made.fetcher.fetch(pages.url, options)
        assert inner.hits["/"] <= 3
    assert page.consent == {"cmp": "stand-in-frame", "result": result}


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
