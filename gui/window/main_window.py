"""The main window: placeholder for the first paint, parts, and connections of actions.

The first paint waits for this module alone, so it must not import engine packages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace
from PySide6.QtCore import QEvent, QPoint, QRect, QSize, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QKeyEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QMainWindow, QWidget

from engine.logging.logs import log_path
from engine.text.messages import retold
from gui.context.preferences import Memory, Preferences
from gui.style.theme import from_home, plain_title
from gui.window.placeholder_rows import Skeleton

if TYPE_CHECKING:
    from PySide6.QtWidgets import QSplitter, QToolBar, QVBoxLayout

    from engine.model.records import Health, TaskView
    from engine.service.feed import Batch
    from gui.commands.bulk_work import BulkWork, Reports
    from gui.commands.copy_rows import Copying
    from gui.commands.ledger_actions import LedgerDisplay
    from gui.commands.task_requests import Requests, StartedTaskSelector
    from gui.context.window_context import WindowContext
    from gui.desktop.awaited_ends import FinishThenQuit
    from gui.details.panel import Details
    from gui.engine_link.subscription import RepaintThrottle
    from gui.filters.active_filter import ActiveFilter
    from gui.filters.filter_bar import FilterBar
    from gui.filters.sidebar import Sidebar
    from gui.settings.shortcuts import Shortcuts
    from gui.start.launch_handling import LaunchHandler
    from gui.style.accessibility import Region
    from gui.style.banners import Banner
    from gui.window.list_area import ListArea
    from gui.window.status_bar import StatusBar
    from gui.window.trouble_banner import Trouble

MIN_WIDTH, MIN_HEIGHT = 900, 560
FIRST_SIZE = QSize(1180, 760)
TITLE_HEIGHT = 40  # Height of the system's title bar
ASIDE = QPoint(32, 32)  # From the place of another window to that of a further one
SIDEBAR_WIDTH = 190
BARS_HEIGHT = 130  # Menu, toolbar, filter and header: the approximate height above the rows


class WindowParts:
    """The parts, each set by the window builder as it creates them.

    `column` holds the list and the bars around it, `tall` that and the details, `wide` all of it
    and the sidebar.
    """

    context: WindowContext
    calm: RepaintThrottle
    sidebar: Sidebar
    filter_bar: FilterBar
    details: Details
    banner: Banner
    undo_bar: Banner
    status: StatusBar
    tools: QToolBar
    area: ListArea
    column: QVBoxLayout
    tall: QSplitter
    wide: QSplitter
    copying: Copying
    narrowing: ActiveFilter
    started_task_selector: StartedTaskSelector
    bulk: BulkWork
    reports: Reports
    requests: Requests
    trouble: Trouble
    arrivals: LaunchHandler
    ledger_display: LedgerDisplay
    shortcuts: Shortcuts
    finish_quit: FinishThenQuit


class MainWindow(QMainWindow):
    """Main window of one live ledger; its `…_wanted` signals request actions of the program.

    It opens with the saved geometry and a placeholder until `take_parts` and `begin`; `painted` is
    emitted once. `pressed_early` collects unhandled keys until `forget_early_keys`.
    """

    painted = Signal()
    close_wanted = Signal()
    quit_wanted = Signal()
    folder_wanted = Signal(Path)

    def __init__(
        self, memory: Memory, preferences: Preferences | None = None, root: str = ""
    ) -> None:
        super().__init__()
        self.memory, self.preferences = memory, preferences or Preferences()
        self.furnished = False
        self._parts: WindowParts | None = None
        self._health: Health | None = None
        self._followed: str | None = None
        self._seen: TaskView | None = None  # The view that the details show
        self._has_chosen = False  # Otherwise the list has the room of the details …
        self._has_asked = False  # … unless the user asked for them without a choice
        # Deferred, because a selection may be replaced by way of none.
        self._unchosen = QTimer(self, singleShot=True, interval=0)
        self._unchosen.timeout.connect(self._hide_pane)
        self.setMinimumSize(MIN_WIDTH, MIN_HEIGHT)
        self.resize(first_size(self.screen().availableSize()))
        self.restoreGeometry(memory.shape("window"))
        self.setWindowTitle(plain_title(from_home(root)))  # Qt adds the program's name
        outline = _Outline(SIDEBAR_WIDTH if memory.flag("sidebar", True) else 0, self)
        outline.painted.connect(self.painted)
        self.setCentralWidget(outline)
        self.pressed_early: dict[int, None] | None = {}

    def step_aside(self) -> None:
        """Move from the saved place, where another window of the program may be."""
        if not self.memory.shape("window") or self.isMaximized() or self.isFullScreen():
            return
        room = self.screen().availableGeometry()
        self.move(place_aside(QRect(self.pos(), self.size()), room))

    def take_parts(self, parts: WindowParts) -> None:
        """Store the parts, still hidden, and connect them."""
        context = self.context = parts.context
        self.desk, self.bridge = context.services, context.bridge
        self.model, self.table, self.scope = context.model, context.table, context.scope
        self.acts, self.beside, self.news_bar = context.actions, context.ledgers, context.news_bar
        self.calm, self.area, self.details = parts.calm, parts.area, parts.details
        self.sidebar, self.filter_bar = parts.sidebar, parts.filter_bar
        self.banner, self.undo_bar = parts.banner, parts.undo_bar
        self.status, self.tools = parts.status, parts.tools
        self.middle, self.tall, self.wide = parts.column, parts.tall, parts.wide
        self.copying, self.narrowing, self.started_task_selector = (
            parts.copying,
            parts.narrowing,
            parts.started_task_selector,
        )
        self.bulk, self.reports, self.requests = parts.bulk, parts.reports, parts.requests
        self.trouble, self.arrivals = parts.trouble, parts.arrivals
        self.ledger_display, self.finish_quit = parts.ledger_display, parts.finish_quit
        self._parts = parts
        self._connect_actions()
        self._connect_list()
        self._connect_bridge()

    def begin(self) -> None:
        """Show the parts without a selection, until the ledger is open."""
        self._show_selection([])
        self.acts.allow_starts(False)
        self._show_parts()
        if self.isActiveWindow():
            self.focusNextChild()  # Qt does the same for a window that becomes active

    def _show_parts(self) -> None:
        """Replace the placeholder by the parts."""
        self.setUpdatesEnabled(False)
        self.setCentralWidget(self.wide)
        self.setStatusBar(self.status)
        self.addToolBar(self.tools)
        self.furnished = True
        self.setUpdatesEnabled(True)

    def forget_early_keys(self) -> None:
        """Stop collecting unhandled keys."""
        self.pressed_early = None

    def insert_bar(self, bar: QWidget, *, after: QWidget) -> None:
        """Place a bar in the column of the list, below `after`."""
        self.middle.insertWidget(self.middle.indexOf(after) + 1, bar)

    # Connections.

    def _connect_actions(self) -> None:
        slots = self._slots()
        for key, slot in slots.items():
            self.acts[key].triggered.connect(lambda _=False, slot=slot: slot())
        self.acts["sidebar"].toggled.connect(self.sidebar.setVisible)
        self.acts["details"].toggled.connect(self._arrange)
        self.acts["details"].triggered.connect(self._ask_for_pane)
        self.area.populated.connect(self._arrange)

    def _slots(self) -> dict[str, Callable[[], object]]:
        """Return the slot of each action."""
        return {
            "new": self.requests.new_task,
            "paste": self.paste,
            "open": self.choose_folder,
            "folder": self.show_ledger_folder,
            "quit": self.quit_wanted.emit,
            "copy_ids": self.copying.ids,
            "copy_rows": self.copying.rows,
            "all": self.table.selectAll,
            "none": self.table.clearSelection,
            "find": self.filter_bar.focus_text,
            "cancel": self.cancel_selected,
            "task_folder": self.show_task_folder,
            "sample": self.bridge.start_sample,
            "rescan": self.bridge.rescan,
            "next_region": lambda: self._step_region(1),
            "last_region": lambda: self._step_region(-1),
            "log": lambda: self._show_folder(log_path().parent),
            "about": self._show_about,
        }

    def _connect_list(self) -> None:
        self.table.selection_changed.connect(self._show_selection)
        self.table.all_chosen.connect(self._show_all_chosen)
        self.scope.changed.connect(self._show_scope)
        self.table.activated_task.connect(lambda _: self.acts["details"].setChecked(True))
        # While a ledger loads, each new text would cause a new layout of the window.
        self.model.limit_counts(self.calm.may_tell)
        self.calm.ended.connect(self.model.tell_counts)
        self.model.counts_changed.connect(self.sidebar.show_counts)
        self.model.shown_changed.connect(lambda *_: self._show_numbers())
        self.details.wants_events.connect(self.bridge.follow_events)
        self.details.overview.aged.connect(self.model.tick)  # one clock for both
        self.model.ticked.connect(self.details.overview.show_age)
        self.details.wants_folder.connect(lambda _: self.show_task_folder())
        self.narrowing.changed.connect(self._show_numbers)
        # First, so that the focus never reaches a row that the filter hides a moment later.
        self.filter_bar.left.connect(self.narrowing.settle)
        self.filter_bar.left.connect(self.table.setFocus)
        self.table.menu_wanted.connect(self.acts.fill_context_menu)
        self.acts.keep_to(self.table, "cancel", "copy_ids", "copy_rows", "all")
        self.requests.started.connect(self.started_task_selector.expect)
        self.status.root_clicked.connect(self.show_ledger_folder)
        self.bridge.programs.changed.connect(self._show_programs)
        self.requests.failed.connect(self.trouble.show_error)
        self.requests.refused.connect(self.trouble.show_refusals)
        self.requests.started.connect(self.trouble.hide_unstartable)
        self.requests.starting.offered.connect(self.trouble.hide_unstartable)

    def _connect_bridge(self) -> None:
        self.bridge.batch.connect(self._take_batch)
        self.bridge.health.connect(self._show_health)
        self.bridge.events.connect(self.details.show_events)
        self.bridge.unusable.connect(self.area.show_trouble)
        self.beside.changed.connect(self._show_title)

    # Signals of the engine.

    def _take_batch(self, batch: Batch) -> None:
        changed = self.model.put_many(batch.views)
        self.model.drop_many(batch.gone)
        news = replace(batch, views=tuple(changed))
        self.area.show_loading(batch.loaded, batch.total, batch.complete)
        if self._followed and self.model.view_of(self._followed) is not self._seen:
            self._show_details()
        self.started_task_selector.look()
        self.scope.hear(news)
        self.bridge.news.emit(news)
        if batch.complete:
            self._show_numbers()
            if self.focusWidget() is None:  # keys work from the start
                self.table.setFocus()
            self.bridge.loaded.emit()

    def _show_health(self, health: Health) -> None:
        self._health = health
        self.status.show_health(health)
        self.trouble.show_health(health)
        self._show_title()
        self.area.show_root(health.root)
        gone = retold(health.watcher_reason) if health.watcher == "gone" else ""
        self.area.show_gone(gone, others=bool(self.beside.states) or health.away)
        accepts = health.engine == "ready" and not health.read_only
        self.area.show_accepting(accepts)
        why_not = retold(health.read_only)
        if health.ends_after_running:
            why_not = self.tr("This window quits when its running tasks have ended.")
        elif gone:
            why_not = gone
        self.acts.allow_starts(accepts and not (health.ends_after_running or gone), why_not)

    def _show_programs(self) -> None:
        self.status.show_programs(self.bridge.programs.status)

    def _show_title(self) -> None:
        """Set the title to the shown ledgers; Qt adds the program's name."""
        if self._health is not None:
            self.setWindowTitle(plain_title(self.beside.title(self._health.root)))

    # List and details.

    @property
    def selected(self) -> list[TaskView]:
        return self.scope.views()

    def _show_scope(self) -> None:
        number, counts = len(self.scope), self.scope.counts
        for key in ("copy_ids", "copy_rows"):
            self.acts[key].setEnabled(bool(number))
        self.acts["task_folder"].setEnabled(number == 1)
        why_not = self.tr("Only tasks that have not ended can be cancelled.")
        self.acts.allow_chosen("cancel", bool(counts.cancellable), why_not, chosen=number)
        if not number:  # also after the chosen tasks have gone
            self._unchosen.start()
        self._show_numbers()

    def _show_selection(self, ids: Sequence[str]) -> None:
        # The same ids, as after a focus change, are no new selection.
        if list(ids) != self.scope.ids():
            self.started_task_selector.forget()
        self.scope.choose(ids)
        self._show_pane()
        self._follow(ids[0] if len(ids) == 1 else None)

    def _show_all_chosen(self) -> None:
        self.started_task_selector.forget()
        self.scope.choose_matching()
        self._show_pane()
        self._follow(None)

    def _show_pane(self) -> None:
        """Show the details for a choice and hide them without one; the row stays in sight."""
        if not len(self.scope):
            self._unchosen.start()
            return
        self._has_asked = False
        if not self._has_chosen:
            self._has_chosen = True
            self._arrange()
            self.tall.refresh()  # Qt would lay it out later, and the row be out of sight until then
            self.table.show_current()

    def _hide_pane(self) -> None:
        if self._has_chosen and not len(self.scope):
            self._has_chosen = False
            if self.details.isAncestorOf(self.focusWidget()):  # Qt would take any next widget
                self.table.setFocus()
            self._arrange()

    def _ask_for_pane(self, wanted: bool) -> None:
        """Show the details without a choice, where the user asks for them."""
        self._has_asked = wanted
        self._arrange()

    def _follow(self, one: str | None) -> None:
        if one != self._followed:
            self._followed = one
            self.bridge.follow_events(None)
            self._show_details()

    def _arrange(self, *_: object) -> None:
        """Hide filter and details for an empty list, and the details while no row is chosen."""
        populated = self.area.state not in ("empty", "trouble")
        self.filter_bar.setVisible(populated)
        wanted = self._has_chosen or self._has_asked
        shown = populated and self.acts["details"].isChecked() and wanted
        self.details.setVisible(shown)
        self.bridge.show_events(shown)

    def _show_details(self) -> None:
        one = self._followed
        self._seen = None if one is None else self.model.view_of(one)
        if one is None:
            self.details.show_view(None)
        else:
            model = self.model
            self.details.show_view(self._seen, model.stall_after_ms(one), model.speed(one))

    def _show_numbers(self) -> None:
        shown, total = self.model.rowCount(), self.model.total
        self.area.show_numbers(shown, total)
        self.filter_bar.show_counts(shown, total, len(self.scope))

    def clear_filter(self) -> None:
        self.narrowing.clear()

    def new_task(self) -> None:
        self.requests.new_task()

    def paste(self) -> None:
        self.requests.paste()

    def cancel_selected(self) -> None:
        self.requests.cancel(self.selected)

    # The window itself.

    def _show_folder(self, folder: Path) -> None:
        from gui.style.questions import show_folder

        show_folder(folder)

    def _step_region(self, step: int) -> None:
        from gui.style.accessibility import step_region

        step_region(self.regions(), step)

    def _show_about(self) -> None:
        from gui.commands.help_dialog import About

        About(self._health, self.bridge, self, self.beside.states).open()

    def choose_folder(self) -> None:
        """Open a dialog for another ledger, which the program then opens."""
        start = self._health.root if self._health else ""
        title = self.tr("Open another folder of tasks")
        from gui.style.questions import ask_folder

        ask_folder(self, title, start, self.folder_wanted.emit)

    def show_ledger_folder(self) -> None:
        if self._health is not None:
            self._show_folder(Path(self._health.root))

    def show_task_folder(self) -> None:
        if self._health is not None and self._followed is not None:
            self._show_folder(self.bridge.engine.tasks.folder_of(self._followed))

    def remember(self) -> None:
        """Save the layout for the next start."""
        memory = self.memory
        memory.keep_shape("window", self.saveGeometry())
        if not self.furnished:
            return
        memory.keep_shape("wide", self.wide.saveState())
        memory.keep_shape("tall", self.tall.saveState())
        memory.keep_shape("header", self.table.header().saveState())
        for pane in ("sidebar", "details"):
            memory.keep_flag(pane, self.acts[pane].isChecked())
        memory.keep_sort(self.model.sort_keys)
        memory.keep_text("filter", self.filter_bar.text)
        memory.keep_text("sidebar-state", self.sidebar.save_state())
        memory.keep_text("details-tab", self.details.save_state())
        memory.save()

    def regions(self) -> tuple[Region, ...]:
        """Return the regions for F6, hidden ones included."""
        from gui.style.accessibility import Region

        held = map(self.middle.itemAt, range(self.middle.count()))
        column = [part for item in held if item is not None and (part := item.widget())]
        before = (Region(one, one) for one in (self.tools, self.sidebar, *column))
        return (*before, *self.details.regions(), Region(self.status, self.status))

    def focusNextPrevChild(self, forwards: bool) -> bool:
        from gui.style.accessibility import step

        return self.furnished and step((self.tools, self.wide, self.status), forwards)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self.pressed_early is not None:
            self.pressed_early[event.keyCombination().toCombined()] = None
        super().keyPressEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._parts is not None:
            self.acts.redraw()

    def closeEvent(self, event: QCloseEvent) -> None:
        # The engine must close first, which takes time; the program closes the window afterwards.
        event.ignore()
        self.remember()
        self.close_wanted.emit()


def first_size(room: QSize) -> QSize:
    """Return the size of a window without saved geometry.

    A screen may be too small for any window of the program.
    """
    if room.width() < MIN_WIDTH:
        return FIRST_SIZE
    return FIRST_SIZE.boundedTo(room - QSize(0, TITLE_HEIGHT))


def place_aside(saved: QRect, room: QRect) -> QPoint:
    """Return the place of a further window, so that both title bars are seen."""
    moved = saved.translated(ASIDE)
    return moved.topLeft() if room.contains(moved) else room.topLeft()


class _Outline(QWidget):
    """Placeholder for sidebar and rows."""

    painted = Signal()

    def __init__(self, beside: int, parent: QWidget) -> None:
        super().__init__(parent)
        self._beside = beside
        self._rows = Skeleton(self)
        self._told = False

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._rows.setGeometry(self.rect().adjusted(self._beside + 8, BARS_HEIGHT, -8, -32))

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._told:
            self._told = True
            QTimer.singleShot(0, self, self.painted.emit)  # The rows are painted after this
