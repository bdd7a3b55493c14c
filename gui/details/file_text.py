"""A file as text, a part of it at a time, so that one of 500 MB opens at once."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut, QTextCursor
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display_lines
from engine.model.errors import EngineError
from engine.results.file_parts import FilePart
from engine.text.sizes import size_words
from gui.engine_link.services import Desk
from gui.i18n import language
from gui.style.clearable import clearable
from gui.style.fonts import fixed_pitch
from gui.style.theme import plain_label

PART = 64 * 1024  # bytes shown at a time
_WRAP = 1_000  # characters of one line; Qt lays out a longer one for seconds


class FileText(QWidget):
    """Earlier and Later go through the file; the search goes through all of it."""

    _read_so_far = Signal(int, int)  # from a thread

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self._where = ("", "")
        self._part = FilePart(b"", 0, 0)
        self._found = -1
        self.text = QPlainTextEdit(self)
        self.search = QLineEdit(self)
        self._place = plain_label("", self, tone="muted")
        self._state = plain_label("", self, tone="muted")
        self.earlier = QPushButton(self.tr("Earlier"), self)
        self.later = QPushButton(self.tr("Later"), self)
        self.stop = QPushButton(self.tr("Stop"), self)
        self._lay_out()
        self._connect()

    def _lay_out(self) -> None:
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        fixed_pitch(self.text)
        self.text.setAccessibleName(self.tr("The file as text"))
        self.search.setPlaceholderText(self.tr("Search the whole file"))
        self.search.setAccessibleName(self.tr("Search the whole file"))
        clearable(self.search)
        self.search.setFixedWidth(32 * self.fontMetrics().averageCharWidth())
        self.stop.hide()
        row = QHBoxLayout()
        row.addWidget(self.search)
        row.addWidget(self._state)
        row.addWidget(self.stop)
        row.addStretch(1)
        for widget in (self._place, self.earlier, self.later):
            row.addWidget(widget)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(row)
        column.addWidget(self.text, 1)
        self.setFocusProxy(self.text)

    def _connect(self) -> None:
        self.earlier.clicked.connect(lambda: self._go(self._part.start - PART))
        self.later.clicked.connect(lambda: self._go(self._part.start + len(self._part.data)))
        self.search.returnPressed.connect(self.find_next)
        self.search.textChanged.connect(lambda _: self._forget_search())
        self.stop.clicked.connect(self._forget_search)
        self._read_so_far.connect(self._show_progress)
        again = QShortcut(QKeySequence.StandardKey.FindNext, self, self.find_next)
        again.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)

    def show_file(self, task_id: str, name: str) -> None:
        """Show the beginning of this file; the same one again changes nothing."""
        if self._where != (task_id, name):
            self.leave()
            self._where = (task_id, name)
            self.search.clear()
            self._go(0)

    def leave(self) -> None:
        self._where = ("", "")
        self._forget_search()
        self._desk.bridge.call_off(self._name("part"))

    def find_next(self) -> None:
        """Go to the next place at which the words stand, from what is shown on."""
        needle, where = self.search.text(), self._where
        if not needle or not where[1]:
            return
        start = self._found + 1 if self._found >= 0 else self._part.start
        self.stop.show()
        self._desk.bridge.ask(
            lambda engine: engine.reading.find(*where, needle, start, self._read_so_far.emit),
            self._show_found,
            self._tell,
            name=self._name("find"),
        )

    def _name(self, what: str) -> str:
        return f"file {what} {id(self)}"

    def _go(self, start: int) -> None:
        where = self._where
        self._desk.bridge.ask(
            lambda engine: engine.reading.part(*where, max(0, start), PART),
            self._show,
            self._tell,
            name=self._name("part"),
        )

    def _show(self, part: FilePart) -> None:
        self._part = part
        self.text.setPlainText(_shown(part.data))
        end = part.start + len(part.data)
        self.earlier.setEnabled(part.start > 0)
        self.later.setEnabled(end < part.size)
        whole = part.start == 0 and end == part.size
        place = self.tr("{0} to {1} of {2}")
        words = map(size_words, (part.start, end, part.size))
        self._place.show_text(size_words(part.size) if whole else place.format(*words))
        for widget in (self.earlier, self.later):
            widget.setVisible(not whole)
        if part.start <= self._found < end:
            self._mark()

    def _show_found(self, at: int) -> None:
        self.stop.hide()
        if at < 0:
            first = self._found < 0
            self._found = -1
            no_more = self.tr("No more from here on")
            self._state.show_text(self.tr("Not found from here on") if first else no_more)
            return
        self._found = at
        self._state.show_text(self.tr("At {0}").format(size_words(at)))
        if self._part.start <= at < self._part.start + len(self._part.data):
            self._mark()
        else:
            self._go(at - PART // 8)

    def _mark(self) -> None:
        before = self._part.data[: self._found - self._part.start]
        at = len(_shown(before))
        cursor = self.text.textCursor()
        cursor.setPosition(at)
        most = len(self.text.toPlainText())
        cursor.setPosition(min(most, at + len(self.search.text())), QTextCursor.MoveMode.KeepAnchor)
        self.text.setTextCursor(cursor)
        self.text.centerCursor()

    def _forget_search(self) -> None:
        self._desk.bridge.call_off(self._name("find"))
        self._found = -1
        self.stop.hide()
        self._state.show_text("")

    def _show_progress(self, done: int, size: int) -> None:
        if self.stop.isVisible():
            percent = done * 100 // max(1, size)
            self._state.show_text(self.tr("Looked through {0} %").format(percent))

    def _tell(self, error: EngineError) -> None:
        self.stop.hide()
        self._state.show_text(language.sentence(error))


def _shown(data: bytes) -> str:
    """Bytes as text that is safe to look at, its endless lines broken."""
    lines = display_lines(data.decode("utf-8", "replace")).split("\n")
    parts = (line[at : at + _WRAP] for line in lines for at in range(0, max(1, len(line)), _WRAP))
    return "\n".join(parts)
