"""Pages in which nothing happens any more: a crawl loads others while it makes sure of that."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from engine.browser.page import extraction_options
from engine.browser.page.crawl_tab import HeldOpen
from engine.browser.page.idle_report import IdleReport
from engine.kinds.crawl.concurrency import (
    FIRST_A_PAGE,
    STAY_IDLE,
    Concurrency,
    most_tabs,
)
from engine.kinds.crawl.concurrency_rule import MOST, START
from engine.ledger.reader import LedgerReader
from engine.model import machine_load
from engine.model.errors import PageError
from engine.model.machine_load import MOST_TABS, TABS_A_PAGE
from engine.model.records import Status
from engine.pages.fetch import Fetched, IdleState, PageOptions
from engine.sample.site import Answer, Request
from tests.browser.conftest import TABS, Making, Pages
from tests.support.connections import BOTH_CONNECTIONS
from tests.support.engines import opened, until
from tests.support.memory_context import MemoryContext
from tests.support.serving import served

PATIENT = PageOptions(timeout_ms=100_000)
STABLE_MS = "const RENDERED_MS = 500;"
WHOLE = "<p>" + "All of this came with the markup. " * 10
# As frameworks do it that leave the browser time between their steps; no timer shows it.
STEPS = """<div id=root></div><script>
  const { port1, port2 } = new MessageChannel();
  const end = performance.now() + 300;
  port1.onmessage = () => {
    if (performance.now() > end) return root.append("words that a script wrote");
    for (const from = performance.now(); performance.now() - from < 5;);
    port2.postMessage(0);
  };
  fetch("/data").then((answer) => answer.text()).then(() => port2.postMessage(0));
</script>"""


def written(script: str = "") -> str:
    writes = "addEventListener('load', () => root.append('words that a script wrote'))"
    return f"<div id=root></div><script>{writes};{script}</script>"


@pytest.fixture
def stable_for(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`stable_for(ms)`: pages that scripts wrote must stay stable so long, in later browsers."""
    read = extraction_options.script

    def forget() -> None:
        extraction_options.taking_script.cache_clear()
        extraction_options._taking.cache_clear()

    def set_limit(limit_ms: int) -> None:
        def changed(name: str) -> str:
            source = read(name)
            if name == "settle":
                assert STABLE_MS in source
            return source.replace(STABLE_MS, f"const RENDERED_MS = {limit_ms};")

        monkeypatch.setattr(extraction_options, "script", changed)
        forget()

    yield set_limit
    monkeypatch.undo()
    forget()


@pytest.fixture
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_load, "_memory", lambda: (16e9, 8e9))
    monkeypatch.setattr(machine_load, "ROOMY_CPU", 2.0)


@pytest.mark.thorough
@BOTH_CONNECTIONS
async def test_a_page_is_idle_until_it_is_extracted_if_nothing_may_happen_in_it(
    browsing: Making, pages: Pages, direct: bool, subtests: pytest.Subtests
) -> None:
    pages["/data"] = "data"
    pages["/held"] = Answer(b"data: x\n\n", 200, "text/event-stream", spread_s=60.0)
    pages["/never"] = Answer(b"", 200, "text/html", delay_s=60.0)
    pages["/inner"] = "<p>inner</p><script>setInterval(() => 0, 60_000)</script>"
    idle = {
        "written": written(),
        "whole": WHOLE,
        "a distant timer": written("setTimeout(() => 0, 600_000)"),
        "computes in short steps": STEPS,
    }
    others = {
        # Of these connections a browser has six for a host.
        "held open": written("new EventSource('/held')"),
        "leaves": "<p>leaves</p><script>location = '/never'</script>",
        "nothing shown yet": "<div id=root></div><script>setTimeout(() => 0, 5_000)</script>",
        "a timer": written("setTimeout(() => 0, 1000)"),
        "an interval": written("setInterval(() => 0, 60_000)"),
        "an interval in a frame": written() + "<iframe src=/inner></iframe>",
    }
    pages.answers |= {
        f"/{number}": page for number, page in enumerate([*idle.values(), *others.values()])
    }
    reported: dict[str, list[IdleState]] = {name: [] for name in (*idle, *others)}
    async with browsing(pages.url, direct=direct, pages=TABS) as made:

        async def take(number: int, name: str) -> None:
            limit_ms = 12_000 if name in ("held open", "leaves") else PATIENT.timeout_ms
            url = f"{pages.url}/{number}"
            with suppress(PageError):
                await made.fetcher.fetch(
                    url, PageOptions(timeout_ms=limit_ms), reported[name].append
                )

        for number, name in enumerate(idle):  # alone, since others would leave it no idle moment
            await take(number, name)
        await asyncio.gather(*(take(number, name) for number, name in enumerate(others, len(idle))))
    for number, (name, states) in enumerate(reported.items()):
        with subtests.test(name=name):
            assert pages.hits[f"/{number}"] == 1
            assert states == (["idle", "over"] if name in idle else [])


