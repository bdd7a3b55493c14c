"""The settings pages and their items as data."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QFile, QIODevice, QObject
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QPushButton,
    QSystemTrayIcon,
    QVBoxLayout,
    QWidget,
)

from engine.model.errors import EngineError
from gui.i18n import language
from gui.i18n.language import NAMES
from gui.settings.setting_controls import Choice, Clock, Control, File, Number, Switch
from gui.style.folders import documents
from gui.style.fonts import LEAST, MOST
from gui.style.theme import TonedLabel

if TYPE_CHECKING:
    from engine.doctor import Finding
    from engine.service.engine import Engine
    from gui.window.main_window import MainWindow


# Prefixes of preferences that are changed elsewhere in the window.
CHOSEN_ELSEWHERE = ("export.", "force.", "ledgers.", "start.", "views.")
MOST_SLOTS = 64
MOST_AWAY_S = 3600


@dataclass(frozen=True, slots=True)
class Item:
    """One preference with its control, or a custom widget when `key` is empty.

    The item is disabled while `needs` is false.
    """

    key: str
    label: str
    control: Control | Callable[[MainWindow], QWidget]
    hint: str = ""
    needs: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True)
class Page:
    """A page and the key prefixes for which its defaults are restored.

    A page without prefixes has a `name` for `show_page`.
    """

    title: str
    prefixes: tuple[str, ...]
    items: tuple[Item, ...]
    name: str = ""


class SettingPages(QObject):
    """Factory of the pages in the language of the window."""

    def pages(self) -> tuple[Page, ...]:
        """Return the pages in their order."""
        return (
            self._general(),
            self._appearance(),
            self._ledgers(),
            self._engine(),
            self._notices(),
            self._retention(),
            self._shortcuts(),
            self._advanced(),
        )

    def _general(self) -> Page:
        tr = self.tr
        asked, kept = ("ask", tr("Ask")), ("keep", tr("Keep them running in the tray"))
        quitting = Choice((asked, kept, ("cancel", tr("Cancel them and quit"))))
        items = (
            *self._language(),
            Item("desktop.start_hidden", tr("At the start"), Switch(tr("Start out of sight"))),
            *self._tray(),
            Item("desktop.quit_with_tasks", tr("Quitting while tasks run"), quitting),
            Item(
                "desktop.keep_awake",
                tr("Sleep"),
                Switch(tr("Keep the machine awake while tasks run in this window")),
            ),
        )
        return Page(tr("General"), ("general.", "desktop."), items)

    def _language(self) -> tuple[Item, ...]:
        languages = Choice((("system", self.tr("As the system")), *NAMES.items()))
        item = Item("general.language", self.tr("Language"), languages)
        return item, Item("", "", SpeakNow)

    def _tray(self) -> tuple[Item, ...]:
        tr = self.tr
        only = tr("Only where the desktop has a tray.")
        shown, hides = tr("Show a sign in the tray"), tr("Closing the window hides it in the tray")
        return (
            Item("desktop.tray", tr("Tray"), Switch(shown), only, needs=_has_tray),
            Item("desktop.close_to_tray", "", Switch(hides), needs=_has_tray),
        )

    def _appearance(self) -> Page:
        tr = self.tr
        themes = (("system", tr("As the system")), ("light", tr("Light")), ("dark", tr("Dark")))
        contrasts = (("system", tr("As the system")), ("more", tr("More contrast")))
        heights = (
            ("compact", tr("Compact")),
            ("normal", tr("Normal")),
            ("roomy", tr("Roomy")),
        )
        items = (
            Item("appearance.theme", tr("Theme"), Choice(themes)),
            Item("appearance.contrast", tr("Contrast"), Choice(contrasts)),
            Item(
                "appearance.distinct",
                tr("Colours"),
                Switch(tr("Tell states apart without red and green")),
            ),
            Item(
                "appearance.letters",
                tr("Size of letters"),
                Number(LEAST, MOST, " %", beyond=tr("{0} % was chosen; {1} % is what can be.")),
                tr("Of the size that the desktop has chosen."),
            ),
            Item("appearance.density", tr("Rows of the list"), Choice(heights)),
        )
        return Page(tr("Appearance"), ("appearance.",), items)

    def _ledgers(self) -> Page:
        from gui.settings.ledgers_page import LedgersPart

        # No defaults to restore, which would remove all ledgers from the window.
        return Page(self.tr("Ledgers"), (), (Item("", "", LedgersPart),), name="ledgers")

    def _engine(self) -> Page:
        tr = self.tr
        items = (
            Item(
                "engine.slots",
                tr("Tasks at once"),
                Number(0, MOST_SLOTS, "", tr("As suits this machine")),
                tr("The others wait for their turn."),
            ),
            Item(
                "engine.away_s",
                tr("Wait for a missing folder"),
                Number(1, MOST_AWAY_S, tr(" s")),
                tr("A running task waits for its folder this long, then it ends as failed."),
            ),
            Item(
                "browser.path",
                tr("Browser"),
                File(tr("Look for Chrome, Edge or Chromium"), tr("Browse…")),
                tr("The program that opens pages. Empty: the first one that is found."),
            ),
            Item("", "", BrowserTest),
            Item(
                "commands.allow_files",
                tr("Files for uploads"),
                File(tr("No folder: tasks upload nothing"), tr("Browse…"), is_folder=True),
                tr("The folder whose files command tasks may upload."),
            ),
            Item("", "", OpenAgain),
        )
        return Page(tr("Engine and browser"), ("engine.", "browser.", "commands."), items)

    def _notices(self) -> Page:
        tr = self.tr
        ways = Choice(
            (
                ("popup", tr("Pop up, and list")),
                ("list", tr("List only")),
                ("none", tr("Not at all")),
            )
        )
        items = (
            Item("notify.failed", tr("Failed tasks"), ways),
            Item("notify.attention", tr("Tasks that need attention"), ways),
            Item("notify.completed", tr("Completed tasks"), ways),
            Item("notify.cancelled", tr("Cancelled tasks"), ways),
            Item("notify.while_active", "", Switch(tr("Pop up also while I look at the window"))),
            Item("notify.sound", "", Switch(tr("With a sound"))),
            *self._quiet(),
        )
        return Page(tr("Notifications"), ("notify.",), items)

    def _quiet(self) -> tuple[Item, ...]:
        tr = self.tr
        wrong = tr("Not kept: that is no time.")
        start = Clock(tr("never, or as 22:00"), wrong)
        end = Clock(tr("never, or as 07:30"), wrong)
        both = tr("No hour is quiet without both of them.")
        return (
            Item("notify.quiet_from", tr("Quiet from"), start),
            Item("notify.quiet_until", tr("Quiet until"), end, both),
        )

    def _retention(self) -> Page:
        from gui.settings.clearing import Clearing

        tr = self.tr
        none = tr("No limit")
        items = (
            Item(
                "retention.days",
                tr("Older than"),
                Number(0, 3650, tr(" days"), none, tr(" day")),
                tr("Counted from a task’s end. What runs or waits always stays."),
            ),
            Item("retention.gigabytes", tr("More than"), Number(0, 9999, tr(" GB"), none)),
            Item(
                "retention.keep",
                tr("Never the newest"),
                Number(0, 1_000_000, tr(" tasks"), tr("No exception"), tr(" task")),
            ),
            Item("", "", Clearing, tr("Nothing goes by itself: only what a preview showed.")),
        )
        return Page(tr("Clearing away"), ("retention.",), items)

    def _shortcuts(self) -> Page:
        from gui.settings.shortcut_editor import ShortcutEditor

        items = (Item("shortcuts.keys", "", ShortcutEditor),)
        return Page(self.tr("Shortcuts"), ("shortcuts.",), items)

    def _advanced(self) -> Page:
        tr = self.tr
        items = (
            Item(
                "",
                tr("All settings"),
                CarryOver,
                tr("Exported as one file, without anything secret."),
            ),
            Item("", tr("When something is wrong"), Diagnostics),
        )
        return Page(tr("Advanced"), (), items)


def _has_tray() -> bool:
    """Checked each time, because trays appear and disappear."""
    return QSystemTrayIcon.isSystemTrayAvailable()


# Parts with buttons: tests, import and export, diagnostics.

MOST_BYTES = 1024 * 1024
_CHOSEN_FILE = "openchrome-monitor-settings.json"


class Part(QWidget):
    """Row of buttons with a result message below."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__()
        self.window_ = window
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

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._test = self.add(self.tr("Test the browser"))
        self._test.clicked.connect(self._look)
        self.fill_up()

    def _look(self) -> None:
        self._test.setEnabled(False)
        self.say(self.tr("Looking…"))
        chosen = self.window_.desk.preferences.get("browser.path", str) or None

        async def look(engine: Engine) -> Finding:
            from engine.doctor import browser

            asked = replace(engine.settings, browser_path=chosen)
            return (await asyncio.to_thread(browser, asked))[0]

        self.window_.bridge.ask(look, self._show, self._fail, name="test the browser")

    def _show(self, found: Finding) -> None:
        self._test.setEnabled(True)
        works = found.state == "ok"
        self.say(f"{found.text} {found.advice}".strip(), "good" if works else "bad")

    def _fail(self, error: EngineError) -> None:
        self._test.setEnabled(True)
        self.say(language.sentence(error), "bad")


