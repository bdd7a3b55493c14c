"""The text of declared shadow roots in static pages equals Chromium's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.pages.extract import Extracted, extract_now, flattened
from engine.pages.fetch import Fetched, PageOptions
from engine.pages.style_sheets import parse_sheet
from tests.browser.conftest import Making, Pages

ROOT = "<template shadowrootmode=open>"
END = "</template>"
SHADOWS = [
    f"<p>before</p><div>x{ROOT}<p>declared</p><slot></slot>{END}slotted</div><p>after",
    f"<x-card>{ROOT}<style>.no, em {{ display: none }}</style><h2><slot name=t>Untitled</slot></h2>"
    f"<b class=no>gone</b><slot>none</slot><em>x</em><div><x-in>{ROOT}<i>deep <slot></slot></i>"
    f"<a href=/d>link</a>{END}<slot name=u></slot></x-in></div>{END}"
    "<b slot=t>Title</b> body <u slot=u>under</u><q slot=lost>lost</q></x-card>",
    "<style>.k { display: none }</style><section><template shadowrootmode=closed>"
    f"unread <slot name=k></slot>{END}<p>light</p><p slot=k>kept</p></section>"
    f"<section>{ROOT}<p class=k>open</p>{END}<p>light</p></section>",
    f"<ul>{ROOT}no host{END}<li>one</ul><div><template shadowrootmode=odd>odd{END}two</div>"
    f"<div>{ROOT}1{END}<template shadowrootmode=open>2{END}light</div>",
    f"<div>{ROOT}<slot></slot><p>{ROOT}own <slot></slot>{END}inner</p>{END}"
    f"<span>{ROOT}<b>in</b> <slot></slot>{END}light</span> end</div>",
    f"<div>{ROOT}<slot>first</slot><slot>second</slot>{END}<i>only once</i></div>"
    f"<div>{ROOT}<slot>instead</slot>{END}<!-- no child --></div>",
]


def static_of(html: str) -> Extracted:
    url = "http://a.test/"
    own = html.partition("<style>")[2].partition("</style>")[0] if html[:7] == "<style>" else ""
    styles = (parse_sheet(own).rules,)
    page = Fetched(url, url, 200, "text/html", html=html, engine="static", styles=styles)
    return extract_now(page, "text")


def words_of(html: str) -> str:
    return str(static_of(html).content)


async def test_declared_shadow_roots_read_as_displayed(browsing: Making, pages: Pages) -> None:
    for number, html in enumerate(SHADOWS):
        pages[f"/{number}"] = f"<!doctype html><body>{html}"
    async with browsing(pages.url) as made:
        for number, html in enumerate(SHADOWS):
            shown = await made.fetcher.fetch(f"{pages.url}/{number}", PageOptions(settle_ms=0))
            assert words_of(html).split() == shown.text.split(), html


def test_links_in_declared_roots_are_found() -> None:
    found = static_of(SHADOWS[1])
    assert [link.url for link in found.links] == ["http://a.test/d"]


@pytest.mark.parametrize("html", ["<p>shadow</p>", "<template><p>shadowrootmode</p></template>"])
def test_a_page_without_declared_roots_is_not_touched(html: str) -> None:
    assert flattened(html) is html


def test_roots_in_roots_end_at_a_depth() -> None:
    html = f"<div>{ROOT}a" * 200 + f"{END}</div>" * 200
    assert 20 <= words_of(html).count("a") < 200


PARTS = [ROOT, END, "<div>", "</div>", "<slot>", "<slot name=a>", "</slot>", "<b slot=a>", "</b>"]


@given(st.lists(st.sampled_from([*PARTS, "words", "<x-y>", "</x-y>", "<p>"]), max_size=14))
def test_whatever_stands_in_a_page_no_word_of_it_is_there_twice(parts: list[str]) -> None:
    words = iter(range(100))
    html = "".join(f" w{next(words)} " if part == "words" else part for part in parts)
    said = words_of(html).split()
    assert len(said) == len(set(said))