# What runs in a page by itself, and no timer shows it.
GOES_ON = {
    "asks": "fetch('/slow').then(a => a.text()).then(t => root.append(t))",
    "changes": "const turn = () => { root.title = `${performance.now()}`;"
    " if (performance.now() < until) requestAnimationFrame(turn);"
    " else root.append('more words'); }; const until = performance.now() + 600; turn()",
    "leaves": "location.href = '/next'",
}


@BOTH_CONNECTIONS
@pytest.mark.parametrize("how", GOES_ON)
async def test_a_page_that_goes_on_is_not_idle_any_more(
    browsing: Making, pages: Pages, stable_for: Any, direct: bool, how: str
) -> None:
    stable_for(3_000)
    pages["/slow"] = Answer(b"more words", 200, "text/plain", delay_s=0.5)
    pages["/next"] = written("addEventListener('load', () => root.append(' more words'))")
    pages["/"] = written()
    reported: list[IdleState] = []
    async with browsing(pages.url, direct=direct) as made:
        fetching = asyncio.create_task(made.fetcher.fetch(pages.url, PATIENT, reported.append))
        await until(lambda: reported)
        (page,) = made.fetcher.pages
        if direct:
            script = f"(() => {{ {GOES_ON[how]} }})()"
            await page.session.send("Runtime.evaluate", {"expression": script})
        else:
            await page.evaluate(f"() => {{ {GOES_ON[how]} }}")
        found = await fetching
    assert "more words" in found.text
    assert reported[:2] == ["idle", "again"]
    # Another document is judged by itself.
    assert reported[2:] == (["idle", "over"] if how == "leaves" else [])


async def test_a_page_that_loads_more_is_not_idle(browsing: Making, pages: Pages) -> None:
    pages["/"] = written()
    reported: list[IdleState] = []
    async with browsing(pages.url, direct=True) as made:
        options = PageOptions(timeout_ms=100_000, scroll=True)
        await made.fetcher.fetch(pages.url, options, reported.append)
    assert reported == []


@BOTH_CONNECTIONS
async def test_a_page_that_is_given_up_is_over(
    browsing: Making, pages: Pages, stable_for: Any, direct: bool
) -> None:
    stable_for(60_000)
    pages["/"] = written()
    reported: list[IdleState] = []
    async with browsing(pages.url, direct=direct) as made:
        fetching = asyncio.create_task(made.fetcher.fetch(pages.url, PATIENT, reported.append))
        await until(lambda: reported)
        fetching.cancel()
        await asyncio.gather(fetching, return_exceptions=True)
        assert reported == ["idle", "over"]


@pytest.mark.thorough("playwright-2-12")
@pytest.mark.own_browser
@pytest.mark.usefixtures("roomy")
@pytest.mark.parametrize(
    ("connection", "given", "most"),
    [("direct", 2, 12), ("playwright", 2, 12), ("direct", 1, 1), ("direct", "auto", 3)],
)
async def test_others_load_meanwhile_within_a_limit_of_tabs(
    home: Path,
    stable_for: Any,
    monkeypatch: pytest.MonkeyPatch,
    connection: str,
    given: int | str,
    most: int,
) -> None:
    stable_for(120_000)
    asked: list[str] = []
    states: dict[IdleReport, IdleState] = {}
    record_state = IdleReport.record

    def noted(report: IdleReport, state: IdleState) -> None:
        states[report] = state
        record_state(report, state)

    monkeypatch.setattr(IdleReport, "record", noted)

    def answer(request: Request) -> Answer:
        if request.path.startswith("/whole"):
            return Answer(f"<!doctype html><title>t</title>{WHOLE}".encode())
        asked.append(request.path)
        return Answer(f"<!doctype html><title>t</title>{written()}".encode())

    async with opened(home) as engine:
        with served(answer) as url:
            # The first ones show that pages stay idle.
            whole = [f"{url}/whole/{one}" for one in range(20 if most > 3 else 0)]
            addresses = [*whole, *(f"{url}/{number}" for number in range(20))]
            options: dict[str, Any] = {"max_pages": 40}
            options |= {"delay_ms": 0, "respect_robots": False, "timeout_ms": 300_000}
            args = {"url": addresses[0], "urls": addresses, "concurrency": given, **options}
            record = await engine.requests.start("crawl", {**args, "connection": connection})
            await until(lambda: len(asked) >= most, 150)
            # A busy machine may leave one of them no idle moment; without a limit these suffice.
            await until(lambda: [*states.values()].count("idle") >= max(1, most - 1), 150)
            await asyncio.sleep(0.5)  # for a page that would be one too many
            await engine.commands.cancel(record.task_id)
            ended = await engine.tasks.wait(record.task_id, 60_000)
    assert ended.status == Status.CANCELLED
    assert len(asked) == len({*asked}) == most


