"""The table of events: plain rows, and the difference between new rows and a hand that scrolls."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QTableView, QWidget

from engine.text import words
from gui.details.event_model import EventModel
from gui.style.plain_rows import show_plain_rows

_TIME_CHARS, _KIND_CHARS = 14, 20


class EventTable(QTableView):
    """Tells when a person, not new rows, moved the list; the keys of Find ask for `find_wanted`
    here, and not for the filter of the tasks."""

    scrolled_by_hand = Signal(bool)
    resized = Signal()
    find_wanted = Signal()

    def __init__(self, model: EventModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._events = model
        self.setModel(model)
        self.setAccessibleName(words.say("details.events"))
        show_plain_rows(self)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        header = self.horizontalHeader()
        header.setStretchLastSection(True)
        character = self.fontMetrics().averageCharWidth()
        header.resizeSection(0, _TIME_CHARS * character + 16)
        header.resizeSection(1, _KIND_CHARS * character)
        self.verticalScrollBar().actionTriggered.connect(lambda _: self._tell(True))
        self._by_hand = False
        self.verticalScrollBar().valueChanged.connect(lambda _: self._tell(False))

    def marked_rows(self) -> list[int]:
        """From top to bottom; by spans, because an index for each of 50,000 rows takes time."""
        selection = self.selectionModel().selection()
        spans = [selection.at(number) for number in range(selection.size())]
        if len(spans) == 1:
            return list(range(spans[0].top(), spans[0].bottom() + 1))
        return sorted({row for span in spans for row in range(span.top(), span.bottom() + 1)})

    def current_place(self) -> int:
        """Where the line of the current event begins in the file; -1 without one."""
        index = self.currentIndex()
        return self._events.row_at(index.row()).place if index.isValid() else -1

    def show_row(self, row: int) -> None:
        """Make this event the current one, in the middle of what is seen."""
        index = self.model().index(row, 0)
        self.setCurrentIndex(index)
        self.scrollTo(index, QAbstractItemView.ScrollHint.PositionAtCenter)

    def scroll_by(self, rows: int) -> None:
        """Move with what came or went above what is read."""
        self.updateGeometries()  # else the bar still ends where it ended before
        bar = self.verticalScrollBar()
        bar.setValue(bar.value() + rows)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.resized.emit()

    def event(self, event: QEvent) -> bool:
        override = event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent)
        if override and _is_find(event):
            event.accept()  # else the window's own action takes it
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if _is_find(event):
            self.find_wanted.emit()
            return
        before = self.verticalScrollBar().value()
        super().keyPressEvent(event)
        # A key moves the current row, and that the list: no action announces it.
        if self.verticalScrollBar().value() != before:
            self._judge()

    def _tell(self, started: bool) -> None:
        # An action (wheel, key, drag) is announced before the bar moves; rows that are
        # added move it without one.
        if started:
            self._by_hand = True
            return
        if self._by_hand:
            self._by_hand = False
            self._judge()

    def _judge(self) -> None:
        bar = self.verticalScrollBar()
        self.scrolled_by_hand.emit(bar.value() >= bar.maximum())


def _is_find(event: QEvent) -> bool:
    return isinstance(event, QKeyEvent) and event.matches(QKeySequence.StandardKey.Find)
