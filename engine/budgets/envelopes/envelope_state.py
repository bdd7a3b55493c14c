"""State of an envelope (or any task with budgets), as `get` reports it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from engine import budgets
from engine.model.records import ENVELOPE


class EnvelopeState(msgspec.Struct, frozen=True):
    """Counters and budgets of one task, at one moment.

    `budget_status` is ok, warning or exceeded, and is evaluated now: time also passes without
    calls. `gauges` has one entry for each budget of the task.
    """

    task_id: str
    kind: str
    status: str
    objective: str
    phase: str
    policy: dict[str, Any]
    counters: dict[str, Any]
    budget_status: str
    budget_exceeded: tuple[str, ...]
    budget_warning: tuple[str, ...]
    recommended_next: str | None
    recent_events: tuple[dict[str, Any], ...]
    gauges: tuple[budgets.Gauge, ...]


def state_of(meta: Mapping[str, Any], now_ms: float) -> EnvelopeState:
    """Read the state from a whole meta.json; values of an invalid shape count as missing."""
    standing = budgets.at(meta, now_ms)
    policy = meta.get("policy")
    return EnvelopeState(
        task_id=_text(meta, "task_id"),
        kind=_text(meta, "kind"),
        status=_text(meta, "status"),
        objective=_text(meta, "objective"),
        phase=_text(meta, "phase"),
        policy=dict(policy) if isinstance(policy, dict) else {},
        counters=budgets.counters_of(meta),
        budget_status=standing.status,
        budget_exceeded=standing.exceeded,
        budget_warning=standing.warning,
        recommended_next=standing.recommended_next,
        recent_events=_events(meta.get("recent_events"))[-budgets.RECENT :],
        gauges=standing.gauges,
    )


def has_budget(meta: Mapping[str, Any]) -> bool:
    """Return whether it is an envelope, or a task with its own policy."""
    return meta.get("kind") == ENVELOPE or bool(meta.get("policy"))


def _text(meta: Mapping[str, Any], name: str) -> str:
    given = meta.get(name)
    return given if isinstance(given, str) else ""


def _events(given: object) -> tuple[dict[str, Any], ...]:
    found = given if isinstance(given, list) else []
    return tuple(event for event in found if isinstance(event, dict))
