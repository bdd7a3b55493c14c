"""Audit tab of the result viewer: reports about the pages of a crawl, and the rows of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QMenu,
    QPushButton,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from engine.export.exporter import Keep
from engine.model.display import display
from engine.model.errors import EngineError
from engine.model.records import TaskRecord, TaskView
from engine.results.site_audit import (
    REPORTS,
    Audit,
    Cell,
    Report,
    ReportColumn,
    ReportKind,
    matches,
    searched,
)
from engine.results.units import Unit
from engine.text.messages import retold, say
from engine.text.words import NONE, count
from gui.context.window_context import Desk
from gui.details.details_tab import EDGES
from gui.details.viewer_tabs import ViewerTab
from gui.engine_link.scheduling import Debounce
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
    copy_rows,
)
from gui.style.theme import plain_label, plain_tip, tone
from gui.style.widgets import EmptyNote, arrange

MOST_SHOWN: Final = 20_000  # rows of a report that sort and filter at once; an export has all
_TYPED_MS = 120
_CHARS = 500  # of one cell
_LEAST_CHARS = 20  # of a column where room is short
_PROBLEM_CHARS = 24  # at least; a sentence follows in the tool tip
_GROWING = ("target", "address", "page")  # the first of these has the remaining room
_PROSE = frozenset({"title", "text", "problem", "description"})  # elided at the right
_RARE = frozenset({"rel", "by"})  # shown only while a row has a value
_MIDDLE = Qt.AlignmentFlag.AlignVCenter
_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft | _MIDDLE, Qt.AlignmentFlag.AlignRight | _MIDDLE
PROBLEMS = frozenset({"missing", "duplicate"})  # that have words


class ReportsModel(QAbstractTableModel):
    """The reports with their number of rows; none while the audit is not there."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._audit: Audit | None = None

    def show_audit(self, found: Audit | None) -> None:
        self._audit = found
        last = self.index(self.rowCount() - 1, 1)
        self.dataChanged.emit(self.index(0, 0), last)

    def kind_at(self, row: int) -> ReportKind:
        return REPORTS[row]

    def rowCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(REPORTS)

    def columnCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else 2

    def data(self, index: AnyIndex, role: int = DISPLAY) -> Any:
        if not index.isValid():
            return None
        name = REPORTS[index.row()].name
        total = 0 if self._audit is None else self._audit.report(name).total
        cells = (say(f"audit.{name}"), self._number(name))
        if role == DISPLAY:
            return cells[index.column()]
        if role == ALIGNMENT:
            return _RIGHT if index.column() else _LEFT
        if role == COLOUR and not total:
            return tone("muted", QApplication.palette())
        if role == TOOL_TIP:
            return plain_tip(say(f"audit.{name}.about"))
        return " ".join(filter(None, cells)) if role == SPOKEN else None

    def _number(self, name: str) -> str:
        if self._audit is None:
            return ""
        report = self._audit.report(name)
        return count(report.total) if report.applies else NONE

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY) -> Any:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == ALIGNMENT:
            return _RIGHT if section else _LEFT
        return (self.tr("Report"), self.tr("Rows"))[section] if role == DISPLAY else None


