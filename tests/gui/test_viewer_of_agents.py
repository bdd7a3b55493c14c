"""An agent's calls in the result viewer: events without command states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from engine.model.records import ENVELOPE, EngineFields, TaskRecord, TaskView, Units
from gui.commands.open_result import has_units
from gui.commands.rerunning import can_be_retried
from gui.details.result_window import ResultWindow
from gui.startup.session import Session
from tests.gui.result_ledgers import START, page, put_pages, put_task
from tests.gui.test_exporting import choose_rows
from tests.gui.test_result_tabs import settled
from tests.gui.windows import opened

CALL = {"tool": "browser_navigate", "ok": False, "durationMs": 40, "summary": "no such host"}
EVENTS: tuple[dict[str, Any], ...] = (
    {"kind": "started"},
    {"kind": "tool_call", "data": CALL},
    {"kind": "completed"},
)


def put_agent(home: Path, number: int) -> None:
    folder = put_task(home, number, ENVELOPE)
    lines = [json.dumps({"ts": START + at, **event}) for at, event in enumerate(EVENTS)]
    (folder / "events.jsonl").write_text("\n".join(lines) + "\n")


async def viewer_of_agent(session: Session, number: int) -> ResultWindow:
    choose_rows(session, number)
    keys = Qt.KeyboardModifier.ControlModifier
    QTest.keyClick(session.window.table, Qt.Key.Key_Return, keys)
    (viewer,) = await settled(lambda: session.window.findChildren(ResultWindow))
    assert isinstance(viewer, ResultWindow)
    await settled(lambda: viewer.log.events.model.total == len(EVENTS))
    return viewer


def in_sight(viewer: ResultWindow, tab: QWidget) -> bool:
    return viewer.tabs.isTabVisible(viewer.tabs.indexOf(tab))


async def test_what_an_agent_called_is_listed_as_events_and_not_as_items(home: Path) -> None:
    put_agent(home, 1)
    async with opened(home) as session:
        viewer = await viewer_of_agent(session, 1)
        assert viewer.tabs.currentWidget() is viewer.log
        assert not in_sight(viewer, viewer.pages)
        assert not in_sight(viewer, viewer.source)
        assert viewer.pages.model.total == 0
        model = viewer.log.events.model
        rows = [[model.index(row, at).data() for at in range(3)] for row in range(len(EVENTS))]
        assert [row[1] for row in rows] == ["Started", "Tool call", "Completed"]
        assert "no such host" in rows[1][2]
        assert not any("Done" in cell for row in rows for cell in row)


async def test_find_in_an_agents_result_looks_among_its_events(home: Path) -> None:
    put_agent(home, 1)
    async with opened(home) as session:
        viewer = await viewer_of_agent(session, 1)
        viewer.show_tab(viewer.contract)
        await settled(viewer.contract.isVisible)
        QTest.keySequence(viewer, "Ctrl+F")
        assert QApplication.focusWidget() is viewer.log.events.finding.field


async def test_walking_past_an_agents_result_comes_back_to_the_pages(home: Path) -> None:
    put_agent(home, 1)
    for number in (2, 3):
        put_pages(put_task(home, number), page(number))
    async with opened(home) as session:
        viewer = await viewer_of_agent(session, 1)
        viewer.on.click()
        await settled(lambda: viewer.pages.model.total and not viewer.pages.is_reading)
        assert viewer.tabs.currentWidget() is viewer.pages
        assert in_sight(viewer, viewer.source)
        viewer.show_tab(viewer.source)
        viewer.back.click()
        assert viewer.tabs.currentWidget() is viewer.log
        viewer.on.click()
        viewer.show_tab(viewer.log)  # chosen by hand: it stays
        viewer.on.click()
        assert viewer.tabs.currentWidget() is viewer.log


async def test_an_agent_task_that_never_failed_is_offered_no_retry_and_no_result(
    home: Path,
) -> None:
    forced = {"contract_id": "0" * 16, "forced_at": START + 5000}
    put_task(home, 1, ENVELOPE, engine=forced)
    put_pages(put_task(home, 2), page(2))
    async with opened(home) as session:
        buttons = session.window.details.overview.state_actions.buttons
        offered = [buttons[session.window.acts[key]] for key in ("retry_failed", "open_result")]
        choose_rows(session, 1)
        assert [one.isVisible() for one in offered] == [False, False]
        assert session.window.acts["open_result"].isEnabled()  # its calls can be read
        choose_rows(session, 2)
        assert [one.isVisible() for one in offered] == [False, True]


def ended(kind: str, status: str, units: Units | None = None, **engine: Any) -> TaskView:
    record = TaskRecord(f"{1:016x}", kind=kind, status=status, engine=EngineFields(**engine))
    return TaskView(record, units=units)


@pytest.mark.parametrize(
    ("view", "retried"),
    [
        (ended("crawl", "COMPLETED", Units(3, 3, failed=1)), True),
        (ended("crawl", "COMPLETED", Units(3, 3), contract_id="a"), False),
        (ended("crawl", "COMPLETED", Units(3, 3), contract_id="a", forced_at=START), True),
        (ended("crawl", "FAILED", Units(3, 3), contract_id="a"), True),
        (ended("crawl", "FAILED", Units(3, 3)), False),
        (ended("commands", "FAILED"), True),
        (ended(ENVELOPE, "COMPLETED", Units(3, 4), contract_id="a", forced_at=START), False),
        (ended(ENVELOPE, "FAILED", Units(3, 4, failed=1), contract_id="a"), False),
        (ended("crawl", "RUNNING", Units(3, 4, failed=1)), False),
    ],
)
def test_a_retry_is_offered_where_parts_failed_or_a_contract_may_miss_pages(
    view: TaskView, retried: bool
) -> None:
    assert can_be_retried(view) == retried


@pytest.mark.parametrize(
    ("view", "offered"),
    [
        (ended("crawl", "COMPLETED"), True),
        (ended("crawl", "CANCELLED", Units(2, 9)), True),
        (ended("crawl", "CANCELLED"), False),
        (ended("crawl", "FAILED", Units(0, 9)), False),
        (ended("crawl", "RUNNING"), True),
        (ended(ENVELOPE, "COMPLETED", Units(3, 4)), False),
    ],
)
def test_a_result_is_offered_where_units_are_kept(view: TaskView, offered: bool) -> None:
    assert has_units(view) == offered
