from __future__ import annotations

import gc
import sys

import pytest
from PySide6.QtCore import QAbstractItemModel, QEvent, QPoint, Qt
from PySide6.QtGui import QColor, QContextMenuEvent, QFocusEvent, QImage, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from engine.query import Filter
from gui.tasks.columns import COLUMN_AT, COLUMNS
from gui.tasks.task_model import TaskModel
from gui.tasks.task_table import IDLE_TICK_MS, LIVE_TICK_MS, YOUNG_TICK_MS, TaskTable
from tests.gui.task_views import HOUR, NOW, a_view, task_id

SHIFT, NONE = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.NoModifier


@pytest.fixture
def table(qtbot: QtBot) -> TaskTable:
    """A table of twenty finished tasks, newest on top; 4 and 9 failed."""
    table = TaskTable()
    qtbot.addWidget(table)
    model = TaskModel(table, now_ms=lambda: NOW)
    table.setModel(model)
    table.resize(1100, 400)
    table.show()
    model.put_many([a_view(n, "FAILED" if n in (4, 9) else "COMPLETED") for n in range(1, 21)])
    return table


def click_title(table: TaskTable, key: str, modifier: Qt.KeyboardModifier = NONE) -> None:
    header = table.header()
    middle = (
        header.sectionViewportPosition(COLUMN_AT[key]) + header.sectionSize(COLUMN_AT[key]) // 2
    )
    at = QPoint(middle, header.height() // 2)
    QTest.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, modifier, at)


def test_selection_stays_with_the_tasks_when_rows_move_and_arrive(table: TaskTable) -> None:
    table.select_ids([task_id(2), task_id(5)])
    table.tasks.put_many([a_view(30, age=10)])
    table.tasks.set_sort([("task", True)])
    assert set(table.selected_ids()) == {task_id(2), task_id(5)}


def test_a_large_selection_survives_moving_rows(table: TaskTable) -> None:
    table.tasks.put_many([a_view(n, age=n * HOUR) for n in range(100, 1100)])
    chosen = {task_id(n) for n in range(100, 700)}
    table.select_ids(chosen)
    table.verticalScrollBar().setValue(300)
    held: list[int] = []
    told: list[list[str]] = []
    moving = table.tasks.layoutAboutToBeChanged
    moving.connect(lambda: held.append(len(table.tasks.persistentIndexList())))
    table.selection_changed.connect(told.append)
    current = table.current_id()
    table.tasks.set_sort([("task", True)])
    assert max(held, default=0) < 100
    assert set(table.selected_ids()) == chosen
    assert table.current_id() == current
    assert table.verticalScrollBar().value() == 300
    assert told == []


def test_selection_and_current_task_survive_a_filter_that_shows_them(table: TaskTable) -> None:
    table.select_ids([task_id(4), task_id(9), task_id(10)])
    said: list[list[str]] = []
    table.selection_changed.connect(said.append)
    table.tasks.set_filter(Filter.of("status:failed"))
    assert table.selected_ids() == [task_id(4), task_id(9)]
    assert table.current_id() == task_id(4)
    assert said == [[task_id(4), task_id(9)]]


def test_a_click_on_a_title_sorts_and_another_turns_it_round(table: TaskTable) -> None:
    click_title(table, "task")
    assert table.tasks.sort_keys == (("task", False),)
    click_title(table, "task")
    assert table.tasks.sort_keys == (("task", True),)


def test_a_click_with_shift_adds_a_key(table: TaskTable) -> None:
    click_title(table, "status")
    click_title(table, "age", SHIFT)
    click_title(table, "age", SHIFT)
    assert table.tasks.sort_keys == (("status", False), ("age", True))


def test_j_and_k_walk_and_n_finds_trouble_round_the_end(table: TaskTable) -> None:
    table.setFocus()
    QTest.keyClicks(table, "jjk")
    assert table.selected_ids() == [task_id(1)]
    QTest.keyClicks(table, "n")
    assert table.current_id() == task_id(4)
    QTest.keyClicks(table, "nn")
    assert table.current_id() == task_id(4)
    QTest.keyClick(table, Qt.Key.Key_N, SHIFT)
    assert table.current_id() == task_id(9)