# No timer shows that these pages go on.
LATE = """<!doctype html><title>t</title><div id=root></div><script>
const go = () => fetch('/data' + location.pathname).then(a => a.text()).then(t => root.append(t));
onload = () => { root.innerHTML = 'shell'; const from = performance.now() + 350;
  const turn = () => performance.now() < from ? requestAnimationFrame(turn) : go(); turn(); };
</script>"""


@pytest.mark.thorough
@pytest.mark.own_browser
@pytest.mark.usefixtures("roomy")
async def test_no_page_lacks_its_data_because_all_of_them_go_on_at_once(home: Path) -> None:
    late = [f"/late/{number}" for number in range(14)]
    # The first ones stay idle, so that the others load together before the first of them goes on.
    links = "".join(
        f"<a href={one}>page</a>" for one in (*map("/whole/{}".format, range(20)), *late)
    )

    def answer(request: Request) -> Answer:
        if request.path.startswith("/data"):
            return Answer(b"its data", 200, "text/plain", delay_s=5.5)
        page = LATE if request.path in late else WHOLE
        return Answer(f"<!doctype html>{links}{page}".encode() if page == WHOLE else page.encode())

    async with opened(home) as engine:
        with served(answer) as url:
            args = {"url": f"{url}/", "delay_ms": 0, "concurrency": 4, "max_pages": 35}
            record = await engine.requests.start("crawl", {**args, "respect_robots": False})
            ended = await engine.tasks.wait(record.task_id, 180_000)
            pages = list(LedgerReader(engine.settings.root).read_pages(record.task_id))
    assert ended.status == Status.COMPLETED
    assert len(pages) == 35
    assert sorted(one["url"] for one in pages if "its data" in one["content"]) == sorted(
        f"{url}{one}" for one in late
    )


def stay_idle(number: Concurrency, pages: int) -> None:
    for _ in range(pages):
        number.count_idle("idle")
        number.count_idle("over")


@pytest.mark.usefixtures("roomy")
def test_the_number_of_tabs_is_limited_and_one_page_stays_alone() -> None:
    assert [most_tabs(one) for one in (1, 2, 3, 4)] == [1, 12, 18, MOST_TABS]
    assert most_tabs(5) == most_tabs(8) == MOST_TABS
    assert [most_tabs(one) for one in (10, 15, 16, "auto")] == [22, 17, MOST, MOST]
    for given in (1, 2, 4, 12, MOST):
        number = Concurrency(MemoryContext(), given)
        assert number.counts_idle == (1 < given < MOST)
        stay_idle(number, 100)
        assert number.number == given
        for idle in range(1, 40):
            number.count_idle("idle")
            assert number.number == min(given + idle, most_tabs(given))
        for _ in range(39):
            number.count_idle("over")
        assert number.number == number.at_once == given


@pytest.mark.usefixtures("roomy")
async def test_an_automatic_number_is_that_of_pages_which_are_not_idle() -> None:
    number = Concurrency(MemoryContext(), "auto")
    assert number.counts_idle
    assert (number.number, number.at_once) == (START, START)
    assert first(number) == START * FIRST_A_PAGE + 1
    stay_idle(number, 100)
    for _ in range(40):
        number.count_idle("idle")
    assert (number.number, number.at_once) == (min(TABS_A_PAGE * START, MOST), START)


