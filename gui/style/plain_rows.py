"""How the lists beside the large one look: whole rows are chosen, no grid, lines of one height."""

from __future__ import annotations

from PySide6.QtCore import QItemSelectionModel
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView


def show_plain_rows(table: QTableView) -> None:
    """Dress `table`, which has its model. Tab leaves it instead of going from cell to cell."""
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
    # It would ask whether each column is selected, all rows through, at every repaint.
    header.setSelectionModel(QItemSelectionModel(table.model(), header))
