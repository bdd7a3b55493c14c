"""Folder dialogs, and opening folders in the desktop's file manager."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QStandardPaths, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QApplication, QFileDialog, QWidget


def ask_folder(parent: QWidget, title: str, start: str, then: Callable[[Path], object]) -> None:
    """Open a folder dialog at `start` and pass the chosen folder to `then`."""
    dialog = QFileDialog(parent, title, start)
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.fileSelected.connect(lambda path: then(Path(path)))
    dialog.finished.connect(dialog.deleteLater)
    dialog.open()


def documents(last: str = "") -> str:
    """Return the default folder for a file: the last one, the documents or the home folder.

    The first existing one: some systems name a documents folder without creating it.
    """
    named = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
    known = (one for one in (last, named) if one and os.path.isdir(one))
    return next(
        known, QStandardPaths.writableLocation(QStandardPaths.StandardLocation.HomeLocation)
    )


def show_folder(folder: Path) -> None:
    """Open `folder` in the desktop's file manager, or show its path if there is none."""
    if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder))):
        _tell_place(folder)


def _tell_place(folder: Path) -> None:
    from gui.style.question import Question  # Rarely needed

    translate = QCoreApplication.translate
    question = Question(QApplication.activeWindow())
    question.ask(
        translate("Folders", "Show in folder"),
        translate("Folders", "No program here shows folders."),
    )
    question.add_text(str(folder))
    question.add_button("copy", translate("Folders", "Copy the path"))
    question.add_button("close", translate("Folders", "Close"), default=True)

    def act(answer: str) -> None:
        if answer == "copy":
            QGuiApplication.clipboard().setText(str(folder))
        question.deleteLater()

    question.when_answered(act)
    question.open()