def test_home_and_end_select_the_first_and_last_task(table: TaskTable) -> None:
    first, last = task_id(1), task_id(20)
    table.setFocus()
    QTest.keyClicks(table, "jj")
    QTest.keyClick(table, Qt.Key.Key_End)
    assert (table.current_id(), table.selected_ids()) == (last, [last])
    QTest.keyClick(table, Qt.Key.Key_Home)
    assert (table.current_id(), table.selected_ids()) == (first, [first])
    QTest.keyClick(table, Qt.Key.Key_End, SHIFT)
    assert len(table.selected_ids()) == 20


def test_return_opens_the_current_task(table: TaskTable, qtbot: QtBot) -> None:
    table.select_ids([task_id(3)])
    with qtbot.waitSignal(table.activated_task, timeout=60_000) as opened:
        QTest.keyClick(table, Qt.Key.Key_Return)
    assert opened.args == [task_id(3)]


def test_tab_leaves_the_table(table: TaskTable) -> None:
    assert not table.tabKeyNavigation()


def test_all_can_be_selected_and_told_quickly(table: TaskTable) -> None:
    table.selectAll()
    assert len(table.selected_ids()) == 20


def test_the_task_column_takes_the_room_that_is_left(table: TaskTable) -> None:
    header = table.header()
    assert header.length() == table.viewport().width()
    table.resize(1400, 400)
    assert header.length() == table.viewport().width()


def test_columns_come_back_as_they_were(table: TaskTable, qtbot: QtBot) -> None:
    menu = QMenu(table)
    table.header().fill_menu(menu)
    menu.actions()[COLUMN_AT["id"]].setChecked(True)
    menu.actions()[COLUMN_AT["kind"]].setChecked(False)
    table.header().moveSection(5, 3)
    state = table.header().saveState()
    other = TaskTable()
    qtbot.addWidget(other)
    other.setModel(TaskModel(other))
    assert other.restore_header(state)
    assert not other.isColumnHidden(COLUMN_AT["id"])
    assert other.isColumnHidden(COLUMN_AT["kind"])
    assert other.header().visualIndex(5) == 3


def test_several_columns_can_be_chosen_before_the_menu_closes(table: TaskTable) -> None:
    menu = QMenu(table)
    for _ in range(2):  # as at each opening
        menu.clear()
        table.header().fill_menu(menu)
    menu.popup(table.mapToGlobal(QPoint(0, 0)))
    entry = menu.actions()[COLUMN_AT["id"]]
    QTest.mouseClick(menu, Qt.MouseButton.LeftButton, pos=menu.actionGeometry(entry).center())
    assert menu.isVisible()
    assert not table.isColumnHidden(COLUMN_AT["id"])
    menu.setActiveAction(menu.actions()[COLUMN_AT["kind"]])
    QTest.keyClick(menu, Qt.Key.Key_Return)
    assert menu.isVisible()
    assert table.isColumnHidden(COLUMN_AT["kind"])
    menu.setActiveAction(menu.actions()[-1])
    QTest.keyClick(menu, Qt.Key.Key_Return)
    assert not menu.isVisible()
    assert not table.isColumnHidden(COLUMN_AT["kind"])


def restored(table: TaskTable, qtbot: QtBot) -> TaskTable:
    """Another table of another width, with the columns of this one."""
    other = TaskTable()
    qtbot.addWidget(other)
    other.setModel(TaskModel(other))
    other.resize(1500, 400)
    assert other.restore_header(table.header().saveState())
    other.show()
    return other


def test_a_width_of_the_task_column_set_by_hand_comes_back(table: TaskTable, qtbot: QtBot) -> None:
    task = COLUMN_AT["task"]
    table.header().resizeSection(task, 333)
    again = restored(restored(table, qtbot), qtbot)
    assert again.header().sectionSize(task) == 333


def test_a_task_column_that_filled_the_room_does_so_again(table: TaskTable, qtbot: QtBot) -> None:
    header = restored(table, qtbot).header()
    assert header.length() == header.viewport().width()


def test_an_idle_table_wakes_up_once_a_minute_and_an_empty_one_never(table: TaskTable) -> None:
    table.tasks.drop_many([task_id(1)])  # the only one that is younger than a minute
    assert table.pulse.interval() == IDLE_TICK_MS
    table.tasks.put_many([a_view(40, "RUNNING", quiet=0, age=5)])
    assert table.pulse.interval() == LIVE_TICK_MS
    table.tasks.drop_many([task_id(n) for n in range(1, 41)])
    assert not table.pulse.isActive()


