"""A table of commands fits into a narrow window: its columns give way, and tips say the rest."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from gui.details.commands_tab import StepModel
from gui.details.unit_columns import ITEM_COLUMNS
from gui.details.unit_list import UnitModel
from gui.style.tables import PlainTable

STEP = {
    "tool_name": "browser_interact",
    "intention": "put the cheapest one of them into the basket",
    "args": {"action": "click", "selector": "#products > li:nth-child(3) > button.buy"},
    "status": "success",
    "startedAt": 1_000,
    "completedAt": 66_000,
}
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
