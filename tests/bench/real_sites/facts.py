"""Facts of pages against html5lib and lxml, and broken links against LinkChecker.

Each documentation package is crawled whole by the static engine, and compared with the files that
were served; a part of it by the browser, and compared with the document in plain Playwright.
html5lib, lxml and LinkChecker share no code with the engines.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import msgspec

from tests.bench.real_sites import documentation
from tests.bench.real_sites.comparing import words
from tests.bench.real_sites.crawls import LIMIT_S, crawl, run_in
from tests.bench.real_sites.figures import Figures, Options
from tests.bench.real_sites.packages import Missing
from tests.bench.real_sites.reference import look
from tests.bench.real_sites.server import Served, serve

NAMES: Final = ("python", "postgresql", "django", "sqlite", "apache")
MOST_PAGES: Final = 20_000
WAIT_MS: Final = 300  # these pages are whole when they have loaded
BROWSER_PAGES: Final = 60  # of each package
LEAST_PAGES: Final = 3_000  # of all packages
_UNSAID: Final = ("script", "style", "noscript", "template")
_WEB: Final = ("http", "https")
_MOST_CHARS: Final = 512  # of a text, as the engine keeps it
_CHECKER_S: Final = 1_800
# It does not read larger pages otherwise, asks for 10 a second at most, and takes some addresses of
# the site for others.
_CHECKER_SETTINGS: Final = """[checking]
maxfilesizeparse=104857600
maxfilesizedownload=104857600
maxrequestspersecond=1000
[filtering]
internlinks=^{origin}/
"""


def measure(options: Options) -> Figures:
    """Crawl the packages, and compare.

    Raises:
        Missing: html5lib or lxml is not installed, or no package can be had.
    """
    for name in ("html5lib", "lxml"):
        if find_spec(name) is None:
            raise Missing(f"{name} is not installed")
    names = tuple(name for name in NAMES if options.wants(name))
    sites = documentation.sites(names)
    folders = {site.name: Path(site.folders["/"]) for site in sites}
    heads = ("site", "pages", "facts =", "browser", "facts =", "broken", "by both", "only one")
    figures = Figures(heads)
    totals: Counter[str] = Counter()
    with serve(sites) as served:
        for site in served.values():
            figures.rows.append(_measure_site(site, folders[site.name], totals, options))
    has_checker = shutil.which("linkchecker") is not None
    figures.facts = dict(totals) | {
        "linkchecker": has_checker,
        "ok": totals["pages"] == totals["equal"]
        and totals["browser_pages"] == totals["browser_equal"]
        and totals["one_only"] == 0
        and (totals["pages"] >= LEAST_PAGES or bool(options.pages or options.only)),
    }
    return figures


def _measure_site(
    site: Served, folder: Path, totals: Counter[str], options: Options
) -> tuple[Any, ...]:
    start = f"{site.url}/{documentation.START.get(site.name, '')}"
    most = options.pages or MOST_PAGES
    with tempfile.TemporaryDirectory() as home:
        pages, broken = _crawled(Path(home), start, "static", most)
    with tempfile.TemporaryDirectory() as home:
        seen, _ = _crawled(Path(home), start, "browser", min(most, BROWSER_PAGES))
    shown = asyncio.run(look([page["final_url"] for page in seen], wait_ms=WAIT_MS, tabs=3))
    parsed = {page["final_url"]: parse(_file_of(page["final_url"], folder)) for page in pages}
    live = {url: _tree(one.html) for url, one in shown.items()}
    equal = _count_equal(pages, parsed, options)
    browser_equal = _count_equal(seen, live, options)
    compares = most == MOST_PAGES and shutil.which("linkchecker") is not None
    checked = _checked(start, parsed) if compares else broken
    both, others = len(broken & checked), broken ^ checked
    if options.show:
        for one in sorted(others):
            print(f"{site.name}: found by one only: {one}")
    totals.update(
        pages=len(pages),
        equal=equal,
        browser_pages=len(seen),
        browser_equal=browser_equal,
        broken=len(broken),
        one_only=len(others),
    )
    return site.name, len(pages), equal, len(seen), browser_equal, len(broken), both, len(others)


def _crawled(home: Path, start: str, engine: str, most: int) -> tuple[list[Any], set[str]]:
    """Crawl; return the pages that are HTML, and the broken addresses of the audit."""
    jobs = [crawl(start, engine=engine, max_pages=most, concurrency=4)]
    (ended,) = run_in(home, jobs)
    task_id = ended["task_id"]
    lines = Path(home, "tasks", task_id, "pages.jsonl").read_bytes().splitlines()
    pages = [page for page in map(msgspec.json.decode, lines) if page.get("facts")]
    words = ["audit", task_id, "broken_links", "--json", "--home", str(home)]
    told = subprocess.run(
        [sys.executable, "-m", "engine.cli", *words],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    rows = json.loads(told.stdout)["rows"]
    return pages, {urldefrag(row["target"]).url for row in rows}


# What lxml finds.


def _count_equal(
    pages: Iterable[Mapping[str, Any]], parsed: Mapping[str, Any], options: Options
) -> int:
    count = 0
    for page in pages:
        expected = facts(parsed[page["final_url"]], page["final_url"])
        kept = page["facts"]
        other = [name for name, value in expected.items() if kept.get(name) != value]
        count += not other
        if options.show:
            for name in other:
                told = f"{name}: {kept.get(name)!r}, expected {expected[name]!r}"
                print(f"{page['engine_used']}: {page['url']}: {told}")
    return count


def parse(file: Path) -> Any:
    """Parse a file as the HTML standard says."""
    document = file.read_bytes()
    return _tree(document, transport_encoding=_declared(document))


def _tree(document: str | bytes, **given: Any) -> Any:
    parser = import_module("html5lib")
    warnings.simplefilter("ignore", import_module("html5lib.constants").DataLossWarning)
    return parser.parse(
        document, treebuilder="lxml", namespaceHTMLElements=False, **given
    ).getroot()


def _file_of(url: str, folder: Path) -> Path:
    path = unquote(urlsplit(url).path)
    return folder / (path + "index.html" if path.endswith("/") else path).lstrip("/")


def facts(root: Any, url: str) -> dict[str, Any]:
    """Return the facts of a parsed document, under their names in a page's record."""
    base = root.find(".//base[@href]")
    origin = url if base is None else urljoin(url, base.get("href"))
    links = [(found, anchor.get("rel") or "") for anchor, found in _links(root, origin)]
    place = urlsplit(url).netloc
    inside = sum(urlsplit(found).netloc == place for found, _ in links)
    headings = list(root.iter("h1"))
    images = list(root.iter("img"))
    canonical = [one.get("href") for one in root.iter("link") if _has(one, "rel", "canonical")]
    texts = {
        "language": root.get("lang"),
        "canonical": _web(urljoin(origin, canonical[0] or "")) if canonical else None,
        "description": _meta(root, "description"),
        "robots": _meta(root, "robots"),
        "h1": "".join(headings[0].itertext()) if headings else None,
    }
    level = {name: words(text)[:_MOST_CHARS] for name, text in texts.items() if text}
    level = {name: text for name, text in level.items() if text}
    absent = {name: None for name in texts if name not in level}
    return (
        level
        | absent
        | {
            "h1_count": len(headings),
            "words": sum(len(text.split()) for text in _texts(root.find("body"))),
            "links_internal": inside,
            "links_external": len(links) - inside,
            "links_nofollow": sum("nofollow" in rel.lower().split() for _, rel in links),
            "images": len(images),
            "images_without_alt": sum(image.get("alt") is None for image in images),
        }
    )


