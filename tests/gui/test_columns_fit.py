"""Columns: their widths where room is short, and how they are kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QByteArray, QPoint, Qt
from PySide6.QtGui import QFont, QFontInfo, QFontMetrics
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from engine.model.records import TaskView
from engine.service.forms import startable
from gui.style.tables import Share, fitted
from gui.tasks import task_table
from gui.tasks.columns import COLUMN_AT, COLUMNS
from gui.tasks.task_header import next_order
from gui.tasks.task_model import TaskModel
from gui.tasks.task_table import TaskTable
from tests.gui.task_views import NOW, a_view

SHARES = st.lists(
    st.builds(
        lambda key, least, more, fixed, yields: Share(
            str(key), least + more, least, fixed=fixed, yields=0 if fixed else yields
        ),
        st.integers(0, 1000),
        st.integers(10, 100),
        st.integers(0, 200),
        st.booleans(),
        st.integers(0, 4),
    ),
    unique_by=lambda share: share.key,
    max_size=12,
)


@given(SHARES, st.integers(0, 2000))
def test_what_can_fit_fits_and_fills_the_room(others: list[Share], room: int) -> None:
    shares = [Share("task", 300, 80, fills=True), *others]
    widths = fitted(shares, room)
    firm = [share for share in shares if not share.yields]
    given_up = 40  # half of what the one that fills the room has at its smallest
    if sum(share.usual if share.fixed else share.least for share in firm) - given_up <= room:
        assert sum(widths.values()) == room
    else:
        assert widths == {share.key: share.usual for share in shares}
    for share in shares:
        if share.key in widths:
            least = share.least - given_up if share.fills else share.least
            assert widths[share.key] >= min(least, share.usual)
            assert not share.fixed or widths[share.key] == share.usual
        else:
            assert share.yields


def tall_order() -> st.SearchStrategy[list[tuple[str, bool]]]:
    return st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), unique_by=lambda key: key[0])


@given(tall_order(), st.sampled_from("abc"), st.booleans())
def test_orders_have_unique_columns(keys: list[tuple[str, bool]], key: str, further: bool) -> None:
    found = next_order(tuple(keys), key, further=further)
    names = [name for name, _ in found]
    assert names
    assert len(set(names)) == len(names)
    assert further or names == [key]


def usual_letters(font: QFont) -> QFont:
    """This font, as wide at most as the letters that the widths here were measured with.

    Which fonts there are is the machine's; in one that is wider the same size needs more room.
    """
    fit, size = QFont(font), QFontInfo(font).pixelSize()
    while size > 4 and _is_wide(QFontMetrics(fit)):
        size -= 1
        fit.setPixelSize(size)
    return fit


def _is_wide(letters: QFontMetrics) -> bool:
    return letters.averageCharWidth() > 6 or letters.horizontalAdvance("oc_session_snapshot") > 127


@pytest.fixture
def table(qtbot: QtBot) -> TaskTable:
    table = TaskTable()
    qtbot.addWidget(table)
    table.setFont(usual_letters(table.font()))
    model = TaskModel(table, now_ms=lambda: NOW)
    table.setModel(model)
    table.resize(1100, 400)
    table.show()
    model.put_many([a_view(n, age=n * 1000) for n in range(1, 60)])
    return table


def widths(table: TaskTable) -> list[int]:
    return [table.header().sectionSize(number) for number in range(len(COLUMNS))]


def middle(table: TaskTable, key: str) -> QPoint:
    header, at = table.header(), COLUMN_AT[key]
    left = header.sectionViewportPosition(at)
    return QPoint(left + header.sectionSize(at) // 2, header.height() // 2)


def edge(table: TaskTable, key: str) -> QPoint:
    header, at = table.header(), COLUMN_AT[key]
    right = header.sectionViewportPosition(at) + header.sectionSize(at)
    return QPoint(right - 1, header.height() // 2)


def double_click(table: TaskTable, key: str) -> None:
    place, left, at = table.header().viewport(), Qt.MouseButton.LeftButton, edge(table, key)
    QTest.mouseDClick(place, left, pos=at)
    QTest.mouseRelease(place, left, pos=at)  # Qt's double click leaves the button pressed


@pytest.mark.parametrize("wide", [690, 900, 1100, 1600])
def test_a_click_on_a_title_changes_no_width_and_brings_no_bar(table: TaskTable, wide: int) -> None:
    table.resize(wide, 400)
    header = table.header()
    assert not table.horizontalScrollBar().maximum()
    for column in COLUMNS:
        if header.isSectionHidden(COLUMN_AT[column.key]):
            continue
        QTest.mouseClick(
            header.viewport(), Qt.MouseButton.LeftButton, pos=middle(table, column.key)
        )
        assert table.tasks.sort_keys[0][0] == column.key
        assert header.length() == header.viewport().width()
        assert not table.horizontalScrollBar().maximum()


def test_the_longest_kind_is_shown_whole_wherever_its_column_is_shown(table: TaskTable) -> None:
    table.tasks.put_many([a_view(n, kind=kind) for n, kind in enumerate(startable(), 1)])
    character, at, given = table.fontMetrics().averageCharWidth(), COLUMN_AT["kind"], set()
    for wide in range(100, 400, 5):
        table.resize(wide * character, 400)
        given.add(0 if table.isColumnHidden(at) else table.header().sectionSize(at))
    double_click(table, "kind")  # as wide as the widest of its cells
    assert min(given - {0}) >= table.header().sectionSize(at)


def test_what_gives_way_in_a_narrow_window_comes_back_in_a_wide_one(table: TaskTable) -> None:
    table.resize(600, 400)
    assert table.isColumnHidden(COLUMN_AT["updated"])
    assert table.header().is_wanted("updated")
    table.resize(1600, 400)
    assert not table.isColumnHidden(COLUMN_AT["updated"])


def a_task_near_its_budget(number: int) -> TaskView:
    given = {"policy": {"maxToolCalls": 50}, "counters": {"toolCalls": 41}}
    return a_view(number, "RUNNING", kind="browser_task", age=number * 1000, **given)


def test_a_rare_column_is_shown_while_a_row_in_sight_has_a_value(
    table: TaskTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_table, "USED_S", float("inf"))  # the moment ends by hand only
    budget = COLUMN_AT["budget"]
    QApplication.processEvents()
    assert table.isColumnHidden(budget)
    table.tasks.put_many([a_task_near_its_budget(70)])  # below all others
    QApplication.processEvents()
    assert table.isColumnHidden(budget)
    table.scrollToBottom()
    QApplication.processEvents()
    assert not table.isColumnHidden(budget)
    table.scrollToTop()
    QApplication.processEvents()
    assert not table.isColumnHidden(budget)  # for a moment, so that nothing flickers
    monkeypatch.setattr(task_table, "USED_S", 0.0)
    table.pulse.pace()
    QApplication.processEvents()
    assert table.isColumnHidden(budget)


def test_a_rare_column_that_was_asked_for_or_sorted_by_is_shown_without_values(
    table: TaskTable,
) -> None:
    table.header().show_column("rate", True)
    table.tasks.set_sort([("budget", True)])
    QApplication.processEvents()
    assert not table.isColumnHidden(COLUMN_AT["rate"])
    assert not table.isColumnHidden(COLUMN_AT["budget"])
    assert table.isColumnHidden(COLUMN_AT["eta"])


def test_a_column_that_was_asked_for_or_sorted_by_does_not_give_way(table: TaskTable) -> None:
    table.header().show_column("updated", True)
    table.tasks.set_sort([("rate", True)])
    table.resize(690, 400)
    assert not table.isColumnHidden(COLUMN_AT["updated"])
    assert not table.isColumnHidden(COLUMN_AT["rate"])


@pytest.mark.parametrize("key", [column.key for column in COLUMNS if not column.hidden])
def test_orders_fit_into_the_smallest_window(table: TaskTable, key: str) -> None:
    # of all columns that there may be; a kind in full and the ledger are 23 pixels too many
    table.header().show_several(key != "kind")
    table.resize(900 - 208, 300)  # beside the states
    table.tasks.set_sort([(key, False)])
    QApplication.processEvents()  # Qt finds out in the next turn how far there is to scroll
    assert table.horizontalScrollBar().maximum() == 0
    assert not table.isColumnHidden(COLUMN_AT[key])


def test_a_double_click_on_an_edge_fits_the_column(table: TaskTable, qtbot: QtBot) -> None:
    table.header().show_column("id", True)
    double_click(table, "id")
    wide = table.header().sectionSize(COLUMN_AT["id"])
    assert wide >= table.fontMetrics().horizontalAdvance("0" * 16)
    other = TaskTable()
    qtbot.addWidget(other)
    other.setModel(TaskModel(other))
    other.resize(1100, 400)
    assert other.restore_header(table.header().saveState())
    other.show()
    assert other.header().sectionSize(COLUMN_AT["id"]) == wide


def test_a_double_click_on_the_edge_of_task_lets_it_fill_the_room_again(table: TaskTable) -> None:
    table.header().resizeSection(COLUMN_AT["task"], 1500)
    assert table.header().length() > table.viewport().width()
    double_click(table, "task")
    assert table.header().length() == table.viewport().width()


@pytest.mark.parametrize(
    "state", [b"", b"\x00\xff\x00rubbish", b"columns 1\ntask no 3", b"columns 2\n"]
)
def test_a_state_that_is_none_changes_nothing(table: TaskTable, state: bytes) -> None:
    before = widths(table)
    assert not table.restore_header(QByteArray(state))
    assert widths(table) == before


def test_columns_that_a_kept_state_does_not_know_stay_as_they_are(table: TaskTable) -> None:
    state = b"columns 2\nstatus yes 0\ntask no 0\nnonsense yes 7\nage no 99999999999"
    assert table.restore_header(QByteArray(state))
    assert not table.isColumnHidden(COLUMN_AT["task"])  # its name always stays
    assert table.isColumnHidden(COLUMN_AT["age"])
    assert table.isColumnHidden(COLUMN_AT["host"])
    assert not table.isColumnHidden(COLUMN_AT["kind"])


def test_the_menu_of_columns_says_why_a_chosen_column_is_not_shown(table: TaskTable) -> None:
    def titles() -> list[str]:
        menu = QMenu(table)
        table.header().fill_menu(menu)
        return [action.text() for action in menu.actions() if action.isChecked()]

    QApplication.processEvents()
    assert {"Rate (no values yet)", "Budget (no values yet)", "Updated"} <= set(titles())
    table.resize(600, 400)
    assert "Updated (no room)" in titles()
    table.header().show_column("rate", True)
    assert "Rate" in titles()


def test_the_usual_columns_can_be_had_back(table: TaskTable) -> None:
    before = widths(table)
    table.header().show_column("host", True)
    table.header().moveSection(2, 0)
    table.header().resizeSection(COLUMN_AT["kind"], 40)
    menu = QMenu(table)
    table.header().fill_menu(menu)
    menu.actions()[-1].trigger()
    assert widths(table) == before
    assert [table.header().visualIndex(n) for n in range(4)] == [0, 1, 2, 3]


def test_choosing_a_row_never_scrolls_the_columns_away(table: TaskTable) -> None:
    table.header().resizeSection(COLUMN_AT["task"], 2000)
    QApplication.processEvents()
    assert table.horizontalScrollBar().maximum()
    table.setCurrentIndex(table.tasks.index(0, COLUMN_AT["age"]))
    table.horizontalScrollBar().setValue(0)
    table.setFocus()
    QTest.keyClicks(table, "jj")
    assert table.horizontalScrollBar().value() == 0
    QTest.keyClick(table, Qt.Key.Key_Left)
    assert table.currentIndex().column() == COLUMN_AT["progress"]
    assert table.horizontalScrollBar().value() > 0
