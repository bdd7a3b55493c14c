"""Records with budgets, and the effect of calls on them."""

from __future__ import annotations

from typing import Any

from engine import budgets
from engine.budgets import ToolCall

LOOK, ACT = "read_page", "interact"


def record(policy: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "kind": "browser_task",
        "status": "RUNNING",
        "created_at": 1_000_000,
        "started_at": 1_000_000,
        "last_activity_at": 1_000_000,
        "policy": budgets.defaulted(policy, envelope=True),
        "counters": budgets.no_calls(),
        **fields,
    }


def after(meta: dict[str, Any], *calls: ToolCall, now_ms: int = 1_000_001) -> dict[str, Any]:
    for call in calls:
        changes = budgets.fold(meta, call, now_ms)
        merged = {**meta, **changes}
        meta = {key: value for key, value in merged.items() if value is not None}
    return meta


def navigations(count: int) -> list[ToolCall]:
    """So many visits of one address, with something else between each two."""
    visit = ToolCall("navigate", {"url": "http://site.test/"})
    return [call for _ in range(count) for call in (ToolCall(ACT), visit)][1:]
