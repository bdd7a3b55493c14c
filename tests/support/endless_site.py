"""A site without end: a crawl of it ends only from outside."""

from __future__ import annotations

from engine.sample.server import Answer
from fixtures.site.site import Site

_PATH = "/endless/"
_LINKS = 3  # from each page; so the way to ten thousand pages is nine links deep


class _Pages(dict[str, Answer]):
    """Answers by path, and a page for each number there is."""

    def __init__(self, answers: dict[str, Answer], links: int) -> None:
        super().__init__(answers)
        self._links = links

    def __contains__(self, path: object) -> bool:
        return super().__contains__(path) or str(path).startswith(_PATH)

    def __missing__(self, path: str) -> Answer:
        number = int(path.removeprefix(_PATH))
        below = range(number * self._links + 1, number * self._links + 1 + self._links)
        links = "".join(f"<a href='{_PATH}{one}'>{one}</a>" for one in below)
        return Answer(f"<title>Page {number}</title><p>Number {number}.</p>{links}".encode())


def endless(site: Site, links: int = _LINKS) -> str:
    """Make the site have pages without end, with so many links each; the address of the first."""
    site.answers = _Pages(site.answers, links)
    return f"{site.url}{_PATH}0"
