"""Footer of the start dialog: estimate, preset button, start buttons."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.text.words import count
from gui.start.presets import MOST_PRESETS, MOST_TITLE, Kept
from gui.style.editors import NameLine
from gui.style.icons import wear
from gui.style.labels import ElidedLink
from gui.style.question import BUTTON
from gui.style.theme import PlainLabel, plain_label, plain_tip


class StartFooter(QWidget):
    """Footer; `keep_wanted` carries the name of a new preset."""

    keep_wanted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.expected = 0  # Number of tasks of the list that is being started
        self._number = 0
        self._told, self._place = _muted(), _muted()
        self.reason = ElidedLink(self)
        self.progress = QProgressBar(self)
        self.progress.setVisible(False)
        self.progress.setAccessibleName(self.tr("Tasks started"))
        self.star = QToolButton(self)
        wear(self.star, "star")
        self.star.setText(self.tr("Keep as preset"))
        self.star.setAccessibleName(self.tr("Keep as preset"))
        self.star.setToolTip(plain_tip(self.tr("Keep what is in the form as a preset")))
        self.star.setCheckable(True)
        self.star.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.star.setMinimumHeight(BUTTON.height())
        self._title = _Title(self)
        self._title.setMaxLength(MOST_TITLE)
        self._title.setPlaceholderText(self.tr("Name of the preset, then Enter"))
        self._title.setAccessibleName(self.tr("Name of the preset"))
        self._title.setVisible(False)
        self.another = QPushButton(self.tr("Add && start another"), self)
        self.start = QPushButton(self.tr("Start"), self)
        self.cancel = QPushButton(self.tr("Cancel"), self)
        self._lay_out()

    @property
    def told(self) -> str:
        return self._told.text()

    def tell(self, text: str) -> None:
        """Show a line of text next to the buttons."""
        self._told.show_text(text)

    @property
    def place(self) -> str:
        """The shown target ledger, empty with a single ledger."""
        return self._place.text()

    def show_place(self, words: str) -> None:
        """Show the target ledger, or nothing."""
        self._place.show_text(words)
        self._place.setVisible(bool(words))

    def tell_kept(self, kept: Kept | None) -> None:
        """Report a saved preset, with removed secrets, or none."""
        if kept is None:
            self.tell(self.tr("Not kept: the JSON is no request."))
            return
        if kept.refused:
            words = self.tr("Not kept: there are {0} presets already. Forget one first.")
            self.tell(words.format(MOST_PRESETS))
            return
        words = self.tr("Kept as “{0}”.")
        if kept.lost and kept.replaced:
            words = self.tr("Kept as “{0}”, without its secrets, in place of the former one.")
        elif kept.lost:
            words = self.tr("Kept as “{0}”, without its secrets.")
        elif kept.replaced:
            words = self.tr("Kept as “{0}”, in place of the former one.")
        self.tell(words.format(kept.title))

    def allow(self, allowed: bool, why_not: str) -> None:
        """Enable the start buttons, or show the reason in their tool tip."""
        tip = why_not or plain_tip(self.tr("Start (Ctrl+Enter)"))
        for button in (self.start, self.another):
            button.setEnabled(allowed)
            button.setToolTip(tip)

    def show_reason(self, reason: str) -> None:
        """Show the reason that prevents a start; a click leads to its field."""
        self.reason.show_text(reason)
        self.reason.setVisible(bool(reason))

    def show_list(self, number: int) -> None:
        """Show the number of tasks on the button, if there are several."""
        self._number = number
        self.another.setVisible(number < 2)
        if not self.progress.isVisible():
            self.start.setText(self._verb())

    def show_progress(self, done: int, total: int) -> None:
        self.progress.setRange(0, total)
        self.progress.setValue(done)
        self.tell(self.tr("{0} of {1} started").format(count(done), count(total)))

    def busy(self, busy: bool, number: int = 0) -> None:
        """Show that a start is in progress; several tasks can be stopped."""
        if busy:
            self.expected = number
        several = busy and number > 1
        self.progress.setVisible(several)
        self.start.setText(self.tr("Starting…") if busy else self._verb())
        self.cancel.setText(self.tr("Stop") if several else self.tr("Cancel"))
        if several:
            self.progress.setRange(0, number)
            self.progress.setValue(0)
        tip = self.tr("It is being started.") if busy else self.tr("Start (Ctrl+Enter)")
        for button in (self.start, self.another):
            button.setEnabled(not busy)
            button.setToolTip(plain_tip(tip))

    def _verb(self) -> str:
        if self._number < 2:
            return self.tr("Start")
        return self.tr("Start {0} tasks").format(count(self._number))

    def _lay_out(self) -> None:
        self.star.toggled.connect(self._ask_title)
        self._title.returnPressed.connect(self._keep)
        self._title.left.connect(self._keep_nothing)
        self.start.setDefault(True)
        for button in (self.another, self.cancel):
            button.setAutoDefault(False)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.star)
        row.addWidget(self._title)
        row.addWidget(self._told, 1)
        for button in (self.another, self.start, self.cancel):
            button.setMinimumSize(BUTTON)
            row.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        self._place.hide()
        self.reason.hide()
        for part in (self.progress, self._place, self.reason):
            column.addWidget(part)
        column.addLayout(row)

    def _ask_title(self, wanted: bool) -> None:
        self._title.setVisible(wanted)
        self._told.setVisible(not wanted)
        if wanted:
            self._title.setFocus()

    def _keep_nothing(self) -> None:
        self._title.clear()
        self.star.setChecked(False)
        self.star.setFocus()

    def _keep(self) -> None:
        title = self._title.text().strip()
        if title:
            self.star.setChecked(False)
            self._title.clear()
            self.keep_wanted.emit(title)


class _Title(NameLine):
    """Name field that emits `left` on Escape instead of closing the dialog."""

    left = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            event.accept()
            self.left.emit()
        else:
            super().keyPressEvent(event)


def _muted() -> PlainLabel:
    return plain_label(tone="muted", wrap=True)
