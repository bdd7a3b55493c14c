"""Shortcuts Alt+digit for the tabs of the details (on a Mac Command+digit)."""

from __future__ import annotations

import sys
from functools import partial

from engine.text.words import count
from gui.context.window_context import WindowContext
from gui.details.panel import Details

MOST = 9


def attach(ctx: WindowContext, details: Details) -> None:
    """Add nine actions: each selects a tab by position among the visible ones."""
    key = "Ctrl" if sys.platform == "darwin" else "Alt"
    for number in range(1, MOST + 1):
        title = ctx.parent.tr("Details: tab {0}").format(count(number))
        action = ctx.actions.add(f"tab_{number}", title, [f"{key}+{number}"])
        action.triggered.connect(partial(_show, ctx, details, number - 1))


def _show(ctx: WindowContext, details: Details, number: int, _: bool = False) -> None:
    ctx.actions["details"].setChecked(True)
    details.show_tab(number)
