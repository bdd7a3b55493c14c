"""A crawl of the real sample site through the real static engine."""

import asyncio
import time
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from engine.browser.page.failures import PageFloods
from engine.egress.egress_policy import Policy
from engine.kinds.crawl.crawl import crawl
from engine.kinds.crawl.crawl_args import parse_crawl
from engine.model.errors import BrowserGone, BrowserMissing, InjectedFault, UnitTimeout
from engine.model.tally import Tally
from engine.pages.fetch import Fetched
from engine.pages.static_engine import open_static
from engine.sample.site import Answer, marker
from fixtures.site.site import Site
from tests.support.memory_context import MemoryContext
from tests.support.serving import served


def opener(args, seen=None):
    policy = Policy.for_start(args.url)

    @asynccontextmanager
    async def open_fetcher(engine, asked):
        if seen is not None:
            seen.append(engine)
        async with open_static(policy, asked.credentials, judge=asked.engine == "auto") as fetcher:
            yield fetcher

    return open_fetcher


async def crawled(url, ctx=None, **more):
    args = parse_crawl({"url": url, "engine": "static", "delay_ms": 0, **more})
    ctx = ctx or MemoryContext()
    outcome = await crawl(args, ctx, opener(args))
    return outcome, ctx.pages


def paths(pages, site):
    return [page["url"].removeprefix(site.url) for page in pages]


async def test_a_crawl_takes_every_page_once_and_says_why_it_ended(site):
    outcome, pages = await crawled(f"{site.url}/static/", max_pages=100, max_depth=9)
    assert sorted(paths(pages, site)) == sorted(
        ["/static/", *(f"/static/{n}" for n in range(1, 51))]
    )
    assert outcome.summary() == {
        "total_pages": 51,
        "succeeded": 51,
        "failed": 0,
        "max_depth_reached": 2,
        "duration_ms": outcome.duration_ms,
        "scope": f"{site.url}/**",
        "stopped_by": "frontier",
    }
    assert all(
        marker(int(page["url"].rpartition("/")[2] or 0)) in page["content"] for page in pages
    )
    assert max(site.hits[f"/static/{n}"] for n in range(1, 51)) == 1


async def test_a_page_has_all_its_fields(site):
    _, pages = await crawled(f"{site.url}/static/", max_pages=1)
    assert list(pages[0]) == [
        "url", "final_url", "status", "title", "content", "depth", "links_found",
        "response_ms", "render_ms", "bytes", "engine_used", "settled",
        "transferred_bytes", "facts", "links",
    ]  # fmt: skip
    assert (pages[0]["title"], pages[0]["status"], pages[0]["engine_used"]) == (
        "Field notes",
        200,
        "static",
    )


@pytest.mark.parametrize("limit", [1, 5, 17])
async def test_max_pages_is_kept_exactly_with_many_workers(site, limit):
    outcome, pages = await crawled(f"{site.url}/static/", max_pages=limit, concurrency=16)
    assert (len(pages), outcome.stopped_by) == (limit, "max_pages")


async def test_max_depth_counts_links_from_the_start(site):
    outcome, pages = await crawled(f"{site.url}/static/", max_pages=100, max_depth=1, concurrency=8)
    assert len(pages) == 11
    assert outcome.max_depth_reached == 1


async def test_progress_reaches_its_total_with_the_last_page_and_names_each(site):
    ctx = MemoryContext()
    await crawled(f"{site.url}/static/", ctx, max_pages=20)
    assert [units.done for units in ctx.progress] == list(range(1, 21))
    assert all(units.total == 20 for units in ctx.progress[10:])
    assert all(units.total and units.done <= units.total for units in ctx.progress)
    assert [units.message for units in ctx.progress] == [page["url"] for page in ctx.pages]


