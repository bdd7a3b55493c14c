"""A browser for one test, a private canary server, and pages made of a few words."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import psutil
import pytest

from engine.browser import direct
from engine.browser.chromium.browser_options import FetcherOptions
from engine.browser.chromium.browser_session import BrowserSession
from engine.egress.egress_policy import Policy
from engine.model.errors import PageError
from engine.pages.fetch import Fetched, Fetcher, PageOptions
from engine.sample.site import Answer, Request, Server
from tests.support.at_once import ended
from tests.support.far_limits import be_patient
from tests.support.serving import running

Making = Callable[..., AbstractAsyncContextManager["Made"]]
# For what is taken at its limit: a machine that does not come that far gets the next one.
LIMITS_MS = (3_000, 12_000, 50_000)
Name = TypeVar("Name")
TABS = 4  # for pages that wait at once; a place has six connections


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)


def command(process: psutil.Process) -> list[str]:
    """Its command line; nothing of one that has just ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


class Made:
    """What a browser test works with; `fetch` takes a path of the site or a whole address."""

    def __init__(self, session: BrowserSession, fetcher: Fetcher, start: str) -> None:
        self.session = session
        self.fetcher: Any = fetcher
        self.start = start

    async def taken(
        self, cases: Mapping[Name, str], pages: Pages, options: PageOptions, shared: str = "/slow"
    ) -> dict[Name, asyncio.Task[Fetched]]:
        """Take the page of each case, as many at once as there are tabs; see `at_once.ended`.

        Args:
            shared: what pages ask for. Each gets a query of its own: for one address the browser
                asks one page after the other.
        """
        for number, page in enumerate(cases.values()):
            pages[f"/case/{number}"] = page.replace(shared, f"{shared}?{number}")
        urls = [f"{pages.url}/case/{number}" for number in range(len(cases))]
        fetched = [self.fetcher.fetch(url, options) for url in urls]
        return await ended(dict(zip(cases, fetched, strict=True)))

    async def at_its_limit(self, url: str, holds: str = "", **asked: Any) -> Fetched:
        """The page as it is at its limit, with the first that was long enough to open it.

        Args:
            holds: markup that stands in a page that was opened so far.
        """
        for limit_ms in LIMITS_MS:
            try:
                page = await self.fetcher.fetch(url, PageOptions(timeout_ms=limit_ms, **asked))
                if holds in page.html:
                    return page
            except PageError as late:
                if late.kind != "timeout" or limit_ms == LIMITS_MS[-1]:
                    raise
        raise AssertionError(f"{holds} did not come")


@pytest.fixture
def through_playwright(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warming starts the browser through Playwright's driver, as where there is no pipe."""
    monkeypatch.setattr(direct, "AVAILABLE", False)


@pytest.fixture
def browsing(kept_browser: type[BrowserSession]) -> Making:
    """`async with browsing(start_url, pages=1, …) as made:` on real Chromium."""

    @asynccontextmanager
    async def make(start: str, **options: Any) -> AsyncIterator[Made]:
        session = kept_browser(os.environ.get("OC_BROWSER"))
        allow = options.pop("allow_private", ())
        asked = FetcherOptions(policy=Policy.for_start(start, allow), **{"pages": 1, **options})
        try:
            async with session.fetcher(asked) as fetcher:
                yield Made(session, fetcher, start)
        finally:
            await session.aclose()

    return make


class Pages:
    """A server whose answers a test writes down: path -> HTML or `Answer`; counts its hits."""

    def __init__(self) -> None:
        self.answers: dict[str, str | Answer] = {}
        self.hits: Counter[str] = Counter()
        self.server = Server(self._answer, "127.0.0.1", 0)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def __setitem__(self, path: str, answer: str | Answer) -> None:
        self.answers[path] = answer

    def _answer(self, request: Request) -> Answer:
        self.hits[request.path] += 1
        answer = self.answers.get(request.path, Answer(b"", 404))
        if isinstance(answer, Answer):
            return answer
        return Answer(f"<!doctype html><title>t</title><body>{answer}</body>".encode())


@pytest.fixture
def pages() -> Iterator[Pages]:
    with running(Pages()) as made:
        yield made


@pytest.fixture
def canary() -> Iterator[Pages]:
    """A private service on another port: its `hits` must stay empty."""
    with running(Pages()) as made:
        yield made
