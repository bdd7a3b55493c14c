"""Result viewer: pages, screenshots, JSON, source, log, differences and contract."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtGui import QCloseEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QHBoxLayout,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.export.exporter import Comparison, Keep
from engine.model.display import elide_right
from engine.model.kind_traits import traits_of
from engine.model.records import ENVELOPE, RESULT_NAME, History, TaskRecord, TaskView
from engine.model.status import look
from engine.results.unit_filter import UnitFilter
from engine.results.units import Unit
from engine.service.feed import Batch
from engine.text import words
from gui.context.window_context import Desk
from gui.details.audit_tab import AuditTab
from gui.details.details_tab import EDGES
from gui.details.events import Events
from gui.details.json_view import JsonView
from gui.details.screenshots import FileHandle
from gui.details.unit_columns import PAGE_COLUMNS
from gui.details.unit_list import UnitList
from gui.details.viewer_tabs import (
    ContractTab,
    Diff,
    Preview,
    Source,
    ViewerTab,
    contract_of,
)
from gui.engine_link.scheduling import Throttle
from gui.engine_link.task_events import EventFollower, EventPart, EventRow, Offset, event_row
from gui.style.accessibility import InOrder
from gui.style.menu import Menu
from gui.style.theme import TonedLabel, heading, plain_tip, plain_title
from gui.style.widgets import Tabs, arrange
from gui.tasks.row import Row

# Events of the viewer's task, updated live.


class Log(ViewerTab):
    """Log tab with its own event reader, since the details panel may show another task."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._task_id, self._ended = "", False
        self.events = Events(self, desk, self._look)
        self._follower = EventFollower(self._read, lambda _: self._ended, self._take)
        arrange(QVBoxLayout(self), self.events, margins=0)
        self.setFocusProxy(self.events.table)

    def show_task(self, view: TaskView, unit: Unit | None) -> None:
        entry = view.entry
        self._ended = isinstance(entry, TaskRecord) and entry.is_terminal
        if view.task_id != self._task_id:
            self._task_id = view.task_id
            self.events.start_over(view.task_id)
            self._look(view.task_id, -1)

    def _look(self, task_id: str, place: int) -> None:
        """Read the newest events, or the events around this byte of the file."""
        reads = self._follower
        work = reads.follow(task_id) if place < 0 else reads.look_at(task_id, place)
        self.desk.bridge.spawn_once(work, name=self._name)

    def leave(self) -> None:
        self.events.finder.stop()
        self.desk.bridge.call_off(self._name)
        self._task_id = ""

    @property
    def _name(self) -> str:
        return f"log {id(self)}"

    async def _read(self, one: str, before: Offset, since: Offset) -> History[EventRow]:
        engine = self.desk.bridge.engine
        return await engine.tasks.history(one, event_row, before=before, since=since)

    def _take(self, task_id: str, part: EventPart) -> None:
        if task_id == self._task_id:
            self.events.add(part)


SIZE = (1080, 720)
SMALLEST = (760, 460)
_HEAD_CHARS = 110


class ViewerCallbacks(NamedTuple):
    """Callbacks of the viewer into its main window; `export` takes a report's name, "" for none."""

    neighbour: Callable[[str, int], TaskView | None]
    known: Callable[[], Sequence[Row]]
    export: Callable[[TaskView, Keep | None, str], object]
    export_differences: Callable[[Comparison], object]
    show_folder: Callable[[str], object]


