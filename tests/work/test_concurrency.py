"""Crawls with `concurrency: auto`: the site and the machine decide how many pages load at once."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.browser.chromium.cookie_jar import unproved
from engine.browser.page.crawl_tab import Tab
from engine.kinds.crawl import concurrency
from engine.kinds.crawl.concurrency_rule import MOST, START
from engine.kinds.crawl.crawl import crawl
from engine.kinds.crawl.crawl_args import parse_crawl
from engine.kinds.host_delay import Pace
from engine.kinds.sitemap.sitemap_crawl import parse_sitemap
from engine.ledger.reader import LedgerReader
from engine.model import machine_load
from engine.model.errors import InvalidArguments, PageError
from engine.model.machine_load import Machine, MachineMeter
from engine.model.records import Status, TaskEvent, TaskRecord
from engine.pages.fetch import Fetched, Fetcher, PageOptions
from engine.sample.site import Answer, Request
from engine.service.engine import Engine
from engine.text.words import ConcurrencyChange, concurrency_change, concurrency_words
from tests.support.engines import opened, until
from tests.support.memory_context import MemoryContext
from tests.support.serving import served

ARGS = {"engine": "static", "delay_ms": 0, "respect_robots": False, "concurrency": "auto"}
ARGS |= {"max_pages": 500}


class SlowSite:
    """A start page with links to `pages` others; each takes `delay_s`, `allowed` of them at once.

    `asked` has the time, the path and the status of each answer.
    """

    def __init__(self, pages: int, delay_s: float, allowed: int = 1_000) -> None:
        self.asked: list[tuple[float, str, int]] = []
        self.retry_after = lambda: "1"
        self.refusal = b"later"
        self.most = 0
        self._links = "".join(f"<a href=/{number}>{number}</a>" for number in range(pages))
        self._delay_s, self._allowed = delay_s, allowed
        self._ends: list[float] = []

    def answer(self, request: Request) -> Answer:
        now_s = time.monotonic()
        self._ends = [end_s for end_s in self._ends if end_s > now_s]
        is_refused = len(self._ends) >= self._allowed
        self.asked.append((now_s, request.path, 429 if is_refused else 200))
        if is_refused:
            return Answer(self.refusal, 429, headers=(("Retry-After", self.retry_after()),))
        self._ends.append(now_s + self._delay_s)
        self.most = max(self.most, len(self._ends))
        body = self._links if request.path == "/" else "<p>a page</p>"
        return Answer(body.encode(), delay_s=self._delay_s)

    @property
    def refused_s(self) -> list[float]:
        return [at_s for at_s, _, status in self.asked if status == 429]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "START_INTERVAL_S", 0.2)
    monkeypatch.setattr(concurrency, "INTERVAL_S", 0.3)
    monkeypatch.setattr(concurrency, "TOLD_S", 0.0)


@pytest.fixture
def limited() -> Iterator[tuple[SlowSite, str]]:
    """A site that refuses more than two pages at once: fewer than a crawl begins with."""
    site = SlowSite(30, 0.6, allowed=2)
    site.retry_after = lambda: "3"
    with served(site.answer) as url:
        yield site, url


class Turns:
    """When a crawl was told to leave its host alone, and when each of its pages might begin."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._holds: list[tuple[float, float]] = []
        self._begun: list[float] = []
        hold, turn = Pace.hold, Pace.turn

        def noted_hold(pace: Pace, host: str, seconds: float) -> None:
            self._holds.append((time.monotonic(), seconds))
            hold(pace, host, seconds)

        async def noted_turn(pace: Pace, host: str, asked_s: float = 0.0) -> None:
            await turn(pace, host, asked_s)
            self._begun.append(time.monotonic())

        monkeypatch.setattr(Pace, "hold", noted_hold)
        monkeypatch.setattr(Pace, "turn", noted_turn)

    def early(self, site: SlowSite) -> list[float]:
        """Return the requests during these times, but those of pages that had begun before.

        A busy browser may send one of the latter much later.
        """
        assert self._holds
        found = []
        for at_s, seconds in self._holds:
            begun = sum(one_s <= at_s for one_s in self._begun)
            asked = [one_s for one_s, *_ in site.asked if one_s < at_s + seconds - 0.05]
            found += [one_s - at_s for one_s in asked[begun:]]
        return found


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    return Turns(monkeypatch)


async def start(service: Engine, url: str, **args: Any) -> TaskRecord:
    return await service.requests.start("crawl", {"url": url, **ARGS, **args})