@pytest.mark.usefixtures("roomy")
async def test_a_refusal_makes_an_automatic_number_that_of_all_tabs() -> None:
    ctx = MemoryContext()
    number = Concurrency(ctx, "auto")
    await number.begin()
    stay_idle(number, 100)
    for _ in range(9):
        number.count_idle("idle")
    number.workers = number.number
    assert (number.number, number.at_once) == (START + 9, START)
    with number.loading() as load:
        load.fetched = Fetched(url="https://a.example/", final_url="", status=429)
    assert (number.number, number.at_once) == ((START + 9) // 2, (START + 9) // 2)
    await number.adapt()
    *_, told = ctx.notes[-1]
    assert (told["reason"], told["before"]) == ("refused", START + 9)
    stay_idle(number, 100)
    assert number.number == number.at_once, "the idle ones count"


@pytest.mark.usefixtures("roomy")
async def test_pages_that_were_open_before_a_refusal_show_nothing() -> None:
    number = Concurrency(MemoryContext(), 4)
    stay_idle(number, 100)
    for _ in range(20):
        number.count_idle("idle")
    with number.loading() as load:
        load.fetched = Fetched(url="https://a.example/", final_url="", status=429)
    for _ in range(20):
        number.count_idle("over")
    stay_idle(number, STAY_IDLE - 1)
    number.count_idle("idle")
    assert number.number == 4
    number.count_idle("over")
    stay_idle(number, 1)
    number.count_idle("idle")
    assert number.number == 5


def first(number: Concurrency) -> int:
    """Return how many pages must stay idle before a further one loads."""
    for pages in range(100):
        number.count_idle("idle")
        found = number.number
        number.count_idle("over")
        if found > 3:
            assert found == 4, "one further page for each that stayed idle"
            return pages
    raise AssertionError


@pytest.mark.usefixtures("roomy")
async def test_further_pages_load_only_after_pages_that_stayed_idle() -> None:
    number = Concurrency(MemoryContext(), 3)
    assert first(number) == 3 * FIRST_A_PAGE + 1
    for _ in range(2):  # the second page begins the count anew
        stay_idle(number, 15)
        number.count_idle("idle")
        number.count_idle("again")
    assert first(number) == STAY_IDLE + 1
    with number.loading() as load:
        load.fetched = Fetched(url="https://a.example/", final_url="", status=429)
    assert first(number) == STAY_IDLE + 1


def test_memory_and_processors_limit_further_tabs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_load, "ROOM_S", 0.0)
    spent = [0.0, 0.0]
    monkeypatch.setattr(machine_load, "_system_s", lambda _: tuple(spent))
    monkeypatch.setattr(machine_load, "_memory", lambda: (8e9, 8e9))
    number = Concurrency(MemoryContext(), 2)
    stay_idle(number, 20)
    for free_bytes, busy_s, workers, wanted in (
        *((1.05e9, 0.5, 2, 3), (0.3e9, 0.5, 2, 2), (1.05e9, 0.89, 2, 4)),
        *((8e9, 0.89, 2, 6), (8e9, 0.91, 2, 2), (8e9, 0.89, 2, 8)),
        # Little by little, as the next look may find room.
        *((8e9, 0.91, 8, 6), (8e9, 1.0, 6, 4), (8e9, 1.0, 4, 3), (8e9, 0.89, 3, 12)),
        *((0.3e9, 1.0, 8, 3), (8e9, 0.89, 3, 12)),
    ):
        number.workers = workers
        spent[0] += 1.0
        spent[1] += busy_s
        monkeypatch.setattr(machine_load, "_memory", lambda free=free_bytes: (8e9, free))
        number.count_idle("idle")
        assert number.number == wanted


def test_nothing_is_learnt_from_pages_that_had_to_wait_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = [1_000.0]
    monkeypatch.setattr("engine.browser.page.crawl_tab.time.monotonic", lambda: now_s[0])
    held = HeldOpen()
    for at_s, known in (
        (0, []),
        (59, []),
        (60, ["one"]),
        (599, ["one", "two"]),
        (600, ["one", "two"]),
    ):
        now_s[0] = 1_000.0 + at_s
        held.expect_crowd()
        for _ in range(2):
            held.note([{60: "one", 599: "two"}.get(at_s, "other")])
        assert held.known == known
