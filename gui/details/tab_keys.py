"""Shortcuts Alt+digit for the tabs of the details (on a Mac Command+digit)."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from engine.text.words import count

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

MOST = 9


def attach(window: MainWindow) -> None:
    """Add nine actions: each selects a tab by position among the visible ones."""
    key = "Ctrl" if sys.platform == "darwin" else "Alt"
    for number in range(1, MOST + 1):
        title = window.tr("Details: tab {0}").format(count(number))
        action = window.acts.add(f"tab_{number}", title, [f"{key}+{number}"])
        action.triggered.connect(partial(_show, window, number - 1))


def _show(window: MainWindow, number: int, _: bool = False) -> None:
    window.acts["details"].setChecked(True)
    window.details.show_tab(number)
