"""An agent's calls in the result viewer: events without command states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from engine.model.records import ENVELOPE
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
