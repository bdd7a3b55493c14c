"""Which engine loads a page: the one that was asked for, or for `auto` the one that was learned."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Self

import msgspec

from engine.kinds.crawl.crawl_args import CrawlArgs
from engine.model.addresses import address_of
from engine.model.errors import PageError
from engine.pages.documents import is_html, is_text
from engine.pages.engine_choice import Comparison, EngineChoice, Plan, compared
from engine.pages.extract import off_the_loop
from engine.pages.fetch import EngineName, Fetched, Fetcher
from engine.pages.robots import Robots

OpenFetcher = Callable[[EngineName, CrawlArgs], AbstractAsyncContextManager[Fetcher]]

GATE_S = 3.0  # that a page waits for the comparison of another
# What a browser would meet as well; asking it would only cost the time twice.
_FINAL = frozenset({"blocked", "dns", "redirects", "download"})


class Loader:
    """The fetchers of one crawl, each opened when it is first needed."""

    def __init__(self, args: CrawlArgs, open_fetcher: OpenFetcher) -> None:
        self._args = args
        self._open = open_fetcher
        self._stack = AsyncExitStack()
        self._fetchers: dict[EngineName, Fetcher] = {}
        self._opening = asyncio.Lock()
        self._options = args.page_options
        self._robots: Robots | None = None
        self._choice = EngineChoice()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def fetcher(self, engine: EngineName) -> Fetcher:
        async with self._opening:
            if engine not in self._fetchers:
                opened = await self._stack.enter_async_context(self._open(engine, self._args))
                self._fetchers[engine] = opened
            return self._fetchers[engine]

    async def robots(self) -> Robots:
        """What robots.txt says, asked once per origin for all who use this loader."""
        if self._robots is None:
            fetcher = await self.fetcher("static")
            self._robots = self._robots or Robots(fetcher, self._args.retries)
        return self._robots

    async def load(self, url: str, *, fresh: bool = False) -> Fetched:
        """Load `url`; raises as `Fetcher.fetch` does.

        `fresh` is for the browser: the page gets a context that no other page was in.
        With `auto` the answer may be half of it: see `comparing`.
        """
        engine = self._args.engine
        if engine != "auto" or fresh:  # what could be told apart only there is told there
            return await self._by("static" if engine == "static" else "browser", url, fresh=fresh)
        if (address := address_of(url)) is not None and address.route:
            return await self._by("browser", url)  # only a script can tell what it stands for
        plan = self._choice.plan(url)
        if plan == "browser":
            return await self._by("browser", url)
        try:
            fetched = await self._by("static", url)
        except PageError as failed:
            if failed.kind in _FINAL:
                raise
            return _unknown(url)
        if _is_final(fetched):
            fetched.needs_browser = False
        elif not fetched.needs_browser:
            if plan == "both":
                self._choice.learn(fetched, Comparison(True))
        else:
            return self._planned(fetched, plan)
        return fetched

    def _planned(self, fetched: Fetched, plan: Plan) -> Fetched:
        """As `plan` says of a page's part of the site, or the page's kind where it is trusted."""
        kind = self._choice.plan_fetched(fetched)
        if plan == "both":
            return fetched
        fetched.needs_browser = plan == "browser" or kind != "static"
        return _unknown(fetched.url) if "browser" in {plan, kind} else fetched

    @asynccontextmanager
    async def comparing(self, fetched: Fetched) -> AsyncIterator[Fetched]:
        """What `load` found, with `needs_browser` where `second` has to take it as well.

        Waits while a page that is alike is compared: what it tells may spare this one.
        """
        if self._args.engine != "auto":
            fetched.needs_browser = False
        if not (fetched.needs_browser and fetched.status and fetched.runs):
            yield fetched
            return
        gate = self._choice.gate(fetched)
        try:
            async with asyncio.timeout(GATE_S):
                await gate.acquire()
        except TimeoutError:
            yield fetched
            return
        try:
            yield self._planned(fetched, self._choice.plan(fetched.url))
        finally:
            gate.release()

    async def second(self, static: Fetched) -> Fetched:
        """The same page by the browser, and what both engines tell of it; raises as `load`."""
        rendered = await self._by("browser", static.url)
        if static.status == 0:
            return rendered
        size = len(static.html) + len(rendered.html)
        told = Comparison(False)
        if static.runs:
            told = await off_the_loop(size, compared, static, rendered)
        self._choice.learn(static, told)
        # An equal page is told as all the pages are that it speaks for.
        found = static if told.equal and rendered.screenshot is None else rendered
        found.compared = True
        return found

    async def _by(self, engine: EngineName, url: str, *, fresh: bool = False) -> Fetched:
        fetcher = self._fetchers.get(engine) or await self.fetcher(engine)
        options = msgspec.structs.replace(self._options, fresh=True) if fresh else self._options
        return await fetcher.fetch(url, options)


def _unknown(url: str) -> Fetched:
    """What the static engine has of a page that only the browser can tell of."""
    return Fetched(url, url, 0, engine="static", needs_browser=True)


def _is_final(fetched: Fetched) -> bool:
    """An error stays one in a browser, and a PDF or a picture becomes no page there either."""
    page = is_html(fetched.content_type) or is_text(fetched.content_type)
    return not page or not 200 <= fetched.status < 300
