"""Facts of a page are the same in both engines, and what its markup says."""

from __future__ import annotations

import gzip
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kinds.crawl.crawl_kind import PAGE_COLUMNS
from engine.pages.extract import extract_now
from engine.pages.fetch import Fetched
from engine.pages.page_facts import MAX_TEXT, MAX_TYPES, RELS, structured_types
from engine.sample.site import Answer, Request
from tests.support.engines import opened
from tests.support.serving import served

HOST = "site.test"
PAGE = """<!doctype html><html lang="de-AT"><head><meta charset="utf-8"><title>T</title>
<link rel="alternate Canonical" href="/page?a=1"><meta name="Description" content="  A   fine
 page "><meta name=ROBOTS content="noindex, follow">
<script type="application/ld+json">{"@graph":[{"@type":"Product"},
 {"@type":["Offer","http://schema.org/Thing"]}]}</script>
<script type="application/ld+json">not json</script></head>
<body><h1>One <b>big</b> heading</h1><h1>two</h1><p>Some words here, hel<b>lo</b>.</p>
<noscript><p>no script words</p><script>var x = 1</script></noscript>
<style>p { color: red }</style><script>var words = "a b c"</script>
<template><p>in template</p></template>
<a href="/a">in</a><a href="b" rel="NoFollow noopener">in2</a>
<a href="https://other.test/x" rel="nofollow">out</a><a href="mailto:x@y">m</a>
<a href="javascript:1">j</a><map><area href="/area"></map><a>none</a>
<img src="x.png"><img src="y.png" alt=""><img alt="z">
<div itemscope itemtype="https://schema.org/Person https://schema.org/Author"></div>
<p hidden>hidden words two</p><form><input name="querySelectorAll"></form></body></html>"""
FACTS = {
    "content_type": "text/html",
    "charset": "utf-8",
    "language": "de-AT",
    "description": "A fine page",
    "robots": "noindex, follow, nosnippet",
    "h1": "One big heading",
    "h1_count": 2,
    "words": 19,
    "links_internal": 3,
    "links_external": 1,
    "links_nofollow": 2,
    "images": 3,
    "images_without_alt": 1,
    "structured_data": ["Product", "Offer", "Thing", "Person", "Author"],
}


async def page_of(home: Path, url: str, engine: str, **args: Any) -> dict[str, Any]:
    """The stored record of one page."""
    given = {"url": url, "engine": engine, "max_pages": 1, "respect_robots": False, **args}
    async with opened(home) as service:
        record = await service.requests.start("crawl", given)
        await service.tasks.wait(record.task_id, 150_000)
    (page,) = json.loads((home / "tasks" / record.task_id / "result.json").read_text())["pages"]
    return dict(page)


@pytest.mark.parametrize("engine", ["static", "browser", "auto"])
async def test_a_page_says_the_same_in_each_engine(home: Path, engine: str) -> None:
    answer = Answer(PAGE.encode(), headers=(("X-Robots-Tag", "nosnippet"),))
    with served(lambda _: answer) as url:
        facts = (await page_of(home, f"{url}/page", engine))["facts"]
    assert facts.pop("canonical") == f"{url}/page?a=1"
    assert re.fullmatch("[0-9a-f]{16}", facts.pop("content_hash"))
    assert facts == FACTS


@pytest.mark.parametrize("engine", ["static", "browser"])
async def test_equal_pages_have_one_hash(home: Path, engine: str) -> None:
    bodies = {"/a": "<p>one two", "/b": "<p>one \n two", "/c": "<p>one three"}
    with served(lambda request: Answer(bodies[request.path].encode())) as url:
        found = [
            (await page_of(home, url + path, engine))["facts"]["content_hash"] for path in bodies
        ]
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("engine", ["static", "browser"])
async def test_facts_hold_no_secret(home: Path, engine: str) -> None:
    body = """<link rel=canonical href="/x?access_token=Zq81kkTTw92hx7Lm">
    <meta name=description content="the value pa55-Value-9 itself"><h1>pa55-Value-9</h1>"""
    with served(lambda _: Answer(body.encode())) as url:
        page = await page_of(home, f"{url}/?token=pa55-Value-9", engine)
    said = json.dumps(page)
    assert "Zq81" not in said
    assert "pa55-Value-9" not in said
    assert page["facts"]["h1"]


