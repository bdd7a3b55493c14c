"""Fifty cancels from another process, half of them inside a page that never answers."""

from __future__ import annotations

import asyncio

from tests.bench.cancel import LIMIT_S, rounds
from tests.hard.figures import Figures, most_s

LONG, SHORT = 50, 4


def measure(*, short: bool) -> Figures:
    """G12: from the request to CANCELLED on disk, with every finished page in the result."""
    tries = SHORT if short else LONG
    loading, hanging, kept = asyncio.run(rounds(tries))
    taken = loading + hanging
    limit_s = most_s(LIMIT_S, short=short)
    late = [seconds for seconds in taken if seconds > limit_s]
    facts = {
        "cancels": tries,
        "in_time": tries - len(late),
        "limit_s": limit_s,
        "longest_s": round(max(taken), 2),
        "longest_while_pages_load_s": round(max(loading), 2),
        "longest_inside_a_page_that_hangs_s": round(max(hanging), 2),
        "pages_kept": kept,
    }
    misses = []
    # A unit may take its own time; none of these takes longer than the 2 s.
    if late:
        misses.append(f"{len(late)} of {tries} cancels took longer than {limit_s:g} s")
    if kept != tries:
        misses.append(f"{tries - kept} of {tries} tasks did not keep what was finished")
    return Figures("G12", facts, misses)
