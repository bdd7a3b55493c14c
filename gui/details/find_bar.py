"""Search bar of the events, with progress."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QToolButton, QWidget

from engine.model.errors import EngineError
from engine.service.engine import Engine
from engine.text.words import count
from gui.context.window_context import Desk
from gui.engine_link.scheduling import Debounce
from gui.style.accessibility import clearable
from gui.style.theme import plain_tip
from gui.style.widgets import ElidedLabel

# Search in all events of a task, including those not in the table.

MOST = 100_000  # matches; a search stops here


class EventFinder(QObject):
    """Matches of one text in a task's events. `changed` is emitted after every step."""

    changed = Signal()
    failed = Signal(EngineError)

    def __init__(self, desk: Desk | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self._task_id = ""
        self._at = self._size = 0
        self.text = ""
        self.places: list[int] = []  # byte positions of lines, ascending
        self.busy = self.stopped = False

    @property
    def percent(self) -> int:
        """The searched part of the file in percent."""
        return min(100, 100 * self._at // self._size) if self._size else 100

    @property
    def too_many(self) -> bool:
        return len(self.places) >= MOST

    @property
    def _name(self) -> str:
        return f"find events {id(self)}"

    def look_for(self, task_id: str, text: str) -> None:
        """Search all events of the task from the start; an empty text ends the search."""
        self.stop()
        self._task_id, self.text = task_id, text.strip()
        self._at = self._size = 0
        self.places, self.stopped = [], False
        self.changed.emit()
        self.go_on()

    def go_on(self) -> None:
        """Search the part that was added to the file; no-op during a search."""
        if self._desk is None or self.busy or self.stopped or not self.text or self.too_many:
            return
        self.busy = True
        self._desk.bridge.ask(self._search, lambda _: None, self._fail, name=self._name)

    def stop(self) -> None:
        """End the search; matches are kept."""
        if self.busy and self._desk is not None:
            self._desk.bridge.call_off(self._name)
            self.busy, self.stopped = False, True
            self.changed.emit()

    def beside(self, place: int, step: int) -> int | None:
        """Return the next match after (step 1) or before (-1) `place`, cyclic; None without
        matches.
        """
        if not self.places:
            return None
        at = bisect_right(self.places, place) if step > 0 else bisect_left(self.places, place) - 1
        return self.places[at % len(self.places)]

    def number_of(self, place: int) -> int:
        """Return the number of the match at `place`, from 1; 0 if it is no match."""
        at = bisect_left(self.places, place)
        return at + 1 if at < len(self.places) and self.places[at] == place else 0

    async def _search(self, engine: Engine) -> None:
        task_id, text = self._task_id, self.text
        while True:
            found = await engine.past.find(task_id, text, self._at)
            last = self.places[-1] if self.places else -1
            self.places += [place for place in found.places if place > last]
            ended = found.next_offset == self._at or self.too_many
            self._at, self._size = found.next_offset, found.size
            self.busy = not ended
            self.changed.emit()
            if ended:
                return

    def _fail(self, error: EngineError) -> None:
        self.busy = False
        self.failed.emit(error)
        self.changed.emit()


PAUSE_MS = 250  # pause of typing before a search starts
_LEAST_CHARS, _MOST_CHARS, _TOLD_CHARS = 20, 40, 14


class FindBar(QWidget):
    """Search bar: `wanted` carries the text after a pause, `stepped` 1 or -1, `left` on Esc."""

    wanted = Signal(str)
    stepped = Signal(int)
    left = Signal()

    def __init__(self, finder: EventFinder, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._finder = finder
        self.field = _Field(self)
        clearable(self.field)
        self.field.setPlaceholderText(self.tr("Find in all events (F3)"))
        self.field.setAccessibleName(self.tr("Find in all events"))
        character = self.fontMetrics().averageCharWidth()
        self.field.setMinimumWidth(_LEAST_CHARS * character)
        self.field.setMaximumWidth(_MOST_CHARS * character)
        self._previous = self._button("▲", self.tr("Previous match (Shift+F3)"))
        self._next = self._button("▼", self.tr("Next match (F3)"))
        self._stop = self._button("✕", self.tr("Stop searching"))
        self._told = ElidedLabel("muted", self, least=_TOLD_CHARS)
        self._pause = Debounce(self, PAUSE_MS, self.settle)
        self._current = 0
        self._lay_out()
        self._connect()
        self._show_state()

    def _lay_out(self) -> None:
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.field, 20)
        for button in (self._previous, self._next, self._stop):
            row.addWidget(button)
        row.addWidget(self._told, 10)
        row.addStretch(1)  # for the rest of the width

    def _connect(self) -> None:
        self.field.textChanged.connect(self._pause.request)
        self.field.returnPressed.connect(lambda: self.step(1))
        self.field.stepped.connect(self.step)
        self.field.left.connect(self.left)
        self._previous.clicked.connect(lambda: self.step(-1))
        self._next.clicked.connect(lambda: self.step(1))
        self._stop.clicked.connect(self._finder.stop)
        self._finder.changed.connect(self._show_state)

    def settle(self) -> None:
        """Search the current text without waiting for the pause."""
        self._pause.cancel()
        if self.field.text().strip() != self._finder.text:
            self.wanted.emit(self.field.text().strip())

    def step(self, way: int) -> None:
        """Go to the next match (1) or the previous one (-1); without a text focus the field."""
        self.settle()
        if self._finder.text:
            self.stepped.emit(way)
        else:
            self.begin()

    def begin(self) -> None:
        """Focus the field and select its text."""
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    def show_current(self, number: int) -> None:
        """Set the number of the current match; 0 for none."""
        self._current = number
        self._show_state()

    def _button(self, sign: str, name: str) -> QToolButton:
        button = QToolButton(self)
        button.setText(sign)
        button.setToolTip(plain_tip(name))
        button.setAccessibleName(name)
        button.setAutoRaise(True)
        return button

    def _show_state(self) -> None:
        finder = self._finder
        found = bool(finder.places)
        self._previous.setEnabled(found)
        self._next.setEnabled(found)
        self._stop.setVisible(finder.busy)
        self._told.show_text(self._words())
        self._told.setVisible(bool(self._told.text()))

    def _words(self) -> str:
        finder = self._finder
        if not finder.text:
            return ""
        number = count(len(finder.places))
        if finder.busy:
            return self.tr("{0} found, {1} % searched").format(number, finder.percent)
        if finder.stopped:
            return self.tr("{0} found, stopped at {1} %").format(number, finder.percent)
        if finder.too_many:
            return self.tr("the first {0} matches").format(number)
        if not finder.places:
            return self.tr("not found")
        if self._current:
            return self.tr("{0} of {1}").format(count(self._current), number)
        return (
            self.tr("1 found") if len(finder.places) == 1 else self.tr("{0} found").format(number)
        )


class _Field(QLineEdit):
    """Search field: Down and Up step between matches; Esc clears, then leaves."""

    stepped = Signal(int)
    left = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key == Qt.Key.Key_Escape:
            if self.text():
                self.clear()
            else:
                self.left.emit()
        elif key in (Qt.Key.Key_Down, Qt.Key.Key_Up):
            self.stepped.emit(1 if key == Qt.Key.Key_Down else -1)
        elif key == Qt.Key.Key_Return and event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.stepped.emit(-1)
        else:
            super().keyPressEvent(event)
