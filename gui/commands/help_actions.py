"""Actions for settings, doctor, statistics, shortcuts and help dialogs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QDialog

from engine.model.config import Settings
from engine.model.proxies import DefaultProxy, is_bypass
from gui.commands.bulk_work import Reports
from gui.context.preferences import Preferences
from gui.context.window_context import WindowContext
from gui.settings.shortcuts import Shortcuts
from gui.style.theme import application


def as_chosen(settings: Settings, preferences: Preferences) -> Settings:
    """Return the engine settings with the preferences; command line options take precedence."""
    slots = preferences.get("engine.slots", int)
    path = settings.browser_path or preferences.get("browser.path", str) or None
    files = preferences.get("commands.allow_files", str)
    bypass = (text for text in preferences.get("proxy.bypass", list) if isinstance(text, str))
    proxy = DefaultProxy(
        proxy=preferences.get("proxy.address", str),
        username=preferences.get("proxy.username", str),
        password=preferences.get("proxy.password", str),
        bypass=tuple(filter(is_bypass, bypass)),
        environ=settings.environ,
    )
    return replace(
        settings,
        away_s=float(preferences.get("engine.away_s", int)),
        slots=slots if slots > 0 else settings.slots,
        browser_path=path,
        proxy=settings.proxy if settings.proxy.proxy else proxy,
        cluster=preferences.get("cluster.address", str),
        allow_files=settings.allow_files or (Path(files) if files else None),
    )


class HelpActions(QObject):
    """Open each dialog once; a second request raises it."""

    def __init__(self, ctx: WindowContext, reports: Reports, shortcuts: Shortcuts) -> None:
        super().__init__(ctx.parent)
        self._reports = reports
        self._ctx, self._keys = ctx, shortcuts
        self._open: dict[str, QDialog] = {}
        self._makers = {
            "settings": self._settings,
            "doctor": self._doctor,
            "shortcuts": self._shortcuts,
            "help": self._help,
            "statistics": self._statistics,
        }
        application().applicationStateChanged.connect(self._look_at_settings)
        settings = self._add(
            "settings", self.tr("&Settings…"), ["Ctrl+,"], "settings", self.tr("Settings")
        )
        settings.setMenuRole(QAction.MenuRole.PreferencesRole)
        self._add("doctor", self.tr("&Diagnostics…"), [])
        self._add("statistics", self.tr("&Statistics…"), [])
        self._add("help", self.tr("&Help"), ["F1"])
        debug = ctx.actions.add("debug_info", self.tr("&Copy debug info"))
        debug.triggered.connect(self._copy_facts)
        ctx.ledgers.page_wanted.connect(lambda: self._show_page("ledgers"))
        self._add("shortcuts", self.tr("&Keyboard shortcuts…"), ["Ctrl+/"])

    def show(self, key: str) -> None:
        """Open or raise the dialog of this action."""
        if key in self._open:
            self._open[key].raise_()
            self._open[key].activateWindow()
            return
        dialog = self._open[key] = self._makers[key]()
        dialog.finished.connect(lambda _: self._forget(key))
        dialog.open()

    def _add(
        self, key: str, text: str, keys: list[str], sign: str = "", short: str = ""
    ) -> QAction:
        action = self._ctx.actions.add(key, text, keys, sign, short)
        action.triggered.connect(lambda: self.show(key))
        return action

    def _settings(self) -> QDialog:
        from gui.settings.settings_dialog import SettingsDialog

        return SettingsDialog(self._ctx, self._keys)

    def _doctor(self) -> QDialog:
        from gui.commands.help_dialog import DoctorDialog

        return DoctorDialog(self._ctx)

    def _shortcuts(self) -> QDialog:
        from gui.settings.shortcuts import ShortcutSheet

        sheet = ShortcutSheet(self._ctx.actions, self._ctx.parent)
        sheet.change_wanted.connect(self.change_shortcuts)
        return sheet

    def _statistics(self) -> QDialog:
        from gui.commands.statistics_dialog import StatisticsDialog

        return StatisticsDialog(self._ctx)

    def _help(self) -> QDialog:
        from gui.commands.help_dialog import HelpDialog

        return HelpDialog(self._ctx.parent)

    def _copy_facts(self) -> None:
        from gui.commands.help_dialog import facts

        ctx = self._ctx
        told = facts(ctx.bridge.look_at_health(), ctx.ledgers.states)
        QGuiApplication.clipboard().setText(told)
        self._reports.say(self.tr("Versions and places were copied: paste them anywhere."))

    def show_programs(self) -> None:
        """Open the settings page of other programs."""
        self._show_page("programs.")

    def change_shortcuts(self) -> None:
        """Open the settings page of shortcuts."""
        self._show_page("shortcuts.")

    def _show_page(self, name: str) -> None:
        from gui.settings.settings_dialog import SettingsDialog

        self.show("settings")
        dialog = self._open["settings"]
        if isinstance(dialog, SettingsDialog):
            dialog.show_page(name)

    def _look_at_settings(self, state: Qt.ApplicationState) -> None:
        """Reload the preferences, which another window may have changed."""
        if state == Qt.ApplicationState.ApplicationActive:
            self._ctx.preferences.refresh()

    def _forget(self, key: str) -> None:
        self._open.pop(key).deleteLater()
