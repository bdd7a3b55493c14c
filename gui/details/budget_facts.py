"""How a task's budgets stand, as the Overview says it. Knows no Qt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine import budget
from engine.budget import Gauge
from engine.display import display
from engine.messages import ENGLISH
from engine.records import TaskRecord
from engine.words import count, say, took

_TONES = {"warning": "warning", "exceeded": "bad"}


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the Overview: the field (a message id without `field.`), text and tone."""

    field: str
    text: str
    tone: str = ""


def budget_facts(record: TaskRecord, now_ms: float) -> Iterator[Fact]:
    """The budgets and what is advised, by the edges that the engine itself knows (seed 004)."""
    if not record.policy:
        yield from _told(record)
        return
    standing = budget.at(_meta(record), now_ms)
    said = _standing_words(standing.status, standing.exceeded)
    wanted = [g for g in standing.gauges if g.key in record.policy or g.level != "ok"]
    gauges = [gauge_words(gauge) for gauge in wanted if gauge.limit is not None]
    yield Fact("budget", " · ".join([said, *gauges]), _TONES.get(standing.status, ""))
    yield Fact("advice", advice_words(standing.recommended_next) if record.is_live else "")


def budget_names(keys: Iterable[str]) -> str:
    """Budgets by name: `tool calls, time`; one that we do not know as it stands on disk."""
    return ", ".join(map(_name, keys))


def advice_words(advice: str | None) -> str:
    """What is recommended next, in words."""
    message = f"advice.{advice}"
    return say(message) if message in ENGLISH else display(advice or "", 200)


def gauge_words(gauge: Gauge) -> str:
    """One budget: `tool calls 41 of 50`, `time 2 min 05 s of 10 min 00 s`."""
    timed = gauge.key.endswith("Ms")
    used, limit = (took(n) if timed else count(n) for n in (gauge.value, gauge.limit or 0))
    return say("budget.used", name=_name(gauge.key), used=used, limit=limit)


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


def _meta(record: TaskRecord) -> dict[str, object]:
    names = ("kind", "policy", "counters", "created_at", "started_at", "ended_at")
    found = {name: getattr(record, name) for name in names}
    ours = record.engine
    measured = {"lasted_ms": ours.lasted_ms, "lasted_at": ours.lasted_at} if ours else {}
    return {**found, "engine": measured, "budget_exceeded": record.budget_exceeded}
