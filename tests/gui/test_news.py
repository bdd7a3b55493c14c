"""Notifications: when and how, and the list in the window."""

from __future__ import annotations

import time as clock
from datetime import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from engine.model.records import TASK_RUN, TaskRecord, TaskView
from engine.model.status import NEEDS_HELP, Reason
from engine.service.feed import Batch
from engine.text import words
from gui.desktop.notifications import (
    BURST_MS,
    MOST_NAMED,
    Grouping,
    Happening,
    Kind,
    News,
    NewsList,
    Popup,
    Watch,
    is_quiet,
)
from gui.startup.session import Session
from tests.gui.task_views import MINUTE, NOW, a_view
from tests.gui.test_accessibility import dialog_by
from tests.gui.windows import heard, opened
from tests.support.engines import until
from tests.support.task_folders import task_id, write_meta

# none is started for nothing: these tests are over before it would run
NO_BROWSER = {"browser_path": "/nowhere/chromium"}


def now_is(view: TaskView, status: str, ended_at: float | None = NOW) -> TaskView:
    """The same task a moment later."""
    entry = msgspec.structs.replace(view.entry, status=status, ended_at=ended_at)
    return msgspec.structs.replace(view, entry=entry)


def kinds(news: list[Happening]) -> list[Kind]:
    return [one.kind for one in news]


def test_what_had_ended_before_the_window_came_is_no_news() -> None:
    watch = Watch(NOW)
    watch.learn([a_view(1, "FAILED", age=MINUTE), a_view(2, "COMPLETED", age=MINUTE)])
    assert watch.hear([a_view(1, "FAILED", age=MINUTE)], NOW) == []


def test_an_end_is_told_once_however_often_it_is_read() -> None:
    watch = Watch(NOW)
    watch.learn([a_view(1, "RUNNING", quiet=0)])
    failed = now_is(a_view(1, "RUNNING"), "FAILED")
    assert kinds(watch.hear([failed], NOW)) == [Kind.FAILED]
    assert watch.hear([failed], NOW) == []


def test_a_task_that_came_and_went_between_two_looks_is_told() -> None:
    watch = Watch(NOW)
    flash = now_is(a_view(1, "RUNNING", age=0), "COMPLETED", NOW + 5)
    assert kinds(watch.hear([flash], NOW + 10)) == [Kind.COMPLETED]
    old = now_is(a_view(2, "RUNNING", age=MINUTE), "COMPLETED", NOW - 5)
    assert watch.hear([old], NOW + 10) == []


async def test_orphans_of_a_killed_program_are_news(tmp_path: Path) -> None:
    root = tmp_path / "home" / "tasks"
    write_meta(root, 1, pid=2**22 + 1)  # no process has a number that high
    write_meta(root, 2, "FAILED", ended_at=NOW)
    async with opened(tmp_path / "home", **NO_BROWSER) as session:
        (news,) = session.window.findChildren(News)
        if not news.entries:
            await heard(news.changed)
        assert [entry.task_ids for entry in news.entries] == [(task_id(1),)]


def test_each_need_for_a_person_is_told_once() -> None:
    watch = Watch(NOW)
    running = a_view(1, "RUNNING", quiet=0)
    watch.learn([running])
    over = msgspec.structs.replace(
        running, entry=msgspec.structs.replace(running.entry, budget_status="exceeded")
    )
    assert kinds(watch.hear([over], NOW)) == [Kind.ATTENTION]
    assert watch.hear([over], NOW) == []
    assert kinds(watch.find_needs([over], NOW + 3600_000)) == [Kind.ATTENTION]  # it stalls
    assert watch.find_needs([over], NOW + 3600_000) == []


def test_a_goal_that_asks_for_help_a_second_time_is_told_again() -> None:
    watch = Watch(NOW)
    going = a_view(1, "RUNNING", kind=TASK_RUN, quiet=0)
    asking = now_is(going, NEEDS_HELP, None)
    watch.learn([going])
    assert kinds(watch.hear([asking], NOW)) == [Kind.ATTENTION]
    assert watch.hear([asking], NOW + 1000) == []
    watch.hear([going], NOW + 2000)
    assert kinds(watch.hear([asking], NOW + 3000)) == [Kind.ATTENTION]


