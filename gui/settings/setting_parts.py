"""Parts of the settings with buttons: tests, import and export, diagnostics."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QFile, QIODevice
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from engine.model.errors import EngineError
from gui.context.window_context import WindowContext
from gui.i18n import language
from gui.style.folders import documents
from gui.style.theme import TonedLabel

if TYPE_CHECKING:
    from engine.doctor import Finding
    from engine.service.engine import Engine

# Prefixes of preferences that are changed elsewhere in the window.
CHOSEN_ELSEWHERE = ("export.", "force.", "ledgers.", "start.", "views.")
MOST_BYTES = 1024 * 1024
_CHOSEN_FILE = "openchrome-monitor-settings.json"


class Part(QWidget):
    """Row of buttons with a result message below."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__()
        self.ctx = ctx
        self.said = TonedLabel("", "muted", self)
        self.said.setWordWrap(True)
        self.said.hide()
        self._row = QHBoxLayout()
        self._row.setContentsMargins(0, 0, 0, 0)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(self._row)
        column.addWidget(self.said)

    def add(self, words: str) -> QPushButton:
        """Add a button to the row."""
        button = QPushButton(words, self)
        button.setAutoDefault(False)
        self._row.addWidget(button)
        return button

    def fill_up(self) -> None:
        self._row.addStretch(1)

    def say(self, words: str, tone: str = "muted") -> None:
        """Show the result message, which screen readers find next to the buttons."""
        self.said.show_tone(tone)
        self.said.show_text(words)
        self.said.setVisible(bool(words))


class WidePart(Part):
    """Part that uses the whole width of its page."""

    def terms(self) -> list[str]:
        """Return further search terms for this part."""
        return []


class BrowserTest(Part):
    """Button that tests whether the configured browser exists."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx)
        self._test = self.add(self.tr("Test the browser"))
        self._test.clicked.connect(self._look)
        self.fill_up()

    def _look(self) -> None:
        self._test.setEnabled(False)
        self.say(self.tr("Looking…"))
        chosen = self.ctx.preferences.get("browser.path", str) or None

        async def look(engine: Engine) -> Finding:
            from engine.doctor import browser

            asked = replace(engine.settings, browser_path=chosen)
            return (await asyncio.to_thread(browser, asked))[0]

        self.ctx.bridge.ask(look, self._show, self._fail, name="test the browser")

    def _show(self, found: Finding) -> None:
        self._test.setEnabled(True)
        works = found.state == "ok"
        self.say(f"{found.text} {found.advice}".strip(), "good" if works else "bad")

    def _fail(self, error: EngineError) -> None:
        self._test.setEnabled(True)
        self.say(language.sentence(error), "bad")


class OpenAgain(Part):
    """Button that reopens the folder, so that engine settings take effect."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx)
        again = self.add(self.tr("Apply now: open this folder again"))
        again.clicked.connect(self._open)
        self.fill_up()
        self.say(self._when())

    def _when(self) -> str:
        return self.tr("These three take effect when a folder is opened.")

    def _open(self) -> None:
        root = self.ctx.bridge.look_at_health().root
        self.window().close()
        self.ctx.open_folder(Path(root))


class SpeakNow(OpenAgain):
    """Button that reopens the window, so that the language takes effect."""

    def _when(self) -> str:
        return self.tr("The language takes effect when the window is opened again.")


class CarryOver(Part):
    """Export, import and reset of all settings."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx)
        self.add(self.tr("Export…")).clicked.connect(self._ask_export)
        self.add(self.tr("Import…")).clicked.connect(self._ask_import)
        self.add(self.tr("Restore all defaults")).clicked.connect(self._reset)
        self.fill_up()

    def export_to(self, path: str) -> None:
        """Write all preferences to the file `path`."""
        file = QFile(path)
        text = self.ctx.preferences.as_text().encode()
        if file.open(QIODevice.OpenModeFlag.WriteOnly) and file.write(text) == len(text):
            file.close()
            self.say(self.tr("Exported."), "good")
        else:
            self.say(self.tr("It could not be written: {0}").format(file.errorString()), "bad")

    def import_from(self, path: str) -> None:
        """Load preferences from a file that `export_to` wrote."""
        file = QFile(path)
        if not file.open(QIODevice.OpenModeFlag.ReadOnly):
            self.say(self.tr("It could not be read: {0}").format(file.errorString()), "bad")
            return
        try:
            text = bytes(file.read(MOST_BYTES).data()).decode()
            self.ctx.preferences.take_text(text)
        except (ValueError, RecursionError):
            self.say(self.tr("There are no settings in that file; nothing was changed."), "bad")
        else:
            self.say(self.tr("Imported."), "good")

    def _ask_export(self) -> None:
        dialog = QFileDialog(self, self.tr("Export settings"), documents())
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("json")
        dialog.selectFile(_CHOSEN_FILE)
        self._open(dialog).fileSelected.connect(self.export_to)

    def _ask_import(self) -> None:
        dialog = QFileDialog(self, self.tr("Import settings"), documents())
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        self._open(dialog).fileSelected.connect(self.import_from)

    def _open(self, dialog: QFileDialog) -> QFileDialog:
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()
        return dialog

    def _reset(self) -> None:
        self.ctx.preferences.restore("", besides=CHOSEN_ELSEWHERE)
        self.say(
            self.tr("All settings are as they were at first; views, presets and folders stayed."),
            "good",
        )


class Diagnostics(Part):
    """Buttons for diagnostics."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx)
        for key in ("doctor", "log", "debug_info"):
            if key in set(ctx.actions):
                act = ctx.actions[key]
                self.add(act.text().replace("&", "")).clicked.connect(act.trigger)
        self.fill_up()
