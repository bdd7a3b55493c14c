"""Which program this is, and what to send along with a question about it."""

from __future__ import annotations

import platform
import sys

import PySide6
from PySide6.QtCore import qVersion
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from engine.display import display
from engine.logs import log_path
from engine.records import Health
from engine.version import VERSION
from gui.dialogs.question import Question


def facts(health: Health | None) -> str:
    """Versions and places, one a line, for a bug report."""
    lines = [
        f"OpenChrome Monitor {VERSION}",
        f"Python {platform.python_version()}, PySide6 {PySide6.__version__}, Qt {qVersion()}",
        f"{platform.system()} {platform.release()} ({platform.machine()}), "
        f"{QGuiApplication.platformName()}",
        f"Log: {log_path()}",
    ]
    if health is not None:
        lines.append(f"Ledger: {display(health.root)}")
        lines.append(f"Browser: {display(health.browser_name or health.browser)}")
    if getattr(sys, "frozen", False):
        lines.append("Packaged")
    return "\n".join(lines)


class About(Question):
    """A small card with the facts and a button that copies them."""

    def __init__(self, health: Health | None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.ask(self.tr("About"), "OpenChrome Monitor")
        self.add_text(self.tr("Watches and runs browser tasks that live in a shared folder."))
        self.add_text(facts(health), tone="muted")
        copy = self.add_button("copy", self.tr("Copy these facts"))
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(facts(health)))
        self.add_button("close", self.tr("Close"), default=True)
