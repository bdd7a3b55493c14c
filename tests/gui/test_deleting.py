"""Del on ended tasks: hidden at once, restored by Undo, later in the trash."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.model.config import Settings
from engine.model.records import EngineFields, Status, TaskView, Unreadable
from engine.service import pruning
from engine.service.engine import Engine
from engine.service.feed import Batch
from engine.service.pruning import NoTrash, TaskStays
from gui.commands.bulk_work import WorkBar
from gui.commands.deleting import MANY, UNDO_MS, DeleteQuestion, Deleting, can_go
from gui.startup.session import Session
from tests.gui.live_tasks import written_by_another
from tests.gui.start_dialogs import words_of
from tests.gui.task_views import NOW, a_view, task_id
from tests.gui.windows import appearing, dialog_by_act, opened, press, showing
from tests.support.engines import until

FAR_MS = 3_600_000  # the time for an Undo does not end by itself


def deleting_of(session: Session) -> Deleting:
    found = session.window.findChild(Deleting)
    assert found is not None
    return found


async def test_del_on_the_next_row_works_at_once(home: Path) -> None:
    await asyncio.to_thread(written_by_another, home, 3)
    async with opened(home) as session:
        window = session.window
        ids = list(window.model.ids)
        window.table.select_ids([ids[1]])
        window.acts["delete"].trigger()
        assert window.table.selected_ids() == [ids[2]]
        assert window.details.task_id == ids[2]
        window.acts["delete"].trigger()
        assert window.table.selected_ids() == [ids[0]]  # the last one was below
        press(deleting_of(session).bar, "Undo")
        assert set(window.table.selected_ids()) == {ids[1], ids[2]}


async def test_del_takes_an_ended_task_out_of_sight_and_undo_brings_it_back(home: Path) -> None:
    ids = await asyncio.to_thread(written_by_another, home, 2)
    async with opened(home) as session:
        window = session.window
        window.table.select_ids(ids[:1])
        window.activateWindow()
        window.table.setFocus()
        QTest.keyClick(window.table, Qt.Key.Key_Delete)
        assert window.model.view_of(ids[0]) is None
        assert window.model.total == 1
        assert deleting_of(session).bar.title == "1 task goes to the trash."
        assert (home / "tasks" / ids[0]).exists()
        deleting = deleting_of(session)
        assert deleting.bar.isVisible()
        assert deleting._over.isActive()
        assert deleting._over.interval() == UNDO_MS
        press(deleting.bar, "Undo")
        assert not deleting._over.isActive()
        assert not deleting.bar.isVisible()
        assert window.model.view_of(ids[0]) is not None
        assert window.table.selected_ids() == ids[:1]
    assert (home / "tasks" / ids[0]).exists()


async def test_a_list_emptied_by_del_says_nothing_of_the_deleted_tasks_and_undo_refocuses_it(
    home: Path,
) -> None:
    ids = await asyncio.to_thread(written_by_another, home, 3)
    async with opened(home) as session:
        window = session.window
        window.filter_bar.set_text(f"id:{ids[0]} OR id:{ids[1]}")
        await until(lambda: window.model.rowCount() == 2)
        window.table.setFocus()
        window.table.selectAll()
        assert window.scope.counts.ended == 2
        QTest.keyClick(window.table, Qt.Key.Key_Delete)
        assert window.area.state == "unmatched"
        assert window.scope.counts.ended == 0
        await until(lambda: not window.details.isVisible())
        assert window.area.isAncestorOf(window.focusWidget())
        window.acts["undo"].trigger()
        assert window.area.state == "table"
        assert window.focusWidget() is window.table
        assert set(window.table.selected_ids()) == set(ids[:2])


async def test_news_of_a_task_that_is_out_of_sight_do_not_bring_its_summary_back(
    home: Path,
) -> None:
    await asyncio.to_thread(written_by_another, home, 2)
    async with opened(home) as session:
        window = session.window
        window.table.selectAll()
        window.scope.choose_matching()
        (view, _) = window.scope.views()
        window.acts["delete"].trigger()
        assert window.scope.counts.total == 0
        session.bridge.batch.emit(Batch((replace(view, last_event_at=NOW),)))
        assert window.model.rowCount() == 0
        assert window.scope.counts.total == 0
        window.acts["undo"].trigger()


async def test_deleted_tasks_are_in_the_trash_after_closing(home: Path, trash: Path) -> None:
    ids = await asyncio.to_thread(written_by_another, home, 2)
    async with opened(home) as session:
        session.window.table.select_ids(ids[:1])
        session.window.acts["delete"].trigger()
    assert not (home / "tasks" / ids[0]).exists()
    assert (home / "tasks" / ids[1]).exists()
    assert [one.name for one in trash.iterdir()] == [ids[0]]


async def test_one_that_cannot_go_comes_back_with_the_reason(home: Path) -> None:
    ids = await asyncio.to_thread(written_by_another, home)
    async with opened(home) as session:
        window, deleting = session.window, deleting_of(session)
        window.table.select_ids(ids)
        window.acts["delete"].trigger()
        (home / "tasks" / ids[0] / ".lock.lock").mkdir()
        with showing(window.reports.bar) as told:
            deleting._over.timeout.emit()
            await told
        assert window.reports.bar.title == "1 task could not be let go"
        assert window.model.view_of(ids[0]) is not None


async def test_closing_the_undo_bar_commits_the_deletion(home: Path, trash: Path) -> None:
    ids = await asyncio.to_thread(written_by_another, home, 2)
    async with opened(home) as session:
        window, deleting = session.window, deleting_of(session)
        window.acts["delete"].trigger()
        assert not deleting.bar.isVisible(), "nothing was chosen"
        window.table.select_ids(ids[:1])
        window.acts["delete"].trigger()
        deleting.bar._close.click()
        await until(lambda: not (home / "tasks" / ids[0]).exists())
        assert [one.name for one in trash.iterdir()] == ids[:1]
        assert not deleting._over.isActive()
        assert not deleting.bar.isVisible()


async def test_shift_del_asks_before_it_deletes_for_good(home: Path, trash: Path) -> None:
    ids = await asyncio.to_thread(written_by_another, home, 2)
    async with opened(home) as session:
        window = session.window
        window.table.select_ids(ids[:1])
        window.activateWindow()
        window.filter_bar._box.setFocus()
        QTest.keyClick(window.filter_bar._box, Qt.Key.Key_Delete, Qt.KeyboardModifier.ShiftModifier)
        window.table.setFocus()
        with appearing(DeleteQuestion) as told:
            QTest.keyClick(window.table, Qt.Key.Key_Delete, Qt.KeyboardModifier.ShiftModifier)
            dialog = await told
        assert len(window.findChildren(DeleteQuestion)) == 1
        assert dialog.windowTitle() == "Delete 1 task permanently?"
        assert (home / "tasks" / ids[0]).exists()
        press(dialog, "Delete permanently")
        await until(lambda: window.model.view_of(ids[0]) is None)
        assert not (home / "tasks" / ids[0]).exists()
        assert (home / "tasks" / ids[1]).exists()
    assert not trash.exists()


async def test_undo_does_not_restore_tasks_deleted_elsewhere(home: Path) -> None:
    ids = await asyncio.to_thread(written_by_another, home, 2)
    async with opened(home) as session:
        window = session.window
        deleting = deleting_of(session)
        deleting._over.setInterval(FAR_MS)
        window.table.select_ids(ids)
        window.acts["delete"].trigger()
        shutil.rmtree(home / "tasks" / ids[0])
        await until(lambda: ids[0] not in deleting._leaving)  # the watch tells of it
        deleting.undo()
        assert window.model.view_of(ids[0]) is None
        assert window.model.view_of(ids[1]) is not None


async def test_deleting_a_vanished_task_is_no_failure(home: Path) -> None:
    ids = await asyncio.to_thread(written_by_another, home)
    async with opened(home) as session:
        window, deleting = session.window, deleting_of(session)
        view = window.model.view_of(ids[0])
        assert view is not None
        window.model.drop_many(ids)
        shutil.rmtree(home / "tasks" / ids[0])
        deleting._discard({ids[0]: view}, delete=False)
        await until(lambda: not window.findChildren(WorkBar))
        assert window.model.view_of(ids[0]) is None
        assert not window.reports.bar.isVisible()


async def test_what_could_not_even_be_begun_stays_in_the_list(home: Path) -> None:
    (home / "tasks").parent.mkdir(parents=True, exist_ok=True)
    (home / "tasks").write_text("no folder")
    async with opened(home, wait="unusable") as session:
        view = a_view(1)
        deleting_of(session)._discard({str(view.task_id): view}, delete=False)
        await until(lambda: session.window.model.view_of(view.task_id))


async def test_without_trash_deleting_asks(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(root: Path, one: str) -> None:
        raise NoTrash(task_id=one, reason="Permission denied")

    ids = await asyncio.to_thread(written_by_another, home)
    async with opened(home) as session:
        monkeypatch.setattr(pruning, "to_trash", refuse)
        session.window.table.select_ids(ids)
        session.window.acts["delete"].trigger()
        with appearing(DeleteQuestion) as told:
            deleting_of(session)._over.timeout.emit()
            dialog = await told
        assert (home / "tasks" / ids[0]).exists()
        assert "The trash does not take this: Permission denied." in words_of(dialog)
        press(dialog, "Keep")
        assert session.window.model.view_of(ids[0]) is not None


async def test_many_go_only_after_a_question(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        views = [a_view(number) for number in range(1, MANY + 2)]
        window.model.put_many(views)
        window.table.select_ids([view.task_id for view in views[1:]])
        window.acts["delete"].trigger()
        assert not window.findChildren(DeleteQuestion), "so few can be brought back"
        deleting_of(session).undo()
        window.table.select_ids([view.task_id for view in views])
        dialog = await dialog_by_act(window, "delete", DeleteQuestion)
        assert dialog.windowTitle() == f"Move {MANY + 1} tasks to the trash?"
        press(dialog, "Keep")
        assert window.model.total == len(views)


async def test_del_cancels_running_and_deletes_ended_tasks(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        window.model.put_many([a_view(1), a_view(2, "RUNNING", ours=True)])
        window.table.select_ids([task_id(1)])
        assert [key.toString() for key in window.acts["delete"].shortcuts()] == ["Del"]
        window.table.select_ids([task_id(1), task_id(2)])
        assert not window.acts["delete"].shortcut().toString()
        window.table.select_ids([task_id(2)])
        assert not window.acts["delete"].isEnabled()


async def test_links_to_what_is_chosen_are_copied_one_a_line(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        window.model.put_many([a_view(1), a_view(2)])
        window.table.select_ids([task_id(1), task_id(2)])
        window.acts["copy_link"].trigger()
        links = [f"openchrome-monitor://task/{task_id(number)}" for number in (1, 2)]
        assert sorted(QGuiApplication.clipboard().text().splitlines()) == links


def test_what_runs_and_what_tells_of_a_goal_is_never_let_go() -> None:
    assert can_go(a_view(1))
    assert can_go(TaskView(Unreadable(task_id(1), "torn", "/x")))
    assert not can_go(a_view(1, "RUNNING"))
    assert not can_go(a_view(1, kind="task_run"))
    assert not can_go(None)


async def test_the_engine_deletes_only_ended_tasks(home: Path, trash: Path) -> None:
    (one,) = await asyncio.to_thread(written_by_another, home)
    engine = Engine(Settings.at(home=home), accepts=True)
    await engine.open()
    folder = home / "tasks" / one
    living = Lease.acquire(home / "tasks")
    running = Ledger(home / "tasks", lease=living)
    made = running.create("crawl", {"url": "https://a.invalid/"}, engine=EngineFields())
    running.claim(made.task_id)
    with pytest.raises(TaskStays, match="has not ended"):
        await engine.commands.discard(made.task_id)
    running.finish(made.task_id, Status.COMPLETED)
    with pytest.raises(TaskStays, match="may still be writing"):
        await engine.commands.discard(made.task_id)
    (folder / "meta.json").write_text("{")
    await engine.commands.discard(one)  # only a person can say what an unreadable one is
    assert not folder.exists()
    assert (home / "tasks" / made.task_id).exists()
    living.release()
    await engine.close()
