"""`python -m tests.hard [--short] [NAME...]`: run the rigs that were named, or every one of them.

A rig is a module with `measure(*, short: bool) -> Figures`. The exit code is 1 when one of
them missed its figure.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.hard.figures import Figures, tell


def rigs() -> list[str]:
    """The names of all rigs, in the order of the alphabet."""
    places = sorted(Path(__file__).parent.glob("[!_]*.py"))
    return [place.stem for place in places if "\ndef measure(" in place.read_text("utf-8")]


def measure(name: str, *, short: bool) -> Figures:
    """Run one rig."""
    measured: Figures = importlib.import_module(f"tests.hard.{name}").measure(short=short)
    return measured


def run(words: Sequence[str]) -> int:
    asked = argparse.ArgumentParser("dev hard", description="Rigs that try to break the program.")
    asked.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(rigs())}")
    asked.add_argument("--short", action="store_true", help="the form that the test suite runs")
    given = asked.parse_args(words)
    unknown = set(given.names) - set(rigs())
    if unknown:
        print(f"Give one of: {', '.join(rigs())}", file=sys.stderr)
        return 2
    missed = False
    for name in given.names or rigs():
        figures = measure(name, short=given.short)
        tell(name, figures)
        missed = missed or bool(figures.misses)
    return int(missed)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
