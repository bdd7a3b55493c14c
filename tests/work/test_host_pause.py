"""A host that fails page after page is paused, probed with one page, and given up in the end."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.egress.egress_policy import Policy
from engine.kinds.crawl import crawl, host_pause
from engine.kinds.crawl.crawl_args import CrawlArgs, parse_crawl
from engine.kinds.crawl.crawl_kind import expect_hosts
from engine.kinds.crawl.host_pause import (
    FAILED_PAGES,
    PAUSES_S,
    HostPauses,
    is_answer,
    is_host_failure,
)
from engine.kinds.host_delay import MAX_RETRY_AFTER_S
from engine.ledger.reader import LedgerReader
from engine.model.addresses import Address, address_of
from engine.model.errors import (
    AddressBlocked,
    BrowserGone,
    EngineError,
    PageError,
    TaskFailed,
    UnitTimeout,
)
from engine.model.records import Status, TaskRecord
from engine.model.tally import CrawlOutcome
from engine.pages.fetch import Fetcher
from engine.pages.static_engine import open_static
from engine.sample.site import Answer, Request
from engine.service.engine import Engine
from tests.support.engines import opened, until
from tests.support.late_clock import late_clock
from tests.support.line_files import whole_lines
from tests.support.memory_context import MemoryContext
from tests.support.serving import served

ARGS = {"engine": "static", "max_pages": 100, "delay_ms": 0, "respect_robots": False}
ARGS |= {"concurrency": 1, "retries": 1}
LINKS = "".join(f"<a href=/{number}>{number}</a>" for number in range(40))


class DownSite:
    """A start page with forty links; `down` decides which answers are 503: all but the first."""

    url = ""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.down: Callable[[str], bool] = lambda _: self.requests.total() > 1

    def answer(self, request: Request) -> Answer:
        self.requests[request.path] += 1
        if self.down(request.path):
            return Answer(b"busy", 503)
        kept = ("Cache-Control", "max-age=600")
        return Answer(LINKS.encode() if request.path == "/" else b"<p>a page</p>", headers=(kept,))


@pytest.fixture
def site() -> Iterator[DownSite]:
    made = DownSite()
    with served(made.answer) as url:
        made.url = url
        yield made


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_pause, "PAUSES_S", (0.05, 0.1))


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause ends before the wait for the end of a task does."""
    monkeypatch.setattr(host_pause, "PAUSES_S", (600.0,))


async def start(service: Engine, url: str, **args: Any) -> TaskRecord:
    return await service.requests.start("crawl", {"url": url, **ARGS, **args})


async def ended(service: Engine, record: TaskRecord) -> TaskRecord:
    return await service.tasks.wait(record.task_id, 90_000)


def summary_of(home: Path, record: TaskRecord) -> dict[str, Any]:
    found = json.loads((home / "tasks" / record.task_id / "result.json").read_text())
    return dict(found["summary"])


def waits_of(home: Path, record: TaskRecord) -> list[dict[str, Any]]:
    events = whole_lines(home / "tasks" / record.task_id / "events.jsonl")
    told = [event.get("data") or {} for event in events]
    return [data for data in told if data.get("reason") == "host_errors"]


# The rule.


