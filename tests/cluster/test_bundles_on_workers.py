"""Evidence bundles that workers take: the same as here, and lost workers are replaced."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.page import bundle_parts
from engine.browser.page.bundle_parts import PARTS
from engine.cluster import cluster_pages, page_server, worker_pool
from engine.cluster.bundle_records import (
    BundleReply,
    BundleRequest,
    PartFailure,
    SentPage,
    TakenPart,
)
from engine.cluster.cluster_address import WorkerLost
from engine.cluster.page_records import BUNDLE, Failed, Terms, packed, unpacked
from engine.kinds.evidence_kind import EVIDENCE
from engine.kinds.spec import Tools
from engine.model.config import Settings
from engine.model.errors import TaskFailed
from engine.sample.site import Answer, Request
from tests.cluster.dask_peers import Answer as Manners
from tests.cluster.dask_peers import cluster, message
from tests.support.engines import until
from tests.support.far_limits import wait_for_answers
from tests.support.memory_context import MemoryContext
from tests.support.serving import served

PAGE = """<!doctype html><html><head><title>Shop</title></head><body><p id=a></p>
<script>a.textContent = "written by a script"; console.log("said", 1);
fetch("/part").then(() => 0); fetch("http://10.0.0.1/").catch(() => 0)</script></body></html>"""


def shop(asked: Request) -> Answer:
    return {"/": Answer(PAGE.encode()), "/part": Answer(b"part", content_type="text/plain")}.get(
        asked.path, Answer(b"", 404)
    )


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a crowded machine time, and look at workers more often than a program does."""
    wait_for_answers(monkeypatch)
    monkeypatch.setattr(page_server, "BUSY_S", 60.0)
    monkeypatch.setattr(page_server, "START_S", 120.0)
    monkeypatch.setattr(cluster_pages, "START_S", 120.0)
    monkeypatch.setattr(bundle_parts, "PART_S", PAGE_MS / 1_000)
    monkeypatch.setattr(worker_pool, "GREET_S", 60.0)
    monkeypatch.setattr(worker_pool, "LOOK_S", 0.05)
    monkeypatch.setattr(worker_pool, "AWAY_S", 0.2)
    monkeypatch.setattr(worker_pool, "WRONG_S", 600.0)


Take = Callable[..., Any]
PAGE_MS = 90_000  # for the page, and then for its parts
DOM = {"include": "dom"}


@asynccontextmanager
async def bundling(tmp_path: Path, **settings: Any) -> AsyncIterator[Take]:
    """`take(url, cluster)` gives the head of a bundle and its context."""
    browser = BrowserSession()
    tools = Tools(Settings(home=tmp_path, root=tmp_path / "tasks", **settings), browser)

    async def take(
        url: str, cluster: str | None, context: MemoryContext | None = None, **given: Any
    ) -> tuple[dict[str, Any], MemoryContext]:
        context = context or MemoryContext()
        assert EVIDENCE.parse_here is not None
        usual = {"include": list(PARTS), "network_window_ms": 1_000, "timeout_ms": PAGE_MS}
        args = EVIDENCE.parse_here({"url": url, "cluster": cluster, **usual, **given}, tools)
        return await EVIDENCE.body(args, context, tools), context

    try:
        yield take
    finally:
        await browser.aclose()


def notes(context: MemoryContext) -> list[str]:
    return [note for phase, note, _ in context.notes if phase == "cluster"]


def requests_of(context: MemoryContext) -> set[str]:
    return {one["url"] for one in json.loads(context.artifacts["network.json"])["entries"]}


def refusals(context: MemoryContext) -> list[str]:
    return [note for _, note, _ in context.notes if note.startswith("Refused 10.0.0.1:80")]


async def with_requests(take: Take, site: str, where: str) -> tuple[dict[str, Any], MemoryContext]:
    """A bundle with the first network window in which all requests of the page begin."""
    for window_ms in (1_000, 10_000, 60_000):
        found: tuple[dict[str, Any], MemoryContext]
        found = await take(f"{site}/", where, network_window_ms=window_ms)
        if {f"{site}/", f"{site}/part"} <= requests_of(found[1]) and refusals(found[1]):
            return found
    raise AssertionError(requests_of(found[1]))


