"""The result of a hard rig: for people, then one line for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import psutil

# The short form runs beside other tests: the machine's time is not its own, and a limit in
# wall time only tells what hangs. The long form holds the figure itself.
BESIDE_OTHERS = 40.0


class RigUnavailable(Exception):
    """This machine has not what the rig needs; the message says what."""


@dataclass(frozen=True)
class Figures:
    """One run of a rig: what was measured, and each promise that was not kept, as a sentence."""

    goal: str
    facts: Mapping[str, Any]
    misses: list[str] = field(default_factory=list)


def most_s(figure_s: float, *, short: bool) -> float:
    """What counts as a miss of a figure in wall time (s)."""
    return figure_s * BESIDE_OTHERS if short else figure_s


def tell(name: str, figures: Figures) -> None:
    """Print `figures` as a list, its misses, and one JSON line."""
    print(f"{figures.goal} {name} (load {psutil.getloadavg()[0]:.1f})")
    for fact, value in figures.facts.items():
        print(f"{fact:>28}  {value}")
    for miss in figures.misses:
        print(f"  MISSED  {miss}")
    told = {"hard": name, "goal": figures.goal, **figures.facts, "misses": figures.misses}
    print(json.dumps(told, default=str), flush=True)
