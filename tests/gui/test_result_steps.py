"""The result viewer at one unit: position, earlier steps, and texts of cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from engine.results.units import unit_of
from gui.commands.open_result import Viewing
from gui.details.commands_tab import StepModel, step_text
from gui.details.result_window import ResultWindow
from gui.details.unit_columns import PAGE_COLUMNS
from gui.style.theme import plain_tip, tone
from tests.gui.result_ledgers import page, put_pages, put_picture, put_task
from tests.gui.test_result_tabs import settled
from tests.gui.windows import opened

TOOL_TIP, COLOUR, SPOKEN = 3, 9, 11
STEP = {"tool_name": "browser_navigate", "intention": "open <b>it</b>", "args": {"action": "goto"}}


async def viewer_at(session: Any, task: str, unit: Any) -> ResultWindow:
    """The viewer, as it opens at one unit of a task."""
    viewing = session.window.findChild(Viewing)
    assert viewing is not None
    viewing.open(task, unit)
    (viewer,) = await settled(lambda: session.window.findChildren(ResultWindow))
    assert isinstance(viewer, ResultWindow)
    return viewer


async def test_results_open_at_the_selected_page(home: Path) -> None:
    folder = put_task(home, 1)
    put_pages(folder, *(page(number) for number in range(40)))
    async with opened(home) as session:
        viewer = await viewer_at(session, folder.name, unit_of(page(30), 30))
        table = viewer.pages.table
        await settled(lambda: table.currentIndex().row() == 30)
        assert viewer.pages.current is not None
        assert viewer.pages.current.name == page(30)["url"]
        await viewer_at(session, folder.name, unit_of(page(7), 7))
        await settled(lambda: table.currentIndex().row() == 7)


async def test_a_step_is_shown_with_the_picture_before_it(home: Path) -> None:
    folder = put_task(home, 1, "commands")
    for name, width in (("1.png", 40), ("2.png", 50)):
        put_picture(folder, name, width)
    shots = [{"result": {"screenshot": f"artifacts/{name}"}} for name in ("1.png", "2.png")]
    put_pages(folder, *({**STEP, "status": "success", **shot} for shot in shots))
    async with opened(home) as session:
        viewer = await viewer_at(session, folder.name, None)
        await settled(lambda: viewer.pages.model.total == 2)
        viewer.show_tab(viewer.preview)
        preview = viewer.preview
        viewer.pages.table.selectRow(1)
        await settled(lambda: preview.now.view._image.width() == 50)
        await settled(lambda: preview.before.view._image.width() == 40)
        assert preview.before.isVisible()
        viewer.pages.table.selectRow(0)
        await settled(lambda: preview.now.view._image.width() == 40)
        assert not preview.before.isVisible()  # nothing was before the first


async def test_a_contract_of_no_task_and_one_that_is_gone_are_said(home: Path) -> None:
    folder = put_task(home, 1)
    put_pages(folder, page(0))
    async with opened(home) as session:
        viewer = await viewer_at(session, folder.name, None)
        viewer.show_tab(viewer.contract)
        await settled(lambda: viewer.contract.nothing.text() == "No contract.")
        assert not viewer.contract.items.isVisible()


@pytest.mark.usefixtures("qapp")
def test_a_step_is_told_alike_to_eyes_and_ears_and_what_failed_is_coloured() -> None:
    model = StepModel()
    failed = {**STEP, "status": "error", "error": {"code": "TIMEOUT", "message": "too slow"}}
    model.show_steps([{**STEP, "status": "success", "startedAt": 1, "completedAt": 41}, failed])
    kind, last = model.index(1, 1), model.index(1, model.columnCount() - 1)
    assert last.data() == "too slow [TIMEOUT]"
    args = {"selector": "#ü", "action": "click", "count": 2}
    model.show_steps([{**STEP, "args": args}, failed])
    assert model.index(0, 5).data() == "click, selector #ü, count 2"
    assert last.data(TOOL_TIP) == plain_tip("too slow [TIMEOUT]")
    assert "open &lt;b&gt;it&lt;/b&gt;" in model.index(0, 3).data(TOOL_TIP)
    assert kind.data(COLOUR) == tone("bad", QApplication.palette())
    assert last.data(COLOUR) == tone("bad", QApplication.palette())
    assert model.index(0, 5).data(COLOUR) is None
    said = str(kind.data(SPOKEN))
    assert ", navigate, " in said
    text = step_text({**STEP, "error": {"code": "TIMEOUT", "message": "too slow"}})
    assert text.startswith("too slow [TIMEOUT]\n")
    assert "too slow [TIMEOUT]" in said
    across = Qt.Orientation.Horizontal
    titles = [model.headerData(at, across) for at in range(model.columnCount())]
    assert titles == ["#", "State", "Tool", "What for", "Time", "Arguments or error"]
    assert model.headerData(0, Qt.Orientation.Vertical) is None
    assert model.most_telling() == 1


@pytest.mark.parametrize(
    ("given", "shown"),
    [(None, ""), (0.4, "< 1 ms"), (999.4, "999 ms"), (1_000, "1.0 s"), (61_000, "1 min 01 s")],
)
def test_a_short_time_is_exact_and_a_long_one_is_readable(given: float | None, shown: str) -> None:
    (column,) = (one for one in PAGE_COLUMNS if one.key == "response")
    assert column.text(unit_of(page(0, response_ms=given), 0)) == shown


def test_a_page_without_a_time_is_sorted_before_the_quickest() -> None:
    (column,) = (one for one in PAGE_COLUMNS if one.key == "response")
    assert column.value(unit_of(page(0, response_ms=None), 0)) < column.value(
        unit_of(page(1, response_ms=0), 1)
    )


def test_a_warning_stands_in_the_row_of_its_step(qapp: QApplication) -> None:
    model = StepModel()
    warning = "3 elements match the selector; the first was used"
    model.show_steps([{"status": "success", "args": {"selector": "li"}, "warning": warning}])
    assert model.data(model.index(0, 5)) == f"⚠ {warning}"