async def test_what_robots_blocks_is_told_and_never_asked_for(site):
    site.robots = "User-agent: *\nDisallow: /static/1\n"
    outcome, pages = await crawled(f"{site.url}/static/", max_pages=100, max_depth=1)
    blocked = [page for page in pages if page.get("error") == "Blocked by robots.txt"]
    assert sorted(paths(blocked, site)) == ["/static/1", "/static/10"]
    assert outcome.failed == 2
    assert site.hits["/static/1"] == 0
    assert {(page["response_ms"], page["render_ms"]) for page in blocked} == {(None, None)}
    assert all(page["response_ms"] > 0 for page in pages if page not in blocked)


@pytest.mark.parametrize("workers", [1, 8])
async def test_blocked_pages_count_for_max_pages(site, workers):
    site.robots = "User-agent: *\nDisallow: /static/1\nDisallow: /static/2\n"
    ctx = MemoryContext()
    limits = {"max_pages": 5, "max_depth": 1, "concurrency": workers}
    outcome, pages = await crawled(f"{site.url}/static/", ctx, **limits)
    assert (len(pages), outcome.total_pages, outcome.stopped_by) == (5, 5, "max_pages")
    assert outcome.failed >= 1
    assert [(units.done, units.total) for units in ctx.progress][1:] == [
        (n, 5) for n in (2, 3, 4, 5)
    ]


async def test_our_own_group_goes_before_the_star(site):
    site.robots = "User-agent: *\nDisallow: /\n\nUser-agent: openchromemonitor\nDisallow:\n"
    outcome, _ = await crawled(f"{site.url}/static/", max_pages=3)
    assert outcome.succeeded == 3


async def test_a_broken_robots_file_closes_the_site_and_a_missing_one_opens_it(site):
    site.robots_status = 500
    outcome, pages = await crawled(f"{site.url}/static/", max_pages=3)
    told = "robots.txt could not be read (HTTP 500)"
    assert [page["error"] for page in pages] == [told]
    site.robots_status = 404
    outcome, _ = await crawled(f"{site.url}/static/", max_pages=3)
    assert outcome.succeeded == 3


async def test_robots_can_be_left_unasked(site):
    site.robots = "User-agent: *\nDisallow: /\n"
    outcome, _ = await crawled(f"{site.url}/static/", max_pages=3, respect_robots=False)
    assert outcome.succeeded == 3
    assert site.hits["/robots.txt"] == 0


async def test_requests_to_one_host_keep_their_distance_across_workers(site):
    began = time.monotonic()
    await crawled(f"{site.url}/static/", max_pages=4, delay_ms=120, concurrency=8)
    # Told by when the last came: a busy machine can only make that later, never sooner.
    assert arrivals(site)[3] - began >= 3 * 0.12


async def test_a_crawl_delay_is_honoured():
    with Site(pages=5, crawl_delay=0.15) as site:
        began = time.monotonic()
        await crawled(f"{site.url}/static/", max_pages=3)
    assert arrivals(site)[2] - began >= 2 * 0.15


def arrivals(site):
    """Of pages: their style sheets come with them, as in a browser."""
    return [at for at, target in site.log if target not in {"/robots.txt", "/assets/site.css"}]


async def test_a_busy_server_is_asked_again_after_the_time_it_named(site):
    _, pages = await crawled(f"{site.url}/busy?after=1")
    assert (pages[0]["status"], pages[0]["title"]) == (200, "Free again")
    _outcome, pages = await crawled(f"{site.url}/busy?after=0&times=99")
    assert pages[0]["error"] == "HTTP 503"


async def test_spellings_of_one_page_are_one_page(site):
    _, _pages = await crawled(f"{site.url}/duplicates", max_depth=1, max_pages=50)
    assert site.hits["/static/1"] == 1
    assert site.hits["/odd/query"] == 1


async def test_only_web_links_are_followed(site):
    _, pages = await crawled(f"{site.url}/schemes", max_depth=1, max_pages=50)
    assert sorted(paths(pages, site)) == ["/", "/schemes", "/static/1"]


