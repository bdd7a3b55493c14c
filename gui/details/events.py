"""The Events tab: a task's history as it grows. Follow keeps the newest in sight."""

from __future__ import annotations

from PySide6.QtCore import QItemSelectionModel, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from engine import words
from gui.details.chips import Chips
from gui.details.event_model import EventModel
from gui.details.event_rows import EventPart
from gui.theme import plain_label, plain_tip

_TIME_CHARS, _KIND_CHARS = 14, 20


class Events(QWidget):
    """`counted` tells how many events there are."""

    counted = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = EventModel(self)
        self.table = _EventTable(self.model, self)
        self.follow = QCheckBox(words.say("events.follow"), self)
        self.follow.setToolTip(plain_tip(words.say("events.follow.hint")))
        self.follow.setChecked(True)
        self._skipped = plain_label("", self, tone="warning")
        self._nothing = plain_label(words.say("events.none"), self, tone="muted")
        self._copy = QPushButton(words.say("events.copy"), self)
        self._chips = Chips(self)
        self.pill = QPushButton(self.table.viewport())
        self.pill.hide()
        self._unseen = 0
        self._lay_out()
        self._connect()
        self.start_over()

    def _lay_out(self) -> None:
        top = QHBoxLayout()
        top.addWidget(self._chips, 1)
        for widget in (self._nothing, self._skipped, self.follow, self._copy):
            top.addWidget(widget)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 0)
        column.setSpacing(6)
        column.addLayout(top)
        column.addWidget(self.table, 1)

    def _connect(self) -> None:
        self._copy.clicked.connect(self.copy)
        QShortcut(QKeySequence.StandardKey.Copy, self.table, self.copy).setContext(
            Qt.ShortcutContext.WidgetShortcut
        )
        self.pill.clicked.connect(lambda: self.follow.setChecked(True))
        self.follow.toggled.connect(self._follow_changed)
        self.table.scrolled_by_hand.connect(self._scrolled)
        self.table.resized.connect(self._place_pill)
        self._chips.changed.connect(self._filter)

    def start_over(self) -> None:
        """Forget everything: another task is shown from now on."""
        self.model.clear()
        self._chips.clear()
        self._unseen = self._lost = 0
        self.follow.setChecked(True)
        self._show_state()

    def add(self, part: EventPart) -> None:
        """Take what the file has grown by, or what stands before; follow the newest only if it
        was in sight, else leave what is read where it is."""
        self._lost += part.skipped
        before = self.model.rowCount()
        if part.older:
            lines = len(part.rows) + part.skipped
            new = 0
            self.model.add_older(part.rows, lines)
        else:
            new = self.model.add(part.rows)
        if part.earlier is not None:
            self.model.stand_behind(part.earlier)
        self._chips.show_counts(self.model.kinds)
        if self.follow.isChecked():
            self.table.scrollToBottom()
        else:
            self._unseen += new
            self.table.scroll_by(self.model.rowCount() - before - new)
        self._show_state()

    def copy(self) -> None:
        """The marked events, or all that are shown, as tab-separated text on the clipboard."""
        chosen = self.table.marked_rows() or range(self.model.rowCount())
        lines = (self.model.row_at(row).line for row in chosen)
        QGuiApplication.clipboard().setText("\n".join(lines))

    def _follow_changed(self, on: bool) -> None:
        if on:
            self._unseen = 0
            self.table.scrollToBottom()
        self._show_state()

    def _scrolled(self, at_end: bool) -> None:
        self.follow.setChecked(at_end)

    def _filter(self, hidden: frozenset[str]) -> None:
        self.model.hide_kinds(hidden)
        if self.follow.isChecked():
            self.table.scrollToBottom()

    def _show_state(self) -> None:
        self._nothing.setVisible(self.model.total == 0)
        plural = "events.skipped.one" if self._lost == 1 else "events.skipped"
        self._skipped.setVisible(self._lost > 0)
        self._skipped.show_text(words.say(plural, count=words.count(self._lost)))
        self.pill.setVisible(self._unseen > 0)
        self.pill.setText(words.say("events.new", count=words.count(self._unseen)))
        self._place_pill()
        self.counted.emit(self.model.total)

    def _place_pill(self) -> None:
        size, room = self.pill.sizeHint(), self.table.viewport()
        left, top = (room.width() - size.width()) // 2, room.height() - size.height() - 6
        self.pill.setGeometry(left, top, size.width(), size.height())


class _EventTable(QTableView):
    """Tells when a person, not new rows, moved the list."""

    scrolled_by_hand = Signal(bool)
    resized = Signal()

    def __init__(self, model: EventModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setModel(model)
        self.setAccessibleName(words.say("details.events"))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setCornerButtonEnabled(False)
        rows, header = self.verticalHeader(), self.horizontalHeader()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setDefaultSectionSize(self.fontMetrics().height() + 6)
        rows.hide()
        header.setHighlightSections(False)
        # It would ask whether each column is selected, all rows through, at every repaint.
        header.setSelectionModel(QItemSelectionModel(model, header))
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
        spans = (selection.at(number) for number in range(selection.size()))
        return sorted({row for span in spans for row in range(span.top(), span.bottom() + 1)})

    def scroll_by(self, rows: int) -> None:
        """Move with what came or went above what is read."""
        self.updateGeometries()  # else the bar still ends where it ended before
        bar = self.verticalScrollBar()
        bar.setValue(bar.value() + rows)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.resized.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
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
