"""How a task's budgets stand, as the Overview says it. Knows no Qt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine import budgets
from engine.budgets import Gauge, Level
from engine.model.display import display
from engine.model.records import TaskRecord
from engine.text.messages import ENGLISH
from engine.text.words import count, say, took
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
    """One budget as it stands: `fraction` is 1 at its limit."""

    name: str
    used: str
    fraction: float
    level: Level


def gauge_lines(record: TaskRecord, now_ms: float) -> list[GaugeLine]:
    """Every budget that was set, and those by default of which something is used already.

    Judged at `now_ms`: time runs out also while nothing is called.
    """
    if not record.policy:
        return []
    gauges = budgets.at(counted(record), now_ms).gauges
    return [
        GaugeLine(_name(gauge.key), _used(gauge), gauge.value / gauge.limit, gauge.level)
        for gauge in gauges
        if gauge.limit and (gauge.key in record.policy or gauge.level != "ok" or gauge.value)
    ]


def budget_facts(record: TaskRecord, now_ms: float) -> Iterator[Fact]:
    """The budgets and what is advised, by the edges that the engine itself knows (seed 004)."""
    if not record.policy:
        yield from _told(record)
        return
    standing = budgets.at(counted(record), now_ms)
    said = _standing_words(standing.status, standing.exceeded)
    yield Fact("budget", said, _TONES.get(standing.status, ""))
    yield Fact("advice", advice_words(standing.recommended_next) if record.is_live else "")


def budget_names(keys: Iterable[str]) -> str:
    """Budgets by name: `tool calls, time`; one that we do not know as it stands on disk."""
    return ", ".join(map(_name, keys))


def advice_words(advice: str | None) -> str:
    """What is recommended next, in words."""
    message = f"advice.{advice}"
    return say(message) if message in ENGLISH else display(advice or "", 200)


def _used(gauge: Gauge) -> str:
    """`41 of 50`, `2 min 05 s of 10 min 00 s`."""
    timed = gauge.key.endswith("Ms")
    used, limit = (took(n) if timed else count(n) for n in (gauge.value, gauge.limit or 0))
    return say("budget.used", name="", used=used, limit=limit).strip()


def _name(key: str) -> str:
    message = f"budget.name.{key}"
    return say(message) if message in ENGLISH else display(key, 60)


def _told(record: TaskRecord) -> Iterator[Fact]:
    """A record without a policy: what it says itself."""
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
