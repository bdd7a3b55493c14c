"""What stands in the window, made in steps: everything that the first paint does not wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QApplication, QToolBar

from gui.actions import Actions
from gui.arrangement import follow_table, recall
from gui.bridge import Bridge
from gui.bulk_work import BulkWork
from gui.calm import Calm
from gui.copying import Copying
from gui.desk import Desk
from gui.desktop.arrivals import Arrivals
from gui.details.panel import Details
from gui.features import FEATURES
from gui.filter_bar import FilterBar
from gui.icons import window_icon
from gui.list_area import ListArea, WaysOut
from gui.narrowing import Narrowing
from gui.newcomer import Newcomer
from gui.reports import Reports
from gui.requests import Requests
from gui.scope import Scope
from gui.side_by_side import SideBySide
from gui.sidebar import Sidebar
from gui.states import Banner
from gui.status_bar import StatusBar
from gui.task_model import TaskModel
from gui.task_table import TaskTable
from gui.trouble import Trouble

if TYPE_CHECKING:
    from gui.main_window import MainWindow


Broken = Callable[[str, Exception], object]


def furnishing(window: MainWindow, bridge: Bridge, broken: Broken | None = None) -> Iterator[None]:
    """Make the parts, wire them and hang the features on; Qt may have a turn after each step.

    None of it is seen before the last step shows all of it at once. A feature that cannot be
    made is told to `broken`, and the window goes on without it; without that it raises.
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
    """As `furnishing`, in one go."""
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
    bridge.batch.connect(window.calm.hear)  # before the table hears of it
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
