"""The rules of robots.txt (RFC 9309), fetched once per origin and run."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from engine.model.addresses import Address
from engine.model.blocked_places import BY_ROBOTS
from engine.model.errors import AddressBlocked, PageError
from engine.pages.fetch import Fetched, Fetcher, PageOptions, patiently

if TYPE_CHECKING:
    from protego import Protego

TOKEN = "OpenChromeMonitor"
MAX_ROBOTS_BYTES = 512 * 1024  # RFC 9309 requires at least 500 KiB
MAX_CRAWL_DELAY_S = 30.0
_LIMIT_MS = 15_000
ROBOTS_S = 60.0  # for all attempts to fetch one file
_OWN_GROUP = re.compile(rf"(?im)^[ \t]*user-?agent[ \t]*:[ \t]*{TOKEN}[ \t]*(?:#.*)?\r?$")


class Rules(NamedTuple):
    """One origin's rules: a parsed file, or one `verdict` for all addresses.

    `blocked` is the reason reported for a blocked page: an unreadable file differs from one that
    forbids.
    """

    verdict: bool
    parsed: Protego | None = None
    agent: str = "*"
    blocked: str = BY_ROBOTS
    refused: bool = False  # the origin itself is blocked, and with it its robots.txt

    def allows(self, url: str) -> bool:
        return self.verdict if self.parsed is None else self.parsed.can_fetch(url, self.agent)

    @property
    def delay_s(self) -> float:
        """The Crawl-delay for this crawler, in seconds, at most 30."""
        delay = None if self.parsed is None else self.parsed.crawl_delay(self.agent)
        return min(delay or 0.0, MAX_CRAWL_DELAY_S)

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The addresses in the file's `Sitemap:` lines, as written."""
        return () if self.parsed is None else tuple(map(str, self.parsed.sitemaps))


class Robots:
    """Fetches each origin's file once, with the crawl's own HTTP client and its egress policy.

    4xx, and a redirect without a target, mean that everything is allowed; 5xx and no response,
    after `retries` more attempts, that nothing is, for this run.
    """

    def __init__(self, fetcher: Fetcher, retries: int = 0) -> None:
        self._fetcher = fetcher
        self._retries = retries
        self._rules: dict[str, Rules] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def rules(self, address: Address) -> Rules:
        """Return the rules of `address`' origin; concurrent calls share one request."""
        origin = address.origin
        async with self._locks[origin]:
            if origin not in self._rules:
                self._rules[origin] = await self._fetch_rules(origin)
            return self._rules[origin]

    def known(self, address: Address) -> Rules | None:
        """Return the rules if they are already fetched."""
        return self._rules.get(address.origin)

    async def _fetch_rules(self, origin: str) -> Rules:
        try:
            fetched = await self._fetched(f"{origin}/robots.txt")
        except AddressBlocked as failed:
            if origin.partition("://")[2] in failed.url:  # not for the target of a redirect
                return Rules(verdict=False, blocked=str(failed), refused=True)
            return Rules(verdict=False, blocked=_unread(str(failed)))
        except PageError as failed:
            return Rules(failed.kind == "redirects", blocked=_unread(str(failed)))
        if fetched.status >= 500:
            return Rules(verdict=False, blocked=_unread(f"HTTP {fetched.status}"))
        if not 200 <= fetched.status < 300:
            return Rules(verdict=True)
        text = (fetched.text or fetched.html).removeprefix("\ufeff")
        return await asyncio.to_thread(parse, text)

    async def _fetched(self, url: str) -> Fetched:
        options = PageOptions(timeout_ms=_LIMIT_MS, max_bytes=MAX_ROBOTS_BYTES)
        return await patiently(lambda: self._fetcher.fetch(url, options), self._retries)


def _unread(reason: str) -> str:
    return f"robots.txt could not be read ({reason})"


def parse(text: str) -> Rules:
    """Parse the rules for this crawler: those of its own token if present, otherwise of `*`."""
    from protego import Protego

    # Protego also matches a prefix of the token; the RFC does not.
    agent = TOKEN if _OWN_GROUP.search(text) else "*"
    return Rules(True, Protego.parse(text), agent)
