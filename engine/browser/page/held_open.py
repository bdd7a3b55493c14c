"""Requests that a site's pages hold open on purpose, known again after the second page.

A page is not at rest while a request of its own waits for an answer. One that is never answered
(a long poll, a stream) would cost every page of the site the whole limit of a request: what two
pages left open although their text had long stayed as it was is waited for no longer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

PAGES = 2
MOST = 200  # names; a site that makes up new ones for ever is not known again anyway


class HeldOpen:
    """What the pages of one crawl, or of one tab, left open."""

    def __init__(self) -> None:
        self._pages: Counter[str] = Counter()

    def note(self, names: Iterable[str]) -> None:
        """One page was taken with these requests still open (names as `settle.js` makes them)."""
        for name in set(names):
            if name in self._pages or len(self._pages) < MOST:
                self._pages[name] += 1

    @property
    def known(self) -> list[str]:
        """Those that need not be waited for."""
        return [name for name, pages in self._pages.items() if pages >= PAGES]
