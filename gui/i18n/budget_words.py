"""Names of budgets, and the advice that follows from their state, in words."""

from __future__ import annotations

from collections.abc import Iterable

from engine.model.display import display
from engine.text.messages import ENGLISH
from engine.text.words import say


def budget_name(key: str) -> str:
    """Return the name of a budget; an unknown one is shown as on disk."""
    message = f"budget.name.{key}"
    return say(message) if message in ENGLISH else display(key, 60)


def budget_names(keys: Iterable[str]) -> str:
    """Join budget names: `tool calls, time`; an unknown one is shown as on disk."""
    return ", ".join(map(budget_name, keys))


def advice_words(advice: str | None) -> str:
    """Return the recommended next step in words."""
    message = f"advice.{advice}"
    return say(message) if message in ENGLISH else display(advice or "", 200)
