"""Everything an operator does, done by keys alone: on a real engine, with no click anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QCheckBox,
    QDialog,
    QFileDialog,
    QLineEdit,
    QPushButton,
    QWidget,
)

from fixtures.site.site import Site
from gui.commands.exporting import ExportDialog
from gui.commands.force_complete import ForceDialog
from gui.commands.palette import PaletteDialog
from gui.details.result_window import ResultWindow
from gui.settings.settings_dialog import SettingsDialog
from gui.start.start_dialog import StartDialog
from gui.startup.session import Session
from tests.gui.access_walk import name_of
from tests.gui.live_tasks import status_of
from tests.gui.result_ledgers import page, put_pages, put_task
from tests.gui.task_views import task_id
from tests.gui.test_forcing import an_envelope
from tests.gui.test_result_tabs import settled
from tests.gui.windows import appearing, opened

KEY, HELD = Qt.Key, Qt.KeyboardModifier
CONTROL, SHIFT, NONE = HELD.ControlModifier, HELD.ShiftModifier, HELD.NoModifier
MOST_TABS = 80


def focus() -> QWidget:
    found = QApplication.focusWidget()
    assert found is not None
    return found


def press(key: Qt.Key, held: Qt.KeyboardModifier = NONE) -> None:
    """One key, wherever the focus is."""
    QTest.keyClick(focus(), key, held)


def tab_to(name: str, key: Qt.Key = KEY.Key_Tab) -> QWidget:
    """Tab until what has this name has the focus."""
    passed = []
    for _ in range(MOST_TABS):
        if name_of(focus()) == name:
            return focus()
        passed.append(name_of(focus()))
        press(key)
    raise AssertionError(f"Tab does not reach {name!r} among {list(dict.fromkeys(passed))}")


async def in_front(window: QWidget) -> None:
    window.show()
    window.activateWindow()
    await settled(lambda: window.isActiveWindow() and QApplication.focusWidget())


async def to_list(session: Session) -> None:
    """Into the list, by way of the filter."""
    await in_front(session.window)
    press(KEY.Key_F, CONTROL)
    press(KEY.Key_Escape)
    press(KEY.Key_Escape)
    assert focus() is session.window.table


def counts(session: Session, status: str) -> int:
    return sum(status_of(session, one) == status for one in session.window.model.ids)


@pytest.mark.usefixtures("patient_browser")
async def test_a_crawl_is_started_found_read_and_run_again(home: Path) -> None:
    with Site(3) as site:
        async with opened(home) as session:
            await in_front(session.window)
            with appearing(StartDialog) as told:
                press(KEY.Key_N, CONTROL)
                start = await told
            await in_front(start)
            fill_in(site.url)
            press(KEY.Key_Return, CONTROL)
            await settled(lambda: counts(session, "COMPLETED") == 1)
            await find_and_read(session, site.url)
            press(KEY.Key_R, CONTROL)
            await settled(lambda: counts(session, "COMPLETED") == 2)


def fill_in(url: str) -> None:
    tab_to("Address")
    QTest.keyClicks(focus(), url)
    tab_to("Maximum pages")
    press(KEY.Key_A, CONTROL)
    QTest.keyClicks(focus(), "2")


async def find_and_read(session: Session, url: str) -> None:
    window = session.window
    await in_front(window)
    press(KEY.Key_F, CONTROL)
    QTest.keyClicks(focus(), url.removeprefix("http://").rstrip("/"))
    press(KEY.Key_Escape)  # what is offered goes first, then what was typed
    press(KEY.Key_Return)
    await settled(lambda: focus() is window.table)
    press(KEY.Key_Home, CONTROL)
    (one,) = window.model.ids
    await settled(lambda: window.details.task_id == one)
    # The type variable is bound to QDialog.
    with appearing(ResultWindow) as told:  # type: ignore[type-var]
        press(KEY.Key_Return, CONTROL)
        viewer: Any = await told
    await settled(lambda: viewer.pages.model.total == 2)
    await in_front(viewer)
    press(KEY.Key_Escape)
    await settled(lambda: not viewer.isVisible())
    await in_front(window)
    window.table.setFocus()


async def test_a_waiting_agents_task_is_cancelled_and_another_forced(home: Path) -> None:
    async with opened(home) as session:
        one = await an_envelope(session, expected_total=9)
        await to_list(session)
        press(KEY.Key_Home, CONTROL)
        with appearing(ForceDialog) as told:
            press(KEY.Key_F, CONTROL | SHIFT)
            dialog = await told
        await in_front(dialog)
        tab_to("Reason, kept for ever")
        QTest.keyClicks(focus(), "the site was switched off for good")
        while not isinstance(focus(), QCheckBox):
            press(KEY.Key_Tab)
        press(KEY.Key_Space)
        tab_to(dialog.force.text().replace("&", ""))
        press(KEY.Key_Space)
        await settled(lambda: status_of(session, one) == "COMPLETED")
        other = await an_envelope(session)
        await to_list(session)
        session.window.table.select_ids([other])
        with appearing(QDialog) as asked:
            press(KEY.Key_Delete)
            question = await asked
        await in_front(question)
        buttons = question.findChildren(QPushButton)
        verb = next(button for button in buttons if not button.isDefault())
        tab_to(verb.text().replace("&", ""))
        press(KEY.Key_Space)
        await settled(lambda: status_of(session, other) == "CANCELLED")


async def test_a_result_is_written_to_a_file(home: Path, tmp_path: Path) -> None:
    put_pages(put_task(home, 1), page(0), page(1))
    async with opened(home) as session:
        await to_list(session)
        press(KEY.Key_Home, CONTROL)
        await settled(lambda: session.window.details.task_id == task_id(1))
        with appearing(ExportDialog) as told:
            press(KEY.Key_E, CONTROL)
            dialog = await told
        await in_front(dialog)
        with appearing(QFileDialog) as asked:
            press(KEY.Key_Return)
            chooser = await asked
        (line,) = [one for one in chooser.findChildren(QLineEdit) if one.isVisible()][:1]
        await in_front(chooser)
        line.setFocus()
        press(KEY.Key_A, CONTROL)
        QTest.keyClicks(line, str(tmp_path / "mine.csv"))
        press(KEY.Key_Return)
        await settled(dialog.folder.isVisible)
        assert "Page 1" in (tmp_path / "mine.csv").read_text()
        await in_front(dialog)
        press(KEY.Key_Escape)
        await settled(lambda: not session.window.findChildren(ExportDialog))


async def test_palette_and_settings_open_work_and_go(home: Path) -> None:
    async with opened(home) as session:
        await in_front(session.window)
        with appearing(PaletteDialog) as told:
            press(KEY.Key_K, CONTROL)
            palette = await told
        await in_front(palette)
        QTest.keyClicks(focus(), "settings")
        with appearing(SettingsDialog) as asked:
            press(KEY.Key_Return)
            settings = await asked
        await in_front(settings)
        QTest.keyClicks(focus(), "row density")
        tab_to("Row density")
        press(KEY.Key_Down)
        assert session.window.desk.preferences.get("appearance.density", str) == "roomy"
        press(KEY.Key_Escape)
        await settled(lambda: not settings.isVisible())


async def test_f6_goes_round_all_regions_and_back(home: Path) -> None:
    put_pages(put_task(home, 1), page(0))
    async with opened(home) as session:
        await to_list(session)
        press(KEY.Key_Home, CONTROL)
        window = session.window
        await settled(lambda: window.details.task_id == task_id(1))
        shown = [one.entry for one in window.regions() if one.entry.isVisible()]
        for key, wanted in ((NONE, len(shown)), (SHIFT, len(shown))):
            seen = []
            for _ in range(wanted):
                press(KEY.Key_F6, key)
                seen.append(
                    next(one for one in shown if one is focus() or one.isAncestorOf(focus()))
                )
            assert set(seen) == set(shown)
            assert seen[-1] is window.area


async def test_f6_goes_from_the_list_to_the_tabs_of_the_details_and_what_they_show(
    home: Path,
) -> None:
    put_pages(put_task(home, 1), page(0))
    async with opened(home) as session:
        await to_list(session)
        press(KEY.Key_Home, CONTROL)
        details = session.window.details
        await settled(lambda: details.task_id == task_id(1))
        bar, body = details._tabs.tabBar(), details._tabs.currentWidget()
        press(KEY.Key_F6)
        assert focus() is bar
        press(KEY.Key_F6)
        assert body.isAncestorOf(focus())
        press(KEY.Key_F6)
        assert session.window.status.isAncestorOf(focus())
        for _ in range(2):
            press(KEY.Key_F6, SHIFT)
        assert focus() is bar
        press(KEY.Key_Backtab)
        assert details.isAncestorOf(focus()), "a button of the head"
        press(KEY.Key_F6)
        assert body.isAncestorOf(focus())


async def test_tab_leaves_every_list_and_text(home: Path) -> None:
    put_pages(put_task(home, 1), page(0), page(1))
    async with opened(home) as session:
        await to_list(session)
        press(KEY.Key_Home, CONTROL)
        tabs = session.window.details._tabs
        for at in filter(tabs.isTabVisible, range(tabs.count())):
            tabs.setCurrentIndex(at)
            views = session.window.findChildren(QAbstractItemView)
            for view in (one for one in views if one.isVisible() and one.focusPolicy()):
                for key in (KEY.Key_Tab, KEY.Key_Backtab):
                    view.setFocus()
                    press(key)
                    assert focus() is not view, name_of(view)
