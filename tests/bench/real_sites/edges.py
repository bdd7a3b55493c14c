"""Large and old pages: very many links, framesets, shadow roots, and 80,000 elements."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin

from tests.bench.real_sites import applications, documentation
from tests.bench.real_sites.comparing import addresses, is_links_equal, is_text_equal, words
from tests.bench.real_sites.crawls import crawl, run
from tests.bench.real_sites.figures import Figures, Options
from tests.bench.real_sites.packages import Missing
from tests.bench.real_sites.reference import look
from tests.bench.real_sites.server import Served, Site, serve

LINKS, ELEMENTS = 5_017, 80_000
Row = tuple[str, str, str, bool]
_FRAME = re.compile(r"<(?:a|frame|iframe)\b[^>]*\b(?:href|src)\s*=\s*\"([^\"]+)\"", re.I)


def measure(options: Options) -> Figures:
    """Each row: what should be there, what is, and whether that is all."""
    figures = Figures(("page", "expected", "kept", "all there"))
    for part in (_links, _elements, _one_page, _changelog, _frameset):
        try:
            figures.rows += part(options)
        except Missing as why:
            print(f"{part.__name__.strip('_')}: skipped, because {why}")
    lost = [row for row in figures.rows if not row[3]]
    figures.facts = {"checks": len(figures.rows), "not_whole": len(lost), "ok": not lost}
    return figures


def _links(options: Options) -> list[Row]:
    """A page of 5,017 links, all of them crawled, and looked at by the browser."""
    if not options.wants("links"):
        return []
    site = Site("links")
    lines = [f'<li><a href="/page-{n}.html">Page {n}</a>' for n in range(LINKS)]
    site.files["/index.html"] = f"<title>Links</title><ul>{''.join(lines)}</ul>"
    for n in range(LINKS):
        site.files[f"/page-{n}.html"] = f"<title>{n}</title><p>This is page {n}."
    with serve([site]) as served:
        url = f"{served['links'].url}/"
        one = crawl(url, max_pages=1)
        every = crawl(url, max_pages=LINKS + 10, engine="static", concurrency=8)
        first, whole = run([one, every])
    found = _count_links(first.pages[0])
    good = sum("error" not in page for page in whole.pages)
    return [
        ("5,017 links, browser", str(LINKS), str(found), found == LINKS),
        ("5,017 links, pages by static", str(LINKS + 1), str(good), good == LINKS + 1),
    ]


def _count_links(page: dict[str, Any]) -> int:
    if "links" in page:
        return len(addresses(link["href"] for link in page["links"]))
    return int(page.get("links_found", 0))


def _elements(options: Options) -> list[Row]:
    if not options.wants("elements"):
        return []
    site = Site("elements-80000")
    rows = (f"<tr><td>{n}<td>value of row {n}" for n in range(ELEMENTS // 3))
    site.files["/index.html"] = f"<title>Rows</title><table>{''.join(rows)}</table><p>The end."
    with serve([site]) as served:
        return _compared(served["elements-80000"], "80,000 elements", "")


def _one_page(options: Options) -> list[Row]:
    """Applications whose text stands in shadow roots."""
    rows = []
    for make in (applications.shoelace, applications.rapidoc):
        if options.wants((site := make()).name):
            with serve([site]) as served:
                rows += _compared(served[site.name], f"{site.name}, shadow roots", "", 3_000)
    return rows


def _changelog(options: Options) -> list[Row]:
    """The two largest pages of the Python documentation."""
    if not options.wants("python"):
        return []
    with serve([documentation.site("python")]) as served:
        rows = _compared(served["python"], "python contents", "contents.html")
        return rows + _compared(served["python"], "python index", "genindex-all.html")


def _compared(served: Served, name: str, path: str, wait_ms: int = 1_000) -> list[Row]:
    url = f"{served.url}/{path}"
    [kept] = run([crawl(url, max_pages=1)])
    seen = asyncio.run(look([url], wait_ms=wait_ms))[url]
    page, expected = kept.pages[0], addresses(seen.links)
    text = (f"{name}: words", str(len(f"{seen.text} {seen.shadow}".split())))
    links = (f"{name}: links", str(len(expected)))
    return [
        (*text, str(len((page.get("content") or "").split())), is_text_equal(page, seen)),
        (*links, str(_count_links(page)), is_links_equal(page, seen)),
    ]


def _frameset(options: Options) -> list[Row]:
    """The manual of ant: every page that its frames and links lead to, and the first one's text."""
    if not options.wants("ant"):
        return []
    site = documentation.site("ant")
    expected = _reachable(Path(site.folders["/"]))
    rows: list[Row] = []
    with serve([site]) as served:
        url = f"{served['ant'].url}/"
        few = options.pages or 25
        static, browser = run(
            [crawl(url, max_pages=500, engine="static"), crawl(url, max_pages=few)]
        )
    good = {page["url"].removeprefix(url) for page in static.pages if "error" not in page}
    rows.append(
        (
            "frameset, pages by static",
            str(len(expected)),
            str(len(expected & good)),
            expected <= good,
        )
    )
    rows.append(
        ("frameset, pages by browser", str(few), str(len(browser.pages)), len(browser.pages) == few)
    )
    inner = ("Table of Contents", "This is the manual for version")
    for name, kept in (("static", static), ("browser", browser)):
        first = words(kept.pages[0].get("content") or "")
        there = sum(text in first for text in inner)
        rows.append((f"frameset, text of its frames by {name}", "2", str(there), there == 2))
    return rows


def _reachable(folder: Path) -> set[str]:
    """All files that frames and links of the first page lead to, by a reader of its own."""
    found, queue = {""}, ["index.html"]
    while queue:
        at = queue.pop()
        text = (folder / at).read_text("utf-8", "replace")
        for link in _FRAME.findall(re.sub(r"<!--.*?-->", "", text, flags=re.S)):
            to = urldefrag(urljoin(f"http://x/{at}", link))[0]
            path = to.removeprefix("http://x/")
            if (
                path != to
                and path not in found
                and path.endswith(".html")
                and (folder / path).is_file()
            ):
                found.add(path)
                queue.append(path)
    return found