async def ended(service: Engine, url: str, **args: Any) -> TaskRecord:
    record = await start(service, url, **args)
    return await service.tasks.wait(record.task_id, 150_000)


async def changes_of(engine: Engine, record: TaskRecord) -> list[ConcurrencyChange]:
    events = (await engine.tasks.events(record.task_id)).events
    return [*filter(None, map(concurrency_change, events))]


@pytest.mark.parametrize(
    ("engine_name", "refusal"),
    [
        ("static", b"later"),
        pytest.param("browser", b"later", marks=pytest.mark.thorough),
        pytest.param("browser", b"", marks=pytest.mark.thorough),
    ],
)
async def test_a_site_that_refuses_more_sees_few_refusals_and_loses_no_page(
    home: Path, limited: tuple[SlowSite, str], turns: Turns, engine_name: str, refusal: bytes
) -> None:
    site, url = limited
    site.refusal = refusal  # some Chromium builds have no page for an empty one
    async with opened(home) as engine:
        record = await ended(engine, url, engine=engine_name)
        changes = await changes_of(engine, record)
        pages = list(LedgerReader(engine.settings.root).read_pages(record.task_id))
    assert record.status == Status.COMPLETED
    assert len(pages) == len({one["url"] for one in pages}) == 31
    assert not [one for one in pages if "error" in one]
    paths = Counter(path for _, path, status in site.asked if status == 200)
    assert set(paths.values()) == {1}, "no page is loaded twice"
    assert 1 <= len(site.refused_s) <= 8
    assert (changes[0].number, changes[0].reason) == (START, "start")
    assert "refused" in {one.reason for one in changes}
    assert all(one.number < one.before for one in changes if one.reason == "refused")
    if not refusal:
        assert turns.early(site) == []


@pytest.mark.parametrize("is_date", [pytest.param(False, marks=pytest.mark.thorough), True])
async def test_a_host_is_not_asked_again_before_the_time_that_it_names(
    home: Path, limited: tuple[SlowSite, str], turns: Turns, is_date: bool
) -> None:
    site, url = limited
    if is_date:  # of whole seconds
        site.retry_after = lambda: formatdate(time.time() + 4, usegmt=True)
    async with opened(home) as engine:
        assert (await ended(engine, url)).status == Status.COMPLETED
    assert turns.early(site) == []


@pytest.mark.parametrize("is_unproved", [False, True])
async def test_an_error_without_a_page_keeps_requests_from_its_host_as_well(
    is_unproved: bool,
) -> None:
    asked: list[tuple[float, str]] = []

    class Fetching:
        async def fetch(self, url: str, options: PageOptions, on_idle: object = None) -> Fetched:
            asked.append((time.monotonic(), url))
            if len(asked) == 2:
                raise unproved(503, 1.0) if is_unproved else page_error(503, 1.0)
            html = "<a href=/1>1</a><a href=/2>2</a>"
            return Fetched(url, url, 200, "text/html", html=html, engine="static")

        async def close(self) -> None: ...

    @asynccontextmanager
    async def open_fetcher(engine: Any, args: Any) -> AsyncIterator[Fetcher]:
        yield Fetching()

    args = parse_crawl({"url": "http://a.test/", **ARGS, "concurrency": 1})
    ctx = MemoryContext()
    await crawl(args, ctx, open_fetcher)
    assert [page["status"] for page in ctx.pages] == [200] * 3
    assert len(asked) == 4
    assert asked[2][0] - asked[1][0] > 0.9


async def test_the_browser_tells_the_time_of_an_error_without_a_page() -> None:
    class Answered:
        status, headers = 503, {"retry-after": "7"}

        async def response(self) -> Any:
            return self

    tab: Any = Tab.__new__(Tab)
    tab._failed = Answered()
    failed: Any = await tab._with_status(PageError("http", "an error and no page"))
    assert (failed.status, failed.retry_after_s) == (503, 7.0)


async def test_a_cancel_ends_the_wait_that_a_site_asks_for(
    home: Path, limited: tuple[SlowSite, str]
) -> None:
    site, url = limited
    site.retry_after = lambda: "60"
    async with opened(home) as engine:
        record = await start(engine, url)
        await until(lambda: site.refused_s)
        reader = LedgerReader(engine.settings.root)
        await until(lambda: "Retry-After" in str(reader.read_events(record.task_id)))
        await engine.commands.cancel(record.task_id)
        ended_s = 40  # before the minute that the site asks for
        assert (await engine.tasks.wait(record.task_id, ended_s * 1_000)).status == Status.CANCELLED


