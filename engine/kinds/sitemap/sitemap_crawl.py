"""The kind `crawl_sitemap`: the pages that a sitemap lists, taken as a crawl takes them."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.kinds.context import Context
from engine.kinds.crawl.crawl import crawl_from
from engine.kinds.crawl.host_delay import Pace
from engine.kinds.sitemap.sitemap_args import SitemapArgs
from engine.kinds.sitemap.sitemap_search import Found, Search
from engine.model.tally import CrawlOutcome
from engine.pages.loading import Loader, OpenFetcher


async def crawl_sitemap(
    args: SitemapArgs, ctx: Context, open_fetcher: OpenFetcher
) -> tuple[CrawlOutcome, Found]:
    """Find the sitemap, and take pages while it is read; a stop is no error, as in `crawl`.

    Raises:
        SitemapMissing, SitemapUnmatched: there is nothing to take.
        BrowserMissing, BrowserFailed, InjectedFault: as in `crawl`.
    """
    started = ctx.monotonic()
    async with Loader(args.pages, open_fetcher) as loader:
        pace = Pace(ctx, args.pages.delay_ms / 1_000)
        search = Search(args, ctx, loader, pace)
        outcome = await crawl_from(args.pages, ctx, loader, search=search.run, pace=pace)
    lasted_ms = round((ctx.monotonic() - started) * 1_000)
    return msgspec.structs.replace(outcome, duration_ms=lasted_ms), search.found


def head(outcome: CrawlOutcome, found: Found) -> dict[str, Any]:
    """The head of the result: a crawl's, and where the list came from.

    `sitemap_source` stands in the summary as well: that is where OpenChrome's readers look.
    """
    return {
        "summary": {**outcome.summary(), **found.summary()},
        "sitemap_source": found.source,
    }