def test_an_age_that_is_told_in_seconds_goes_on_though_nothing_runs(table: TaskTable) -> None:
    table.tasks.put_many([a_view(40, age=30_000, quiet=9_000)])
    assert table.pulse.interval() == YOUNG_TICK_MS


def test_only_rows_in_sight_are_repainted(table: TaskTable) -> None:
    table.tasks.put_many([a_view(n, age=n * HOUR) for n in range(50, 250)])
    seen: list[int] = []
    table.tasks.dataChanged.connect(lambda first, _: seen.append(first.row()))
    table.tasks.put_many([a_view(n, "FAILED", age=n * HOUR) for n in range(50, 250)])
    assert max(seen, default=0) < 40


def test_every_kind_of_row_can_be_painted_selected_and_not(table: TaskTable) -> None:
    table.tasks.put_many(
        [
            a_view(31, "RUNNING", done=3, total=9, quiet=10, foreign=True, age=1),
            a_view(32, "RUNNING", done=137, quiet=10, age=2),
            a_view(33, "RUNNING", orphaned=True, age=3),
            a_view(34, "RUNNING", cancel_requested_at=NOW, age=4),
            a_view(35, "PENDING", age=5),
            a_view(36, "DREAMING", args={}, kind="<b>", age=6),
        ]
    )
    plain = table.grab().toImage()
    table.selectAll()
    assert table.grab().toImage() != plain


def test_painting_and_telling_keep_the_count_of_none_and_true(table: TaskTable) -> None:
    """A PySide6 that drops references here ends the process after some thousand repaints."""
    image = QImage(8, 8, QImage.Format.Format_ARGB32)
    colour = QColor("red")
    painter = QPainter(image)
    model = table.tasks
    assert isinstance(model, QAbstractItemModel)
    gc.collect()
    gc.disable()  # a collection takes the references of what other tests left
    try:
        before = sys.getrefcount(None), sys.getrefcount(True)
        for _ in range(1000):
            painter.fillRect(0, 0, 8, 8, colour)
            painter.setPen(colour)
            model.shown_changed.emit(1, 1)
            model.dataChanged.emit(model.index(0, 0), model.index(0, 0))
        after = sys.getrefcount(None), sys.getrefcount(True)
    finally:
        gc.enable()
    painter.end()
    assert abs(after[0] - before[0]) < 200
    assert abs(after[1] - before[1]) < 200


def test_the_menu_is_offered_to_the_window_and_stays_shut_when_empty(table: TaskTable) -> None:
    offered: list[bool] = []
    table.menu_wanted.connect(lambda menu: offered.append(menu.isVisible()))
    at = table.visualRect(table.tasks.index(2, 2)).center()
    reason = QContextMenuEvent.Reason.Mouse
    QApplication.sendEvent(table.viewport(), QContextMenuEvent(reason, at, table.mapToGlobal(at)))
    assert offered == [False]
    assert not [menu for menu in table.findChildren(QMenu) if menu.isVisible()]


def test_a_right_click_does_not_hold_the_order(table: TaskTable) -> None:
    table.tasks.set_sort([("status", False)])
    at = table.visualRect(table.tasks.index(2, 2)).center()
    QTest.mousePress(table.viewport(), Qt.MouseButton.RightButton, NONE, at)
    table.tasks.put_many([a_view(20, "RUNNING", quiet=0)])
    table.tasks.settle()
    assert table.tasks.id_at(0) == task_id(20)
    QTest.mouseRelease(table.viewport(), Qt.MouseButton.RightButton, NONE, at)


def test_a_press_without_release_ends_with_the_focus(table: TaskTable) -> None:
    table.tasks.set_sort([("status", False)])
    at = table.visualRect(table.tasks.index(2, 2)).center()
    QTest.mousePress(table.viewport(), Qt.MouseButton.LeftButton, NONE, at)
    table.tasks.put_many([a_view(20, "RUNNING", quiet=0)])
    table.tasks.settle()
    assert table.tasks.id_at(0) != task_id(20)
    QApplication.sendEvent(table, QFocusEvent(QEvent.Type.FocusOut))
    table.tasks.settle()
    assert table.tasks.id_at(0) == task_id(20)
    QTest.mouseRelease(table.viewport(), Qt.MouseButton.LeftButton, NONE, at)


def test_every_title_is_told_in_full() -> None:
    assert COLUMNS[0].long_title == "Needs attention"
