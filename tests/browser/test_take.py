"""Extraction of a page: readiness, visible content, and errors."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from engine.egress.egress_policy import Policy
from engine.model.addresses import Credentials
from engine.model.errors import PageError
from engine.pages.custom_fields import FieldRule
from engine.pages.extract import extract_now
from engine.pages.fetch import PageOptions
from engine.pages.static_engine import open_static
from engine.sample.site import Answer
from fixtures.site.oddities import PASSWORD, USER
from fixtures.site.site import Site
from tests.bench.rendered_text import likeness
from tests.browser.conftest import TABS, Making, Pages
from tests.support.engines import until
from tests.support.far_limits import wait_for_answers
from tests.work.random_pages import random_page

QUICK = PageOptions(timeout_ms=2_500)
AT_LEISURE = PageOptions(timeout_ms=100_000)


async def test_content_that_comes_late_is_there(
    browsing: Making, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_answers(monkeypatch)
    async with browsing(site.url) as made:
        page = await made.fetcher.fetch(f"{site.url}/js/7", PageOptions())
        assert (page.status, page.title, page.settled) == (200, "Field notes 7", True)
        assert "observation 000007 is complete" in page.text
        assert "observation 000007 is complete" in page.html
        assert f"{site.url}/js/8" in page.links
        assert page.content_type == "text/html"
        assert page.bytes > 0
        assert page.response_ms > 0
        assert page.render_ms >= 100


async def test_extraction_waits_for_the_settle_time(browsing: Making, pages: Pages) -> None:
    # Each change comes 60 ms after the one before: 50 ms of waiting see the first only.
    pages["/"] = (
        "<script>let n = 0; const go = () => { document.body.append(`step${++n} `);"
        "if (n < 12) setTimeout(go, 60) }; addEventListener('load', go)</script>"
    )
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions(settle_ms=2_000))
        assert "step12" in page.text
        assert page.settled


@pytest.mark.parametrize(
    "script",
    [
        "fetch('/data').then(a => a.text()).then(t => document.body.append(t))",
        "const x = new XMLHttpRequest(); x.open('GET', '/data');"
        "x.onload = () => document.body.append(x.responseText); x.send()",
    ],
)
async def test_a_page_that_waits_for_an_answer_is_not_ready(
    browsing: Making, pages: Pages, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_answers(monkeypatch)
    pages["/"] = (
        f"<script>addEventListener('load', () => setTimeout(() => {{{script}}}, 20))</script>"
    )
    pages["/data"] = Answer(b"the answer", 200, "text/plain", delay_s=0.4)
    async with browsing(pages.url) as made:
        # Less than the answer takes, and more than a crowded machine delays a timer of the page.
        options = PageOptions(settle_ms=200, timeout_ms=100_000)
        page = await made.fetcher.fetch(pages.url, options)
        assert "the answer" in page.text
        assert page.settled


LEADING_ON = [
    "<script>location.href = '/next'</script>",
    "<script>onload = () => setTimeout(() => location.replace('/next'), 30)</script>",
    "<meta http-equiv=refresh content='0;url=/next'>",
    "<form action=/next></form><script>onload = () => document.forms[0].submit()</script>",
]
STAYING = [
    "navigation.onnavigate = e => e.intercept(); location.href = '/own'",
    "navigation.onnavigate = e => e.preventDefault(); location.href = '/own'",
    "location.hash = 'below'",
    "location.href = 'mailto:someone@example.com'",
]


@pytest.mark.parametrize("by_browser", [True, False], ids=["browser", "static"])
async def test_a_refresh_in_the_header_leads_on_like_the_element(
    browsing: Making, pages: Pages, by_browser: bool
) -> None:
    def sent_on(value: str) -> Answer:
        return Answer(b"<!doctype html><p>one moment", headers=(("Refresh", value),))

    pages["/at-once"] = sent_on("0; url=/next")
    pages["/next"] = "<p>the page itself"
    cases = {
        "30; URL='next?later'": ["/next?later"],
        "30": [],
        "600; url=/next": [],
        '30; url=/next?"><b>more</b>': ["/next?%22%3E%3Cb%3Emore%3C/b%3E"],
    }
    async with AsyncExitStack() as stack:
        if by_browser:
            fetcher = (await stack.enter_async_context(browsing(pages.url))).fetcher
        else:
            policy = Policy.for_start(pages.url)
            fetcher = await stack.enter_async_context(open_static(policy))
        page = await fetcher.fetch(f"{pages.url}/at-once", AT_LEISURE)
        assert page.final_url == f"{pages.url}/next"
        for value, links in cases.items():
            pages["/later"] = sent_on(value)
            found = extract_now(await fetcher.fetch(f"{pages.url}/later", AT_LEISURE), "text")
            assert [one.url for one in found.links] == [pages.url + link for link in links], value
            assert str(found.content).strip() == "one moment"


@pytest.mark.timeout(900)  # many cases in one browser
async def test_a_page_that_leads_on_is_not_taken_for_the_one_it_leads_to(
    browsing: Making, pages: Pages, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    wait_for_answers(monkeypatch)
    pages["/next"] = Answer(b"<p>the page itself", 200, "text/html", delay_s=1.5)
    cases = {way: f"<p>one moment</p>{way}" for way in LEADING_ON}
    async with browsing(pages.url, pages=TABS) as made:
        taken = await made.taken(cases, pages, AT_LEISURE, shared="/next")
    for way, case in taken.items():
        with subtests.test(way=way):
            page = case.result()
            assert (page.text.strip(), page.settled) == ("the page itself", True)
            assert page.final_url.startswith(f"{pages.url}/next")


@pytest.mark.thorough
async def test_a_page_that_stays_where_it_is_is_ready_when_it_is_still(
    browsing: Making, pages: Pages, subtests: pytest.Subtests
) -> None:
    async with browsing(pages.url) as made:
        for way in STAYING:
            with subtests.test(way=way):
                pages["/"] = f"<p>here</p><script>onload = () => {{ {way} }}</script>"
                page = await made.fetcher.fetch(pages.url, PageOptions(timeout_ms=60_000))
                assert ("here" in page.text, page.settled) == (True, True)
                assert page.render_ms < 40_000


async def test_a_page_that_never_settles_is_read_at_the_limit(browsing: Making, site: Site) -> None:
    async with browsing(site.url) as made:
        page = await made.at_its_limit(f"{site.url}/ever", holds="<i></i>")
        assert not page.settled


async def test_a_page_that_never_loads_returns_partial_text(browsing: Making, site: Site) -> None:
    async with browsing(site.url) as made:
        page = await made.at_its_limit(f"{site.url}/hang-body", holds="The first half.")
        assert (page.status, page.settled) == (200, False)


async def test_waiting_for_a_selector_ends_when_it_is_there(browsing: Making, site: Site) -> None:
    async with browsing(site.url) as made:
        options = PageOptions(wait_for="p.here", timeout_ms=60_000)
        page = await made.fetcher.fetch(f"{site.url}/late?ms=600", options)
        assert page.settled
        assert "late words" in page.text
        page = await made.at_its_limit(f"{site.url}/static/1", wait_for="p.here")
        assert not page.settled
        with pytest.raises(PageError, match="wait_for is not a selector"):
            await made.fetcher.fetch(f"{site.url}/static/1", PageOptions(wait_for="p["))


async def test_only_what_a_reader_sees_is_handed_over(browsing: Making, site: Site) -> None:
    async with browsing(site.url) as made:
        page = await made.fetcher.fetch(f"{site.url}/hidden", PageOptions())
        for text in (page.html, page.text):
            assert "seen by everyone" in text
            for unseen in ("hidden by", "inside a template", "not text", "inside noscript"):
                assert unseen not in text


async def test_only_the_description_of_the_head_is_kept(browsing: Making, pages: Pages) -> None:
    pages["/"] = Answer(
        b"<html lang=fr><head><title>t</title><meta name=Description content='in short'>"
        b"<meta name=x content=y><link rel=icon href=/i></head><body><p>words</p></body></html>"
    )
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions())
        assert page.html == (
            '<html lang="fr"><head><meta name="Description" content="in short"></head>'
            "<body><p>words</p></body></html>"
        )


async def test_boxless_elements_keep_their_content(browsing: Making, pages: Pages) -> None:
    pages["/"] = "<div style='display:contents'><p>kept</p></div><p style='display:none'>gone</p>"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions())
        assert "<p>kept</p>" in page.html
        assert "gone" not in page.html


async def test_links_are_absolute_unique_and_passwordless(browsing: Making, pages: Pages) -> None:
    hrefs = [
        "a",
        "/a",
        "//other.example/x",
        "http://me:pw@b.example/",
        "javascript:x()",
        "mailto:a@b",
    ]
    pages["/"] = "".join(f"<a href='{href}'>x</a>" for href in hrefs) + "<a>none</a>"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions())
        assert page.links == [f"{pages.url}/a", "http://other.example/x", "http://b.example/"]
        assert "pw" not in page.html
        assert "javascript" not in page.html


async def test_links_are_cut_at_the_maximum(browsing: Making, pages: Pages) -> None:
    pages["/"] = "".join(f"<a href='/{n}'>x</a>" for n in range(3_000))
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions(max_links=2_000))
        assert (len(page.links), page.links_over) == (2_000, 1_000)


async def test_a_page_with_too_much_text_is_cut_and_says_so(browsing: Making, pages: Pages) -> None:
    pages["/"] = "<p>" + "word " * 60_000 + "</p><p>" + "tail " * 10 + "</p>"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions(max_bytes=200_000))
        assert page.truncated
        assert 100_000 < len(page.text) <= 200_000
        assert "tail" not in page.html


async def test_a_page_cannot_forge_the_extraction(browsing: Making, pages: Pages) -> None:
    pages["/"] = (
        "<p>truth</p><script>String.prototype.slice = () => 'lie'; JSON.stringify = () => 'lie';"
        "Set = Map = Promise = undefined; Element.prototype.checkVisibility = () => false;"
        "window.setTimeout = () => 0; performance.getEntriesByType = () => 1;</script>"
    )
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions())
        assert "truth" in page.html
        assert "lie" not in page.text


async def test_broken_surrogates_are_replaced(browsing: Making, pages: Pages) -> None:
    pages["/"] = "<script>document.title = document.body.textContent = 'a\\ud800b'</script>"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions())
        assert page.title == page.text.strip() == "a\ufffdb"


NOT_TAKEN = [
    ("/loop", "redirects", "too many redirects"),
    ("/redirect/40", "redirects", "too many redirects"),
    ("/hang", "timeout", "the page did not answer within 2.5 s"),
    ("/busy-script", "timeout", "the page did not answer within 2.5 s"),
    ("/no-content", "no_content", "the server answered without a page"),
    ("/files/archive.zip", "download", "download skipped"),
]


@pytest.mark.timeout(900)  # many cases in one browser
async def test_a_page_that_cannot_be_taken_says_why_and_the_next_one_can(
    browsing: Making, site: Site, subtests: pytest.Subtests
) -> None:
    async with browsing(site.url) as made:
        for path, kind, sentence in NOT_TAKEN:
            with subtests.test(path=path):
                options = QUICK if kind == "timeout" else PageOptions()
                with pytest.raises(PageError) as failed:
                    await made.fetcher.fetch(site.url + path, options)
                assert (failed.value.kind, str(failed.value)) == (kind, sentence)
                for _ in range(2):
                    page = await made.fetcher.fetch(f"{site.url}/static/1", PageOptions())
                    assert page.title == "Field notes 1"


async def test_nobody_listens_is_a_refused_connection(browsing: Making, pages: Pages) -> None:
    pages.server.stop()
    async with browsing(pages.url) as made:
        with pytest.raises(PageError, match="connection refused"):
            await made.fetcher.fetch(pages.url, PageOptions())


@pytest.mark.parametrize(("status", "after"), [(404, None), (500, None), (503, 7.0)])
async def test_an_error_of_the_server_is_a_page_with_its_status(
    browsing: Making, pages: Pages, status: int, after: float | None
) -> None:
    pages["/"] = Answer(b"<p>sorry</p>", status, headers=(("Retry-After", "7"),))
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions())
        assert (page.status, page.text, page.retry_after_s) == (status, "sorry", after)


async def test_a_redirect_is_followed_and_told(browsing: Making, site: Site) -> None:
    async with browsing(site.url) as made:
        page = await made.fetcher.fetch(f"{site.url}/redirect/3", PageOptions())
        assert (page.status, page.final_url) == (200, f"{site.url}/static/1")
        page = await made.fetcher.fetch(f"{site.url}/meta-refresh", PageOptions())
        assert page.final_url != f"{site.url}/meta-refresh"


@pytest.mark.parametrize(
    ("path", "content_type", "text"),
    [
        ("/files/notes.txt", "text/plain", "plain notes, café"),
        ("/files/image.png", "image/png", ""),
    ],
)
async def test_what_is_not_html_comes_with_its_type_and_without_markup(
    browsing: Making, site: Site, path: str, content_type: str, text: str
) -> None:
    async with browsing(site.url) as made:
        page = await made.fetcher.fetch(site.url + path, PageOptions())
        assert (page.status, page.content_type, page.html) == (200, content_type, "")
        assert page.text.strip() == text


async def test_user_and_password_answer_their_own_origin_only(browsing: Making, site: Site) -> None:
    known = Credentials(site.url, USER, PASSWORD)
    async with browsing(site.url, credentials=known) as made:
        assert (await made.fetcher.fetch(f"{site.url}/auth", PageOptions())).status == 200
    elsewhere = Credentials("http://127.0.0.1:1", USER, PASSWORD)
    async with browsing(site.url, credentials=elsewhere) as made:
        assert (await made.fetcher.fetch(f"{site.url}/auth", PageOptions())).status == 401
    wrong = Credentials(site.url, USER, "guess")
    async with browsing(site.url, credentials=wrong) as made:
        assert (await made.fetcher.fetch(f"{site.url}/auth", PageOptions())).status == 401


async def test_pictures_fonts_and_media_are_not_asked_for(browsing: Making, pages: Pages) -> None:
    pages["/"] = (
        "<style>@font-face { font-family: f; src: url(/f.woff2) } p { font-family: f }</style>"
        "<p>text</p><img src=/i.png><video src=/v.mp4 preload=auto></video>"
        "<div style='background: url(/b.png); width: 9px; height: 9px'></div>"
    )
    kinds = {"/i.png", "/b.png", "/f.woff2", "/v.mp4"}
    async with browsing(pages.url) as made:
        await made.fetcher.fetch(pages.url, PageOptions())
        assert not kinds & set(pages.hits)
    async with browsing(pages.url, block_resources=False) as made:
        await made.fetcher.fetch(pages.url, PageOptions())
        await until(lambda: kinds <= set(pages.hits))  # some are asked for when it is drawn


async def test_screenshots_are_made_as_asked(browsing: Making, site: Site) -> None:
    async with browsing(site.url) as made:
        good, bad = f"{site.url}/static/1", f"{site.url}/status/404"
        for shots, wanted in (("none", (0, 0)), ("failed", (0, 1)), ("all", (1, 1))):
            # A literal in the parametrization.
            options = PageOptions(screenshot=shots)  # type: ignore[arg-type]
            taken = [(await made.fetcher.fetch(url, options)).screenshot for url in (good, bad)]
            assert tuple(int(bool(shot)) for shot in taken) == wanted
            assert all(shot.startswith(b"\x89PNG") for shot in taken if shot)


async def test_a_fetch_works_after_a_cancelled_one(browsing: Making, site: Site) -> None:
    async with browsing(site.url) as made:
        await made.fetcher.fetch(f"{site.url}/static/1", PageOptions())
        for path in ("/hang", "/busy-script"):
            endless = PageOptions(timeout_ms=1_000_000)
            hanging = asyncio.ensure_future(made.fetcher.fetch(site.url + path, endless))
            while not site.hits[path]:
                await asyncio.sleep(0.01)
            hanging.cancel()
            async with asyncio.timeout(100):
                with pytest.raises(asyncio.CancelledError):
                    await hanging
        page = await made.fetcher.fetch(f"{site.url}/static/2", PageOptions())
        assert page.title == "Field notes 2"


CARD = (
    "<my-card><b slot=name>Name</b> rest</my-card><script>"
    "customElements.define('my-card', class extends HTMLElement { constructor() { super();"
    " this.attachShadow({ mode: 'open' }).innerHTML ="
    " '<div>Hello <slot name=name></slot>!</div><p>of <slot></slot></p><a href=/in>inside</a>'"
    " + '<i hidden>gone</i>'; } })</script>"
)


async def test_open_shadow_roots_are_extracted(browsing: Making, pages: Pages) -> None:
    pages["/"] = (
        f"<p>before</p>{CARD}<div>x<template shadowrootmode=open><p>declared</p><slot></slot>"
        "</template>slotted</div><table><tr><td>1<td>2</table><a href=/out>outside</a>"
    )
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions())
    assert page.text == (
        "before\n\nHello Name!\n\nof rest\n\ninside\n\ndeclared\n\nxslotted\n1\t2\noutside"
    )
    assert '<div>Hello <b slot="name">Name</b>!</div><p>of  rest</p>' in page.html
    assert "gone" not in page.html
    assert dict(zip(page.links, page.link_texts, strict=True)) == {
        f"{pages.url}/out": "outside",
        f"{pages.url}/in": "inside",
    }
    assert not page.truncated


async def test_closed_shadow_roots_are_extracted_and_stay_closed_to_the_page(
    browsing: Making, pages: Pages
) -> None:
    pages["/"] = f"""<p>before</p>{CARD.replace("'open'", "'closed'")}<p id=log></p><script>
    const card = document.querySelector('my-card'), div = document.createElement('div');
    const init = Object.create({{ mode: 'closed' }}); // a dictionary reads inherited members
    const root = div.attachShadow(init), own = Object.hasOwn(init, 'mode');
    const said = [card.shadowRoot, root.mode, div.shadowRoot, root.host === div, own];
    for (const wrong of [[], [{{}}], [null], [{{ mode: 'odd' }}]]) {{
      try {{ document.body.attachShadow(...wrong); }} catch (error) {{ said.push(error.name); }}
    }}
    log.textContent = said.map(String).join(' ');</script>"""
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions())
    says = "null closed null true false" + " TypeError" * 4
    assert page.text == f"before\n\nHello Name!\n\nof rest\n\ninside\n\n{says}"
    assert page.links == [f"{pages.url}/in"]


async def test_shadow_roots_read_like_plain_elements(browsing: Making, pages: Pages) -> None:
    for seed in range(30):
        body = random_page(seed).partition("<body>")[2].removesuffix("</body>")
        pages[f"/{seed}"] = body
        pages[f"/shadow/{seed}"] = f"<div><template shadowrootmode=open>{body}</template></div>"
    same = 0
    async with browsing(pages.url) as made:
        for seed in range(30):
            plain, composed = [
                await made.fetcher.fetch(f"{pages.url}/{place}", PageOptions(settle_ms=0))
                for place in (str(seed), f"shadow/{seed}")
            ]
            same += likeness(composed.text, plain.text.strip("\n")) in {"same", "lines"}
    assert same >= 28


async def test_links_have_their_texts_seen_or_not(browsing: Making, pages: Pages) -> None:
    pages["/"] = (
        "<a href=/1> one <b>link</b></a><a href=/2><img alt=picture></a><a href=/1>again</a>"
        "<p hidden><a href=/3>unseen</a></p><a href=/4></a><a href=/4 aria-label=label></a>"
    )
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions())
    assert page.link_texts == ["one link", "picture", "unseen", "label"]


SPACED = {
    "<h3>Title</h3><p>Text</p>": "Title Text",
    "two<br>lines": "two lines",
    "<b>w</b>ord<i>s</i>": "words",
    "<div>a</div>b<ul><li>c<li>d</ul>e": "a b c d e",
    "<table><tr><td>1<td>2</table>": "1 2",
    "<svg><title>Icon</title></svg>Home": "Icon Home",
    "a<script>var x</script><style>b{}</style>b": "ab",
    "a<!-- note -->b": "ab",
    "a&lt;b<wbr>c": "a<bc",
}


async def test_words_of_neighbouring_lines_are_kept_apart(browsing: Making, pages: Pages) -> None:
    pages["/"] = "".join(f"<a href=/{at}>{one}</a>\n" for at, one in enumerate(SPACED)) + (
        "<h1>Big<br>news</h1><div class=card><div>left</div><div>right</div></div>"
    )
    rules = (FieldRule("card", ".card"),)
    names = {f"{pages.url}/{at}": name for at, name in enumerate(SPACED.values())}
    async with browsing(pages.url) as made, open_static(Policy.for_start(pages.url)) as static:
        for fetcher in (made.fetcher, static):
            page = await fetcher.fetch(pages.url, PageOptions(fields=rules))
            taken = extract_now(page, "structured", rules=rules)
            assert {link["href"]: link["text"] for link in taken.anchors} == names
            assert isinstance(taken.content, dict)
            assert {"level": 1, "text": "Big news"} in taken.content["headings"]
            assert taken.facts is not None
            assert taken.facts.h1.split() == ["Big", "news"]
            assert taken.values == {"card": "left right"}


async def test_links_are_named_with_the_spaces_of_their_styles(
    browsing: Making, pages: Pages
) -> None:
    pages["/"] = (
        "<style>.rows { display: flex } .rows span { padding: 1em }</style>"
        "<a class=rows href=/1><span>Name</span><span>Price</span></a>"
        "<a href=/2><span>N</span><span>ame</span></a>"
    )
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PageOptions())
    assert page.link_texts == ["Name Price", "Name"]


async def test_same_origin_frames_are_merged(browsing: Making, pages: Pages) -> None:
    pages["/"] = Answer(
        b"<title>t</title><frameset cols=1,1><frame src=/1><frame src=/2></frameset>"
    )
    pages["/1"] = "<p>one</p><a href=/x>to x</a>"
    pages["/2"] = (
        "<p>two</p><iframe src=/1></iframe><iframe srcdoc='<b>three</b>'></iframe>"
        "<iframe src=/1 hidden></iframe><iframe src=http://other.example/></iframe>"
    )
    async with browsing(pages.url) as made:
        whole = await made.fetcher.fetch(pages.url, PageOptions())
        inner = await made.fetcher.fetch(f"{pages.url}/2", PageOptions())
    assert (whole.frames, inner.frames) == (4, 2)
    assert whole.text.split() == ["one", "to", "x", "two", "one", "to", "x", "three"]
    assert inner.text.split() == ["two", "one", "to", "x", "three"]
    assert whole.html.count("<p>one</p>") == 2
    assert whole.links == [f"{pages.url}/1", f"{pages.url}/2", f"{pages.url}/x"]
    assert inner.links == [f"{pages.url}/1", f"{pages.url}/x"]


FRAMES = (
    *("<frameset cols=1,1><frame src=/1><frame src=/2></frameset>", "<iframe src=/1></iframe>"),
    "<p>own</p><iframe srcdoc='<b>here</b><a href=/y>y</a>'></iframe><iframe src=/2></iframe>",
    "<iframe src=/1 hidden></iframe><div style='display:none'><iframe src=/1></iframe></div>",
    "<style>.a {display: none}</style><iframe src=/1 class=a></iframe>",
    "<iframe src=/1 width=0></iframe><iframe src=/1 style='visibility:hidden'></iframe>",
    "<p>own</p><iframe src=/1 width=1 height=1 frameborder=0></iframe>",
    "<iframe src=/1 sandbox></iframe><iframe src=/2 sandbox=allow-same-origin></iframe>",
    "<iframe src=/round></iframe><iframe src=/gone></iframe><iframe src=/away></iframe>",
    "<base href=/deep/><iframe src=1></iframe><iframe src=/text></iframe>",
)


async def test_both_engines_agree_on_frames(browsing: Making, pages: Pages, canary: Pages) -> None:
    pages["/1"] = "<style>i {display: none}</style><p>one <i>unseen</i></p><a href=/x>to x</a>"
    pages["/2"] = "<p>two</p><iframe src=/1></iframe><iframe src=/1 hidden></iframe>"
    pages["/deep/1"] = "<a href=2>deep</a>"
    pages["/text"] = Answer(b"plain", 200, "text/plain")
    pages["/away"] = Answer(status=302, headers=(("Location", f"{canary.url}/"),))
    pages["/round"] = "<p>round</p><iframe src=/round></iframe>"
    for n, html in enumerate(FRAMES):
        pages[f"/f{n}"] = f"<title>{n}</title>{html}"
    async with browsing(pages.url) as made, open_static(Policy.for_start(pages.url)) as static:
        for n in range(len(FRAMES)):
            url = f"{pages.url}/f{n}"
            shown = extract_now(await made.fetcher.fetch(url, PageOptions()), "text")
            told = extract_now(await static.fetch(url, PageOptions()), "text")
            assert str(told.content).split() == str(shown.content).split(), FRAMES[n]
            assert {a.key for a in told.links} == {a.key for a in shown.links}, FRAMES[n]
    assert not canary.hits


@pytest.mark.thorough
async def test_a_page_of_80_000_elements_is_all_there(browsing: Making, pages: Pages) -> None:
    pages["/"] = "".join(f"<p>row <b>{n}</b>\n" for n in range(40_000))
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, AT_LEISURE)
        assert (page.truncated, page.text.count("row")) == (False, 40_000)
    async with browsing(pages.url) as made:  # alone again, so that a slow machine is no doubt
        few = await made.fetcher.fetch(pages.url, PageOptions(timeout_ms=100_000, max_elements=999))
        assert (few.truncated, few.text.count("row")) == (True, 500)


async def test_a_page_writes_a_thousand_lines_to_its_console_and_no_more(
    browsing: Making, pages: Pages
) -> None:
    pages["/noisy"] = """<script>for (let at = 0; at < 2_500; at += 1) console.log(at);
        document.write(`<p>${typeof console.warn("more")} ${console.log.name}`)</script>"""
    heard: list[str] = []
    async with browsing(pages.url) as made:
        await made.fetcher.fetch(pages.url, AT_LEISURE)
        (chromium,) = made.session._running.values()
        (context,) = chromium.browser.contexts
        context.on("console", lambda message: heard.append(message.text))
        page = await made.fetcher.fetch(f"{pages.url}/noisy", AT_LEISURE)
        assert page.text.strip() == "undefined log"
        assert heard[-1] == "999"
        assert len(heard) == 1_000
