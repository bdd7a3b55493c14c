"""An embedded cluster, with Dask's real scheduler and workers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.browser.chromium.browser_session import BrowserSession
from engine.cluster import cluster_connection
from engine.kinds.registry import KINDS
from engine.kinds.spec import Tools
from engine.model.config import Settings
from engine.model.records import Units
from fixtures.site.site import Site
from tests.support.engines import until
from tests.support.memory_context import MemoryContext

ROOT = Path(__file__).resolve().parents[2]
PAGES = 80
START_S = 150.0  # a crowded machine needs long to load Dask in three processes
pytestmark = pytest.mark.timeout(600)  # which start one after the other, and once more


@pytest.fixture(autouse=True)
def this_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the processes of the cluster run this program, and start as long as they need."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(cluster_connection, "START_S", START_S)


def processes(role: str = "") -> list[psutil.Process]:
    """The processes of clusters below this one, or those of one role."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            words = process.cmdline()
        except psutil.Error:  # it has just ended
            continue
        if "_cluster" in words and (not role or role in words):
            found.append(process)
    return found


async def crawled(url: str, tmp_path: Path, context: MemoryContext, **given: Any) -> None:
    kind, tools = KINDS["crawl"], Tools(Settings.at(home=tmp_path), BrowserSession())
    usual = {"engine": "static", "delay_ms": 0, "max_pages": PAGES, "max_depth": 100, "retries": 0}
    assert kind.parse_here is not None
    args = kind.parse_here({"url": url, **usual, "cluster": "local:2", **given}, tools)
    try:
        await kind.body(args, context, tools)
    finally:
        await tools.browser.aclose()


def restarts(context: MemoryContext) -> list[str]:
    return [note for _, note, _ in context.notes if "has died; it is started again" in note]


class UntilRestarted(MemoryContext):
    """It has its last page only after the event that a process is started again."""

    async def page(self, page: dict[str, Any], units: Units) -> None:
        if len(self.pages) == PAGES - 1:
            await until(lambda: restarts(self))
        await super().page(page, units)


async def test_killed_workers_and_a_killed_scheduler_lose_no_page(tmp_path: Path) -> None:
    killed: list[int] = []

    def on_page(page: dict[str, Any], _: object) -> None:
        role = {10: "worker", 30: "scheduler"}.get(len(context.pages))
        if role is not None:
            process = processes(role)[0]
            killed.append(process.pid)
            process.kill()

    context = UntilRestarted(on_page=on_page)
    with Site(pages=PAGES) as site:
        await crawled(site.url, tmp_path, context, delay_ms=30)
    urls = [page["url"] for page in context.pages]
    assert len(killed) == 2
    assert len(urls) == len(set(urls)) == PAGES
    assert not [page for page in context.pages if "error" in page]
    assert {page["worker"] for page in context.pages} <= {"local-1", "local-2"}
    assert restarts(context)
    assert not processes()


async def test_a_stop_ends_every_process(tmp_path: Path) -> None:
    context = MemoryContext()
    with Site(pages=10_000) as site:
        running = asyncio.create_task(
            crawled(site.url, tmp_path, context, max_pages=10_000, delay_ms=20)
        )
        await until(lambda: len(context.pages) > 3, 3 * START_S)
        assert len(processes()) == 3
        told = [" ".join(one.cmdline()) + str(one.environ()) for one in processes()]
        context.stop()
        await running
    assert not processes()
    assert not [text for text in told if "PRIVATE KEY" in text]


async def test_nobody_without_the_certificate_can_use_it(tmp_path: Path) -> None:
    context = MemoryContext()
    with Site(pages=10_000) as site:
        running = asyncio.create_task(
            crawled(site.url, tmp_path, context, max_pages=10_000, delay_ms=20)
        )
        await until(lambda: context.pages, 3 * START_S)
        ports = [
            one.laddr
            for process in processes()
            for one in process.net_connections()
            if one.status == psutil.CONN_LISTEN
        ]
        answers = await asyncio.gather(*(asked(place.port) for place in ports))
        context.stop()
        await running
    assert {place.ip for place in ports} == {"127.0.0.1"}
    assert not [answer for answer in answers if b"identity" in answer or b"workers" in answer]


async def asked(port: int) -> bytes:
    """What a server says to somebody who speaks Dask without TLS, and then HTTP."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET /info/main/workers.html HTTP/1.0\r\n\r\n")
        async with asyncio.timeout(60):
            return await reader.read(10_000)
    except OSError:
        return b""
    finally:
        writer.transport.abort()
