"""A small site whose pages can do things to the browser, and crawls of it without a ledger."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.browser.chromium.browser_options import DEFAULT, Limits
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.page.crawl_tab import Tab
from engine.kinds.registry import KINDS
from engine.kinds.spec import Tools
from engine.model.config import Settings
from engine.pages.fetch import Fetched, PageOptions
from engine.sample.site import Answer, Request, Server
from tests.support.far_limits import FAR_S, be_patient
from tests.support.memory_context import MemoryContext
from tests.support.serving import running

Kept = dict[str, dict[str, Any]]


class Place:
    """path -> HTML; what stands in `acts` is called first, and may answer in the page's stead."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.pages: dict[str, str] = {}
        self.acts: dict[str, Callable[[], object]] = {}
        self.hits: Counter[str] = Counter()
        self.server = Server(self._answer, host, 0)

    @property
    def url(self) -> str:
        return f"http://{self.server.host}:{self.server.port}"

    def links(self, *paths: str) -> str:
        return " ".join(f'<a href="{path}">{path}</a>' for path in paths)

    def _answer(self, request: Request) -> Answer:
        self.hits[request.path] += 1
        instead = self.acts.get(request.path, lambda: None)()
        if isinstance(instead, Answer):
            return instead
        html = self.pages.get(request.path)
        if html is None:
            return Answer(b"", 404)
        return Answer(f"<!doctype html><title>t</title><body>{html}</body>".encode())


@pytest.fixture
def place() -> Iterator[Place]:
    with running(Place()) as made:
        yield made


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """For whom nothing hangs: see `tests.support.far_limits`."""
    be_patient(monkeypatch)
    # What a renderer's end is told of as; and a tab of a dead page needs its time to close.
    for limit in ("engine.browser.chromium.launch.TOLD_S", "engine.browser.page.crawl_tab.CLOSE_S"):
        monkeypatch.setattr(limit, FAR_S)


Running = Callable[..., AbstractAsyncContextManager[BrowserSession]]


@pytest.fixture
def browser() -> Running:
    """`async with browser(limits) as session:` on real Chromium."""

    @asynccontextmanager
    async def make(limits: Limits = DEFAULT) -> AsyncIterator[BrowserSession]:
        session = BrowserSession(os.environ.get("OC_BROWSER"), limits)
        try:
            yield session
        finally:
            await session.aclose()

    return make


async def crawled(session: BrowserSession, home: Path, url: str, **args: Any) -> Kept:
    """Every page that a crawl kept, by its path; each stands there once."""
    kind, context = KINDS["crawl"], MemoryContext()
    asked = {"url": url, "delay_ms": 0, "respect_robots": False, "concurrency": 1, **args}
    settings = Settings(home=home, root=home / "tasks")
    await kind.body(kind.parse(asked), context, Tools(settings, session))
    kept = {page["url"].removeprefix(url.rstrip("/")): page for page in context.pages}
    assert len(kept) == len(context.pages), "a page stands there twice"
    return kept


def limit_page(
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    arrivals: Callable[[], int] | None = None,
    limit_s: float = 5.0,
) -> None:
    """End the page at `path` as its limit does, `limit_s` after its document has begun to arrive.

    Where it never does: after another one of the `arrivals` at its server. The other pages have the
    limit of their crawl: however slow the machine is, none reaches it.
    """
    take = Tab.take

    async def take_in_time(tab: Tab, url: str, options: PageOptions) -> Fetched:
        if not url.endswith(path):
            return await take(tab, url, options)
        before = arrivals() if arrivals is not None else 0
        ending = asyncio.create_task(end_in_time(tab, before), name="the limit of a page")
        try:
            return await take(tab, url, options)
        finally:
            ending.cancel()

    async def end_in_time(tab: Tab, before: int) -> None:
        while not (tab.begun if arrivals is None else arrivals() > before):
            await asyncio.sleep(0.02)
        await asyncio.sleep(limit_s)
        tab._end()

    monkeypatch.setattr(Tab, "take", take_in_time)


def limit_settling(
    monkeypatch: pytest.MonkeyPatch, path: str, begun: Callable[[], object], limit_s: float = 3.0
) -> None:
    """Wait for the page at `path` to come to rest for `limit_s` after `begun` holds, no longer.

    How long the browser takes to answer what has come by then is not limited by that.
    """
    extract = Tab._extract

    async def extract_in_time(
        tab: Tab, deadline: float, options: PageOptions, **more: bool
    ) -> object:
        if tab.url.endswith(path):
            while not begun():
                await asyncio.sleep(0.02)
            deadline = asyncio.get_running_loop().time() + limit_s
        return await extract(tab, deadline, options, **more)

    monkeypatch.setattr(Tab, "_extract", extract_in_time)


def processes(sign: str, without: str = "\0") -> list[psutil.Process]:
    """Those below this one with `sign` in their command line."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            line = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if sign in line and without not in line:
            found.append(process)
    return found


def renderers() -> list[psutil.Process]:
    return processes("--type=renderer")


def browsers() -> list[psutil.Process]:
    """The first process of each browser, without a fork of it that has no words of its own yet."""
    found = processes("--user-data-dir=", "--type=")
    known = {one.pid for one in found}
    return [one for one in found if _parent(one) not in known]


def _parent(process: psutil.Process) -> int:
    """The process that made it; 0 of one that has ended."""
    try:
        return process.ppid()
    except psutil.Error:
        return 0


def until(condition: Callable[[], object], limit_s: float = 60.0) -> bool:
    """Wait (for a thread or another process) until it holds; False when it never did."""
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)  # no event to wait for: another process changes it
    return True
