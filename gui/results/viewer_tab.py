"""What a tab of the result viewer is: told of the task and of the unit that is current."""

from __future__ import annotations

from abc import abstractmethod

from PySide6.QtWidgets import QWidget

from engine.model.records import TaskView
from engine.results.units import Unit
from gui.engine_link.services import Desk


class ViewerTab(QWidget):
    """Told only while it is in sight. It reads through `desk.bridge`, never on the loop."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.desk = desk

    @abstractmethod  # the type checker holds it: Qt's classes have a metaclass of their own
    def show_task(self, view: TaskView, unit: Unit | None) -> None:
        """Show this task as it stands, and of its units this one."""

    def leave(self) -> None:
        """Nobody looks any more: end what is under way."""
