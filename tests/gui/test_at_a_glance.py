"""The layout does not jump, and short space hides no information."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QTreeWidget
from pytestqt.qtbot import QtBot

from engine.contracts.contract_service import Goals
from engine.ledger.ledger import Ledger
from engine.model.records import Health
from engine.model.status import Standing, look
from gui.filters.facet_tree import FacetTree, children, key_of
from gui.filters.sidebar import Sidebar
from gui.style.theme import palette_of, tone
from gui.tasks.cell_painting import Part, ProgressColours, RowDelegate, paint_progress
from gui.tasks.task_model import TaskModel
from gui.tasks.task_table import TaskTable
from gui.window.status_bar import StatusBar
from tests.gui.result_ledgers import put_task
from tests.gui.task_views import NOW, a_view, task_id
from tests.gui.test_sidebar import box_of
from tests.gui.test_theme import contrast
from tests.gui.windows import opened, until

FILL, BAD, TRACK, INK = map(QColor, ("#0000ff", "#ff00ff", "#00ff00", "#ff0000"))
COLOURS = ProgressColours(FILL, BAD, TRACK, INK)


def top_of(sidebar: Sidebar, key: str) -> int:
    tree = sidebar.findChild(QTreeWidget)
    assert isinstance(tree, FacetTree)
    heads = [tree.topLevelItem(at) for at in range(tree.topLevelItemCount())]
    found = {key_of(each): each for head in heads if head for each in (head, *children(head))}
    return tree.visualItemRect(found[key]).top()


async def test_no_state_at_the_side_is_pushed_down_when_the_views_are_counted(home: Path) -> None:
    async with opened(home, wait="loaded") as session:
        window = session.window
        counted: list[int] = []
        at_first = top_of(window.sidebar, "failed")
        sidebar = window.sidebar
        for key in ("system:failed", "system:slow", "system:forced"):
            sidebar.count_view(key, 7)
            counted.append(top_of(sidebar, "failed"))
            sidebar.count_view(key, 0)
            counted.append(top_of(sidebar, "failed"))
        assert set(counted) == {at_first}
        assert top_of(sidebar, "group:views") < top_of(sidebar, "group:status")


def test_the_status_bar_says_that_it_counts_what_runs_here(qtbot: QtBot) -> None:
    bar = StatusBar()
    qtbot.addWidget(bar)
    bar.show_health(Health(root="/tmp/tasks", running=0, slots=4))
    assert bar.work.text() == "0 running here · 4 slots"
    assert "other programs" in bar.work.toolTip()


def painted(part: Part, text: str, width: int = 100) -> list[QColor]:
    """The colours of a progress cell from left to right, below its text."""
    image = QImage(width, 30, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    paint_progress(painter, QRectF(0, 0, width, 30), text, part, COLOURS)
    painter.end()
    return [image.pixelColor(x, 24) for x in range(width)]


@pytest.mark.parametrize("text", ["20/20", "20/20 · 1 failed", "2,000,000/2,000,000 · 1 failed"])
def test_progress_fills_its_cell_however_long_its_text_is(text: str) -> None:
    assert painted(Part(1.0), text) == [FILL] * 100


def test_the_failed_part_of_progress_stands_at_the_end_of_the_done_one() -> None:
    found = painted(Part(0.5, failed=0.2), "50/100 · 20 failed")
    assert found == [FILL] * 30 + [BAD] * 20 + [TRACK] * 50


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("marked", [False, True])
async def test_the_text_of_progress_stands_out_from_its_bar(
    home: Path, dark: bool, marked: bool
) -> None:
    async with opened(home) as session:
        table = session.window.table
        palette = palette_of(dark)
        table.setPalette(palette)
        delegate = table.itemDelegate()
        assert isinstance(delegate, RowDelegate)
        delegate.dress()
        under = palette.color(QPalette.ColorRole.Highlight if marked else QPalette.ColorRole.Base)
        for state in Standing:
            colours = delegate._progress_colours(state.value, marked)
            for bar in (colours.track, colours.fill, colours.failed):
                assert contrast(colours.ink, over(bar, under)) >= 4.5, (state, bar.name())


def over(top: QColor, under: QColor) -> QColor:
    """The colour of a translucent one on another."""
    share = top.alphaF()

    def mixed(one: int, other: int) -> int:
        return round(share * one + (1 - share) * other)

    return QColor(
        mixed(top.red(), under.red()),
        mixed(top.green(), under.green()),
        mixed(top.blue(), under.blue()),
    )


@pytest.mark.parametrize("key", [Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_J])
def test_the_first_step_into_the_list_chooses_its_first_row(qtbot: QtBot, key: Qt.Key) -> None:
    table = TaskTable()
    qtbot.addWidget(table)
    table.setModel(TaskModel(table, now_ms=lambda: NOW))
    table.resize(900, 300)
    table.show()
    table.tasks.put_many([a_view(number) for number in range(1, 9)])
    table.setFocus()
    QTest.keyClick(table, key)
    assert table.selected_ids() == [task_id(1)]
    QTest.keyClick(table, Qt.Key.Key_Down)
    assert table.selected_ids() == [task_id(2)]


async def test_the_keys_go_to_what_was_just_started_unless_somebody_types(home: Path) -> None:
    put_task(home, 1)
    put_task(home, 2)
    async with opened(home) as session:
        window = session.window
        window.tools.setFocus()
        window.started_task_selector.expect(task_id(1))
        assert window.table.selected_ids() == [task_id(1)]
        assert window.focusWidget() is window.table
        window.filter_bar.focus_text()
        window.started_task_selector.expect(task_id(2))
        assert window.focusWidget() is box_of(window.filter_bar)


async def test_a_run_that_needs_help_is_marked_for_attention(home: Path) -> None:
    goals = Goals(home, lambda: Ledger(home / "tasks"))
    run_id = goals.runs.start({"goal": "Buy the lot"}).run_id
    goals.runs.needs_help(run_id, {"reason": "A captcha."})
    async with opened(home) as session:
        window = session.window
        await until(lambda: window.model.view_of(run_id), session.bridge.batch)
        view = window.model.view_of(run_id)
        assert view is not None
        assert look(view) == "attention"
        window.table.show()
        colour = tone("attention", QApplication.palette())
        picture = window.table.viewport().grab().toImage()
        status = window.table.visualRect(window.model.index(0, 1))
        xs, ys = range(status.left(), status.right()), range(status.top(), status.bottom())
        assert any(picture.pixelColor(x, y) == colour for x in xs for y in ys)