class ReportModel(QAbstractTableModel):
    """Rows of one report, sorted and filtered."""

    def __init__(self, kind: ReportKind, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.kind = kind
        self._all: Sequence[tuple[Cell, ...]] = ()
        self._texts: list[str] = []  # folded, for the search
        self._shown: list[int] = []  # numbers of rows
        self._words: tuple[str, ...] = ()
        self._sort: tuple[int, bool] | None = None

    @property
    def total(self) -> int:
        return len(self._all)

    def row_at(self, row: int) -> tuple[Cell, ...]:
        return self._all[self._shown[row]]

    @property
    def rare_columns(self) -> dict[int, bool]:
        """The columns that most reports do not need, and whether they have a value."""
        rare = (at for at, column in enumerate(self.kind.columns) if column.name in _RARE)
        return {at: any(row[at] for row in self._all) for at in rare}

    def show_rows(self, rows: Sequence[tuple[Cell, ...]]) -> None:
        self._all = _with_problem_words(self.kind, rows[:MOST_SHOWN])
        self._texts = list(map(searched, self._all))
        self._arrange()

    def set_filter(self, text: str) -> None:
        """Show only rows that contain every word, ignoring case."""
        self._words = tuple(text.casefold().split())
        self._arrange()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._sort = (column, order == Qt.SortOrder.DescendingOrder) if column >= 0 else None
        self._arrange()

    def _arrange(self) -> None:
        self.beginResetModel()
        words, texts = self._words, self._texts
        shown = [at for at in range(len(texts)) if all(word in texts[at] for word in words)]
        if self._sort is not None:
            column, down = self._sort
            cells = [row[column] for row in self._all]
            with_value = [at for at in shown if cells[at] is not None]
            with_value.sort(key=lambda at: _sort_value(cells[at]), reverse=down)
            shown = with_value + [at for at in shown if cells[at] is None]  # last in both orders
        self._shown = shown
        self.endResetModel()

    def rowCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self._shown)

    def columnCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self.kind.columns)

    def main_column(self, row: int) -> int:
        """Return the column of the page that a row is about: of a broken link, the one with it."""
        names = [column.name for column in self.kind.columns]
        at = names.index("page") if "page" in names else 0
        return at if self.row_at(row)[at] is not None else 0

    def text_at(self, row: int, column: int) -> str:
        """Return the cell as it is shown."""
        return _text(self.kind.columns[column], self.row_at(row)[column])

    def data(self, index: AnyIndex, role: int = DISPLAY) -> Any:
        if not index.isValid():
            return None
        row, at = index.row(), index.column()
        column = self.kind.columns[at]
        if role == DISPLAY:
            return self.text_at(row, at)
        if role == ALIGNMENT:
            return _RIGHT if column.is_number else _LEFT
        if role == COLOUR and column.name == "problem":
            return tone("bad", QApplication.palette())
        if role == TOOL_TIP:
            return plain_tip(self.text_at(row, at))
        if role != SPOKEN:
            return None
        cells = (self.text_at(row, at) for at in range(len(self.kind.columns)))
        return ", ".join(filter(None, cells))

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY) -> Any:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < self.columnCount():
            return None
        column = self.kind.columns[section]
        if role == DISPLAY:
            return say(f"audit.column.{column.name}")
        if role == ALIGNMENT:
            return _RIGHT if column.is_number else _LEFT
        return None


def _sort_value(cell: Cell) -> Any:
    return cell.casefold() if isinstance(cell, str) else cell


def _with_problem_words(
    kind: ReportKind, rows: Sequence[tuple[Cell, ...]]
) -> Sequence[tuple[Cell, ...]]:
    """Return the rows with their problems in the chosen language, as they are sorted and found."""
    names = [column.name for column in kind.columns]
    if "problem" not in names:
        return rows
    at = names.index("problem")
    words = {cell: _problem_words(cell) for cell in {row[at] for row in rows}}
    return [(*row[:at], words[row[at]], *row[at + 1 :]) for row in rows]


def _problem_words(cell: Cell) -> Cell:
    if not isinstance(cell, str):
        return cell
    return say(f"audit.problem.{cell}") if cell in PROBLEMS else retold(cell)


