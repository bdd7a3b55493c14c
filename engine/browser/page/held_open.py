"""Requests that a site's pages hold open on purpose, recognised after two pages.

A page is not at rest while one of its requests is pending. A request that is never answered
(a long poll, a stream) would cost every page of the site the full request limit. After two pages
left the same request open while their text had long been stable, it is no longer waited for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

PAGES = 2
MOST = 200  # names; a site that invents new names for ever cannot be recognised anyway


class HeldOpen:
    """Requests left open by the pages of one crawl or tab."""

    def __init__(self) -> None:
        self._pages: Counter[str] = Counter()

    def note(self, names: Iterable[str]) -> None:
        """Record the open requests of one page (names as `settle.js` makes them)."""
        for name in set(names):
            if name in self._pages or len(self._pages) < MOST:
                self._pages[name] += 1

    @property
    def known(self) -> list[str]:
        """Names of the requests that are not waited for."""
        return [name for name, pages in self._pages.items() if pages >= PAGES]
