"""Budget lines of the Overview. Does not use Qt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine import budgets
from engine.budgets import Gauge, Level
from engine.model.display import display
from engine.model.records import TaskRecord
from engine.text.words import count, say, took
from gui.i18n.budget_words import advice_words, budget_name, budget_names
from gui.tasks.budget_gauge import counted

_TONES = {"warning": "warning", "exceeded": "bad"}


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the Overview: the field (a message id without `field.`), text and tone."""

    field: str
    text: str
    tone: str = ""


@dataclass(frozen=True, slots=True)
class GaugeLine:
    """State of one budget; `fraction` is 1 at its limit."""

    name: str
    used: str
    fraction: float
    level: Level


def gauge_lines(record: TaskRecord, now_ms: float) -> list[GaugeLine]:
    """Return every configured budget, and default budgets that are partly used.

    Evaluated at `now_ms`, since time is used up also without calls.
    """
    if not record.policy:
        return []
    gauges = budgets.at(counted(record), now_ms).gauges
    return [
        GaugeLine(budget_name(gauge.key), _used(gauge), gauge.value / gauge.limit, gauge.level)
        for gauge in gauges
        if gauge.limit and (gauge.key in record.policy or gauge.level != "ok" or gauge.value)
    ]


def budget_facts(record: TaskRecord, now_ms: float) -> Iterator[Fact]:
    """Yield budget state and advice, with the engine's thresholds (seed 004)."""
    if not record.policy:
        yield from _told(record)
        return
    standing = budgets.at(counted(record), now_ms)
    said = _standing_words(standing.status, standing.exceeded)
    yield Fact("budget", said, _TONES.get(standing.status, ""))
    yield Fact("advice", advice_words(standing.recommended_next) if record.is_live else "")


def _used(gauge: Gauge) -> str:
    """Format `41 of 50`, `2 min 05 s of 10 min 00 s`."""
    timed = gauge.key.endswith("Ms")
    used, limit = (took(n) if timed else count(n) for n in (gauge.value, gauge.limit or 0))
    return say("budget.used", name="", used=used, limit=limit).strip()


def _told(record: TaskRecord) -> Iterator[Fact]:
    """Yield the facts of a record without a policy, from its own fields."""
    status = record.budget_status
    if status:
        said = _standing_words(status, record.budget_exceeded or ())
        yield Fact("budget", said, _TONES.get(status, ""))
        yield Fact("advice", advice_words(record.recommended_next))


def _standing_words(status: str, exceeded: Iterable[object]) -> str:
    names = budget_names(map(str, exceeded))
    if status == "exceeded":
        return say("budget.exceeded", names=names) if names else say("budget.exceeded.plain")
    return say(f"budget.{status}") if status in ("ok", "warning") else display(status, 40)
