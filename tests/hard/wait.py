"""From a task's end, made by another process, to the return of `wait`, after many replaces."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from tests.bench import wait
from tests.bench.report import share
from tests.hard.figures import Figures

P50_MS, P99_MS = 50.0, 200.0


def measure(*, short: bool) -> Figures:
    transitions = 20 if short else 200
    with tempfile.TemporaryDirectory() as place:
        ours, _ = asyncio.run(wait.measure(Path(place), transitions))
    p50, p99 = share(ours, 0.5), share(ours, 0.99)
    facts = {
        "transitions": len(ours),
        "replaced before": wait.REPLACES,
        "p50 ms": round(p50, 1),
        "p99 ms": round(p99, 1),
        "max ms": round(max(ours), 1),
    }
    found = []
    if len(ours) != transitions:
        found.append(f"{transitions - len(ours)} ends were not told")
    if not short and p50 > P50_MS:
        found.append(f"half of the ends were told later than {P50_MS:.0f} ms")
    if not short and p99 > P99_MS:
        found.append(f"one in a hundred was told later than {P99_MS:.0f} ms")
    return Figures("G8", facts, found)
