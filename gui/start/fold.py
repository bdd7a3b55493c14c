"""Collapsible part of a form, expanded by an error inside."""

from __future__ import annotations

from abc import abstractmethod

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QGridLayout, QToolButton, QVBoxLayout, QWidget

from gui.start.field import Field
from gui.style.icons import wear

HALF = 240  # Largest width in pixels of a check box that shares a row


class Fold(QWidget):
    """Heading that expands and collapses `column`."""

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
        """Return whether `widget` is inside the collapsible part."""
        return self.inner.isAncestorOf(widget)

    def _show(self, shown: bool) -> None:
        wear(self.toggle, "less" if shown else "more")
        self.inner.setVisible(shown)
        self.unfolded.emit(shown)


class LateFold(Fold):
    """Collapsible part created on first use, since each hidden field costs 2 ms."""

    is_made = False

    def need(self) -> None:
        """Create the content once."""
        if not self.is_made:
            self.is_made = True
            self.make_inside()

    @abstractmethod  # Enforced by the type checker, because Qt's metaclass excludes ABCMeta
    def make_inside(self) -> None:
        """Fill `column` with the content."""

    def _show(self, shown: bool) -> None:
        self.need()
        super()._show(shown)


def grid_of(*fields: Field, columns: int = 2) -> QGridLayout:
    """Return a grid of fields with labels above; check boxes have their own text."""
    grid = QGridLayout()
    grid.setHorizontalSpacing(16)
    grid.setVerticalSpacing(10)
    place = 0
    for field in fields:
        whole = _is_long(field)  # Its text cannot wrap and would squeeze the other fields
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
    """Return whether the field is a check box wider than half a form."""
    return isinstance(field.editor, QCheckBox) and field.editor.sizeHint().width() > HALF
