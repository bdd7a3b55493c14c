"""Ctrl+K: whatever the window can do is found by a few letters, and tasks by theirs."""

from __future__ import annotations

import asyncio
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QTreeView

from engine.service.feed import Batch
from gui.commands.palette import Entry, Palette, PaletteDialog, TaskFinder, ranked
from gui.startup.session import Session
from tests.gui.task_views import a_view, task_id
from tests.gui.windows import heard, opened


def entry(text: str, *, enabled: bool = True) -> Entry:
    return Entry(text.lower(), text, "", lambda: None, enabled=enabled)


def opened_palette(session: Session) -> PaletteDialog:
    session.window.acts["palette"].trigger()
    return session.window.findChildren(PaletteDialog)[-1]


def shown(dialog: PaletteDialog) -> list[str]:
    model = dialog.findChild(QTreeView).model()  # type: ignore[union-attr]  # never None here
    return [str(model.index(at, 0).data()) for at in range(model.rowCount())]


def field(dialog: PaletteDialog) -> QLineEdit:
    return dialog.findChildren(QLineEdit)[0]


def test_what_was_used_last_comes_first_and_what_cannot_be_done_last() -> None:
    every = [entry("Cancel", enabled=False), entry("Copy ids"), entry("Copy rows")]
    found = ranked(every, "", ["copy rows"])
    assert [one.text for one in found] == ["Copy rows", "Copy ids", "Cancel"]
    assert [one.text for one in ranked(every, "cop id", ["copy rows"])] == ["Copy ids"]


def test_the_name_of_a_menu_finds_less_than_a_name_of_its_own() -> None:
    inner = Entry("c", "Columns: Kind", "", lambda: None, name="Kind")
    assert [one.text for one in ranked([inner, entry("Copy ids")], "co", [])] == [
        "Copy ids",
        "Columns: Kind",
    ]


def test_a_word_that_is_there_comes_before_letters_in_order() -> None:
    stop = entry("Stop recording", enabled=False)
    sort = entry("Rename colour order")  # r, e, c, o, r, d in this order
    assert ranked([sort], "record", []) == [sort]
    assert ranked([sort, stop], "record", []) == [stop, sort]
    assert ranked([stop, entry("Record again")], "record", [])[0].text == "Record again"


async def test_enter_takes_the_first_match_that_can_be_done(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        context = session.window.context
        stop, other = entry("Stop recording", enabled=False), entry("Rename colour order")
        dialog = PaletteDialog([stop, other], [], TaskFinder(context), session.window)
        QTest.keyClicks(field(dialog), "record")
        assert shown(dialog) == [stop.text, other.text]
        chosen = heard(dialog.chosen)
        QTest.keyClick(field(dialog), Qt.Key.Key_Return)
        assert (await chosen)[0] is other


async def test_typing_and_enter_do_what_the_action_does(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        dialog = opened_palette(session)
        QTest.keyClicks(field(dialog), "sideb")
        assert shown(dialog)[0] == "Sidebar"
        QTest.keyClick(field(dialog), Qt.Key.Key_Return)
        while session.window.sidebar.isVisible():
            await asyncio.sleep(0)
        again = opened_palette(session)
        assert shown(again)[0] == "Sidebar", "what was used last stands first"
        QTest.keyClick(again, Qt.Key.Key_Escape)


async def test_entries_of_menus_and_kinds_are_there_with_where_they_stand(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        dialog = opened_palette(session)
        QTest.keyClicks(field(dialog), "theme dark")
        assert shown(dialog)[0] == "Theme: Dark"
        field(dialog).setText("new rec")
        assert "New task: recording" in shown(dialog)
        dialog.reject()


async def test_every_action_of_the_window_is_in_it(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        keys = {one.key for one in session.window.findChildren(Palette)[0].entries()}
        assert {key for key in session.window.acts if key != "palette"} <= keys


async def test_the_palette_shows_a_filtered_task_by_id(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        window = session.window
        views = tuple(a_view(number) for number in range(1, 400))
        window.bridge.batch.emit(Batch(views, (), 399, 399, True))
        window.filter_bar.set_text("host3.example")
        dialog = opened_palette(session)
        QTest.keyClicks(field(dialog), task_id(77))
        while not any("host77" in text for text in shown(dialog)):
            await asyncio.sleep(0)
        QTest.keyClick(field(dialog), Qt.Key.Key_Return)
        while window.table.selected_ids() != [task_id(77)]:
            await asyncio.sleep(0)


async def test_what_answers_to_nothing_says_so_and_enter_does_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        dialog = opened_palette(session)
        field(dialog).setText("qqqqzzzz")
        assert shown(dialog) == []
        QTest.keyClick(field(dialog), Qt.Key.Key_Return)
        assert dialog.isVisible()
        dialog.reject()
