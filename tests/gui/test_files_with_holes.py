"""Huge files with nothing in them: the details show what was written, without reading the holes."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from gui.details.events import Events
from gui.details.raw import Raw
from gui.details.result import Result
from gui.details.unit_list import Items
from tests.gui.test_event_find import search
from tests.gui.test_result_tabs import settled, tab_of
from tests.gui.windows import opened
from tests.support.sparse_files import needs_holes, task_with_holes

pytestmark = needs_holes


def shows(raw: Raw, members: int) -> bool:
    return raw.tree.model.rowCount() >= members


async def test_every_tab_shows_what_lies_around_the_holes(home: Path) -> None:
    task_with_holes(home, 1)
    async with opened(home) as session:
        items: Items = await tab_of(session, 1, "items", Items)
        await settled(lambda: items.list.model.total == 3 and not items.list.is_reading)
        events: Events = await tab_of(session, 1, "events", Events)
        await settled(lambda: [row.text for row in events.model.kept] == ["before", "behind"])
        await settled(lambda: events._skipped.isVisible())
        await search(events, "behind")
        assert len(events.finder.places) == 1
        result: Result = await tab_of(session, 1, "result", Result)
        await settled(lambda: result.isVisible())
        raw: Raw = await tab_of(session, 1, "raw", Raw)
        await settled(lambda: raw.list.count() == 4)
        names = [raw.list.item(row).data(Qt.ItemDataRole.UserRole) for row in range(4)]
        for name, members in (("pages.jsonl", 3), ("events.jsonl", 2), ("result.json", 1)):
            raw.list.setCurrentRow(names.index(name))
            await settled(partial(shows, raw, members))
        raw.list.setCurrentRow(names.index("events.jsonl"))
        raw.modes.setCurrentIndex(1)
        await settled(lambda: "before" in raw.text.text.toPlainText())
        QTest.keyClicks(raw.text.search, "behind")
        QTest.keyClick(raw.text.search, Qt.Key.Key_Return)
        await settled(lambda: raw.text.text.textCursor().selectedText() == "behind")
