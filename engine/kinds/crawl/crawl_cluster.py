"""Crawls on a cluster: what no cluster serves of their arguments, and the terms of their pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from engine.cluster.cluster_address import ClusterAddress
from engine.egress.egress_policy import Policy, place_of
from engine.kinds.cluster_use import (
    Wish,
    cluster_of,
    common_problems,
    has_a_secret,
    unserved,
    using_cluster,
)
from engine.kinds.context import Context, domains_of
from engine.kinds.crawl.browser_connection import is_direct
from engine.kinds.crawl.concurrency import AUTO
from engine.kinds.crawl.crawl_args import CrawlArgs
from engine.kinds.spec import Tools
from engine.model.config import Settings
from engine.model.errors import Problem
from engine.pages.fetch import PageWorkers

if TYPE_CHECKING:
    from engine.cluster.page_records import Terms


def cluster_problems(args: CrawlArgs, settings: Settings) -> list[Problem]:
    """Return the arguments of a crawl that no cluster serves."""
    problems = common_problems(args, settings)
    if args.archive != "none":
        problems.append(unserved("archive"))
    if args.concurrency == AUTO:
        problems.append(unserved("concurrency"))
    if not problems:
        if any(map(has_a_secret, args.urls)):
            problems.append(unserved("urls"))
        elif args.secrets or has_a_secret(args.url):
            problems.append(unserved("url"))
    return problems


def cluster_of_crawl(args: CrawlArgs, settings: Settings) -> ClusterAddress | None:
    """Return the cluster that loads the pages of a crawl, as `cluster_of` does."""
    return cluster_of(args.cluster, cluster_problems(args, settings), settings)


def check_cluster(args: CrawlArgs, settings: Settings) -> CrawlArgs:
    """Return the arguments of a crawl that is about to start. Raises InvalidArguments."""
    cluster_of_crawl(args, settings)
    return args


def crawling_cluster(
    args: CrawlArgs, context: Context, tools: Tools, policy: Policy, named: Iterable[str] = ()
) -> AbstractAsyncContextManager[PageWorkers | None]:
    """Connect to the cluster of a crawl, if it has one; raises as `using_cluster`.

    `named` are further addresses of the operator, which `policy` allows.
    """

    def terms(held: Mapping[str, tuple[str, ...]]) -> Terms:
        from engine.cluster.page_records import Terms

        return Terms(
            start=args.url,
            named=tuple(f"http://{place_of(one)}" for one in named),  # without path and query
            held=dict(held),
            budgets=domains_of(context),
            look=args.look,
            both=args.engine == "auto",
            block_resources=args.block_resources,
            direct=is_direct(args),
            falls_back=args.connection == "auto",
            pages=args.most_at_once,
        )

    wish = Wish(args.cluster, cluster_problems(args, tools.settings), terms)
    return using_cluster(wish, context, tools, policy)
