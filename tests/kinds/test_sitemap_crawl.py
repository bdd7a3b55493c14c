"""The kind `crawl_sitemap` on the sample site: sources of its list, and selected pages."""

import asyncio
import gzip
import json
from contextlib import asynccontextmanager

import pytest

from engine.egress.egress_policy import Policy
from engine.kinds.host_delay import Pace
from engine.kinds.sitemap import sitemap_crawl
from engine.kinds.sitemap.sitemap_crawl import (
    ARGUMENTS,
    MAX_FILES,
    Search,
    SitemapMissing,
    SitemapUnmatched,
    crawl_sitemap,
    head,
    parse_sitemap,
)
from engine.model.config import Settings
from engine.model.errors import InvalidArguments, PageError
from engine.model.records import Status
from engine.pages.engine_choice import Loader
from engine.pages.static_engine import open_static
from engine.sample.site import Answer, urlset
from engine.service.engine import Engine
from engine.text.messages import say
from engine.text.words import remarks
from fixtures.site.site import Site
from fixtures.site.sitemaps import ELSEWHERE, index
from tests.support.memory_context import MemoryContext

QUICK = {"engine": "static", "delay_ms": 0}
GONE = Answer(b"", 404)


async def taken(ctx=None, **given):
    args = parse_sitemap({**QUICK, **given})
    ctx = ctx or MemoryContext()
    policy = Policy.for_start(args.pages.url)

    @asynccontextmanager
    async def open_fetcher(engine, asked):
        async with open_static(policy, asked.credentials) as fetcher:
            yield fetcher

    outcome, found = await crawl_sitemap(args, ctx, open_fetcher)
    return head(outcome, found), ctx.pages


def paths(pages, site):
    return sorted(page["url"].removeprefix(site.url) for page in pages)


async def test_the_sitemap_that_robots_names_is_the_source(site):
    told, pages = await taken(url=site.url, max_pages=100)
    assert told["sitemap_source"] == told["summary"]["sitemap_source"] == f"{site.url}/sitemap.xml"
    assert paths(pages, site) == sorted(["/", *(f"/page/{n}" for n in range(1, 51))])
    assert {page["depth"] for page in pages} == {0}
    assert {page["lastmod"] for page in pages} == {"2026-01-01"}
    assert told["summary"]["stopped_by"] == "frontier"
    assert max(hits for path, hits in site.hits.items() if path != "/robots.txt") == 1