@pytest.mark.thorough
async def test_pages_that_wait_for_a_slow_site_load_in_larger_numbers(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MachineMeter, "read", lambda *_: Machine())  # other programs' work aside
    site = SlowSite(120, 0.4)
    with served(site.answer) as url:
        async with opened(home) as engine:
            record = await ended(engine, url)
            changes = await changes_of(engine, record)
    assert record.status == Status.COMPLETED
    assert site.most > START
    assert max(one.number for one in changes) <= MOST
    assert {one.reason for one in changes} >= {"start", "room"}


async def test_the_delay_of_a_host_holds_and_more_pages_at_once_would_not_help(home: Path) -> None:
    site, began_s = SlowSite(25, 0.02), time.monotonic()
    with served(site.answer) as url:
        async with opened(home) as engine:
            record = await ended(engine, url, delay_ms=300)
            changes = await changes_of(engine, record)
    assert record.status == Status.COMPLETED
    # Of the last one: the first may be long on its way.
    assert site.asked[-1][0] - began_s >= 25 * 0.3 - 0.05
    assert max(one.number for one in changes) == START


async def test_a_re_run_and_a_retry_are_automatic_as_well(home: Path) -> None:
    def answer(request: Request) -> Answer:
        return Answer(b"<a href=/broken>broken</a>", 500 if request.path == "/broken" else 200)

    with served(answer) as url:
        async with opened(home) as engine:
            first = await ended(engine, url, retries=0)
            for begin in (engine.requests.rerun, engine.requests.retry):
                again = await engine.tasks.wait((await begin(first.task_id)).task_id, 60_000)
                assert again.args_summary["concurrency"] == "auto"
                assert [one.reason for one in await changes_of(engine, again)] == ["start"]


async def test_a_given_number_stays_as_it_is_without_events(home: Path) -> None:
    site = SlowSite(40, 0.5)  # long enough for a slow machine to ask for five of them
    with served(site.answer) as url:
        async with opened(home) as engine:
            record = await ended(engine, url, concurrency=5)
            assert await changes_of(engine, record) == []
    assert record.status == Status.COMPLETED
    assert site.most == 5


async def test_short_memory_leaves_one_page_at_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_load, "_memory", lambda: (8e9, 0.1e9))
    site = SlowSite(40, 0.1)
    with served(site.answer) as url:
        async with opened(home) as engine:
            record = await ended(engine, url)
            changes = await changes_of(engine, record)
    assert record.status == Status.COMPLETED
    assert [(one.number, one.reason) for one in changes] == [(START, "start"), (1, "memory")]
    assert site.most <= START
    assert len(site.asked) == 41


