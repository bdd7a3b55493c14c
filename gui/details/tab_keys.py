"""Alt and a digit choose a tab of the details (on a Mac the command key and a digit)."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from engine.text.words import count

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

MOST = 9


def attach(window: MainWindow) -> None:
    """Nine actions: the tab at each place, counted among those that the task has."""
    key = "Ctrl" if sys.platform == "darwin" else "Alt"
    for number in range(1, MOST + 1):
        title = window.tr("Details: tab {0}").format(count(number))
        action = window.acts.add(f"tab_{number}", title, [f"{key}+{number}"])
        action.triggered.connect(partial(_show, window, number - 1))


def _show(window: MainWindow, number: int, _: bool = False) -> None:
    window.acts["details"].setChecked(True)
    window.details.show_tab(number)