async def test_without_a_line_in_robots_the_usual_places_are_tried_in_order(site):
    site.robots = "User-agent: *\nDisallow:\n"
    site.answers["/sitemap.xml"] = Answer(b"<!doctype html><html>Not here</html>")
    site.answers["/sitemap_index.xml"] = Answer(index([f"{site.url}/sitemaps/packed.xml.gz"]))
    told, pages = await taken(url=f"{site.url}/static/7")
    assert told["sitemap_source"] == f"{site.url}/sitemap_index.xml"
    assert paths(pages, site) == ["/static/1", "/static/2"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
async def test_the_address_that_was_given_is_looked_at_first_whatever_its_name(site, pack):
    listed = [f"{site.url}/static/{number}" for number in (3, 4)]
    for path, body in (("/all-pages.txt", "\n".join(listed).encode()), ("/map", urlset(listed))):
        site.answers[path] = Answer(pack(body), content_type="application/octet-stream")
        told, pages = await taken(url=site.url + path)
        assert told["sitemap_source"] == site.url + path
        assert paths(pages, site) == ["/static/3", "/static/4"]
        assert told["summary"]["sitemap_files_damaged"] == 0


async def test_a_page_that_was_given_is_no_damaged_sitemap_and_robots_keeps_it_back(site):
    told, _ = await taken(url=f"{site.url}/static/7", max_pages=1)
    assert told["sitemap_source"] == f"{site.url}/sitemap.xml"
    assert told["summary"]["sitemap_files_damaged"] == 0
    await taken(url=f"{site.url}/private/secret", max_pages=1)
    assert (site.hits["/static/7"], site.hits["/private/secret"]) == (1, 0)


async def test_entries_with_routes_are_counted_or_pages_of_their_own(site):
    front = f"{site.url}/static/1"
    entries = [f"{front}{fragment}" for fragment in ("#!/a", "#/b", "#top", "#/b#top")]
    site.answers["/sitemap.xml"] = Answer(urlset([*entries, f"{ELSEWHERE}#/c"]))
    told, pages = await taken(url=site.url)
    assert (paths(pages, site), told["summary"]["links_fragments"]) == (["/static/1"], 2)
    args = parse_sitemap({"url": site.url, "fragments": "routes", "delay_ms": 0})
    policy = Policy.for_start(site.url)
    async with Loader(args.pages, lambda *_: open_static(policy)) as loader:
        ctx = MemoryContext()
        given: list[str] = []

        async def give(visits):
            given.extend(visit.address.url for visit in visits)

        search = Search(args, ctx, loader, Pace(ctx, 0.0))
        await search.run(give)
    assert given == [f"{front}#!/a", f"{front}#/b", front]
    assert "links_fragments" not in search.found.summary()


async def test_no_sitemap_is_an_error_that_says_what_was_tried(site):
    site.robots = ""
    site.answers.update({"/sitemap.xml": GONE, "/sitemap_index.xml": GONE})
    ctx = MemoryContext()
    with pytest.raises(SitemapMissing) as missing:
        await taken(ctx, url=site.url)
    said = str(missing.value)
    assert "robots.txt names none" in said
    assert f"{site.url}/sitemap.xml: HTTP 404" in said
    assert f"{site.url}/sitemap_index.xml: HTTP 404" in said
    assert missing.value.advice
    assert ctx.pages == []


async def test_an_index_leads_to_every_kind_of_file_and_to_no_other_site(site):
    told, pages = await taken(sitemap_url=f"{site.url}/sitemaps/index.xml")
    assert [page["url"] for page in pages if "error" in page] == [f"{site.url}/private/secret"]
    assert paths(pages, site) == ["/private/secret", *(f"/static/{n}" for n in range(1, 6))]
    summary = told["summary"]
    assert summary["sitemap_files"] == 5  # itself once, nested, packed, the list, the feed
    assert summary["sitemap_files_damaged"] == 2  # one is missing, one a web page
    assert summary["urls_elsewhere"] == 3  # a file and two pages
    assert site.hits["/sitemaps/index.xml"] == 1
    assert site.hits["/private/secret"] == 0


async def test_pages_of_other_sites_are_taken_only_when_asked_for(site):
    with Site(pages=3) as other:
        there = f"{other.url}/static/1"
        site.answers["/sitemap.xml"] = Answer(urlset([f"{site.url}/static/1", there, ELSEWHERE]))
        told, pages = await taken(url=site.url)
        assert paths(pages, site) == ["/static/1"]
        assert told["summary"]["urls_elsewhere"] == 2
        told, pages = await taken(url=site.url, other_origins=True, respect_robots=False)
        assert told["summary"]["urls_elsewhere"] == 0
        # Asked for, and still not what a public list may reach: another private port.
        assert {page["url"]: page.get("error") for page in pages}[there].startswith("blocked: ")
        assert other.log == []


async def test_a_sitemap_cannot_lead_the_search_to_a_private_place(site):
    with Site(pages=3) as other:
        site.robots = f"Sitemap: {other.url}/sitemap.xml\n"
        site.answers.update({"/sitemap.xml": GONE})
        site.answers["/sitemap_index.xml"] = Answer(
            b"", 302, "", (("Location", f"{other.url}/sitemap.xml"),)
        )
        with pytest.raises(SitemapMissing, match="blocked: "):
            await taken(url=site.url)
        assert other.log == []


async def test_the_filter_is_a_glob_as_a_crawls_patterns_are(site):
    told, pages = await taken(url=site.url, filter="/page/?", max_pages=100)
    assert paths(pages, site) == [f"/page/{n}" for n in range(1, 10)]
    assert told["summary"]["urls_filtered"] == 42
    _, pages = await taken(url=site.url, filter="**/page/1*", max_pages=100)
    assert len(pages) == 11


async def test_a_list_without_a_match_is_an_error_with_the_reason(site):
    with pytest.raises(SitemapUnmatched, match="51 outside of the filter") as unmatched:
        await taken(url=site.url, filter="/nothing/**")
    assert "filter" in unmatched.value.advice
    with pytest.raises(SitemapUnmatched, match="it lists no page"):
        await taken(sitemap_url=f"{site.url}/sitemaps/empty.xml")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("entities.xml", "declares a document type"),
        ("page.html", "it is a web page"),
        ("bomb.xml.gz", "larger than 50 MiB"),
        ("endless.xml", "it lists no page"),
    ],
)
async def test_hostile_files_end_in_a_sentence(site, name, said):
    with pytest.raises((SitemapMissing, SitemapUnmatched), match=said):
        await taken(sitemap_url=f"{site.url}/sitemaps/{name}")
    assert site.hits[f"/sitemaps/{name}"] <= MAX_FILES


