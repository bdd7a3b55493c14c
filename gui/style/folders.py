"""Folders of this machine: asking for one, and showing one in the desktop's file manager."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QStandardPaths, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QApplication, QFileDialog, QWidget


def ask_folder(parent: QWidget, title: str, start: str, then: Callable[[Path], object]) -> None:
    """Let the user choose a folder, beginning at `start`; `then` gets it, or is never called."""
    dialog = QFileDialog(parent, title, start)
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.fileSelected.connect(lambda path: then(Path(path)))
    dialog.finished.connect(dialog.deleteLater)
    dialog.open()


def documents(last: str = "") -> str:
    """Where a file is to be put: the folder of the last one, the documents, else the home folder.

    The first of them that is there: some systems name a folder for documents and make none.
    """
    named = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
    known = (one for one in (last, named) if one and os.path.isdir(one))
    return next(
        known, QStandardPaths.writableLocation(QStandardPaths.StandardLocation.HomeLocation)
    )


def show_folder(folder: Path) -> None:
    """Open `folder` in the desktop's file manager; without one, say where it is."""
    if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder))):
        _tell_place(folder)


def _tell_place(folder: Path) -> None:
    from gui.style.question import Question  # seldom needed

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
