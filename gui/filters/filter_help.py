"""Help for the filter language: fields with examples, and how to combine them."""

from __future__ import annotations

import sys
from collections.abc import Callable

from PySide6.QtCore import QObject, QSize
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QHeaderView,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.query import FIELDS
from engine.text.messages import retold
from gui.context.window_context import WindowContext
from gui.filters.filter_bar import FilterBar
from gui.style.accessibility import InOrder
from gui.style.completion_popup import Roomy
from gui.style.theme import heading, plain_label
from gui.tasks.facets import ROOT

_SIZE = QSize(620, 560)
_EXAMPLE_WIDTH = 260
_ALT = "⌥" if sys.platform == "darwin" else "Alt"


class FilterHelp(InOrder, QDialog):
    """Modeless dialog whose examples a double click or Enter copies into the filter."""

    def __init__(
        self, put: Callable[[str], object], parent: QWidget, *, several: bool = False
    ) -> None:
        super().__init__(parent)
        self._put, self._several = put, several
        self.setWindowTitle(self.tr("What can be filtered by"))
        self.resize(_SIZE)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 12)
        column.setSpacing(8)
        column.addWidget(heading(self.tr("Words, and conditions of fields"), self))
        lead = self.tr(
            "Every word must occur in the task's id, name, address, kind, state or error. A field "
            "with a value asks for more. Double-click an example to use it."
        )
        column.addWidget(plain_label(lead, self, wrap=True))
        self.table = self._table()
        column.addWidget(self.table, 1)
        close = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        close.rejected.connect(self.close)
        column.addWidget(close)

    def _table(self) -> QTreeWidget:
        table = QTreeWidget(self)
        table.setAccessibleName(self.windowTitle())
        table.setColumnCount(2)
        table.setHeaderLabels([self.tr("Write"), self.tr("Finds")])
        table.setRootIsDecorated(False)
        table.setUniformRowHeights(True)
        table.setAlternatingRowColors(True)
        table.setTabKeyNavigation(False)
        table.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Interactive)
        table.header().resizeSection(0, _EXAMPLE_WIDTH)
        by_hand = self.tr("{0}+click on a cell").format(_ALT)
        rows = (*self._joining(), (by_hand, self.tr("the value of that cell")), *self._fields())
        for example, meaning in rows:
            QTreeWidgetItem(table, [example, meaning])
        table.setCurrentIndex(table.model().index(0, 0))
        table.setItemDelegate(Roomy(table))
        table.itemActivated.connect(lambda item, _: self._use(item.text(0)))
        return table

    def _joining(self) -> tuple[tuple[str, str], ...]:
        return (
            ("shop timeout", self.tr("both words, in any order")),
            ('"page timeout"', self.tr("these words together, as they stand")),
            ("status:failed kind:crawl", self.tr("both conditions")),
            ("status:failed OR status:orphaned", self.tr("one of them")),
            ("-host:example.com", self.tr("all but these")),
            ("(status:failed OR budget:exceeded) age:<1d", self.tr("brackets join")),
            ("host:*.example.com", self.tr("* stands for any text")),
        )

    def _fields(self) -> list[tuple[str, str]]:
        """Return all fields; the ledger field is useful only with several ledgers."""
        fields = ((name, one) for name, one in FIELDS.items() if self._several or name != ROOT)
        return [(f"{name}:{one.example}", retold(one.help)) for name, one in fields]

    def _use(self, example: str) -> None:
        if _ALT + "+" not in example:  # Mouse gestures cannot be copied into the filter
            self._put(example)


# Opening the help dialog.


class Help(QObject):
    """Open one help dialog at a time and keep it for reuse."""

    def __init__(self, ctx: WindowContext, filter_bar: FilterBar) -> None:
        super().__init__(ctx.parent)
        self._filter_bar = filter_bar
        self._ctx = ctx
        self._dialog: QDialog | None = None
        self._several = False
        filter_bar.help_wanted.connect(self.open)

    def open(self) -> None:
        several = bool(self._ctx.ledgers.states)
        if self._dialog is None or several != self._several:
            put, self._several = self._filter_bar.set_text, several
            self._dialog = FilterHelp(put, self._ctx.parent, several=several)
        self._dialog.show()
        self._dialog.raise_()
        self._dialog.activateWindow()
