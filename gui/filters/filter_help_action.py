"""Help for the filter: opened beside the window, its examples can be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

if TYPE_CHECKING:
    from PySide6.QtWidgets import QDialog

    from gui.window.main_window import MainWindow


def attach(window: MainWindow) -> None:
    Help(window)


class Help(QObject):
    """One help at a time, kept once it was made."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._dialog: QDialog | None = None
        self._several = False
        window.filter_bar.help_wanted.connect(self.open)

    def open(self) -> None:
        several = bool(self._window.beside.states)
        if self._dialog is None or several != self._several:
            from gui.filters.filter_help import FilterHelp

            put, self._several = self._window.filter_bar.set_text, several
            self._dialog = FilterHelp(put, self._window, several=several)
        self._dialog.show()
        self._dialog.raise_()
        self._dialog.activateWindow()
