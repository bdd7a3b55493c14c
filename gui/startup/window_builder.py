"""Creation of the window's parts in steps, after the first paint, and shortcuts until then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QApplication, QSplitter, QToolBar, QVBoxLayout, QWidget

from engine.model.build_info import build_info
from engine.model.records import Health
from gui.commands.attention import AttentionActions, RunRows
from gui.commands.browser_setup import BrowserSetup
from gui.commands.bulk_work import BulkBar, BulkWork, Reports
from gui.commands.cluster_workers_dialog import ClusterWorkersActions
from gui.commands.consent_rules_dialog import ConsentRulesActions
from gui.commands.copy_rows import Copying, DragOut, add_link_action
from gui.commands.deleting import Deleting, UndoAction
from gui.commands.exporting import Exporting
from gui.commands.force_complete import ForceComplete
from gui.commands.help_actions import HelpActions
from gui.commands.hold_starts import HoldStarts
from gui.commands.importing import Importing
from gui.commands.ledger_actions import LedgerActions, LedgerDisplay, LedgerTrouble, WatchOnly
from gui.commands.open_result import Viewing
from gui.commands.palette import Palette
from gui.commands.profiles_dialog import ProfileActions
from gui.commands.rerunning import Replaying, Rerunning, Resuming, Retrying
from gui.commands.schedules_dialog import Scheduling
from gui.commands.task_requests import CancelListed, Requests, StartedTaskSelector
from gui.context.actions import OVERVIEW, Actions
from gui.context.open_ledgers import SideBySide
from gui.context.scope import Scope
from gui.context.window_context import Desk, WindowContext
from gui.desktop.awaited_ends import FinishThenQuit
from gui.desktop.notifications import make_bell
from gui.details.page_tab import PageWatching
from gui.details.panel import Details, RerunLinks, Several, add_tab_keys
from gui.engine_link.bridge import Bridge
from gui.engine_link.subscription import RepaintThrottle
from gui.filters.active_filter import ActiveFilter, CellFilter, EmptyResultHints
from gui.filters.filter_bar import FilterBar, Help
from gui.filters.sidebar import Sidebar, SidebarWidth
from gui.filters.views_menu import Views
from gui.settings.appearance import Appearance, Contrast, LanguageMenu
from gui.settings.shortcuts import Shortcuts
from gui.start.launch_handling import LaunchHandler, StartActions
from gui.style.accessibility import show_focus_ring
from gui.style.banners import Banner
from gui.style.icons import window_icon
from gui.style.widgets import arrange
from gui.tasks.columns import COLUMNS
from gui.tasks.task_model import TaskModel
from gui.tasks.task_table import TaskTable
from gui.window.list_area import (
    ColumnPrefetch,
    ContractCounts,
    ListArea,
    SortMenu,
    WaysOut,
    follow_table,
)
from gui.window.main_window import FIRST_SIZE, SIDEBAR_WIDTH, MainWindow, WindowParts
from gui.window.status_bar import Meters, StatusBar
from gui.window.trouble_banner import Trouble

Broken = Callable[[str, Exception], object]


Attach = Callable[[MainWindow, WindowParts], object]


def furnishing(window: MainWindow, bridge: Bridge, broken: Broken | None = None) -> Iterator[None]:
    """Create and connect the parts and features; Qt may process events after each step.

    The parts become visible together in the last step. A feature that fails is reported to `broken`
    and left out; without `broken` the error is raised.
    """
    builder = WindowBuilder(window, bridge)
    for step in builder.steps:
        step()
        yield
    parts = builder.parts
    window.take_parts(parts)
    follow_table(parts.context.actions, parts.context.table)
    yield
    for name, attach in FEATURES:
        try:
            attach(window, parts)
        except Exception as error:
            if broken is None:
                raise
            broken(name, error)
        yield
    actions = parts.context.actions
    parts.details.overview.state_actions.offer(actions.known(OVERVIEW))
    actions.fill_tool_bar(parts.tools)
    actions.fill_menu_bar()
    _recall(parts)
    window.begin()


def furnish(window: MainWindow, bridge: Bridge) -> None:
    """Run all steps of `furnishing` at once."""
    for _ in furnishing(window, bridge):
        pass


class WindowBuilder:
    """Create `parts` in `steps`, each of which needs the previous ones."""

    def __init__(self, window: MainWindow, bridge: Bridge) -> None:
        self._window, self._bridge = window, bridge
        self.parts = WindowParts()
        self.steps = (
            self._make_list,
            self._make_context,
            self._make_frame,
            self._make_commands,
            self._lay_out,
        )

    def _make_list(self) -> None:
        window, p = self._window, self.parts
        self._model = TaskModel(window)
        self._table = TaskTable(window)
        self._table.setModel(self._model)
        p.sidebar, p.filter_bar = Sidebar(window), FilterBar(window)
        p.narrowing = ActiveFilter(self._model, p.sidebar, p.filter_bar, window)

    def _make_context(self) -> None:
        window, bridge, model, p = self._window, self._bridge, self._model, self.parts
        p.calm = RepaintThrottle(lambda: (self._table, p.sidebar), window, bridge.hold)
        bridge.batch.connect(p.calm.hear)  # Connected before the table
        scope = Scope(model, window)
        scope.ask_memory(bridge.remembers)
        p.context = WindowContext(
            parent=window,
            services=Desk(bridge, window.memory, window.preferences),
            model=model,
            table=self._table,
            scope=scope,
            actions=Actions(window),
            ledgers=SideBySide(bridge, window.preferences, model, window),
            news_bar=Banner(window),
            open_folder=window.folder_wanted.emit,
            clear_filter=p.narrowing.clear,
        )

    def _make_frame(self) -> None:
        window, bridge, p = self._window, self._bridge, self.parts
        p.details = Details(window, p.context.services)
        p.banner, p.undo_bar = Banner(window), Banner(window)
        QApplication.setWindowIcon(window_icon())
        p.status, p.tools = StatusBar(window), QToolBar(window)
        ways_out = WaysOut(
            new_task=window.new_task,
            paste=window.paste,
            sample=bridge.start_sample,
            open_folder=window.choose_folder,
            clear_filter=p.narrowing.clear,
            rescan=bridge.rescan,
            create_root=bridge.create_root,
        )
        p.area = ListArea(self._table, ways_out, window)
        p.column = QVBoxLayout()

    def _make_commands(self) -> None:
        window, p = self._window, self.parts
        context = p.context
        p.copying = Copying(context.scope, self._model, window)
        p.started_task_selector = StartedTaskSelector(
            self._table, context.news_bar, context.clear_filter
        )
        p.trouble = Trouble(p.banner, window.choose_folder, self._bridge.warm)
        p.bulk = BulkWork(self._bridge, p.column, window)
        p.reports = Reports(context)
        p.requests = Requests(context, p.undo_bar, p.bulk, p.reports)
        trouble = p.trouble
        p.arrivals = LaunchHandler(
            context, p.requests.starting, trouble.show_missing, trouble.hide_missing
        )
        p.ledger_display = LedgerDisplay(
            context, p.sidebar, p.narrowing, p.status.show_beside, p.copying.show_several
        )
        p.finish_quit = FinishThenQuit(context)
        p.shortcuts = Shortcuts(context)

    def _lay_out(self) -> None:
        """Arrange the parts in layouts."""
        p, middle = self.parts, QWidget(self._window)
        middle.setLayout(p.column)
        bars = (p.context.news_bar, p.undo_bar, p.reports.bar, p.reports.aside)
        parts = (p.finish_quit.bar, p.banner, p.filter_bar, (p.area, 1), *bars)
        arrange(p.column, *parts, margins=(8, 8, 8, 4), spacing=6)
        p.tall, p.wide = QSplitter(Qt.Orientation.Vertical), QSplitter()
        p.tall.addWidget(middle)
        p.tall.addWidget(p.details)
        p.tall.setSizes([FIRST_SIZE.height() // 2] * 2)
        p.wide.addWidget(p.sidebar)
        p.wide.addWidget(p.tall)
        p.wide.setStretchFactor(1, 1)
        p.wide.setSizes([SIDEBAR_WIDTH, FIRST_SIZE.width() - SIDEBAR_WIDTH])
        SidebarWidth(p.wide, p.sidebar, p.context.memory, least=SIDEBAR_WIDTH)
        for splitter in (p.tall, p.wide):
            splitter.setChildrenCollapsible(False)
        self._window.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)


def _recall(parts: WindowParts) -> None:
    """Restore the saved layout of the parts; the window has its geometry already."""
    context = parts.context
    memory, actions = context.memory, context.actions
    parts.wide.restoreState(memory.shape("wide"))
    parts.tall.restoreState(memory.shape("tall"))
    context.table.restore_header(memory.shape("header"))
    for pane in ("sidebar", "details"):
        actions[pane].setChecked(memory.flag(pane, True))
    actions.themes[memory.theme].setChecked(True)
    known = {column.key for column in COLUMNS}
    keys = [key for key in memory.sort_keys() if key[0] in known]
    if keys:
        context.model.set_sort(keys)
    parts.filter_bar.set_text(memory.text("filter"))
    parts.sidebar.restore_state(memory.text("sidebar-state"))
    parts.details.restore_state(memory.text("details-tab"))


Pressed = Callable[[], dict[int, None] | None]

STARTS: Final = ("new", "paste")  # Actions that wait for the engine


class EarlyKeys(QObject):
    """Run each early shortcut once; disabled actions are dropped.

    `pressed` returns the keys, or None while no action can run; `forget` drops them.
    """

    def __init__(self, ctx: WindowContext, pressed: Pressed, forget: Callable[[], object]) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._pressed, self._forget = ctx, pressed, forget
        # At the first health signal the bridge runs, close requests are connected, and user
        # shortcuts apply.
        ctx.bridge.health.connect(self._hear)
        ctx.bridge.unusable.connect(self._end)

    def _hear(self, health: Health) -> None:
        pressed, acts = self._pressed(), self._ctx.actions
        waiting = [acts[key] for key in STARTS]
        if pressed is None:
            return
        for keys in list(pressed):
            action = self._action_of(keys)
            if action is not None and action.isEnabled():
                QTimer.singleShot(0, action, action.trigger)
            elif action in waiting:
                continue
            del pressed[keys]
        if health.engine == "ready" or health.read_only:
            self._end()

    def _action_of(self, keys: int) -> QAction | None:
        """Return the window action with this shortcut."""
        wanted, acts = QKeySequence(keys), self._ctx.actions
        found = (acts[key] for key in acts if wanted in acts[key].shortcuts())
        whole = Qt.ShortcutContext.WindowShortcut
        return next((one for one in found if one.shortcutContext() == whole), None)

    def _end(self, *_: object) -> None:
        self._forget()
        self._ctx.bridge.health.disconnect(self._hear)
        self._ctx.bridge.unusable.disconnect(self._end)


# Features of the window by name, each of which adds its actions and connects itself. They are
# created before menus and toolbar are filled. Dialogs are imported on use, because the first paint
# waits for every import.


def _bulk_bar(window: MainWindow, p: WindowParts) -> None:
    bar = BulkBar(p.context, p.reports)
    p.copying.copied.connect(bar.tell_copied)
    window.insert_bar(bar, after=p.area)


def _deleting(_: MainWindow, p: WindowParts) -> None:
    part = Deleting(p.context, p.bulk, p.reports)
    p.column.addWidget(part.bar)


def _importing(_: MainWindow, p: WindowParts) -> None:
    Importing(p.context, p.bulk, p.reports, p.started_task_selector.expect)


def _ledger_trouble(window: MainWindow, p: WindowParts) -> None:
    part = LedgerTrouble(p.context, window.choose_folder)
    window.insert_bar(part.bar, after=p.banner)


def _hold_starts(window: MainWindow, p: WindowParts) -> None:
    window.insert_bar(HoldStarts(p.context, p.bulk, p.reports).bar, after=p.banner)


def _meters(_: MainWindow, p: WindowParts) -> None:
    meters = Meters(p.context)
    meters.changed.connect(p.status.fit)
    meters.clicked.connect(p.context.actions["statistics"].trigger)
    p.status.add_meters(meters)


def _updates(_: MainWindow, p: WindowParts) -> None:
    if build_info().offers_updates:
        # Most programs offer none, and its HTTP client takes 12 ms to import.
        from gui.commands.updates import UpdateNotices

        p.column.addWidget(UpdateNotices(p.context).bar)


def _browser_setup(window: MainWindow, p: WindowParts) -> None:
    part, trouble = BrowserSetup(p.context), p.trouble
    window.insert_bar(part.bar, after=p.banner)
    trouble.download_wanted.connect(part.ask_download)
    trouble.browser_wanted.connect(part.choose)
    trouble.use_wanted.connect(part.use)
    part.offered.connect(trouble.offer_browsers)
    part.began.connect(trouble.begin_download)
    part.ended.connect(trouble.end_download)
    part.refused.connect(trouble.show_browser_error)
    part.missing.connect(trouble.show_browser_error)


def _schedules(_: MainWindow, p: WindowParts) -> None:
    part = Scheduling(p.context, p.requests, p.reports, p.filter_bar.set_text)
    p.trouble.schedules_wanted.connect(part.open)


def _attention(window: MainWindow, p: WindowParts) -> None:
    window.close_wanted.connect(AttentionActions(p.context).acknowledged.save)


def _help_actions(_: MainWindow, p: WindowParts) -> None:
    part = HelpActions(p.context, p.reports, p.shortcuts)
    p.status.programs_clicked.connect(part.show_programs)


def _cluster_workers(_: MainWindow, p: WindowParts) -> None:
    part = ClusterWorkersActions(p.context)
    p.context.bridge.workers.connect(p.status.show_workers)
    p.status.workers_clicked.connect(part.open)


def _early_keys(window: MainWindow, p: WindowParts) -> None:
    EarlyKeys(
        p.context,
        lambda: window.pressed_early if window.furnished else None,
        window.forget_early_keys,
    )


def _notifications(_: MainWindow, p: WindowParts) -> None:
    p.status.addPermanentWidget(make_bell(p.context, p.arrivals.show_tasks))


FEATURES: tuple[tuple[str, Attach], ...] = (
    ("start_actions", lambda _, p: StartActions(p.context, p.requests.starting)),
    ("list_menus", lambda _, p: SortMenu(p.context)),
    ("column_prefetch", lambda _, p: ColumnPrefetch(p.context.table, p.context.bridge)),
    ("attention", _attention),
    ("bulk_bar", _bulk_bar),
    ("several", lambda _, p: Several(p.context, p.details)),
    ("views_menu", lambda _, p: Views(p.context, p.narrowing, p.sidebar, p.filter_bar)),
    ("cell_filter", lambda _, p: CellFilter(p.context, p.narrowing)),
    (
        "empty_result_hints",
        lambda _, p: EmptyResultHints(p.context, p.narrowing, p.area.show_nearest),
    ),
    ("filter_help", lambda _, p: Help(p.context, p.filter_bar)),
    ("focus_ring", lambda _, p: show_focus_ring()),
    ("rerunning", lambda _, p: Rerunning(p.context, p.requests, p.bulk, p.reports)),
    ("resuming", lambda _, p: Resuming(p.context, p.bulk, p.reports)),
    ("replaying", lambda _, p: Replaying(p.context, p.requests)),
    ("retrying", lambda _, p: Retrying(p.context, p.requests)),
    ("schedules", _schedules),
    ("profiles", lambda _, p: ProfileActions(p.context)),
    ("cluster_workers", _cluster_workers),
    ("consent_rules", lambda _, p: ConsentRulesActions(p.context)),
    ("exporting", lambda _, p: Exporting(p.context)),
    ("importing", _importing),
    ("open_result", lambda _, p: Viewing(p.context)),
    ("force_complete", lambda _, p: ForceComplete(p.context, p.bulk, p.reports)),
    ("cancel_listed", lambda _, p: CancelListed(p.context, p.requests, p.bulk, p.reports)),
    ("hold_starts", _hold_starts),
    ("deleting", _deleting),
    ("undo", lambda _, p: UndoAction(p.context)),
    ("task_links", lambda _, p: add_link_action(p.context)),
    ("drag_out", lambda _, p: DragOut(p.context, p.reports)),
    ("task_run_rows", lambda _, p: RunRows(p.context, p.reports)),
    ("contract_counts", lambda _, p: ContractCounts(p.context.table, p.context.bridge)),
    ("watch_only", lambda _, p: WatchOnly(p.context)),
    ("page_action", lambda _, p: PageWatching(p.context, p.details.restore_state)),
    ("rerun_links", lambda _, p: RerunLinks(p.context, p.details)),
    ("ledger_actions", lambda _, p: LedgerActions(p.context)),
    ("ledger_trouble", _ledger_trouble),
    ("browser_setup", _browser_setup),
    ("tab_keys", lambda _, p: add_tab_keys(p.context, p.details)),
    ("palette", lambda _, p: Palette(p.context, p.requests.starting)),
    ("appearance", lambda _, p: Appearance(p.context)),
    ("help_actions", _help_actions),
    ("meters", _meters),
    ("notifications", _notifications),
    ("updates", _updates),
    ("contrast", lambda _, p: Contrast(p.context)),
    ("language_menu", lambda _, p: LanguageMenu(p.context)),
    ("shortcuts", lambda _, p: p.shortcuts.apply()),
    ("early_keys", _early_keys),
)
