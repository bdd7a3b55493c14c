"""A site without end: a crawl of it ends only from outside."""

from __future__ import annotations

from engine.sample.site import Answer
from fixtures.site.site import Site

_PATH = "/endless/"
_LINKS = 3  # from each page; so the way to ten thousand pages is nine links deep


class _Pages(dict[str, Answer]):
    """Answers by path, and a page for each number there is."""

    def __init__(self, answers: dict[str, Answer], links: int) -> None:
        super().__init__(answers)
        self.links = links

    def __contains__(self, path: object) -> bool:
        return super().__contains__(path) or str(path).startswith(_PATH)

    def __missing__(self, path: str) -> Answer:
        number = int(path.removeprefix(_PATH))
        links = self.links
        below = range(number * links + 1, number * links + 1 + links)
        shown = "".join(f"<a href='{_PATH}{one}'>{one}</a>" for one in below)
        return Answer(f"<title>Page {number}</title><p>Number {number}.</p>{shown}".encode())


def endless(site: Site, links: int = _LINKS) -> str:
    """Make the site have pages without end, with so many links each; the address of the first."""
    site.answers = _Pages(site.answers, links)
    return f"{site.url}{_PATH}0"


def run_out(site: Site) -> None:
    """Let the pages have no more links: a crawl of them ends once it has those that it knows."""
    assert isinstance(site.answers, _Pages)
    site.answers.links = 0


def asked_pages(site: Site) -> int:
    """How many of the pages were asked for."""
    return sum(path.startswith(_PATH) for path in site.hits)
