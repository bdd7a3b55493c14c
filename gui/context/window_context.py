"""Services and parts that every part of the window may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtWidgets import QWidget

from gui.context.actions import Actions
from gui.context.open_ledgers import SideBySide
from gui.context.scope import Scope
from gui.engine_link.bridge import Bridge
from gui.engine_link.services import Desk
from gui.state.preferences import Preferences
from gui.state.window_state import Memory
from gui.style.banners import Banner
from gui.tasks.task_model import TaskModel
from gui.tasks.task_table import TaskTable


@dataclass(frozen=True, slots=True)
class WindowContext:
    """Shared services of one window, passed to its parts.

    `parent` is the window, as parent of dialogs and parts; `scope` is the scope of the next action.
    `news_bar` shows one message above the status bar, `open_folder` replaces the window's own
    ledger, `clear_filter` clears the filter.
    """

    parent: QWidget
    services: Desk
    model: TaskModel
    table: TaskTable
    scope: Scope
    actions: Actions
    ledgers: SideBySide
    news_bar: Banner
    open_folder: Callable[[Path], object]
    clear_filter: Callable[[], object]

    @property
    def bridge(self) -> Bridge:
        return self.services.bridge

    @property
    def memory(self) -> Memory:
        return self.services.memory

    @property
    def preferences(self) -> Preferences:
        return self.services.preferences
