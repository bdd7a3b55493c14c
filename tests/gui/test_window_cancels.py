"""The window cancels, restores, and asks before it closes with running tasks."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton

from engine.model.records import EngineFields, TaskRecord
from fixtures.site.site import Site
from gui.commands.task_requests import CancelDialog
from tests.gui.live_tasks import FAST, ended, running, start
from tests.gui.test_undoing import seconds_of
from tests.gui.windows import FAR_MS, dialog_of, heard, opened, patient, press, until


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


async def test_a_cancelled_task_that_the_filter_hides_is_reported_and_the_next_row_is_chosen(
    home: Path, site: Site
) -> None:
    async with opened(home, slots=2) as session:
        window, batch = session.window, session.bridge.batch
        first = await running(session, f"{site.url}/hang")
        second = await running(session, f"{site.url}/hang?2")
        window.filter_bar.set_text("status:running")
        window.table.select_ids([first])
        window.acts["cancel"].trigger()
        press(dialog_of(session), "Cancel task")
        await until(lambda: window.table.selected_ids() == [second], batch)
        await until(lambda: "Cancelled; 0 pages kept" in window.news_bar.title, batch)
        press(window.news_bar, "Show")
        assert window.table.selected_ids() == [first]
        assert not window.news_bar.isVisible()


async def test_keep_running_keeps_it_running(home: Path, site: Site) -> None:
    async with opened(home) as session:
        task_id = await running(session, f"{site.url}/hang")
        session.window.table.select_ids([task_id])
        session.window.acts["cancel"].trigger()
        press(dialog_of(session), "Keep running")
        record = (await session.bridge.engine.tasks.get(task_id)).entry
        assert isinstance(record, TaskRecord)
        assert record.cancel_requested_at is None


async def test_a_cancelled_pending_task_can_be_undone(home: Path, site: Site) -> None:
    async with opened(home, slots=1) as session:
        patient(session)
        window = session.window
        await running(session, f"{site.url}/hang")
        waiting = await start(session, url=f"{site.url}/static/", **FAST)
        window.table.select_ids([waiting])
        window.acts["cancel"].trigger()
        await heard(session.bridge.cancelled)
        assert await ended(session, waiting) == "CANCELLED"
        assert "cancelled" in window.undo_bar.title
        (button,) = window.undo_bar.findChildren(QPushButton)
        assert FAR_MS / 1000 - 60 < seconds_of(button) <= FAR_MS / 1000  # it counts down
        assert window.acts["undo"].text() == "&Undo cancelling 1 task"
        window.acts["undo"].trigger()
        assert not window.acts["undo"].isEnabled()
        (again,) = await heard(session.bridge.started)
        assert again.task_id != waiting
        assert again.engine.parent_task_id == waiting
        assert again.args_summary["url"] == f"{site.url}/static/"
        assert window.undo_bar.title == ""
        assert window.news_bar.title.startswith("Started again as a new task")
        window.news_bar.leave_after(0)  # instead of 8 s
        await until(lambda: not window.news_bar.title, window.news_bar._leaving.timeout)


async def test_a_waiting_task_of_another_process_comes_back_with_its_terms(home: Path) -> None:
    fields = EngineFields(host="elsewhere", run_id="r1", name="buy")
    task_id = waiting_elsewhere(home, {"url": "https://a.invalid/"}, fields)
    async with opened(home, slots=1) as session:
        patient(session)
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
        await session.bridge.engine.commands.cancel(again.task_id)


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
        record = (await session.bridge.engine.tasks.get(task_id)).entry
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


async def test_an_undo_that_is_offered_survives_a_later_cancel(home: Path, site: Site) -> None:
    async with opened(home, slots=1) as session:
        patient(session)
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


async def test_leaving_asks_while_tasks_run_and_stays_by_default(
    home: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (
        "gui.engine_link.bridge",
        "gui.startup.session",
    ):  # what stops late was still asked to stop
        monkeypatch.setattr(f"{module}.CLOSE_S", 60.0)
    async with opened(home) as session:
        task_id = await running(session, f"{site.url}/hang")
        leaving = asyncio.ensure_future(session.ended())
        session.window.close()
        question = dialog_of(session)
        assert "1 task of this window" in question.accessibleName()
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


async def test_leaving_without_work_asks_nothing(home: Path) -> None:
    async with opened(home) as session:
        leaving = asyncio.ensure_future(session.ended())
        session.window.acts["quit"].trigger()
        assert await leaving is None
