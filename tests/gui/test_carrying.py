"""Rows, pictures and results pulled into other programs: as text, and as files to be copied."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QDrag, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from engine.service.engine import Engine
from gui.details.screenshots import Screenshots
from gui.startup.session import Session
from gui.style.questions import Question
from tests.gui.result_ledgers import page, put_pages, put_picture, put_task
from tests.gui.test_result_tabs import settled, tab_of
from tests.gui.windows import WAIT_S, app, appearing, opened, press

LEFT, FAR = Qt.MouseButton.LeftButton, QPoint(60, 40)
Carried = tuple[str, list[str], Qt.DropAction]


@pytest.fixture
def three(home: Path) -> Path:
    """1 and 2 have ended with a result, 3 runs."""
    for number in (1, 2):
        put_pages(put_task(home, number), page(number))
    put_task(home, 3, status="RUNNING")
    return home


def ids(*numbers: int) -> list[str]:
    return [f"{number:016x}" for number in numbers]


class _Ended(QObject):
    """Tells what the next drag has carried, when it is over."""

    def __init__(self) -> None:
        super().__init__()
        self.told: asyncio.Future[Carried] = asyncio.get_running_loop().create_future()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.DeferredDelete and isinstance(watched, QDrag):
            mime = watched.mimeData()
            files = [url.toLocalFile() for url in mime.urls()]
            self.told.set_result((mime.text(), files, watched.supportedActions()))
        return False


async def pulled(place: QWidget, start: QPoint) -> Carried:
    """What a drag that begins at `start` carries: its text, its files, what may be done."""
    ended = _Ended()
    app().installEventFilter(ended)
    QTest.mousePress(place, LEFT, pos=start)
    QTest.mouseMove(place, start + FAR)
    async with asyncio.timeout(WAIT_S):
        found = await ended.told
    app().removeEventFilter(ended)
    QTest.mouseRelease(place, LEFT, pos=start + FAR)
    return found


def middle_of(session: Session, number: int) -> QPoint:
    table = session.window.table
    row = table.tasks.ids.index(f"{number:016x}")
    return table.visualRect(table.tasks.index(row, 2)).center()


async def test_dragged_rows_have_ids_and_results(three: Path) -> None:
    async with opened(three) as session:
        table = session.window.table
        table.select_ids(ids(1, 2, 3))
        chosen = table.selected_ids()
        text, files, actions = await pulled(table.viewport(), middle_of(session, 2))
        assert text.split("\n") == chosen
        assert files == [
            str(three / "tasks" / one / "result.json") for one in chosen if one in ids(1, 2)
        ]
        assert actions == Qt.DropAction.CopyAction
        assert table.selected_ids() == chosen


async def test_a_click_on_one_of_many_chosen_rows_is_still_a_click(three: Path) -> None:
    async with opened(three) as session:
        table = session.window.table
        table.selectAll()
        QTest.mouseClick(table.viewport(), LEFT, pos=middle_of(session, 2))
        assert table.selected_ids() == ids(2)
        opened_tasks: list[str] = []
        table.activated_task.connect(opened_tasks.append)
        QTest.mouseDClick(table.viewport(), LEFT, pos=middle_of(session, 2))
        QTest.mouseRelease(table.viewport(), LEFT, pos=middle_of(session, 2))
        assert opened_tasks == ids(2)


async def test_pulling_at_a_row_that_is_not_chosen_chooses_rows_as_ever(three: Path) -> None:
    async with opened(three) as session:
        table = session.window.table
        first, last = (middle_of(session, int(one, 16)) for one in table.tasks.ids[::2])
        QTest.mousePress(table.viewport(), LEFT, pos=first)
        QTest.mouseMove(table.viewport(), last)
        QTest.mouseRelease(table.viewport(), LEFT, pos=last)
        assert table.selected_ids() == table.tasks.ids
        assert not table.findChildren(QDrag)


async def test_a_large_drag_has_ids_and_reads_no_folder(home: Path) -> None:
    for number in range(1, 560):
        put_task(home, number, ended_at=1_780_000_000_000 - number)
    put_pages(home / "tasks" / ids(7)[0], page(7))
    async with opened(home) as session:
        table = session.window.table
        table.selectAll()
        at = table.visualRect(table.tasks.index(1, 2)).center()
        text, files, _ = await pulled(table.viewport(), at)
        assert (len(text.split("\n")), files) == (559, [])
        assert table.all_marked


async def test_a_link_in_place_of_a_result_is_not_carried(three: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    result = three / "tasks" / ids(1)[0] / "result.json"
    result.unlink()
    result.symlink_to(secret)
    (result.parent / "artifacts").symlink_to(tmp_path)
    async with opened(three) as session:
        engine: Engine = session.bridge.engine
        assert await engine.reading.place(ids(1)[0], "result.json") is None
        for name in ("artifacts/secret", "../secret", "/etc/passwd", ".lock", "artifacts"):
            assert await engine.reading.place(ids(1)[0], name) is None
        session.window.table.select_ids(ids(1))
        text, files, _ = await pulled(session.window.table.viewport(), middle_of(session, 1))
        assert (text, files) == (ids(1)[0], [])


async def test_the_results_are_copied_by_key_to_be_pasted_into_a_folder(three: Path) -> None:
    async with opened(three) as session:
        window, clipboard = session.window, QGuiApplication.clipboard()
        window.table.select_ids(ids(1, 2))
        window.table.setFocus()
        clipboard.setText("")
        QTest.keyClick(window.table, Qt.Key.Key_F, _CTRL_ALT)
        await settled(lambda: clipboard.mimeData().hasUrls())
        files = [Path(url.toLocalFile()).parent.name for url in clipboard.mimeData().urls()]
        assert sorted(files) == ids(1, 2)
        said = clipboard.mimeData().data("x-special/gnome-copied-files").data()
        assert bytes(said).startswith(b"copy\nfile:///")


_CTRL_ALT = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier


async def test_a_picture_is_pulled_out_and_copied_as_its_file(three: Path) -> None:
    folder = three / "tasks" / ids(1)[0]
    put_picture(folder, "one.png")
    async with opened(three) as session:
        tab: Screenshots = await tab_of(session, 1, "screenshots", Screenshots)
        await settled(tab.thumbs.count)
        place = str(folder / "artifacts" / "one.png")
        at = tab.thumbs.visualItemRect(_only(tab.thumbs)).center()
        assert (await pulled(tab.thumbs.viewport(), at))[1] == [place]
        picture = tab.picture.view
        assert (await pulled(picture.viewport(), picture.rect().center()))[1] == [place]
        tab.thumbs.setFocus()
        QTest.keySequence(tab.thumbs, "Ctrl+C")
        clipboard = QGuiApplication.clipboard()
        await settled(lambda: clipboard.text() == place)
        shutil.rmtree(folder / "artifacts")


def _only(thumbs: Any) -> Any:
    item = thumbs.item(0)
    assert item is not None
    return item


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
async def test_where_no_program_shows_folders_the_path_can_be_copied(three: Path) -> None:
    async with opened(three) as session:
        window = session.window
        window.activateWindow()
        with appearing(Question) as told:
            window.show_ledger_folder()  # no desktop here has a file manager
            press(await told, "Copy the path")
        assert QGuiApplication.clipboard().text() == str(three / "tasks")
