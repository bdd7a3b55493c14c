"""The traits of a sitemap crawl."""

from __future__ import annotations

from typing import Final

from engine.model.kind_traits import KindTraits

SITEMAP_TRAITS: Final = KindTraits(
    "crawl_sitemap",
    "pages",
    "pages",
    crawls=True,
    address_list=True,
    contract=True,
    in_browser=True,
    watch_page=True,
)