@pytest.mark.parametrize(
    ("charset", "asked"),
    [("windows-1252", "/static/1?%E9&%27|"), ("utf-8", "/static/1?%C3%A9&%27|")],
)
async def test_a_link_is_asked_for_as_a_browser_asks_for_it(site, charset, asked):
    link = '<a href="\\static\\.\\1?\u00e9&amp;\'|#x">here</a>'
    body = f"<!doctype html><title>t</title>{link}".encode(charset)
    site.answers["/start"] = Answer(body, content_type=f"text/html; charset={charset}")
    await crawled(f"{site.url}/start", max_pages=2)
    assert asked in [target for _, target in site.log]


@pytest.mark.parametrize(
    ("location", "asked"),
    [
        ("/static/caf\xe9?\xe9", "/static/caf%E9?%E9"),
        ("\\static\\^|?'^|", "/static/%5E%7C?%27^|"),
        ("?", "/odd/here?"),
        ("http:there", "/odd/there"),
    ],
)
async def test_a_redirect_is_followed_as_a_browser_follows_it(site, location, asked):
    site.answers["/odd/here"] = Answer(b"", 302, headers=(("Location", location),))
    await crawled(f"{site.url}/odd/here", max_pages=1)
    assert site.log[-1][1] == asked


async def test_a_redirect_counts_as_a_visit_to_where_it_led(site):
    site.pages = 1
    _, pages = await crawled(f"{site.url}/redirect/to?url=/static/1", max_pages=9)
    assert pages[0]["final_url"] == f"{site.url}/static/1"
    assert site.hits["/static/1"] == 1


@pytest.mark.parametrize("path", ["/loop", "/redirect/40"])
async def test_redirects_without_end_are_a_failed_page(site, path):
    _, pages = await crawled(site.url + path)
    assert pages[0]["error"] == "too many redirects"


async def test_ten_redirects_are_followed(site):
    _, pages = await crawled(f"{site.url}/redirect/10", max_pages=1)
    assert pages[0]["final_url"] == f"{site.url}/static/1"


async def test_a_redirect_to_another_private_port_is_refused(site):
    with Site(pages=1) as canary:
        _, pages = await crawled(f"{site.url}/redirect/to?url={canary.url}/static/")
        assert pages[0]["error"].startswith("blocked: ")
        assert not canary.hits


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/status/404", "HTTP 404"),
        ("/status/500", "HTTP 500"),
        ("/files/doc.pdf", "not a web page (application/pdf)"),
        ("/files/image.png", "not a web page (image/png)"),
        ("/files/archive.zip", "download skipped"),
        ("/hang", "no answer within 0.3 s"),
    ],
)
async def test_trouble_with_one_page_stays_with_that_page(site, path, error):
    outcome, pages = await crawled(site.url + path, timeout_ms=300 if path == "/hang" else 30_000)
    assert pages[0]["error"] == error
    assert (outcome.failed, outcome.stopped_by) == (1, "frontier")


@pytest.mark.thorough
async def test_half_a_page_is_kept_and_says_so(site):
    _, pages = await crawled(f"{site.url}/hang-body", timeout_ms=8_000, max_pages=1)
    assert (pages[0]["truncated"], pages[0]["settled"]) == (True, False)
    assert "The first half." in pages[0]["content"]


async def test_json_and_plain_text_are_kept_as_they_are(site):
    _, pages = await crawled(f"{site.url}/files/data.json")
    assert pages[0]["content"] == '{"birds": 3}'
    assert "error" not in pages[0]


@pytest.mark.parametrize("path", ["/huge?mb=20", "/bomb?mb=60"])
async def test_a_page_without_end_is_cut(site, path):
    _, pages = await crawled(site.url + path, max_pages=1)
    assert pages[0]["truncated"] is True
    assert pages[0]["bytes"] <= 10 * 1024 * 1024
    assert len(pages[0]["content"].encode()) <= 2_048 * 1024


async def test_credentials_open_their_origin_and_stand_nowhere(site):
    url = site.url.replace("//", "//ada:s3cret@") + "/auth"
    _, pages = await crawled(url, max_depth=1, max_pages=9)
    assert pages[0]["status"] == 200
    assert "s3cret" not in repr(pages)
    assert any(page["url"].endswith("/auth/deep") and page["status"] == 200 for page in pages)
    assert "s3cret" not in repr(parse_crawl({"url": url}))


