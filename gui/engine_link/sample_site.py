"""The site that comes with the program, served from here as long as the window is open."""

from __future__ import annotations

import asyncio
from typing import Any

PAGES = 24
ARGS = {"max_pages": 25, "delay_ms": 200, "concurrency": 2}


class Sample:
    """Serves the sample site from the first time that somebody wants to crawl it."""

    def __init__(self) -> None:
        self._site: Any = None

    async def request(self) -> dict[str, Any]:
        """The arguments of a crawl of the whole site; it is served from now on."""
        if self._site is None:
            from engine.sample.site import Site  # few windows ever need it

            self._site = Site(PAGES)
            await asyncio.to_thread(self._site.start)
        return {"url": self._site.url, **ARGS}

    async def close(self) -> None:
        if self._site is not None:
            await asyncio.to_thread(self._site.stop)
