"""How every benchmark speaks: a table for people, then one JSON line for programs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import psutil


def report(
    name: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], facts: Mapping[str, Any]
) -> None:
    """Print `rows` under `heads` and `facts` as JSON, with the machine they were measured on."""
    table = [list(heads), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(heads))]
    print(f"{name} (load {psutil.getloadavg()[0]:.1f} on {os.cpu_count()} cores)")
    for row in table:
        first = row[0].ljust(widths[0])
        others = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        print("  ".join([first, *others]).rstrip())
    machine = {"python": platform.python_version(), "cores": os.cpu_count()}
    kept = {key: _rounded(value) for key, value in facts.items()}
    print(json.dumps({"bench": name, **kept, **machine, "load": _rounded(psutil.getloadavg()[0])}))


def share(values: Sequence[float], part: float) -> float:
    """The value that `part` (0–1) of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) and value < 1000 else _plain(value)


def _plain(value: Any) -> str:
    return f"{value:.0f}" if isinstance(value, float) else str(value)


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value
