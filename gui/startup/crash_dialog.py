"""Dialog for unexpected errors, with details for a report."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QPushButton, QWidget

from engine.text.words import count
from gui.style.folders import show_folder
from gui.style.fonts import fixed_pitch
from gui.style.question import Question
from gui.style.theme import plain_label

DETAILS_HEIGHT, WIDTH = 90, 620


class CrashDialog(Question):
    """Dialog shown once for repeated errors; copying leaves it open."""

    def __init__(self, details: str, log_file: Path, parent: QWidget) -> None:
        super().__init__(parent)
        self._details, self._log_file = details, log_file
        self._more = 0
        self.setMinimumWidth(WIDTH)
        self.ask(self.tr("Unexpected error"), self.tr("Something unexpected went wrong"))
        self.add_text(
            self.tr(
                "The window goes on, and running tasks with it. If it happens again, quit and "
                "start anew: everything in the ledger is kept."
            )
        )
        self._shown = QPlainTextEdit(details, self)
        self._shown.setReadOnly(True)
        self._shown.setTabChangesFocus(True)
        self._shown.setAccessibleName(self.tr("What happened, for a report"))
        fixed_pitch(self._shown)
        self._shown.setMinimumHeight(DETAILS_HEIGHT)
        self.body.addWidget(self._shown)
        self.add_text(self.tr("It is written down in {0}").format(log_file), tone="muted")
        self._again = plain_label(tone="warning", parent=self)
        self._again.hide()
        self.body.addWidget(self._again)
        self._add_helpers()
        self.add_button("quit", self.tr("Quit"))
        self.add_button("go on", self.tr("Go on"), default=True)

    def count_more(self) -> None:
        """Count a further error while the dialog is open."""
        self._more += 1
        words = (
            self.tr("It went wrong once more meanwhile; the log has it.")
            if self._more == 1
            else self.tr("It went wrong {0} times more meanwhile; the log has them.")
        )
        self._again.show_text(words.format(count(self._more)))
        self._again.show()

    def _add_helpers(self) -> None:
        row = QHBoxLayout()
        for words, act in (
            (self.tr("&Copy the details"), self._copy),
            (self.tr("Open the &log’s folder"), lambda: show_folder(self._log_file.parent)),
        ):
            button = QPushButton(words, self)
            button.setAutoDefault(False)
            button.clicked.connect(lambda _=False, act=act: act())
            row.addWidget(button)
        row.addStretch()
        self.body.addLayout(row)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._details)
