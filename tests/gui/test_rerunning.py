"""Re-running: one at once, many after a dry run that counts honestly, the rest by hand."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.model.errors import TaskNotFound
from engine.model.records import EngineFields, Status, TaskRecord, TaskView, Unreadable
from engine.model.redact import MARK
from engine.service.rerun import Chance, known, repeats
from fixtures.site.site import Site
from gui.commands.bulk_work import Refusal, Work
from gui.commands.rerunning import RerunDialog
from gui.start.start_dialog import StartDialog
from gui.startup.session import Session
from gui.style.questions import MOST, TaskList
from tests.gui.task_views import a_view, task_id
from tests.gui.test_result_tabs import settled
from tests.gui.windows import (
    dialog_by_act,
    dialog_of,
    heard,
    opened,
    patient,
    press,
    until,
)

OURS = EngineFields(host="here")
HIDDEN = EngineFields(host="here", withheld=True)


def a_task(number: int, status: str = "COMPLETED", **given: Any) -> TaskView:
    fields = given.pop("engine", OURS)
    view = a_view(number, status, **given)
    return TaskView(replace(view.entry, engine=fields))


MIXED = [
    *(a_task(number) for number in range(1, 4)),
    a_task(4, "FAILED", kind="browser_task"),
    a_task(5, "CANCELLED", engine=HIDDEN),
    a_task(6, engine=None),
    a_task(7, args={"_truncated": True, "_bytes": 4000}),
    a_task(8, "RUNNING"),
    a_task(9, "PENDING"),
    a_task(10, kind="telepathy"),
    a_task(11, "RUNNING", kind="task_run"),
    a_task(12, "DREAMING"),
    TaskView(Unreadable(task_id(13), "torn", "/x")),
]


def test_a_dry_run_says_of_each_task_what_would_come_of_it() -> None:
    found = repeats(MIXED)
    numbers = {chance: len(views) for chance, views in found.chances.items()}
    assert numbers == {
        Chance.STARTS: 3,
        Chance.LED: 1,
        Chance.ASKS: 3,
        Chance.LIVE: 2,
        Chance.STRANGE: 1,
        Chance.GOAL: 1,
        Chance.LOST: 2,
    }
    assert sum(numbers.values()) == len(MIXED)
    assert found.whys == {"request_hidden": 1, "request_unknown": 1, "request_cut": 1}
    assert found.ids == tuple(task_id(number) for number in range(1, 5))


def test_what_this_window_started_itself_is_known_with_its_secrets() -> None:
    found = repeats(MIXED, lambda one: one == task_id(5))
    assert task_id(5) in found.ids
    assert "request_hidden" not in found.whys


def test_what_was_taken_out_as_secret_is_never_filled_in_as_its_mark() -> None:
    record = a_task(1, args={"url": "https://a.example/", "token": MARK}).entry
    assert isinstance(record, TaskRecord)
    assert known(record).args == {"url": "https://a.example/"}


def words_of(dialog: RerunDialog) -> list[str]:
    return [label.text() for label in dialog.findChildren(QLabel)]


def test_the_dry_run_starts_nothing_by_default(qapp: QApplication, qtbot: Any) -> None:
    dialog = RerunDialog(repeats(MIXED))
    qtbot.addWidget(dialog)
    said = words_of(dialog)
    assert "Re-run 4 tasks?" in said
    assert "Will start, each as a new task: 3" in said
    assert "Need their secrets again: 1" in said
    assert "Skipped, because they have not ended: 2" in said
    assert dialog.list.topLevelItemCount() == len(MIXED)
    dialog.show()
    QTest.keyClick(dialog, Qt.Key.Key_Return)
    assert dialog.answer == "leave"


@pytest.mark.parametrize("number", [1, 2])
def test_the_dry_run_says_how_many_browser_windows_open(
    qapp: QApplication, qtbot: Any, number: int
) -> None:
    recordings = [a_task(20 + one, kind="recording", args={}) for one in range(number)]
    headless = a_task(30, kind="recording", args={"headless": True})
    dialog = RerunDialog(repeats([*MIXED, *recordings, headless]))
    qtbot.addWidget(dialog)
    said = {1: "1 opens a browser window.", 2: "2 open browser windows, as many"}[number]
    assert any(line.startswith(said) for line in words_of(dialog))
    plain = RerunDialog(repeats([*MIXED, headless]))
    qtbot.addWidget(plain)
    assert not any("browser window" in line for line in words_of(plain))


def test_the_start_button_is_hidden_without_tasks(qapp: QApplication, qtbot: Any) -> None:
    dialog = RerunDialog(repeats(MIXED[7:]))
    qtbot.addWidget(dialog)
    assert [button.text() for button in dialog.findChildren(QPushButton)] == ["Close"]


def test_a_long_list_is_cut_but_copied_in_full(qapp: QApplication, qtbot: Any) -> None:
    rows = [(f"<b>task {number}</b>", "will\nstart") for number in range(MOST + 50)]
    shown = TaskList(("Task", "What"), rows)
    qtbot.addWidget(shown)
    last = shown.topLevelItem(shown.topLevelItemCount() - 1)
    assert shown.topLevelItemCount() == MOST + 1
    assert last is not None
    assert last.text(0) == "…and 50 more"
    shown.copy_all()
    assert len(QGuiApplication.clipboard().text().splitlines()) == MOST + 50


async def test_work_that_is_stopped_finishes_what_is_under_way_and_begins_no_more() -> None:
    begun: list[str] = []

    async def act(_: Any, one: str) -> str:
        begun.append(one)
        if len(begun) == 6:
            work.stop()
        await asyncio.sleep(0)
        if one == "id 1":
            raise TaskNotFound(task_id=one, root="/x")
        return one

    work: Work[str] = Work([f"id {number}" for number in range(50)], act)
    outcome = await work.run(None)  # type: ignore[arg-type]  # this work uses no bridge
    assert len(begun) < 12
    assert outcome.tried == len(begun)
    assert [one.task_id for one in outcome.refused] == ["id 1"]
    assert sorted(outcome.left + begun) == sorted(f"id {number}" for number in range(50))


def ended_here(home: Path, urls: list[str], fields: EngineFields = OURS) -> list[str]:
    """Crawls of an earlier session, as they stand when the window opens."""
    root = home / "tasks"
    root.mkdir(parents=True, exist_ok=True)
    lease = Lease.acquire(root)
    ledger = Ledger(root, lease=lease)
    ids = []
    for url in urls:
        args = {"url": url, "delay_ms": 0, "max_pages": 1, "engine": "static"}
        made = ledger.create("crawl", args, engine=fields)
        ledger.claim(made.task_id)
        ledger.finish(made.task_id, Status.COMPLETED)
        ids.append(str(made.task_id))
    lease.release()
    return ids


def offspring(session: Session) -> list[str]:
    """The parents of the tasks that were started again, where these have ended."""
    model = session.window.model
    found = (model.view_of(one) for one in model.ids)
    records = [view.entry for view in found if view and isinstance(view.entry, TaskRecord)]
    return sorted(
        str(one.engine.parent_task_id)
        for one in records
        if one.engine and one.engine.parent_task_id and one.is_terminal
    )


async def test_the_rerun_key_selects_the_new_task(home: Path, site: Site) -> None:
    (old,) = await asyncio.to_thread(ended_here, home, [f"{site.url}/static/"])
    async with opened(home) as session:
        window = session.window
        window.table.select_ids([old])
        told = heard(session.bridge.started)
        window.activateWindow()
        QTest.keyClick(window.table, Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier)
        (record,) = await told
        assert record.engine.parent_task_id == old
        await until(lambda: offspring(session) == [old], session.bridge.batch)
        assert window.table.selected_ids() == [record.task_id]


async def test_many_are_run_again_after_the_dry_run_was_confirmed(home: Path, site: Site) -> None:
    urls = [f"{site.url}/static/?{number}" for number in range(3)]
    old = await asyncio.to_thread(ended_here, home, urls)
    hidden = await asyncio.to_thread(ended_here, home, urls[:1], HIDDEN)
    async with opened(home) as session:
        patient(session)
        window = session.window
        dialog = await dialog_by_act(window, "rerun_many", RerunDialog)
        assert "Need their secrets again: 1" in words_of(dialog)
        press(dialog, "Re-run 3 tasks")
        await until(lambda: offspring(session) == sorted(old), session.bridge.batch)
        await settled(lambda: window.reports.bar.title == "3 tasks were re-run.")
        assert hidden[0] not in offspring(session)


async def test_a_dry_run_that_is_left_starts_nothing(home: Path) -> None:
    await asyncio.to_thread(ended_here, home, ["https://a.invalid/", "https://b.invalid/"])
    async with opened(home) as session:
        dialog = await dialog_by_act(session.window, "rerun_many", RerunDialog)
        QTest.keyClick(dialog, Qt.Key.Key_Escape)
        assert not [one for one in asyncio.all_tasks() if one.get_name().startswith("bulk work")]
        assert len(await session.bridge.engine.tasks.list()) == 2


async def test_rerun_with_secrets_opens_the_start_dialog(home: Path) -> None:
    (old,) = await asyncio.to_thread(ended_here, home, ["https://a.invalid/"], HIDDEN)
    async with opened(home) as session:
        window = session.window
        window.table.select_ids([old])
        dialog = await dialog_by_act(window, "rerun", StartDialog)
        assert dialog.form["url"].value == "https://a.invalid/"
        dialog.reject()


async def test_what_could_not_be_run_again_is_listed_with_its_reason(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        refused = [Refusal(task_id(1), TaskNotFound(task_id=task_id(1), root="/x"))]
        window.reports.tell("1 task could not be re-run", refused)
        assert "/x" in window.reports.bar.accessibleName()
        press(window.reports.bar, "Show which…")
        dialog = dialog_of(session)
        press(dialog, "Copy all")
        assert task_id(1) in QGuiApplication.clipboard().text()
        assert dialog.isVisible()
        press(dialog, "Close")


@pytest.mark.parametrize("status", ["RUNNING", "PENDING"])
async def test_what_has_not_ended_cannot_be_run_again(home: Path, status: str) -> None:
    async with opened(home) as session:
        window = session.window
        window.model.put_many([a_view(1, status)])
        window.table.select_ids([task_id(1)])
        assert not window.acts["rerun"].isEnabled()