async def test_of_a_list_that_is_too_long_the_first_pages_are_taken(site):
    told, pages = await taken(sitemap_url=f"{site.url}/sitemaps/many.xml", max_pages=3)
    assert len(pages) == 3
    assert told["summary"]["stopped_by"] == "max_pages"
    assert told["summary"]["urls_listed"] == 50_000
    assert told["summary"]["sitemap_files_damaged"] == 1


async def test_bytes_that_are_no_text_cost_only_their_entry(site):
    _, pages = await taken(sitemap_url=f"{site.url}/sitemaps/odd-bytes.xml")
    assert paths(pages, site) == ["/static/1", "/static/2?a=1&b=2"]


def in_two_files(site, first, *, second):
    """An index of two sitemaps: these pages, and what the other one answers."""
    site.answers["/sitemap.xml"] = Answer(index([f"{site.url}/{n}.xml" for n in (1, 2)]))
    site.answers["/1.xml"] = Answer(urlset([f"{site.url}/static/{n}" for n in first]))
    site.answers["/2.xml"] = second


async def test_pages_are_taken_while_further_sitemaps_are_read(site):
    in_two_files(site, range(1, 4), second=Answer(stops="before"))
    ctx = MemoryContext()
    crawling = asyncio.create_task(taken(ctx, url=site.url))
    async with asyncio.timeout(60):
        while len(ctx.pages) < 3 or not site.hits["/2.xml"]:
            await asyncio.sleep(0.01)
        assert not crawling.done()
        ctx.stop()
        told, pages = await crawling
    assert paths(pages, site) == [f"/static/{n}" for n in range(1, 4)]
    assert told["summary"]["stopped_by"] == "cancelled"
    assert told["summary"]["sitemap_files"] == 2


async def test_what_is_read_of_sitemaps_is_told_before_the_first_page(site):
    second = Answer(urlset([f"{site.url}/static/9"]))
    in_two_files(site, range(1, 4), second=second)
    ctx = MemoryContext()
    told, _ = await taken(ctx, url=site.url)
    messages = [units.message for units in ctx.progress]
    sizes = [len(site.answers[path].body) for path in ("/sitemap.xml", "/1.xml", "/2.xml")]
    assert messages[0] == f"Reading sitemaps (files: 1, addresses: 0, {sizes[0]} B)"
    assert messages[1] == f"Reading sitemaps (files: 2, addresses: 3, {sum(sizes[:2])} B)"
    assert f"Reading sitemaps (files: 3, addresses: 4, {sum(sizes)} B)" in messages
    assert told["summary"]["sitemap_bytes"] == sum(sizes)
    assert "sitemap_limit" not in told["summary"]


async def test_with_enough_pages_no_further_sitemap_is_waited_for(site):
    in_two_files(site, range(1, 4), second=Answer(stops="before"))
    async with asyncio.timeout(60):
        told, pages = await taken(url=site.url, max_pages=3)
    assert len(pages) == 3
    assert told["summary"]["stopped_by"] == "max_pages"


@pytest.mark.parametrize(
    ("limit", "name", "most"),
    [("MAX_FILES", "files", 2), ("MAX_ALL_BYTES", "bytes", 300), ("MAX_LISTED", "addresses", 3)],
)
async def test_what_a_task_reads_of_sitemaps_is_bounded(site, monkeypatch, limit, name, most):
    monkeypatch.setattr(sitemap_crawl, limit, most)
    in_two_files(site, range(1, 4), second=Answer(urlset([f"{site.url}/static/9"])))
    told, pages = await taken(url=site.url)
    assert paths(pages, site) == [f"/static/{n}" for n in range(1, 4)]
    assert told["summary"]["sitemap_limit"] == name
    assert say(f"sitemap_limit.{name}") in remarks(told["summary"])
    assert told["summary"]["stopped_by"] == "max_pages"
    assert site.hits["/2.xml"] == 0