async def test_without_credentials_the_same_page_is_refused(site):
    _, pages = await crawled(f"{site.url}/auth", max_pages=1)
    assert pages[0]["error"] == "HTTP 401"


async def test_patterns_choose_and_exclusion_wins(site):
    _, pages = await crawled(
        f"{site.url}/static/",
        max_pages=99,
        include_patterns=["**/static/?"],
        exclude_patterns=["/static/3"],
    )
    assert sorted(paths(pages, site)) == sorted(
        ["/static/", *(f"/static/{n}" for n in (1, 2, 4, 5, 6, 7, 8, 9))]
    )


async def test_a_stop_ends_a_page_that_hangs_and_keeps_the_rest(site):
    ctx = MemoryContext(on_page=lambda page, units: None)
    args = parse_crawl({"url": f"{site.url}/odd/", "engine": "static", "delay_ms": 0,
                        "include_patterns": ["/hang"], "max_depth": 1,
                        "timeout_ms": 600_000})  # fmt: skip
    work = asyncio.create_task(crawl(args, ctx, opener(args)))
    while not site.hits["/hang"]:
        await asyncio.sleep(0.01)
    ctx.stop()
    outcome = await asyncio.wait_for(work, 60)
    assert (outcome.stopped_by, outcome.total_pages) == ("cancelled", 1)


async def test_a_planned_fault_comes_after_exactly_the_pages_before_it(site):
    ctx = MemoryContext()
    with pytest.raises(InjectedFault):
        await crawled(f"{site.url}/static/", ctx, max_pages=20, failOnPage=6, concurrency=8)
    assert len(ctx.pages) == 5


class Dying:
    """The wire's far end: a browser that dies under `victim` the first `times` times."""

    def __init__(self, victim, times):
        self.victim, self.left = victim, times

    async def fetch(self, url, options, on_idle=None):
        if url.endswith(self.victim) and self.left:
            self.left -= 1
            raise BrowserGone(url=url)
        links = [f"{url}{n}" for n in range(3)] if url.endswith("/") else []
        return Fetched(url, url, 200, "text/html", html="<p>x</p>", text="x", links=links)

    async def close(self):
        pass


@pytest.mark.parametrize(("deaths", "error"), [(1, None), (2, "crashed the browser twice")])
async def test_a_page_that_kills_the_browser_gets_a_second_chance_and_no_third(deaths, error):
    dying = Dying("/1", deaths)

    @asynccontextmanager
    async def open_fetcher(engine, args):
        yield dying

    args = parse_crawl({"url": "http://example.com/", "delay_ms": 0, "respect_robots": False})
    ctx = MemoryContext()
    outcome = await crawl(args, ctx, open_fetcher)
    assert outcome.total_pages == 4
    assert [p.get("error") for p in ctx.pages if p["url"].endswith("/1")] == [error]


class Troubled:
    """A tree of pages, three links each; the first attempt at some of them fails as given."""

    def __init__(self, failures):
        self.failures = failures
        self.began = []
        self.under_way = set()
        self.alone = {}  # path of a page that came again -> was nothing beside it?

    async def fetch(self, url, options, on_idle=None):
        path = urlsplit(url).path
        self.began.append(path)
        self.under_way.add(path)
        for _ in range(3):
            await asyncio.sleep(0)
            if options.fresh:
                self.alone[path] = self.under_way == {path}
        self.under_way.discard(path)
        if failure := self.failures.pop(path, None):
            raise failure
        links = [f"http://example.com{path}{n}/" for n in range(3)]
        return Fetched(url, url, 200, "text/html", html="<p>x</p>", text="x", links=links)

    @asynccontextmanager
    async def open(self, engine, args):
        yield self


async def crawled_in_trouble(failures, **given):
    troubled, ctx = Troubled(failures), MemoryContext()
    asked = {"url": "http://example.com/", "delay_ms": 0, "respect_robots": False, **given}
    await crawl(parse_crawl(asked), ctx, troubled.open)
    assert not [page["url"] for page in ctx.pages if "error" in page]
    return troubled, [urlsplit(page["url"]).path for page in ctx.pages]


