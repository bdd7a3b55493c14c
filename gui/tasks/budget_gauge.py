"""The fullest budget of a task: what the list shows of all its budgets. Knows no Qt."""

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
    """One budget in a word: `text` says which and how full, `fraction` is 0 to 1 for a bar."""

    text: str
    fraction: float
    level: Level
    share: float


def fullest(record: TaskRecord, now_ms: float) -> float | None:
    """How full its fullest budget is, 1 at the limit; None for a task without budgets."""
    found = fullest_of(record, now_ms)
    return None if found is None else found.share


def fullest_of(record: TaskRecord, now_ms: float) -> Fullest | None:
    """The budget that is nearest to its limit, by the edges that the engine knows."""
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
    # A checkpoint that is due is no limit: whatever is really full goes first.
    return _ORDER.index(gauge.level) if gauge.key != "checkpointEveryCalls" else 0, share


def _told(record: TaskRecord) -> Fullest | None:
    """A record that tells how it stands and not why."""
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
    """What the budgets are judged by, as meta.json has it."""
    names = ("kind", "policy", "counters", "created_at", "started_at", "ended_at")
    found = {name: getattr(record, name) for name in names}
    ours = record.engine
    measured = {"lasted_ms": ours.lasted_ms, "lasted_at": ours.lasted_at} if ours else {}
    return {**found, "engine": measured, "budget_exceeded": record.budget_exceeded}
