"""The settings pages and their items as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import (
    QSystemTrayIcon,
    QWidget,
)

from gui.context.window_context import WindowContext
from gui.i18n.language import NAMES
from gui.settings.clearing import Clearing
from gui.settings.ledgers_page import LedgersPart
from gui.settings.setting_controls import Choice, Clock, Control, File, Number, Switch
from gui.settings.setting_parts import BrowserTest, CarryOver, Diagnostics, OpenAgain, SpeakNow
from gui.style.fonts import LEAST, MOST

if TYPE_CHECKING:
    pass


MOST_SLOTS = 64
MOST_AWAY_S = 3600


@dataclass(frozen=True, slots=True)
class Item:
    """One preference with its control, or a custom widget when `key` is empty.

    The item is disabled while `needs` is false.
    """

    key: str
    label: str
    control: Control | Callable[[WindowContext], QWidget]
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

    def __init__(
        self, shortcut_editor: Callable[[WindowContext], QWidget], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._shortcut_editor = shortcut_editor

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

        items = (Item("shortcuts.keys", "", self._shortcut_editor),)
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
