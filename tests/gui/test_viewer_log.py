"""The log in the result viewer: a text is found in all of it, apart from the window's details."""

from __future__ import annotations

import json
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from tests.gui.result_ledgers import page, put_pages
from tests.gui.test_event_find import BEGAN, LINES, current, planted, search, told
from tests.gui.test_result_tabs import settled
from tests.gui.test_result_viewer import viewer_of
from tests.gui.windows import opened
from tests.support.task_folders import task_id, write_meta


async def test_a_text_is_found_in_the_whole_log_from_the_viewer(tmp_path: Path) -> None:
    home = tmp_path / "home"
    put_pages(planted(home), page(1))
    other = write_meta(home / "tasks", 2, "COMPLETED", created_at=BEGAN)
    line = {"ts": BEGAN, "kind": "log", "data": {"note": "needle of another task"}}
    (other / "events.jsonl").write_text(json.dumps(line) + "\n")
    async with opened(home) as session:
        window = session.window
        viewer = await viewer_of(session, 1)
        viewer.show_tab(viewer.log)
        tab = viewer.log.events
        await settled(lambda: len(tab.model.kept) >= LINES)
        window.table.select_ids([task_id(2)])
        window.desk.span.choose(BEGAN, BEGAN + 1)  # a time of what the details show
        await settled(lambda: viewer.log.isVisible())
        QTest.keySequence(viewer, "Ctrl+F")
        assert QApplication.focusWidget() is tab.finding.field
        await search(tab, "needle")
        QTest.keyClick(tab.finding.field, Qt.Key.Key_Return)
        await settled(lambda: tab.table.current_place() >= 0)
        assert "line 250 needle" in current(tab)
        QTest.keyClick(tab.finding.field, Qt.Key.Key_F3)
        assert "line 750 needle" in current(tab)
        assert told(tab) == "2 of 6"
        assert tab.part.isHidden()
