"""Base class of the details tabs: created on first display, updated only while visible."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from engine.model.records import TaskView
from engine.text import words

if TYPE_CHECKING:
    from gui.engine_link.services import Desk


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
    """Kind of tab: `key` is also its title's message id; `make` imports its module."""

    key: str
    make: Callable[[Desk, QWidget], DetailTab]
    suits: Callable[[TaskView], bool] = lambda _: True

    @property
    def title(self) -> str:
        return words.say(f"details.{self.key}")
