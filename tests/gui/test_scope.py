"""The scope of an action: selected ids or all matches, and its texts."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from engine.model.status import Standing
from engine.query import Filter
from engine.service.feed import Batch
from gui.commands.attention import Acknowledged
from gui.context.scope import Counts, Scope
from gui.startup.session import Session
from gui.tasks.task_model import TaskModel
from gui.window.main_window import MainWindow
from tests.gui.task_views import HOUR, NOW, a_view, task_id
from tests.gui.windows import heard, opened, patient, until

CONTROL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def model(qapp: QApplication) -> TaskModel:
    model = TaskModel(now_ms=lambda: NOW)
    model.put_many([a_view(n, "FAILED" if n % 3 == 0 else "RUNNING") for n in range(1, 10)])
    return model


def test_chosen_tasks_stay_chosen_whatever_comes(model: TaskModel) -> None:
    scope = Scope(model)
    scope.choose([task_id(1), task_id(3)])
    model.put_many([a_view(20, age=1), a_view(1, "CANCELLED")])
    assert scope.ids() == [task_id(1), task_id(3)]
    # Never unreadable here.
    assert [view.entry.status for view in scope.views()] == ["CANCELLED", "FAILED"]  # type: ignore[union-attr]
    assert scope.describes() == "2 selected tasks"


def test_what_matches_is_looked_up_when_it_is_used(model: TaskModel) -> None:
    scope = Scope(model)
    model.set_filter(Filter.of("status:failed"))
    scope.choose_matching()
    assert len(scope) == 3
    arrived = a_view(30, "FAILED", age=1)
    model.put_many([arrived, a_view(31, "RUNNING", age=1)])
    assert scope.ids() == [task_id(n) for n in (30, 3, 6, 9)]
    assert scope.describes() == "All 4 tasks that match the filter"


def test_what_is_gone_is_left_out(model: TaskModel) -> None:
    scope = Scope(model)
    scope.choose([task_id(1), task_id(2)])
    model.drop_many([task_id(1)])
    assert [view.task_id for view in scope.views()] == [task_id(2)]


def test_the_counts_say_states_and_what_could_be_done(model: TaskModel) -> None:
    scope = Scope(model)
    scope.choose([task_id(n) for n in (1, 2, 3)])
    states = {Standing.RUNNING: 2, Standing.FAILED: 1}
    assert scope.counts == Counts(total=3, cancellable=2, ended=1, states=states)
    news = a_view(1, "COMPLETED")
    model.put_many([news])
    scope.hear(Batch(views=(news,)))
    assert (scope.counts.cancellable, scope.counts.ended) == (1, 2)


def test_a_great_many_are_counted_in_slices_to_the_same_end(model: TaskModel, qtbot: QtBot) -> None:
    model.put_many([a_view(n, age=n * 10) for n in range(100, 3100)])
    scope = Scope(model)
    scope.choose_matching()
    assert scope.counts.total == 3009
    qtbot.waitUntil(lambda: scope.counts.complete, timeout=60_000)
    assert scope.counts.states[Standing.COMPLETED] == 3000
    assert scope.counts.cancellable == 6


@pytest.mark.usefixtures("qapp")
def test_what_was_acknowledged_is_found_again_and_rubbish_is_nothing(tmp_path: Path) -> None:
    file = tmp_path / "seen" / "acknowledged.json"
    kept = Acknowledged(file)
    kept.add("aa", ["failed:1"])
    kept.add("bb", ["stalled:2"])
    kept.save()
    kept.drop("bb")
    kept.save()  # to have it back asks to be kept, too
    assert Acknowledged(file).marks == {"aa": frozenset({"failed:1"})}
    assert file.stat().st_mode & 0o077 == 0 or os.name == "nt"
    for rubbish in (
        "",
        "[]",
        '{"tasks": 3}',
        '{"tasks": {"a": 4, "b": [true], "c": []}}',
        "[" * 9999,
    ):
        file.write_text(rubbish)
        assert Acknowledged(file).marks == {}


def test_what_was_seen_a_month_ago_is_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "acknowledged.json"
    long_ago = time.time() - 31 * 86_400
    file.write_text(json.dumps({"tasks": {"aa": [long_ago, "failed:1"], "bb": [time.time(), "x"]}}))
    assert list(Acknowledged(file).marks) == ["bb"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Nine tasks that ended a while ago, three of them badly."""
    now_ms = time.time() * 1000
    for number in range(1, 10):
        folder = tmp_path / "home" / "tasks" / task_id(number)
        folder.mkdir(parents=True)
        status = "FAILED" if number % 3 == 0 else "COMPLETED"
        (folder / "meta.json").write_text(json.dumps(record(number, status, now_ms)))
    return tmp_path / "home"


