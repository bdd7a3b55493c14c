"""Help for the filter: opened beside the window, its examples can be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

if TYPE_CHECKING:
    from PySide6.QtWidgets import QDialog

    from gui.main_window import MainWindow


def attach(window: MainWindow) -> None:
    Help(window)


class Help(QObject):
    """One help at a time, kept once it was made."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._dialog: QDialog | None = None
        window.filter_bar.help_wanted.connect(self.open)

    def open(self) -> None:
        if self._dialog is None:
            from gui.dialogs.filter_help import FilterHelp

            self._dialog = FilterHelp(self._window.filter_bar.set_text, self._window)
        self._dialog.show()
        self._dialog.raise_()
        self._dialog.activateWindow()
