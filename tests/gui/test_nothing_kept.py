"""Messages about tasks without a result are correct."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from PySide6.QtWidgets import QLabel

from engine.model.records import EngineFields, Units
from engine.text.words import why
from gui.details.result import Result
from tests.gui.result_ledgers import page, put_pages, put_task
from tests.gui.task_views import NOW, a_view
from tests.gui.test_result_tabs import settled, tab_of
from tests.gui.windows import opened

EARLY = "This task ended before it began. It has no result and kept nothing."
NOTHING_DONE = "This task ended without a result, before anything of it was finished."
KEPT = "This task ended without a result. What it kept is under Items."
NO_UNITS = "This task ended without a result."


def says(tab: Result, text: str) -> bool:
    return any(label.text() == text for label in tab.findChildren(QLabel))


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ({"started_at": None}, EARLY),
        ({"engine": {"units": {"done": 0, "total": 9, "failed": 0}}}, NOTHING_DONE),
        ({"engine": {"units": {"done": 2, "total": 9, "failed": 0}}}, KEPT),
        ({}, NO_UNITS),
    ],
)
async def test_the_tab_explains_no_result(home: Path, meta: dict[str, Any], said: str) -> None:
    put_pages(put_task(home, 1, status="CANCELLED", **meta), page(0), result=False)
    if said is EARLY:
        (home / "tasks" / f"{1:016x}" / "pages.jsonl").unlink()
    async with opened(home) as session:
        tab = await tab_of(session, 1, "result", Result)
        await settled(lambda: says(tab, said))


def test_a_forced_crawl_says_how_far_it_had_come() -> None:
    view = a_view(1, "COMPLETED")
    entry = msgspec.structs.replace(view.entry, engine=EngineFields(forced_at=NOW))
    for units, said in (
        (Units(81, 400), "Completed by force after 5.0 s, at 81 of 400 pages; its contract"),
        (Units(81, 81), "Completed by force after 5.0 s; its contract"),
        (Units(81, None), "Completed by force after 5.0 s; its contract"),
    ):
        shown = msgspec.structs.replace(view, entry=entry, units=units)
        assert why(shown, NOW).startswith(said)