class OpenAgain(Part):
    """Button that reopens the folder, so that engine settings take effect."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        again = self.add(self.tr("Apply now: open this folder again"))
        again.clicked.connect(self._open)
        self.fill_up()
        self.say(self._when())

    def _when(self) -> str:
        return self.tr("These three take effect when a folder is opened.")

    def _open(self) -> None:
        root = self.window_.bridge.look_at_health().root
        self.window().close()
        self.window_.folder_wanted.emit(Path(root))


class SpeakNow(OpenAgain):
    """Button that reopens the window, so that the language takes effect."""

    def _when(self) -> str:
        return self.tr("The language takes effect when the window is opened again.")


class CarryOver(Part):
    """Export, import and reset of all settings."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self.add(self.tr("Export…")).clicked.connect(self._ask_export)
        self.add(self.tr("Import…")).clicked.connect(self._ask_import)
        self.add(self.tr("Restore all defaults")).clicked.connect(self._reset)
        self.fill_up()

    def export_to(self, path: str) -> None:
        """Write all preferences to the file `path`."""
        file = QFile(path)
        text = self.window_.desk.preferences.as_text().encode()
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
            self.window_.desk.preferences.take_text(text)
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
        self.window_.desk.preferences.restore("", besides=CHOSEN_ELSEWHERE)
        self.say(
            self.tr("All settings are as they were at first; views, presets and folders stayed."),
            "good",
        )


class Diagnostics(Part):
    """Buttons for diagnostics."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        for key in ("doctor", "log", "debug_info"):
            if key in set(window.acts):
                act = window.acts[key]
                self.add(act.text().replace("&", "")).clicked.connect(act.trigger)
        self.fill_up()