async def test_pages_that_another_may_have_failed_come_again_alone_when_no_other_can_be_taken():
    failures = {"/0/": PageFloods(), "/1/": BrowserGone(url="/1/")}
    troubled, kept = await crawled_in_trouble(failures)
    assert troubled.alone == {"/0/": True, "/1/": True}
    again = [len(kept) - kept[::-1].index(path) - 1 for path in ("/1/", "/0/")]
    assert kept[: again[0]] == ["/", "/2/", "/2/0/", "/2/1/", "/2/2/"], "what they hold up not"
    assert again == [5, 9], "one that was seen to do it comes last"
    assert len(kept) == len(set(kept)) == 1 + 3 + 9


async def test_a_page_that_was_held_up_beyond_its_limit_comes_again_alone():
    failures = {"/0/": UnitTimeout("http://example.com/0/", 20.0)}
    troubled, _ = await crawled_in_trouble(failures, retries=0)
    assert troubled.alone == {"/0/": True}


async def test_depths_stay_exact_while_a_page_waits_for_its_second_attempt():
    troubled, kept = await crawled_in_trouble(
        {"/0/": BrowserGone(url="/0/")}, max_depth=3, max_pages=50
    )
    _, again = [at for at, path in enumerate(troubled.began) if path == "/0/"]
    assert {path.count("/") for path in troubled.began[:again]} == {1, 2, 3}
    assert len(kept) == len(set(kept)) == 1 + 3 + 9 + 27


async def test_a_page_that_comes_again_keeps_its_place_among_the_pages_that_may_be_taken():
    _, kept = await crawled_in_trouble({"/0/": BrowserGone(url="/0/")}, max_pages=4)
    assert kept == ["/", "/1/", "/2/", "/0/"]


async def test_a_missing_browser_ends_the_crawl(site):
    @asynccontextmanager
    async def open_fetcher(engine, args):
        if engine == "browser":
            raise BrowserMissing(reason="nowhere")
        yield None

    args = parse_crawl({"url": site.url, "respect_robots": False})
    with pytest.raises(BrowserMissing):
        await crawl(args, MemoryContext(), open_fetcher)


@pytest.mark.parametrize(
    ("path", "engines"),
    [
        ("/static/1", ["static"]),
        ("/data-script", ["static"]),
        ("/js/1", ["static", "browser"]),
        ("/short", ["static", "browser"]),
        ("/handler", ["static", "browser"]),
        ("/script-link", ["static", "browser"]),
        ("/iframe", ["static", "browser"]),
        ("/status/404", ["static"]),
        ("/files/doc.pdf", ["static"]),
    ],
)
async def test_auto_asks_the_browser_only_when_a_page_needs_it(site, path, engines):
    seen: list[str] = []
    args = parse_crawl({"url": site.url + path, "engine": "auto", "delay_ms": 0, "max_pages": 1})
    await crawl(args, MemoryContext(), opener(args, seen))
    assert seen == engines


async def test_pages_can_be_counted_again_from_what_was_kept(site):
    outcome, pages = await crawled(f"{site.url}/static/", max_pages=7)
    again = Tally(pages).outcome(outcome.scope, outcome.duration_ms, outcome.stopped_by)
    assert again == outcome


@pytest.mark.parametrize("form", ["markdown", "structured"])
@pytest.mark.parametrize(
    ("body", "empty"),
    [("<div> </div>", True), ("<p>words</p>", False), ("<img src=/a>", False), ("", True)],
)
async def test_a_page_with_nothing_to_see_is_counted(form, body, empty):
    html = f"<!doctype html><html><body>{body}</body></html>"
    with served(lambda request: Answer(html.encode())) as url:
        outcome, pages = await crawled(f"{url}/", output_format=form, respect_robots=False)
    assert pages[0].get("empty", False) is empty
    assert outcome.summary().get("empty_pages", 0) == empty