async def test_a_bundle_is_the_same_on_a_worker_as_here(tmp_path: Path) -> None:
    async with cluster() as workers, bundling(tmp_path) as take:
        await workers.add("one")
        with served(shop) as site:
            there, on_worker = await with_requests(take, site, workers.address)
            here, local = await with_requests(take, site, "none")
    assert there.pop("worker") == "one"
    varying = ("captured_at", "size_bytes")
    assert {key: value for key, value in there.items() if key not in varying} == {
        key: value for key, value in here.items() if key not in varying
    }
    assert here["title"] == "Shop"
    for name in ("dom.html", "screenshot.png", "phash.json"):
        assert on_worker.artifacts[name] == local.artifacts[name]
    for far, near in zip(on_worker.pages, local.pages, strict=True):
        assert far.pop("worker") == "one"
        assert far.keys() == near.keys()
        if far["part"] in ("dom", "screenshot", "phash"):
            assert far == near
    for context in (on_worker, local):
        (line,) = map(json.loads, context.artifacts["console.jsonl"].splitlines()[:1])
        assert line["text"] == "said 1"
        assert refusals(context)


async def test_a_default_cluster_takes_bundles_too(tmp_path: Path) -> None:
    async with cluster() as workers:
        await workers.add("one")
        async with bundling(tmp_path, environ={"OC_CLUSTER": workers.address}) as take:
            with served(shop) as site:
                head, _ = await take(f"{site}/", None, include="dom")
                own, context = await take(f"{site}/", None, include="dom", headers=["A: b"])
    assert head["worker"] == "one"
    assert "worker" not in own
    assert notes(context) == [
        f"The pages load on this machine: the default cluster {workers.address} does not serve "
        "headers"
    ]


async def test_a_page_that_does_not_open_fails_as_it_does_here(tmp_path: Path) -> None:
    failed = []
    async with cluster() as workers, bundling(tmp_path) as take:
        await workers.add("one")
        for where in (workers.address, "none"):
            with pytest.raises(TaskFailed) as told:
                await take("http://127.0.0.1:9/", where, context := MemoryContext())
            errors = [page.get("error") for page in context.pages]
            failed.append((told.value.failure, str(told.value), errors))
    assert failed[0] == failed[1]
    assert failed[0][0] == "page_error"


async def test_a_worker_opens_no_page_outside_of_the_allowed_domains(tmp_path: Path) -> None:
    context = MemoryContext()
    context.budgets = {"allowedDomains": ["elsewhere.test"]}
    hits: list[str] = []

    def noted(asked: Request) -> Answer:
        hits.append(asked.path)
        return shop(asked)

    async with cluster() as workers, bundling(tmp_path) as take:
        await workers.add("one")
        with served(noted) as url, pytest.raises(TaskFailed, match="allowed domains"):
            await take(url, workers.address, context, **DOM)
    assert hits == []


async def hangs_up(_: dict[str, Any]) -> bytes | None:
    return None


async def lies(asked: dict[str, Any]) -> bytes | None:
    request = unpacked(asked["page"], BundleRequest, 2**20)
    parts = [TakenPart(one, failure=PartFailure("cancelled", "no")) for one in request.include]
    return message(packed(BundleReply(unopened=PartFailure("a", "b"), parts=parts)))


async def is_busy(_: dict[str, Any]) -> bytes | None:
    return message(packed(BundleReply(failed=Failed("busy"))))


@pytest.mark.parametrize("manners", [hangs_up, lies, is_busy])
async def test_another_worker_takes_the_bundle_of_one_that_does_not(
    tmp_path: Path, manners: Manners, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "AWAY_S", 600.0)
    monkeypatch.setattr(worker_pool, "BUSY_S", 600.0)
    monkeypatch.setattr(worker_pool, "MOST_BUSY_S", 600.0)
    async with cluster() as workers, bundling(tmp_path) as take:
        asked = asyncio.Event()

        async def once(given: dict[str, Any]) -> bytes | None:
            """Misbehave for the first request, whichever worker gets it."""
            if not asked.is_set():
                asked.set()
                return await manners(given)
            return bundle_of(given, "Shop")

        one = await workers.add("one", **{BUNDLE: once})
        two = await workers.add("two", **{BUNDLE: once})
        with pytest.raises(TaskFailed, match="slow") as told:
            await take("http://127.0.0.1:9/", workers.address, include="dom")
        assert told.value.failure == "tool_timeout"
        assert (one.calls.count(BUNDLE), two.calls.count(BUNDLE)) == (1, 1)


