"""Differences between two runs of the same target: units added, removed or changed."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from typing import Final, Literal

import msgspec

from engine.ledger.reader import LedgerReader
from engine.model.display import display
from engine.results.units import UnitReader, unit_of

Change = Literal["added", "removed", "changed"]
KEPT: Final = 20_000  # differences that are stored; further ones are only counted
_PROGRESS_EVERY: Final = 500

Run = tuple[LedgerReader, str]  # a task and the reader of its ledger
Facts = tuple[str, str, bytes]  # the response, the title, a hash of the text


class Difference(msgspec.Struct, frozen=True, gc=False):
    """Differing unit, with its old and new state in words ("404", a title)."""

    change: Change
    name: str
    before: str = ""
    after: str = ""
    text_changed: bool = False


class Differences(msgspec.Struct, frozen=True):
    """All differences between two runs (at most 20,000), and the count of each sort."""

    found: tuple[Difference, ...]
    added: int
    removed: int
    changed: int
    same: int


def differences(
    before: Run, after: Run, on_progress: Callable[[int], None], stop: threading.Event
) -> Differences:
    """Compare run `before` with run `after`, unit by unit, by their addresses.

    `on_progress` is called with the number of units read. The result is incomplete once `stop`
    is set.
    """
    found: list[Difference] = []
    counts = {"added": 0, "removed": 0, "changed": 0, "same": 0}

    def note(one: Difference) -> None:
        counts[one.change] += 1
        if len(found) < KEPT:
            found.append(one)

    known = dict(_facts(before, on_progress, stop))
    read = len(known)
    for name, facts in _facts(after, lambda more: on_progress(read + more), stop):
        old = known.pop(name, None)
        if old is None:
            note(Difference("added", display(name, 500), "", _facts_text(facts)))
        elif old == facts:
            counts["same"] += 1
        else:
            both_words = _facts_text(old), _facts_text(facts)
            note(Difference("changed", display(name, 500), *both_words, old[2] != facts[2]))
    for name, old in known.items():
        note(Difference("removed", display(name, 500), _facts_text(old), ""))
    return Differences(tuple(found), **counts)


def _facts(
    run: Run, on_progress: Callable[[int], None], stop: threading.Event
) -> Iterator[tuple[str, Facts]]:
    seen: set[str] = set()
    for number, (row, at) in enumerate(UnitReader(*run).rows()):
        if stop.is_set():
            return
        if number % _PROGRESS_EVERY == 0:
            on_progress(number)
        unit = unit_of(row, number, at)
        if unit.name in seen:
            continue
        seen.add(unit.name)
        answer = str(unit.code) if unit.code is not None else unit.reason or unit.state
        text = str(row.get("content", row.get("result", ""))).encode("utf-8", "replace")
        yield unit.name, (answer, unit.title, hashlib.blake2b(text, digest_size=8).digest())


def _facts_text(facts: Facts) -> str:
    return " · ".join(filter(None, facts[:2]))
