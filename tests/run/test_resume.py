"""A stopped crawl goes on as a new task: what was loaded is kept, and nothing else is lost."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.ledger.reader import LedgerReader
from engine.model.records import Status, TaskRecord
from engine.sample.site import Answer
from engine.service.admission import Terms
from engine.service.engine import Engine
from engine.service.rerun import NotEnded, RequestHidden
from engine.service.resuming import CannotResume, NothingToResume, ResumedAlready, ResumeFate
from tests.support.engines import opened, until
from tests.support.linked_site import LinkedSite, random_links

ARGS = {"engine": "static", "delay_ms": 0, "respect_robots": False, "max_depth": 50}
ARGS |= {"max_pages": 1_000, "retries": 0, "concurrency": 3}
ARGS |= {"timeout_ms": 600_000}  # the page that never answers is no failed one


@pytest.fixture
def linked() -> Iterator[LinkedSite]:
    """Forty pages, the twentieth of which never answers."""
    site = LinkedSite(random_links(40, seed=3))
    site.held = {20}
    with site.running():
        yield site


def pages_of(engine: Engine, record: TaskRecord) -> dict[str, dict[str, Any]]:
    """The stored pages by path; each is there once."""
    pages = list(LedgerReader(engine.settings.root).read_pages(record.task_id))
    found = {"/" + page["url"].split("/", 3)[3]: page for page in pages}
    assert len(found) == len(pages)
    return found


async def ended(engine: Engine, record: TaskRecord) -> TaskRecord:
    return await engine.tasks.wait(record.task_id, 100_000)


async def stopped(
    engine: Engine, site: LinkedSite, terms: Terms | None = None, done: int = 5, **args: Any
) -> TaskRecord:
    """A crawl that was cancelled while a page hung, and when this many were `done`."""
    asked = {"url": f"{site.url}/0", **ARGS, **args}
    record = await engine.requests.start("crawl", asked, terms=terms or Terms())
    ledger = LedgerReader(engine.settings.root)

    def is_there() -> bool:
        units = ledger.tail_units(record.task_id, 0)[0]
        return units is not None and units.done >= done and site.requests["/20"] > 0

    await until(is_there)
    await engine.commands.cancel(record.task_id)
    record = await ended(engine, record)
    await asyncio.to_thread(all_counted, site)
    return record


def all_counted(site: LinkedSite) -> None:
    """Wait until the site has counted all requests that a crawl sent before its end.

    Its server takes them in the order in which they came, and this one is the last.
    """
    connection = http.client.HTTPConnection(site.url.removeprefix("http://"), timeout=100)
    try:
        connection.request("GET", "/last")
        connection.getresponse().read()
    finally:
        connection.close()


async def test_every_page_is_there_once_and_only_the_missing_ones_are_loaded(
    home: Path, linked: LinkedSite
) -> None:
    async with opened(home) as engine:
        first = await stopped(engine, linked)
        assert first.status == Status.CANCELLED
        before = pages_of(engine, first)
        assert 0 < len(before) < 40
        linked.held.clear()
        linked.requests.clear()
        second = await ended(engine, await engine.requests.resume(first.task_id))
        assert second.status == Status.COMPLETED
        after = pages_of(engine, second)
        assert set(after) == {f"/{number}" for number in range(40)}
        assert {path: after[path] for path in before} == before
        assert set(linked.requests) == set(after) - set(before)
        assert set(linked.requests.values()) == {1}
        assert second.engine is not None
        assert second.engine.resumes
        assert second.engine.parent_task_id == first.task_id
        # The same depths as a crawl that nothing stopped.
        whole = await ended(engine, await engine.requests.rerun(first.task_id))
        depths = {path: page["depth"] for path, page in pages_of(engine, whole).items()}
        assert {path: page["depth"] for path, page in after.items()} == depths
        result = json.loads((home / "tasks" / second.task_id / "result.json").read_text())
        assert result["summary"]["total_pages"] == len(result["pages"]) == 40
        assert result["summary"]["stopped_by"] == "frontier"


async def test_the_first_progress_counts_the_kept_pages(home: Path, linked: LinkedSite) -> None:
    async with opened(home) as engine:
        first = await stopped(engine, linked)
        kept = len(pages_of(engine, first))
        linked.held.clear()
        second = await ended(engine, await engine.requests.resume(first.task_id))
        events = (await engine.tasks.events(second.task_id, 0)).events
        counts = [(event.data or {}).get("unitsDone") for event in events if event.data]
        told = [count for count in counts if count]
        assert told[0] == kept
        carried = [(event.data or {}).get("unitsCarried") for event in events if event.data]
        assert set(filter(None, carried)) == {kept}
        assert second.engine is not None
        assert second.engine.units is not None
        assert (second.engine.units.done, second.engine.units.carried) == (40, kept)
        assert told == sorted(told)
        (note,) = (event for event in events if (event.data or {}).get("phase") == "resumed")
        assert note.data is not None
        assert (note.data["kept"], note.data["again"]) == (kept, 0)


async def test_lasting_answers_are_kept_and_temporary_errors_are_loaded_again(
    home: Path, linked: LinkedSite
) -> None:
    linked.statuses = {1: 404, 2: 503, 3: 410}
    linked.links = {0: [1, 2, 3, 20], **{number: [] for number in (1, 2, 3)}, 20: []}
    async with opened(home) as engine:
        first = await stopped(engine, linked, done=4)
        assert {path for path, page in pages_of(engine, first).items() if "error" in page} == {
            *("/1", "/2", "/3")
        }
        linked.held.clear()
        linked.statuses = {}
        linked.requests.clear()
        second = await ended(engine, await engine.requests.resume(first.task_id))
        assert set(linked.requests) == {"/2", "/20"}
        failed = {path: page.get("error") for path, page in pages_of(engine, second).items()}
        assert failed == {"/0": None, "/1": "HTTP 404", "/2": None, "/3": "HTTP 410", "/20": None}


async def test_a_page_whose_links_are_not_stored_whole_is_loaded_again(
    home: Path, linked: LinkedSite
) -> None:
    linked.extra[0] = '<a href="/0?access_token=Zq81kkTTw92hx7Lm">signed</a>'
    async with opened(home) as engine:
        first = await stopped(engine, linked)
        pages = pages_of(engine, first)
        assert "Zq81" not in json.dumps(pages)
        linked.held.clear()
        linked.requests.clear()
        second = await ended(engine, await engine.requests.resume(first.task_id))
        assert linked.requests["/0"] == 2  # the page, and the one behind its token
        assert len(list(LedgerReader(engine.settings.root).read_pages(second.task_id))) == 41


async def test_pages_without_stored_links_are_loaded_again_for_their_links(
    home: Path, linked: LinkedSite
) -> None:
    async with opened(home) as engine:
        first = await stopped(engine, linked, keep_links=False)
        linked.held.clear()
        second = await ended(engine, await engine.requests.resume(first.task_id))
        assert set(pages_of(engine, second)) == {f"/{number}" for number in range(40)}


async def test_a_task_is_resumed_once_and_then_its_successor(
    home: Path, linked: LinkedSite
) -> None:
    async with opened(home) as engine:
        first = await stopped(engine, linked)
        second = await engine.requests.resume(first.task_id)
        await until(lambda: linked.requests["/20"] == 2)
        with pytest.raises(NotEnded):
            await engine.requests.resume(second.task_id)
        with pytest.raises(ResumedAlready, match=second.task_id):
            await engine.requests.resume(first.task_id)
        await engine.commands.cancel(second.task_id)
        second = await ended(engine, second)
        assert second.status == Status.CANCELLED
        linked.held.clear()
        third = await ended(engine, await engine.requests.resume(second.task_id))
        assert third.status == Status.COMPLETED
        assert set(pages_of(engine, third)) == {f"/{number}" for number in range(40)}
        plan = await engine.requests.resume_plan((), "kind:crawl")
        assert [view.task_id for view in plan.of(ResumeFate.WHOLE)] == [third.task_id]
        assert plan.ids == ()


async def test_a_resumed_task_that_kept_nothing_yet_passes_on_the_pages_of_the_first(
    home: Path, linked: LinkedSite
) -> None:
    async with opened(home, slots=1) as engine:
        first = await stopped(engine, linked)
        kept = pages_of(engine, first)
        linked.requests.clear()
        other = await engine.requests.start("crawl", {"url": f"{linked.url}/20", **ARGS})
        await until(lambda: linked.requests["/20"])
        second = await engine.requests.resume(first.task_id)
        await engine.commands.cancel(second.task_id)  # it waits for the only slot
        await engine.commands.cancel(other.task_id)
        second = await ended(engine, second)
        assert second.status == Status.CANCELLED
        assert pages_of(engine, second) == {}
        linked.held.clear()
        linked.requests.clear()
        third = await ended(engine, await engine.requests.resume(second.task_id))
        assert set(linked.requests).isdisjoint(kept)
        assert len(pages_of(engine, third)) == 40


async def test_a_crawl_at_its_limit_goes_on_with_a_higher_one(
    home: Path, linked: LinkedSite
) -> None:
    linked.held.clear()
    async with opened(home) as engine:
        asked = {"url": f"{linked.url}/0", **ARGS, "max_pages": 10}
        first = await ended(engine, await engine.requests.start("crawl", asked))
        assert first.status == Status.COMPLETED
        with pytest.raises(NothingToResume):
            await engine.requests.resume(first.task_id)
        linked.requests.clear()
        second = await ended(
            engine, await engine.requests.resume(first.task_id, changes={"max_pages": 25})
        )
        assert second.status == Status.COMPLETED
        assert len(pages_of(engine, second)) == 25
        assert sum(linked.requests.values()) == 15


async def test_a_contract_counts_the_kept_pages_and_a_budget_does_not(
    home: Path, linked: LinkedSite
) -> None:
    terms = Terms(
        policy={"maxToolCalls": 100}, contract={"expected_total": 40, "failed_policy": "block"}
    )
    async with opened(home) as engine:
        first = await stopped(engine, linked, terms)
        kept = len(pages_of(engine, first))
        linked.held.clear()
        second = await ended(engine, await engine.requests.resume(first.task_id))
        assert second.status == Status.COMPLETED
        assert second.engine is not None
        progress = engine.goals.contracts.get(str(second.engine.contract_id))
        assert progress.contract.completed_total == 40
        assert second.counters is not None
        assert second.counters["toolCalls"] == 40 - kept


async def test_pictures_of_kept_pages_come_along(home: Path, linked: LinkedSite) -> None:
    async with opened(home) as engine:
        first = await stopped(engine, linked)
        folder = home / "tasks" / first.task_id
        (folder / "artifacts").mkdir()
        (folder / "artifacts" / "page-000007.png").write_bytes(b"a picture")
        lines = (folder / "pages.jsonl").read_text().splitlines()
        page = {**json.loads(lines[0]), "screenshot": "artifacts/page-000007.png"}
        (folder / "pages.jsonl").write_text("\n".join([json.dumps(page), *lines[1:], ""]))
        linked.held.clear()
        second = await ended(engine, await engine.requests.resume(first.task_id))
        picture = home / "tasks" / second.task_id / "artifacts" / "page-000007.png"
        assert picture.read_bytes() == b"a picture"
        assert pages_of(engine, second)["/0"]["screenshot"] == "artifacts/page-000007.png"


@pytest.mark.parametrize("cut", ["loads_cut", "clicks_cut"])
async def test_the_summary_tells_of_kept_pages_what_it_told_before(
    home: Path, linked: LinkedSite, cut: str
) -> None:
    async with opened(home) as engine:
        first = await stopped(engine, linked)
        kept = pages_of(engine, first)
        lines = [json.dumps({**page, "worker": "rack-7", cut: True}) for page in kept.values()]
        written = home / "tasks" / first.task_id / "pages.jsonl"
        written.write_text("".join(line + "\n" for line in lines))
        linked.held.clear()
        second = await ended(engine, await engine.requests.resume(first.task_id))
        result = json.loads((home / "tasks" / second.task_id / "result.json").read_text())
    assert result["summary"]["workers"] == {"rack-7": len(kept)}
    assert result["summary"]["unloaded_pages"] == len(kept)


async def test_torn_and_strange_lines_are_not_kept(home: Path, linked: LinkedSite) -> None:
    async with opened(home) as engine:
        first = await stopped(engine, linked)
        file = home / "tasks" / first.task_id / "pages.jsonl"
        lines = file.read_bytes().splitlines(keepends=True)
        strange = b'{"url": 7}\n[1]\n{"url":"file:///etc/passwd","depth":0}\n\xff\n'
        file.write_bytes(strange + b"".join(lines[:-1]) + lines[-1][:50])
        linked.held.clear()
        second = await ended(engine, await engine.requests.resume(first.task_id))
        assert second.status == Status.COMPLETED
        assert set(pages_of(engine, second)) == {f"/{number}" for number in range(40)}


async def test_a_sitemap_is_read_again_and_only_its_missing_pages_are_loaded(
    home: Path, linked: LinkedSite
) -> None:
    listed = "".join(f"<url><loc>{linked.url}/{number}</loc></url>" for number in range(40))
    sitemap = Answer(f"<urlset>{listed}</urlset>".encode(), content_type="application/xml")
    linked.answers["/sitemap.xml"] = sitemap
    async with opened(home) as engine:
        asked = {"url": linked.url, **ARGS, "respect_robots": True}
        del asked["max_depth"]
        record = await engine.requests.start("crawl_sitemap", asked)
        ledger = LedgerReader(engine.settings.root)
        await until(lambda: (units := ledger.tail_units(record.task_id, 0)[0]) is not None
                    and units.done == 39)  # fmt: skip
        await engine.commands.cancel(record.task_id)
        first = await ended(engine, record)
        linked.held.clear()
        linked.requests.clear()
        second = await ended(engine, await engine.requests.resume(first.task_id))
        assert second.status == Status.COMPLETED
        assert len(pages_of(engine, second)) == 40
        loaded = {path for path in linked.requests if path[1:].isdigit()}
        assert loaded == {"/20"}


async def test_what_cannot_be_resumed_says_why(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        evidence = await engine.requests.start("browser_task", {}, terms=Terms(objective="x"))
        await engine.contracts.finish(evidence.task_id, "failed", note="no luck")
        with pytest.raises(CannotResume, match="only crawls"):
            await engine.requests.resume(evidence.task_id)
        secret = {"url": f"{site.url}/hang?token=Zq81kkTTw92hx7Lm", **ARGS}
        record = await engine.requests.start("crawl", secret)
        await engine.commands.cancel(record.task_id)
        record = await ended(engine, record)
        with pytest.raises(RequestHidden):
            await engine.requests.resume(record.task_id)
