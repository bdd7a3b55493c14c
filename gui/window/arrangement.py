"""How the window is arranged: kept for its next start, and offered as menus of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QMenu

from gui.state.window_state import Memory
from gui.tasks.columns import COLUMNS
from gui.tasks.task_table import TaskTable
from gui.window.actions import Actions

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow


def recall(window: MainWindow, memory: Memory) -> None:
    """Arrange the parts of `window` as they were left; its place it has from the beginning."""
    window.wide.restoreState(memory.shape("wide"))
    window.tall.restoreState(memory.shape("tall"))
    window.table.restore_header(memory.shape("header"))
    for pane in ("sidebar", "details"):
        window.acts[pane].setChecked(memory.flag(pane, True))
    window.acts.themes[memory.theme].setChecked(True)
    known = {column.key for column in COLUMNS}
    keys = [key for key in memory.sort_keys() if key[0] in known]
    if keys:
        window.model.set_sort(keys)
    window.filter_bar.set_text(memory.text("filter"))
    window.sidebar.restore_state(memory.text("sidebar-state"))
    window.details.restore_state(memory.text("details-tab"))


def remember(window: MainWindow, memory: Memory) -> None:
    """Keep how `window` is arranged now."""
    memory.keep_shape("window", window.saveGeometry())
    memory.keep_shape("wide", window.wide.saveState())
    memory.keep_shape("tall", window.tall.saveState())
    memory.keep_shape("header", window.table.header().saveState())
    for pane in ("sidebar", "details"):
        memory.keep_flag(pane, window.acts[pane].isChecked())
    memory.keep_sort(window.model.sort_keys)
    memory.keep_text("filter", window.filter_bar.text)
    memory.keep_text("sidebar-state", window.sidebar.save_state())
    memory.keep_text("details-tab", window.details.save_state())
    memory.save()


def follow_table(actions: Actions, table: TaskTable) -> None:
    """Fill the menu for columns from the table, each time it opens."""
    columns = actions.menus["columns"]
    columns.aboutToShow.connect(lambda: _fill_columns(columns, table))


def _fill_columns(menu: QMenu, table: TaskTable) -> None:
    menu.clear()
    table.header().fill_menu(menu)
