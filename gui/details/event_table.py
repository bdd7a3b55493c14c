"""Table of the newest events, with a filter by kind, and the search in all events of a task."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QEvent, QObject, Qt, Signal
from PySide6.QtGui import QFont, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QApplication, QTableView, QWidget

from engine.model.errors import EngineError
from engine.service.engine import Engine
from engine.text import words
from engine.text.messages import ENGLISH
from gui.context.window_context import Desk
from gui.engine_link.task_events import KEPT, TONES, UNIT_FAILED, EventRow, mark_failures
from gui.style.tables import (
    ALIGNMENT,
    COLOUR,
    DISPLAY,
    FONT,
    ROOT,
    SPOKEN,
    TOOL_TIP,
    AnyIndex,
    show_plain_rows,
)
from gui.style.theme import plain_tip, tone

_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
MOST_KINDS = 10  # unknown kinds with a chip of their own
_HEAD_ROWS = 200  # among which the first progress is searched
OTHER = ""  # chip of all other kinds
TITLES = ("time", "kind", "text")


_place = attrgetter("place")


class EventModel(QAbstractTableModel):
    """Newest events of a task; `add` drops the oldest, and the first row has their number."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[EventRow] = []
        self._shown: list[EventRow] = []
        self._hidden: frozenset[str] = frozenset()
        self._span: tuple[float, float] | None = None
        self._marked: frozenset[int] = frozenset()
        self._dropped = 0
        self._failures: int | None = None  # failed units up to the last event, if known
        self.kinds: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """The number of all events, including hidden and dropped ones."""
        return self._dropped + len(self._rows)

    def add(self, rows: Sequence[EventRow]) -> int:
        """Append events and drop the oldest above the limit; return how many new ones are shown."""
        rows, self._failures = mark_failures(rows, self._failures)
        self._count(rows)
        new = rows[-KEPT:]
        shown = [row for row in new if self._passes(row)]
        self._rows += new
        if shown:
            first = len(self._shown)
            self.beginInsertRows(ROOT, first, first + len(shown) - 1)
            self._shown += shown
            self.endInsertRows()
        over, unshown = len(self._rows) - KEPT, len(rows) - len(new)
        if over > 0 or unshown:
            self._drop(over, unshown)
        return len(shown)

    def add_older(self, rows: Sequence[EventRow], lines: int) -> int:
        """Prepend older events up to the limit; return how many of them are shown.

        They were `lines` of the lines counted before the first event.
        """
        rows, failures = mark_failures(rows, None)
        self._mark_first(failures)
        room = KEPT - len(self._rows)
        new = rows[-room:] if room > 0 else ()
        self._count(new)
        shown = [row for row in new if self._passes(row)]
        self._rows[:0] = new
        if shown:
            first = self._top
            self.beginInsertRows(ROOT, first, first + len(shown) - 1)
            self._shown[first:first] = shown
            self.endInsertRows()
        self.stand_behind(max(0, self._dropped - lines + len(rows) - len(new)))
        return len(shown)

    def _mark_first(self, failures: int | None) -> None:
        """Mark the first loaded progress if its unit failed, with the failures before it."""
        head = enumerate(islice(self._rows, _HEAD_ROWS))
        at = next((at for at, row in head if row.is_progress), None)
        if at is None:
            return
        before, ((after,), _) = self._rows[at], mark_failures([self._rows[at]], failures)
        if after.kind == before.kind:
            return
        self.kinds[self._switch(before.kind)] -= 1
        self._count([after])
        row = self.row_of(before.place)
        self._rows[at] = after
        if row is not None:
            self._shown[row] = after
            self.dataChanged.emit(self.index(row, 0), self.index(row, len(TITLES) - 1))

    def stand_behind(self, lines: int) -> None:
        """Set the number of lines in the file before the first loaded event."""
        before, self._dropped = self._dropped, lines
        if lines and not before:
            self.beginInsertRows(ROOT, 0, 0)
            self._shown.insert(0, self._earlier())
            self.endInsertRows()
        elif before and not lines:
            self.beginRemoveRows(ROOT, 0, 0)
            del self._shown[0]
            self.endRemoveRows()
        elif lines != before:
            self._shown[0] = self._earlier()
            self.dataChanged.emit(self.index(0, 0), self.index(0, len(TITLES) - 1))

    @property
    def kept(self) -> list[EventRow]:
        """All loaded events, including hidden ones, in file order; read-only."""
        return self._rows

    def row_of(self, place: int) -> int | None:
        """Return the row of the event at byte `place`; None if it is not shown."""
        at = bisect_left(self._shown, place, lo=self._top, key=_place)
        found = at < len(self._shown) and self._shown[at].place == place
        return at if found else None

    def has(self, place: int) -> bool:
        """Return whether the event at byte `place` is loaded, shown or hidden."""
        at = bisect_left(self._rows, place, key=_place)
        return at < len(self._rows) and self._rows[at].place == place

    def mark(self, places: frozenset[int]) -> None:
        """Show these events in bold, as search matches."""
        if places == self._marked:
            return
        self._marked = places
        if self._shown:
            last = self.index(len(self._shown) - 1, len(TITLES) - 1)
            self.dataChanged.emit(self.index(0, 0), last, [FONT])

    @property
    def _top(self) -> int:
        """The row of the first event, after the row with the number of earlier ones."""
        return 1 if self._dropped else 0

    def _count(self, rows: Iterable[EventRow]) -> None:
        for row in rows:
            self.kinds[self._switch(row.kind)] += 1

    def _drop(self, number: int, unshown: int) -> None:
        gone = sum(map(self._passes, self._rows[:number]))
        del self._rows[:number]
        if gone:
            start = self._top
            self.beginRemoveRows(ROOT, start, start + gone - 1)
            del self._shown[start : start + gone]
            self.endRemoveRows()
        self.stand_behind(self._dropped + number + unshown)

    def _earlier(self) -> EventRow:
        message = "events.earlier.one" if self._dropped == 1 else "events.earlier"
        text = words.say(message, count=words.count(self._dropped))
        return EventRow(at="", kind="", name="", text=text, tone="")

    def _switch(self, kind: str) -> str:
        """Return the chip's kind for an event kind; it never changes."""
        own = kind in self.kinds or kind in TONES or len(self.kinds) < MOST_KINDS
        return kind if own else OTHER

    def _passes(self, row: EventRow) -> bool:
        if self._span is not None and not self._span[0] <= row.ts <= self._span[1]:
            return False
        return not self._hidden or self._switch(row.kind) not in self._hidden

    def clear(self) -> None:
        self.beginResetModel()
        self._rows, self._shown, self._hidden = [], [], frozenset()
        self._dropped, self._failures = 0, None
        self.kinds = Counter()
        self.endResetModel()

    def hide_kinds(self, hidden: frozenset[str]) -> None:
        """Show all events except these kinds."""
        self._hidden = hidden
        self._choose()

    def keep_to(self, span: tuple[float, float] | None) -> None:
        """Show only events in this time range (ms since 1970); None: all."""
        self._span = span
        self._choose()

    def _choose(self) -> None:
        self.beginResetModel()
        self._shown = [self._earlier()] if self._dropped else []
        self._shown += self._chosen()
        self.endResetModel()

    def _chosen(self) -> list[EventRow]:
        """Filter the events; a call for each of 50,000 would take ten times as long."""
        rows = self._rows
        if self._span is not None:
            start, end = self._span
            rows = [row for row in rows if start <= row.ts <= end]
        if self._hidden:
            kinds = {row.kind for row in rows}
            gone = {kind for kind in kinds if self._switch(kind) in self._hidden}
            rows = [row for row in rows if row.kind not in gone]
        return rows

    def row_at(self, row: int) -> EventRow:
        return self._shown[row]

    def lines(self, rows: Sequence[int]) -> list[str]:
        """Return rows as tab-separated text; all of 50,000 without a lookup for each."""
        shown = self._shown
        if len(rows) == len(shown):
            return [row.line for row in shown]
        return [shown[row].line for row in rows]

    def rowCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self._shown)

    def columnCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(TITLES)

    def data(self, index: AnyIndex, role: int = DISPLAY) -> Any:
        if not index.isValid():
            return None
        row, column = self._shown[index.row()], index.column()
        text = (row.at, row.name, row.text)[column]
        if role == DISPLAY:
            return text
        if role == TOOL_TIP:
            return plain_tip(text) if column == 2 else None
        if role == SPOKEN:
            return f"{row.at}, {row.name}. {row.text}"
        if role == FONT and row.place in self._marked:
            return _bold()
        is_failure = row.kind == UNIT_FAILED
        if role == COLOUR and row.tone and (column == 1 or (column == 2 and is_failure)):
            return tone(row.tone, QApplication.palette())
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY) -> Any:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(TITLES):
            return None
        if role == DISPLAY:
            return words.say(f"events.{TITLES[section]}")
        return _LEFT if role == ALIGNMENT else None