class ResultWindow(InOrder, QWidget):
    """Result viewer window, separate from the main window; `show_task` replaces its task."""

    def __init__(self, desk: Desk, around: ViewerCallbacks, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self._desk, self._callbacks = desk, around
        self._view: TaskView | None = None
        self._wanted: int | None = None
        self._chosen: QWidget | None = None  # the user's tab, also where it is empty
        self._empty: set[QWidget] = set()  # tabs that have nothing for the task
        self._placing = self._opening = False
        self.setMinimumSize(*SMALLEST)
        self.resize(*SIZE)
        self._name = heading("", self, grow=1.1)
        self._state = TonedLabel("", "muted", self)
        self.back, self.on = QToolButton(self), QToolButton(self)
        self.export = QPushButton(self.tr("Export"), self)
        self.folder = QPushButton(self.tr("Show in folder"), self)
        self.pages = UnitList(desk, PAGE_COLUMNS, self, choosable=True)
        self.handle = FileHandle(desk, self._name, lambda _: (self.task_id, RESULT_NAME))
        self._name.setCursor(Qt.CursorShape.OpenHandCursor)
        self._name.setToolTip(plain_tip(self.tr("Pull this out to copy the result file")))
        self.tabs = Tabs(self)
        self._soon = Throttle(self, 0, self._update_tabs)
        self._lay_out()
        self._connect()

    def _lay_out(self) -> None:
        for button, sign, name in (
            (self.back, "◀", self.tr("The result above in the list")),
            (self.on, "▶", self.tr("The result below in the list")),
        ):
            button.setText(sign)
            button.setAccessibleName(name)
            button.setToolTip(plain_tip(name))
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        menu = Menu(self.export)
        self.this_view = menu.addAction(self.tr("This view…"))
        self.everything = menu.addAction(self.tr("Everything…"))
        menu.setToolTipsVisible(True)  # they say why an entry is off
        self.export.setMenu(menu)
        row = QHBoxLayout()
        for widget in (self.back, self.on, self._name, self._state):
            row.addWidget(widget, 1 if widget is self._name else 0)
        row.addWidget(self.export)
        row.addWidget(self.folder)
        self._fill_tabs()
        arrange(QVBoxLayout(self), row, (self.tabs, 1), margins=(10, 8, 10, 10))

    def _fill_tabs(self) -> None:
        desk = self._desk
        self.json = JsonTab(desk, self)
        self.preview, self.source, self.log = Preview(desk), Source(desk), Log(desk)
        self.contract, self.diff = ContractTab(desk), Diff(desk, self._callbacks.known)
        self.audit = AuditTab(desk)
        for tab, title in (
            (self.pages, self.tr("Pages")),
            (self.audit, self.tr("Audit")),
            (self.preview, self.tr("Preview")),
            (self.json, self.tr("JSON")),
            (self.source, self.tr("Source")),
            (self.log, self.tr("Log")),
            (self.diff, self.tr("Diff")),
            (self.contract, self.tr("Contract")),
        ):
            self.tabs.addTab(tab, title)

    def _connect(self) -> None:
        self.tabs.currentChanged.connect(self._tab_changed)
        for tab in (self.preview, self.diff):
            tab.empty.connect(partial(self._leave_empty, tab))
        self.pages.chosen.connect(self._soon.request)
        self.pages.activated.connect(self._open_unit)
        self.pages.strip.source_wanted.connect(lambda _: self.show_tab(self.source))
        self.pages.counted.connect(self._select_wanted)
        self.pages.model.modelReset.connect(self._select_wanted)
        self.back.clicked.connect(lambda: self._step(-1))
        self.on.clicked.connect(lambda: self._step(1))
        self.audit.page_wanted.connect(self._show_page)
        self.diff.compared.connect(self._allow_view)
        self.this_view.triggered.connect(self._export_view)
        self.everything.triggered.connect(lambda: self._export(None))
        self.folder.clicked.connect(lambda: self._callbacks.show_folder(self.task_id))
        self._desk.bridge.batch.connect(self._on_batch)
        for keys, act in (
            ("Alt+Left", lambda: self._step(-1)),
            ("Alt+Right", lambda: self._step(1)),
            ("Ctrl+E", lambda: self._export(None)),
            ("Esc", self.close),
        ):
            QShortcut(QKeySequence(keys), self, act)
        QShortcut(QKeySequence.StandardKey.Close, self, self.close)
        QShortcut(QKeySequence.StandardKey.Find, self, self._find)

    @property
    def task_id(self) -> str:
        """The id of the shown task; "" for none."""
        return self._view.task_id if self._view is not None else ""

    def show_task(self, view: TaskView, unit: Unit | None = None) -> None:
        """Show this task's result, and select this unit."""
        other = view.task_id != self.task_id
        self._view, self._wanted = view, unit.number if unit is not None else None
        name = elide_right(words.task_name(view), _HEAD_CHARS)
        self._name.show_text(name)
        self.setWindowTitle(plain_title(self.tr("Result of {0}").format(name)))
        self._show_state(view)
        for button, way in ((self.back, -1), (self.on, 1)):
            button.setEnabled(self._callbacks.neighbour(view.task_id, way) is not None)
        if other:
            self._leave()
            self._empty.clear()
            self._opening = True
            self._place_tab()
        self._update_tabs()
        if not other:
            self._select_wanted()

    def show_tab(self, tab: QWidget) -> None:
        self.tabs.setCurrentWidget(tab)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._leave()
        self._view = None
        super().closeEvent(event)

    def _update_tabs(self) -> None:
        """Update the pages always, and of the other tabs the current one, which shows a page."""
        if self._view is None:
            return
        self._adapt_to_kind(self._view)
        has_units = not self._has_calls
        if has_units:
            self.pages.show_task(self._view)
        current = self.tabs.currentWidget()
        if isinstance(current, ViewerTab):
            current.show_task(self._view, self.pages.current if has_units else None)

    @property
    def _has_calls(self) -> bool:
        """Whether an agent drives the task: its calls are events, and it has no units."""
        return self._view is not None and getattr(self._view.entry, "kind", "") == ENVELOPE

    def _tab_changed(self) -> None:
        if not self._placing:
            self._chosen, self._opening = self.tabs.currentWidget(), False
        self._allow_view()
        self._soon.request()

    def _allow_view(self) -> None:
        """Offer "This view" only where a list that can be exported is shown.

        On other tabs it would export the pages, which are not what is shown there.
        """
        current, why_not = self.tabs.currentWidget(), ""
        if current is self.diff:
            if self.diff.comparison is None:
                why_not = self.tr("Two runs must have been compared.")
        elif current not in (self.pages, self.audit):
            why_not = self.tr("The lists of “Pages”, “Audit” and “Diff” can be exported.")
        self.this_view.setEnabled(not why_not)
        self.this_view.setToolTip(plain_tip(why_not))

    def _place_tab(self) -> None:
        """Show the user's tab, or the first with content if that one has none for the task."""
        view = self._view
        if view is None:
            return
        self._adapt_to_kind(view)
        tabs = [self.tabs.widget(at) for at in range(self.tabs.count())]
        wanted = (self._chosen, self.log if self._has_calls else None, *tabs)
        tab = next(tab for tab in wanted if tab is not None and self._has_content(tab, view))
        self._placing = True
        self.tabs.setCurrentWidget(tab)
        self._placing = False

    def _has_content(self, tab: QWidget, view: TaskView) -> bool:
        """Return whether the tab may have content: some know only after they have read."""
        if tab in self._empty or not self.tabs.isTabVisible(self.tabs.indexOf(tab)):
            return False
        return tab is not self.contract or contract_of(view) is not None

    def _leave_empty(self, tab: QWidget) -> None:
        """Leave a tab that proves empty, unless the user has chosen it for this task."""
        self._empty.add(tab)
        if self._opening and tab is self.tabs.currentWidget():
            self._place_tab()

    def _adapt_to_kind(self, view: TaskView) -> None:
        """Hide tabs and columns that the kind lacks, and name the first tab by its units."""
        calls, known = self._has_calls, traits_of(getattr(view.entry, "kind", ""))
        steps = not known.crawls
        shown = ((self.pages, not calls), (self.source, not calls), (self.audit, not steps))
        self._placing = True  # Qt leaves a tab that is hidden, which is no choice of the user
        for tab, is_shown in shown:
            self.tabs.setTabVisible(self.tabs.indexOf(tab), is_shown)
        self._placing = False
        self.this_view.setVisible(not calls)
        self.tabs.setTabText(0, self.tr("Items") if steps else self.tr("Pages"))
        self.pages.model.name_columns(known.unit_noun)
        if self.pages.columns is not None:
            self.pages.columns.show_pages(not steps)

    def _leave(self) -> None:
        self.pages.leave()
        for tab in map(self.tabs.widget, range(self.tabs.count())):
            if isinstance(tab, ViewerTab):
                tab.leave()

    def _on_batch(self, batch: Batch) -> None:
        view = next((one for one in batch.views if one.task_id == self.task_id), None)
        if view is not None and self.isVisible():
            self._view = view
            self._show_state(view)
            self._update_tabs()

    def _show_state(self, view: TaskView) -> None:
        self._state.show_text(words.status_word(view))
        self._state.show_tone(look(view))

    def _step(self, way: int) -> None:
        view = self._callbacks.neighbour(self.task_id, way)
        if view is not None:
            self.show_task(view)

    def _select_wanted(self) -> None:
        """Select the requested unit after reading; `counted` is emitted at the end of reading."""
        if self._wanted is None:
            return
        model = self.pages.model
        for row in range(model.rowCount()):
            if model.unit_at(row).number == self._wanted:
                self._wanted = None
                self.pages.table.selectRow(row)
                self.pages.table.scrollTo(model.index(row, 0))
                return

    def _open_unit(self, unit: Unit) -> None:
        self.show_tab(self.preview if unit.shot else self.source)

    def _show_page(self, address: str) -> None:
        """Select the page of this address in the list, without the filter that may hide it."""
        units = self.pages.model.units()
        found = next((one for one in units if not one.is_cut and one.name == address), None)
        if found is None:
            self.pages.search.setText(address)
        else:
            self.pages.show_all()
            self._wanted = found.number
        self.show_tab(self.pages)
        self._select_wanted()

    def _export_view(self) -> None:
        """Export the shown report, the shown differences, or the shown pages."""
        current = self.tabs.currentWidget()
        if current is self.diff:
            if (compared := self.diff.comparison) is not None:
                self._callbacks.export_differences(compared)
        elif self._view is not None and current is self.audit:
            self._callbacks.export(self._view, self.audit.keep, self.audit.report_name)
        else:
            self._export(self.pages.model.filter)

    def _export(self, kept: UnitFilter | None) -> None:
        if self._view is not None:
            keep = None if kept is None or kept.matches_all else kept.wants
            self._callbacks.export(self._view, keep, "")

    def _find(self) -> None:
        current = self.tabs.currentWidget()
        if self._has_calls and not isinstance(current, JsonTab):
            self.show_tab(self.log)
            current = self.log
        if current is self.log:
            self.log.events.finding.begin()
            return
        if isinstance(current, JsonTab):
            box = current.view.search
        elif current is self.audit:
            box = self.audit.search
        else:
            box = self.pages.search
            self.show_tab(self.pages)
        box.setFocus()
        box.selectAll()


class JsonTab(ViewerTab):
    """The result as a tree."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.view = JsonView(desk, self)
        arrange(QVBoxLayout(self), self.view, margins=EDGES)
        self.setFocusProxy(self.view)

    def show_task(self, view: TaskView, unit: Unit | None) -> None:
        self.view.show_file(view.task_id, RESULT_NAME)

    def leave(self) -> None:
        self.view.leave()
