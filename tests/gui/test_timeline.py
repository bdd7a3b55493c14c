"""The Timeline tab: durations in rows and strip; a range filters the other tabs."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import QApplication, QLabel

from gui.details.panel import Details
from gui.details.timeline import Timeline
from gui.details.timeline_spans import BEGAN, TEXT, TOOK, WHAT
from gui.details.unit_list import Items
from gui.startup.session import Session
from gui.style.theme import Theme, apply_theme
from tests.gui.live_tasks import status_of
from tests.gui.test_result_tabs import settled
from tests.gui.windows import opened, press, until
from tests.support.task_folders import task_id, write_meta

BEGAN_MS = 1_780_000_000_000
PAGES, PAUSE_MS = 10, 60_000


def planted(home: Path, pages: int = PAGES) -> Path:
    """A crawl with a page a second, and a minute of silence in its middle."""
    folder = write_meta(
        home / "tasks", 1, "COMPLETED", kind="crawl", created_at=BEGAN_MS, started_at=BEGAN_MS
    )
    at = BEGAN_MS
    with (folder / "events.jsonl").open("w") as events, (folder / "pages.jsonl").open("w") as kept:
        events.write(json.dumps({"ts": at, "kind": "started"}) + "\n")
        for number in range(pages):
            at += 1000 + (PAUSE_MS if number == pages // 2 else 0)
            url = f"https://a.test/{number}"
            page = {"url": url, "response_ms": 100 + number, "render_ms": 400}
            kept.write(json.dumps(page) + "\n")
            data = {"unitsDone": number + 1, "unitsTotal": pages, "message": url}
            events.write(json.dumps({"ts": at, "kind": "progress", "data": data}) + "\n")
    return folder


@asynccontextmanager
async def at_the_timeline(
    home: Path, rows: int = PAGES + 2
) -> AsyncIterator[tuple[Session, Timeline]]:
    async with opened(home) as session:
        details = session.window.details
        details.restore_state("timeline")
        session.window.table.select_ids([task_id(1)])
        tab = timeline(details)
        await settled(lambda: tab.model.rowCount() >= rows)
        tab.strip.resize(600, tab.strip.height())
        yield session, tab


def timeline(details: Details) -> Timeline:
    found = details.findChildren(Timeline)
    assert len(found) == 1
    return found[0]


def cells(tab: Timeline, column: int) -> list[str]:
    model = tab.model
    return [model.index(row, column).data() for row in range(model.rowCount())]


async def test_rows_tell_what_took_how_long_and_where_nothing_happened(tmp_path: Path) -> None:
    planted(tmp_path / "home")
    async with at_the_timeline(tmp_path / "home") as (_, tab):
        assert cells(tab, TOOK)[:3] == ["", "500 ms", "501 ms"]
        assert cells(tab, WHAT)[5:8] == ["Progress", "Idle", "Progress"]
        assert cells(tab, TOOK)[6] == "1 min 00 s"
        spoken = tab.model.index(1, BEGAN).data(Qt.ItemDataRole.AccessibleTextRole)
        assert spoken.startswith("Progress, 1/10  https://a.test/0, 500 ms, ")
        said = [label.text() for label in tab.findChildren(QLabel)]
        assert "1 min 10 s in all, 1 min 00 s of it idle" in said
        tester = QAbstractItemModelTester(
            tab.model, QAbstractItemModelTester.FailureReportingMode.Fatal
        )
        tab._order.setCurrentIndex(1)
        assert cells(tab, TOOK)[0] == "509 ms"
        assert "Idle" not in cells(tab, WHAT)
        del tester


async def test_idle_time_is_folded_until_somebody_wants_to_see_it(tmp_path: Path) -> None:
    planted(tmp_path / "home")
    async with at_the_timeline(tmp_path / "home") as (_, tab):
        pause = (BEGAN_MS + 5_000, BEGAN_MS + 65_000)
        folded = tab.strip.x_of(pause[1]) - tab.strip.x_of(pause[0])
        tab._fold.setChecked(False)
        assert tab.strip.x_of(pause[1]) - tab.strip.x_of(pause[0]) > 10 * folded


async def test_a_range_drawn_by_hand_narrows_events_and_names_its_units(tmp_path: Path) -> None:
    planted(tmp_path / "home")
    async with at_the_timeline(tmp_path / "home") as (session, tab):
        strip, span = tab.strip, session.window.desk.span
        left, right = (int(strip.x_of(BEGAN_MS + at)) for at in (1_300, 3_300))
        QTest.mousePress(strip, Qt.MouseButton.LeftButton, pos=QPoint(left, 10))
        QTest.mouseMove(strip, QPoint(right, 10))
        QTest.mouseRelease(strip, Qt.MouseButton.LeftButton, pos=QPoint(right, 10))
        assert span.range is not None
        assert span.units == {"https://a.test/1", "https://a.test/2"}
        assert (span.names("https://a.test/1"), span.names("https://a.test/7")) == (True, False)
        events = session.window.details.events
        assert [events.model.row_at(at).unit[-1] for at in range(events.model.rowCount())] == [
            "1",
            "2",
        ]
        assert cells(tab, TEXT)[0].endswith("/1")
        press(tab, "Show all")
        assert events.model.rowCount() == PAGES + 1
        assert span.names("https://a.test/7")


async def test_the_items_are_narrowed_to_what_was_finished_then(tmp_path: Path) -> None:
    planted(tmp_path / "home")
    async with at_the_timeline(tmp_path / "home") as (session, tab):
        details, span = session.window.details, session.window.desk.span
        tab._choose(BEGAN_MS + 1_300, BEGAN_MS + 3_300)
        details.restore_state("items")
        model = details.findChildren(Items)[0].list.model
        await until(lambda: model.total == PAGES and model.rowCount() == 2, model.changed)
        assert [model.unit_at(row).name[-1] for row in range(2)] == ["1", "2"]
        span.clear()
        await until(lambda: model.rowCount() == PAGES, model.changed)


async def test_show_all_leads_back_to_where_one_was(tmp_path: Path) -> None:
    planted(tmp_path / "home", 300)
    async with at_the_timeline(tmp_path / "home", 300) as (session, tab):
        bar = tab.table.verticalScrollBar()
        await settled(lambda: bar.maximum() >= 120)
        bar.setValue(120)
        row = tab.table.rowAt(1)
        tab._choose(BEGAN_MS, BEGAN_MS + 4_000)
        assert tab.model.rowCount() < 10
        await settled(lambda: bar.maximum() < 10)  # nothing is as it was any more
        session.window.desk.span.clear()
        assert tab.table.rowAt(1) == row > 0
        tab.table.executeDelayedItemsLayout()  # as Qt does in its next turn
        assert tab.table.rowAt(1) == row, "it stays there"


async def test_another_task_begins_without_a_range(tmp_path: Path) -> None:
    planted(tmp_path / "home")
    write_meta(tmp_path / "home" / "tasks", 2, "FAILED")
    async with at_the_timeline(tmp_path / "home") as (session, tab):
        tab._choose(BEGAN_MS, BEGAN_MS + 4_000)
        session.window.table.select_ids([task_id(2)])
        assert session.window.desk.span.range is None
        await until(lambda: tab.model.rowCount() == 0, tab.model.modelReset)


async def test_the_keyboard_zooms_moves_chooses_and_shows_all(tmp_path: Path) -> None:
    planted(tmp_path / "home")
    async with at_the_timeline(tmp_path / "home") as (session, tab):
        strip, span = tab.strip, session.window.desk.span
        for key in (Qt.Key.Key_Plus, Qt.Key.Key_Plus, Qt.Key.Key_PageDown, Qt.Key.Key_Left):
            QTest.keyClick(strip, key)
        first = strip.moment_at(0)
        assert first > BEGAN_MS
        QTest.keyClick(strip, Qt.Key.Key_Return)
        start, _ = span.range or (0, 0)
        assert abs(start - first) < 1
        QTest.keyClick(strip, Qt.Key.Key_0)
        assert strip.moment_at(0) == BEGAN_MS
        assert session.window.desk.span.range is None
        tab.table.setCurrentIndex(tab.model.index(2, 0))
        QTest.keyClick(tab.table, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
        press(tab, "Only the marked")
        assert [row[-1] for row in cells(tab, TEXT)] == ["1", "2"]


async def test_the_strip_is_drawn_anew_in_other_colours(tmp_path: Path, qapp: QApplication) -> None:
    planted(tmp_path / "home")
    async with at_the_timeline(tmp_path / "home") as (_, tab):

        def lightness() -> int:
            return tab.strip.grab().toImage().pixelColor(8, tab.strip.height() - 4).lightness()

        try:
            for theme, low, high in ((Theme.LIGHT, 200, 255), (Theme.DARK, 0, 100)):
                apply_theme(qapp, theme)
                while not low <= lightness() <= high:  # widgets hear of it a turn later
                    await asyncio.sleep(0.01)
        finally:
            apply_theme(qapp, Theme.SYSTEM)


async def test_the_wheel_magnifies_what_is_under_it(tmp_path: Path) -> None:
    planted(tmp_path / "home")
    async with at_the_timeline(tmp_path / "home") as (_, tab):
        at = QPointF(400, 10)
        before = tab.strip.moment_at(400)
        turn = QWheelEvent(
            *(at, at, QPoint(), QPoint(0, 240), Qt.MouseButton.NoButton),
            *(Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False),
        )
        QApplication.sendEvent(tab.strip, turn)
        assert abs(tab.strip.moment_at(400) - before) < 1
        assert tab.strip.moment_at(0) > BEGAN_MS


async def test_a_row_leads_to_its_event(tmp_path: Path) -> None:
    planted(tmp_path / "home")
    async with at_the_timeline(tmp_path / "home") as (session, tab):
        tab.table.setCurrentIndex(tab.model.index(3, 0))
        tab.table.activated.emit(tab.model.index(3, 0))
        events = session.window.details.events
        assert session.window.details.save_state() == "events"
        shown = events.model.row_at(events.table.currentIndex().row())
        assert shown.unit == "https://a.test/2"


async def test_a_task_that_goes_on_is_followed(tmp_path: Path) -> None:
    folder = planted(tmp_path / "home")
    now = time.time() * 1000  # of an older one this process could not be the owner
    write_meta(tmp_path / "home" / "tasks", 1, "RUNNING", kind="crawl", started_at=now)
    async with at_the_timeline(tmp_path / "home") as (session, tab):
        assert status_of(session, task_id(1)) == "RUNNING", "what has ended is followed no more"
        call = {"tool": "find", "ok": True, "durationMs": 700}
        event = {"ts": BEGAN_MS + 90_000, "kind": "tool_call", "data": call}
        with (folder / "events.jsonl").open("a") as file:
            file.write(json.dumps(event) + "\n")
        await settled(lambda: "700 ms" in cells(tab, TOOK))  # rows behind the others reset nothing
