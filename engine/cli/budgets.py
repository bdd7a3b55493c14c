"""How a task's budgets stand, as `octask get` tells it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from engine.budgets.envelopes import EnvelopeState
from engine.model.display import display
from engine.model.status import moment
from engine.text.cli_messages import say
from engine.text.words import clock


def budget_lines(state: EnvelopeState) -> Iterator[str]:
    """What `octask get` says of an envelope, and of a task that has budgets."""
    if state.objective:
        yield _line("objective", state.objective)
    if state.phase:
        yield _line("phase", state.phase)
    yield _line("budget", state.budget_status)
    for gauge in state.gauges:
        of = "" if gauge.limit is None else f" {gauge.value} / {gauge.limit}"
        yield f"  {gauge.key}:{of} {gauge.level}"
    if state.recommended_next:
        yield _line("next", state.recommended_next)
    counts = {name: n for name, n in state.counters.items() if isinstance(n, int) and n}
    if counts:
        yield _line("counters", ", ".join(f"{name} {n}" for name, n in counts.items()))
    if state.recent_events:
        yield say("field.calls")
    for event in state.recent_events:
        told = display(str(event.get("summary", "")), 200)
        yield f"  {clock(moment(event.get('ts')))}  {told}"


def budget_data(state: EnvelopeState) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(state)
    return found


def _line(name: str, text: str) -> str:
    return f"{name + ':':<10} {display(text, 500)}"
