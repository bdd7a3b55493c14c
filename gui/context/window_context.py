"""Services and parts that every part of the window may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from gui.context.actions import Actions
from gui.context.open_ledgers import SideBySide
from gui.context.preferences import Memory, Preferences
from gui.context.scope import Scope
from gui.engine_link.bridge import Bridge
from gui.style.banners import Banner
from gui.tasks.task_model import TaskModel
from gui.tasks.task_table import TaskTable


class TimeRange(QObject):
    """Time range: start and end (ms since 1970), None for the whole task.

    `units` holds the units finished in the range, for lists whose rows have no time.
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.range: tuple[float, float] | None = None
        self.units: frozenset[str] = frozenset()

    def choose(self, start_ms: float, end_ms: float, units: frozenset[str] = frozenset()) -> None:
        """Select from `start_ms` to `end_ms`, inclusive."""
        chosen = (min(start_ms, end_ms), max(start_ms, end_ms))
        if (chosen, units) != (self.range, self.units):
            self.range, self.units = chosen, units
            self.changed.emit()

    def clear(self) -> None:
        """Remove the range."""
        if self.range is not None:
            self.range, self.units = None, frozenset()
            self.changed.emit()

    def holds(self, ts_ms: float) -> bool:
        return self.range is None or self.range[0] <= ts_ms <= self.range[1]

    def names(self, unit: str) -> bool:
        """Return whether this unit (a page's address, a command) finished in the range."""
        return self.range is None or unit in self.units


class Wishes(QObject):
    """Requests between parts of the window that do not depend on each other.

    `result` opens the result viewer of a task at a unit (or None), `retry` starts a task for its
    failed units (or for one page, if its address is not ""), `export` saves its results as a file,
    `task` selects a task. `pop_up` shows a desktop notification, `unread` is the number of unread
    notices. `undo` (what, words, act) offers an undo until it comes without words. `dropped` (mime,
    otherwise) handles a dropped folder of tasks, and calls `otherwise` for anything else. `imports`
    brings exported tasks from files.
    """

    result = Signal(str, object)
    retry = Signal(str, str)
    export = Signal(str)
    task = Signal(str)
    pop_up = Signal(object)
    unread = Signal(int)
    undo = Signal(str, str, object)
    dropped = Signal(object, object)
    imports = Signal(object)


@dataclass(frozen=True, slots=True)
class Desk:
    """Services of one window.

    `memory` keeps the window state, `preferences` the settings. `span` is the time range of the
    selected task shown in the details; `wishes` carries requests between parts.
    """

    bridge: Bridge
    memory: Memory
    preferences: Preferences = field(default_factory=Preferences)
    span: TimeRange = field(default_factory=TimeRange)
    wishes: Wishes = field(default_factory=Wishes)


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
