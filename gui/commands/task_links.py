"""Links that open the monitor at a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QGuiApplication

from engine.model.ledger_ids import plain_id
from gui.desktop.launch_request import link_to

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow


def attach(window: MainWindow) -> None:
    """Add the action that copies a link for each selected task, one per line."""
    text = QCoreApplication.translate("TaskLinks", "Copy &link")
    act = window.acts.add("copy_link", text, ["Ctrl+Alt+C"])

    def copy() -> None:
        links = map(link_to, map(plain_id, window.scope.ids()))
        QGuiApplication.clipboard().setText("\n".join(links))

    act.triggered.connect(copy)
    window.scope.changed.connect(lambda: act.setEnabled(len(window.scope) > 0))
    act.setEnabled(False)
