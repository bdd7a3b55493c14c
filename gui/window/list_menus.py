"""Menus of the list: the sort keys, set by keyboard, and the columns."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMenu

from gui.context.actions import Actions
from gui.context.window_context import WindowContext
from gui.tasks.columns import COLUMN_AT, COLUMNS
from gui.tasks.task_header import next_order
from gui.tasks.task_order import NEWEST_FIRST
from gui.tasks.task_table import TaskTable


class SortMenu(QObject):
    """Fill the `Sort by` menu each time it opens, also by its own shortcut."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._table = ctx.table
        self._menu = ctx.actions.menus["sort"]
        self._then = QMenu(self.tr("&Then by"), self._menu)
        self._menu.aboutToShow.connect(self._fill)
        action = ctx.actions.add("sort_menu", self.tr("S&ort the list…"), ["Ctrl+Shift+S"])
        action.triggered.connect(lambda _=False: self.open())

    def open(self) -> None:
        """Open the menu below the header of the list."""
        self._menu.popup(self._table.mapToGlobal(self._table.header().geometry().bottomLeft()))

    def _fill(self) -> None:
        menu, keys = self._menu, self._table.tasks.sort_keys
        menu.clear()
        self._offer(menu, further=False)
        menu.addSeparator()
        self._then.clear()
        self._offer(self._then, further=True)
        menu.addMenu(self._then)
        (first, down), *others = keys
        turn = menu.addAction(self.tr("Turn the order &round"))
        turn.triggered.connect(lambda _=False: self._sort([(first, not down), *others]))
        newest = menu.addAction(self.tr("&Newest first"))
        newest.setEnabled(keys != NEWEST_FIRST)
        newest.triggered.connect(lambda _=False: self._sort(list(NEWEST_FIRST)))

    def _offer(self, menu: QMenu, *, further: bool) -> None:
        """Add one action for each column:

        the first key is checked, further keys show their rank.
        """
        keys = self._table.tasks.sort_keys
        ranks = {key: number for number, (key, _) in enumerate(keys, 1)}
        for column in self._table.header().columns:
            rank = ranks.get(column.key, 0)
            if further and rank == 1:
                continue
            action = menu.addAction(self._named(column.key, rank))
            action.setCheckable(True)
            action.setChecked(rank > 1 if further else rank == 1)
            wanted = next_order(keys, column.key, further=further)
            action.triggered.connect(lambda _=False, wanted=wanted: self._sort(wanted))

    def _named(self, key: str, rank: int) -> str:
        title = COLUMNS[COLUMN_AT[key]].long_title
        if not rank:
            return title
        if self._table.tasks.sort_keys[rank - 1][1]:
            return self.tr("{0} ({1}, descending)").format(title, rank)
        return self.tr("{0} ({1}, ascending)").format(title, rank)

    def _sort(self, keys: list[tuple[str, bool]]) -> None:
        self._table.tasks.set_sort(keys)


def follow_table(actions: Actions, table: TaskTable) -> None:
    """Fill the column menu from the table each time it opens."""
    columns = actions.menus["columns"]
    columns.aboutToShow.connect(lambda: _fill_columns(columns, table))


def _fill_columns(menu: QMenu, table: TaskTable) -> None:
    menu.clear()
    table.header().fill_menu(menu)
