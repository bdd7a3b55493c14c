"""The whole window on a real engine, ledger and browser: start, watch, cancel, undo, leave."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QLabel, QPushButton, QTabWidget

from engine.again import Asked
from engine.config import Settings
from engine.errors import TaskNotFound
from engine.records import EngineFields, Health, Status, TaskRecord
from engine.sample.site import Site
from engine.store.lease import Lease
from engine.store.ledger import Ledger
from gui.bridge import Bridge
from gui.dialogs.cancel import CancelDialog
from gui.dialogs.start import StartDialog
from gui.icons import window_icon
from gui.session import Session
from gui.theme import Theme, is_dark
from tests.gui.windows import dialog_of, heard, opened, press, until

FAST = {"delay_ms": 0, "max_pages": 3, "engine": "static"}


def status_of(session: Session, task_id: str) -> str:
    view = session.window.model.view_of(task_id)
    return view.entry.status if view and isinstance(view.entry, TaskRecord) else ""


async def ended(session: Session, task_id: str) -> str:
    """The final state of a task as the table shows it."""

    def look() -> str:
        status = status_of(session, task_id)
        return status if status in ("COMPLETED", "FAILED", "CANCELLED") else ""

    return str(await until(look, session.bridge.batch))


async def start(session: Session, **args: Any) -> str:
    told = heard(session.bridge.started)
    session.bridge.start("crawl", args)
    (record,) = await told
    await until(lambda: status_of(session, record.task_id), session.bridge.batch)
    return str(record.task_id)


async def running(session: Session, url: str) -> str:
    """A task that runs and does not end by itself."""
    task_id = await start(session, url=url, **FAST)
    await until(lambda: status_of(session, task_id) == "RUNNING", session.bridge.batch)
    return task_id


def written_by_another(home: Path, count: int = 1) -> list[str]:
    """Tasks that another process has put into the ledger."""
    root = home / "tasks"
    root.mkdir(parents=True, exist_ok=True)
    lease = Lease.acquire(root)
    ledger = Ledger(root, lease=lease)
    ids = []
    for number in range(count):
        args = {"url": f"https://example.com/{number}"}
        record = ledger.create("crawl", args, engine=EngineFields())
        ledger.claim(record.task_id)
        ledger.finish(record.task_id, Status.COMPLETED)
        ids.append(str(record.task_id))
    lease.release()
    return ids


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


async def test_a_crawl_is_started_from_the_dialog_and_its_pages_are_on_disk(
    home: Path, site: Site
) -> None:
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


async def test_running_tasks_are_cancelled_after_a_question(home: Path, site: Site) -> None:
    async with opened(home) as session:
        window = session.window
        task_id = await running(session, f"{site.url}/hang")
        window.table.select_ids([task_id])
        assert window.acts["cancel"].isEnabled()
        window.acts["cancel"].trigger()
        press(dialog_of(session), "Cancel task")
        assert await ended(session, task_id) == "CANCELLED"
        assert not window.acts["cancel"].isEnabled()


async def test_keep_running_keeps_it_running(home: Path, site: Site) -> None:
    async with opened(home) as session:
        task_id = await running(session, f"{site.url}/hang")
        session.window.table.select_ids([task_id])
        session.window.acts["cancel"].trigger()
        press(dialog_of(session), "Keep running")
        record = (await session.bridge.engine.get(task_id)).entry
        assert isinstance(record, TaskRecord)
        assert record.cancel_requested_at is None


async def test_a_waiting_task_is_cancelled_at_once_and_can_be_brought_back(
    home: Path, site: Site
) -> None:
    async with opened(home, slots=1) as session:
        window = session.window
        await running(session, f"{site.url}/hang")
        waiting = await start(session, url=f"{site.url}/static/", **FAST)
        window.table.select_ids([waiting])
        window.acts["cancel"].trigger()
        await heard(session.bridge.cancelled)
        assert await ended(session, waiting) == "CANCELLED"
        assert "cancelled" in window.undo_bar.title
        press_undo: Any = window.requests.undo
        press_undo()
        (again,) = await heard(session.bridge.started)
        assert again.task_id != waiting
        assert again.engine.parent_task_id == waiting
        assert again.args_summary["url"] == f"{site.url}/static/"
        assert window.undo_bar.title == ""


async def test_a_waiting_task_of_another_process_comes_back_with_its_terms(home: Path) -> None:
    fields = EngineFields(host="elsewhere", run_id="r1", name="buy")
    task_id = waiting_elsewhere(home, {"url": "https://a.invalid/"}, fields)
    async with opened(home, slots=1) as session:
        window = session.window
        window.table.select_ids([task_id])
        window.acts["cancel"].trigger()
        await heard(session.bridge.cancelled)
        press_undo: Any = window.requests.undo
        press_undo()
        (again,) = await heard(session.bridge.started)
        assert again.engine.parent_task_id == task_id
        assert (again.kind, again.engine.name) == ("recording", "buy")
        assert again.policy["maxToolCalls"] == 9
        await session.bridge.engine.cancel(again.task_id)


async def test_a_waiting_task_whose_request_is_hidden_is_asked_about_first(home: Path) -> None:
    fields = EngineFields(host="elsewhere", withheld=True)
    task_id = waiting_elsewhere(home, {"label": "pay"}, fields)
    async with opened(home) as session:
        window = session.window
        window.table.select_ids([task_id])
        window.acts["cancel"].trigger()
        dialog = window.findChild(CancelDialog)
        assert dialog is not None
        said = [label.text() for label in dialog.findChildren(QLabel)]
        assert any("This cannot be undone" in text for text in said)
        dialog.reject()
        record = (await session.bridge.engine.get(task_id)).entry
        assert isinstance(record, TaskRecord)
        assert record.status == "PENDING"


def waiting_elsewhere(home: Path, args: dict[str, Any], fields: EngineFields) -> str:
    """A recording that waits for its turn on another host."""
    task_id = "00000000000000e1"
    folder = home / "tasks" / task_id
    folder.mkdir(parents=True)
    now = int(time.time() * 1000)
    meta = {
        "task_id": task_id,
        "kind": "recording",
        "status": "PENDING",
        "pid": 7,
        "created_at": now,
        "args_summary": {**args, "headless": True},
        "policy": {"maxToolCalls": 9},
        "engine": msgspec.to_builtins(fields),
    }
    (folder / "meta.json").write_bytes(msgspec.json.encode(meta))
    return task_id


@pytest.mark.case("R51")
async def test_a_root_that_is_a_file_is_a_sentence_and_heals_by_itself(home: Path) -> None:
    (home / "tasks").write_text("no folder")
    async with opened(home, wait="unusable") as session:
        window = session.window
        assert window.area.state == "trouble"
        (home / "tasks").unlink()
        told = heard(window.loaded)
        window.acts["rescan"].trigger()
        await told
        assert window.area.state == "empty"


async def test_nothing_is_offered_to_start_before_the_ledger_is_open(home: Path) -> None:
    (home / "tasks").write_text("no folder")
    async with opened(home, wait="unusable") as session:
        acts = session.window.acts
        assert not any(acts[key].isEnabled() for key in ("new", "paste", "sample"))
        told = heard(session.bridge.failed)
        session.bridge.start("crawl", {"url": "https://example.com"})
        (error,) = await told
        assert error.code == "ledger_unusable"
        (home / "tasks").unlink()
        loaded = heard(session.window.loaded)
        acts["rescan"].trigger()
        await loaded
        assert acts["new"].isEnabled()


async def test_a_root_that_disappears_is_trouble_until_it_returns(home: Path) -> None:
    ids = await asyncio.to_thread(written_by_another, home, 2)
    root, aside = home / "tasks", home / "aside"
    async with opened(home) as session:
        window = session.window
        root.rename(aside)
        await until(lambda: window.area.state == "trouble", session.bridge.health)
        words = [label.text() for label in window.area.findChildren(QLabel) if label.isVisible()]
        assert any(str(root) in text for text in words)
        aside.rename(root)
        await until(lambda: window.model.total == len(ids), session.bridge.batch)
        await until(lambda: window.area.state == "table", window.area.populated)


async def test_a_list_that_failed_is_followed_again_without_what_went_meanwhile(
    home: Path,
) -> None:
    ids = await asyncio.to_thread(written_by_another, home, 3)
    async with opened(home) as session:
        window, bridge = session.window, session.bridge
        told = heard(bridge.failed)

        def fail() -> None:
            raise ValueError("a defect")

        (feed,) = bridge.engine._feeds
        feed._picture.survey = fail  # type: ignore[method-assign,assignment]
        bridge.rescan()
        await told
        shutil.rmtree(home / "tasks" / ids[0])
        assert window.status.watcher.text == "Polling"
        bridge.rescan()
        await until(lambda: window.model.total == 2, bridge.batch)
        assert window.model.view_of(ids[0]) is None
        await until(lambda: window.status.watcher.text == "Live", bridge.health)


async def test_a_window_that_closes_while_it_opens_leaves_no_lease(home: Path) -> None:
    session_settings = Settings.at(home=home)
    bridge = Bridge(session_settings)
    bridge.open()
    runners = home / "tasks" / ".runners"
    async with asyncio.timeout(10):
        while not runners.exists():
            await asyncio.sleep(0)
    await bridge.close()
    assert not list(runners.iterdir())


async def test_a_started_task_that_the_filter_hides_is_named_and_can_be_shown(
    home: Path, site: Site
) -> None:
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
        window.newcomer.expect("0123456789abcdef")
        window.table.select_ids([ids[0]])
        view = window.model.view_of(ids[1])
        assert view is not None
        entry = replace(view.entry, task_id="0123456789abcdef")
        window.model.put_many([replace(view, entry=entry)])
        window.newcomer.look()
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


async def test_an_undo_that_is_offered_survives_a_later_cancel(home: Path, site: Site) -> None:
    async with opened(home, slots=1) as session:
        window, bridge = session.window, session.bridge
        runs = await running(session, f"{site.url}/hang")
        first, second = [await start(session, url=f"{site.url}/static/", **FAST) for _ in "ab"]
        for task_id, waiting in ((first, [first]), (second, [second]), (runs, [])):
            told = heard(bridge.cancelled)
            bridge.cancel([task_id], None, waiting)
            await told
        assert "2 waiting tasks" in window.undo_bar.title
        again: list[TaskRecord] = []
        bridge.started.connect(again.append)
        window.requests.undo()
        await until(lambda: len(again) == 2, bridge.started)
        assert {record.engine and record.engine.parent_task_id for record in again} == {
            first,
            second,
        }


async def test_a_missing_browser_is_a_banner_and_the_list_still_works(home: Path) -> None:
    async with opened(home, browser_path="/nowhere/chromium") as session:
        session.bridge.warm()
        window = session.window
        await until(lambda: window.banner.title, session.bridge.health)
        assert "browser" in window.banner.title.lower()
        (task_id,) = await asyncio.to_thread(written_by_another, home)
        assert await ended(session, task_id) == "COMPLETED"


async def test_leaving_asks_while_tasks_run_and_stays_by_default(home: Path, site: Site) -> None:
    async with opened(home) as session:
        task_id = await running(session, f"{site.url}/hang")
        leaving = asyncio.ensure_future(session.ended())
        session.window.close()
        question = dialog_of(session)
        assert "1 task is running" in question.accessibleName()
        QTest.keyClick(question, Qt.Key.Key_Escape)
        await asyncio.sleep(0)
        assert not leaving.done()
        assert session.window.isVisible()
        session.window.close()
        press(dialog_of(session), "Cancel tasks and quit")
        assert await leaving is None
    meta = json.loads((home / "tasks" / task_id / "meta.json").read_text())
    assert meta["status"] == "CANCELLED"


async def test_opening_another_folder_asks_in_its_own_words(home: Path, site: Site) -> None:
    async with opened(home) as session:
        await running(session, f"{site.url}/hang")
        session.window.folder_wanted.emit(home / "other")
        question = dialog_of(session)
        assert question.windowTitle() == "Open another folder"
        press(question, "Stay here")
        assert session.window.isVisible()


async def test_a_passing_error_gives_way_to_what_lasts(home: Path) -> None:
    async with opened(home) as session:
        trouble, banner = session.window.trouble, session.window.banner
        trouble.show_health(Health(root="/x", browser="missing"))
        lasting = banner.title
        missing = [TaskNotFound(task_id=f"{number:016x}", root="/x") for number in range(7)]
        trouble.show_refusals(missing)
        assert banner.title == "7 tasks could not be cancelled"
        assert "and 2 more" in banner.accessibleName()
        banner._close.click()
        assert banner.title == lasting
        banner._close.click()
        trouble.show_refusals(missing[:1])
        banner._close.click()
        assert banner.title == ""  # closed by hand once: not told again


async def test_leaving_without_work_asks_nothing(home: Path) -> None:
    async with opened(home) as session:
        leaving = asyncio.ensure_future(session.ended())
        session.window.acts["quit"].trigger()
        assert await leaving is None


async def test_the_next_window_looks_as_the_last_one_was_left(home: Path) -> None:
    ids = await asyncio.to_thread(written_by_another, home, 3)
    async with opened(home) as session:
        window = session.window
        window.tall.setSizes([200, 300])
        window.model.set_sort([("task", True), ("age", False)])
        window.filter_bar.set_text("example.com/1")
        window.sidebar.select(("completed",))
        window.acts["sidebar"].setChecked(False)
        window.choose_theme(Theme.DARK)
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
        window.choose_theme(Theme.LIGHT)


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


async def test_keys_of_the_list_mean_nothing_to_it_while_the_events_have_the_focus(
    home: Path, site: Site
) -> None:
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


async def test_the_sample_crawl_needs_no_network(home: Path) -> None:
    async with opened(home) as session:
        told = heard(session.bridge.started)
        session.window.acts["sample"].trigger()
        (record,) = await told
        assert record.args_summary["url"].startswith("http://127.0.0.1:")
        session.bridge.cancel([record.task_id])
        assert await ended(session, record.task_id) in ("CANCELLED", "COMPLETED")


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
        look: Callable[[], bool] = pane.isVisible
        assert look()
        session.window.acts[key].trigger()
        assert not look()
        session.window.acts[key].trigger()
        assert look()
