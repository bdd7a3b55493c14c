"""The fullest budget of a task, as the list shows it, without Qt."""

from __future__ import annotations

from dataclasses import dataclass

from engine import budgets
from engine.budgets import Gauge, Level
from engine.model.records import TaskRecord
from engine.text import words
from engine.text.messages import ENGLISH

_ORDER: tuple[Level, ...] = ("ok", "warning", "exceeded")
TONES = {"ok": "good", "warning": "warning", "exceeded": "bad"}


@dataclass(frozen=True, slots=True)
class Fullest:
    """The text of one budget and its share, with `fraction` from 0 to 1 for the bar."""

    text: str
    fraction: float
    level: Level
    share: float


def fullest(record: TaskRecord, now_ms: float) -> float | None:
    """Return the share of the fullest budget, 1 at its limit, or None without budgets."""
    found = fullest_of(record, now_ms)
    return None if found is None else found.share


def fullest_of(record: TaskRecord, now_ms: float) -> Fullest | None:
    """Return the budget that is nearest to its limit, by the thresholds of the engine."""
    if not record.policy:
        return _told(record) if record.budget_status else None
    found = budgets.at(counted(record), now_ms).gauges
    gauges = [gauge for gauge in found if gauge.limit or gauge.level != "ok"]
    if not gauges:
        return None
    worst = max(gauges, key=_weight)
    share = _weight(worst)[1]
    percent = f"{words.count(min(int(share * 100), 99_999))} %"
    if worst.limit is None:
        percent = words.say(f"budget.level.{worst.level}")
    text = words.say("budget.worst", name=_name(worst.key), percent=percent)
    return Fullest(text, min(1.0, share), worst.level, share)


def _weight(gauge: Gauge) -> tuple[int, float]:
    share = gauge.value / gauge.limit if gauge.limit else float(gauge.level != "ok")
    # A checkpoint that is due is no limit, so real limits come before it.
    return _ORDER.index(gauge.level) if gauge.key != "checkpointEveryCalls" else 0, share


def _told(record: TaskRecord) -> Fullest | None:
    """Return the gauge for a record that carries a budget status without a policy."""
    shares: dict[str | None, tuple[Level, float]] = {
        "warning": ("warning", 0.75),
        "exceeded": ("exceeded", 1.0),
    }
    known = shares.get(record.budget_status)
    if known is None:
        return None
    level, share = known
    return Fullest(words.say(f"budget.level.{level}"), share, level, share)


def _name(key: str) -> str:
    message = f"budget.short.{key}"
    return words.say(message) if message in ENGLISH else key


def counted(record: TaskRecord) -> dict[str, object]:
    """Return the fields of the record that budgets are computed from, named as in meta.json."""
    names = ("kind", "policy", "counters", "created_at", "started_at", "ended_at")
    found = {name: getattr(record, name) for name in names}
    ours = record.engine
    measured = {"lasted_ms": ours.lasted_ms, "lasted_at": ours.lasted_at} if ours else {}
    return {**found, "engine": measured, "budget_exceeded": record.budget_exceeded}
