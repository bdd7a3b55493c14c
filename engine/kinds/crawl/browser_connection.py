"""The connection of a crawl to its browser: which options it serves, and which one was used.

The direct connection serves options whose results were proved equal over both; every other one
takes Playwright for its whole task. `_NEEDS_PLAYWRIGHT` is the only list of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from engine.browser import direct
from engine.kinds.context import upstream_proxy
from engine.kinds.crawl.crawl_args import Connection, CrawlArgs
from engine.model.errors import InvalidArguments, Problem, ProxyNotAllowed, ProxyUnusable

if TYPE_CHECKING:
    from engine.kinds.context import Context
    from engine.model.config import Settings
    from engine.model.proxies import UpstreamProxy

# By the argument: whether a crawl uses it in a way that only Playwright serves.
_NEEDS_PLAYWRIGHT: Final[Mapping[str, Callable[[CrawlArgs], object]]] = {
    "screenshot": lambda args: args.screenshot != "none",
    "click_links": lambda args: args.click_links,
    "archive": lambda args: args.archive != "none",
    "dismiss_consent": lambda args: args.dismiss_consent,
    "profile": lambda args: args.profile,
    "username": lambda args: args.credentials,
    "proxy": lambda args: args.proxy is not None and args.proxy.password,
    # The live view masks secrets in a header or an address.
    "headers": lambda args: args.look.headers and args.secrets,
    "url": lambda args: args.secrets and not args.look.headers,
}
WHY: Final = "needs connection playwright (or auto)"
WHY_PROXY: Final = "does not serve a proxy with a password; use playwright or auto"


def needing_playwright(args: CrawlArgs) -> list[str]:
    """Return the arguments of a crawl that only Playwright serves."""
    return [name for name, needs in _NEEDS_PLAYWRIGHT.items() if needs(args)]


def expect_connection(args: CrawlArgs) -> CrawlArgs:
    """Return the arguments of a crawl whose connection can serve them.

    Raises:
        InvalidArguments: with a `Problem` for each that the direct connection does not serve.
    """
    if args.connection != "direct":
        return args
    problems = [Problem(name, "not_together", WHY) for name in needing_playwright(args)]
    if not direct.AVAILABLE:
        why = "is not available on Windows; use playwright or auto"
        problems.append(Problem("connection", "not_together", why))
    if problems:
        raise InvalidArguments(tuple(problems))
    return args


def expect_proxy(args: CrawlArgs, proxy: UpstreamProxy | None) -> None:
    """Check a crawl's proxy, which may be that of the settings or of the environment.

    Raises:
        InvalidArguments: the direct connection is asked for, and does not serve it.
    """
    if args.connection == "direct" and proxy is not None and proxy.password:
        raise InvalidArguments((Problem("connection", "not_together", WHY_PROXY),))


def expect_proxy_here(args: CrawlArgs, settings: Settings) -> None:
    """Check the proxy of a crawl that is about to start.

    Raises:
        InvalidArguments: the direct connection is asked for, and does not serve it.
    """
    with suppress(ProxyUnusable, ProxyNotAllowed):  # its start tells
        expect_proxy(args, upstream_proxy(settings, args.proxy))


def is_direct(args: CrawlArgs) -> bool:
    """Return whether the crawl begins with the direct connection."""
    return args.connection != "playwright" and direct.AVAILABLE and not needing_playwright(args)


class UsedConnection:
    """The connection that a task uses, for its result and its events."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.name: Connection | None = None  # None: no browser was needed

    async def fall_back(self, reason: str) -> None:
        """Take note that the crawl goes on through Playwright, since the pipe does not work."""
        if self.name == "playwright":  # another fetcher of the task did
            return
        self.name = "playwright"
        note = f"The direct connection does not start, so Playwright is used: {reason}"
        await self.context.log("connection", note)

    def add_to(self, head: dict[str, Any]) -> dict[str, Any]:
        """Add its name to the summary of a result."""
        if self.name is None:
            return head
        return {**head, "summary": {**head["summary"], "connection": self.name}}
