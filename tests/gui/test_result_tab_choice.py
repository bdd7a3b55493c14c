"""A result opens on the tab that the user chose last, if that has something for the task."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from gui.details.result_window import ResultWindow
from gui.startup.session import Session
from gui.style.widgets import EmptyNote
from tests.gui.result_ledgers import page, put_pages, put_picture, put_task
from tests.gui.test_result_tabs import settled
from tests.gui.test_result_viewer import viewer_of
from tests.gui.windows import opened

CONTRACT = "c" * 16


def put_two(home: Path) -> None:
    """A crawl with a contract and a picture, and one with neither."""
    folder = put_task(home, 1, engine={"contract_id": CONTRACT})
    put_picture(folder, "a.png", 40, 30)
    put_pages(folder, page(0, screenshot="artifacts/a.png"))
    other = put_task(home, 2, args_summary={"url": "http://other.test/"})
    put_pages(other, page(0))


def reopened(session: Session, viewer: ResultWindow, number: int) -> QWidget:
    viewer.close()
    view = session.window.model.view_of(f"{number:016x}")
    assert view is not None
    viewer.show_task(view)
    viewer.show()
    return viewer.tabs.currentWidget()


def starts(note: EmptyNote, text: str) -> bool:
    return note.text().startswith(text)


async def test_a_result_without_a_contract_opens_on_its_pages_after_one_with(home: Path) -> None:
    put_two(home)
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        viewer.show_tab(viewer.contract)
        assert reopened(session, viewer, 2) is viewer.pages
        assert reopened(session, viewer, 1) is viewer.contract, "the user has not left it"


@pytest.mark.parametrize("name", ["preview", "diff"])
async def test_a_tab_that_proves_empty_is_left_for_the_pages(home: Path, name: str) -> None:
    put_two(home)
    async with opened(home) as session:
        viewer = await viewer_of(session, 1)
        tab = getattr(viewer, name)
        viewer.show_tab(tab)
        reopened(session, viewer, 2)
        await settled(lambda: viewer.tabs.currentWidget() is viewer.pages)
        assert reopened(session, viewer, 1) is tab, "the user has not left it"


async def test_an_empty_tab_that_the_user_chooses_stays_and_says_so_in_its_middle(
    home: Path,
) -> None:
    put_two(home)
    async with opened(home) as session:
        viewer = await viewer_of(session, 2)
        for tab, text in (
            (viewer.preview, "No screenshots were taken. "),
            (viewer.contract, "No contract."),
        ):
            viewer.show_tab(tab)
            note = tab.findChild(EmptyNote)
            assert isinstance(note, EmptyNote)
            await settled(partial(starts, note, text))
            assert viewer.tabs.currentWidget() is tab
            assert note.isVisible()
            assert note.geometry() == tab.rect()
            assert note.alignment() == Qt.AlignmentFlag.AlignCenter