def _text(column: ReportColumn, cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return display(cell, _CHARS)
    if column.name in ("code", "final_code"):
        return str(cell)
    return count(cell) if isinstance(cell, int) else count(round(cell))


class AuditTab(ViewerTab):
    """Audit of the viewer's crawl. `page_wanted` carries the address of a page to show."""

    page_wanted = Signal(str)
    _moved = Signal(int, int)  # from a thread

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._task_id = ""
        self._live = False
        self._shown = ""  # the name of the report
        self._audit: Audit | None = None
        self.reports = ReportsModel(self)
        self.choice = PlainTable(self.reports, self.tr("Reports"), (22, 9), self, grows=0)
        self.about = plain_label("", self, tone="muted", wrap=True)
        self.state = plain_label("", self, tone="muted", wrap=True)
        self.search = search_field(self, self.tr("Search rows"))
        self.stop = QPushButton(self.tr("Stop"), self)
        self.again = QPushButton(self.tr("Read again"), self)
        self._typed = Debounce(self, _TYPED_MS, self._filter)
        self._tables: dict[str, PlainTable] = {}  # by the name of the report, made on first use
        self._place = QVBoxLayout()
        self._lay_out()
        self._connect()

    def _lay_out(self) -> None:
        self.choice.setSelectionMode(PlainTable.SelectionMode.SingleSelection)
        self.search.setFixedWidth(26 * self.fontMetrics().averageCharWidth())
        self.again.setToolTip(plain_tip(self.tr("Read the pages that the crawl has stored by now")))
        self.stop.hide()
        self.again.hide()
        right = QWidget(self)
        top = arrange(QHBoxLayout(), self.search, (self.state, 1), self.stop, self.again)
        arrange(QVBoxLayout(right), self.about, top, margins=0, spacing=6).addLayout(self._place, 1)
        both = QSplitter(self)
        both.addWidget(self.choice)
        both.addWidget(right)
        both.setStretchFactor(1, 1)
        both.setChildrenCollapsible(False)
        character = self.fontMetrics().averageCharWidth()
        both.setSizes([36 * character, 120 * character])
        arrange(QVBoxLayout(self), (both, 1), margins=EDGES)
        self.setFocusProxy(self.choice)

    def _connect(self) -> None:
        self.choice.selectionModel().currentRowChanged.connect(self._show_report)
        self.search.textChanged.connect(self._typed.request)
        self.search.left.connect(self._leave_search)
        self.stop.clicked.connect(self._stop)
        self.again.clicked.connect(self._read)
        self._moved.connect(self._show_progress)

    def show_task(self, view: TaskView, unit: Unit | None) -> None:
        was_live, entry = self._live, view.entry
        self._live = isinstance(entry, TaskRecord) and entry.is_live
        if view.task_id != self._task_id:
            self._task_id, self._audit = view.task_id, None
            self.search.clear()
            self.reports.show_audit(None)
            self._read()
        elif was_live and not self._live:
            self._read()  # the rest of the pages
        self.again.setVisible(self._live)

    def leave(self) -> None:
        self.desk.bridge.call_off(self._name)
        self._task_id = ""
        self.stop.hide()

    @property
    def report_name(self) -> str:
        """The name of the shown report; "" while there is none."""
        row = self.choice.currentIndex().row()
        return "" if row < 0 or self._audit is None else self.reports.kind_at(row).name

    @property
    def table(self) -> PlainTable | None:
        """The table of the shown report."""
        return self._tables.get(self.report_name)

    @property
    def _name(self) -> str:
        return f"audit {id(self)}"

    def _read(self) -> None:
        task_id = self._task_id
        self.state.show_text(self.tr("Reading…"))
        self.stop.show()
        self.desk.bridge.ask(
            lambda engine: engine.reading.audit(task_id, self._moved.emit),
            self._show,
            self._show_error,
            name=self._name,
        )

    def _stop(self) -> None:
        self.desk.bridge.call_off(self._name)
        self.stop.hide()
        self.again.show()
        self.state.show_text(self.tr("Not read."))

    def _show_progress(self, done: int, size: int) -> None:
        if self.stop.isVisible():
            percent = int(100 * done / max(1, size))
            self.state.show_text(self.tr("Reading… {0} %").format(percent))

    def _show(self, found: Audit) -> None:
        self.stop.hide()
        self._audit = found
        self.reports.show_audit(found)
        if self.choice.currentIndex().row() < 0:
            self.choice.selectRow(self._first_with_rows(found))
        else:
            self._show_report(self.choice.currentIndex(), QModelIndex())

    def _first_with_rows(self, found: Audit) -> int:
        rows = (at for at, kind in enumerate(REPORTS) if found.report(kind.name).total)
        return next(rows, 0)

    def _show_error(self, error: EngineError) -> None:
        self.stop.hide()
        self.state.show_text(language.sentence(error))

    def _show_report(self, current: QModelIndex, _: QModelIndex) -> None:
        """Show the table of the chosen report, and what the audit lacks."""
        if self._audit is None or not current.isValid():
            return
        kind = self.reports.kind_at(current.row())
        self.about.show_text(say(f"audit.{kind.name}.about"))
        if self._shown != kind.name:
            self._shown = kind.name
            self.search.clear()  # it would hide the rows of this report
        table = self._tables.get(kind.name) or self._make_table(kind)
        for other in self._tables.values():
            other.setVisible(other is table)
        report = self._audit.report(kind.name)
        model = _model(table)
        model.show_rows(report.rows)
        table.show_columns(model.rare_columns)
        self._filter()

    def _filter(self) -> None:
        if (table := self.table) is not None:
            _model(table).set_filter(self.search.text())
            self._show_state()

    def _leave_search(self) -> None:
        (self.table or self.choice).setFocus()

    def _show_state(self) -> None:
        table, found = self.table, self._audit
        if table is None or found is None:
            return
        report, model = found.report(self.report_name), _model(table)
        note = table.findChild(EmptyNote)
        if note is not None:
            note.tell("" if model.rowCount() else self._why_nothing(report, model))
        if report.total > model.total:
            rows = say("audit.beyond", shown=count(model.total), count=count(report.total))
        elif model.rowCount() < model.total:
            rows = self.tr("{0} of {1}").format(count(model.rowCount()), count(model.total))
        else:
            rows = ""
        one = found.pages == 1
        pages = say("audit.pages.one") if one else say("audit.pages", count=count(found.pages))
        lacks = (say(one, count=count(number)) for one, number in found.lacks(report.name))
        self.state.show_text(" · ".join(filter(None, (rows, pages, *lacks))))

    def _why_nothing(self, report: Report, model: ReportModel) -> str:
        if model.total:
            return say("audit.no_match")
        return say("audit.none") if report.applies else say("audit.needs_list")

    @property
    def keep(self) -> Keep | None:
        """The filter of the shown rows, for an export; None while all are shown."""
        asked = tuple(self.search.text().casefold().split())
        if not asked:
            return None

        def keeps(record: Mapping[str, Cell]) -> bool:
            problem = _problem_words(record.get("problem"))
            return matches({**record, "problem": problem}, asked)

        return keeps

    def _make_table(self, kind: ReportKind) -> PlainTable:
        model = ReportModel(kind, self)
        titles = [len(say(f"audit.column.{column.name}")) + 2 for column in kind.columns]
        widths = [max(one.width, title) for one, title in zip(kind.columns, titles, strict=True)]
        least = [
            width if one.is_number else min(width, _least_chars(one))
            for one, width in zip(kind.columns, widths, strict=True)
        ]
        names = [one.name for one in kind.columns]
        grows = next(names.index(name) for name in _GROWING if name in names)
        title = say(f"audit.{kind.name}")
        table = PlainTable(model, title, widths, self, grows=grows, least=least)
        table.elide_right([at for at, name in enumerate(names) if name in _PROSE])
        table.let_sort()
        EmptyNote(table.viewport())
        table.activated.connect(lambda index: self._open_page(model, index.row()))
        table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        table.customContextMenuRequested.connect(lambda at: self._open_menu(table, at))
        QShortcut(
            QKeySequence.StandardKey.Copy, table, lambda: copy_rows(table, model.text_at)
        ).setContext(Qt.ShortcutContext.WidgetShortcut)
        self._place.addWidget(table, 1)
        self._tables[kind.name] = table
        return table

    def _open_page(self, model: ReportModel, row: int) -> None:
        address = address_of_row(model, row, model.main_column(row))
        if address:
            self.page_wanted.emit(address)

    def _open_menu(self, table: PlainTable, at: QPoint) -> None:
        index = table.indexAt(at)
        index = index if index.isValid() else table.currentIndex()
        if index.isValid():
            menu = self.menu(table, index)
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            menu.popup(table.viewport().mapToGlobal(at))

    def menu(self, table: PlainTable, index: QModelIndex) -> QMenu:
        """Return the menu of a cell; the caller deletes it."""
        menu = Menu(self)
        model = _model(table)
        address = address_of_row(model, index.row(), index.column())
        if address:
            menu.addAction(self.tr("Show &page")).triggered.connect(
                lambda: self.page_wanted.emit(address)
            )
            menu.addAction(self.tr("Copy &address")).triggered.connect(
                lambda: QGuiApplication.clipboard().setText(address)
            )
            menu.addAction(self.tr("Open in &browser")).triggered.connect(
                lambda: open_in_browser(address)
            )
        menu.addAction(self.tr("Copy &row")).triggered.connect(
            lambda: copy_rows(table, model.text_at)
        )
        return menu


def _least_chars(column: ReportColumn) -> int:
    return _PROBLEM_CHARS if column.name == "problem" else _LEAST_CHARS


def _model(table: PlainTable) -> ReportModel:
    model = table.model()
    assert isinstance(model, ReportModel)
    return model


def address_of_row(model: ReportModel, row: int, column: int = 0) -> str:
    """Return the web address in this cell, else the first one of the row; "" without one."""
    cells = model.row_at(row)
    web = [cell for cell in (cells[column], *cells) if isinstance(cell, str)]
    return next((cell for cell in web if cell.startswith(("http://", "https://"))), "")
