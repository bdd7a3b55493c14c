"""Common look of secondary tables: whole rows selected, no grid, one row height."""

from __future__ import annotations

from PySide6.QtCore import QItemSelectionModel
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView


def show_plain_rows(table: QTableView) -> None:
    """Configure `table`, which has its model; Tab leaves the table."""
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
    table.setTabKeyNavigation(False)
    table.setShowGrid(False)
    table.setWordWrap(False)
    table.setCornerButtonEnabled(False)
    rows, header = table.verticalHeader(), table.horizontalHeader()
    rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
    rows.setDefaultSectionSize(table.fontMetrics().height() + 6)
    rows.hide()
    header.setHighlightSections(False)
    # A shared selection model would check all rows of each column at every repaint.
    header.setSelectionModel(QItemSelectionModel(table.model(), header))