def bundle_of(asked: dict[str, Any], title: str) -> bytes:
    """The reply of a worker whose page has this title, and no document."""
    request = unpacked(asked["page"], BundleRequest, 2**20)
    part = TakenPart("dom", failure=PartFailure("tool_timeout", "slow\u202e"))
    opened = SentPage(request.url, title, 200, True)
    return message(packed(BundleReply(opened=opened, parts=[part])))


async def test_texts_of_a_worker_are_shown_as_those_of_a_page(tmp_path: Path) -> None:
    async def odd(asked: dict[str, Any]) -> bytes | None:
        return bundle_of(asked, "a\ud800\u202e\x1b[31m\nb")

    async with cluster() as workers, bundling(tmp_path) as take:
        await workers.add("one", **{BUNDLE: odd})
        with pytest.raises(TaskFailed) as told:
            await take("http://127.0.0.1:9/", workers.address, context := MemoryContext(), **DOM)
    assert told.value.head is not None
    assert told.value.head["title"] == "a\ufffd\ufffd\ufffd[31m b"
    assert context.pages[0]["error"] == "slow\ufffd"


async def test_a_busy_worker_is_not_told_as_one_that_takes_the_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "BUSY_S", 0.01)
    asked_again = 0

    async def is_busy_at_first(asked: dict[str, Any]) -> bytes | None:
        nonlocal asked_again
        asked_again += 1
        return await is_busy(asked) if asked_again < 4 else bundle_of(asked, "Shop")

    async with cluster() as workers, bundling(tmp_path) as take:
        await workers.add("one", **{BUNDLE: is_busy_at_first})
        context = MemoryContext()
        with pytest.raises(TaskFailed, match="slow"):
            await take("http://127.0.0.1:9/", workers.address, context, **DOM)
    said = [units.message for units in context.progress if units.message]
    assert said.count("A worker takes the bundle") == 1
    assert asked_again == 4


async def test_a_bundle_whose_workers_are_lost_three_times_fails(tmp_path: Path) -> None:
    async with cluster() as workers, bundling(tmp_path) as take:
        peer = await workers.add("one", **{BUNDLE: hangs_up})
        with pytest.raises(WorkerLost, match="the worker one was lost"):
            await take("http://127.0.0.1:9/", workers.address)
        assert peer.calls.count(BUNDLE) == 3


async def test_a_stop_ends_the_wait_for_a_bundle(tmp_path: Path) -> None:
    never = asyncio.Event()

    async def silent(_: dict[str, Any]) -> bytes | None:
        await never.wait()
        return None

    async with cluster() as workers, bundling(tmp_path) as take:
        peer = await workers.add("one", **{BUNDLE: silent})
        context = MemoryContext()
        running = asyncio.create_task(take("http://127.0.0.1:9/", workers.address, context))
        await until(lambda: BUNDLE in peer.calls)
        context.stop()
        head, _ = await running
    assert head["size_bytes"] == 0
    assert not context.pages


async def test_a_part_that_no_cluster_carries_is_missing_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_server, "MOST_PART_BYTES", 150)
    async with cluster() as workers, bundling(tmp_path) as take:
        await workers.add("one")
        with served(shop) as site:
            _, context = await take(f"{site}/", workers.address, include="dom,phash")
    dom, phash = context.pages
    assert dom["error"] == "The part is larger than the 8 MiB that a cluster carries."
    assert (phash["part"], phash.get("error")) == ("phash", None)


async def test_a_worker_that_ends_takes_no_bundle() -> None:
    server = page_server.PageServer("w", 1)
    async with server.running():
        pass
    terms = Terms("http://127.0.0.1:9/")
    request = BundleRequest(terms, terms.start, ("dom",), 1_000, None, 0, True, True)
    found = unpacked(await server.bundle(packed(request)), BundleReply, 2**20)
    assert found.failed is not None
    assert found.failed.what == "busy"
