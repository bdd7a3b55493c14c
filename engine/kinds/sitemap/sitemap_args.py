"""Arguments of a sitemap crawl: the source of the list, and the page options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from engine.kinds.arguments import (
    ADDRESS_HINT,
    Argument,
    FormField,
    Table,
    flag,
    missing,
    optional,
    read_all,
    text,
    web_address,
)
from engine.kinds.crawl.crawl_args import PAGE_ARGUMENTS, CrawlArgs, route_problems
from engine.kinds.credential_args import CREDENTIALS, credential_problems, credentials_from
from engine.model.addresses import Address, address_of
from engine.model.errors import InvalidArguments
from engine.secrets.given_secrets import of_address

MAX_PAGES = 50  # default

ARGUMENTS: Table = {
    "url": Argument(
        "url",
        optional(web_address),
        FormField("Site", "first", hint=ADDRESS_HINT, shade="example.com/docs"),
    ),
    "sitemap_url": Argument(
        "sitemap_url",
        optional(web_address),
        FormField(
            "Sitemap",
            "first",
            editor="line",
            shade="found by itself: robots.txt, then /sitemap.xml",
        ),
        help="Address of the sitemap (default: from robots.txt, else /sitemap.xml).",
    ),
    "max_pages": PAGE_ARGUMENTS["max_pages"],
    "filter": Argument(
        "filter",
        optional(text),
        FormField("Include pattern", "limits", editor="line", shade="every address that it lists"),
        help="Include pattern: only matching addresses are taken.",
    ),
    **PAGE_ARGUMENTS,
    "other_origins": Argument(
        "other_origins",
        flag,
        FormField("Also addresses of other sites"),
        help="Also take pages of other sites.",
    ),
    **CREDENTIALS,
}


class SitemapArgs(msgspec.Struct, frozen=True):
    """Validated arguments of a sitemap crawl.

    `pages` has the options of the pages; its `url` is the site, or the sitemap's own address if
    only that was given. `filter` is a glob like a crawl's patterns.
    """

    pages: CrawlArgs
    sitemap_url: str | None = None
    filter: str | None = None
    other_origins: bool = False

    @property
    def sitemap(self) -> Address | None:
        """The address of the given sitemap, if any."""
        return None if self.sitemap_url is None else address_of(self.sitemap_url)


def parse_sitemap(given: Mapping[str, Any]) -> SitemapArgs:
    """Parse the arguments of a sitemap crawl.

    Raises:
        InvalidArguments: with a `Problem` for every mistake; its path is the argument's name.
    """
    fields, problems = read_all(given, ARGUMENTS, "a sitemap crawl")
    if given.get("url") is None and given.get("sitemap_url") is None:
        problems.append(missing("url", "the address of the site, or sitemap_url"))
    problems.extend(route_problems(fields, ""))
    typed = fields.get("url") or fields.get("sitemap_url")
    problems.extend(credential_problems(fields, typed))
    if problems:
        raise InvalidArguments(tuple(problems))
    url, sitemap_url = fields.pop("url", None), fields.pop("sitemap_url", None)
    own = {name: fields.pop(name) for name in ("filter", "other_origins") if name in fields}
    site = address_of(url or sitemap_url)
    assert site is not None
    fields.setdefault("max_pages", MAX_PAGES)
    credentials, secrets = credentials_from(fields, url or sitemap_url)
    pages = CrawlArgs(
        url=site.url,
        credentials=credentials,
        secrets=(*secrets, *of_address(url), *of_address(sitemap_url)),
        max_depth=0,  # links of the pages are not followed: the sitemap is the list
        scope="**" if own.get("other_origins") else f"{site.origin}/**",
        **fields,
    )
    named = address_of(sitemap_url) if sitemap_url else None
    return SitemapArgs(pages, named.url if named else None, **own)
