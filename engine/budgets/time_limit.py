"""Duration of a task, and the end of its time limit. No input is trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from engine.budgets.budget_policy import defaulted
from engine.model.records import ENVELOPE


def lasted_ms(meta: Mapping[str, Any], now_ms: float) -> float:
    """Duration of a task until its end or `now_ms`.

    The last measurement by the monotonic clock counts, and from then on the stored times.
    """
    ended_ms = number(meta.get("ended_at"))
    until_ms = now_ms if ended_ms is None else ended_ms
    stored = max(0, until_ms - began_ms(meta))
    ours = meta.get("engine")
    given = ours if isinstance(ours, Mapping) else {}
    measured, at = number(given.get("lasted_ms")), number(given.get("lasted_at"))
    if measured is None or at is None:
        return stored
    return min(measured + max(0, until_ms - at), max(measured, stored))


def runs_out_at(meta: Mapping[str, Any]) -> float | None:
    """Time (ms since 1970) at which a live task exceeds its time limit; None without one."""
    limit = defaulted(meta.get("policy"), envelope=is_envelope(meta)).get("maxWallMs")
    if limit is None:
        return None
    limit = float(limit) + 1  # at the limit it is not exceeded yet
    by_clock = began_ms(meta) + limit
    ours = meta.get("engine")
    given = ours if isinstance(ours, Mapping) else {}
    measured, at = number(given.get("lasted_ms")), number(given.get("lasted_at"))
    if measured is None or at is None:
        return by_clock
    if measured >= limit:
        return at
    return max(at + limit - measured, by_clock)  # as `lasted_ms` uses the lesser of the two


def began_ms(meta: Mapping[str, Any]) -> float:
    """Start of a task: an envelope's creation; a task with a body may have waited for a slot
    first."""
    claimed = None if is_envelope(meta) else number(meta.get("started_at"))
    return claimed or number(meta.get("created_at")) or 0


def is_envelope(meta: Mapping[str, Any]) -> bool:
    return bool(meta.get("kind", ENVELOPE) == ENVELOPE)


def number(given: object) -> float | None:
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    return given if math.isfinite(given) and 0 <= given < 2**53 else None
