"""`python -m tests.hard [--short] [--only PARTS] [--rounds N] [NAME...]`: run some or all rigs.

A rig is a module with `measure(*, short: bool) -> Figures`. The exit code is 1 when one of
them missed its figure.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.hard.figures import Figures, RigUnavailable, tell


def rigs() -> list[str]:
    """The names of all rigs, in the order of the alphabet."""
    places = sorted(Path(__file__).parent.glob("[!_]*.py"))
    return [place.stem for place in places if "\ndef measure(" in place.read_text("utf-8")]


def measure(name: str, *, short: bool, **chosen: Any) -> Figures:
    """Run one rig; `chosen` are options of that rig."""
    rig = importlib.import_module(f"tests.hard.{name}")
    measured: Figures = rig.measure(short=short, **chosen)
    return measured


def takes(name: str, option: str) -> bool:
    """Return whether the rig has this option."""
    rig = importlib.import_module(f"tests.hard.{name}")
    return option in inspect.signature(rig.measure).parameters


def run(words: Sequence[str]) -> int:
    asked = argparse.ArgumentParser("dev hard", description="Rigs that try to break the program.")
    asked.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(rigs())}")
    asked.add_argument("--short", action="store_true", help="the form of ./dev test --thorough")
    asked.add_argument("--only", metavar="PART,...", help="some parts of one rig, where it has any")
    asked.add_argument("--rounds", type=int, metavar="N", help="how often, where a rig repeats")
    given = asked.parse_args(words)
    chosen: dict[str, Any] = {"rounds": given.rounds} if given.rounds else {}
    chosen |= {"only": given.only.split(",")} if given.only else {}
    unknown = set(given.names) - set(rigs())
    if unknown:
        print(f"Give one of: {', '.join(rigs())}", file=sys.stderr)
        return 2
    refused = [f"{n} has no --{o}" for n in given.names for o in chosen if not takes(n, o)]
    if refused or (chosen and not given.names):
        print("; ".join(refused) or "Name the rig for these options", file=sys.stderr)
        return 2
    missed = False
    for name in given.names or rigs():
        try:
            figures = measure(name, short=given.short, **chosen)
        except RigUnavailable as error:
            print(f"{name} did not run: {error}", file=sys.stderr)
            missed = True
            continue
        tell(name, figures)
        missed = missed or bool(figures.misses)
    return int(missed)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
