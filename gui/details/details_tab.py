"""Base class of the details tabs, shown only while visible, and a notice of a partial list."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from engine.model.records import TaskView
from engine.text import words
from engine.text.words import clock, took
from gui.style.widgets import ElidedLabel, arrange

if TYPE_CHECKING:
    from engine.results.file_reader import FileFacts
    from gui.context.window_context import Desk


EDGES: Final = (4, 8, 4, 0)  # pixels around the content of every tab, below the head line's

Files: TypeAlias = "Sequence[FileFacts] | None"  # of an ended task, once they are read


class DetailTab(QWidget):
    """One tab of the details. It reads through `desk.bridge.ask`, never on the loop."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.desk = desk

    @abstractmethod  # checked by mypy: Qt's metaclass excludes ABC
    def show_task(self, view: TaskView) -> None:
        """Show this task; called when the tab becomes visible, and at changes while it is."""

    def leave(self) -> None:
        """Cancel running reads when the tab is hidden or the task changes."""


@dataclass(frozen=True, slots=True)
class TabKind:
    """Kind of tab: `key` is also its title's message id; `make` imports its module.

    `count` returns the number in its title (None: unknown), by the files of an ended task.
    """

    key: str
    make: Callable[[Desk, QWidget], DetailTab]
    suits: Callable[[TaskView], bool] = lambda _: True
    count: Callable[[TaskView, Files], int | None] = lambda *_: None

    @property
    def title(self) -> str:
        return words.say(f"details.{self.key}")


class PartBar(QWidget):
    """Notice of a partial list, hidden while all rows are shown.

    `back` requests the newest events, `all_time` removes the time range.
    """

    back = Signal()
    all_time = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.is_place = False
        self._span: tuple[float, float] | None = None
        self._told = ElidedLabel("warning", self)
        self._all = QPushButton(self.tr("Show all"), self)
        self._back = QPushButton(self.tr("Back to the newest"), self)
        self._all.clicked.connect(self.all_time)
        self._back.clicked.connect(self.back)
        arrange(QHBoxLayout(self), (self._told, 1), self._all, self._back, margins=(4, 0, 0, 0))
        self._show_state()

    def show_place(self, shown: bool) -> None:
        """Set whether only events around one position are loaded."""
        self.is_place = shown
        self._show_state()

    def show_span(self, span: tuple[float, float] | None) -> None:
        """Set the shown time range (ms since 1970); None: all."""
        self._span = span
        self._show_state()

    def _show_state(self) -> None:
        self.setVisible(self.is_place or self._span is not None)
        self._all.setVisible(self._span is not None)
        self._back.setVisible(self.is_place)
        self._told.show_text(self._words())

    def _words(self) -> str:
        if self._span is None:
            return self.tr("Only events around one place of the file are shown.")
        start, end = self._span
        said = self.tr("Only from {0} to {1} ({2}).")
        return said.format(clock(start, end), clock(end, end), took(end - start))
