"""Lists of records keep the column readable that has the room which the others leave."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtWidgets import QTreeView, QWidget

from gui.style.record_list import Cell, Head, RecordList, SortableList

NAME = "Prices of every day in the whole catalogue"
CELLS = (NAME, "täglich um 07:30 (Europe/Berlin)", "morgen, 07:30", "kann nicht starten, 19:35")
HEADS = ("Name", "Wiederholung", "Nächster Lauf", "Letzter Lauf")


def record_list(parent: QWidget) -> RecordList:
    made = RecordList("Records", HEADS, parent)
    made.show_rows({"1": CELLS})
    return made


def sortable_list(parent: QWidget) -> SortableList:
    made = SortableList("Records", [Head(one) for one in HEADS], parent)
    made.show_cells({"1": lambda column: Cell(CELLS[column], column)})
    return made


def name_room(found: QTreeView) -> float:
    """The room of the first column in characters of its text."""
    return found.columnWidth(0) / found.fontMetrics().averageCharWidth()


@pytest.mark.parametrize("make", [record_list, sortable_list])
def test_a_name_stays_readable_where_the_other_columns_leave_no_room(make: Any, qtbot: Any) -> None:
    page = QWidget()
    qtbot.addWidget(page)
    found: QTreeView = make(page)
    page.resize(2_000, 300)
    found.resize(300, 200)
    page.show()
    qtbot.waitUntil(lambda: name_room(found) >= 24)
    assert found.header().length() > found.viewport().width(), "it scrolls sideways then"
    found.resize(1_500, 200)
    qtbot.waitUntil(lambda: found.header().length() == found.viewport().width())
    assert found.columnWidth(0) >= found.fontMetrics().horizontalAdvance(NAME)


def test_a_short_name_takes_no_room_that_it_does_not_need(qtbot: Any) -> None:
    page = QWidget()
    qtbot.addWidget(page)
    found = record_list(page)
    found.show_rows({"1": ("Shop", *CELLS[1:])})
    page.resize(2_000, 300)
    others = sum(map(found.columnWidth, range(1, 4)))
    found.resize(others + 20 * found.fontMetrics().averageCharWidth(), 200)
    page.show()
    qtbot.waitUntil(lambda: found.header().length() == found.viewport().width())
