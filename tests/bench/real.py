"""Compare the engine's results for real applications and documentation with plain Playwright.

Applications come from npm, documentation from Debian packages; both are fetched once into a cache
folder (`$OC_BENCH_CACHE`, else `~/.cache/openchrome-monitor-bench`) and served locally. A part
whose packages cannot be had is skipped and says so. `--show` names each page that differs.
"""

from __future__ import annotations

import argparse
from importlib import import_module

from tests.bench.real_sites.figures import Options
from tests.bench.real_sites.packages import Missing
from tests.bench.report import report

PARTS = ("apps", "routes", "docs", "facts", "flaky", "edges")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench real", description=__doc__)
    parser.add_argument("--part", choices=PARTS, action="append", dest="parts")
    parser.add_argument("--pages", type=int, help="pages for each site, else the part's default")
    parser.add_argument("--rounds", type=int, default=8, help="crawls of the part routes")
    parser.add_argument("--only", help="only sites whose name holds this")
    parser.add_argument(
        "--show", action="store_true", help="name each page that differs, and where"
    )
    given = parser.parse_args(argv)
    options = Options(given.pages, given.rounds, given.only or "", given.show)
    missed = False
    for part in given.parts or PARTS:
        try:
            figures = import_module(f"tests.bench.real_sites.{part}").measure(options)
        except Missing as why:
            print(f"real {part}: skipped, because {why}")
            continue
        report(f"real {part}", figures.heads, figures.rows, figures.facts)
        missed = missed or not figures.facts["ok"]
    return int(missed)
