"""Creation of the window's parts in steps, after the first paint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QApplication, QToolBar

from gui.commands.bulk_reports import Reports
from gui.commands.bulk_work import BulkWork
from gui.commands.copy_rows import Copying
from gui.commands.requests import Requests
from gui.commands.scope import Scope
from gui.commands.select_started_task import Newcomer
from gui.desktop.launch_handling import Arrivals
from gui.details.panel import Details
from gui.engine_link.bridge import Bridge
from gui.engine_link.services import Desk
from gui.engine_link.subscription import Calm
from gui.filters.active_filter import Narrowing
from gui.filters.filter_bar import FilterBar
from gui.filters.sidebar import Sidebar
from gui.ledgers.open_ledgers import SideBySide
from gui.startup.features import FEATURES
from gui.style.banners import Banner
from gui.style.icons import window_icon
from gui.tasks.task_model import TaskModel
from gui.tasks.task_table import TaskTable
from gui.window.actions import Actions
from gui.window.arrangement import follow_table, recall
from gui.window.health_banners import Trouble
from gui.window.list_area import ListArea, WaysOut
from gui.window.status_bar import StatusBar

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow


Broken = Callable[[str, Exception], object]


def furnishing(window: MainWindow, bridge: Bridge, broken: Broken | None = None) -> Iterator[None]:
    """Create and connect the parts and features; Qt may process events after each step.

    The parts become visible together in the last step. A feature that fails is reported to `broken`
    and left out; without `broken` the error is raised.
    """
    window.desk, window.bridge = Desk(bridge, window.memory, window.preferences), bridge
    _make_list(window)
    yield
    _make_frame(window)
    yield
    _make_workers(window)
    yield
    window.connect_parts()
    follow_table(window.acts, window.table)
    yield
    for attach in FEATURES:
        _hang(attach, window, broken)
        yield
    window.fill_menus()
    recall(window, window.memory)
    window.begin()


def _hang(
    attach: Callable[[MainWindow], object], window: MainWindow, broken: Broken | None
) -> None:
    try:
        attach(window)
    except Exception as error:
        if broken is None:
            raise
        broken(attach.__module__.rpartition(".")[2], error)


def furnish(window: MainWindow, bridge: Bridge) -> None:
    """Run all steps of `furnishing` at once."""
    for _ in furnishing(window, bridge):
        pass


def _make_list(window: MainWindow) -> None:
    window.model = TaskModel(window)
    window.table = TaskTable(window)
    window.table.setModel(window.model)
    window.sidebar, window.filter_bar = Sidebar(window), FilterBar(window)


def _make_frame(window: MainWindow) -> None:
    window.details = Details(window, window.desk)
    window.banner, window.undo_bar = Banner(window), Banner(window)
    window.news_bar = Banner(window)
    QApplication.setWindowIcon(window_icon())
    window.status, window.tools = StatusBar(window), QToolBar(window)
    window.area = ListArea(window.table, _ways_out(window), window)
    window.acts = Actions(window)


def _make_workers(window: MainWindow) -> None:
    bridge = window.bridge
    window.calm = Calm(lambda: (window.table, window.sidebar), window, bridge.hold)
    bridge.batch.connect(window.calm.hear)  # Connected before the table
    window.scope = Scope(window.model, window)
    window.scope.ask_memory(bridge.remembers)
    window.beside = SideBySide(window)
    window.copying = Copying(window.scope, window.model, window)
    window.narrowing = Narrowing(window.model, window.sidebar, window.filter_bar, window)
    window.newcomer = Newcomer(window.table, window.news_bar, window.clear_filter)
    window.requests = Requests(bridge, window, window.undo_bar)
    window.trouble = Trouble(window.banner, window.choose_folder, bridge.warm)
    window.arrivals = Arrivals(window)
    window.lay_out()
    window.bulk = BulkWork(bridge, window.middle, window)
    window.reports = Reports(window)


def _ways_out(window: MainWindow) -> WaysOut:
    return WaysOut(
        new_task=window.new_task,
        sample=window.bridge.start_sample,
        open_folder=window.choose_folder,
        clear_filter=window.clear_filter,
        rescan=window.bridge.rescan,
    )