def test_a_task_that_is_gone_is_watched_no_more() -> None:
    watch = Watch(NOW)
    watch.learn([a_view(1, "RUNNING")])
    watch.forget([a_view(1).task_id])
    assert watch.live == ()


def happened(at_ms: float, number: int = 1) -> Happening:
    return Happening(at_ms, Kind.FAILED, a_view(number, "FAILED"))


@given(st.lists(st.floats(0, 120_000), min_size=1, max_size=60))
def test_a_flood_makes_few_pop_ups_and_nothing_waits_for_long(moments: list[float]) -> None:
    grouping, told = Grouping(), []
    todo, at = sorted(moments), 0.0
    while todo or grouping.due_in(at) is not None:
        due = grouping.due_in(at)
        if due is not None and due <= 0:
            told += [(at, group) for group in grouping.take(at)]
            continue
        coming = [one for one in (todo[0] if todo else None, due and at + due) if one is not None]
        at = min(coming)
        while todo and todo[0] <= at:
            grouping.add([happened(todo.pop(0))])
    assert sum(len(group) for _, group in told) == len(moments)
    assert all(at - one.at_ms <= BURST_MS for at, group in told for one in group)
    starts = [at for at, _ in told]
    assert all(sum(at <= one < at + BURST_MS for one in starts) <= 2 for at in starts)


@pytest.mark.parametrize(
    ("now", "start", "end", "quiet"),
    [
        ("23:30", "22:00", "07:00", True),
        ("06:59", "22:00", "07:00", True),
        ("07:00", "22:00", "07:00", False),
        ("12:00", "09:00", "17:00", True),
        ("12:00", "", "", False),
        ("12:00", "nonsense", "07:00", False),
        ("23:30", "22:00", "7:30", True),
        ("08:30", "8:00", "9:00", True),
        ("12:00", "25:00", "1:00", False),
    ],
)
def test_quiet_hours_may_lie_around_midnight(now: str, start: str, end: str, quiet: bool) -> None:
    assert is_quiet(time.fromisoformat(now), start, end) is quiet


def batch(*views: TaskView) -> Batch:
    return Batch(views=views, gone=(), loaded=len(views), total=len(views), complete=True)


def news_of(session: Session) -> News:
    found = session.window.findChild(News)
    assert found is not None
    return found


def running_then(session: Session, status: str, numbers: range, **more: object) -> list[TaskView]:
    """Tell the window of running tasks, then of their end."""
    now = clock.time() * 1000
    views = [
        msgspec.structs.replace(a_view(number, "RUNNING", **more), last_event_at=now)
        for number in numbers
    ]
    session.bridge.batch.emit(batch(*views))
    ended = [now_is(view, status, now) for view in views]
    session.bridge.batch.emit(batch(*ended))
    return ended


async def test_three_ends_at_once_are_one_notice_that_leads_to_all_of_them(home: Path) -> None:
    async with opened(home, **NO_BROWSER) as session:
        session.window.hide()
        news = news_of(session)
        told = heard(news.told)
        running_then(session, "FAILED", range(1, 3))
        ended = running_then(session, "COMPLETED", range(3, 5))
        (popup,) = await told
        assert popup.title == "2 tasks failed"  # what completed is only listed
        (entry,) = news.entries
        assert entry.title == "4 tasks finished, 2 failed"
        session.window.show()
        news.show_tasks(entry)
        assert set(session.window.table.selected_ids()) >= {view.task_id for view in ended}


async def test_of_many_that_failed_a_few_are_named(home: Path) -> None:
    async with opened(home, **NO_BROWSER) as session:
        session.window.hide()
        told = heard(news_of(session).told)
        running_then(session, "FAILED", range(1, MOST_NAMED + 3))
        (popup,) = await told
        named = popup.body.splitlines()
        assert len(set(named)) == len(named) == MOST_NAMED + 1
        assert named[-1] == "…"


