"""Schedules in the window: add, list, edit, pause, run, delete, and what a run found."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt, QTime
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from engine.model.records import (
    EngineFields,
    RunChanges,
    ScheduleLink,
    Status,
    TaskRecord,
    TaskView,
)
from engine.profiles.profile import Profile
from engine.profiles.profile_store import ProfileStore
from engine.schedules.rules import Rule
from engine.schedules.schedule import Schedule, StoredRequest
from engine.service.rerun import Asked
from engine.text.words import clock
from gui.commands.schedules_dialog import SchedulesDialog
from gui.desktop.launch_request import Wish
from gui.desktop.notifications import Kind, Watch
from gui.start.repeat_dialog import CRON, DAILY, RepeatDialog, Repetition
from gui.start.start_dialog import StartDialog
from gui.startup.session import Session
from gui.style.questions import Question
from gui.tasks.columns import COLUMN_AT, COLUMNS
from tests.gui.live_tasks import ended
from tests.gui.task_views import a_view
from tests.gui.windows import appearing, dialog_by_act, dialog_of, heard, opened, press, until
from tests.schedules.changing_site import ChangingSite
from tests.support.times_of_day import far_time

FAST = {"engine": "static", "delay_ms": 0, "respect_robots": False}


@pytest.fixture
def shop() -> Iterator[ChangingSite]:
    with ChangingSite() as found:
        yield found


async def ended_run(session: Session, number: int) -> list[TaskRecord]:
    """The runs of schedules, oldest first, once `number` of them have ended."""

    def runs() -> list[TaskRecord]:
        views = [session.window.model.view_of(one) for one in session.window.model.ids]
        records = [view.entry for view in views if view and isinstance(view.entry, TaskRecord)]
        return [one for one in records if one.engine and one.engine.schedule]

    await until(
        lambda: len([one for one in runs() if one.is_terminal]) == number, session.bridge.batch
    )
    return sorted(runs(), key=lambda one: one.created_at)


def text_of(dialog: SchedulesDialog, column: int) -> str:
    item = dialog.list.topLevelItem(0)
    assert item is not None
    return item.text(column)


async def filled(dialog: SchedulesDialog, number: int) -> None:
    while dialog.list.topLevelItemCount() != number:
        dialog.read()
        await asyncio.sleep(0.02)


async def test_a_task_is_repeated_from_its_menu_and_its_changes_are_shown(
    home: Path, shop: ChangingSite
) -> None:
    async with opened(home) as session:
        window = session.window
        told = heard(session.bridge.started)
        session.bridge.start("crawl", {"url": shop.url, **FAST})
        (first,) = await told
        assert await ended(session, first.task_id) == "COMPLETED"  # and its row is there
        window.table.select_ids([first.task_id])
        await until(lambda: window.acts["repeat"].isEnabled(), session.bridge.batch)
        form = await dialog_by_act(window, "repeat", RepeatDialog)
        form.name.setText("Shop")
        form.way.setCurrentIndex(DAILY)
        assert form.at.text() == "07:30"
        daily = far_time(form.zone.currentText())
        form.at.setTime(QTime.fromString(daily, "HH:mm"))
        press(form, "Add")
        dialog = await dialog_by_act(window, "schedules", SchedulesDialog)
        await filled(dialog, 1)
        assert text_of(dialog, 0) == "Shop"
        assert f"daily at {daily}" in text_of(dialog, 1)
        shop.pages["/a"] = "<p>Another word</p>"
        press(dialog, "&Run now")
        (run,) = await ended_run(session, 1)
        assert run.engine is not None
        assert run.engine.parent_task_id == first.task_id
        assert run.engine.schedule is not None
        assert run.engine.schedule.changes is not None
        assert run.engine.schedule.changes.changed == 1
        while text_of(dialog, 4) != "+0 −0 ~1":
            dialog.read()
            await asyncio.sleep(0.02)
        press(dialog, "&Show its runs")
        await until(lambda: window.model.rowCount() == 1, session.bridge.batch)
        cell = window.model.index(0, COLUMN_AT["changes"])
        assert cell.data() == "+0 −0 ~1"


async def test_the_start_dialog_stores_a_schedule_and_starts_nothing(
    home: Path, shop: ChangingSite
) -> None:
    async with opened(home) as session:
        session.window.acts["new"].trigger()
        dialog = dialog_of(session)
        assert isinstance(dialog, StartDialog)
        dialog.form["url"].value = shop.url
        with appearing(RepeatDialog) as found:
            press(dialog, "Repeat…")
            form = await found
        form.way.setCurrentIndex(CRON)
        form.line.setText("0 9 * *")
        assert not form.save.isEnabled()
        assert "five fields" in form.preview.text()
        form.line.setText("0 9 * * 1")
        closed = heard(dialog.finished)
        press(form, "Add")
        await closed
        (view,) = await session.bridge.engine.schedules.all()
        assert view.schedule.rule.cron == "0 9 * * 1"  # type: ignore[union-attr]
        assert view.schedule.notify  # type: ignore[union-attr]
        assert session.window.model.rowCount() == 0


async def test_a_schedule_is_edited_paused_and_deleted_by_keys(home: Path) -> None:
    async with opened(home) as session:
        asked = {"url": "https://example.com/"}
        schedules = session.bridge.engine.schedules
        added = await schedules.add(Asked("crawl", asked, "News"), {"every_minutes": 360})
        schedule_id = added.schedule.schedule_id
        dialog = await dialog_by_act(session.window, "schedules", SchedulesDialog)
        await filled(dialog, 1)
        with appearing(RepeatDialog) as found:
            QTest.keyClick(dialog.list, Qt.Key.Key_Return)
            form = await found
        assert (form.number.value(), form.unit.currentText()) == (6, "hours")
        form.number.setValue(2)
        form.missed.setCurrentIndex(1)
        press(form, "Save")
        while (await schedules.get(schedule_id)).schedule.rule.every_minutes != 120:
            await asyncio.sleep(0.01)
        press(dialog, "&Pause")
        while dialog.pause.text() != "Resu&me":
            await asyncio.sleep(0.01)
        assert text_of(dialog, 2) == "paused"
        with appearing(Question) as asking:
            press(dialog, "&Delete…")
            question = await asking
        press(question, "Delete")
        await filled(dialog, 0)
        assert dialog.empty.isVisible()
        dialog.close()


async def test_the_request_of_a_schedule_is_edited_in_the_form_of_a_start(home: Path) -> None:
    async with opened(home) as session:
        schedules = session.bridge.engine.schedules
        asked = Asked("crawl", {"url": "https://example.com/", "max_pages": 5}, "News")
        added = await schedules.add(asked, {"every_minutes": 360})
        schedule_id = added.schedule.schedule_id
        dialog = await dialog_by_act(session.window, "schedules", SchedulesDialog)
        await filled(dialog, 1)
        with appearing(StartDialog) as found:
            press(dialog, "Edit re&quest…")
            form = await found
        assert (form.start.text(), form.footer.another.isVisible()) == ("Save", False)
        form.show_request(Asked("crawl_sitemap", {"url": "https://example.com/"}))
        assert not form.addresses.switch.isVisible()
        press(form, "Save")
        while not form.banner.isVisible():
            await asyncio.sleep(0.01)
        asked = Asked("crawl", {"url": "https://example.com/shop", "max_pages": 9}, "Shop")
        form.show_request(asked)
        with appearing(SchedulesDialog) as again:
            press(form, "Save")
            await filled(await again, 1)
        changed = (await schedules.get(schedule_id)).schedule
        assert asked.args.items() <= changed.request.document["args"].items()
        assert (changed.name, changed.rule) == ("Shop", added.schedule.rule)
        assert not session.window.model.ids  # nothing was started


async def edited_request(session: Session, asked: Asked) -> tuple[str, StartDialog]:
    """The id of a new schedule, and the form with its request."""
    added = await session.bridge.engine.schedules.add(asked, {"every_minutes": 360})
    dialog = await dialog_by_act(session.window, "schedules", SchedulesDialog)
    await filled(dialog, 1)
    with appearing(StartDialog) as found:
        press(dialog, "Edit re&quest…")
        form = await found
    return added.schedule.schedule_id, form


@pytest.mark.parametrize("is_refused", [False, True])
async def test_a_form_that_is_closed_while_its_request_is_saved_breaks_nothing(
    home: Path, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(home) as session:
        schedules, may_save = session.bridge.engine.schedules, asyncio.Event()
        change, broken, failed = schedules.change, list[object](), list[object]()
        session.bridge.broken.connect(broken.append)
        session.window.requests.failed.connect(failed.append)
        schedule_id, form = await edited_request(
            session, Asked("crawl", {"url": "https://a.test/"})
        )

        async def saved_late(*given: Any, **more: Any) -> Any:
            await may_save.wait()
            try:
                if is_refused:
                    await schedules.remove(schedule_id)
                return await change(*given, **more)
            finally:
                asyncio.get_running_loop().call_later(0.1, ended_work.set)

        ended_work = asyncio.Event()
        monkeypatch.setattr(schedules, "change", saved_late)
        press(form, "Save")
        await asyncio.sleep(0)
        closed = heard(form.finished)
        QTest.keyClick(form, Qt.Key.Key_Escape)
        await closed
        while isValid(form):
            await asyncio.sleep(0.01)
        may_save.set()
        await ended_work.wait()
        assert (broken, len(failed)) == ([], int(is_refused))


async def test_a_request_with_a_referenced_password_is_saved_with_the_reference(
    home: Path,
) -> None:
    async with opened(home) as session:
        password = {"secret": "env:A_VARIABLE_THAT_ONLY_THE_RUN_HAS"}
        args = {"url": "https://a.test/", "username": "ann", "password": password}
        schedule_id, form = await edited_request(session, Asked("crawl", args))
        assert "Save" in form.start.toolTip()
        form.form["max_pages"].value = 7
        with appearing(SchedulesDialog) as again:
            press(form, "Save")
            await again
        changed = (await session.bridge.engine.schedules.get(schedule_id)).schedule
        assert {**args, "max_pages": 7}.items() <= changed.request.document["args"].items()


async def test_an_address_from_outside_waits_for_the_end_of_an_edited_request(home: Path) -> None:
    async with opened(home) as session:
        _, form = await edited_request(session, Asked("crawl", {"url": "https://a.test/"}))
        before = form.tabs.asked
        session.window.arrivals.take(Wish(urls=("https://outside.test/",)))
        assert form.tabs.asked == before
        with appearing(StartDialog) as found:
            QTest.keyClick(form, Qt.Key.Key_Escape)
            other = await asyncio.wait_for(found, 5)
        assert (other.start.text(), other.form["url"].value) == ("Start", "https://outside.test/")


async def test_a_request_that_captures_nothing_is_saved_after_a_question(home: Path) -> None:
    async with opened(home) as session:
        _, form = await edited_request(session, Asked("oc_session_snapshot", {"objective": "a"}))
        with appearing(Question) as asking:
            press(form, "Save")
            question = await asyncio.wait_for(asking, 5)
        with appearing(SchedulesDialog) as again:
            press(question, "Save anyway")
            await asyncio.wait_for(again, 5)


async def test_what_takes_the_place_of_an_edited_request_is_told_to_be_the_schedules(
    home: Path,
) -> None:
    async with opened(home) as session:
        _, form = await edited_request(session, Asked("crawl", {"url": "https://a.test/"}, "Shop"))
        form.show_request(Asked("crawl", {"url": "https://b.test/"}), "From a file.")
        shown = [one.text() for one in form.findChildren(QLabel) if one.isVisible()]
        assert "Changes to “Shop” count from its next run.\nFrom a file." in shown


async def test_a_request_that_no_form_can_show_is_told(home: Path) -> None:
    async with opened(home) as session:
        added = await session.bridge.engine.schedules.add(
            Asked("crawl", {"url": "https://a.test/"}), {"every_minutes": 360}
        )
        path = home / "tasks" / ".schedules" / f"{added.schedule.schedule_id}.json"
        path.write_text(path.read_text().replace('"crawl"', '"of_a_newer_program"'))
        dialog = await dialog_by_act(session.window, "schedules", SchedulesDialog)
        await filled(dialog, 1)
        told = heard(session.window.requests.failed)
        press(dialog, "Edit re&quest…")
        (error,) = await asyncio.wait_for(told, 5)
        assert "kind" in str(error)


async def test_an_open_window_starts_what_is_due(home: Path, shop: ChangingSite) -> None:
    from tests.schedules.test_schedules_command import set_back

    async with opened(home) as session:
        schedules = session.bridge.engine.schedules
        asked = Asked("crawl", {"url": shop.url, **FAST}, "Due")
        added = await schedules.add(asked, {"every_minutes": 60})
        await asyncio.to_thread(set_back, home, added.schedule.schedule_id)
        await schedules.change(added.schedule.schedule_id, name="Now")  # wakes the engine
        (run,) = await ended_run(session, 1)
        assert run.status == Status.COMPLETED
        assert run.engine is not None
        assert run.engine.schedule is not None
        assert run.engine.schedule.due_at is not None


async def test_a_due_run_that_cannot_start_is_told_in_the_window_and_in_its_row(
    home: Path, shop: ChangingSite
) -> None:
    from tests.schedules.test_schedules_command import set_back

    cookie = {"name": "sid", "value": "x1", "domain": "127.0.0.1", "path": "/", "expires": -1}
    state: dict[str, Any] = {"cookies": [cookie], "origins": []}
    hosts = ("127.0.0.1",)
    made = Profile(name="shop", url=shop.url, sites=hosts, created_at=1, signed_in_at=1)
    ProfileStore(home).save(made, state)
    async with opened(home) as session:
        schedules, window = session.bridge.engine.schedules, session.window
        asked = Asked("crawl", {"url": shop.url, "profile": "shop", **FAST}, "Due")
        added = await schedules.add(asked, {"every_minutes": 60})
        schedule_id = added.schedule.schedule_id
        assert not window.banner.title
        ProfileStore(home).remove("shop")
        await asyncio.to_thread(set_back, home, schedule_id)
        await schedules.change(schedule_id, name="Shop")  # wakes the engine
        await until(lambda: "scheduled run" in window.banner.title, session.bridge.health)
        assert "Shop" in window.banner.accessibleName()
        with appearing(SchedulesDialog) as found:
            press(window.banner, "Schedules…")
            dialog = await found
        await filled(dialog, 1)
        assert text_of(dialog, 3).startswith("cannot start, ")
        await schedules.pause(schedule_id)
        await until(window.banner.isHidden, session.bridge.health)


async def test_a_schedule_that_is_deleted_is_not_told_of_any_more(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.service import schedules as looking
    from tests.schedules.test_schedules_command import set_back

    cookie = {"name": "sid", "value": "x1", "domain": "127.0.0.1", "path": "/", "expires": -1}
    url, hosts = "http://127.0.0.1:1/", ("127.0.0.1",)
    made = Profile(name="shop", url=url, sites=hosts, created_at=1, signed_in_at=1)
    ProfileStore(home).save(made, {"cookies": [cookie], "origins": []})
    monkeypatch.setattr(looking, "LOOK_S", 3_600.0)  # only a change wakes it
    async with opened(home) as session:
        schedules, window = session.bridge.engine.schedules, session.window
        asked = Asked("crawl", {"url": url, "profile": "shop"}, "Due")
        added = await schedules.add(asked, {"every_minutes": 60})
        schedule_id = added.schedule.schedule_id
        ProfileStore(home).remove("shop")
        await asyncio.to_thread(set_back, home, schedule_id)
        await schedules.change(schedule_id, name="Shop")
        await until(lambda: "scheduled run" in window.banner.title, session.bridge.health)
        await schedules.remove(schedule_id)
        async with asyncio.timeout(30):
            await until(window.banner.isHidden, session.bridge.health)


async def test_nothing_of_a_schedule_can_be_changed_in_a_read_only_ledger(home: Path) -> None:
    async with opened(home) as session:
        asked = Asked("crawl", {"url": "http://127.0.0.1:1/"}, "Due")
        await session.bridge.engine.schedules.add(asked, {"every_minutes": 60})
        dialog = await dialog_by_act(session.window, "schedules", SchedulesDialog)
        await filled(dialog, 1)
        changing = (dialog.run, dialog.pause, dialog.edit, dialog.request, dialog.delete)
        assert all(one.isEnabled() and not one.toolTip() for one in changing)
        health = session.bridge.look_at_health()
        session.bridge.health.emit(replace(health, read_only="the disk is full"))
        assert not any(one.isEnabled() for one in changing)
        assert all("the disk is full" in one.toolTip() for one in changing)
        assert dialog.runs.isEnabled()
        dialog.list.itemActivated.emit(dialog.list.currentItem(), 0)  # by Enter, or a double click
        assert not dialog.findChildren(RepeatDialog)
        session.bridge.health.emit(health)
        assert all(one.isEnabled() for one in changing)
        dialog.close()


async def test_several_runs_that_cannot_start_are_told_by_their_number(home: Path) -> None:
    async with opened(home) as session:
        health, banner = session.bridge.look_at_health(), session.window.banner
        session.window.trouble.show_health(replace(health, stuck_schedules=("Shop", "Bank")))
        assert banner.title == "2 scheduled runs cannot start"
        session.window.trouble.show_health(replace(health, stuck_schedules=("Shop",)))
        assert banner.title == "A scheduled run cannot start"


async def told_by(dialog: SchedulesDialog, words: str) -> None:
    async with asyncio.timeout(60):
        while words not in dialog.empty.text():
            dialog.read()
            await asyncio.sleep(0.02)


async def test_the_list_of_schedules_whose_folder_is_away_promises_nothing(home: Path) -> None:
    async with opened(home) as session:
        root = Path(session.bridge.look_at_health().root)
        dialog = await dialog_by_act(session.window, "schedules", SchedulesDialog)
        await told_by(dialog, "Nothing repeats yet")
        root.rename(root.with_name("elsewhere"))
        await told_by(dialog, "is away")
        root.with_name("elsewhere").rename(root)
        await told_by(dialog, "Nothing repeats yet")


def changed(total: int, *, notify: bool) -> TaskView:
    changes = RunChanges("1" * 16, changed=total)
    fields = EngineFields(schedule=ScheduleLink("0" * 16, notify=notify, changes=changes))
    view = a_view(7, "COMPLETED")
    return replace(view, entry=replace(view.entry, engine=fields, ended_at=2_000))


@pytest.mark.parametrize(
    ("total", "notify", "kind"),
    [(3, True, Kind.CHANGED), (0, True, Kind.COMPLETED), (3, False, Kind.COMPLETED)],
)
def test_only_a_run_with_changes_whose_schedule_asks_for_it_is_news(
    total: int, notify: bool, kind: Kind
) -> None:
    watch = Watch(since_ms=1_000)
    (happening,) = watch.hear([changed(total, notify=notify)], 3_000)
    assert happening.kind is kind


def test_the_column_says_no_changes_and_stays_empty_without_a_comparison() -> None:
    column = COLUMNS[COLUMN_AT["changes"]]
    assert column.rare
    assert column.sort is not None


def test_the_form_shows_a_schedule_as_it_is_and_only_its_fields(qtbot: QtBot) -> None:
    rule = Rule(cron="15 7 * * 1-5", zone="America/New_York")
    request = StoredRequest({"kind": "crawl", "args": {"url": "https://example.com/"}})
    schedule = Schedule("0" * 16, request, rule, "Shop", missed="skip", grace_minutes=30)
    form = RepeatDialog("Shop", schedule)
    qtbot.addWidget(form)
    form.show()
    wanted: list[Repetition] = []
    form.wanted.connect(wanted.append)
    assert form.zone.isVisible()
    assert form.grace.isVisible()
    QTest.keyClick(form.name, Qt.Key.Key_Return)
    assert wanted == [
        Repetition(
            "Shop",
            {"cron": "15 7 * * 1-5", "zone": "America/New_York"},
            {"missed": "skip", "grace_minutes": 30, "notify": False},
        )
    ]
    form.zone.setCurrentText("Europe/Nowhere")
    assert not form.save.isEnabled()
    assert "time zone" in form.preview.text()
    form.way.setCurrentIndex(0)
    assert not form.zone.isVisible()
    assert form.save.isEnabled()


def test_the_form_of_a_paused_schedule_promises_no_run(qtbot: QtBot) -> None:
    request = StoredRequest({"kind": "crawl", "args": {"url": "https://example.com/"}})
    schedule = Schedule("0" * 16, request, Rule(every_minutes=90), "Shop", paused=True)
    form = RepeatDialog("Shop", schedule)
    qtbot.addWidget(form)
    assert form.preview.text().startswith("Paused. If it is resumed now: ")
    form.number.setValue(8)
    assert form.preview.text().startswith("Paused. If it is resumed now: ")


def test_the_form_of_a_schedule_shows_the_next_run_that_an_unchanged_rule_keeps(
    qtbot: QtBot,
) -> None:
    now_ms, day = int(time.time() * 1000), 86_400_000
    rule = Rule(every_minutes=7 * 1440, start_at=now_ms - day)
    request = StoredRequest({"kind": "crawl", "args": {"url": "https://example.com/"}})
    schedule = Schedule("0" * 16, request, rule, "Shop", after=now_ms - day)
    form = RepeatDialog("Shop", schedule)
    qtbot.addWidget(form)
    assert clock(now_ms + 6 * day, now_ms) in form.preview.text()
    form.number.setValue(8)
    assert clock(now_ms + 6 * day, now_ms) not in form.preview.text()
    form.number.setValue(7)
    assert clock(now_ms + 6 * day, now_ms) in form.preview.text()