class Still(MemoryContext):
    """A context whose clock is set by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0
        super().__init__(monotonic=lambda: self.now_s)


def page(number: int) -> Address:
    found = address_of(f"http://a.test/{number}")
    assert found is not None
    return found


ORIGIN = "http://a.test"


async def unanswered(_: Address) -> bool:
    return False


@given(st.lists(st.sampled_from(["fails", "fails", "fails", "again", "answers"]), max_size=80))
async def test_only_first_failures_in_a_row_begin_a_pause_and_probes_decide_on_its_end(
    steps: list[str],
) -> None:
    ctx = Still()
    pauses = HostPauses(ctx, unanswered, is_on=True)
    in_a_row = paused = 0
    for number, step in enumerate(steps):
        address = page(number)
        if paused:
            assert pauses.holds(ORIGIN)
            assert pauses.due([ORIGIN], ctx.now_s) == []
            left_s = pauses.next_s([ORIGIN], ctx.now_s)
            assert left_s == PAUSES_S[paused - 1]
            ctx.now_s += left_s
            assert pauses.due([ORIGIN], ctx.now_s) == [ORIGIN]
            pauses.begin_probe(address)
            assert pauses.due([ORIGIN], ctx.now_s) == []
        if step == "answers":
            assert await pauses.answered(address) is bool(paused)
            in_a_row = paused = 0
        else:
            in_a_row += step == "fails"
            gave_up = await pauses.failed(address, "HTTP 503", is_first=step == "fails")
            assert gave_up is (paused == len(PAUSES_S))
            if gave_up:
                assert pauses.gave_up(ORIGIN)
                assert not pauses.holds(ORIGIN)
                return
            paused += bool(paused) or in_a_row >= FAILED_PAGES
        assert pauses.holds(ORIGIN) is bool(paused)
        assert not pauses.holds("http://b.test")


async def test_pages_that_began_before_a_pause_do_not_prolong_it_but_may_end_it() -> None:
    ctx = Still()
    pauses = HostPauses(ctx, unanswered, is_on=True)
    for number in range(FAILED_PAGES + 3):
        await pauses.failed(page(number), "reset", is_first=True)
    assert pauses.next_s([ORIGIN], ctx.now_s) == PAUSES_S[0]
    assert await pauses.answered(page(99))
    assert not pauses.holds(ORIGIN)


async def test_a_probe_that_shows_nothing_leaves_the_probing_to_another_page() -> None:
    ctx = Still()
    pauses = HostPauses(ctx, unanswered, is_on=True)
    for number in range(FAILED_PAGES):
        await pauses.failed(page(number), "reset", is_first=True)
    ctx.now_s += PAUSES_S[0]
    pauses.begin_probe(page(50))
    pauses.end_probe(page(50))
    assert pauses.due([ORIGIN], ctx.now_s) == [ORIGIN]


async def test_a_page_that_was_loaded_before_and_still_answers_prevents_and_ends_a_pause() -> None:
    ctx, asked, answers = Still(), list[Address](), iter([True, False, True])

    async def still_answers(address: Address) -> bool:
        assert pauses.holds(ORIGIN)
        assert pauses.due([ORIGIN], ctx.now_s) == []
        asked.append(address)
        return next(answers)

    async def fails(number: int) -> bool:
        return await pauses.failed(page(number), "HTTP 500", is_first=True)

    pauses = HostPauses(ctx, still_answers, is_on=True)
    pauses.loaded(page(0))
    pauses.loaded(page(1))
    broken = [await fails(2) for _ in range(FAILED_PAGES)]
    assert broken == [False] * (FAILED_PAGES - 1) + [True]
    assert not pauses.holds(ORIGIN)
    for _ in range(2 * FAILED_PAGES - 1):  # the next time it takes twice as many
        assert not await fails(2)
        assert not pauses.holds(ORIGIN)
    assert not await fails(2)
    assert pauses.next_s([ORIGIN], ctx.now_s) == PAUSES_S[0]
    ctx.now_s += PAUSES_S[0]
    pauses.begin_probe(page(3))
    assert await fails(3)
    assert not pauses.holds(ORIGIN)
    assert asked == [page(0)] * 3


async def test_a_host_that_asks_to_wait_is_paused_whatever_another_page_says() -> None:
    async def still_answers(_: Address) -> bool:
        return True  # a cache does

    ctx = Still()
    pauses = HostPauses(ctx, still_answers, is_on=True)
    pauses.loaded(page(0))
    for _ in range(FAILED_PAGES):
        await pauses.failed(page(1), "HTTP 429", is_first=True, asks_to_wait=True)
    assert pauses.next_s([ORIGIN], ctx.now_s) == PAUSES_S[0]


async def test_a_host_that_could_not_be_asked_before_the_end_is_neither_paused_nor_given_up() -> (
    None
):
    async def ends_before(_: Address) -> None:
        return None

    ctx = Still()
    pauses = HostPauses(ctx, ends_before, is_on=True)
    pauses.loaded(page(0))
    for number in range(FAILED_PAGES):
        assert not await pauses.failed(page(number), "HTTP 500", is_first=True)
    assert pauses.given_up == []
    assert ctx.notes == []


async def test_an_answer_while_an_earlier_page_is_loaded_again_prevents_the_pause() -> None:
    async def still_answers(_: Address) -> bool:
        assert not await pauses.failed(page(98), "HTTP 500", is_first=True)
        assert await pauses.answered(page(99))
        return False

    pauses = HostPauses(Still(), still_answers, is_on=True)
    pauses.loaded(page(0))
    for number in range(FAILED_PAGES):
        assert not await pauses.failed(page(number), "HTTP 500", is_first=True)
    assert not pauses.holds(ORIGIN)


async def test_a_stop_while_an_earlier_page_is_loaded_again_begins_no_pause() -> None:
    async def still_answers(_: Address) -> bool:
        ctx.stop()
        return False

    ctx = Still()
    pauses = HostPauses(ctx, still_answers, is_on=True)
    pauses.loaded(page(0))
    for number in range(FAILED_PAGES):
        assert not await pauses.failed(page(number), "HTTP 500", is_first=True)
    assert ctx.notes == []


@pytest.mark.parametrize(
    ("asked_s", "seconds"), [(5.0, PAUSES_S[0]), (45.0, 45.0), (9_999.0, MAX_RETRY_AFTER_S)]
)
async def test_a_longer_time_that_the_answer_asks_for_is_kept_within_its_limit(
    asked_s: float, seconds: float
) -> None:
    ctx = Still()
    pauses = HostPauses(ctx, unanswered, is_on=True)
    for number in range(FAILED_PAGES):
        await pauses.failed(page(number), "HTTP 503", is_first=True, retry_after_s=asked_s)
    assert pauses.next_s([ORIGIN], ctx.now_s) == seconds


@pytest.mark.parametrize(
    ("failed", "of_the_host", "answered"),
    [
        (PageError("timeout", "no answer"), True, False),
        (PageError("connection", "refused"), True, False),
        (PageError("http", "HTTP 503", 503), True, False),
        (PageError("http", "HTTP 404", 404), False, True),
        (PageError("proxy", "the proxy failed"), False, False),
        (PageError("open_files", "too many"), False, False),
        (PageError("crash", "the page crashed"), False, False),
        (AddressBlocked("http://a.test/", "private address"), False, False),
        (BrowserGone(url="http://a.test/"), False, False),
        (UnitTimeout(label="robots.txt", limit_s=5), True, False),
        (UnitTimeout(label="http://a.test/", limit_s=5), False, False),
    ],
)
def test_a_failure_is_of_the_host_an_answer_or_neither(
    failed: EngineError, of_the_host: bool, answered: bool
) -> None:
    assert (is_host_failure(failed), is_answer(failed)) == (of_the_host, answered)


def test_a_page_that_arrived_and_hangs_is_no_failure_of_its_host() -> None:
    slow = PageError("timeout", "no answer")
    slow.unproved = True
    assert not is_host_failure(slow)


# The crawl.


@pytest.mark.thorough("browser")
@pytest.mark.parametrize("engine_name", ["static", "browser"])
@pytest.mark.usefixtures("short")
async def test_a_host_that_stays_down_is_given_up_and_a_resume_loads_the_rest(
    home: Path, site: DownSite, engine_name: str
) -> None:
    async with opened(home) as engine:
        record = await ended(engine, await start(engine, site.url, engine=engine_name))
        assert (record.status, record.error and record.error.code) == (
            Status.FAILED,
            "host_unavailable",
        )
        assert record.error is not None
        assert site.url.partition("://")[2] in record.error.message
        probes = 2
        again = 1 + probes  # of the start page, before each pause and at the end
        assert site.requests["/"] == 1 + again
        assert site.requests.total() == 1 + FAILED_PAGES + probes + again
        summary = summary_of(home, record)
        assert summary["stopped_by"] == "host_errors"
        assert summary["hosts_given_up"] == [site.url]
        kept = FAILED_PAGES + probes
        assert (summary["total_pages"], summary["succeeded"]) == (1 + kept, 1)
        assert summary["links_host_errors"] == 40 - kept
        assert [data["seconds"] for data in waits_of(home, record)] == [0.05, 0.1]
        site.down = lambda _: False
        resumed = await ended(engine, await engine.requests.resume(record.task_id))
        assert resumed.status == Status.COMPLETED
        pages = list(LedgerReader(engine.settings.root).read_pages(resumed.task_id))
        assert len(pages) == len({one["url"] for one in pages}) == 41
        assert not [one for one in pages if "error" in one]


@pytest.mark.usefixtures("short")
async def test_a_host_that_answers_again_loses_no_page_and_is_probed_with_one(
    home: Path, site: DownSite
) -> None:
    asked: list[tuple[str, bool]] = []

    def down(path: str) -> bool:
        is_down = 1 <= len(asked) <= FAILED_PAGES + 3  # the start page's repetitions fail, too
        asked.append((path, is_down))
        return is_down

    site.down = down
    async with opened(home) as engine:
        record = await ended(engine, await start(engine, site.url, concurrency=3))
    assert record.status == Status.COMPLETED
    summary = summary_of(home, record)
    assert (summary["succeeded"], summary["failed"]) == (41, 0)
    assert summary["stopped_by"] == "frontier"
    assert "links_host_errors" not in summary
    assert 1 <= len(waits_of(home, record)) <= 2


async def test_broken_pages_among_others_and_their_repetitions_begin_no_pause(
    home: Path, site: DownSite
) -> None:
    site.down = lambda path: path != "/" and int(path[1:]) % 4 != 0
    async with opened(home) as engine:
        record = await ended(engine, await start(engine, site.url, retries=2))
    assert record.status == Status.COMPLETED
    assert waits_of(home, record) == []
    assert summary_of(home, record)["http_errors"] == 30


@pytest.mark.thorough("browser")
@pytest.mark.parametrize("engine_name", ["static", "browser"])
async def test_a_broken_part_of_a_site_that_answers_begins_no_pause(
    home: Path, site: DownSite, engine_name: str
) -> None:
    site.down = lambda path: path != "/"
    async with opened(home) as engine:
        record = await ended(engine, await start(engine, site.url, engine=engine_name, retries=0))
        assert record.status == Status.COMPLETED
        assert waits_of(home, record) == []
        summary = summary_of(home, record)
        assert (summary["succeeded"], summary["failed"]) == (1, 40)
        assert site.requests["/"] == 1 + 2  # after 8 failed pages, and after 16 more


@pytest.mark.usefixtures("short")
async def test_a_resumed_crawl_asks_for_a_page_that_it_kept(home: Path, site: DownSite) -> None:
    async with opened(home) as engine:
        record = await ended(engine, await start(engine, site.url))
        assert record.status == Status.FAILED
        site.down = lambda path: path != "/"
        resumed = await ended(engine, await engine.requests.resume(record.task_id))
        assert resumed.status == Status.COMPLETED
        assert waits_of(home, resumed) == []


async def test_missing_and_forbidden_pages_are_answers(home: Path) -> None:
    codes = (404, 403, 410)

    def answer(request: Request) -> Answer:
        if request.path == "/":
            return Answer(LINKS.encode())
        return Answer(b"no", codes[int(request.path[1:]) % 3])

    with served(answer) as url:
        async with opened(home) as engine:
            record = await ended(engine, await start(engine, url))
    assert record.status == Status.COMPLETED
    assert waits_of(home, record) == []


async def test_the_rule_is_switched_off_by_its_argument(home: Path, site: DownSite) -> None:
    async with opened(home) as engine:
        record = await ended(engine, await start(engine, site.url, host_pause=False))
    assert record.status == Status.COMPLETED
    assert site.requests.total() == 81
    assert waits_of(home, record) == []


async def test_other_hosts_go_on_meanwhile_and_the_pause_is_seen_in_the_progress(
    home: Path, site: DownSite, long: None
) -> None:
    with served(lambda _: Answer(b"<p>another host</p>")) as other:
        urls = [f"{other}/{number}" for number in range(30)]
        async with opened(home) as engine:
            record = await start(engine, site.url, urls=urls, scope="**")
            reader = LedgerReader(engine.settings.root)

            def others() -> int:
                pages = reader.read_pages(record.task_id)
                return sum(one["url"].startswith(f"{other}/") for one in pages)

            await until(lambda: others() == 30 and bool(waits_of(home, record)))
            units = reader.tail_units(record.task_id, 0)[0]
            assert units is not None
            await engine.commands.cancel(record.task_id)
            assert (await ended(engine, record)).status == Status.CANCELLED


async def test_a_cancel_ends_a_pause_at_once_and_keeps_the_failures(
    home: Path, site: DownSite, long: None
) -> None:
    async with opened(home) as engine:
        record = await start(engine, site.url, concurrency=3)
        await until(lambda: bool(waits_of(home, record)))
        reader = LedgerReader(engine.settings.root)
        await until(lambda: "Waiting 600 s" in str(reader.tail_units(record.task_id, 0)[0]))
        await engine.commands.cancel(record.task_id)
        assert (await ended(engine, record)).status == Status.CANCELLED
        summary = summary_of(home, record)
        assert summary["stopped_by"] == "cancelled"
        assert summary["failed"] >= FAILED_PAGES


async def test_the_time_limit_acts_within_a_pause(
    home: Path, site: DownSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawl, "MINUTE_S", 3.0)

    def pauses() -> bool:
        events = home.glob("tasks/*/events.jsonl")
        return any(b"host_errors" in one.read_bytes() for one in events)

    async with opened(home, clock=late_clock(pauses)) as engine:
        record = await ended(engine, await start(engine, site.url, max_minutes=1))
    assert record.status == Status.COMPLETED
    assert summary_of(home, record)["stopped_by"] == "max_minutes"
    assert waits_of(home, record)


# The waits, in a crawl without a ledger.


async def crawled(
    url: str, ctx: MemoryContext, *, others: Sequence[str] = (), **more: Any
) -> CrawlOutcome:
    args = parse_crawl({"url": url, **ARGS, **more})

    @asynccontextmanager
    async def open_fetcher(_: str, __: CrawlArgs) -> AsyncIterator[Fetcher]:
        async with open_static(Policy.for_start(args.url, named=others), None) as fetcher:
            yield fetcher

    return await crawl.crawl(args, ctx, open_fetcher)


class Pausing(MemoryContext):
    """A context that runs `on_pause` once, while the crawl waits for the end of its first pause."""

    def __init__(self, on_pause: Callable[[], None]) -> None:
        super().__init__()
        self._on_pause: Callable[[], None] | None = on_pause

    def unit(self, label: str, limit_s: float) -> AbstractAsyncContextManager[None]:
        if label == "pause of a host" and self._on_pause is not None:
            asyncio.get_running_loop().call_soon(self._on_pause)
            self._on_pause = None
        return super().unit(label, limit_s)


async def test_repetitions_on_a_paused_host_do_not_delay_deeper_pages_of_another() -> None:
    def answer_other(request: Request) -> Answer:
        return Answer(LINKS.encode() if request.path == "/" else b"<p>a page</p>")

    def answer(request: Request) -> Answer:
        requests[request.path] += 1
        if requests.total() > 1:
            return Answer(b"busy", 503)
        return Answer(f"{LINKS}<a href={other}/>other</a>".encode())

    requests = Counter[str]()
    with served(answer_other) as other, served(answer) as url:
        ctx = Pausing(lambda: ctx.stop())
        await crawled(url, ctx, others=[other], scope="**")
    pages = [one["url"] for one in ctx.pages if one["url"].startswith(f"{other}/")]
    assert len(pages) == 41


@pytest.mark.usefixtures("short")
async def test_a_host_that_was_given_up_fails_the_task_although_another_limit_ended_it(
    site: DownSite,
) -> None:
    ctx = MemoryContext()
    with served(lambda _: Answer(LINKS.encode(), delay_s=0.1)) as other:
        given = {"urls": [f"{other}/"], "scope": "**", "max_pages": 25}
        outcome = await crawled(site.url, ctx, others=[other], **given)
    assert (outcome.stopped_by, outcome.hosts_given_up) == ("max_pages", (site.url,))
    with pytest.raises(TaskFailed, match="failed page after page") as failed:
        expect_hosts(outcome, ctx, {})
    assert failed.value.failure == "host_unavailable"


@pytest.mark.usefixtures("short")
async def test_a_machine_that_sleeps_through_a_pause_continues_the_crawl(
    site: DownSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    real = loop.time

    def sleep() -> None:
        site.down = lambda _: False
        monkeypatch.setattr(loop, "time", lambda: real() + 70)

    outcome = await crawled(site.url, Pausing(sleep))
    assert (outcome.succeeded, outcome.failed) == (41, 0)


@pytest.mark.usefixtures("short")
async def test_a_pause_that_ends_just_before_the_wait_is_no_wait_for_ever(
    site: DownSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = HostPauses.next_s

    def late(pauses: HostPauses, *given: Any) -> float | None:
        site.down = lambda _: False
        time.sleep(0.1)  # the first pause has 0.05 s
        return real(pauses, *given)

    monkeypatch.setattr(HostPauses, "next_s", late)
    async with asyncio.timeout(60):
        outcome = await crawled(site.url, MemoryContext())
    assert outcome.succeeded == 41


async def test_the_time_limit_acts_within_a_pause_although_its_timer_is_early(
    site: DownSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawl, "MINUTE_S", 3.0)
    slow = MemoryContext(monotonic=lambda: time.monotonic() * 0.7)
    async with asyncio.timeout(60):
        outcome = await crawled(site.url, slow, max_minutes=1)
    assert outcome.stopped_by == "max_minutes"
