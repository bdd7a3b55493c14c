"""The arguments of a crawl: a table of what is allowed, and a reading that finds every mistake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from engine.kinds.arguments import (
    Argument,
    OneOf,
    Table,
    flag,
    missing,
    one_of,
    optional,
    read_all,
    text,
    texts,
    web_address,
    web_addresses,
    whole,
)
from engine.kinds.credential_args import CREDENTIALS, credential_problems, credentials_from
from engine.model.addresses import Address, Fragments, address_of
from engine.model.credentials import Credentials
from engine.model.errors import InvalidArguments, Problem
from engine.pages.fetch import PageOptions, Screenshot
from engine.pages.html_limits import MAX_ELEMENTS, MAX_TEXT_KB
from engine.secrets.given_secrets import Hidden, of_address

OutputFormat = Literal["markdown", "text", "structured"]
CrawlEngine = Literal["browser", "static", "auto"]


class CrawlArgs(msgspec.Struct, frozen=True):
    """What a crawl was asked for, checked. `url` is without credentials.

    `urls` are further addresses to begin at, whatever the scope and the patterns say.
    `secrets` is what stood in the addresses as typed, and is taken out of what pages repeat.
    """

    url: str
    credentials: Credentials | None = None
    urls: tuple[str, ...] = ()
    max_depth: int = 2
    max_pages: int = 20
    scope: str | None = None
    include_patterns: tuple[str, ...] = ()
    exclude_patterns: tuple[str, ...] = ()
    output_format: OutputFormat = "markdown"
    respect_robots: bool = True
    delay_ms: int = 1_000
    concurrency: int = 3
    engine: CrawlEngine = "browser"
    block_resources: bool = True
    screenshot: Screenshot = "none"
    settle_ms: int = 100
    wait_for: str | None = None
    timeout_ms: int = 30_000
    retries: int = 2
    fail_on_page: int | None = None
    fragments: Fragments = "ignore"
    redact_content: bool = True
    secrets: tuple[Hidden, ...] = ()
    keep_links: bool = True
    max_elements: int = MAX_ELEMENTS
    max_text_kb: int = MAX_TEXT_KB

    @property
    def address(self) -> Address:
        return self.starts[0]

    @property
    def starts(self) -> tuple[Address, ...]:
        """Where the crawl begins; without credentials, which are the first one's alone."""
        given = (address_of(url) for url in (self.url, *self.urls))
        found = [address for address in given if address is not None]  # parse_crawl saw to it
        return tuple(one.own if self.fragments == "routes" else one for one in found)

    @property
    def page_options(self) -> PageOptions:
        """How each page of this crawl is to be taken."""
        return PageOptions(
            timeout_ms=self.timeout_ms,
            settle_ms=self.settle_ms,
            wait_for=self.wait_for,
            block_resources=self.block_resources,
            screenshot=self.screenshot,
            max_elements=self.max_elements,
            max_text=self.max_text_kb * 1024,
        )


# `cdp` is what others call the browser.
_engine = OneOf(("browser", "static", "auto"), {"cdp": "browser"})
_PAGES = whole(1, 1_000_000)
_DEPTH = whole(0, 100)
# How each page is taken: what every kind that takes pages has in common.
PAGE_ARGUMENTS: Table = {
    "max_pages": Argument("max_pages", _PAGES),
    "maxPages": Argument("max_pages", _PAGES),
    "output_format": Argument("output_format", one_of("markdown", "text", "structured")),
    "respect_robots": Argument("respect_robots", flag),
    "delay_ms": Argument("delay_ms", whole(0, 3_600_000)),
    "concurrency": Argument("concurrency", whole(1, 16)),
    "engine": Argument("engine", _engine),
    "block_resources": Argument("block_resources", flag),
    "screenshot": Argument("screenshot", one_of("none", "failed", "all")),
    "settle_ms": Argument("settle_ms", whole(0, 60_000)),
    "wait_for": Argument("wait_for", optional(text)),
    "timeout_ms": Argument("timeout_ms", whole(100, 600_000)),
    "retries": Argument("retries", whole(0, 10)),
    "fragments": Argument("fragments", one_of("ignore", "routes")),
    "redact_content": Argument("redact_content", flag),
    "keep_links": Argument("keep_links", flag),
    "max_elements": Argument("max_elements", whole(1_000, 1_000_000)),
    "max_text_kb": Argument("max_text_kb", whole(16, 4_096)),
    "failOnPage": Argument("fail_on_page", optional(whole(1, 1_000_000))),
}
ARGUMENTS: Table = {
    "url": Argument("url", web_address),
    "urls": Argument("urls", web_addresses),
    "max_depth": Argument("max_depth", _DEPTH),
    "maxDepth": Argument("max_depth", _DEPTH),
    "scope": Argument("scope", optional(text)),
    "sameOrigin": Argument("same_origin", flag),
    "include_patterns": Argument("include_patterns", texts),
    "exclude_patterns": Argument("exclude_patterns", texts),
    **CREDENTIALS,
    **PAGE_ARGUMENTS,
}


def parse_crawl(given: Mapping[str, Any]) -> CrawlArgs:
    """Read the arguments of a crawl.

    Raises:
        InvalidArguments: with a `Problem` for every mistake; its path is the argument's name.
    """
    fields, problems = read_all(given, ARGUMENTS, "a crawl")
    if "url" not in given:
        problems.append(missing("url", "the address to start at"))
    problems.extend(route_problems(fields, fields.get("url", "")))
    problems.extend(credential_problems(fields, fields.get("url")))
    if problems:
        raise InvalidArguments(tuple(problems))
    if not fields.pop("same_origin", True) and not fields.get("scope"):
        fields["scope"] = "**"
    typed, urls = fields.pop("url"), fields.get("urls") or ()
    address = address_of(typed)
    assert address is not None
    credentials, secrets = credentials_from(fields, typed)
    return CrawlArgs(
        url=address.url,
        credentials=credentials,
        secrets=(*secrets, *(secret for one in urls for secret in of_address(one))),
        **fields,
    )


def route_problems(fields: Mapping[str, Any], url: str) -> list[Problem]:
    """What asks for routes of an engine that runs no script: each would be the same page."""
    if fields.get("engine") != "static":
        return []
    needs = "needs a browser: the static engine takes the same page for every fragment"
    address = address_of(url)
    asked = {
        "url": address is not None and address.route,
        "fragments": fields.get("fragments") == "routes",
    }
    return [Problem(name, "not_together", needs) for name, yes in asked.items() if yes]
