"""A part of a form that is folded away until it is wanted; a mistake in it unfolds it."""

from __future__ import annotations

from abc import abstractmethod

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QGridLayout, QToolButton, QVBoxLayout, QWidget

from gui.start.field import Field
from gui.style.themed_icons import wear

HALF = 240  # pixels of a form that a box to tick may take up beside another one


class Fold(QWidget):
    """A heading that shows and hides what is in `column`."""

    unfolded = Signal(bool)

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.inner = QWidget(self)
        self.column = QVBoxLayout(self.inner)
        self.column.setContentsMargins(22, 2, 0, 8)
        self.column.setSpacing(10)
        self.inner.setVisible(False)
        self.toggle = QToolButton(self)
        self.toggle.setText(title)
        wear(self.toggle, "more")
        self.toggle.setCheckable(True)
        self.toggle.setAutoRaise(True)
        self.toggle.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.toggle.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.toggle.toggled.connect(self._show)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(self.toggle, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self.inner)

    @property
    def is_unfolded(self) -> bool:
        return self.toggle.isChecked()

    def unfold(self) -> None:
        self.toggle.setChecked(True)

    def holds(self, widget: QWidget) -> bool:
        """Is it one of those that are folded away with this?"""
        return self.inner.isAncestorOf(widget)

    def _show(self, shown: bool) -> None:
        wear(self.toggle, "less" if shown else "more")
        self.inner.setVisible(shown)
        self.unfolded.emit(shown)


class LateFold(Fold):
    """One whose inside is made when it is first needed: 2 ms for each field that nobody opens."""

    is_made = False

    def need(self) -> None:
        """Make the inside, unless it is there."""
        if not self.is_made:
            self.is_made = True
            self.make_inside()

    @abstractmethod  # held by the type checker: Qt's metaclass takes no other
    def make_inside(self) -> None:
        """Fill `column`."""

    def _show(self, shown: bool) -> None:
        self.need()
        super()._show(shown)


def grid_of(*fields: Field, columns: int = 2) -> QGridLayout:
    """Fields side by side, each name above its editor; boxes to tick carry their own words."""
    grid = QGridLayout()
    grid.setHorizontalSpacing(16)
    grid.setVerticalSpacing(10)
    place = 0
    for field in fields:
        whole = _is_long(field)  # its words cannot be broken, and would push the others aside
        if whole and place % columns:
            place += columns - place % columns
        cell = QVBoxLayout()
        cell.setSpacing(4)
        if field.name.text():
            cell.addWidget(field.name)
        cell.addWidget(field)
        cell.addStretch()
        grid.addLayout(cell, place // columns, place % columns, 1, columns if whole else 1)
        place += columns if whole else 1
    for column in range(columns):
        grid.setColumnStretch(column, 1)
    return grid


def _is_long(field: Field) -> bool:
    """Is it a box whose words are longer than half of a form is wide?"""
    return isinstance(field.editor, QCheckBox) and field.editor.sizeHint().width() > HALF
