"""Applications routed by history, crawled again and again, and others routed by `#/`."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from urllib.parse import urlsplit

from engine.kinds.crawl.crawl_args import ARGUMENTS
from tests.bench.real_sites import applications
from tests.bench.real_sites.comparing import is_empty
from tests.bench.real_sites.crawls import Job, crawl, run
from tests.bench.real_sites.figures import Figures, Options
from tests.bench.real_sites.server import Served, Site, serve

HISTORY = (applications.vue, applications.docsify, applications.elements)
_WORDS = re.compile(r"^[A-Za-z][A-Za-z ,]{10,}", re.M)
_NONE = {"content": ""}
ANSWER_S = 0.01  # with what the server adds to each path: 10 to 60 ms


def measure(options: Options) -> Figures:
    """Crawl each application in its turn; both sorts stand in one table."""
    heads = ("application", "crawls", "pages", "same set", "empty pages", "evidence", "snapshot")
    figures = Figures(heads)
    empty = unequal = lost = 0
    for make in HISTORY:
        if options.wants((site := make()).name):
            with serve([site]) as served:
                row = _by_history(served[site.name], options)
            empty, unequal = empty + row[4], unequal + (row[1] - row[3])
            figures.rows.append((*row, "-", "-"))
    for site in (applications.vue(hashes=True), applications.docsify(hashes=True)):
        if options.wants(site.name):
            with serve([site]) as served:
                hashes, missing = _by_hash(served[site.name], _routes(site), options)
            lost += missing
            figures.rows.append(hashes)
    figures.facts = {
        "crawls": options.rounds,
        "crawls_with_another_set": unequal,
        "empty_pages": empty,
        "routes_lost": lost,
        "ok": not (empty or unequal or lost),
    }
    return figures


def _by_history(served: Served, options: Options) -> tuple[str, int, str, int, int]:
    """How many of the crawls found the largest set of pages, and how many pages were empty."""
    served.slow(api=ANSWER_S, docs=ANSWER_S)
    most = options.pages or 60
    done = run([crawl(f"{served.url}/", max_pages=most)] * options.rounds)
    sets = [{page["url"] for page in one.pages} for one in done]
    largest = max(sets, key=len)
    empty = [page["url"] for one in done for page in one.pages if is_empty(page)]
    if options.show:
        _tell(served.name, "empty", empty)
        for found in sets:
            _tell(served.name, "not found", largest - found)
    pages = f"{min(map(len, sets))}-{len(largest)}"
    return served.name, len(done), pages, sum(found == largest for found in sets), len(empty)


def _routes(site: Site) -> dict[str, str]:
    """Each route's fragment, and a text that stands on its page alone."""
    if site.name == "vue-hash":
        return {
            f"#/items/{n}": f"What item {n} is about." for n in range(1, applications.ITEMS + 1)
        }
    lines = site.files["/docs/_sidebar.md"].splitlines()
    found = [line.partition("](")[2].rstrip(")") for line in lines]
    return {
        f"#{one}": _longest_words(Path(site.folders["/docs/"], f"{one[1:]}.md")) for one in found
    }


def _longest_words(page: Path) -> str:
    """What stands in this page and hardly in another: its longest line of words alone."""
    return max(_WORDS.findall(page.read_text("utf-8")), key=len, default="").strip()


def _by_hash(
    served: Served, routes: dict[str, str], options: Options
) -> tuple[tuple[object, ...], int]:
    """Which routes a crawl, evidence and a snapshot saw; the number of those that were lost."""
    served.slow(api=ANSWER_S, docs=ANSWER_S)
    home, few = f"{served.url}/", list(routes)[1:4]
    can = "fragments" in ARGUMENTS
    walk = crawl(home, max_pages=200, **({"fragments": "routes"} if can else {}))
    kept, *bundles, snapshot = run(
        [walk, *(_evidence(home + route) for route in few), _snapshot([home + r for r in few])]
    )
    pages = {urlsplit(page["url"]).fragment: page for page in kept.pages}
    lost = [r for r, text in routes.items() if text not in pages.get(r[1:], _NONE)["content"]]
    doms = [routes[r] in one.dom for one, r in zip(bundles, few, strict=True)]
    tabs = [tab["url"] for tab in snapshot.pages or snapshot.result.get("tabs", [])]
    seen = [any(tab.endswith(route) for tab in tabs) for route in few]
    if options.show:
        _tell(served.name, "not kept by the crawl", lost)
        _tell(
            served.name,
            "not in evidence",
            [r for r, there in zip(few, doms, strict=True) if not there],
        )
        _tell(served.name, "tabs of the snapshot", tabs)
    found = f"{len(routes) - len(lost)}/{len(routes)}"
    empty = sum(is_empty(page) for page in kept.pages)
    row = (served.name, 1, found, "-", empty, f"{sum(doms)}/{len(few)}", f"{sum(seen)}/{len(few)}")
    return row, len(lost) + doms.count(False) + seen.count(False)


def _evidence(url: str) -> Job:
    return "oc_evidence_bundle", {"url": url, "include": ["dom"], "network_window_ms": 500}


def _snapshot(urls: Collection[str]) -> Job:
    args = {"objective": "Remember the routes.", "visit": True, "screenshot": False}
    return "oc_session_snapshot", {**args, "tabs": list(urls)}


def _tell(name: str, what: str, found: Collection[str]) -> None:
    if found:
        print(f"{name}: {what}: {', '.join(sorted(found)[:8])} ({len(found)} in all)")