async def test_sitemaps_and_pages_share_the_moments_of_their_host(site):
    in_two_files(site, range(1, 4), second=Answer(urlset([f"{site.url}/static/9"])))
    started = asyncio.get_running_loop().time()
    told, _ = await taken(url=site.url, delay_ms=100)
    lasted_s = asyncio.get_running_loop().time() - started
    asked = told["summary"]["sitemap_files"] + told["summary"]["total_pages"]
    assert (asked, lasted_s >= (asked - 1) * 0.1) == (7, True)


async def test_a_stop_while_searching_is_no_error(site):
    site.answers["/sitemap.xml"] = Answer(stops="before")
    ctx = MemoryContext()
    search = asyncio.create_task(taken(ctx, url=site.url))
    async with asyncio.timeout(60):
        while not site.hits["/sitemap.xml"]:
            await asyncio.sleep(0.01)
        ctx.stop()
        told, pages = await search
    assert told["summary"]["stopped_by"] == "cancelled"
    assert (told["sitemap_source"], pages) == ("", [])


@pytest.mark.parametrize(
    ("given", "path", "code"),
    [
        ({}, "url", "missing"),
        ({"url": None}, "url", "missing"),
        ({"url": "ftp://a.example/"}, "url", "invalid_value"),
        ({"sitemap_url": "nonsense"}, "sitemap_url", "invalid_value"),
        ({"url": "http://a/", "filter": ""}, "filter", "invalid_value"),
        ({"url": "http://a/", "max_pages": 0}, "max_pages", "invalid_value"),
        ({"url": "http://a/", "max_depth": 2}, "max_depth", "unknown_argument"),
        ({"url": "http://a/", "other_origins": "yes"}, "other_origins", "invalid_value"),
        ({"url": "http://a/", "maxPages": 2, "max_pages": 3}, "max_pages", "given_twice"),
    ],
)
def test_every_mistake_is_named(given, path, code):
    with pytest.raises(InvalidArguments) as refused:
        parse_sitemap(given)
    assert (path, code) in {(each.path, each.code) for each in refused.value.problems}


def test_the_defaults_are_those_of_the_contract():
    args = parse_sitemap({"url": "http://ada:pw@a.example/x"})
    assert args.pages.max_pages == 50
    assert args.pages.credentials is not None
    assert "pw" not in args.pages.url
    assert set(ARGUMENTS) >= {"url", "sitemap_url", "filter", "other_origins", "engine", "delay_ms"}


async def test_a_cancelled_task_keeps_what_it_took_and_a_refused_one_writes_nothing(home):
    with Site(pages=200) as site:
        engine = Engine(Settings(home=home, root=home / "tasks"), accepts=True)
        await engine.open()
        try:
            with pytest.raises(InvalidArguments):
                await engine.requests.start("crawl_sitemap", {"url": site.url, "max_pages": "many"})
            assert not any(
                path.is_dir() and len(path.name) == 16 for path in (home / "tasks").iterdir()
            )
            args = {"url": site.url, **QUICK, "delay_ms": 30, "max_pages": 200}
            task_id = (await engine.requests.start("crawl_sitemap", args)).task_id
            kept = home / "tasks" / task_id / "pages.jsonl"
            async with asyncio.timeout(90):
                while not kept.exists() or kept.read_bytes().count(b"\n") < 3:
                    await asyncio.sleep(0.01)
            await engine.commands.cancel(task_id)
            record = await engine.tasks.wait(task_id, timeout_ms=150_000)
            await engine.tasks.join(task_id)
        finally:
            await engine.close()
    result = json.loads((home / "tasks" / task_id / "result.json").read_bytes())
    assert record.status == Status.CANCELLED
    assert 3 <= len(result["pages"]) == result["summary"]["total_pages"] < 200
    assert result["summary"]["stopped_by"] == "cancelled"
    assert result["sitemap_source"].endswith("/sitemap.xml")


async def test_a_refused_sitemap_fails_the_task_with_its_code(home, site):
    engine = Engine(Settings(home=home, root=home / "tasks"), accepts=True)
    await engine.open()
    try:
        args = {"sitemap_url": f"{site.url}/sitemaps/entities.xml", **QUICK}
        task_id = (await engine.requests.start("crawl_sitemap", args)).task_id
        record = await engine.tasks.wait(task_id, 150_000)
        await engine.tasks.join(task_id)
    finally:
        await engine.close()
    assert record.status == Status.FAILED
    assert record.error is not None
    assert record.error.code == SitemapMissing.code
    assert not issubclass(SitemapMissing, PageError)
