"""Events tab: events as they arrive, follow mode, search in the whole file, and “Save log…”."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QHBoxLayout,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import elide_right
from engine.model.errors import EngineError
from engine.model.ledger_ids import plain_id
from engine.service.engine import Engine
from engine.text import words
from engine.text.words import count, size_words
from gui.context.window_context import Desk, TimeRange
from gui.details.details_tab import EDGES, PartBar
from gui.details.event_table import OTHER, EventFinder, EventModel, EventTable
from gui.engine_link.scheduling import Debounce
from gui.engine_link.task_events import EventPart, kind_name
from gui.i18n import language
from gui.style.accessibility import clearable
from gui.style.menu import Menu
from gui.style.questions import documents
from gui.style.search_field import SearchLine
from gui.style.tables import marked_rows
from gui.style.theme import plain_keys, plain_tip
from gui.style.widgets import ElidedLabel, EmptyNote, arrange

# Filter chips for the kinds of events, in as many lines as necessary.

_NAME_CHARS = 24
_GAP = 4


class Chips(QWidget):
    """Filter chips of event kinds; `changed` carries the hidden kinds.

    The minimum width does not depend on the kinds, which other programs name.
    """

    changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(words.say("events.kinds"))
        self._chips: dict[str, QToolButton] = {}

    def clear(self) -> None:
        for chip in self._chips.values():
            chip.hide()
            chip.deleteLater()
        self._chips.clear()

    def show_counts(self, kinds: Counter[str]) -> None:
        for kind, number in kinds.items():
            chip = self._chips.get(kind) or self._add(kind)
            name = words.say("events.other") if kind == OTHER else kind_name(kind)
            name = plain_keys(elide_right(name, _NAME_CHARS))
            chip.setText(words.say("events.chip", name=name, count=count(number)))
        self._place()

    def show_all(self) -> None:
        """Check every chip."""
        for chip in self._chips.values():
            chip.setChecked(True)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _add(self, kind: str) -> QToolButton:
        chip = QToolButton(self)
        chip.setCheckable(True)
        chip.setChecked(True)
        chip.toggled.connect(lambda _: self.changed.emit(self._hidden()))
        chip.show()
        self._chips[kind] = chip
        return chip

    def _place(self) -> None:
        x = y = line = 0
        for chip in self._chips.values():
            size = chip.sizeHint()
            if x and x + size.width() > self.width():
                x, y, line = 0, y + line + _GAP, 0
            chip.setGeometry(x, y, size.width(), size.height())
            x, line = x + size.width() + _GAP, max(line, size.height())
        self.setFixedHeight(y + line)

    def _hidden(self) -> frozenset[str]:
        return frozenset(kind for kind, chip in self._chips.items() if not chip.isChecked())


# Search bar, with progress.

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


class _Field(SearchLine):
    """Search field: Down and Up step between matches."""

    stepped = Signal(int)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key in (Qt.Key.Key_Down, Qt.Key.Key_Up):
            self.stepped.emit(1 if key == Qt.Key.Key_Down else -1)
        elif key == Qt.Key.Key_Return and event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.stepped.emit(-1)
        else:
            super().keyPressEvent(event)


class Events(QWidget):
    """Events tab; `counted` carries the number of events.

    `look` replaces the bridge's reader of a task's events around a byte (-1: the newest), for a
    viewer window that shows another task with its whole time.
    """

    counted = Signal(int)

    def __init__(
        self,
        parent: QWidget | None = None,
        desk: Desk | None = None,
        look: Callable[[str, int], object] | None = None,
    ) -> None:
        super().__init__(parent)
        self._desk, self._task_id = desk, ""
        self._look = look or (desk.bridge.follow_events if desk is not None else _nowhere)
        self._span = desk.span if desk is not None and look is None else TimeRange()
        self.model = EventModel(self)
        self.table = EventTable(self.model, self)
        self.finder = EventFinder(desk, self)
        self.finding = FindBar(self.finder, self)
        self.part = PartBar(self)
        self.follow = QCheckBox(words.say("events.follow"), self)
        self.follow.setToolTip(plain_tip(words.say("events.follow.hint")))
        self.follow.setChecked(True)
        self._skipped, self._saved = ElidedLabel("warning", self), ElidedLabel("muted", self)
        self._nothing = EmptyNote(self.table.viewport())
        self._copy = QPushButton(words.say("events.copy"), self)
        self.save = SaveLog(desk, self.lines, lambda: self._task_id, self._saved)
        self._chips = Chips(self)
        self.pill = QPushButton(self.table.viewport())
        self.pill.hide()
        self._unseen, self._lost, self._wanted = 0, 0, -1
        self._lay_out()
        self._connect()
        self.start_over()

    def _lay_out(self) -> None:
        told = (self._skipped, self._saved)
        top = arrange(QHBoxLayout(), (self.finding, 1), *told, self.follow, self.save, self._copy)
        parts = (top, self._chips, self.part, (self.table, 1))
        arrange(QVBoxLayout(self), *parts, margins=EDGES, spacing=6)

    def _connect(self) -> None:
        self._copy.clicked.connect(self.copy)
        QShortcut(QKeySequence.StandardKey.Copy, self.table, self.copy).setContext(
            Qt.ShortcutContext.WidgetShortcut
        )
        for key, step in (("F3", 1), ("Shift+F3", -1)):
            shortcut = QShortcut(QKeySequence(key), self, lambda step=step: self.finding.step(step))
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self.table.find_wanted.connect(self.finding.begin)
        self.pill.clicked.connect(lambda: self.follow.setChecked(True))
        self.follow.toggled.connect(self._follow_changed)
        self.table.scrolled_by_hand.connect(self._scrolled)
        self.table.resized.connect(self._stay)
        self._chips.changed.connect(self._filter)
        self.finding.wanted.connect(lambda text: self.finder.look_for(self._task_id, text))
        self.finding.stepped.connect(self._step)
        self.finding.left.connect(self.table.setFocus)
        self.finder.changed.connect(lambda: self.model.mark(frozenset(self.finder.places)))
        self.part.back.connect(self._back_to_the_newest)
        self.part.all_time.connect(self._span.clear)
        self._span.changed.connect(self._apply_time_range)

    def start_over(self, task_id: str = "") -> None:
        """Clear everything for another task."""
        self._task_id = task_id
        self.finding.field.clear()
        self.finder.look_for(task_id, "")
        self.save.call_off()
        self._saved.show_text("")
        self._empty()
        self.follow.setChecked(True)

    def _empty(self) -> None:
        self.part.show_place(False)
        self.model.clear()
        self._chips.clear()
        self._unseen, self._lost, self._wanted = 0, 0, -1
        self._show_state()

    def add(self, part: EventPart) -> None:
        """Add new or older events; scroll only in follow mode, else keep the visible rows."""
        self._lost += part.skipped
        before, new = self.model.rowCount(), 0
        if part.older:
            self.model.add_older(part.rows, len(part.rows) + part.skipped)
        else:
            new = self.model.add(part.rows)
            self.finder.go_on()
        if part.earlier is not None:
            self.model.stand_behind(part.earlier)
        self._chips.show_counts(self.model.kinds)
        if self.follow.isChecked():
            self.table.scrollToBottom()
        else:
            self._unseen += new if self._wanted < 0 else 0
            self.table.scroll_by(self.model.rowCount() - before - new)
        self._show_wanted()
        self._show_state()

    def lines(self) -> list[str]:
        """Return the selected events if several, else all shown ones, as tab-separated text."""
        chosen = marked_rows(self.table)
        rows = chosen if len(chosen) > 1 else range(self.model.rowCount())
        return self.model.lines(rows)

    def copy(self) -> None:
        """Copy the selected events, or all shown ones."""
        chosen = marked_rows(self.table) or range(self.model.rowCount())
        QGuiApplication.clipboard().setText("\n".join(self.model.lines(chosen)))

    # Search.

    def _step(self, way: int) -> None:
        here = self.table.current_place()
        place = self.finder.beside(here, way)
        if place is not None:
            self.show_place(place)
            self.finding.show_current(self.finder.number_of(place))

    def show_place(self, place: int) -> None:
        """Show the event at byte `place`, anywhere in the file."""
        self.follow.setChecked(False)
        if self.model.has(place):
            self._reveal(place)
        elif self._desk is not None:
            self._empty()
            self._wanted = place
            self.part.show_place(True)
            self._look(self._task_id, place)

    def _reveal(self, place: int) -> None:
        row = self.model.row_of(place)
        if row is None:  # hidden by a chip or the time range, which the search overrides
            self._chips.show_all()
            if self.model.row_of(place) is None:
                self._span.clear()
            row = self.model.row_of(place)
        if row is not None:
            self.table.show_row(row)

    def _show_wanted(self) -> None:
        if self._wanted >= 0 and self.model.has(self._wanted) and self.table.current_place() < 0:
            self._reveal(self._wanted)

    def _back_to_the_newest(self) -> None:
        if self._desk is not None:
            self._empty()
            self._look(self._task_id, -1)
        self.follow.setChecked(True)

    # Time range.

    def _apply_time_range(self) -> None:
        span = self._span.range
        self.part.show_span(span)
        self.model.keep_to(span)
        kept = self.model.kept
        if span is not None:
            self.follow.setChecked(False)
            self.table.scrollToTop()
            if kept and kept[0].place > 0 and span[0] < kept[0].ts:
                self._fetch(span[0])
        elif self.follow.isChecked():
            self.table.scrollToBottom()

    def _fetch(self, ts_ms: float) -> None:
        """Load events of this time, which are not in memory."""
        assert self._desk is not None
        task_id = self._task_id

        async def work(engine: Engine) -> int:
            return await engine.past.place_of(task_id, ts_ms)

        self._desk.bridge.ask(work, self.show_place, name="find a moment")

    # Follow mode.

    def _follow_changed(self, on: bool) -> None:
        if on and self.part.is_place:
            self._back_to_the_newest()
        if on:
            self._unseen = 0
            self.table.scrollToBottom()
        self._show_state()

    def _scrolled(self, at_end: bool) -> None:
        self.follow.setChecked(at_end and not self.part.is_place)

    def _filter(self, hidden: frozenset[str]) -> None:
        self.model.hide_kinds(hidden)
        if self.follow.isChecked():
            self.table.scrollToBottom()

    def _show_state(self) -> None:
        self._nothing.tell("" if self.model.total else words.say("events.none"))
        plural = "events.skipped.one" if self._lost == 1 else "events.skipped"
        self._skipped.setVisible(self._lost > 0)
        self._skipped.show_text(words.say(plural, count=count(self._lost)))
        self.pill.setVisible(self._unseen > 0)
        self.pill.setText(words.say("events.new", count=count(self._unseen)))
        self._place_pill()
        if not self.part.is_place:
            self.counted.emit(self.model.total)

    def _stay(self) -> None:
        """Keep the visible rows after a change of height."""
        if self.follow.isChecked():
            self.table.scrollToBottom()
        self._place_pill()

    def _place_pill(self) -> None:
        size, room = self.pill.sizeHint(), self.table.viewport()
        left, top = (room.width() - size.width()) // 2, room.height() - size.height() - 6
        self.pill.setGeometry(left, top, size.width(), size.height())


def _nowhere(_task_id: str, _place: int) -> None:
    """Do nothing, for a panel without services."""


LOOK_MS = 100


class SaveLog(QPushButton):
    """Button with a menu of two formats; while writing it shows progress and cancels.

    `lines` returns the shown events, `task_id` their task, both on use.
    """

    saved = Signal(str)
    ended = Signal()  # saved or not

    def __init__(
        self,
        desk: Desk | None,
        lines: Callable[[], list[str]],
        task_id: Callable[[], str],
        told: ElidedLabel,
    ) -> None:
        super().__init__()
        self._desk, self._lines, self._task_id, self._told = desk, lines, task_id, told
        self._far = (0, 0)
        self._menu = Menu(self)
        self._menu.addAction(self.tr("&This view…")).triggered.connect(lambda: self.ask(False))
        self._menu.addAction(self.tr("&Everything…")).triggered.connect(lambda: self.ask(True))
        self._look = QTimer(self, interval=LOOK_MS)
        self._look.timeout.connect(self._show_progress)
        self.clicked.connect(self._click)
        self._rest()

    @property
    def _name(self) -> str:
        return f"save events {id(self)}"

    def ask(self, everything: bool) -> None:
        """Ask for a file name, and write the events."""
        ending = "jsonl" if everything else "txt"
        if self._desk is None:
            return
        folder = documents(self._desk.preferences.get("export.folder", str))
        title = self.tr("Save all events") if everything else self.tr("Save the events shown")
        dialog = QFileDialog(self.window(), title, folder)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix(ending)
        dialog.selectFile(f"events-{plain_id(self._task_id())}.{ending}")
        dialog.fileSelected.connect(lambda place: self.save(Path(place), everything))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def save(self, place: Path, everything: bool) -> None:
        """Write to `place`; `saved` is emitted when the file is complete."""
        if self._desk is None:
            return
        self._desk.preferences.set("export.folder", str(place.parent))
        task_id, self._far = self._task_id(), (0, 0)
        lines = [] if everything else self._lines()

        async def work(engine: Engine) -> int:
            if everything:
                return await engine.past.save_events(task_id, place, self._note)
            return await engine.past.save_lines(lines, place)

        # None removes the menu, against Qt's stub
        self.setMenu(None)  # type: ignore[arg-type]
        self.setText(self.tr("Cancel saving"))
        self._look.start()
        then = partial(self._done, place)
        self._desk.bridge.ask(work, then, self._fail, name=self._name)

    def call_off(self) -> None:
        """Cancel writing, when another task is shown; the partial file is deleted."""
        if self._desk is not None and self._look.isActive():
            self._desk.bridge.call_off(self._name)
            self._rest()

    def _note(self, done: int, size: int) -> None:
        self._far = (done, size)  # called in a thread; the timer reads it

    def _click(self) -> None:
        if self._look.isActive():
            self.call_off()
            self._told.show_text(self.tr("Not saved."))

    def _show_progress(self) -> None:
        done, size = self._far
        if size:
            self._told.show_text(self.tr("Saving: {0} %").format(100 * done // size))

    def _done(self, place: Path, size: int) -> None:
        told = self.tr("Saved {0} as {1}").format(size_words(size), place.name)
        self._told.show_text(told, more=str(place))
        self._rest()
        self.saved.emit(str(place))
        self.ended.emit()

    def _fail(self, error: EngineError) -> None:
        self._told.show_text(language.told(error))
        self._rest()
        self.ended.emit()

    def _rest(self) -> None:
        self._look.stop()
        self.setMenu(self._menu)
        self.setText(self.tr("Save log"))
        self.setEnabled(self._desk is not None)
