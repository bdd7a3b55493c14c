"""The search of the Events tab covers the whole file and shows matches in context."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from gui.details import event_table
from gui.details.events import Events
from gui.startup.session import Session
from tests.gui.windows import app, heard, opened, until
from tests.support.task_folders import task_id, write_meta

BEGAN = 1_780_000_000_000
LINES = 3000


def planted(home: Path, lines: int = LINES) -> Path:
    """An ended task whose every 500th event says `needle`."""
    folder = write_meta(home / "tasks", 1, "COMPLETED", created_at=BEGAN)
    with (folder / "events.jsonl").open("w") as file:
        for number in range(lines):
            note = f"line {number}" + (" needle" if number % 500 == 250 else "")
            event = {"ts": BEGAN + number * 1000, "kind": "log", "data": {"note": note}}
            file.write(json.dumps(event) + "\n")
    return folder


@asynccontextmanager
async def at_the_events(home: Path, rows: int = LINES) -> AsyncIterator[tuple[Session, Events]]:
    async with opened(home) as session:
        details = session.window.details
        session.window.table.select_ids([task_id(1)])
        details.restore_state("events")
        await until(lambda: len(details.events.model.kept) >= rows, details.events.counted)
        yield session, details.events


def current(tab: Events) -> str:
    return tab.model.row_at(tab.table.currentIndex().row()).text


async def search(tab: Events, text: str) -> None:
    tab.finding.field.setText(text)
    tab.finding.settle()
    await until(lambda: not tab.finder.busy, tab.finder.changed)


def told(tab: Events) -> str:
    labels = tab.finding.findChildren(QLabel)
    return labels[0].text()


async def test_f3_goes_from_match_to_match_and_round_the_ends(tmp_path: Path) -> None:
    planted(tmp_path / "home")
    async with at_the_events(tmp_path / "home") as (session, tab):
        session.window.activateWindow()
        tab.table.setFocus()
        await until(tab.table.hasFocus, app().focusChanged)
        QTest.keyClick(tab.table, Qt.Key.Key_F3)  # without a text it leads to the field
        assert tab.finding.field.hasFocus()
        await search(tab, "NEEDLE")
        assert told(tab) == "6 found"
        seen = []
        for _ in range(7):
            QTest.keyClick(tab.table, Qt.Key.Key_F3)
            seen.append(current(tab))
        assert seen[:2] == ["line 250 needle", "line 750 needle"]
        assert (len(set(seen)), seen[6]) == (6, seen[0])
        assert not tab.follow.isChecked()
        assert told(tab) == "1 of 6"
        QTest.keyClick(tab.table, Qt.Key.Key_F3, Qt.KeyboardModifier.ShiftModifier)
        assert current(tab) == "line 2750 needle"
        assert tab.model.index(250, 2).data(Qt.ItemDataRole.FontRole).bold()
        assert tab.model.index(251, 2).data(Qt.ItemDataRole.FontRole) is None


async def test_a_match_outside_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_table, "KEPT", 1000)
    monkeypatch.setattr("gui.engine_link.task_events.AROUND", 0)
    planted(tmp_path / "home", 9000)
    async with at_the_events(tmp_path / "home", 1000) as (_, tab):
        await search(tab, "line 2250 ")
        assert tab.model.row_at(0).text == "… 8,000 earlier events are in the file"
        tab.finding.step(1)
        await until(lambda: tab.table.current_place() >= 0, tab.model.rowsInserted)
        assert current(tab) == "line 2250 needle"
        assert tab.part.isVisible()
        tab.follow.setChecked(True)  # the newest again
        await until(lambda: tab.model.total == 9000, tab.counted)
        assert tab.model.row_at(tab.model.rowCount() - 1).text == "line 8999"
        assert not tab.part.isVisible()


async def test_what_a_switch_hides_is_shown_when_it_is_looked_for(tmp_path: Path) -> None:
    planted(tmp_path / "home")
    async with at_the_events(tmp_path / "home") as (session, tab):
        session.window.desk.span.choose(BEGAN, BEGAN + 10_000)
        assert tab.model.rowCount() == 11
        await search(tab, "line 250 ")
        tab.finding.step(1)
        assert current(tab) == "line 250 needle"
        assert tab.model.rowCount() == LINES


async def test_what_the_file_grows_by_is_found_as_well(tmp_path: Path) -> None:
    folder = planted(tmp_path / "home", 10)
    write_meta(tmp_path / "home" / "tasks", 1, "RUNNING", created_at=BEGAN)
    async with at_the_events(tmp_path / "home", 10) as (_, tab):
        await search(tab, "needle")
        assert told(tab) == "not found"
        with (folder / "events.jsonl").open("a") as file:
            file.write('{"ts": 1, "kind": "log", "data": {"note": "a needle"}}\n')
        await until(lambda: told(tab) == "1 found", tab.finder.changed)


async def test_a_search_can_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.ledger.event_search._BLOCK", 4000)
    monkeypatch.setattr("engine.ledger.event_search.find.__defaults__", (0, 1000))
    planted(tmp_path / "home")
    async with at_the_events(tmp_path / "home") as (_, tab):
        tab.finding.field.setText("needle")
        tab.finding.settle()
        await until(lambda: tab.finder.places, tab.finder.changed)
        tab.finding._stop.click()
        assert not tab.finder.busy
        assert "stopped at" in told(tab)
        found = len(tab.finder.places)
        await asyncio.sleep(0)
        assert len(tab.finder.places) == found < 6


async def test_the_keys_of_find_lead_to_this_field_from_the_events(tmp_path: Path) -> None:
    planted(tmp_path / "home", 20)
    async with at_the_events(tmp_path / "home", 20) as (session, tab):
        session.window.activateWindow()
        tab.table.setFocus()
        await until(tab.table.hasFocus, app().focusChanged)
        QTest.keyClick(tab.table, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
        assert tab.finding.field.hasFocus()


async def test_escape_clears_the_field_and_then_leads_back_to_the_events(tmp_path: Path) -> None:
    planted(tmp_path / "home", 20)
    async with at_the_events(tmp_path / "home", 20) as (session, tab):
        tab.finding.field.setFocus()
        QTest.keyClicks(tab.finding.field, "line")
        QTest.keyClick(tab.finding.field, Qt.Key.Key_Escape)
        assert tab.finding.field.text() == ""
        QTest.keyClick(tab.finding.field, Qt.Key.Key_Escape)
        assert session.window.focusWidget() is tab.table


@pytest.mark.parametrize("everything", [True, False])
async def test_a_log_is_saved_as_it_is_shown_or_whole(tmp_path: Path, everything: bool) -> None:
    folder = planted(tmp_path / "home")
    async with at_the_events(tmp_path / "home") as (session, tab):
        session.window.desk.span.choose(BEGAN, BEGAN + 4_000)
        place = tmp_path / "log"
        saved = heard(tab.save.saved)
        tab.save.save(place, everything)
        await saved
        text = place.read_text("utf-8")
        whole = (folder / "events.jsonl").read_text("utf-8")
        assert text == (whole if everything else "".join(f"{line}\n" for line in tab.lines()))
        assert everything or text.count("\n") == 5


async def test_a_log_that_cannot_be_saved_says_why(tmp_path: Path) -> None:
    planted(tmp_path / "home", 5)
    async with at_the_events(tmp_path / "home", 5) as (_, tab):
        tab.save.save(tmp_path / "home" / "tasks" / "log.txt", False)
        await until(lambda: tab._saved.text(), tab.save.ended)
        assert "it is inside the ledger" in tab._saved.text()


async def test_events_of_a_time_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_table, "KEPT", 1000)
    planted(tmp_path / "home", 9000)
    async with at_the_events(tmp_path / "home", 1000) as (session, tab):
        session.window.desk.span.choose(BEGAN + 500_000, BEGAN + 502_000)
        await until(lambda: tab.model.rowCount() == 3, tab.model.rowsInserted)
        assert [tab.model.row_at(row).text for row in range(3)] == [
            f"line {number}" for number in (500, 501, 502)
        ]
