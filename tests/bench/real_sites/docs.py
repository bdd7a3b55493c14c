"""Documentation by each engine: text, links, requests, and the CPU of `auto`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.bench.real_sites import documentation
from tests.bench.real_sites.comparing import is_links_equal, is_words_equal, words
from tests.bench.real_sites.crawls import Kept, crawl, run
from tests.bench.real_sites.figures import Equality, Figures, Options
from tests.bench.real_sites.reference import Seen, look
from tests.bench.real_sites.server import Served, serve

PAGES = 25  # of each package
WAIT_MS = 300  # these pages are whole when they have loaded
STATIC_TARGET, AUTO_TARGET, CPU_TARGET = 0.95, 0.99, 0.35
ENGINES = ("browser", "static", "auto")


def measure(options: Options) -> Figures:
    """Crawl each package with each engine; the pages that the browser kept are the reference's."""
    heads = (
        *("site", "pages", "text =", "links =", "no script", "static =", "no style", "static ="),
        *("auto text", "auto links", "CPU ratio", "asked", "by browser"),
    )
    figures, whole = Figures(heads), _Counts()
    names = tuple(name for name in documentation.ALL if options.wants(name))
    with serve(documentation.sites(names)) as served:
        for site in served.values():
            figures.rows.append(_measure_site(site, whole, options))
    figures.facts = whole.facts()
    return figures


class _Counts:
    """What came together over all sites."""

    def __init__(self) -> None:
        self.equality = Equality()
        self.plain = self.static = self.unstyled = self.static_unstyled = 0
        self.auto = self.auto_pages = self.asked = self.common = 0
        self.cpu = dict.fromkeys(ENGINES, 0.0)

    def facts(self) -> dict[str, Any]:
        pages, equality = max(1, self.equality.expected), self.equality
        told = {
            "pages": equality.expected,
            "browser_text_share": equality.text / pages,
            "browser_links_share": equality.links / pages,
            "redacted": equality.redacted,
            "static_share": self.static / max(1, self.plain),
            "pages_without_need_of_scripts": self.plain,
            "static_share_without_need_of_styles": self.static_unstyled / max(1, self.unstyled),
            "pages_without_need_of_styles": self.unstyled,
            "auto_equal_share": self.auto / max(1, self.common),
            "auto_compared_pages": self.common,
            "auto_cpu_ratio": self.cpu["auto"] / max(0.001, self.cpu["browser"]),
            "static_cpu_ratio": self.cpu["static"] / max(0.001, self.cpu["browser"]),
            "auto_requests_per_page": self.asked / max(1, self.auto_pages),
            "static_target": STATIC_TARGET,
            "auto_target": AUTO_TARGET,
            "cpu_target": CPU_TARGET,
        }
        return told | {
            "ok": equality.text == equality.expected
            and told["static_share"] >= STATIC_TARGET
            and told["auto_equal_share"] >= AUTO_TARGET
            and told["auto_cpu_ratio"] <= CPU_TARGET
        }


def _measure_site(site: Served, whole: _Counts, options: Options) -> tuple[Any, ...]:
    most = options.pages or PAGES
    start = f"{site.url}/{documentation.START.get(site.name, '')}"
    kept: dict[str, Kept] = {}
    for engine in ENGINES:
        site.slow()
        [kept[engine]] = run([crawl(start, max_pages=most, engine=engine)])
        whole.cpu[engine] += kept[engine].cpu_s
    asked = site.asked()
    pages = {name: {page["url"]: page for page in one.pages} for name, one in kept.items()}
    urls = [url for url, page in pages["browser"].items() if "error" not in page]
    seen = asyncio.run(look(urls, wait_ms=WAIT_MS, tabs=3))
    bare = asyncio.run(look(urls, wait_ms=0, scripts=False, tabs=3))

    equality = Equality()
    for each in (equality, whole.equality):
        show = f"{site.name} browser" if options.show and each is equality else ""
        each.add([pages["browser"][url] for url in urls], seen, len(urls), show)
    plain = [url for url in urls if words(bare[url].text) == words(seen[url].text)]
    unstyled = [url for url in plain if words(bare[url].unstyled) == words(seen[url].text)]
    static = _same(pages["static"], seen, plain, f"{site.name} static" if options.show else "")
    bare_static = _same(pages["static"], seen, unstyled, "")
    # Where a crawl ends by its number of pages, which they are depends on who was first.
    common = [url for url in urls if url in pages["auto"]]
    auto = [
        _auto(
            pages["auto"][url], pages["browser"][url], seen[url], site.name if options.show else ""
        )
        for url in common
    ]
    both = sum(text and links for text, links in auto)
    requests = sum(asked[_path(site, url)] for url in pages["auto"])
    browsers = sum(page["engine_used"] == "browser" for page in pages["auto"].values())
    whole.plain += len(plain)
    whole.static += static
    whole.unstyled += len(unstyled)
    whole.static_unstyled += bare_static
    whole.auto += both
    whole.common += len(common)
    whole.auto_pages += len(pages["auto"])
    whole.asked += requests
    ratio = kept["auto"].cpu_s / max(0.001, kept["browser"].cpu_s)
    return (
        *(site.name, len(urls), equality.text, equality.links, len(plain), static),
        *(len(unstyled), bare_static),
        *(f"{sum(text for text, _ in auto)}/{len(common)}", sum(links for _, links in auto), ratio),
        *(f"{requests}/{len(pages['auto'])}", browsers),
    )


def _same(pages: Mapping[str, Any], seen: Mapping[str, Seen], urls: list[str], show: str) -> int:
    """How many of `urls` the static engine kept with the browser's words and links."""
    count = 0
    for url in urls:
        page = pages.get(url, {})
        same = is_words_equal(page, seen[url])
        count += same
        if show and not same:
            print(f"{show}: {url}: {_where(page, seen[url])}")
    return count


def _auto(
    page: Mapping[str, Any], browser: Mapping[str, Any], seen: Seen, show: str
) -> tuple[bool, bool]:
    """Does `auto` tell the words and links of the browser engine, or those of the reference?"""
    same = words(page.get("content") or "") == words(browser["content"] or "")
    same = same or is_words_equal(page, seen)
    links = is_links_equal(page, seen) or page.get("links_found") == browser["links_found"]
    if show and not (same and links):
        print(f"{show} auto: {page['url']}: {_where(page, seen)}")
    return same, links


def _where(page: Mapping[str, Any], seen: Seen) -> str:
    if not page:
        return "not crawled"
    kept, other = (page.get("content") or "").split(), seen.text.split()
    pairs = enumerate(zip(kept, other, strict=False))
    at = next((n for n, (one, two) in pairs if one != two), min(len(kept), len(other)))
    around = slice(max(0, at - 3), at + 6)
    return f"word {at}: kept {' '.join(kept[around])!r}, seen {' '.join(other[around])!r}"


def _path(site: Served, url: str) -> str:
    return url.removeprefix(site.url).partition("?")[0]