@pytest.mark.parametrize("status", [404, 500])
async def test_an_error_has_no_facts(home: Path, status: int) -> None:
    with served(lambda _: Answer(PAGE.encode(), status=status)) as url:
        assert "facts" not in await page_of(home, url, "static", retries=0)


async def test_plain_text_has_no_facts(home: Path) -> None:
    with served(lambda _: Answer(b"words", content_type="text/plain")) as url:
        assert "facts" not in await page_of(home, url, "static")


def test_each_fact_is_a_column_of_exports() -> None:
    columns = {column.name for column in PAGE_COLUMNS}
    wanted = {*FACTS, "canonical", "content_hash"}
    assert {name.removeprefix("facts.") for name in columns if name.startswith("facts.")} == wanted


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"@graph":' * 5_000, '{"@type": 3}', '{"@type": [null, {}]}', "NaN", ""],
    ids=range(6),
)
def test_strange_linked_data_has_no_types(text: str) -> None:
    assert structured_types([text], []) == []


def test_types_are_few_and_short() -> None:
    many = [json.dumps({"@type": f"T{number}" + "x" * 9_000}) for number in range(50)]
    found = structured_types(many, [])
    assert len(found) <= MAX_TYPES
    assert all(len(name) <= MAX_TEXT for name in found)


class _Independent(HTMLParser):
    """Counts by the events of another parser."""

    def __init__(self) -> None:
        super().__init__()
        self.words = self.images = self.bare = self.headings = self.nofollow = self.links = 0
        self._unsaid = 0
        self.rels: dict[str, list[set[str]]] = {}  # of each link, by its address

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self._unsaid += tag in {"script", "style"}
        self.headings += tag == "h1"
        self.images += tag == "img"
        self.bare += tag == "img" and "alt" not in found
        if tag in {"a", "area"} and "href" in found:
            target = urljoin(f"http://{HOST}/", found["href"] or "").partition("#")[0]
            self.rels.setdefault(target, []).append(set((found.get("rel") or "").lower().split()))
        if tag == "a" and (found.get("href") or "").startswith("http"):
            self.links += 1
            self.nofollow += "nofollow" in (found.get("rel") or "").lower().split()

    def handle_endtag(self, tag: str) -> None:
        self._unsaid -= tag in {"script", "style"}

    def handle_data(self, data: str) -> None:
        self.words += 0 if self._unsaid else len(data.split())


PIECES = st.sampled_from(
    [
        *("<p>one two</p>", "three", " four <b>fi</b>ve", "<h1>six</h1>", "<script>a b</script>"),
        *("<style>p { }</style>", "<img>", "<img alt>", "<img alt='x y'>", "<hr>"),
        *("<a href='http://site.test/a'>l</a>", "<a href='https://o.test/' rel='NOFOLLOW x'>m</a>"),
        *("<a>n</a>", "<a href='#x' rel=nofollow>o</a>", "<div hidden>seven</div>"),
        *(
            "<a href=/a rel='ugc nofollow'>p</a>",
            "<a href='/a#b' rel=' Sponsored\tnofollow '>q</a>",
        ),
        *("<area href=https://o.test/ rel=ugc,nofollow>", "<a href=//site.test:8080/a rel>r</a>"),
    ]
)


@given(st.lists(PIECES, max_size=12))
def test_counts_are_those_of_another_parser(pieces: list[str]) -> None:
    html = f"<html><body>{''.join(pieces)}</body></html>"
    other = _Independent()
    other.feed(html)
    own = f"http://{HOST}/"
    raw = extract_now(Fetched(own, own, 200, "text/html", html=html, engine="static"), "text").facts
    assert raw is not None
    in_page = html.count("href='#x'") + html.count("href=/") + html.count("href='/")
    in_page += html.count("href=https")
    assert raw.words == other.words
    assert (raw.images, raw.images_without_alt) == (other.images, other.bare)
    assert raw.h1_count == other.headings
    assert raw.links_internal + raw.links_external == other.links + in_page
    followed = html.count("rel=ugc,nofollow") + html.count("rel>r")
    assert raw.links_nofollow == other.nofollow + in_page - followed


