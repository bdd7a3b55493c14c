"""Large letters and long counts: what has a name or a place in the window keeps it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QLabel,
    QListWidget,
    QPushButton,
    QSplitterHandle,
    QToolButton,
    QTreeWidget,
    QWidget,
)
from pytestqt.qtbot import QtBot

from engine.model.records import Health
from gui.details.panel import Details, Several
from gui.filters.facet_tree import FacetTree
from gui.settings.settings_dialog import SettingsDialog
from gui.start.start_dialog import StartDialog
from gui.startup.session import Session
from gui.window.status_bar import StatusBar
from tests.gui.result_ledgers import put_task
from tests.gui.task_views import a_view
from tests.gui.windows import app, dialog_of, opened
from tests.support.engines import until

COMMAND_LINE = "On the command line"
SOON_S = 20.0  # for what a layout alone decides


@asynccontextmanager
async def with_letters(tmp_path: Path, percent: int, wide: int = 1200) -> AsyncIterator[Session]:
    home = tmp_path / "home"
    for number in range(1, 12) if not home.exists() else ():
        put_task(home, number, engine={"route": "cli"})
    async with opened(home) as session:
        session.window.resize(wide, 600)
        session.window.preferences.set("appearance.letters", percent)
        try:
            yield session
        finally:
            session.window.preferences.set("appearance.letters", 100)


def tree_of(session: Session) -> FacetTree:
    tree = session.window.sidebar.findChild(QTreeWidget)
    assert isinstance(tree, FacetTree)
    return tree


def has_room(session: Session) -> bool:
    tree = tree_of(session)
    return tree.width() >= tree.content_width()


@pytest.mark.parametrize("percent", [100, 150])
async def test_the_sidebar_has_room_for_its_names_beside_counts_of_two_digits(
    tmp_path: Path, percent: int
) -> None:
    async with with_letters(tmp_path, percent) as session:
        await until(lambda: tree_of(session).findItems(COMMAND_LINE, Qt.MatchFlag.MatchRecursive))
        await until(lambda: has_room(session))
        (item,) = tree_of(session).findItems(COMMAND_LINE, Qt.MatchFlag.MatchRecursive)
        metrics = QFontMetrics(tree_of(session).font())
        both = metrics.horizontalAdvance(COMMAND_LINE) + metrics.horizontalAdvance("11")
        assert tree_of(session).visualItemRect(item).width() > both + 40


async def test_the_sidebar_takes_a_third_of_a_small_window_at_most(tmp_path: Path) -> None:
    async with with_letters(tmp_path, 200, wide=900) as session:
        window = session.window
        await until(lambda: window.sidebar.width() > 280)
        assert window.sidebar.width() <= window.wide.width() // 3


async def test_a_sidebar_whose_edge_was_moved_keeps_its_width_in_the_next_window_too(
    tmp_path: Path,
) -> None:
    async with with_letters(tmp_path, 100) as session:
        window = session.window
        await until(lambda: has_room(session))
        handle = window.wide.handle(1)
        assert isinstance(handle, QSplitterHandle)
        QTest.mousePress(handle, Qt.MouseButton.LeftButton, pos=QPoint(2, 50))
        QTest.mouseMove(handle, QPoint(-58, 50))
        QTest.mouseRelease(handle, Qt.MouseButton.LeftButton, pos=QPoint(-58, 50))
        moved = window.sidebar.width()
        assert not has_room(session)
        window.preferences.set("appearance.letters", 150)
        await asyncio.sleep(0.5)  # longer than it takes to follow: nothing tells that it does not
        assert window.sidebar.width() == moved
    async with with_letters(tmp_path, 150) as session:
        await asyncio.sleep(0.5)
        assert session.window.sidebar.width() == moved


@pytest.mark.parametrize("share", [1.0, 2.0])
def test_the_status_bar_of_a_small_window_elides_its_path_and_shows_all_other_parts(
    qtbot: QtBot, share: float
) -> None:
    status, bell = StatusBar(), QToolButton()
    qtbot.addWidget(status)
    font = status.font()
    font.setPointSizeF(font.pointSizeF() * share)
    status.setFont(font)
    bell.setText("bell")
    status.addPermanentWidget(bell)
    status.resize(900, 40)
    status.show()
    status.show_health(
        Health(
            root="/home/somebody/a folder with a long name/another one/tasks",
            engine="ready",
            browser="ready",
            browser_name="Chromium headless shell 156.0.8078.108",
        )
    )
    qtbot.waitUntil(lambda: status.engine.width() > 300)
    shown = [one for one in (status.engine, status.work, status.root, bell) if one.isVisible()]
    ends = [one.geometry().right() for one in shown]
    assert len(shown) == 4
    assert ends == sorted(ends)
    assert ends[-1] < status.width() == 900
    assert "…" in status.root.text()
    assert status.root.width() >= status.root.sizeHint().width()


async def test_all_firm_columns_are_in_sight_in_a_small_window_with_large_letters(
    tmp_path: Path,
) -> None:
    async with with_letters(tmp_path, 150, 900) as session:
        table = session.window.table
        await until(lambda: session.window.sidebar.width() > 250)
        await until(lambda: table.header().length() == table.viewport().width())
        assert not table.horizontalScrollBar().maximum()


@pytest.mark.parametrize("percent", [100, 150, 200])
async def test_reason_buttons_and_name_of_a_task_have_room_in_a_small_window(
    tmp_path: Path, percent: int
) -> None:
    folder = put_task(tmp_path / "home", 1, status="RUNNING")
    async with with_letters(tmp_path, percent, 900) as session:
        window = session.window
        window.table.select_ids([folder.name])
        overview, name = window.details.overview, window.details._head._name
        await until(lambda: len(buttons_of(session)) == 2, SOON_S)

        def fits() -> bool:
            reason, metrics = overview._why, overview._why.fontMetrics()
            whole = [one.width() >= one.sizeHint().width() for one in buttons_of(session)]
            return (
                reason.width() >= metrics.averageCharWidth() * 30
                and all(whole)
                and not overview.horizontalScrollBar().maximum()
                and name.width() >= name.fontMetrics().averageCharWidth() * 12
            )

        await until(fits, SOON_S)


def test_the_head_of_a_small_pane_elides_the_state_before_the_name_is_gone(qtbot: QtBot) -> None:
    details = Details()
    qtbot.addWidget(details)
    details.show_view(a_view(1, "RUNNING", foreign=True, done=12_000, total=100_000))
    name, state = details._head._name, details._head._state
    details.resize(details.minimumSizeHint().width(), 400)
    details.show()
    qtbot.waitUntil(lambda: state.width() < state.sizeHint().width())
    assert name.width() >= 12 * name.fontMetrics().averageCharWidth()
    assert state.text() in state.toolTip()


async def test_the_states_of_several_tasks_are_whole_in_a_small_window(tmp_path: Path) -> None:
    states = ("COMPLETED", "FAILED", "CANCELLED", "RUNNING", "ODD")
    for number, status in enumerate(states, 1):
        put_task(tmp_path / "home", number, status=status)
    put_task(tmp_path / "home", 6, "browser_task", "PENDING", pid=os.getpid())
    put_task(tmp_path / "home", 7).joinpath("meta.json").write_text("{")
    before = QFontMetrics(app().font()).height()
    async with with_letters(tmp_path, 200, 900) as session:
        window = session.window
        window.table.selectAll()
        (several,) = window.findChildren(Several)

        def are_whole() -> bool:
            parts = [one for one in several.findChildren(QWidget) if one.isVisible()]
            lines = [one for one in parts if isinstance(one, QLabel | QPushButton)]
            words = [one for one in lines if isinstance(one, QPushButton)]
            heights = [(one.height(), one.fontMetrics().height()) for one in lines if one.text()]
            large = several.fontMetrics().height() > 1.5 * before
            return len(words) == 7 and large and all(has >= needs for has, needs in heights)

        await until(are_whole, SOON_S)


def buttons_of(session: Session) -> list[QPushButton]:
    buttons = session.window.details.overview.state_actions.buttons.values()
    return [one for one in buttons if one.isVisible()]


async def test_the_cards_of_the_kinds_have_room_for_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The screen of a test is smaller than any real one.
    monkeypatch.setattr("gui.start.request_form.CARDS_SHARE", 3.0)
    async with with_letters(tmp_path, 150) as session:
        session.window.acts["new"].trigger()
        dialog = dialog_of(session)
        assert isinstance(dialog, StartDialog)
        await until(dialog.isVisible)
        cards = [one for one in dialog.form.findChildren(QToolButton) if one.isCheckable()]
        assert max(card.sizeHint().width() for card in cards) > 76
        for card in cards:
            assert card.minimumSizeHint().width() >= card.sizeHint().width()
            assert not card.minimumWidth(), "it would overrule the hint"
        dialog.reject()


async def test_what_the_start_dialog_tells_of_its_request_has_room_for_its_words(
    tmp_path: Path,
) -> None:
    async with with_letters(tmp_path, 150) as session:
        session.window.acts["new"].trigger()
        dialog = dialog_of(session)
        assert isinstance(dialog, StartDialog)
        await until(dialog.isVisible)
        footer = dialog.footer
        footer.tell("About 20 pages, as in 3 tasks of this host before: 12 s")
        (told,) = (one for one in footer.findChildren(QLabel) if one.text() == footer.told)
        await until(lambda: told.width() >= footer.width() // 2, SOON_S)
        assert told.heightForWidth(told.width()) <= 2 * QFontMetrics(told.font()).lineSpacing()
        footer.tell("")
        assert not told.isVisible()
        dialog.reject()


async def test_the_list_of_pages_of_the_settings_follows_the_letters(tmp_path: Path) -> None:
    async with with_letters(tmp_path, 100) as session:
        session.window.acts["settings"].trigger()
        (dialog,) = session.window.findChildren(SettingsDialog)
        names = dialog.findChildren(QListWidget)[0]

        def is_whole() -> bool:
            metrics, items = names.fontMetrics(), map(names.item, range(names.count()))
            widest = max(metrics.horizontalAdvance(item.text()) for item in items)
            height = names.visualItemRect(names.item(0)).height()
            return names.viewport().width() > widest + 6 and height > metrics.height()

        assert is_whole()
        before = names.fontMetrics().height()
        session.window.preferences.set("appearance.letters", 200)
        await until(lambda: names.fontMetrics().height() > before)
        await until(is_whole)
        dialog.accept()


async def test_the_buttons_of_an_empty_list_keep_their_texts_in_a_small_window(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path / "home") as session:
        session.window.resize(900, 600)
        session.window.preferences.set("appearance.letters", 150)
        area = session.window.area

        def are_whole() -> bool:
            buttons = [one for one in area.findChildren(QPushButton) if one.isVisible()]
            rows = {one.geometry().top() for one in buttons}
            wide = all(one.width() >= one.sizeHint().width() for one in buttons)
            return len(buttons) == 4 and len(rows) == 2 and wide

        await until(are_whole)
        assert session.window.width() == 900
        session.window.preferences.set("appearance.letters", 100)
