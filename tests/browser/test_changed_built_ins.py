"""Pages that declare, replace or remove parts of the language and of the document."""

from __future__ import annotations

import pytest

from engine.browser.chromium import tab_pool
from engine.browser.page import extraction_options
from engine.pages.fetch import PageOptions
from engine.sample.site import Answer
from tests.browser.conftest import TABS, Making, Pages

PATIENT = PageOptions(timeout_ms=100_000)
ASKS = "fetch('/slow').then(a => a.text()).then(t => document.body.append(t));"
SIGNALLED = ASKS.replace("'/slow'", "'/slow', { signal: new AbortController().signal }")
PART = b"document.body.append('words')"
# What a page does before it asks for its content.
DOES = {
    **{
        f"class {name}": f"class {name} {{}}"
        for name in (
            *("Element", "Node", "Document", "DocumentFragment", "EventTarget", "Request"),
            *("Storage", "Proxy", "Reflect", "Set", "Map", "Math", "Array", "Promise", "Event"),
            *("CustomEvent", "MutationObserver", "Worker", "Text"),
        )
    },
    "lists have toJSON": "Array.prototype.toJSON = function () { return `${this}` };",
    "objects have toJSON": "Object.prototype.toJSON = function () { return 'object' };",
    "replaced dispatchEvent": "document.dispatchEvent = () => true;",
    "replaced addEventListener": "document.addEventListener = () => 0;",
    "timers": "class Proxy {}; setTimeout(() => 0, 10);",
}
WRITES = "document.open(); document.write(`<p>new</p><script>ASKS<\\/script>`); document.close();"
WRITES = WRITES.replace("ASKS", ASKS)
PAGES = {
    **{name: f"<p>first</p><script>{does} {ASKS}</script>" for name, does in DOES.items()},
    "an image of that name": f"<img name=dispatchEvent><p>first</p><script>{ASKS}</script>",
    "written after the load event": f"<p>first</p><script>onload = () => {{ {WRITES} }}</script>",
    "written before the load event": "<p>first</p><script>addEventListener('DOMContentLoaded',"
    f" () => {{ {WRITES} }})</script>",
    "a class and a request with a signal": "<p>first</p><script>class EventTarget {}"
    f" {SIGNALLED}</script>",
    "a class and another request": "<p>first</p><script>class EventTarget {} const one ="
    " new XMLHttpRequest(); one.open('GET', '/slow');"
    " one.onload = () => document.body.append(one.responseText); one.send()</script>",
    "a class and a script": "<p>first</p><script>class EventTarget {} const one ="
    " document.createElement('script'); one.src = '/part.js'; document.head.append(one)</script>",
}


@pytest.mark.thorough
@pytest.mark.timeout(900)  # many cases in one browser
async def test_late_content_is_awaited_whatever_a_page_changes(
    browsing: Making, pages: Pages, subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tab_pool, "STALL_S", 1_000.0)  # each page is taken as it is
    monkeypatch.setattr(extraction_options, "REQUEST_MS", PATIENT.timeout_ms)
    pages["/slow"] = Answer(b"words", 200, "text/plain", delay_s=0.8)
    pages["/part.js"] = Answer(
        b"document.body.append('words')", 200, "text/javascript", delay_s=0.8
    )
    async with browsing(pages.url, pages=TABS) as made:
        taken = await made.taken(PAGES, pages, PATIENT)
    for name, case in taken.items():
        with subtests.test(name=name):
            page = case.result()
            assert ("words" in page.text, page.settled) == (True, True)
            assert page.render_ms < PATIENT.timeout_ms / 2, "it waited for its limit"


async def test_a_frame_whose_lists_have_to_json_costs_its_page_nothing(
    browsing: Making, pages: Pages
) -> None:
    changes = f"<script>{DOES['lists have toJSON']}</script>"
    pages["/in"] = f"{changes}inner"
    pages["/"] = f"{changes}<p>words</p><iframe src=/in></iframe>"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert (page.text.split(), page.settled) == (["words", "inner"], True)


async def test_a_frame_that_was_written_by_a_script_is_awaited(
    browsing: Making, pages: Pages
) -> None:
    pages["/slow"] = Answer(b"words", 200, "text/plain", delay_s=0.8)
    writes = WRITES.replace("document.open", "const document = frames[0].document; document.open")
    pages["/"] = f"<p>first</p><iframe></iframe><script>onload = () => {{ {writes} }}</script>"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert ("words" in page.text, page.settled) == (True, True)


async def test_a_selector_that_never_matches_ends_at_the_limit_in_a_sandbox(
    browsing: Making, pages: Pages
) -> None:
    sandbox = ("Content-Security-Policy", "sandbox")
    pages["/"] = Answer(b"<p>words</p>", headers=(sandbox,))
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions(timeout_ms=3_000, wait_for=".never"))
    assert (page.text, page.settled) == ("words", False)


async def test_a_page_that_removes_its_document_while_it_loads_more_is_taken(
    browsing: Making, pages: Pages
) -> None:
    removes = "document.documentElement.remove()"
    pages["/"] = f'<p>words</p><button onclick="{removes}">more</button>'
    async with browsing(pages.url) as made:
        for scroll in (False, True):
            options = PageOptions(timeout_ms=100_000, load_more="button", scroll=scroll)
            assert (await made.fetcher.fetch(pages.url, options)).text == ""


async def test_a_request_with_a_very_long_address_costs_its_page_no_time(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its address is compared with those of requests that are known to be held open."""
    monkeypatch.setattr(tab_pool, "STALL_S", 1_000.0)  # each page is taken as it is
    monkeypatch.setattr(extraction_options, "REQUEST_MS", 1_500)
    paths = [f"/{sign}{'a' * 60_000}" for sign in "bcde"]
    for path in paths:
        pages[path] = Answer(stops="before")
    asks = "for (const one of 'bcde') fetch(`/${one}${'a'.repeat(60_000)}`)"
    pages["/"] = f"<p>words</p><script>onload = () => {{ {asks} }}</script>"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert (page.text, page.settled) == ("words", False)
    assert all(pages.hits[path] for path in paths)
    assert page.render_ms < 10_000


async def test_a_page_that_replaces_addeventlistener_learns_no_name_of_the_engine(
    browsing: Making, pages: Pages
) -> None:
    replaces = "EventTarget.prototype.addEventListener = function (name) { document.title += name }"
    changes = "document.append(document.createComment('x'))"
    pages["/"] = f"<p>words</p><script>{replaces}; {changes}</script>"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert (page.title, page.settled) == ("t", True)