def _declared(document: bytes) -> str:
    head = document[:1024].lower()
    for name in ("utf-8", "iso-8859-1", "windows-1252", "euc-kr", "shift_jis", "iso-8859-9"):
        if b"charset=" + name.encode() in head.replace(b'"', b""):
            return name
    return "utf-8"


def _meta(root: Any, name: str) -> str | None:
    found = [one for one in root.iter("meta") if (one.get("name") or "").lower() == name]
    content: str | None = found[0].get("content") if found else None
    return content


def _has(element: Any, name: str, word: str) -> bool:
    return word in (element.get(name) or "").lower().split() and element.get("href") is not None


def _web(url: str) -> str | None:
    """Return a web address; a path on a disk and `http://<server>/` of an example are none."""
    parts = urlsplit(url)
    is_host = bool(parts.netloc) and not set("<>^|") & set(parts.netloc)
    return url if parts.scheme in _WEB and is_host else None


def _links(root: Any, base: str) -> Iterator[tuple[Any, str]]:
    for anchor in root.iter("a", "area"):
        href = anchor.get("href")
        if href is None:
            continue
        found = _web(urljoin(base, href.strip()))
        if found is not None:
            yield anchor, found


def _texts(element: Any) -> Iterator[str]:
    """Yield each text of an element outside of scripts and styles."""
    if element.tag in _UNSAID:
        return
    if isinstance(element.tag, str) and element.text:
        yield element.text
    for child in element:
        yield from _texts(child)
        if child.tail:
            yield child.tail


# What LinkChecker finds.


def _checked(start: str, parsed: Mapping[str, Any]) -> set[str]:
    """Return the broken addresses of links that LinkChecker finds.

    It names each once, with one of the pages that lead there, of which some are none of the
    crawl's: it also follows `link` elements.
    """
    with tempfile.TemporaryDirectory() as place:
        settings = Path(place, "linkcheckerrc")
        parts = urlsplit(start)
        origin = re.escape(f"{parts.scheme}://{parts.netloc}")
        settings.write_text(_CHECKER_SETTINGS.format(origin=origin), "ascii")
        options = ["-f", str(settings), "-o", "csv", "-t", "4", "--no-warnings", "--timeout=60"]
        done = subprocess.run(
            ["linkchecker", *options, start],
            capture_output=True,
            text=True,
            timeout=_CHECKER_S,
            check=False,
        )
    rows = csv.DictReader(
        io.StringIO("\n".join(row for row in done.stdout.splitlines() if row[:1] != "#")),
        delimiter=";",
    )
    found = {urldefrag(row["url"]).url for row in rows if row["valid"] == "False"}
    links = (link for url, root in parsed.items() for link in _links(root, url))
    return found & {urldefrag(target).url for _, target in links}
