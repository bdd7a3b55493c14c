"""The window's frame: its parts, where they stand, and what hangs on them."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMainWindow, QSplitter, QToolBar, QVBoxLayout, QWidget

from gui.actions import Actions
from gui.desk import Desk
from gui.details.panel import Details
from gui.filter_bar import FilterBar
from gui.list_area import ListArea, WaysOut
from gui.sidebar import Sidebar
from gui.states import Banner
from gui.status_bar import StatusBar
from gui.tab_order import step
from gui.task_model import TaskModel
from gui.task_table import TaskTable

MIN_WIDTH, MIN_HEIGHT = 900, 560
FIRST_SIZE = (1180, 760)
SIDEBAR_WIDTH = 190


class Frame(QMainWindow):
    """Everything that is seen, not yet connected."""

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self.desk = desk
        self.bridge, self.memory = desk.bridge, desk.memory
        self.setMinimumSize(MIN_WIDTH, MIN_HEIGHT)
        self.resize(*FIRST_SIZE)
        self.model = TaskModel(self)
        self.table = TaskTable(self)
        self.table.setModel(self.model)
        self.sidebar, self.filter_bar = Sidebar(self), FilterBar(self)
        self.details = Details(self, desk)
        self.banner, self.undo_bar, self.news_bar = Banner(self), Banner(self), Banner(self)
        self.status, self.tools = StatusBar(self), QToolBar(self)
        self.area = ListArea(self.table, self._ways_out(), self)
        self.acts = Actions(self)

    def _ways_out(self) -> WaysOut:
        raise NotImplementedError

    def lay_out(self) -> None:
        """Put the parts in their places and fill menus and toolbar."""
        middle = QWidget(self)
        self.middle = column = QVBoxLayout(middle)
        column.setContentsMargins(8, 8, 8, 4)
        column.setSpacing(6)
        for part in (self.banner, self.filter_bar, self.area, self.news_bar, self.undo_bar):
            column.addWidget(part, 1 if part is self.area else 0)
        self.tall, self.wide = QSplitter(Qt.Orientation.Vertical), QSplitter()
        self.tall.addWidget(middle)
        self.tall.addWidget(self.details)
        self.tall.setSizes([FIRST_SIZE[1] // 2] * 2)
        self.wide.addWidget(self.sidebar)
        self.wide.addWidget(self.tall)
        self.wide.setStretchFactor(1, 1)
        self.wide.setSizes([SIDEBAR_WIDTH, FIRST_SIZE[0] - SIDEBAR_WIDTH])
        for splitter in (self.tall, self.wide):
            splitter.setChildrenCollapsible(False)
        self.setCentralWidget(self.wide)
        self.setStatusBar(self.status)
        self.addToolBar(self.tools)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)

    def fill_menus(self) -> None:
        """After every part has added its actions."""
        self.acts.fill_tool_bar(self.tools)
        self.acts.fill_menu_bar()

    def focusNextPrevChild(self, forwards: bool) -> bool:
        return step((self.tools, self.wide, self.status), forwards)

    def regions(self) -> tuple[QWidget, ...]:
        """What F6 goes through; what is hidden is passed over."""
        held = map(self.middle.itemAt, range(self.middle.count()))
        column = [part for item in held if item is not None and (part := item.widget())]
        return (self.tools, self.sidebar, *column, self.details, self.status)