async def test_a_machine_that_tells_nothing_ends_no_crawl_and_the_number_does_not_rise(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("/proc/stat")

    monkeypatch.setattr(psutil, "cpu_times", refuse)
    site = SlowSite(40, 0.1)
    with served(site.answer) as url:
        async with opened(home) as engine:
            record = await ended(engine, url)
            changes = await changes_of(engine, record)
    assert record.status == Status.COMPLETED
    assert len(site.asked) == 41
    assert max(one.number for one in changes) == START


async def test_pages_start_and_a_cancel_holds_while_the_machine_is_measured(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on = threading.Event(), threading.Event()

    def read(*_: object) -> Machine:
        begun.set()
        goes_on.wait(60)
        return Machine()

    monkeypatch.setattr(MachineMeter, "read", read)
    site = SlowSite(40, 0.3)
    with served(site.answer) as url:
        async with opened(home) as engine:
            record = await start(engine, url)
            try:
                await until(begun.is_set)  # after the start page
                await until(lambda: len(site.asked) >= START, 40)  # it is measured for a minute
                await engine.commands.cancel(record.task_id)
            finally:
                goes_on.set()
            assert (await engine.tasks.wait(record.task_id, 60_000)).status == Status.CANCELLED


async def test_a_resumed_crawl_is_automatic_as_well(home: Path) -> None:
    site, is_cut = SlowSite(12, 0.1), False

    def answer(request: Request) -> Answer:  # the first crawl does not end before it is cancelled
        if not is_cut and len(site.asked) >= 4:
            return Answer(stops="before")
        return site.answer(request)

    with served(answer) as url:
        async with opened(home) as engine:
            first = await start(engine, url)
            await until(lambda: len(site.asked) >= 4)
            await engine.commands.cancel(first.task_id)
            assert (await engine.tasks.wait(first.task_id, 60_000)).status == Status.CANCELLED
            is_cut = True
            again = await engine.requests.resume(first.task_id)
            again = await engine.tasks.wait(again.task_id, 60_000)
            assert again.status == Status.COMPLETED
            assert again.args_summary["concurrency"] == "auto"
            assert "start" in {one.reason for one in await changes_of(engine, again)}
    assert len({path for _, path, _ in site.asked}) == 13


# The argument.


@pytest.mark.parametrize("given", ["auto", 1, MOST])
def test_the_number_is_given_or_automatic(given: Any) -> None:
    for args in (
        parse_crawl({"url": "http://a.test", "concurrency": given}),
        parse_sitemap({"url": "http://a.test", "concurrency": given}).pages,
    ):
        assert args.concurrency == given
        assert args.most_at_once == (MOST if given == "auto" else given)


@pytest.mark.parametrize("given", ["lots", "3", 0, MOST + 1, True, None, 2.5, ["auto"]])
def test_nothing_else_is_a_number_of_pages_at_once(given: Any) -> None:
    with pytest.raises(InvalidArguments) as refused:
        parse_crawl({"url": "http://a.test", "concurrency": given})
    assert [problem.path for problem in refused.value.problems] == ["concurrency"]


# Events and measurements.


def event(**data: object) -> TaskEvent:
    facts = {"phase": "concurrency", "number": 6, "before": 4, "reason": "room", **data}
    return TaskEvent(1_000, "log", facts)


def test_a_change_is_read_back_and_worded() -> None:
    change = concurrency_change(event())
    assert change == ConcurrencyChange(6, 4, "room", 1_000)
    assert concurrency_words(change) == "6 (before: 4): the site and the machine allow more"


@pytest.mark.parametrize(
    "strange",
    [
        {"reason": "mood"},
        {"reason": ["room"]},
        {"number": "6"},
        {"number": -1},
        {"number": 10**9},
        {"before": None},
        {"before": 10**9},
        {"phase": "wait"},
    ],
)
def test_what_is_no_change_is_not_taken_for_one(strange: dict[str, object]) -> None:
    assert concurrency_change(event(**strange)) is None


async def test_the_last_of_many_changes_is_told_a_while_after_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(concurrency, "TOLD_S", 5.0)
    now_s = [100.0]
    ctx = MemoryContext(monotonic=lambda: now_s[0])
    made = concurrency.Concurrency(ctx, "auto")
    await made.begin()
    assert made._rule is not None
    for number in (4, 6, 9, 13):
        made._rule.number = number
        now_s[0] += 0.1
        await made.adapt()
    assert [data["number"] for *_, data in ctx.notes] == [START]
    now_s[0] += 5
    await made.adapt()
    await made.adapt()
    assert [(data["before"], data["number"]) for *_, data in ctx.notes] == [(0, 3), (3, 13)]


def page_error(status: int, retry_after_s: float | None) -> PageError:
    failed = PageError("http", f"HTTP {status}", status)
    failed.retry_after_s = retry_after_s
    return failed


@pytest.mark.parametrize("is_empty", [False, True])
@pytest.mark.parametrize(
    ("status", "retry_after_s", "is_refusal"),
    [(429, None, True), (429, 2.0, True), (503, 2.0, True), (503, None, False), (500, 2.0, False)],
)
async def test_a_503_without_a_time_is_a_failure_and_no_refusal(
    is_empty: bool, status: int, retry_after_s: float | None, is_refusal: bool
) -> None:
    made = concurrency.Concurrency(MemoryContext(), "auto")
    if is_empty:  # in the browser
        with pytest.raises(PageError), made.loading():
            raise page_error(status, retry_after_s)
    else:
        with made.loading() as load:
            url = "http://a.test/"
            load.fetched = Fetched(url, url, status, retry_after_s=retry_after_s)
    assert made.number == (1 if is_refusal else START)
    assert made._failed == (not is_refusal)


async def test_the_first_interval_begins_after_the_pages_of_a_resumed_task_were_read() -> None:
    now_s = [100.0]
    made = concurrency.Concurrency(MemoryContext(monotonic=lambda: now_s[0]), "auto")
    now_s[0] += 30
    await made.begin()
    assert made._interval(now_s[0]).busy == 1
    assert made._began_s == now_s[0]


async def test_a_cut_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "TOLD_S", 5.0)
    ctx = MemoryContext()
    made = concurrency.Concurrency(ctx, "auto")
    await made.begin()
    with pytest.raises(PageError), made.loading():
        raise page_error(429, None)
    await made.adapt()
    assert [(data["number"], data["reason"]) for *_, data in ctx.notes][1:] == [(1, "refused")]