def record(number: int, status: str, now_ms: float) -> dict[str, Any]:
    made = round(now_ms - number * HOUR)
    times = {"created_at": made, "started_at": made, "ended_at": made + 1000}
    about = {"kind": "crawl", "args_summary": {"url": f"https://host{number}.example/"}}
    return {"task_id": task_id(number), "status": status, **times, **about}


def press(session: Session, key: Qt.Key, modifier: Qt.KeyboardModifier | None = None) -> None:
    table = session.window.table
    table.setFocus()
    QTest.keyClick(table, key, modifier or Qt.KeyboardModifier.NoModifier)


async def test_a_marks_what_is_chosen_as_seen_and_the_next_window_knows(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        assert window.model.counts()["attention"] == 3
        press(session, Qt.Key.Key_A, CONTROL)
        press(session, Qt.Key.Key_A)
        assert window.model.counts()["attention"] == 0
        # Never None here.
        assert window.model.row_by_id(task_id(3)).quiet  # type: ignore[union-attr]
        assert not window.acts["next_attention"].isEnabled()
        window.close()  # asks for an end, and keeps what is to be kept
    async with opened(home) as session:
        assert session.window.model.counts()["attention"] == 0
        press(session, Qt.Key.Key_A, CONTROL)
        assert session.window.acts["acknowledge"].text() == "Not ac&knowledged"
        press(session, Qt.Key.Key_A)
        assert session.window.model.counts()["attention"] == 3


async def test_n_goes_to_what_needs_a_person_and_round_the_end(home: Path) -> None:
    async with opened(home) as session:
        found = []
        for _ in range(4):
            press(session, Qt.Key.Key_N)
            found.append(session.window.table.current_id())
        assert found == [task_id(n) for n in (3, 6, 9, 3)]
        session.window.acts["last_attention"].trigger()
        assert session.window.table.current_id() == task_id(9)


def bar_of(window: MainWindow) -> Any:
    from gui.commands.bulk_work import BulkBar

    return window.findChild(BulkBar)


async def test_the_bulk_bar_appears_with_the_second_task(home: Path) -> None:
    async with opened(home) as session:
        window, bar = session.window, bar_of(session.window)
        window.table.select_ids([task_id(1)])
        assert bar.isHidden()
        window.table.select_ids([task_id(1), task_id(3)])
        assert bar.isVisible()
        assert bar.buttons["rerun"].text() == "Re-run…"  # another program made them
        assert bar.buttons["cancel"].text() == "Cancel 0"
        assert not bar.buttons["cancel"].isEnabled()
        bar.buttons["acknowledge"].click()
        assert window.model.counts()["attention"] == 2


async def test_the_bulk_bar_offers_to_resume_where_a_task_was_stopped(home: Path) -> None:
    async with opened(home) as session:
        window, bar = session.window, bar_of(session.window)
        model = window.model
        of = {row.task_id: row.standing for row in model.all_rows()}
        completed = [one for one, standing in of.items() if standing == "completed"]
        failed = next(one for one, standing in of.items() if standing == "failed")
        window.table.select_ids(completed[:2])
        assert bar.buttons["resume_crawl"].isHidden()
        window.table.select_ids([*completed[:2], failed])
        assert bar.buttons["resume_crawl"].isVisible()
        assert bar.buttons["resume_crawl"].text() == "Resume…"


async def test_all_that_match_are_chosen_as_the_filter_they_passed(home: Path) -> None:
    async with opened(home) as session:
        window, bar = session.window, bar_of(session.window)
        window.filter_bar.set_text("status:completed")
        window.table.select_ids([task_id(1), task_id(2)])
        assert bar.all.text() == "Select all 6 that match"
        bar.all.click()
        assert window.scope.matching
        assert len(window.selected) == len(window.table.selected_ids()) == 6
        folder = home / "tasks" / task_id(40)
        folder.mkdir()
        meta = record(1, "COMPLETED", time.time() * 1000) | {"task_id": task_id(40)}
        (folder / "meta.json").write_text(json.dumps(meta))
        await until(lambda: len(window.scope) == 7, window.model.shown_changed)
        window.filter_bar.set_text("status:failed")  # what was meant is no longer in sight
        assert (bool(window.scope.matching), window.selected) == (False, [])


async def test_one_row_can_be_taken_out_of_all(home: Path) -> None:
    async with opened(home) as session:
        table = session.window.table
        press(session, Qt.Key.Key_A, CONTROL)
        at = table.visualRect(table.tasks.index(1, 2)).center()
        QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, CONTROL, at)
        assert task_id(2) not in table.selected_ids()
        assert len(session.window.selected) == 8
        press(session, Qt.Key.Key_A, CONTROL)
        QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
        assert table.selected_ids() == [task_id(2)]


