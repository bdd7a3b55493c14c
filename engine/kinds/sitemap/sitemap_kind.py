"""The kind `crawl_sitemap` with the engine's own browser; what was typed says what it may reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from engine.browser.egress.egress_policy import place_of
from engine.browser.egress.public_addresses import literal
from engine.kinds.context import Context
from engine.kinds.crawl.crawl_kind import expect_a_page, fetchers
from engine.kinds.egress_log import telling
from engine.kinds.private_reach import reach
from engine.kinds.sitemap.sitemap_args import SitemapArgs, parse_sitemap
from engine.kinds.sitemap.sitemap_crawl import crawl_sitemap, head
from engine.kinds.sitemap.sitemap_search import Found
from engine.kinds.spec import Head, Kind, Tools
from engine.model.tally import StoppedBy, Tally


async def _crawl_sitemap(args: SitemapArgs, context: Context, tools: Tools) -> Head:
    policy = reach(tools.settings, args.pages.url, *_named_private(args))
    async with telling(context, policy):
        outcome, found = await crawl_sitemap(args, context, fetchers(policy, context, tools))
    expect_a_page(outcome, context)
    return head(outcome, found)


def _named_private(args: SitemapArgs) -> tuple[str, ...]:
    """The sitemap's own address, where its host is a number.

    A name is left to the rule for all: what it resolves to may change.
    """
    if args.sitemap_url is None:
        return ()
    return (args.sitemap_url,) if literal(place_of(args.sitemap_url).host) is not None else ()


def _partial(
    args: SitemapArgs, pages: Iterable[Mapping[str, Any]], stopped_by: StoppedBy, duration_ms: int
) -> Head:
    outcome = Tally(pages).outcome(args.pages.scope or "**", duration_ms, stopped_by)
    return head(outcome, Found(source=args.sitemap_url or ""))


CRAWL_SITEMAP = Kind(
    "crawl_sitemap",
    parse_sitemap,
    _crawl_sitemap,
    _partial,
    secrets=lambda args: args.pages.secrets,
)
