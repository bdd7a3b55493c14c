"""Links that open the monitor at a task."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QGuiApplication

from engine.model.ledger_ids import plain_id
from gui.context.window_context import WindowContext
from gui.desktop.launch_request import link_to


def attach(ctx: WindowContext) -> None:
    """Add the action that copies a link for each selected task, one per line."""
    text = QCoreApplication.translate("TaskLinks", "Copy &link")
    act = ctx.actions.add("copy_link", text, ["Ctrl+Alt+C"])

    def copy() -> None:
        links = map(link_to, map(plain_id, ctx.scope.ids()))
        QGuiApplication.clipboard().setText("\n".join(links))

    act.triggered.connect(copy)
    ctx.scope.changed.connect(lambda: act.setEnabled(len(ctx.scope) > 0))
    act.setEnabled(False)