async def test_what_completed_is_listed_and_rings_no_bell_outside(home: Path) -> None:
    async with opened(home, **NO_BROWSER) as session:
        session.window.hide()
        news, pops = news_of(session), list[Popup]()
        news.told.connect(pops.append)
        changed_ = heard(news.changed)
        running_then(session, "COMPLETED", range(1, 2))
        await changed_
        assert [entry.title for entry in news.entries] == ["A task is completed"]
        assert news.unread == 0  # the bell counts what needs a person
        assert pops == []


async def test_completed_tasks_are_one_line_with_their_number(home: Path) -> None:
    async with opened(home, **NO_BROWSER) as session:
        session.window.hide()
        news = news_of(session)
        for first, number in ((1, 1), (2, 2), (4, 5)):
            changed_ = heard(news.changed)
            news._grouping._open_at = 0.0  # as after ten quiet seconds
            running_then(session, "COMPLETED", range(first, first + number))
            await changed_
        (entry,) = news.entries
        assert entry.title == "8 tasks finished"
        assert len(entry.task_ids) == 8
        changed_ = heard(news.changed)
        news._grouping._open_at = 0.0
        running_then(session, "FAILED", range(20, 21))
        await changed_
        assert [one.title for one in news.entries] == ["A task failed", "8 tasks finished"]
        assert news.unread == 1


async def test_a_task_that_needs_a_person_says_what_for_and_may_ring(home: Path) -> None:
    async with opened(home, **NO_BROWSER) as session:
        session.window.hide()
        session.window.desk.preferences.set("notify.sound", True)
        told = heard(news_of(session).told)
        running_ = a_view(1, "RUNNING", quiet=0)
        session.bridge.batch.emit(batch(running_))
        over = msgspec.structs.replace(running_.entry, budget_status="exceeded")
        session.bridge.batch.emit(batch(msgspec.structs.replace(running_, entry=over)))
        (popup,) = await told
        assert popup.title == words.attention(Reason.BUDGET)
        assert (popup.urgent, popup.sound) == (True, True)


async def test_who_looks_at_the_window_is_not_interrupted(home: Path) -> None:
    async with opened(home, **NO_BROWSER) as session:
        session.window.activateWindow()
        news, pops = news_of(session), list[Popup]()
        news.told.connect(pops.append)
        changed_ = heard(news.changed)
        running_then(session, "FAILED", range(1, 2))
        await changed_
        assert news.unread == 1
        assert pops == []


async def test_who_answers_a_dialog_of_the_window_is_not_interrupted(home: Path) -> None:
    async with opened(home, **NO_BROWSER) as session:
        dialog = await dialog_by(session, "new")
        dialog.activateWindow()
        await until(lambda: QApplication.activeWindow() is dialog)
        news, pops = news_of(session), list[Popup]()
        news.told.connect(pops.append)
        changed_ = heard(news.changed)
        running_then(session, "FAILED", range(1, 2))
        await changed_
        assert pops == []


async def test_the_news_list_opens_tasks_by_keyboard(home: Path, qapp: QApplication) -> None:
    async with opened(home, **NO_BROWSER) as session:
        news = news_of(session)
        changed_ = heard(news.changed)
        (view,) = running_then(session, "FAILED", range(7, 8), name="<b>x</b> & y")
        await changed_
        session.window.acts["news"].trigger()
        listed = session.window.findChild(NewsList)
        assert listed is not None
        assert "<b>x</b> & y" in listed.list.item(0).text()
        assert news.unread == 0
        QTest.keyClick(listed.list, Qt.Key.Key_Return)
        assert session.window.table.selected_ids() == [view.task_id]


def test_a_record_of_any_shape_is_watched_without_a_word() -> None:
    odd = TaskView(TaskRecord(task_id="x" * 16, status="WHATEVER"))
    assert Watch(NOW).hear([odd], NOW) == []
