"""Applications whose API is quick or slow: text and links as Playwright sees them after 15 s."""

from __future__ import annotations

import asyncio

from tests.bench.real_sites import applications
from tests.bench.real_sites.crawls import Job, Kept, crawl, run
from tests.bench.real_sites.figures import Equality, Figures, Options
from tests.bench.real_sites.reference import Seen, look
from tests.bench.real_sites.server import Served, serve

DELAYS_S = (0.1, 1.2, 2.0, 4.0)
SLOWED = ("swagger-ui", "redoc", "scalar", "vue")
EVIDENCE_S = 2.0  # evidence is taken at this delay too: its network window is 5 s by default
WAIT_MS = 15_000
SHARE_TARGET = 0.99


def measure(options: Options) -> Figures:
    """Crawl each application at each delay and compare with one reference."""
    most = options.pages or 4
    made = (
        (applications.swagger_ui, 1),
        (applications.redoc, 1),
        (applications.scalar, 1),
        (applications.rapidoc, 1),
        (applications.graphiql, 1),
        (applications.elements, most),
        (applications.docsify, most),
        (applications.vue, most),
    )
    chosen = [(site, pages) for make, pages in made if options.wants((site := make()).name)]
    expected = {site.name: pages for site, pages in chosen}
    kept: dict[tuple[str, float], Kept] = {}
    bundles: dict[str, Kept] = {}
    with serve([site for site, _ in chosen]) as served:
        for delay in DELAYS_S:
            kept |= _crawl_all(served, expected, delay)
            if delay == EVIDENCE_S:
                bundles = _collect_evidence(served)
        for one in served.values():
            one.slow()
        urls = [page["url"] for crawled in kept.values() for page in crawled.pages]
        seen = asyncio.run(look(urls, wait_ms=WAIT_MS, tabs=8))
    return _figures(kept, bundles, seen, expected, options)


def _crawl_all(
    served: dict[str, Served], expected: dict[str, int], delay: float
) -> dict[tuple[str, float], Kept]:
    names = [name for name in expected if delay == DELAYS_S[0] or name in SLOWED]
    for name in names:
        served[name].slow(api=delay, docs=delay)
    jobs = [crawl(f"{served[name].url}/", max_pages=expected[name]) for name in names]
    return {(name, delay): one for name, one in zip(names, run(jobs), strict=True)}


def _collect_evidence(served: dict[str, Served]) -> dict[str, Kept]:
    names = [name for name in SLOWED if name in served]
    jobs: list[Job] = [
        ("oc_evidence_bundle", {"url": f"{served[name].url}/", "include": ["dom", "network"]})
        for name in names
    ]
    return dict(zip(names, run(jobs), strict=True))


def _is_whole(bundle: Kept, seen: Seen) -> bool:
    """Does the DOM hold nine of ten words of the page? It is markup, so some are written apart."""
    found = [word in bundle.dom for word in set(seen.text.split()) if word.isalnum()]
    return sum(found) >= 0.9 * len(found)


def _figures(
    kept: dict[tuple[str, float], Kept],
    bundles: dict[str, Kept],
    seen: dict[str, Seen],
    expected: dict[str, int],
    options: Options,
) -> Figures:
    heads = (
        *("application", "API s", "pages", "text =", "links =", "both =", "empty", "unsettled"),
        "evidence",
    )
    figures, whole, half = Figures(heads), Equality(), 0
    for (name, delay), one in sorted(kept.items()):
        equality = Equality()
        for each in (equality, whole):
            show = f"{name} at {delay} s" if options.show and each is whole else ""
            each.add(one.pages, seen, expected[name], show)
        told = (equality.text, equality.links, equality.both)
        settled = (equality.empty_settled, equality.unsettled)
        pages, evidence = f"{len(one.pages)}/{expected[name]}", "-"
        if delay == EVIDENCE_S and name in bundles:
            is_whole = _is_whole(bundles[name], seen[one.pages[0]["url"]])
            evidence, half = "whole" if is_whole else "not whole", half + (not is_whole)
        figures.rows.append((name, delay, pages, *told, *settled, evidence))
    figures.facts = {
        "pages": whole.expected,
        "equal_share": whole.share,
        "equal_text_share": whole.text / max(1, whole.expected),
        "share_target": SHARE_TARGET,
        "empty_called_settled": whole.empty_settled,
        "unsettled": whole.unsettled,
        "evidence_not_whole": half,
        "ok": whole.share >= SHARE_TARGET and not whole.empty_settled and not half,
    }
    return figures
