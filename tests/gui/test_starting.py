"""Ways to a new task in the real window: paste, drop, file, list, duplicate, presets, recent."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton, QToolButton, QWidget

from engine.model.errors import LedgerWriteFailed
from engine.model.records import TaskRecord
from engine.service.drafts import Terms
from engine.service.rerun import Asked
from fixtures.site.site import Site
from gui.start.start_dialog import StartDialog
from gui.startup.session import Session
from gui.style.drag_and_drop import DropFrame
from gui.style.questions import Question
from tests.gui.start_dialogs import LOOK_TASK, words_of
from tests.gui.windows import dialog_of, heard, opened, until

QUICK: dict[str, Any] = {"engine": "static", "max_pages": 1, "delay_ms": 0}


def started(session: Session) -> StartDialog:
    dialog = dialog_of(session)
    assert isinstance(dialog, StartDialog)
    return dialog


def copied(text: str = "", files: tuple[Path, ...] = ()) -> QMimeData:
    mime = QMimeData()
    if text:
        mime.setText(text)
    if files:
        mime.setUrls([QUrl.fromLocalFile(str(file)) for file in files])
    return mime


def drop(place: QWidget, mime: QMimeData) -> bool:
    """Drop it in the middle of `place`, as a desktop does; was it taken?"""
    spot, copy = QPointF(place.rect().center()), Qt.DropAction.CopyAction
    button, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(spot.toPoint(), copy, mime, button, keys)
    QApplication.sendEvent(place, enter)
    if not enter.isAccepted():
        return False
    QApplication.sendEvent(place, QDropEvent(spot, copy, mime, button, keys))
    return True


def pasted(session: Session, text: str) -> StartDialog:
    QGuiApplication.clipboard().setText(text)
    session.window.acts["paste"].trigger()
    QGuiApplication.clipboard().clear()
    return started(session)


async def test_a_pasted_address_fills_the_form(home: Path) -> None:
    async with opened(home) as session:
        dialog = pasted(session, "example.com/one")
        assert dialog.form.asked.args["url"] == "https://example.com/one"
        dialog.reject()


async def test_pasted_addresses_are_a_list(home: Path) -> None:
    async with opened(home) as session:
        text = "https://a.example/\nhttps://b.example/\nhttps://a.example/#x"
        dialog = pasted(session, text)
        assert dialog.footer.start.text() == "Start 2 tasks"
        assert "1 duplicate is left out" in dialog.addresses.many.told
        dialog.reject()


async def test_addresses_between_other_words_are_a_list(home: Path) -> None:
    async with opened(home) as session:
        text = "Please look at https://a.example/one, and then (at) http://b.example/two."
        dialog = pasted(session, text)
        assert dialog.footer.start.text() == "Start 2 tasks"
        dialog.reject()


async def test_the_only_address_between_other_words_fills_the_form(home: Path) -> None:
    async with opened(home) as session:
        dialog = pasted(session, "See https://a.example/b_(c)!")
        assert dialog.form.asked.args["url"] == "https://a.example/b_(c)"
        dialog.reject()


async def test_a_pasted_task_is_shown_as_it_is(home: Path) -> None:
    async with opened(home) as session:
        dialog = pasted(session, json.dumps(LOOK_TASK))
        assert dialog.form.asked == Asked("commands", LOOK_TASK)
        dialog.reject()


@pytest.mark.parametrize("text", ["hello world", ""])
async def test_pasted_words_without_an_address_open_no_form_and_are_called_so(
    home: Path, text: str
) -> None:
    async with opened(home) as session:
        QGuiApplication.clipboard().setText(text)
        session.window.acts["paste"].trigger()
        QGuiApplication.clipboard().clear()
        assert not session.window.findChildren(StartDialog)
        banner = session.window.banner
        assert banner.title == "There is nothing to start"
        assert "The clipboard holds no address" in banner.accessibleName()


async def test_a_refused_paste_is_told_until_one_that_works(home: Path) -> None:
    async with opened(home) as session:
        clipboard, paste = QGuiApplication.clipboard(), session.window.acts["paste"]
        banner = session.window.banner
        for text, is_refused in (("hello", True), ("example.com", False), ("hello", True)):
            clipboard.setText(text)
            paste.trigger()
            assert banner.isVisible() is is_refused, text
            for dialog in session.window.findChildren(StartDialog):
                dialog.reject()
            while session.window.findChildren(StartDialog):
                await asyncio.sleep(0)
        clipboard.clear()
        session.window.requests.started.emit("0" * 16)
        assert banner.isHidden()
        session.window.trouble.show_error(LedgerWriteFailed(path="/x", reason="no room"))
        session.window.requests.started.emit("0" * 16)
        assert banner.isVisible(), "an error that a start does not answer"


async def test_a_file_that_is_not_there_is_refused_in_a_sentence_that_can_be_closed(
    home: Path, tmp_path: Path
) -> None:
    async with opened(home) as session:
        told = heard(session.window.requests.failed)
        session.window.requests.starting.open_path(tmp_path / "nofile.json")
        await told
        banner = session.window.banner
        assert banner.isVisible()
        assert "nofile.json is not there" in banner.accessibleName()
        (close,) = banner.findChildren(QToolButton)
        close.click()
        assert banner.isHidden()


async def test_a_dropped_task_shows_its_abilities(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "task <b>.json"
    file.write_text(json.dumps(LOOK_TASK))
    async with opened(home) as session:
        assert drop(session.window, copied(files=(file,)))
        await session_dialog(session)
        said = words_of(started(session))
        assert "task <b>.json. Nothing of it has run yet." in said
        assert "reaches into this machine or network: 127.0.0.1:9" in said
        assert "runs a script of its own in a page." in said
        assert session.bridge.own_tasks == ()
        assert session.window.model.total == 0
        started(session).reject()


async def test_of_several_dropped_files_the_others_are_called_left_out(
    home: Path, tmp_path: Path
) -> None:
    files = (tmp_path / "one.json", tmp_path / "two.json", tmp_path / "three.json")
    for file in files:
        file.write_text(json.dumps(LOOK_TASK))
    async with opened(home) as session:
        drop(session.window, copied(files=files))
        await session_dialog(session)
        said = words_of(started(session))
        assert "From one.json. Nothing of it has run yet." in said
        assert "2 more files are left out" in said
        started(session).reject()


async def session_dialog(session: Session) -> StartDialog:
    """The start dialog, once the file that it shows was read."""
    async with asyncio.timeout(60):
        while not session.window.findChildren(StartDialog):
            await asyncio.sleep(0)
    return started(session)


async def test_a_dropped_non_task_file_is_refused(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    file.write_text('{"kind": ')
    async with opened(home) as session:
        told = heard(session.window.requests.failed)
        drop(session.window, copied(files=(file,)))
        (error,) = await told
        assert "line 1, column 10" in str(error)
        assert not session.window.findChildren(StartDialog)
        told = heard(session.window.requests.failed)
        drop(session.window, copied("just words"))
        (error,) = await told
        assert "holds no address" in str(error)
        told = heard(session.window.requests.failed)
        drop(session.window, copied(files=(tmp_path,)))
        (error,) = await told
        assert "is not a file" in str(error)


async def test_a_file_dropped_on_the_dialog_fills_it(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_text("a.example\n\nb.example\nnot an address\n")
    async with opened(home) as session:
        session.window.acts["new"].trigger()
        dialog = started(session)
        assert drop(dialog, copied(files=(file,)))
        await until(lambda: dialog.addresses.number == 2, dialog.addresses.changed)
        assert "Line 4: “not an address”" in dialog.addresses.many.told
        dialog.reject()


async def test_a_list_becomes_a_task_for_each_address(home: Path, site: Site) -> None:
    async with opened(home) as session:
        session.window.acts["list_mode"].trigger()
        dialog = started(session)
        dialog.form.fill({"engine": "static", "max_pages": 1, "delay_ms": 0})
        text = dialog.addresses.many.text
        assert dialog.focusWidget() is text
        QTest.keyClicks(text, f"{site.url}/static/")
        QTest.keyClick(text, Qt.Key.Key_Return)
        QTest.keyClicks(text, f"{site.url}/")
        done = heard(dialog.finished)
        dialog.start.click()
        await done
        await until(lambda: session.window.model.total == 2, session.bridge.batch)
        urls = {view.entry.url: view.task_id for view in views_of(session)}
        assert set(urls) == {f"{site.url}/static/", f"{site.url}/"}
        assert session.window.table.selected_ids() == [urls[f"{site.url}/static/"]]  # the first
        maximum = {view.entry.args_summary["max_pages"] for view in views_of(session)}
        assert maximum == {1}


def views_of(session: Session) -> list[Any]:
    return [session.window.model.view_of(one) for one in session.window.model.ids]


async def test_a_partly_started_list_keeps_the_rest(home: Path, monkeypatch: Any) -> None:
    async with opened(home, slots=1) as session:
        dialog = list_of(session, 5)
        real, count = session.bridge.engine.requests.start, 0

        async def fails_at_third(*args: Any, **more: Any) -> TaskRecord:
            nonlocal count
            count += 1
            if count == 3:
                raise LedgerWriteFailed(reason="disk full", path="/x")
            return await real(*args, **more)

        monkeypatch.setattr(session.bridge.engine.requests, "start", fails_at_third)
        dialog.ask()
        await until(lambda: dialog.addresses.number == 3, dialog.addresses.changed)
        assert "2 of 5 were started" in dialog.footer.told
        assert "ledger" in dialog.banner.title.lower()
        assert dialog.start.text() == "Start 3 tasks"
        dialog.reject()


def list_of(session: Session, number: int) -> StartDialog:
    session.window.requests.starting.open_list(
        "\n".join(f"http://h{at}.invalid/" for at in range(number))
    )
    dialog = started(session)
    dialog.form.fill(QUICK)
    return dialog


async def test_starting_a_list_can_be_stopped(home: Path) -> None:
    async with opened(home, slots=1) as session:
        dialog = list_of(session, 40)
        volley = session.window.requests.starting._sequential_start
        told = heard(volley.progress)
        dialog.ask()
        await told
        assert dialog.footer.cancel.text() == "Stop"
        done = heard(volley.ended)
        QTest.keyClick(dialog, Qt.Key.Key_Escape)
        (number, error) = await done
        assert 0 < number < 40
        assert error is None
        assert dialog.isVisible()
        assert len(dialog.addresses.many.found.urls) == 40 - number
        dialog.reject()


async def test_a_list_can_become_one_command_task(home: Path) -> None:
    async with opened(home) as session:
        dialog = list_of(session, 3)
        dialog.addresses.many.shape.setCurrentIndex(1)
        assert dialog.start.text() == "Start"
        (asked,) = dialog.addresses.requests(dialog.form.asked)
        assert len(asked.args["commands"]) == 6
        assert session.bridge.problems(asked) == ()
        dialog.reject()


async def test_a_task_is_duplicated_with_all_that_it_was_asked(home: Path) -> None:
    async with opened(home) as session:
        asked = Asked(
            "crawl",
            {"url": "http://h.invalid/", **QUICK},
            "mine",
            Terms(policy={"maxToolCalls": 9}, contract={"stop_condition": "all seen"}),
        )
        told = heard(session.bridge.started)
        session.bridge.begin(asked)
        (record,) = await told
        await until(lambda: session.window.model.total == 1, session.bridge.batch)
        session.window.table.select_ids([record.task_id])
        assert session.window.acts["duplicate"].isEnabled()
        session.window.acts["duplicate"].trigger()
        again = (await session_dialog(session)).form.asked
        assert again.args["url"] == "http://h.invalid/"
        assert again.args["max_pages"] == 1
        assert again.name == "mine"
        assert again.terms.policy == {"maxToolCalls": 9}
        assert again.terms.contract is not None
        assert again.terms.contract["stop_condition"] == "all seen"
        started(session).reject()


async def test_add_and_start_another_keeps_the_form_open_and_what_was_set(home: Path) -> None:
    async with opened(home) as session:
        session.window.acts["new"].trigger()
        dialog = started(session)
        dialog.show_note("From a file.")
        dialog.form.fill({"url": "http://h.invalid/", **QUICK})
        told = heard(session.bridge.answered)
        dialog.footer.another.click()
        await told
        assert dialog.isVisible()
        assert dialog.form["url"].value == ""
        assert dialog.form["max_pages"].value == 1
        assert "ready for another one" in dialog.footer.told
        assert dialog._note.isHidden(), "what it described was started"
        assert dialog.shelf.recent.count() == 1
        dialog.reject()


async def test_nothing_can_be_dropped_on_a_window_that_only_looks(home: Path) -> None:
    async with opened(home) as session:
        acts = session.window.acts
        health = session.bridge.look_at_health()
        session.bridge.health.emit(replace(health, read_only="no room"))
        assert not any(acts[key].isEnabled() for key in ("open_file", "list_mode", "duplicate"))
        drop(session.window, copied("https://example.com/"))
        assert not session.window.findChildren(StartDialog)


async def test_an_empty_snapshot_starts_only_after_a_question(home: Path) -> None:
    bare = Asked("oc_session_snapshot", {"objective": "go on tomorrow"})
    async with opened(home) as session:
        session.window.requests.starting.open(bare)
        dialog = started(session)
        tabs = dialog.form["tabs"]
        assert dialog.form.is_in_sight(tabs)
        assert not dialog.form.is_unfolded
        dialog.ask()
        question = next(one for one in dialog.findChildren(Question) if one.isVisible())
        assert "no agent has a tab open" in words_of(question)
        question.done(0)  # Esc keeps the form
        assert dialog.isVisible()
        assert session.window.model.rowCount() == 0
        dialog.ask()
        question = next(one for one in dialog.findChildren(Question) if one.isVisible())
        with_start = next(one for one in question.findChildren(QPushButton) if "any" in one.text())
        accepted = heard(dialog.accepted)
        with_start.click()
        await accepted
        await until(lambda: session.window.model.rowCount() == 1, session.bridge.batch)


async def test_a_place_that_takes_a_drop_shows_a_frame_meanwhile(home: Path) -> None:
    async with opened(home) as session:
        window, mime = session.window, copied("https://example.com/")

        def frames() -> list[QWidget]:
            return [one for one in window.findChildren(DropFrame) if one.isVisible()]

        copy, spot = Qt.DropAction.CopyAction, window.rect().center()
        button, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        QApplication.sendEvent(window, QDragEnterEvent(spot, copy, mime, button, keys))
        assert [one.geometry() for one in frames()] == [window.rect()]
        QApplication.sendEvent(window, QDragLeaveEvent())
        assert not frames()
        drop(window, mime)
        assert not frames()
        started(session).reject()


async def test_of_several_dropped_lists_the_others_are_called_left_out(
    home: Path, tmp_path: Path
) -> None:
    files = (tmp_path / "one.txt", tmp_path / "two.txt")
    for file in files:
        file.write_text("https://a.example/\nhttps://b.example/\n")
    async with opened(home) as session:
        drop(session.window, copied(files=files))
        await session_dialog(session)
        assert started(session).footer.start.text() == "Start 2 tasks"
        assert "1 more file is left out" in words_of(started(session))
        started(session).reject()


async def test_a_long_text_between_whose_words_addresses_stand_is_refused(home: Path) -> None:
    async with opened(home) as session:
        told = heard(session.window.requests.failed)
        QGuiApplication.clipboard().setText("see https://a.example/ " * 60_000)
        session.window.acts["paste"].trigger()
        QGuiApplication.clipboard().clear()
        (error,) = await told
        assert "is larger than 1 MiB" in str(error)
