"""CPU of a page with and without the dismissal of consent banners, in alternating rounds.

`python -m tests.bench consent FILE`: FILE is the npm package `@duckduckgo/autoconsent`. The first
page of each round has a banner; its cookie keeps it away from the others, as on a site.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from pathlib import Path
from unittest.mock import patch

from engine.browser.chromium import consent_rules
from engine.browser.chromium.browser_options import FetcherOptions
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.chromium.consent_rules import ConsentRules
from engine.egress.egress_policy import Policy
from engine.pages.fetch import PageOptions
from engine.sample.site import Answer
from tests.bench.crawl import cpu_s
from tests.bench.report import report
from tests.support.serving import served

TEXT = "".join(f"<h2>{n}</h2><p>{'some words ' * 40}<a href=/{n}>link</a></p>" for n in range(30))
BANNER = (
    "<div id=cmplz-cookiebanner-container><div class='cmplz-cookiebanner cmplz-show'>Cookies?"
    " <button class='cmplz-btn cmplz-deny' onclick=\"document.cookie ="
    " 'cmplz_banner-status=dismissed'; box.remove()\">Deny</button></div></div><script>"
    "const box = document.getElementById('cmplz-cookiebanner-container');"
    "if (document.cookie.includes('cmplz_banner')) box.remove()</script>"
)
PAGE = f"<!doctype html><title>page</title><body>{TEXT}{BANNER}".encode()


def rules_of(package: Path) -> ConsentRules:
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(consent_rules, "place", lambda: Path(folder) / "rules.json"),
    ):
        return consent_rules.install_file(package)


async def measured(rules: ConsentRules, pages: int, rounds: int) -> dict[bool, list[float]]:
    """Milliseconds of CPU a page, of this process and the browser's, without and with rules."""
    found: dict[bool, list[float]] = {False: [], True: []}
    session = BrowserSession()
    with served(lambda _: Answer(PAGE)) as url:
        try:
            for number in range(rounds):
                for dismiss in (False, True) if number % 2 else (True, False):
                    options = FetcherOptions(
                        policy=Policy.for_start(url), pages=1, consent=rules if dismiss else None
                    )
                    async with session.fetcher(options) as fetcher:
                        await fetcher.fetch(f"{url}/first", PageOptions())
                        before_s = cpu_s()
                        for page in range(pages):
                            await fetcher.fetch(f"{url}/{page}", PageOptions())
                        found[dismiss].append((cpu_s() - before_s) / pages * 1_000)
        finally:
            await session.aclose()
    return found


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", type=Path)
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args(words)
    found = asyncio.run(measured(rules_of(given.package), given.pages, given.rounds))
    middle = {dismiss: statistics.median(took) for dismiss, took in found.items()}
    rows = [("with" if one else "without", middle[one], *sorted(found[one])) for one in found]
    heads = ("banners dismissed", "cpu ms/page", *(f"round {at}" for at in range(given.rounds)))
    facts = {"without_ms": middle[False], "with_ms": middle[True]}
    report("consent", heads, rows, {**facts, "ratio": middle[True] / middle[False]})
