"""List of a task's units with search and filter chips, read in parts, and the Items tab with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication, QHBoxLayout, QMenu, QPushButton, QVBoxLayout, QWidget

from engine.contracts.contract_progress import ContractView
from engine.model.display import ELLIPSIS, clipboard_cell
from engine.model.errors import EngineError
from engine.model.kind_traits import traits_of
from engine.model.records import TaskRecord, TaskView
from engine.results.unit_filter import UnitFilter
from engine.results.units import Unit, UnitPart, UnitState
from engine.text.words import count
from gui.context.window_context import Desk
from gui.details.details_tab import EDGES, DetailTab, PartBar
from gui.details.unit_bars import ColumnChoice, FilterMistake, KindChips, UnitStrip, is_address
from gui.details.unit_columns import (
    ITEM_COLUMNS,
    KEYS_OF_NAMES,
    PROSE,
    REASONS,
    SHARING,
    TONES,
    UnitColumn,
    kind_word,
    least_of,
    search_example,
    spoken,
    title_of,
    width_of,
)
from gui.engine_link.scheduling import Debounce, SlicedWork, Throttle
from gui.i18n import language
from gui.style.menu import Menu
from gui.style.questions import open_in_browser
from gui.style.search_field import search_field
from gui.style.tables import (
    ALIGNMENT,
    COLOUR,
    DISPLAY,
    ROOT,
    SPOKEN,
    TOOL_TIP,
    AnyIndex,
    PlainTable,
    marked_rows,
)
from gui.style.theme import plain_tip, tone
from gui.style.widgets import ElidedLabel, EmptyNote, arrange

# Table model for up to 200,000 units, filtered and sorted without a Qt proxy.

_MIDDLE = Qt.AlignmentFlag.AlignVCenter
_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft | _MIDDLE, Qt.AlignmentFlag.AlignRight | _MIDDLE
KEPT = 200_000  # rows; of a longer result an export has all
_SLICE_MS = 4
EVERYTHING = UnitFilter()


class UnitModel(QAbstractTableModel):
    """Units of a task; `changed` is emitted when rows or counts change."""

    changed = Signal()

    def __init__(self, columns: Sequence[UnitColumn], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.columns = tuple(columns)
        self._by_answer = any(column.key == "code" for column in columns)
        self._all: list[Unit] = []
        self._shown: list[Unit] = []
        self._filter = EVERYTHING
        self._named: Callable[[str], bool] | None = None
        self._sort: tuple[int, bool] | None = None
        self._unsorted = False
        self._passed: list[Unit] = []
        self._filtering = SlicedWork(self, budget_ms=_SLICE_MS)
        self._filtering.done.connect(self._show_passed)
        self.beyond = 0
        self.has_reasons = False
        self._noun = ""
        self.kinds: Counter[str] = Counter()
        self._used = dict.fromkeys((at for at, one in enumerate(columns) if one.is_rare), False)
        self._longest: dict[int, str] = {}

    @property
    def longest(self) -> Mapping[int, str]:
        """The longest text of each column that shares the room by it."""
        return self._longest

    @property
    def rare_columns(self) -> Mapping[int, bool]:
        """The columns that are hidden by default, and whether they have a value."""
        return self._used

    @property
    def total(self) -> int:
        return len(self._all)

    def unit_at(self, row: int) -> Unit:
        return self._shown[row]

    @property
    def filter(self) -> UnitFilter:
        """The filter of the shown rows."""
        return self._filter

    def units(self) -> Sequence[Unit]:
        """Return all units in their own order, shown or hidden."""
        return self._all

    def clear(self) -> None:
        self.beginResetModel()
        self._all, self._shown = [], []
        self._filtering.cancel()
        self.kinds, self._used = Counter(), dict.fromkeys(self._used, False)
        self.beyond, self.has_reasons, self._longest = 0, False, {}
        self.endResetModel()
        self.changed.emit()

    def add(self, units: Sequence[Unit]) -> None:
        """Append units; a sorted table places them at `settle`."""
        room = KEPT - len(self._all)
        self.beyond += max(0, len(units) - room)
        units = units[: max(0, room)]
        self._all.extend(units)
        self.has_reasons = self.has_reasons or any(one.reason for one in units)
        for at in (at for at, used in self._used.items() if not used):
            column = self.columns[at]
            self._used[at] = any(map(column.has or column.value, units))
        self._note_longest(units)
        self.kinds.update(one.answer if self._by_answer else one.state for one in units)
        if not self._filtering.is_active:  # else the running filter reaches them
            fit = [one for one in units if self._passes(one)]
            if fit:
                first = len(self._shown)
                self.beginInsertRows(ROOT, first, first + len(fit) - 1)
                self._shown += fit
                self.endInsertRows()
                self._unsorted = self._sort is not None
        self.changed.emit()

    def _note_longest(self, units: Sequence[Unit]) -> None:
        if not units:
            return
        for at, column in enumerate(self.columns):
            if (told := SHARING.get(column.key)) is not None:
                text = column.text(max(units, key=lambda unit: len(told(unit))))
                self._longest[at] = max(self._longest.get(at, ""), text, key=len)

    def name_columns(self, noun: str) -> None:
        """Set what the units are: pages, commands, actions (`KindTraits.unit_noun`)."""
        self._noun = noun
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self.columns) - 1)

    def settle(self) -> None:
        """Sort appended units after the last one."""
        if self._unsorted and self._sort is not None and not self._filtering.is_active:
            self.layoutAboutToBeChanged.emit()
            self._arrange(self._shown)
            self.layoutChanged.emit()

    def set_filter(self, kinds: frozenset[str], text: str) -> None:
        """Filter the rows; a long table in slices, during which the old rows stay."""
        self._filter = UnitFilter.of(kinds, text, by_answer=self._by_answer)
        self._begin_to_filter()

    def keep_named(self, named: Callable[[str], bool] | None) -> None:
        """Show only units whose name passes `named`; None: all."""
        self._named = named
        self._begin_to_filter()

    def _begin_to_filter(self) -> None:
        self._passed = []
        self._filtering.start(self._filter_all())
        self._filtering.advance()

    def _passes(self, unit: Unit) -> bool:
        return (self._named is None or self._named(unit.name)) and self._filter.passes(unit)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._sort = (column, order == Qt.SortOrder.DescendingOrder) if column >= 0 else None
        self.layoutAboutToBeChanged.emit()
        marked = [self._shown[one.row()] for one in self.persistentIndexList()]
        before = self.persistentIndexList()
        self._arrange(self._shown)
        if before:
            at = {unit.number: row for row, unit in enumerate(self._shown)}
            after = [
                self.index(at[unit.number], old.column())
                for unit, old in zip(marked, before, strict=True)
            ]
            self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()

    def rowCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self._shown)

    def columnCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: AnyIndex, role: int = DISPLAY) -> Any:
        if not index.isValid():
            return None
        unit, column = self._shown[index.row()], self.columns[index.column()]
        if role == DISPLAY:
            return column.text(unit)
        if role == ALIGNMENT:
            return _RIGHT if column.is_number else _LEFT
        if role == COLOUR and column.is_toned:
            kind = unit.answer if column.key == "code" else unit.state
            return tone(TONES.get(kind, "muted"), QApplication.palette())
        if role == COLOUR and column.key in REASONS and unit.state == UnitState.FAILED:
            return tone(TONES[UnitState.FAILED], QApplication.palette())
        if role == TOOL_TIP:
            return plain_tip(column.text(unit))
        return spoken(unit) if role == SPOKEN else None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY) -> Any:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(self.columns):
            return None
        column = self.columns[section]
        if role == DISPLAY:
            return title_of(column.key, self._noun)
        if role == ALIGNMENT:
            return _RIGHT if column.is_number else _LEFT
        if role == TOOL_TIP and self._by_answer and (example := search_example(column)):
            said = self.tr("Search with {0}").format(example)
            return plain_tip(f"{title_of(column.key, self._noun)}\n{said}")
        return None

    def _filter_all(self) -> Iterator[None]:
        for number, unit in enumerate(self._all, 1):  # a short table is always filtered at once
            if self._passes(unit):
                self._passed.append(unit)
            if number % 64 == 0:
                yield

    def _show_passed(self) -> None:
        self.beginResetModel()
        self._shown, self._passed = self._passed, []
        self._arrange(self._shown)
        self.endResetModel()
        self.changed.emit()

    def _arrange(self, units: list[Unit]) -> None:
        self._unsorted = False
        if self._sort is None:
            units.sort(key=lambda unit: unit.number)
            return
        at, down = self._sort
        value = self.columns[at].value
        units.sort(key=lambda unit: unit.number)
        units.sort(key=value, reverse=down)


AGAIN_MS = 500  # minimum interval of updates for a live task
KINDS = ("done", "2xx", "3xx", "4xx", "5xx", "failed", "skipped", "refused", "running", "waiting")
_TYPED_MS = 120
_SEARCH_CHARS = (26, 52)  # least and most, as there is room
_TERMS = "words:<100, status:404, -description:*"


class UnitList(QWidget):
    """List of units; `chosen` carries the current unit, `activated` an opened one.

    With `choosable` the user chooses its columns. `counted` is emitted when the counts change.
    `more` may yield rows of other kinds after the units. `retry` is offered for the address of a
    failed page while it is set.
    """

    chosen = Signal(object)
    activated = Signal(object)
    counted = Signal()

    def __init__(
        self,
        desk: Desk,
        columns: Sequence[UnitColumn],
        parent: QWidget | None = None,
        *,
        choosable: bool = False,
    ) -> None:
        super().__init__(parent)
        self._desk = desk
        self._task_id = ""
        self._resume = 0
        self._reading = self._live = False
        self._problem = ""
        self._lost = 0  # lines that could not be read
        self.more: Callable[[str, int], AsyncIterator[Sequence[Unit]]] | None = None
        self.model = UnitModel(columns, self)
        widths = [width_of(one) for one in columns]
        least = [least_of(one) for one in columns] if choosable else ()
        grows = next(at for at, column in enumerate(columns) if column.key in KEYS_OF_NAMES)
        self.table = PlainTable(
            self.model, self.tr("Items"), widths, self, grows=grows, least=least
        )
        self.table.elide_right([at for at, one in enumerate(columns) if one.key in PROSE])
        self.table.let_sort()
        self.columns = self._column_choice() if choosable else None
        self.show_columns()
        self.search = search_field(self, self.tr("Search items"))
        self.search.setToolTip(plain_tip(self.tr("Words, or terms such as {0}").format(_TERMS)))
        self.mistake = FilterMistake(self)
        self.chips = KindChips(KINDS, kind_word, self)
        self._state = ElidedLabel("muted", self)
        self._nothing = EmptyNote(self.table.viewport())
        self.strip = UnitStrip(desk, self)
        self.retry: Callable[[str], object] | None = None
        self._typed = Debounce(self, _TYPED_MS, self._filter)
        self._again = Throttle(self, AGAIN_MS, self._read)
        self._lay_out()
        self._connect()

    def _column_choice(self) -> ColumnChoice:
        def title(at: int) -> str:
            return str(self.model.headerData(at, Qt.Orientation.Horizontal))

        return ColumnChoice(
            self.table,
            self.model.columns,
            lambda: self.model.rare_columns,
            title,
            self._desk.preferences,
        )

    def _lay_out(self) -> None:
        character = self.fontMetrics().averageCharWidth()
        self.search.setMinimumWidth(_SEARCH_CHARS[0] * character)
        self.search.setMaximumWidth(_SEARCH_CHARS[1] * character)
        self.top = arrange(QHBoxLayout(), (self.search, 3), self.chips, 1, self._state)
        if self.columns is not None:
            self.top.insertWidget(1, self.columns.button)
        parts = (self.top, self.mistake, (self.table, 1), self.strip)
        arrange(QVBoxLayout(self), *parts, margins=EDGES, spacing=6)
        self.setFocusProxy(self.table)

    def _connect(self) -> None:
        self.search.textChanged.connect(self._typed.request)
        self.search.left.connect(self.table.setFocus)
        self.chips.changed.connect(self._typed.run)
        self.mistake.corrected.connect(self._search_for)
        self.model.changed.connect(self._show_state)
        self.table.activated.connect(self._activate)
        self.table.selectionModel().currentRowChanged.connect(self._choose)
        self.model.modelReset.connect(self._show_in_full)
        self.strip.picture_wanted.connect(self.activated)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.table.customContextMenuRequested.connect(self._open_menu)
        QShortcut(QKeySequence.StandardKey.Copy, self.table, self.copy).setContext(
            Qt.ShortcutContext.WidgetShortcut
        )

    @property
    def current(self) -> Unit | None:
        """The unit of the current row."""
        index = self.table.currentIndex()
        return self.model.unit_at(index.row()) if index.isValid() else None

    @property
    def is_reading(self) -> bool:
        return self._reading

    def show_task(self, view: TaskView) -> None:
        """Show this task's units; for the shown task read only new ones."""
        entry = view.entry
        was_live, self._live = self._live, isinstance(entry, TaskRecord) and entry.is_live
        if view.task_id != self._task_id:
            self.leave()
            self._task_id, self._resume, self._problem = view.task_id, 0, ""
            self._lost = 0
            self.model.clear()
            self.chips.clear()
            self.search.clear()
            self._filter()  # the cleared chips say nothing themselves
            self._read()
        elif (self._live or was_live) and not self._reading:
            self._again.request()

    def leave(self) -> None:
        """Stop reading; an incomplete read starts again next time."""
        self._again.cancel()
        if self._reading:
            self._desk.bridge.call_off(self._name)
            self._reading = False
            self._task_id = ""

    def copy(self) -> None:
        """Copy the selected rows as tab-separated text, with the visible columns."""
        header = self.table.horizontalHeader()
        order = sorted(range(header.count()), key=header.visualIndex)
        columns = [self.model.columns[at] for at in order if not header.isSectionHidden(at)]
        lines = [
            "\t".join(clipboard_cell(one.text(self.model.unit_at(row))) for one in columns)
            for row in marked_rows(self.table)
        ]
        QGuiApplication.clipboard().setText("\n".join(lines))

    @property
    def _name(self) -> str:
        return f"units {id(self)}"

    def _read(self) -> None:
        if self._task_id and not self._reading and self._resume >= 0:
            self._reading = True
            self._show_state()
            self._desk.bridge.spawn(self._take(self._task_id), name=self._name)

    async def _take(self, task_id: str) -> None:
        try:
            reading = self._desk.bridge.engine.reading
            parts = reading.units(task_id, self._resume, self.model.total)
            async with aclosing(parts):
                async for part in parts:
                    self._add(part)
            if self.more is not None and not self._live:
                async for units in self.more(task_id, self.model.total):
                    self.model.add(units)
        except EngineError as error:
            self._problem, self._resume = language.sentence(error), -1
        self._reading = False
        self.model.settle()
        self._show_state()
        self.counted.emit()

    def _add(self, part: UnitPart) -> None:
        self._lost += part.lost
        if part.units:
            self.model.add(part.units)
        elif not self.model.total:
            self._show_state()
        if part.last:
            self._resume = part.resume

    def _filter(self) -> None:
        text = self.search.text()
        self.model.set_filter(self.chips.wanted, text)
        self.mistake.show_mistake(text, self.model.filter.mistake)

    def show_all(self) -> None:
        """Clear the search and the chips at once."""
        self.search.clear()
        self._typed.cancel()
        self.chips.clear()
        self._filter()

    def _search_for(self, text: str) -> None:
        """Search for a corrected text at once."""
        self.search.setText(text)
        self._typed.run()
        self.search.setFocus()

    def show_columns(self) -> None:
        """Show the columns that are chosen, and the rare ones that have a value."""
        if self.columns is not None:
            self.columns.apply()
        else:
            self.table.show_columns(self.model.rare_columns)

    def _show_state(self) -> None:
        self.chips.show_counts(self.model.kinds)
        self.show_columns()
        self.table.favour_last(self.model.has_reasons)
        self.table.fit_to(self.model.longest)
        text, total = self._state_text(), self.model.total
        if self._lost:
            text = self.tr("{0} · damaged lines: {1}").format(text, count(self._lost))
        self._nothing.tell("" if total else text)
        self._state.show_text(text if total else "")
        self._state.setToolTip("")

    def _state_text(self) -> str:
        shown, total = self.model.rowCount(), self.model.total
        if self._problem:
            return self._problem
        if self._reading and not total:
            return self.tr("Reading…")
        if self._reading:
            return self.tr("Reading… {0}").format(count(total))
        if not total:
            return self.tr("Nothing here yet.") if self._live else self.tr("There is nothing here.")
        if self.model.beyond:
            return self.tr("The first {0} of {1}; an export has them all").format(
                count(KEPT), count(total + self.model.beyond)
            )
        if shown == total:
            return count(total)
        return self.tr("{0} of {1}").format(count(shown), count(total))

    def _activate(self, index: QModelIndex) -> None:
        self.activated.emit(self.model.unit_at(index.row()))

    def _choose(self, current: QModelIndex, _: QModelIndex) -> None:
        self.chosen.emit(self.model.unit_at(current.row()) if current.isValid() else None)
        self._show_in_full()

    def _show_in_full(self) -> None:
        self.strip.show_unit(self._task_id, self.current)

    # Row menu.

    def menu(self, unit: Unit) -> QMenu:
        """Return the menu of a row; the caller deletes it."""
        menu = Menu(self)
        if unit.address:
            menu.addAction(self.tr("Copy &address")).triggered.connect(
                lambda: self._with_address(unit, QGuiApplication.clipboard().setText)
            )
            menu.addAction(self.tr("Open in &browser")).triggered.connect(
                lambda: self._with_address(unit, open_in_browser)
            )
        menu.addAction(self.tr("Copy &row")).triggered.connect(self.copy)
        menu.addSeparator()
        if unit.shot:
            menu.addAction(self.tr("Show &screenshot")).triggered.connect(
                lambda: self.activated.emit(unit)
            )
        menu.addAction(self.tr("Show s&ource")).triggered.connect(
            lambda: self.strip.source_wanted.emit(unit)
        )
        is_whole = is_address(unit) and not unit.is_cut
        if (retry := self.retry) and unit.state == UnitState.FAILED and is_whole:
            menu.addAction(self.tr("Re&try this page…")).triggered.connect(lambda: retry(unit.name))
        return menu

    def _open_menu(self, at: QPoint) -> None:
        index = self.table.indexAt(at)
        unit = self.model.unit_at(index.row()) if index.isValid() else self.current
        if unit is not None:
            menu = self.menu(unit)
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            menu.popup(self.table.viewport().mapToGlobal(at))

    def _with_address(self, unit: Unit, act: Callable[[str], object]) -> None:
        """Call `act` with the whole address, of which the list holds the start only."""
        if not unit.address.endswith(ELLIPSIS):
            act(unit.address)
            return
        task_id = self._task_id
        self._desk.bridge.ask(
            lambda engine: engine.reading.unit(task_id, unit),
            lambda row: act(str((row or {}).get("url") or unit.address)),
            name=f"address {id(self)}",
        )


