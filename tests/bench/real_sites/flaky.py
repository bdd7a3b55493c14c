"""A site on which one first answer of ten is an error or a dropped connection."""

from __future__ import annotations

from tests.bench.real_sites import documentation
from tests.bench.real_sites.crawls import crawl, run
from tests.bench.real_sites.figures import Figures, Options
from tests.bench.real_sites.server import serve

PAGES = 120
FAILING = 10


def measure(options: Options) -> Figures:
    """Crawl the same documentation steady and flaky, by the browser and by the static engine."""
    figures = Figures(("engine", "pages", "failed at first", "lost", "asked again"))
    lost = 0
    most = options.pages or PAGES
    steady, flaky = documentation.site("django"), documentation.site("django", failing=FAILING)
    steady.name = "steady"
    with serve([steady, flaky]) as served:
        sites = (served["steady"], served["django"])
        for engine in ("static", "browser"):
            jobs = [crawl(f"{site.url}/", max_pages=most, engine=engine) for site in sites]
            sites[1].slow()
            whole, other = run(jobs)
            asked = sites[1].asked()
            expected = {p["url"].removeprefix(sites[0].url) for p in whole.pages if _is_good(p)}
            found = {p["url"].removeprefix(sites[1].url) for p in other.pages if _is_good(p)}
            failed = sum(one.get("attempts", 1) > 1 or not _is_good(one) for one in other.pages)
            missing = expected - found
            if options.show and missing:
                print(f"{engine}: lost: {', '.join(sorted(missing)[:10])}")
            lost += len(missing)
            again = sum(count > 1 for count in asked.values())
            figures.rows.append((engine, len(expected), failed, len(missing), again))
    figures.facts = {"pages": most, "failing_percent": FAILING, "lost": lost, "ok": not lost}
    return figures


def _is_good(page: dict[str, object]) -> bool:
    return "error" not in page
