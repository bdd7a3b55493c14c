"""The kinds this engine can run: how each reads its arguments, and its coroutine."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from engine.browser.egress import Policy
from engine.browser.session import BrowserSession, FetcherOptions
from engine.config import Settings
from engine.errors import InvalidArguments, NothingTaken, Problem
from engine.tally import StoppedBy, Tally
from engine.work.context import Context
from engine.work.crawl import crawl
from engine.work.crawl_args import CrawlArgs, parse_crawl
from engine.work.fetch import EngineName, Fetcher
from engine.work.static import open_static


@dataclass(frozen=True, slots=True)
class Tools:
    """What a body may use of the outside world."""

    settings: Settings
    browser: BrowserSession


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of task.

    `parse` names every mistake; `body` returns the result's summary; `partial` makes one from
    the pages on disk where the body could not: (args, pages, stopped by, duration in ms).
    """

    name: str
    parse: Callable[[Mapping[str, Any]], Any]
    body: Callable[[Any, Context, Tools], Awaitable[dict[str, Any]]]
    partial: Callable[[Any, Iterable[Mapping[str, Any]], StoppedBy, int], dict[str, Any]]


async def _crawl(args: CrawlArgs, context: Context, tools: Tools) -> dict[str, Any]:
    """A crawl with the engine's own browser; the start URL says what it may reach."""
    policy = Policy.for_start(args.url)

    def open_fetcher(engine: EngineName, args: CrawlArgs) -> AbstractAsyncContextManager[Fetcher]:
        if engine == "static":
            return open_static(policy, args.credentials, judge=args.engine == "auto")
        options = FetcherOptions(
            policy=policy,
            pages=args.concurrency,
            credentials=args.credentials,
            block_resources=args.block_resources,
        )
        return tools.browser.fetcher(options)

    outcome = await crawl(args, context, open_fetcher)
    if outcome.failed and not outcome.succeeded and outcome.stopped_by != "cancelled":
        raise NothingTaken(reason=outcome.first_error)
    return outcome.summary()


def _partial_crawl(
    args: CrawlArgs, pages: Iterable[Mapping[str, Any]], stopped_by: StoppedBy, duration_ms: int
) -> dict[str, Any]:
    scope = args.scope or f"{args.address.origin}/**"
    return Tally(pages).outcome(scope, duration_ms, stopped_by).summary()


KINDS: dict[str, Kind] = {"crawl": Kind("crawl", parse_crawl, _crawl, _partial_crawl)}

# What the first crawl would import on the loop: 0.6 s together, too long for a window.
_LIBRARIES = ("aiohttp", "selectolax.lexbor", "html_to_markdown")


def import_libraries() -> None:
    """Import what the bodies import when they begin; for a worker thread, ahead of time."""
    for library in _LIBRARIES:
        importlib.import_module(library)


def kind_of(name: str) -> Kind:
    """The kind called `name`.

    Raises:
        InvalidArguments: nothing of that name can be run here.
    """
    kind = KINDS.get(name)
    if kind is None:
        known = ", ".join(sorted(KINDS))
        raise InvalidArguments(
            (Problem("kind", "unknown_kind", f"'{name}' cannot be started here (known: {known})"),)
        )
    return kind
