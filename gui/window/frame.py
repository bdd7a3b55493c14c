"""The window's frame: its parts, where they stand, and what hangs on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6 import QtWidgets
from PySide6.QtWidgets import QWidget

from gui.window.shell import FIRST_SIZE, SIDEBAR_WIDTH, Shell

if TYPE_CHECKING:
    from PySide6.QtWidgets import QToolBar

    from gui.details.panel import Details
    from gui.engine_link.bridge import Bridge
    from gui.engine_link.services import Desk
    from gui.filters.filter_bar import FilterBar
    from gui.filters.sidebar import Sidebar
    from gui.ledgers.open_ledgers import SideBySide
    from gui.style.banners import Banner
    from gui.tasks.task_model import TaskModel
    from gui.tasks.task_table import TaskTable
    from gui.window.actions import Actions
    from gui.window.list_area import ListArea
    from gui.window.status_bar import StatusBar


class Frame(Shell):
    """Everything that is seen, not yet connected; `window_builder` makes the parts."""

    desk: Desk
    bridge: Bridge
    model: TaskModel
    table: TaskTable
    sidebar: Sidebar
    filter_bar: FilterBar
    details: Details
    banner: Banner
    undo_bar: Banner
    news_bar: Banner
    status: StatusBar
    tools: QToolBar
    area: ListArea
    beside: SideBySide
    acts: Actions
    furnished = False

    def lay_out(self) -> None:
        """Join the parts as they will stand."""
        from PySide6.QtCore import Qt  # 45 ms, and the first paint needs none of it

        middle = QWidget(self)
        self.middle = column = QtWidgets.QVBoxLayout(middle)
        column.setContentsMargins(8, 8, 8, 4)
        column.setSpacing(6)
        for part in (self.banner, self.filter_bar, self.area, self.news_bar, self.undo_bar):
            column.addWidget(part, 1 if part is self.area else 0)
        self.tall = QtWidgets.QSplitter(Qt.Orientation.Vertical)
        self.wide = QtWidgets.QSplitter()
        self.tall.addWidget(middle)
        self.tall.addWidget(self.details)
        self.tall.setSizes([FIRST_SIZE.height() // 2] * 2)
        self.wide.addWidget(self.sidebar)
        self.wide.addWidget(self.tall)
        self.wide.setStretchFactor(1, 1)
        self.wide.setSizes([SIDEBAR_WIDTH, FIRST_SIZE.width() - SIDEBAR_WIDTH])
        for splitter in (self.tall, self.wide):
            splitter.setChildrenCollapsible(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)

    def show_parts(self) -> None:
        """Put them where the outline was."""
        self.setUpdatesEnabled(False)
        self.setCentralWidget(self.wide)
        self.setStatusBar(self.status)
        self.addToolBar(self.tools)
        self.furnished = True
        self.setUpdatesEnabled(True)

    def fill_menus(self) -> None:
        """After every part has added its actions."""
        self.acts.fill_tool_bar(self.tools)
        self.acts.fill_menu_bar()

    def focusNextPrevChild(self, forwards: bool) -> bool:
        from gui.style.tab_order import step

        return self.furnished and step((self.tools, self.wide, self.status), forwards)

    def regions(self) -> tuple[QWidget, ...]:
        """What F6 goes through; what is hidden is passed over."""
        held = map(self.middle.itemAt, range(self.middle.count()))
        column = [part for item in held if item is not None and (part := item.widget())]
        return (self.tools, self.sidebar, *column, self.details, self.status)
