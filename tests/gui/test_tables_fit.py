"""A table of commands fits into a narrow window: its columns give way, and tips say the rest."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QApplication, QStyledItemDelegate, QStyleOptionViewItem

from engine.results.units import Unit
from gui.details.commands_tab import StepModel
from gui.details.unit_columns import ITEM_COLUMNS
from gui.details.unit_list import UnitModel
from gui.style.tables import PlainTable, row_height
from gui.style.theme import tone
from gui.tasks.task_header import TaskHeader

STEP = {
    "tool_name": "browser_interact",
    "intention": "put the cheapest one of them into the basket",
    "args": {"action": "click", "selector": "#products > li:nth-child(3) > button.buy"},
    "status": "success",
    "startedAt": 1_000,
    "completedAt": 66_000,
}
COLOUR = int(Qt.ItemDataRole.ForegroundRole)
NAME_AT = next(at for at, column in enumerate(ITEM_COLUMNS) if column.key == "name")
MIDDLE = Qt.AlignmentFlag.AlignVCenter
TIP = int(Qt.ItemDataRole.ToolTipRole)


def shown(qtbot: Any, width: int) -> PlainTable:
    model = StepModel()
    model.show_steps([STEP] * 3)
    table = PlainTable(model, "Commands", model.widths, least=model.least)
    model.setParent(table)
    qtbot.addWidget(table)
    table.resize(width, 200)
    table.show()
    return table


@pytest.mark.parametrize("characters", [60, 75, 90, 140])
def test_tables_need_no_side_scroll(qapp: QApplication, qtbot: Any, characters: int) -> None:
    table = shown(qtbot, 300)
    table.resize(characters * table.fontMetrics().averageCharWidth() + 40, 200)
    header = table.horizontalHeader()
    qtbot.waitUntil(lambda: table.horizontalScrollBar().maximum() == 0, timeout=60_000)
    assert header.length() <= table.viewport().width()
    assert all(header.sectionSize(at) > 16 for at in range(header.count()))


def test_hidden_columns_return_with_their_width(qapp: QApplication, qtbot: Any) -> None:
    table = shown(qtbot, 1400)
    header = table.horizontalHeader()
    wide = [header.sectionSize(at) for at in range(header.count())]
    table.resize(500, 200)
    assert header.sectionSize(3) < wide[3]
    table.resize(1400, 200)
    assert [header.sectionSize(at) for at in range(header.count())] == wide
    table._touched = True
    header.resizeSection(3, 333)
    table.resize(500, 200)
    assert header.sectionSize(3) == 333


def test_a_table_that_a_click_on_its_tab_shows_still_shares_its_room(
    qapp: QApplication, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = Qt.MouseButton.LeftButton
    monkeypatch.setattr("gui.style.tables.QApplication.mouseButtons", lambda: down)
    model = UnitModel(ITEM_COLUMNS)
    table = PlainTable(model, "Items", [one.width for one in ITEM_COLUMNS], grows=2)
    model.setParent(table)
    qtbot.addWidget(table)
    table.resize(300, 200)
    table.show()
    table.show_columns(model.rare_columns)
    table.resize(1500, 200)
    wide = table.columnWidth(2)
    rare = dict.fromkeys(model.rare_columns, True)
    table.show_columns(rare)
    assert table.columnWidth(2) == wide - sum(map(table.columnWidth, rare))
    table.horizontalHeader().resizeSection(2, 150)
    table.resize(1800, 200)
    assert table.columnWidth(2) == 150, "somebody dragged it"


def test_what_is_cut_off_stands_in_a_tip(qapp: QApplication, qtbot: Any) -> None:
    table = shown(qtbot, 400)
    model = table.model()
    assert "put the cheapest one of them" in model.index(0, 3).data(TIP)
    assert "nth-child(3)" in model.index(0, 5).data(TIP)
    assert model.headerData(5, Qt.Orientation.Horizontal, TIP) == "Arguments or error"


def units(qtbot: Any, *reasons: str) -> PlainTable:
    model = UnitModel(ITEM_COLUMNS)
    rows = [
        Unit(at, "failed" if reason else "done", f"http://site.test/{at}", reason=reason)
        for at, reason in enumerate(reasons)
    ]
    model.add(rows)
    widths = [column.width for column in ITEM_COLUMNS]
    table = PlainTable(model, "Items", widths, grows=NAME_AT)
    model.setParent(table)
    qtbot.addWidget(table)
    table.show_columns(model.rare_columns)
    table.favour_last(model.has_reasons)
    table.resize(1000, 200)
    table.show()
    return table


def test_a_reason_has_more_room_than_an_address_which_keeps_its_least(
    qapp: QApplication, qtbot: Any
) -> None:
    header = units(qtbot, "", "the server answered without a page").horizontalHeader()
    last = header.count() - 1
    assert header.sectionSize(last) > header.sectionSize(NAME_AT)
    assert header.sectionSize(NAME_AT) >= 24 * header.fontMetrics().averageCharWidth()
    header = units(qtbot, "", "").horizontalHeader()
    assert header.sectionSize(last) < header.sectionSize(NAME_AT)


def test_the_last_column_that_is_shown_has_the_room_of_a_hidden_one(
    qapp: QApplication, qtbot: Any
) -> None:
    table = units(qtbot, "", "")
    header = table.horizontalHeader()
    last = header.count() - 1
    table.show_columns({last: False, last - 1: True})
    table.resize(1010, 200)
    assert header.length() == table.viewport().width()
    assert header.sectionSize(NAME_AT) > 24 * header.fontMetrics().averageCharWidth()
    least = 28 * header.fontMetrics().averageCharWidth()
    assert abs(header.sectionSize(last - 1) - least) < 2, "as the last one has it"


def test_the_reason_of_a_failed_row_has_the_colour_of_errors(
    qapp: QApplication, qtbot: Any
) -> None:
    model = units(qtbot, "", "the server answered without a page").model()
    last = model.columnCount() - 1
    assert model.index(1, last).data(COLOUR) == tone("bad", QApplication.palette())
    assert model.index(1, 1).data().startswith("✕")
    assert model.index(0, last).data(COLOUR) is None


def test_prose_is_cut_at_its_end_and_an_address_in_its_middle(
    qapp: QApplication, qtbot: Any
) -> None:
    table = units(qtbot, "the server answered without a page")
    last = table.model().columnCount() - 1
    table.elide_right([last])
    modes = {}
    for at in (NAME_AT, last):
        option = QStyleOptionViewItem()
        table.initViewItemOption(option)
        delegate = table.itemDelegate()
        assert isinstance(delegate, QStyledItemDelegate)
        delegate.initStyleOption(option, table.model().index(0, at))
        modes[at] = option.textElideMode
    assert modes == {NAME_AT: Qt.TextElideMode.ElideMiddle, last: Qt.TextElideMode.ElideRight}


def test_tables_of_details_have_the_rows_and_the_header_of_the_task_list(
    qapp: QApplication, qtbot: Any
) -> None:
    table = units(qtbot, "")
    height = table.fontMetrics().height()
    assert table.rowHeight(0) == row_height(height)
    header = TaskHeader()
    qtbot.addWidget(header)
    assert table.horizontalHeader().sizeHint().height() == header.sizeHint().height()


def test_the_titles_of_a_header_are_on_one_line(qapp: QApplication, qtbot: Any) -> None:
    """A model that names only the side of a title leaves it in the middle of the height."""

    class Sided(UnitModel):
        def headerData(self, section: int, orientation: Any, role: int = 0) -> Any:
            if role == int(Qt.ItemDataRole.TextAlignmentRole):
                return (
                    Qt.AlignmentFlag.AlignLeft if section else Qt.AlignmentFlag.AlignLeft | MIDDLE
                )
            return "Title"

    model = Sided(ITEM_COLUMNS[:2])
    table = PlainTable(model, "Items", [10, 10])
    model.setParent(table)
    qtbot.addWidget(table)
    table.resize(400, 100)
    table.show()
    header = table.horizontalHeader()
    width, height = header.sectionSize(0), header.height()
    shown = header.grab(QRect(0, 0, 2 * width, height)).toImage()
    first, second = (
        [[shown.pixel(x, y) for x in range(left + 2, left + 60)] for y in range(height)]
        for left in (0, width)
    )
    assert first == second