async def test_the_details_of_several_say_how_many_of_each_state_and_pick_one(home: Path) -> None:
    from gui.details.panel import Several

    async with opened(home) as session:
        window = session.window
        press(session, Qt.Key.Key_A, CONTROL)
        page: Any = window.findChild(Several)
        assert page.isVisible()
        page._lines[Standing.FAILED].only.click()
        assert set(window.table.selected_ids()) == {task_id(n) for n in (3, 6, 9)}
        window.table.select_ids([task_id(1)])
        assert not page.isVisible()
        assert window.details.task_id == task_id(1)


async def test_the_order_is_chosen_by_keyboard_key_after_key(home: Path) -> None:
    async with opened(home) as session:
        window = session.window
        window.acts["sort_menu"].trigger()
        menu = window.acts.menus["sort"]
        assert menu.isVisible()
        {action.text(): action for action in menu.actions()}["Status"].trigger()
        menu.close()
        window.acts["sort_menu"].trigger()
        then: Any = next(action.menu() for action in menu.actions() if action.menu() is not None)
        {action.text(): action for action in then.actions()}["Age"].trigger()
        menu.close()
        assert window.model.sort_keys == (("status", False), ("age", False))


async def test_copied_times_of_today_have_their_date(home: Path) -> None:
    async with opened(home) as session:
        window, now_ms = session.window, time.time() * 1000
        window.model.put_many([a_view(77, age=NOW - now_ms)])
        window.table.select_ids([task_id(77)])
        window.acts["copy_rows"].trigger()
        titles, row = (one.split("\t") for one in QApplication.clipboard().text().split("\n"))
        today = time.strftime("%Y-%m-%d ", time.localtime(now_ms / 1000))
        assert row[titles.index("Started")].startswith(today)


async def test_many_rows_are_copied_while_the_window_goes_on(home: Path) -> None:
    async with opened(home) as session:
        patient(session)
        window = session.window
        window.model.put_many([a_view(n, name=f"name {n}") for n in range(100, 1100)])
        press(session, Qt.Key.Key_A, CONTROL)
        copied = heard(window.copying.copied)
        window.acts["copy_rows"].trigger()
        assert (await copied) == (1009,)
        lines = QApplication.clipboard().text().split("\n")
        assert len(lines) == 1010
        assert window.reports.bar.title == "1,009 rows copied."
