"""A browser for one test, a canary that nobody may reach, and pages made of a few words."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from engine.browser.egress import Policy
from engine.browser.session import BrowserSession, FetcherOptions
from engine.sample.server import Answer, Request, Server
from engine.work.fetch import Fetcher

Making = Callable[..., AbstractAsyncContextManager["Made"]]


class Made:
    """What a browser test works with; `fetch` takes a path of the site or a whole address."""

    def __init__(self, session: BrowserSession, fetcher: Fetcher, start: str) -> None:
        self.session = session
        self.fetcher: Any = fetcher
        self.start = start


@pytest.fixture
def browsing() -> Making:
    """`async with browsing(start_url, pages=1, …) as made:` on real Chromium."""

    @asynccontextmanager
    async def make(start: str, **options: Any) -> AsyncIterator[Made]:
        session = BrowserSession(os.environ.get("OC_BROWSER"))
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
    made = Pages()
    made.server.start()
    yield made
    made.server.stop()


@pytest.fixture
def canary() -> Iterator[Pages]:
    """A private service on another port: its `hits` must stay empty."""
    made = Pages()
    made.server.start()
    yield made
    made.server.stop()