def _bold() -> QFont:
    font = QApplication.font()
    font.setBold(True)
    return font


# Table of events, which distinguishes scrolling by the user from added rows.

_TIME_CHARS, _KIND_CHARS = 14, 20
_CELL_PAD = 16  # pixels around the text of a cell


class EventTable(QTableView):
    """Event table: `scrolled_by_hand` on scrolling by the user; Find keys emit `find_wanted`."""

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
        header.resizeSection(1, max(_KIND_CHARS * character, self._widest_kind()))
        self.verticalScrollBar().actionTriggered.connect(lambda _: self._tell(True))
        self._by_hand = False
        self.verticalScrollBar().valueChanged.connect(lambda _: self._tell(False))

    def _widest_kind(self) -> int:
        """The pixels of the longest name of a kind in this language, with room for the cell."""
        names = (words.say(one) for one in ENGLISH if one.startswith("event."))
        return max(map(self.fontMetrics().horizontalAdvance, names)) + _CELL_PAD

    def current_place(self) -> int:
        """Return the byte position of the current event; -1 without one."""
        index = self.currentIndex()
        return self._events.row_at(index.row()).place if index.isValid() else -1

    def show_row(self, row: int) -> None:
        """Select this event and scroll it to the centre."""
        index = self.model().index(row, 0)
        self.setCurrentIndex(index)
        self.scrollTo(index, QAbstractItemView.ScrollHint.PositionAtCenter)

    def scroll_by(self, rows: int) -> None:
        """Scroll by rows that were added or removed above the visible ones."""
        self.updateGeometries()  # else the scroll bar keeps its old maximum
        bar = self.verticalScrollBar()
        bar.setValue(bar.value() + rows)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.resized.emit()

    def event(self, event: QEvent) -> bool:
        override = event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent)
        if override and _is_find(event):
            event.accept()  # else the window's action handles it
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if _is_find(event):
            self.find_wanted.emit()
            return
        before = self.verticalScrollBar().value()
        super().keyPressEvent(event)
        # A key moves the current row, which scrolls the table without an action.
        if self.verticalScrollBar().value() != before:
            self._judge()

    def _tell(self, started: bool) -> None:
        # An action (wheel, key, drag) is signalled before the bar moves; added rows move the bar
        # without an action.
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
