"""What a tab of the details is: made when it is first looked at, told only while it is in sight."""

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
    """One tab. It reads what it shows through `desk.bridge.ask`, never on the loop."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.desk = desk

    @abstractmethod  # the type checker holds it: Qt's classes have a metaclass of their own
    def show_task(self, view: TaskView) -> None:
        """Show this task as it stands: when the tab comes into sight, and at news while it is."""

    def leave(self) -> None:
        """Nobody looks any more (another tab, task or no task): end what is under way."""


@dataclass(frozen=True, slots=True)
class TabKind:
    """`key` also names its title (`details.KEY` of the messages). `make` imports what it needs."""

    key: str
    make: Callable[[Desk, QWidget], DetailTab]
    suits: Callable[[TaskView], bool] = lambda _: True

    @property
    def title(self) -> str:
        return words.say(f"details.{self.key}")
