"""The whole window on a real engine, ledger and browser: start, watch, cancel, undo, leave."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QPushButton, QTabWidget, QWidget

from engine.service.rerun import Asked
from fixtures.site.site import Site
from gui.start.start_dialog import StartDialog
from gui.style.icons import window_icon
from gui.style.theme import Theme, is_dark
from tests.gui.live_tasks import FAST, ended, running, start, written_by_another
from tests.gui.windows import dialog_of, heard, opened, press, until


async def test_an_empty_ledger_offers_the_ways_to_begin(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        assert window.area.state == "empty"
        assert not window.details.isVisible()
        assert str(home / "tasks") in window.windowTitle()
        assert window.status.watcher.text == "Live"


async def test_a_ready_button_outlives_news_of_health_and_enter_presses_it(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        window.activateWindow()
        buttons = [one for one in window.area.findChildren(QPushButton) if one.isVisible()]
        first = window.area._empty._default
        window._show_health(session.bridge.look_at_health())
        assert window.area._empty._default is first
        (new,) = [one for one in buttons if one.text().startswith("New task")]
        QTest.keyClick(new, Qt.Key.Key_Return)
        dialog_of(session).reject()


def test_the_window_has_a_sign_of_its_own(qapp: QApplication) -> None:
    assert not window_icon().pixmap(32, 32).isNull()


async def test_what_another_process_writes_appears_while_the_window_is_open(home: Path) -> None:
    async with opened(home) as session:
        (task_id,) = await asyncio.to_thread(written_by_another, home)
        assert await ended(session, task_id) == "COMPLETED"
        assert session.window.area.state == "table"


async def test_the_start_dialog_starts_a_crawl(home: Path, site: Site) -> None:
    async with opened(home) as session:
        window = session.window
        window.acts["new"].trigger()
        dialog = dialog_of(session)
        assert isinstance(dialog, StartDialog)
        dialog.form.fill({"url": f"{site.url}/", **FAST})
        dialog.start.click()
        (record,) = await heard(session.bridge.started)
        assert await ended(session, record.task_id) == "COMPLETED"
        assert not session.window.findChildren(StartDialog)
        assert window.table.selected_ids() == [record.task_id]
        assert window.details.task_id == record.task_id
        pages = (home / "tasks" / record.task_id / "pages.jsonl").read_text().splitlines()
        assert len(pages) == 3


async def test_a_refused_request_stays_in_its_dialog_with_its_mistakes(home: Path) -> None:
    async with opened(home) as session:
        session.window.requests.new_task({"url": "https://example.com"})
        dialog = dialog_of(session)
        assert isinstance(dialog, StartDialog)
        told = heard(session.bridge.answered)
        dialog.wanted.emit(Asked("crawl", {"url": "ftp://example.com", "max_pages": 0}))
        await told
        assert dialog.form["url"].mistake
        assert dialog.form["max_pages"].mistake
        dialog.reject()


async def test_a_started_task_hidden_by_the_filter_is_offered(home: Path, site: Site) -> None:
    await asyncio.to_thread(written_by_another, home, 2)
    async with opened(home) as session:
        window = session.window
        window.filter_bar.set_text("example.com/1")
        task_id = await start(session, url=f"{site.url}/static/", **FAST)
        assert "hidden by the filter" in window.news_bar.title
        assert window.table.selected_ids() == []
        press(window.news_bar, "Show")
        assert window.table.selected_ids() == [task_id]


async def test_a_selection_made_by_hand_is_not_taken_over_by_a_started_task(home: Path) -> None:
    ids = await asyncio.to_thread(written_by_another, home, 2)
    async with opened(home) as session:
        window = session.window
        window.started_task_selector.expect("0123456789abcdef")
        window.table.select_ids([ids[0]])
        view = window.model.view_of(ids[1])
        assert view is not None
        entry = replace(view.entry, task_id="0123456789abcdef")
        window.model.put_many([replace(view, entry=entry)])
        window.started_task_selector.look()
        assert window.table.selected_ids() == [ids[0]]


async def test_a_dialog_hears_of_its_own_request_only(home: Path, site: Site) -> None:
    async with opened(home) as session:
        window = session.window
        window.requests.new_task({"url": "https://example.com"})
        dialog = dialog_of(session)
        await start(session, url=f"{site.url}/static/", **FAST)
        assert dialog.isVisible()
        told = heard(window.requests.failed)
        session.bridge.start("crawl", {"url": "ftp://example.com"})
        await told
        assert dialog.isVisible()
        assert "mistakes" in window.banner.title
        dialog.reject()


async def test_the_next_window_looks_as_the_last_one_was_left(home: Path) -> None:
    ids = await asyncio.to_thread(written_by_another, home, 3)
    async with opened(home) as session:
        window = session.window
        window.tall.setSizes([200, 300])
        window.model.set_sort([("task", True), ("age", False)])
        window.filter_bar.set_text("example.com/1")
        window.sidebar.select(("completed",))
        window.acts["sidebar"].setChecked(False)
        window.acts.themes[Theme.DARK].trigger()
        assert window.model.rowCount() == 1
        sizes = window.tall.sizes()
    async with opened(home) as session:
        window = session.window
        assert window.tall.sizes() == sizes
        assert list(window.model.sort_keys)[:2] == [("task", True), ("age", False)]
        assert window.filter_bar.text == "example.com/1"
        assert window.sidebar.chosen == ("completed",)
        assert not window.sidebar.isVisible()
        assert window.acts.themes[Theme.DARK].isChecked()
        assert is_dark(window.palette())
        assert window.model.rowCount() == 1
        window.clear_filter()
        assert window.model.rowCount() == len(ids)
        window.acts.themes[Theme.LIGHT].trigger()


async def test_a_filter_without_a_match_says_so_and_can_be_cleared(home: Path) -> None:
    await asyncio.to_thread(written_by_another, home, 2)
    async with opened(home) as session:
        window = session.window
        window.filter_bar.set_text("nothing like this")
        assert window.area.state == "unmatched"
        window.clear_filter()
        assert window.area.state == "table"


async def test_ids_and_rows_are_copied(home: Path) -> None:
    ids = await asyncio.to_thread(written_by_another, home, 2)
    async with opened(home) as session:
        window = session.window
        window.acts["all"].trigger()
        window.acts["copy_ids"].trigger()
        assert set(QGuiApplication.clipboard().text().split()) == set(ids)
        window.acts["copy_rows"].trigger()
        lines = QGuiApplication.clipboard().text().splitlines()
        assert len(lines) == 3
        assert all("\t" in line for line in lines)


async def test_list_keys_do_nothing_in_the_events(home: Path, site: Site) -> None:
    async with opened(home) as session:
        window = session.window
        window.activateWindow()
        task_id = await running(session, f"{site.url}/hang")
        window.table.select_ids([task_id])
        events = window.details.events
        await until(lambda: events.model.rowCount(), session.bridge.events)
        window.details.findChildren(QTabWidget)[0].setCurrentWidget(events)
        events.table.setFocus()
        events.table.selectRow(0)
        QGuiApplication.clipboard().setText("before")
        QTest.keyClick(events.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
        copied = QGuiApplication.clipboard().text()
        assert copied not in ("before", task_id)
        QTest.keyClick(events.table, Qt.Key.Key_Delete)
        assert not [one for one in window.findChildren(QDialog) if one.isVisible()]
        window.table.setFocus()
        QTest.keyClick(window.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
        assert QGuiApplication.clipboard().text() == task_id
        QTest.keyClick(window.table, Qt.Key.Key_Delete)
        press(dialog_of(session), "Cancel task")
        assert await ended(session, task_id) == "CANCELLED"


@pytest.mark.usefixtures("patient_browser")
async def test_the_sample_crawl_needs_no_network(home: Path) -> None:
    async with opened(home) as session:
        told = heard(session.bridge.started)
        session.window.acts["sample"].trigger()
        (record,) = await told
        assert record.args_summary["url"].startswith("http://127.0.0.1:")
        assert record.engine is not None
        assert record.engine.name == "Sample crawl"
        session.bridge.cancel([record.task_id])
        assert await ended(session, record.task_id) in ("CANCELLED", "COMPLETED")
    async with opened(home) as session:  # the site of the other window has ended
        again = await session.bridge.repeat(record.task_id)
        assert again.engine is not None
        assert again.engine.parent_task_id == record.task_id
        assert await ended(session, again.task_id) == "COMPLETED"


async def test_f6_goes_round_the_regions(home: Path) -> None:
    await asyncio.to_thread(written_by_another, home)
    async with opened(home) as session:
        window = session.window
        window.activateWindow()
        seen = []
        for _ in range(8):
            window.acts["next_region"].trigger()
            seen.append(window.focusWidget())
        assert len(set(seen)) >= 4
        assert window.table in seen


async def test_every_sign_without_words_has_a_name(home: Path) -> None:
    from PySide6.QtWidgets import QAbstractButton, QToolButton

    async with opened(home) as session:
        mute = [
            button.objectName() or type(button).__name__
            for button in session.window.findChildren(QAbstractButton)
            if button.isVisible()
            and not button.accessibleName()
            and not (button.text() or (isinstance(button, QToolButton) and button.toolTip()))
            and not button.objectName().startswith("qt_")
        ]
        assert mute == []


@pytest.mark.parametrize("key", ["sidebar", "details"])
async def test_a_pane_can_be_hidden_and_comes_back(home: Path, key: str) -> None:
    await asyncio.to_thread(written_by_another, home)
    async with opened(home) as session:
        pane = getattr(session.window, key)
        session.window.table.selectRow(0)
        look: Callable[[], bool] = pane.isVisible
        assert look()
        session.window.acts[key].trigger()
        assert not look()
        session.window.acts[key].trigger()
        assert look()


async def test_the_list_has_the_room_of_the_details_until_a_row_is_chosen(home: Path) -> None:
    ids = await asyncio.to_thread(written_by_another, home, 60)
    async with opened(home) as session:
        window = session.window
        assert window.details.isHidden()
        window.acts["details"].trigger()
        window.acts["details"].trigger()
        assert window.details.isVisible()  # who asks for the pane gets it
    async with opened(home) as session:
        window = session.window
        whole = window.table.height()
        window.table.select_ids([ids[0]])  # the oldest, which stands last
        assert window.details.isVisible()
        assert window.table.height() < whole
        at = window.table.visualRect(window.table.currentIndex())
        assert window.table.viewport().rect().contains(at)
        window.details.setFocus()
        window.acts["none"].trigger()
        await until_hidden(window.details)
        async with asyncio.timeout(30):  # the splitter moves with its next layout
            while window.table.height() < whole:
                await asyncio.sleep(0.01)
        window.acts["details"].trigger()
        window.acts["details"].trigger()
        window.table.clearSelection()
        await asyncio.sleep(0.1)
        assert window.details.isVisible()


async def test_the_details_stay_while_one_choice_replaces_another(home: Path) -> None:
    ids = await asyncio.to_thread(written_by_another, home, 3)
    async with opened(home) as session:
        window = session.window
        window.table.select_ids([ids[0]])
        hidden: list[bool] = []
        window.table.selection_changed.connect(lambda _: hidden.append(window.details.isHidden()))
        window.table.clearSelection()
        window.table.select_ids([ids[1]])
        await asyncio.sleep(0.1)
        assert not any(hidden)
        assert window.details.isVisible()


async def test_the_details_are_hidden_when_the_filter_hides_the_chosen_row(home: Path) -> None:
    ids = await asyncio.to_thread(written_by_another, home, 3)
    async with opened(home) as session:
        window = session.window
        window.table.select_ids([ids[0]])
        assert window.details.isVisible()
        window.filter_bar.set_text("status:failed")
        window.filter_bar.left.emit()
        await until_hidden(window.details)
        window.clear_filter()
        await asyncio.sleep(0.1)
        assert window.details.isHidden()


async def test_the_details_are_hidden_when_a_folder_that_was_away_comes_back(home: Path) -> None:
    ids = await asyncio.to_thread(written_by_another, home, 3)
    async with opened(home) as session:
        window = session.window
        window.table.select_ids([ids[0]])
        (home / "tasks").rename(home / "away")
        await until(lambda: window.area.state == "trouble", session.bridge.health)
        (home / "away").rename(home / "tasks")
        await until(lambda: window.area.state == "table", window.model.counts_changed)
        await asyncio.sleep(0.1)
        assert window.details.isVisible() == bool(len(window.scope))


async def until_hidden(pane: QWidget) -> None:
    async with asyncio.timeout(60):
        while pane.isVisible():
            await asyncio.sleep(0.01)


async def test_an_empty_list_offers_to_paste_an_address(home: Path) -> None:
    async with opened(home) as session:
        buttons = session.window.area.findChildren(QPushButton)
        assert [one.text() for one in buttons if one.isVisible()] == [
            "New task…",
            "Paste a URL",
            "Try the sample crawl",
            "Open another folder…",
        ]
        QGuiApplication.clipboard().setText("example.com/two")
        press(session.window.area, "Paste a URL")
        QGuiApplication.clipboard().clear()
        dialog = dialog_of(session)
        assert isinstance(dialog, StartDialog)
        assert dialog.form.asked.args["url"] == "https://example.com/two"
        dialog.reject()


async def test_the_title_shortens_the_home_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home.parent))
    monkeypatch.setenv("USERPROFILE", str(home.parent))
    async with opened(home) as session:
        assert session.window.windowTitle() == os.path.join("~", home.name, "tasks")
