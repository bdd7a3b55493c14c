"""Consent rules: what is installed, a download with progress, and a package as a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QObject, QSize, Qt
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.browser.chromium import consent_rules
from engine.model.display import display
from engine.model.errors import EngineError
from engine.service.engine import Engine
from engine.text.words import size_words
from gui.context.window_context import WindowContext
from gui.engine_link.bridge import Bridge
from gui.i18n import language
from gui.style.accessibility import InOrder
from gui.style.banners import Banner
from gui.style.questions import BUTTON
from gui.style.theme import plain_label
from gui.style.widgets import arrange

SIZE: Final = QSize(640, 330)  # with room for an error of several lines
_PLACE_CHARS: Final = 200
_READ, _INSTALL = "read the consent rules", "install the consent rules"


class ConsentRulesActions(QObject):
    """The action that opens the consent rules from one window."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self._dialog: ConsentRulesDialog | None = None
        action = ctx.actions.add("consent_rules", self.tr("Consent r&ules…"))
        action.triggered.connect(lambda _=False: self.open())

    def open(self) -> None:
        """Open the dialog; one that is open stays."""
        if self._dialog is None:
            self._dialog = ConsentRulesDialog(self._ctx.bridge, self._ctx.parent)
            self._dialog.finished.connect(self._forget)
        self._dialog.open()

    def _forget(self, _: int) -> None:
        self._dialog = None


class ConsentRulesDialog(InOrder, QDialog):
    """Installed version, and the two ways to install one; closing it cancels a download."""

    def __init__(self, bridge: Bridge, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self.setWindowTitle(self.tr("Consent rules"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(SIZE)
        self._is_busy = False
        self.banner = Banner(self)
        intro = plain_label(
            self.tr(
                "Tasks with “Dismiss consent banners” need the rules of DuckDuckGo's autoconsent "
                "(MPL-2.0), which are no part of this program. They reject consent where a known "
                "banner asks for it."
            ),
            self,
            tone="muted",
            wrap=True,
        )
        self.state = plain_label("", self, wrap=True)
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        self.bar.setRange(0, consent_rules.SIZE)
        self.bar.setAccessibleName(self.tr("Download of the consent rules"))
        size, version = size_words(consent_rules.SIZE), consent_rules.VERSION
        self.download = QPushButton(
            self.tr("&Download version {0} ({1})").format(version, size), self
        )
        self.from_file = QPushButton(self.tr("&Install a file…"), self)
        self.cancel = QPushButton(self.tr("Cancel"), self)
        close = QPushButton(self.tr("Close"), self)
        row = QHBoxLayout()
        for button in (self.download, self.from_file, self.cancel, close):
            button.setMinimumSize(BUTTON)
            button.setAutoDefault(False)
        arrange(row, self.download, self.from_file, self.cancel, 1, close, spacing=8)
        parts = (self.banner, intro, self.state, self.bar, 1, row)
        arrange(QVBoxLayout(self), *parts, margins=(16, 14, 16, 14), spacing=10)
        self.download.clicked.connect(self._download)
        self.from_file.clicked.connect(self._choose_file)
        self.cancel.clicked.connect(self._call_off)
        close.clicked.connect(self.close)
        self.finished.connect(self._end)
        self._show_busy(False)
        self._read()

    def install_file(self, path: str) -> None:
        """Install the package of a file."""

        async def install(_: Engine) -> str:
            return (await asyncio.to_thread(consent_rules.install_file, Path(path))).version

        self._install(install)

    def _read(self) -> None:
        async def read(_: Engine) -> str:
            return await asyncio.to_thread(consent_rules.installed_version)

        self._bridge.ask(read, self._show_version, self._show_error, name=_READ)

    def _show_version(self, version: str) -> None:
        if not version:
            self.state.show_text(self.tr("No rules are installed."))
            return
        text = self.tr("Version {0} is installed in {1}")
        place = display(str(consent_rules.place()), _PLACE_CHARS)
        self.state.show_text(text.format(version, place))

    def _download(self) -> None:
        self.bar.setValue(0)
        self.bar.show()

        async def download(engine: Engine) -> str:
            server = consent_rules.download_server(engine.settings.environ)
            return (await consent_rules.download(self._show_bytes, server)).version

        self._install(download)

    def _show_bytes(self, size: int) -> None:
        if self._is_busy:  # the thread of a cancelled download still reports
            self.bar.setValue(size)

    def _choose_file(self) -> None:
        words = self.tr("Choose the package @duckduckgo/autoconsent")
        dialog = QFileDialog(self, words, "", self.tr("npm packages") + " (*.tgz)")
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self.install_file)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _install(self, install: Callable[[Engine], Coroutine[Any, Any, str]]) -> None:
        self.banner.setVisible(False)
        self._show_busy(True)
        self._bridge.ask(install, self._tell_installed, self._fail, name=_INSTALL)

    def _tell_installed(self, version: str) -> None:
        self._show_busy(False)
        self._show_version(version)
        title = self.tr("Version {0} is installed").format(version)
        text = self.tr("Choose “Dismiss consent banners” in the start dialog.")
        self.banner.tell(title, text, tone_name="good")

    def _fail(self, error: EngineError) -> None:
        self._show_busy(False)
        self._show_error(error)

    def _show_error(self, error: EngineError) -> None:
        self.banner.tell(language.title(error), language.told(error), tone_name="bad")

    def _call_off(self) -> None:
        self._bridge.call_off(_INSTALL)
        self._show_busy(False)

    def _end(self, _: int) -> None:
        for name in (_INSTALL, _READ):
            self._bridge.call_off(name)  # nobody would see its end
        self._is_busy = False

    def _show_busy(self, busy: bool) -> None:
        self._is_busy = busy
        if not busy:
            self.bar.hide()
        self.cancel.setVisible(busy)
        self.download.setEnabled(not busy)
        self.from_file.setEnabled(not busy)
