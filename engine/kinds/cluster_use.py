"""Tasks on a cluster: which one a task uses, what no cluster serves, and the news of its workers.

Secrets of a task never leave the operator's machine, so that a task that has some is refused. A
task that names no cluster gets the operator's default (`Settings.cluster`) if that serves its
arguments, and else loads its pages here. Requests from outside (MCP, HTTP) always load their pages
here: which machines load pages is the operator's decision.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from engine.cluster.cluster_address import MOST_LOCAL, NO_CLUSTER, ClusterAddress, cluster_address
from engine.egress.egress_policy import Policy
from engine.kinds.arguments import Argument, FormField, optional, text
from engine.kinds.context import FROM_OUTSIDE, Context, upstream_proxy
from engine.kinds.spec import Tools
from engine.model import redact
from engine.model.config import Settings
from engine.model.errors import InvalidArguments, Problem, ProxyNotAllowed, ProxyUnusable
from engine.model.proxies import ProxyChoice

if TYPE_CHECKING:
    from engine.browser.chromium.browser_options import BrowserLook
    from engine.cluster.cluster_pages import ClusterPages
    from engine.cluster.page_records import Terms
    from engine.model.addresses import Credentials
    from engine.secrets.given_secrets import Hidden

VARIABLE: Final = "OC_CLUSTER"
PHASE: Final = "cluster"  # of the events about its workers
LOADS: Final = 3  # of a page whose workers are lost
WAIT_S: Final = 365 * 86_400.0  # for a worker: until the task is stopped
WAIT_UNIT: Final = "wait for a worker"
WHY: Final = "does not go with a cluster; set cluster to none to load the pages on this machine"
WHY_USER: Final = (
    "a user and a password, also of an address, do not go with a cluster; set cluster to none to "
    "load the pages on this machine"
)
WHY_PROXY: Final = (
    "the default proxy (OC_PROXY or the settings) does not go with a cluster; set proxy or cluster "
    "to none"
)
WHY_OPERATOR: Final = "is for the operator of this program"


def _cluster(given: object) -> str:
    """Read the address of a cluster, or `none`."""
    found = text(given).strip()
    return found if found == NO_CLUSTER else str(cluster_address(found))


CLUSTER: Final = Argument(
    optional(_cluster),
    FormField(
        "Cluster",
        "loading",
        editor="line",
        shade="tcp://host:8786 or local:2",
        hint="A Dask scheduler, whose workers load the pages.",
    ),
    help="Load the pages on a Dask cluster: tcp://HOST:PORT, tls://HOST:PORT, local:N or none "
    "(default: OC_CLUSTER).",
)


class ClusterArgs(Protocol):
    """Arguments of a task that can use a cluster."""

    @property
    def cluster(self) -> str | None: ...
    @property
    def profile(self) -> str | None: ...
    @property
    def credentials(self) -> Credentials | None: ...
    @property
    def look(self) -> BrowserLook: ...
    @property
    def dismiss_consent(self) -> bool: ...
    @property
    def proxy(self) -> ProxyChoice | None: ...
    @property
    def secrets(self) -> tuple[Hidden, ...]: ...


def unserved(name: str, why: str = WHY) -> Problem:
    """Return the refusal of an argument that no cluster serves."""
    return Problem(name, "not_together", why)


def common_problems(args: ClusterArgs, settings: Settings) -> list[Problem]:
    """Return the refusals that all kinds of tasks have alike, but for those of addresses."""
    given = {
        "profile": args.profile,
        "username": args.credentials,
        "headers": args.look.headers,
        "dismiss_consent": args.dismiss_consent,
    }
    whys = {"username": WHY_USER}
    problems = [unserved(name, whys.get(name, WHY)) for name, value in given.items() if value]
    with suppress(ProxyUnusable, ProxyNotAllowed):  # its start tells
        if upstream_proxy(settings, args.proxy) is not None:
            problems.append(unserved("proxy", WHY_PROXY if args.proxy is None else WHY))
    return problems


def has_a_secret(url: str | None) -> bool:
    """Return whether a part of an address looks like a secret, as in logs."""
    return url is not None and redact.text(url) != url


def cluster_of(
    named: str | None, problems: Sequence[Problem], settings: Settings
) -> ClusterAddress | None:
    """Return the cluster of a task that names one, or None, and has these refusals.

    Returns None if its pages load here.

    Raises:
        InvalidArguments: the default is no address, or the named cluster does not serve the task.
    """
    if settings.route in FROM_OUTSIDE:
        if named not in (None, NO_CLUSTER):
            raise InvalidArguments((Problem("cluster", "not_allowed", WHY_OPERATOR),))
        return None
    if named is None:
        return None if problems else default_cluster(settings)
    if named == NO_CLUSTER:
        return None
    if problems:
        raise InvalidArguments(tuple(problems))
    return cluster_address(named)


def default_cluster(settings: Settings) -> ClusterAddress | None:
    """Return the cluster of tasks that name none: that of the environment, or of the settings.

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


class Wish(NamedTuple):
    """What a task wants of a cluster: the named one, the refusals, and the terms of its pages.

    `terms` gets the engine's first checks of the policy's addresses (see `Terms.held`). An embedded
    cluster has `most_local` workers at most.
    """

    named: str | None
    problems: Sequence[Problem]
    terms: Callable[[Mapping[str, tuple[str, ...]]], Terms]
    most_local: int = MOST_LOCAL


@asynccontextmanager
async def using_cluster(
    wish: Wish, context: Context, tools: Tools, policy: Policy
) -> AsyncIterator[ClusterPages | None]:
    """Connect to the cluster of a task, if it has one, and report what happens to its workers.

    `policy` allows the operator's addresses. Their first check is made here, for all workers.

    Raises:
        ClusterNotInstalled, ClusterWithoutCertificate, ClusterUnreachable, LocalClusterFailed
    """
    address = cluster_of(wish.named, wish.problems, tools.settings)
    if address is None:
        unused: ClusterAddress | None = None
        with suppress(InvalidArguments):  # of a default that this task does not use
            unused = default_cluster(tools.settings) if wish.named is None else None
        if unused is not None:
            names = ", ".join(one.path for one in wish.problems)
            note = f"the default cluster {unused} does not serve {names}"
            await context.log(PHASE, f"The pages load on this machine: {note}")
        yield None
        return
    # A task without a cluster imports nothing of it.
    from engine.cluster.cluster_connection import open_cluster

    async def tell(note: str, *, is_wait: bool = False, **facts: object) -> None:
        await context.log(PHASE, note, **facts)
        if is_wait:
            await context.reached(note)

    checked = await policy.root.first_checks()
    terms = wish.terms({str(place): tuple(map(str, held)) for place, held in checked.items()})
    address = address._replace(local=min(address.local, wish.most_local))
    if address.local:
        await context.reached(f"Starting workers on this machine: {address.local}")
    else:
        await context.reached(f"Connecting to the cluster {address}")
    refuse = policy.blocked_requests.note
    browser_path = tools.settings.browser_path
    async with open_cluster(address, terms, tell, refuse, browser_path) as workers:
        with tools.clusters.used(partial(workers.views, str(address))):
            yield workers
