"""The traits of a crawl."""

from __future__ import annotations

from typing import Final

from engine.model.kind_traits import KindTraits

CRAWL_TRAITS: Final = KindTraits(
    "crawl",
    "pages",
    "pages",
    crawls=True,
    follows_links=True,
    address_list=True,
    contract=True,
    in_browser=True,
    watch_page=True,
)
