"""However its addresses are spelled, a crawl visits each of them once."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kinds.crawl.frontier import Frontier, Visit
from engine.model.addresses import Address, address_of, link_address

HOSTS = st.sampled_from(["site.test", "xn--bcher-kva.test"])
PATHS = st.sampled_from(["/", "/a", "/a/", "/a/b", "/c.html"])
PAIRS = st.lists(st.sampled_from(["x=1", "y=2", "z=", "x=2"]), max_size=3)


class Page:
    """One page of the model: what makes it another page, and any number of its spellings."""

    def __init__(self, scheme: str, host: str, path: str, pairs: list[str]) -> None:
        self.scheme, self.host, self.path, self.pairs = scheme, host, path, pairs

    @property
    def identity(self) -> tuple[str, str, str, tuple[str, ...]]:
        by_key = sorted(self.pairs, key=lambda pair: pair.partition("=")[0])
        return self.scheme, self.host, self.path, tuple(by_key)


PAGES = st.builds(Page, st.sampled_from(["http", "https"]), HOSTS, PATHS, PAIRS)


@st.composite
def spelled(draw: st.DrawFn, page: Page) -> str:
    """The page as some author would write it: case, port, dots, fragment, order of keys."""
    scheme = draw(st.sampled_from([page.scheme, page.scheme.upper()]))
    host = draw(st.sampled_from([page.host, page.host.upper(), page.host.title()]))
    if page.host.startswith("xn--"):
        host = draw(st.sampled_from([host, "bücher.test", "BÜCHER.test"]))
    port = draw(st.sampled_from(["", ":", ":80" if page.scheme == "http" else ":443"]))
    user = draw(st.sampled_from(["", "ann:pass@"]))
    dots = draw(st.sampled_from(["", "/.", "/gone/..", "/%2e", "/gone/%2E%2e"]))
    keys = sorted({pair.partition("=")[0] for pair in page.pairs})
    order = draw(st.permutations(keys))
    by_key = [[p for p in page.pairs if p.partition("=")[0] == key] for key in order]
    query = "&".join(pair for pairs in by_key for pair in pairs)
    fragment = draw(st.sampled_from(["", "#", "#top", "#?x=9"]))
    return f"{scheme}://{user}{host}{port}{dots}{page.path}{'?' + query if query else ''}{fragment}"


def told_apart(url: str) -> tuple[str, str, str, tuple[str, ...]]:
    """What a visited address is, read by the standard library."""
    parts = urlsplit(url)
    pairs = [f"{key}={value}" for key, value in parse_qsl(parts.query, keep_blank_values=True)]
    by_key = sorted(pairs, key=lambda pair: pair.partition("=")[0])
    return parts.scheme, parts.netloc, parts.path, tuple(by_key)


@settings(max_examples=300)
@given(st.lists(PAGES, min_size=1, max_size=6), st.data())
def test_link_spellings_are_one_page(pages: list[Page], data: st.DataObject) -> None:
    frontier = Frontier(max_depth=5, max_queued=1000, wanted=lambda _: True)
    start = address_of(data.draw(spelled(pages[0])))
    assert start is not None
    frontier.start([Visit(start, 0)])
    visited: list[tuple[str, str, str, tuple[str, ...]]] = []
    landed: set[str] = set()
    flying: list[Visit] = []
    while not frontier.is_empty:
        visit = frontier.take()
        if visit is not None:
            flying.append(visit)
            assert len(flying) == 1 or not any(one.deaths for one in flying), "alone"
        if visit is None or data.draw(st.booleans()):  # pages finish in any order
            if not flying:
                break  # all that were left had been landed on
            visit = flying.pop(data.draw(st.integers(0, len(flying) - 1)))
            if visit.deaths == 0 and data.draw(st.integers(0, 9)) == 0:
                frontier.set_apart(visit, "gone", data.draw(st.integers(0, 1)))
                continue
            assert visit.address.key not in landed
            visited.append(told_apart(visit.address.url))
            to = redirected(data, pages, visit.address)
            if to is not None and all(to.key != one.address.key for one in flying):
                frontier.land(to, visit)
                landed.add(to.key)
            links = data.draw(st.lists(st.sampled_from(pages), max_size=5))
            texts = [data.draw(spelled(link)) for link in links]
            found = [link_address(visit.address.url, text) for text in texts]
            assert None not in found
            frontier.add([one for one in found if one is not None], visit.depth)
            frontier.done(visit)
    assert len(visited) == len(set(visited))
    assert set(visited) <= {page.identity for page in pages}


def redirected(data: st.DataObject, pages: list[Page], was: Address) -> Address | None:
    """Now and then a page leads on to another one, which then counts as visited."""
    if data.draw(st.integers(0, 4)):
        return None
    to = address_of(data.draw(spelled(data.draw(st.sampled_from(pages)))))
    return None if to is None or to.key == was.key else to