@pytest.mark.thorough
async def test_pages_that_were_taken_too_early_are_counted(site):
    outcome, pages = await crawled(f"{site.url}/hang-body", max_pages=1, timeout_ms=8_000)
    assert pages[0]["settled"] is False
    assert outcome.summary()["unsettled_pages"] == 1


async def test_the_three_forms_of_content(site):
    for form, kind in (("markdown", str), ("text", str), ("structured", dict)):
        _, pages = await crawled(f"{site.url}/static/3", max_pages=1, output_format=form)
        assert isinstance(pages[0]["content"], kind)
        assert marker(3) in repr(pages[0]["content"])


async def test_a_page_keeps_its_links_with_their_texts_unless_told_not_to(site):
    _, (page,) = await crawled(f"{site.url}/static/1", max_pages=1)
    assert {"href": f"{site.url}/static/2", "text": "Field notes 2"} in page["links"]
    assert len(page["links"]) == page["links_found"]
    _, (page,) = await crawled(f"{site.url}/static/1", max_pages=1, keep_links=False)
    assert "links" not in page


async def test_a_frameset_is_crawled_whole(site):
    frames = "".join(f"<frame src=/f/{n}>" for n in range(110))
    site.answers["/f/"] = Answer(f"<title>t</title><frameset>{frames}</frameset>".encode())
    for n in range(110):
        site.answers[f"/f/{n}"] = Answer(f"<title>{n}</title><a href=/g/{n}>to {n}</a>".encode())
        site.answers[f"/g/{n}"] = Answer(f"<title>{n}</title><p>page {n}".encode())
    outcome, _ = await crawled(f"{site.url}/f/", max_pages=500)
    assert outcome.summary()["succeeded"] == 221


async def test_what_a_page_asks_for_by_itself_is_asked_for_in_its_character_set():
    heard = []
    asked = "?q=\u00e9\u03a9#\u00e9"
    pages = {
        "/sheet": f"<link rel=stylesheet href='/a.css{asked}'><p>x",
        "/frame": f"<iframe src='/in{asked}'></iframe>",
        "/on": f"<meta http-equiv=refresh content='0;url=/there{asked}'>",
        "/base": f"<base href='/start{asked}'><iframe src='#x'></iframe><iframe src=''></iframe>",
        "/blank": "<p>once</p><iframe></iframe><iframe src></iframe>",
    }

    def answer(request):
        heard.append(request.target)
        text = pages.get(request.path, "<p>other</p>")
        kind = "text/html; charset=windows-1252"
        return Answer(text.encode("windows-1252", "xmlcharrefreplace"), content_type=kind)

    with served(answer) as url:
        for page in pages:
            _, (found,) = await crawled(f"{url}{page}", max_pages=1, respect_robots=False)
    there = "?q=%E9%26%23937%3B"
    assert sorted(heard) == sorted(
        [*pages, f"/a.css{there}", f"/in{there}", f"/there{there}", "/start?q=%C3%A9%CE%A9"]
    )
    assert found["content"].strip() == "once", "a frame without an address is blank"


async def test_a_page_that_sends_its_reader_on_is_the_page_it_leads_to(site):
    def on(to):
        return Answer(f"<meta http-equiv=refresh content='0;url={to}'>one moment".encode())

    site.answers |= {"/here": on("/there"), "/there": on("/static/1")}
    site.answers["/out"] = on("http://192.0.2.1/")
    _, (page,) = await crawled(f"{site.url}/here", max_pages=1)
    assert (page["final_url"], page["url"]) == (f"{site.url}/static/1", f"{site.url}/here")
    assert marker(1) in page["content"]
    _, (page,) = await crawled(f"{site.url}/out", max_pages=1)
    assert "error" in page


async def test_a_link_to_a_private_address_says_so_and_not_that_robots_was_unread(site):
    link = b'<a href="http://10.1.2.3/x">in</a>'
    site.answers["/private"] = Answer(b"<!doctype html><title>t</title>" + link)
    _, pages = await crawled(f"{site.url}/private", max_pages=3, scope="**", retries=0)
    assert [(page.get("error"), page.get("error_code")) for page in pages] == [
        (None, None),
        ("blocked: private address", "blocked"),
    ]