@given(st.lists(PIECES, max_size=12))
def test_each_link_says_what_another_parser_reads_of_it(pieces: list[str]) -> None:
    html = f"<html><body>{''.join(pieces)}</body></html>"
    other = _Independent()
    other.feed(html)
    own = f"http://{HOST}/"
    found = extract_now(Fetched(own, own, 200, "text/html", html=html, engine="static"), "text")
    told = {one["href"]: (one.get("rel", ""), one.get("external", False)) for one in found.anchors}
    assert told == {
        target: (
            " ".join(name for name in RELS if all(name in rel for rel in rels)),
            urlsplit(target).netloc != HOST,
        )
        for target, rels in other.rels.items()
    }


LINKS = """<a href="/a" rel="nofollow ugc">a</a><a href="/a#top" rel="NoFollow noopener">again</a>
<a href="/b" rel="nofollow">b</a><a href="/b">b</a><a href="https://o.test/" rel=sponsored>o</a>
<a href="https://o.test/x">x</a><map><area href="/c" rel=" ugc\nsponsored "></map>
<a href="/e" rel="nofollow">e</a><a href="/e" rel="nofollow ugc">e</a>
<iframe src="/frame"></iframe>"""
FRAME = """<a href="/a">in a frame</a><a href="/d" rel=nofollow>d</a>"""


@pytest.mark.parametrize("engine", ["static", "browser", "auto"])
async def test_each_link_says_its_rel_and_whether_it_leads_elsewhere(
    home: Path, engine: str
) -> None:
    def answer(request: Request) -> Answer:
        return Answer((FRAME if request.path == "/frame" else LINKS).encode())

    with served(answer) as url:
        page = await page_of(home, url, engine)
    found = {
        one["href"].removeprefix(url): (one.get("rel"), one.get("external"))
        for one in page["links"]
    }
    assert found == {
        "/a": (None, None),  # one of its links, in the frame, has none
        "/b": (None, None),
        "https://o.test/": ("sponsored", True),
        "https://o.test/x": (None, True),
        "/c": ("ugc sponsored", None),
        "/d": ("nofollow", None),
        "/e": ("nofollow", None),
        "/frame": (None, None),
    }


REDIRECTS = {
    "/old": ("/older?x=1", 301),
    "/older?x=1": ("/refreshes", 302),
}
REFRESHES = '<meta http-equiv="refresh" content="0; url=/page"><p>moved</p>'


@pytest.mark.parametrize("engine", ["static", "browser"])
async def test_every_address_that_led_on_is_named(home: Path, engine: str) -> None:
    def answer(request: Request) -> Answer:
        to = REDIRECTS.get(request.target)
        if to is not None:
            return Answer(b"", to[1], headers=(("Location", to[0]),))
        return Answer((REFRESHES if request.target == "/refreshes" else PAGE).encode())

    with served(answer) as url:
        page = await page_of(home, f"{url}/old", engine)
    assert page["final_url"] == f"{url}/page"
    assert page["redirects"] == [
        {"url": f"{url}/old", "status": 301},
        {"url": f"{url}/older?x=1", "status": 302},
        {"url": f"{url}/refreshes", "status": 200, "by": "page"},
    ]


@pytest.mark.parametrize("engine", ["static", "browser"])
async def test_a_page_tells_how_much_was_sent(home: Path, engine: str) -> None:
    sent = gzip.compress(PAGE.encode() * 9)
    answer = Answer(sent, headers=(("Content-Encoding", "gzip"),))
    with served(lambda _: answer) as url:
        page = await page_of(home, url, engine)
    assert (page["transferred_bytes"], page["bytes"]) == (len(sent), len(PAGE.encode() * 9))
    assert "redirects" not in page


@pytest.mark.parametrize("status", [200, 204, 304, 404])
async def test_an_answer_without_a_body_has_no_size(home: Path, status: int) -> None:
    first = Answer(b"<a href=/none>none</a>")
    with served(lambda request: Answer(b"", status) if request.path == "/none" else first) as url:
        args = {"url": url, "engine": "static", "max_pages": 2, "respect_robots": False}
        async with opened(home) as service:
            record = await service.requests.start("crawl", {**args, "delay_ms": 0})
            ended = await service.tasks.wait(record.task_id, 60_000)
    assert ended.status == "COMPLETED"
    pages = json.loads((home / "tasks" / record.task_id / "result.json").read_text())["pages"]
    assert ["transferred_bytes" in page for page in pages] == [True, False]
