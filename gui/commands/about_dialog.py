"""About dialog with version and environment for bug reports."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence

import PySide6
from PySide6.QtCore import QLocale, qVersion
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from engine.logging.logs import log_path
from engine.model.display import display
from engine.model.records import Health
from engine.model.version import VERSION
from engine.service.router.connection_state import LedgerState
from engine.text.catalogue import retold
from gui.i18n.ledger_names import line_of
from gui.style.question import Question


def facts(health: Health | None, beside: Sequence[LedgerState] = ()) -> str:
    """Return versions and paths for a bug report, one per line."""
    lines = [
        f"OpenChrome Monitor {VERSION}",
        f"Python {platform.python_version()}, PySide6 {PySide6.__version__}, Qt {qVersion()}",
        f"{platform.system()} {platform.release()} ({platform.machine()}), "
        f"{QGuiApplication.platformName()}",
        f"Log: {log_path()}",
    ]
    screen = QGuiApplication.primaryScreen()
    if screen is not None:
        size, ratio = screen.size(), screen.devicePixelRatio()
        shown = f"Screen: {size.width()} x {size.height()}, scale {ratio:g}"
        lines.append(f"{shown}; {QLocale().bcp47Name()}")
    if health is not None:
        lines += _of_the_engine(health)
    lines += [f"Beside: {line_of(one)} {one.reason}".strip() for one in beside]
    if getattr(sys, "frozen", False):
        lines.append("Packaged")
    return "\n".join(lines)


def _of_the_engine(health: Health) -> list[str]:
    watcher = f"{health.watcher} {health.watcher_reason}".strip()
    browser = f"{health.browser_name or health.browser} {health.browser_reason}".strip()
    lines = [
        f"Ledger: {health.root}",
        f"Engine: {health.engine}, {health.running} running, {health.queued} waiting, "
        f"{health.slots} slots",
        f"Watching: {watcher}",
        f"Browser: {browser}",
    ]
    if health.read_only:
        lines.append(f"Read-only: {health.read_only}")
    lines += [f"Warning: {one}" for one in (*health.warnings, *health.concerns)]
    return [display(line) for line in lines]


class About(Question):
    """Dialog with the facts and a copy button."""

    def __init__(
        self,
        health: Health | None,
        parent: QWidget | None = None,
        beside: Sequence[LedgerState] = (),
    ) -> None:
        super().__init__(parent)
        self.ask(self.tr("About"), "OpenChrome Monitor")
        self.add_text(self.tr("Watches and runs browser tasks that live in a shared folder."))
        told = "\n".join(map(retold, facts(health, beside).split("\n")))
        self.add_text(told, tone="muted")
        copy = self.add_button("copy", self.tr("Copy these facts"))
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(facts(health, beside)))
        self.add_button("close", self.tr("Close"), default=True)
