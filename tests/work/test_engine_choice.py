"""`auto` learns where static pages are the browser's, and asks for the others once."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.egress.egress_policy import Policy
from engine.kinds.crawl.crawl import crawl
from engine.kinds.crawl.crawl_args import parse_crawl
from engine.model.errors import PageError
from engine.pages.asset_loading import names_in
from engine.pages.engine_choice import Comparison, EngineChoice, is_same
from engine.pages.fetch import Fetched, PageOptions
from engine.pages.script_edits import Edit
from engine.pages.static_engine import judge, open_static, refresh_of
from engine.sample.site import Answer, Request
from tests.support.engines import opened
from tests.support.memory_context import MemoryContext
from tests.support.serving import served
from tests.work.random_pages import static_text

PAGES = 60
EQUAL, DIFFERENT = Comparison(True), Comparison(False)
PROSE = "The heron stands in the shallow water and waits for a long time. " * 6


def page(path: str, scripts: str = "<script src=/page.js></script>", more: str = "") -> str:
    numbers = range(1, PAGES) if path.endswith("/0") else ()
    links = "".join(f'<a href="{path[:-1]}{n}">{n}</a> ' for n in numbers)
    return f"<!doctype html><title>{path}</title>{scripts}<p>{path} {PROSE}{more}</p>{links}"


class Both:
    """The far ends of both engines; `rendered` says what scripts make of a page."""

    def __init__(
        self,
        rendered: Callable[[str], str] = page,
        status: int = 200,
        plain: Callable[[str], str] = page,
        script_names: Callable[[str], set[str]] = lambda html: set(),
    ) -> None:
        self.rendered, self.status, self.plain = rendered, status, plain
        self.script_names = script_names
        self.hits: dict[str, Counter[str]] = {"static": Counter(), "browser": Counter()}
        self.at: list[float] = []

    def engine(self, name: str) -> Any:
        outer = self

        class End:
            async def fetch(self, url: str, options: Any, on_idle: Any = None) -> Fetched:
                path = url.removeprefix("http://site.test")
                outer.hits[name][path] += 1
                outer.at.append(time.monotonic())
                if name == "static":
                    html = outer.plain(path)
                    found = Fetched(url, url, outer.status, "text/html", html=html, engine="static")
                    found.needs_browser, found.runs = judge(html)[:2]
                    found.script_names = frozenset(outer.script_names(html))
                    return found
                html = outer.rendered(path)
                links = [f"{url[:-1]}{n}" for n in range(1, PAGES)] if path.endswith("/0") else []
                return Fetched(
                    url, url, 200, "text/html", html=html, text=static_text(html), links=links
                )

            async def close(self) -> None:
                pass

        return End()


async def crawled(ends: Both, start: str = "/a/0", **more: Any) -> tuple[Any, list[dict[str, Any]]]:
    @asynccontextmanager
    async def open_fetcher(engine: Any, args: Any) -> AsyncIterator[Any]:
        yield ends.engine(engine)

    given = {"url": f"http://site.test{start}", "engine": "auto", "delay_ms": 0, "max_pages": 100}
    args = parse_crawl({**given, "respect_robots": False, "output_format": "text", **more})
    ctx = MemoryContext()
    return (await crawl(args, ctx, open_fetcher)).summary(), ctx.pages


async def test_pages_that_scripts_do_not_change_are_taken_once_but_for_a_sample() -> None:
    ends = Both()
    summary, pages = await crawled(ends)
    assert {one["engine_used"] for one in pages} == {"static"}
    assert set(ends.hits["static"].values()) == {1}
    compared = ends.hits["browser"].total()
    assert 2 <= compared <= 5, "pages that are alike wait for one that is compared"
    assert summary["compared"] == compared == sum(one.get("compared", False) for one in pages)


async def test_pages_that_scripts_change_are_the_browsers_and_soon_asked_of_it_alone() -> None:
    ends = Both(lambda path: page(path, more="and then it flies"))
    summary, pages = await crawled(ends)
    assert {one["engine_used"] for one in pages} == {"browser"}
    assert all("flies" in one["content"] for one in pages)
    assert set(ends.hits["browser"].values()) == {1}
    assert summary["compared"] <= ends.hits["static"].total() <= 12


async def test_one_part_of_a_site_may_need_the_browser_and_another_not() -> None:
    choice = EngineChoice()
    for n in range(4):
        choice.learn(_static(f"http://site.test/app/{n}"), DIFFERENT)
        choice.learn(_static(f"http://site.test/docs/{n}"), EQUAL)
    assert choice.plan("http://site.test/app/9") == "browser"
    assert choice.plan("http://site.test/docs/9") == "static"


def test_after_a_difference_the_browser_is_compared_again_later_and_ever_more_rarely() -> None:
    choice, url = EngineChoice(), "http://site.test/app/1"
    choice.learn(_static(url), DIFFERENT)
    waited = []
    for _ in range(3):
        plans = []
        while (plan := choice.plan(url)) == "browser":
            plans.append(plan)
        assert plan == "both"
        waited.append(len(plans))
        choice.learn(_static(url), DIFFERENT)
    assert waited == [5, 10, 20]
    while choice.plan(url) != "both":
        pass
    for _ in range(2):
        choice.learn(_static(url), EQUAL)
    assert choice.plan(url) == "static"


def test_pages_that_run_other_scripts_are_compared_for_themselves() -> None:
    choice = EngineChoice()
    for n in range(3):
        choice.learn(_static(f"http://site.test/docs/{n}", "page.js"), EQUAL)
    assert choice.plan_fetched(_static("http://site.test/docs/7", "page.js")) == "static"
    assert choice.plan_fetched(_static("http://site.test/docs/8", "chart.js page.js")) == "both"
    assert choice.plan_fetched(_static("http://site.test/docs/9", "")) == "both"  # an empty shell


def _static(url: str, runs: str = "page.js") -> Fetched:
    return Fetched(url, url, 200, "text/html", engine="static", needs_browser=True, runs=runs)


FOLD = "<div class=fold>Fold</div>"
SIDE = "<script src=/page.js></script><div class=side>Contents</div>"


async def test_what_scripts_do_to_every_page_is_done_by_the_static_engine_too() -> None:
    def plain(path: str) -> str:
        return page(path, SIDE)

    def rendered(path: str) -> str:
        return page(path, SIDE.replace("</div>", f"{FOLD}</div>"))

    ends = Both(rendered, plain=plain)
    _, pages = await crawled(ends)
    assert all("Contents Fold" in " ".join(one["content"].split()) for one in pages)
    assert ends.hits["browser"].total() <= 8
    assert len(pages) == PAGES


async def test_a_page_that_differs_by_a_name_of_its_scripts_is_the_browsers() -> None:
    chart = {f"/a/{n}" for n in range(7, PAGES, 9)}

    def plain(path: str) -> str:
        return page(path, more="<i class=chart></i>" if path in chart else "")

    def rendered(path: str) -> str:
        return page(path, more=f"Chart of {path}." if path in chart else "")

    ends = Both(rendered, plain=plain, script_names=lambda html: {".chart"} & {*names_in(html)})
    _, pages = await crawled(ends)
    for one in pages:
        path = one["url"].removeprefix("http://site.test")
        assert (f"Chart of {path}." in one["content"]) == (path in chart), path
    assert ends.hits["browser"].total() <= len(chart) + 8


def test_pages_with_a_new_name_are_compared_until_one_of_them_is_equal() -> None:
    choice, url = EngineChoice(), "http://site.test/docs/1"
    known, new = frozenset({".a"}), frozenset({".a", ".b"})
    for _ in range(2):
        choice.learn(_named(known), EQUAL)
    assert choice.plan_fetched(_named(known)) == "static"
    assert choice.plan_fetched(_named(new)) == "both"
    choice.learn(_named(new), DIFFERENT)
    assert choice.plan(url) == "static", "the new name is blamed, not the part of the site"
    assert choice.plan_fetched(_named(known)) == "static"
    plans = [choice.plan_fetched(_named(new)) for _ in range(6)]
    assert plans == ["browser"] * 5 + ["both"]
    choice.learn(_named(new), EQUAL)
    assert choice.plan_fetched(_named(new)) == "static"


def test_edits_that_fail_are_forgotten() -> None:
    choice, edit = EngineChoice(), Edit("append", "div in body", "<i>x</i>", frozenset({"div"}))
    choice.learn(_named(frozenset()), Comparison(False, (edit,)))
    page = _named(frozenset())
    assert choice.plan_fetched(page) == "both"
    assert page.edits == (edit,)
    choice.learn(page, DIFFERENT)
    choice.plan_fetched(page)
    assert not page.edits


def test_a_page_told_before_a_lesson_says_nothing_of_the_lesson() -> None:
    choice, edit = EngineChoice(), Edit("append", "div in body", "<i>x</i>", frozenset({"div"}))
    before = _named(frozenset())
    choice.learn(_named(frozenset()), Comparison(False, (edit,)))
    for _ in range(3):
        choice.learn(before, EQUAL)
    assert choice.plan_fetched(_named(frozenset())) == "both"


def _named(names: frozenset[str]) -> Fetched:
    fetched = _static("http://site.test/docs/1")
    fetched.script_names = names
    return fetched


async def test_an_error_of_the_site_is_asked_for_once() -> None:
    ends = Both(status=404)
    await crawled(ends)
    assert (ends.hits["static"].total(), ends.hits["browser"].total()) == (1, 0)


async def test_both_engines_keep_the_distance_between_two_requests_together() -> None:
    ends, began = Both(), time.monotonic()
    await crawled(ends, max_pages=3, delay_ms=80)
    assert len(ends.at) >= 5  # three pages, two of them by both
    assert ends.at[4] - began >= 4 * 0.08  # a busy machine can only make that later


def test_what_is_the_same_has_the_same_words_and_links() -> None:
    one = Fetched("http://a/", "http://a/", 200, html="<p>x y <a href=/z>z</a>", engine="static")
    other = Fetched(
        "http://a/", "http://a/", 200, html="<p>x", text="x\ny  z", links=["http://a/z"]
    )
    assert is_same(one, other)
    other.links = []
    assert not is_same(one, other)
    other.links, other.text = ["http://a/z"], "x y z w"
    assert not is_same(one, other)


@pytest.mark.parametrize(
    ("content", "to"),
    [
        ("0; url=/b", "/b"),
        ("0;URL='/b'", "/b"),
        ('0, url="/b" ', "/b"),
        ("0.0 /b", "/b"),
        ("0", ""),
        ("5; url=/b", ""),
        ("00 ; url = '/b' x", "/b"),
        ('0;url="/b', "/b"),
        ("0;url=", ""),
        ("0;", ""),
        (".5;/b", "/b"),
        ("٠;/b", ""),
        ("url=/b", ""),
    ],
)
def test_a_page_that_sends_its_readers_on_at_once_is_known(content: str, to: str) -> None:
    quote = "'" if '"' in content else '"'
    assert (
        refresh_of(f"<meta http-equiv={quote}Refresh{quote} content={quote}{content}{quote}>") == to
    )
    assert refresh_of(f"<noscript><meta http-equiv=refresh content={quote}{content}{quote}>") == ""


@pytest.mark.parametrize(
    ("screenshot", "status", "by_browser"),
    [("all", 200, 60), ("failed", 404, 1), ("none", 404, 0)],
)
async def test_a_page_that_is_to_be_pictured_is_loaded_by_the_browser(
    screenshot: str, status: int, by_browser: int
) -> None:
    ends = Both(lambda path: page(path, ""), plain=lambda path: page(path, ""), status=status)
    start = "/a/0" if status == 200 else "/a/9"
    _, pages = await crawled(ends, start, screenshot=screenshot, max_pages=60)
    assert sum(one["engine_used"] == "browser" for one in pages) == by_browser
    assert (ends.hits["static"].total() == 0) == (screenshot == "all")


async def test_the_static_engine_follows_a_page_that_sends_its_readers_on(site: Any) -> None:
    site.answers["/old"] = Answer(b'<meta http-equiv=refresh content="0; url=/static/1">')
    site.answers["/round"] = Answer(b'<meta http-equiv=refresh content="0; url=/turn">')
    site.answers["/turn"] = Answer(b'<meta http-equiv=refresh content="0; url=/round">')
    async with open_static(Policy.for_start(site.url)) as fetcher:
        found = await fetcher.fetch(f"{site.url}/old", PageOptions())
        assert (found.url, found.final_url) == (f"{site.url}/old", f"{site.url}/static/1")
        with pytest.raises(PageError, match="too many redirects"):
            await fetcher.fetch(f"{site.url}/round", PageOptions())


async def test_a_site_sees_one_user_agent_whichever_engine_asks(home: Path) -> None:
    seen: list[tuple[str, str]] = []

    def answer(request: Request) -> Answer:
        seen.append((request.path, request.headers.get("user-agent", "")))
        return Answer(page(request.path).encode())

    with served(answer) as url:
        async with opened(home) as engine:
            args = {"url": f"{url}/a/9", "engine": "auto", "max_pages": 1, "delay_ms": 0}
            started = await engine.requests.start("crawl", {**args, "respect_robots": False})
            await engine.tasks.wait(started.task_id, 60_000)
    agents = [agent for path, agent in seen if path == "/a/9"]
    assert len(agents) == 2
    assert len(set(agents)) == 1
    assert "OpenChromeMonitor/" in agents[0]


async def test_both_engines_agree_on_scripted_pages(home: Path) -> None:
    script = (
        "document.getElementById('find').style.display = 'block';"
        "document.querySelector('.side').insertAdjacentHTML('beforeend', '<b class=fold>Fold</b>');"
        "document.querySelectorAll('.code').forEach((e) => e.querySelector('.gp') &&"
        " e.insertAdjacentHTML('afterbegin', '<i class=copy>Copy</i>'));"
        "document.body.appendChild(document.getElementById('toc'));"
    )

    def answer(request: Request) -> Answer:
        if request.path == "/page.js":
            return Answer(script.encode(), 200, "text/javascript")
        n = request.path.removeprefix("/")
        links = "".join(f"<a href=/{m}>{m}</a> " for m in range(1, 30)) if n == "0" else ""
        prompt = "<b class=gp>$</b>" if n.isdecimal() and int(n) % 3 == 1 else ""
        html = (
            f"<title>{n}</title><div id=toc>Contents {n}</div><div class=side><p>Side</p>"
            f"<div id=find style='display:none'>Find</div></div><p>{n} {PROSE}</p>"
            f"<div class=code>{prompt} code {n}</div>{links}<script src=/page.js></script>"
        )
        return Answer(html.encode())

    told: dict[str, dict[str, Any]] = {}
    with served(answer) as url:
        async with opened(home) as engine:
            for name in ("browser", "auto"):
                args = {"url": f"{url}/0", "engine": name, "delay_ms": 0, "max_pages": 50}
                started = await engine.requests.start(
                    "crawl", {**args, "respect_robots": False, "output_format": "text"}
                )
                await engine.tasks.wait(started.task_id, 90_000)
                lines = home.joinpath("tasks", started.task_id, "pages.jsonl").read_text("utf-8")
                pages = [json.loads(line) for line in lines.splitlines()]
                told[name] = {page["url"]: page["content"].split() for page in pages}
            by_browser = sum(page["engine_used"] == "browser" for page in pages)
    assert len(told["auto"]) == 30
    assert told["auto"] == told["browser"]
    assert by_browser <= 6
