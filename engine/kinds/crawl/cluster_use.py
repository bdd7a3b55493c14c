"""Crawls on a cluster: the argument, what cannot be loaded there, and the news of its workers.

Secrets of a task never leave the operator's machine, so that a task that has some is refused. The
refusals are the one list of them. A crawl that names no cluster gets the operator's default
(`Settings.cluster`) if that serves its arguments, and else loads its pages here. Requests from
outside (MCP, HTTP) always load their pages here: which machines load pages is the operator's
decision.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

from engine.budgets import DOMAINS
from engine.cluster.cluster_address import NO_CLUSTER, ClusterAddress, cluster_address
from engine.egress.egress_policy import Policy, place_of
from engine.kinds.context import FROM_OUTSIDE, Context, upstream_proxy
from engine.kinds.crawl.browser_connection import is_direct
from engine.kinds.crawl.concurrency import AUTO
from engine.kinds.crawl.crawl_args import CrawlArgs
from engine.kinds.spec import Tools
from engine.model import redact
from engine.model.config import Settings
from engine.model.errors import InvalidArguments, Problem, ProxyNotAllowed, ProxyUnusable
from engine.pages.fetch import PageWorkers

VARIABLE: Final = "OC_CLUSTER"
PHASE: Final = "cluster"  # of the events about its workers
# By the argument: whether a crawl uses it in a way that a cluster does not serve.
_NEEDS_THIS_MACHINE: Final[Mapping[str, Callable[[CrawlArgs], object]]] = {
    "profile": lambda args: args.profile,
    "username": lambda args: args.credentials,
    "headers": lambda args: args.look.headers,
    "archive": lambda args: args.archive != "none",
    "dismiss_consent": lambda args: args.dismiss_consent,
    "concurrency": lambda args: args.concurrency == AUTO,
}
WHY: Final = "does not go with a cluster; use cluster none"
WHY_OPERATOR: Final = "is for the operator of this program"


def cluster_of(args: CrawlArgs, settings: Settings) -> ClusterAddress | None:
    """Return the cluster that loads the pages of a crawl; None: they load here.

    Raises:
        InvalidArguments: the default is no address, or the cluster that the crawl names does not
            serve its arguments.
    """
    if settings.route in FROM_OUTSIDE:
        if args.cluster not in (None, NO_CLUSTER):
            raise InvalidArguments((Problem("cluster", "not_allowed", WHY_OPERATOR),))
        return None
    if args.cluster is None:
        address = default_cluster(settings)
        return None if address is None or _refused(args, settings) else address
    if args.cluster == NO_CLUSTER:
        return None
    problems = [Problem(name, "not_together", WHY) for name in _refused(args, settings)]
    if problems:
        raise InvalidArguments(tuple(problems))
    return cluster_address(args.cluster)


def default_cluster(settings: Settings) -> ClusterAddress | None:
    """Return the cluster of crawls that name none: that of the environment, or of the settings.

    Raises:
        InvalidArguments: it is no address.
    """
    variable = settings.environ.get(VARIABLE, "").strip()
    given = variable or settings.cluster or NO_CLUSTER
    if given == NO_CLUSTER or settings.route in FROM_OUTSIDE:
        return None
    try:
        return cluster_address(given)
    except ValueError as wrong:
        message = f"{VARIABLE}: {wrong}" if variable else str(wrong)
        raise InvalidArguments((Problem("cluster", "invalid_value", message),)) from wrong


def _refused(args: CrawlArgs, settings: Settings) -> list[str]:
    names = [name for name, needs in _NEEDS_THIS_MACHINE.items() if needs(args)]
    with suppress(ProxyUnusable, ProxyNotAllowed):  # its start tells
        if upstream_proxy(settings, args.proxy) is not None:
            names.append("proxy")
    if not names and (args.secrets or any(map(_has_a_secret, (args.url, *args.urls)))):
        names.append("url")
    return names


def _has_a_secret(url: str) -> bool:
    """Return whether a part of an address looks like a secret, as in logs."""
    return redact.text(url) != url


def check_cluster(args: CrawlArgs, settings: Settings) -> CrawlArgs:
    """Return the arguments of a crawl that is about to start. Raises InvalidArguments."""
    cluster_of(args, settings)
    return args


@asynccontextmanager
async def using_cluster(
    args: CrawlArgs,
    context: Context,
    tools: Tools,
    policy: Policy,
    named: Iterable[str] = (),
) -> AsyncIterator[PageWorkers | None]:
    """Connect to the cluster of a crawl, if it has one, and report what happens to its workers.

    `named` are further addresses of the operator, which `policy` allows. Their first check is made
    here, for all workers.

    Raises:
        ClusterNotInstalled, ClusterWithoutCertificate, ClusterUnreachable, LocalClusterFailed
    """
    address = cluster_of(args, tools.settings)
    if address is None:
        if args.cluster is None and (unused := default_cluster(tools.settings)) is not None:
            unserved = ", ".join(_refused(args, tools.settings))
            note = f"the default cluster {unused} does not serve {unserved}"
            await context.log(PHASE, f"The pages load on this machine: {note}")
        yield None
        return
    # A crawl without a cluster imports nothing of it.
    from engine.cluster.cluster_pages import open_cluster
    from engine.cluster.page_records import Terms

    async def tell(note: str, *, is_wait: bool = False, **facts: object) -> None:
        await context.log(PHASE, note, **facts)
        if is_wait:
            await context.reached(note)

    checked = await policy.root.first_checks()
    terms = Terms(
        start=args.url,
        named=tuple(f"http://{place_of(one)}" for one in named),  # without path and query
        held={str(place): tuple(map(str, held)) for place, held in checked.items()},
        budgets=_domains(context.budgets),
        look=args.look,
        both=args.engine == "auto",
        block_resources=args.block_resources,
        direct=is_direct(args),
        falls_back=args.connection == "auto",
        pages=args.most_at_once,
    )
    if address.local:
        await context.reached(f"Starting workers on this machine: {address.local}")
    else:
        await context.reached(f"Connecting to the cluster {address}")
    refuse = policy.blocked_requests.note
    browser_path = tools.settings.browser_path
    async with open_cluster(address, terms, tell, refuse, browser_path) as workers:
        with tools.clusters.used(partial(workers.views, str(address))):
            yield workers


def _domains(budgets: Mapping[str, Any]) -> dict[str, Any]:
    return {DOMAINS: budgets[DOMAINS]} if DOMAINS in budgets else {}
