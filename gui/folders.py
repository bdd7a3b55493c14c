"""Folders of this machine: asking for one, and showing one in the desktop's file manager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QWidget


def ask_folder(parent: QWidget, title: str, start: str, then: Callable[[Path], object]) -> None:
    """Let the user choose a folder, beginning at `start`; `then` gets it, or is never called."""
    dialog = QFileDialog(parent, title, start)
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.fileSelected.connect(lambda path: then(Path(path)))
    dialog.finished.connect(dialog.deleteLater)
    dialog.open()


def show_folder(folder: Path) -> None:
    """Open `folder` in the desktop's file manager."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))