class Items(DetailTab):
    """Units of a task that consists of equal steps (pages, actions, parts)."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._view: TaskView | None = None
        self.list = UnitList(desk, ITEM_COLUMNS, self)
        self.list.more = self._others
        self.retry = QPushButton(self.tr("Retry failed…"), self)
        self.retry.setToolTip(plain_tip(self.tr("Start a new task of the failed items only")))
        self.list.top.addWidget(self.retry)
        self.retry.hide()
        self.part = PartBar(self)
        arrange(QVBoxLayout(self), self.part, self.list, margins=0)
        self.setFocusProxy(self.list)
        self.retry.clicked.connect(lambda: self._retry(""))
        self.list.activated.connect(self._open)
        self.list.strip.source_wanted.connect(self._open)
        self.list.counted.connect(self._offer)
        self.list.model.changed.connect(self._offer)
        self.part.all_time.connect(desk.span.clear)
        desk.span.changed.connect(self._apply_time_range)
        if desk.span.range is not None:
            self._apply_time_range()

    def _apply_time_range(self) -> None:
        """Show only units that finished in the time range selected in the Timeline."""
        span = self.desk.span
        self.part.show_span(span.range)
        self.list.model.keep_named(span.names if span.range is not None else None)

    def show_task(self, view: TaskView) -> None:
        self._view = view
        self.list.model.name_columns(traits_of(getattr(view.entry, "kind", "")).unit_noun)
        self.list.show_task(view)
        self._offer()

    def leave(self) -> None:
        self.list.leave()

    def _offer(self) -> None:
        """Offer a retry for ended tasks only: a running task may still process the item."""
        entry = self._view.entry if self._view is not None else None
        ended = isinstance(entry, TaskRecord) and entry.is_terminal
        offers = ended and self.list.model.kinds[UnitState.FAILED] > 0
        crawls = traits_of(getattr(entry, "kind", "")).crawls
        self.retry.setVisible(offers)
        self.list.retry = self._retry if offers and crawls else None

    def _retry(self, page: str) -> None:
        if self._view is not None:
            self.desk.wishes.retry.emit(self._view.task_id, page)

    def _open(self, unit: Unit) -> None:
        if self._view is not None:
            self.desk.wishes.result.emit(self._view.task_id, unit)

    async def _others(self, task_id: str, number: int) -> AsyncIterator[Sequence[Unit]]:
        """Yield the contract's items that are no units, and blocked requests."""
        engine = self.desk.bridge.engine
        record = (await engine.tasks.get(task_id)).entry
        link = record.engine.contract_id if isinstance(record, TaskRecord) and record.engine else ""
        if link:
            contract: ContractView = await engine.contracts.get(link)
            known = {one.name for one in self.list.model.units()}
            told = [one for one in _told(contract, number) if one.name not in known]
            yield told
            number += len(told)
        refused = await engine.reading.refusals(task_id)
        yield [
            Unit(number + at, UnitState.REFUSED, one.place, self.tr("Address"), one.reason)
            for at, (one, _) in enumerate(refused.each)
        ]


def _told(view: ContractView, number: int) -> list[Unit]:
    contract = view.contract
    found = [(UnitState.FAILED, one.item, one.reason) for one in contract.failed]
    found += [(UnitState.SKIPPED, one.item, one.reason) for one in contract.skipped]
    found += [(UnitState.WAITING, item, "") for item in view.missing]
    return [
        Unit(number + at, state, item, "", reason) for at, (state, item, reason) in enumerate(found)
    ]
