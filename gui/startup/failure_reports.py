"""Reports of parts that failed to load and of unexpected errors, while the window continues."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from engine.logging.logs import log_path
from engine.model.display import display
from engine.model.errors import EngineError
from engine.text.words import count
from gui.i18n import language
from gui.style.banners import Banner, Card, Choice
from gui.style.editors import read_only_text
from gui.style.questions import Question, show_folder
from gui.style.theme import plain_label

if TYPE_CHECKING:
    from PySide6.QtWidgets import QMainWindow


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
        self._shown = read_only_text(
            self, self.tr("What happened, for a report"), details, fixed=True
        )
        self._shown.setMinimumHeight(DETAILS_HEIGHT)
        self.body.addWidget(self._shown)
        self.add_text(self.tr("It is written down in {0}").format(log_file), tone="muted")
        self._again = plain_label(tone="warning", parent=self)
        self._again.hide()
        self.body.addWidget(self._again)
        self._add_helpers()
        self.add_button("quit", self.tr("Quit"))
        self.add_button("go on", self.tr("Continue"), default=True)

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


log = logging.getLogger(__name__)
_CHARS = 300


class PartMissing(EngineError):
    """A part of the window failed to load; the others work."""

    code = "window_part_missing"
    title = "A part of the window is missing"
    sentence = "“{part}” could not be made: {reason} [window_part_missing]"
    advice_text = "Everything else works. Start the program anew; if it comes back, send the log."


class WindowBroken(EngineError):
    """Only the frame of the window could be created."""

    code = "window_broken"
    title = "The window could not be made"
    sentence = "What stands in it could not be made: {reason} [window_broken]"
    advice_text = "Every task is kept. Start the program anew; if it comes back, send the log."


class BrokenParts(QObject):
    """Collect failed parts and report them once the window is shown."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._missing: list[PartMissing] = []
        self.bar: Banner | None = None

    def note(self, part: str, error: Exception) -> None:
        """Record a failed part."""
        log.error("the part %s of the window could not be made", part, exc_info=error)
        self._missing.append(PartMissing(part=part, reason=_reason(error)))

    def tell(self, place: Callable[[Banner], object]) -> None:
        """Show a banner with the failed parts, if any; `place` puts it into the window."""
        if not self._missing:
            return
        self.bar = Banner(self._window)
        place(self.bar)
        lines = [language.sentence(one) for one in self._missing]
        first = self._missing[0]
        text = "\n".join([*lines, language.advice(first)])
        show = Choice(self.tr("Open the log’s folder"), show_log)
        self.bar.tell(language.title(first), text, (show,), "bad")


def show_broken(window: QMainWindow, error: Exception, leave: Callable[[], object]) -> QWidget:
    """Replace the content of `window` by the error and its solutions."""
    told = WindowBroken(reason=_reason(error))
    card = Card("warning", window)
    card.show_words(language.title(told), language.told(told), str(log_path()))
    tr = card.tr
    card.show_choices((Choice(tr("Open the log’s folder"), show_log), Choice(tr("Quit"), leave)))
    window.setCentralWidget(card)
    return card


def show_log() -> None:
    from gui.style.questions import show_folder  # Rarely needed

    show_folder(log_path().parent)


def _reason(error: Exception) -> str:
    return display(f"{type(error).__name__}: {error}", _CHARS)
