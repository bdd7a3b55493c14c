"""Screenshots of pages: captioned, framed, and legible when they are small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication, QLabel, QScrollBar, QTabWidget, QWidget

from engine.model.records import Status, TaskRecord
from gui.details.screenshots import PictureView, Screenshots, halves
from gui.startup.session import Session
from gui.style.theme import tone
from tests.gui.result_ledgers import page, put_pages, put_picture, put_task
from tests.gui.test_result_tabs import settled, tab_of
from tests.gui.windows import opened

WHITE = QColor("white")


def filled(width: int, height: int) -> QImage:
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(WHITE)
    return image


def view_of(qtbot: Any, image: QImage) -> PictureView:
    view = PictureView()
    qtbot.addWidget(view)
    view.resize(300, 300)
    view.show()
    view.show_image(image, halves(image))
    return view


async def test_a_screenshot_is_captioned_with_the_page_that_it_shows(home: Path) -> None:
    folder = put_task(home, 1)
    for name in ("1.png", "2.png"):
        put_picture(folder, name)
    url = "http://site.test/" + "a-long-part/" * 15
    put_pages(folder, page(0), page(1, url=url, screenshot="artifacts/1.png"))
    async with opened(home) as session:
        shots: Screenshots = await tab_of(session, 1, "screenshots", Screenshots)
        await settled(lambda: shots.thumbs.count() == 2 and shots.picture.caption.text())
        texts = [shots.thumbs.item(at).text() for at in range(2)]
        assert texts == [url, "2.png"]
        assert shots.thumbs.horizontalScrollBar().maximum() == 0
        assert shots.picture.caption.text() == f"Page 1 · {url}"
        shots.thumbs.setCurrentRow(1)
        assert not shots.picture.caption.text()


async def test_a_screenshot_of_evidence_is_captioned_with_the_page_of_its_bundle(
    home: Path,
) -> None:
    folder = put_task(home, 1, kind="oc_evidence_bundle")
    put_picture(folder, "screenshot.png")
    parts = [{"part": "screenshot", "file": "artifacts/screenshot.png"}]
    result = {"url": "http://site.test/a", "title": "Front page", "parts": parts}
    (folder / "result.json").write_text(json.dumps(result))
    async with opened(home) as session:
        shots: Screenshots = await tab_of(session, 1, "screenshots", Screenshots)
        await settled(lambda: shots.thumbs.count() == 1 and shots.picture.caption.text())
        assert shots.thumbs.item(0).text() == "http://site.test/a"
        assert shots.picture.caption.text() == "Front page · http://site.test/a"


@pytest.mark.usefixtures("qapp")
def test_a_white_page_has_a_visible_edge(qtbot: Any) -> None:
    view = view_of(qtbot, filled(100, 100))
    place, shown = view._place().toRect(), view.viewport().grab().toImage()
    line, middle = tone("line", QApplication.palette()).rgb(), place.center()
    for x, y in (
        (place.left() - 1, middle.y()),
        (place.right() + 1, middle.y()),
        (middle.x(), place.top() - 1),
        (middle.x(), place.bottom() + 1),
    ):
        assert shown.pixel(x, y) == line
    assert shown.pixel(place.topLeft()) == WHITE.rgb()
    assert shown.pixel(place.bottomRight()) == WHITE.rgb()


@pytest.mark.usefixtures("qapp")
def test_thin_lines_survive_far_below_half_the_size(qtbot: Any) -> None:
    row = filled(2400, 1)
    for x in range(0, 2400, 12):  # black lines with a twelfth of the ink
        row.setPixel(x, 0, 0)
    view = view_of(qtbot, row.scaled(2400, 2400))
    assert view.scale < 0.2
    place, shown = view._place().toRect(), view.viewport().grab().toImage()
    inner = range(place.left() + 5, place.right() - 5)
    greys = [QColor(shown.pixel(x, place.center().y())).red() for x in inner]
    assert max(greys) < 255
    assert max(greys) - min(greys) < 80


async def titles_of(session: Session, number: int) -> list[str]:
    """Select this task, and return the titles of its tabs."""
    window, task_id = session.window, f"{number:016x}"
    window.show()
    window.table.setCurrentIndex(window.model.index(window.model.ids.index(task_id), 0))
    await settled(lambda: window.details.task_id == task_id)
    return titles(session)


def titles(session: Session) -> list[str]:
    (tabs,) = session.window.details.findChildren(QTabWidget)
    return [tabs.tabText(at) for at in range(tabs.count()) if tabs.isTabVisible(at)]


async def test_the_tab_names_the_number_of_screenshots_of_an_ended_task(home: Path) -> None:
    put_picture(put_task(home, 1), "1.png")
    put_task(home, 2)
    put_task(home, 3, status="RUNNING")
    async with opened(home) as session:
        await titles_of(session, 1)
        await settled(lambda: "Screenshots (1)" in titles(session))
        await titles_of(session, 2)
        await settled(lambda: "Screenshots (0)" in titles(session))
        assert "Screenshots" in await titles_of(session, 3)


async def test_the_live_page_has_no_tab_once_its_task_has_ended(home: Path) -> None:
    put_task(home, 1)
    put_task(home, 2, status="RUNNING")
    async with opened(home) as session:
        details, model = session.window.details, session.window.model
        assert "Page" not in await titles_of(session, 1)
        assert "Page" in await titles_of(session, 2)
        details.restore_state("page")
        view = model.view_of(model.ids[model.ids.index(f"{2:016x}")])
        assert view is not None
        assert isinstance(view.entry, TaskRecord)
        ended = replace(view, entry=replace(view.entry, status=Status.COMPLETED))
        details.show_view(ended)
        assert "Page" in titles(session)  # the user looks at its last image
        details.restore_state("overview")
        details.show_view(ended)
        assert "Page" not in titles(session)


async def test_each_tab_tells_how_much_is_behind_it(home: Path) -> None:
    units = {"units": {"done": 3, "total": 3, "failed": 0}}
    put_pages(put_task(home, 1, engine=units), page(1), page(2), page(3))
    failed = put_task(home, 2, status="FAILED")
    (failed / "events.jsonl").write_text("")
    put_task(home, 4, kind="oc_evidence_bundle", status="CANCELLED")
    put_pages(put_task(home, 5), page(1))  # by a program that counts no units
    async with opened(home) as session:
        await titles_of(session, 1)
        await settled(lambda: "Items (3)" in titles(session))
        assert "Result" in titles(session)
        await titles_of(session, 2)
        nothing = ["Events (0)", "Timeline (0)", "Items (0)", "Result (0)", "Screenshots (0)"]
        await settled(lambda: titles(session) == ["Overview", *nothing, "Raw"])
        await titles_of(session, 4)
        await settled(lambda: titles(session) == ["Overview", *nothing, "Raw"])
        await titles_of(session, 5)
        await settled(lambda: "Screenshots (0)" in titles(session))
        assert "Items" in titles(session)


async def test_the_numbers_of_tabs_are_read_when_the_selected_task_ends(home: Path) -> None:
    put_picture(put_task(home, 1, status="RUNNING"), "1.png")
    async with opened(home) as session:
        details, model = session.window.details, session.window.model
        assert "Screenshots" in await titles_of(session, 1)
        view = model.view_of(f"{1:016x}")
        assert view is not None
        assert isinstance(view.entry, TaskRecord)
        details.show_view(replace(view, entry=replace(view.entry, status=Status.COMPLETED)))
        await settled(lambda: "Screenshots (1)" in titles(session))


async def test_a_task_that_waits_has_no_tabs_for_what_it_will_keep(home: Path) -> None:
    put_task(home, 1, status="RUNNING")
    async with opened(home) as session:
        details, model = session.window.details, session.window.model
        assert "Items" in await titles_of(session, 1)
        view = model.view_of(f"{1:016x}")
        assert view is not None
        assert isinstance(view.entry, TaskRecord)
        details.show_view(replace(view, entry=replace(view.entry, status=Status.PENDING)))
        assert titles(session) == ["Overview", "Events", "Page", "Raw"]


def in_middle(note: QLabel, place: QWidget) -> bool:
    """The text stands in the middle of `place`, whatever else the place has above it."""
    middle = note.mapTo(place, note.contentsRect().center())
    is_centred = note.alignment() == Qt.AlignmentFlag.AlignCenter
    return is_centred and abs(middle.x() - place.width() // 2) < 8 and note.height() > 60


async def test_the_text_of_an_empty_tab_stands_in_its_middle(home: Path) -> None:
    put_task(home, 1, status="FAILED")
    async with opened(home) as session:
        details = session.window.details
        await titles_of(session, 1)
        (tabs,) = details.findChildren(QTabWidget)
        texts = {
            "events": "No events yet.",
            "timeline": "No event with a time yet.",
            "items": "There is nothing here.",
            "result": "This task ended without a result.",
            "screenshots": "No screenshots.",
        }
        for key, text in texts.items():
            details.restore_state(key)
            page = tabs.currentWidget()

            def in_its_middle(page: QWidget = page, text: str = text) -> list[QLabel]:
                found = (one for one in page.findChildren(QLabel) if one.isVisible())
                return [one for one in found if one.text() == text and in_middle(one, page)]

            await settled(in_its_middle)  # what was just shown has its place with the next layout


async def test_all_tabs_begin_at_one_line(home: Path) -> None:
    put_picture(put_task(home, 1), "1.png")
    put_pages(home / "tasks" / f"{1:016x}", page(1))
    async with opened(home) as session:
        details = session.window.details
        await titles_of(session, 1)
        (tabs,) = details.findChildren(QTabWidget)
        begins: dict[str, tuple[int, int]] = {}
        for at in filter(tabs.isTabVisible, range(tabs.count())):
            tabs.setCurrentIndex(at)
            content = tabs.currentWidget()

            def leaves(content: QWidget = content) -> list[QWidget]:
                parts = [one for one in content.findChildren(QWidget) if one.isVisible()]
                parts = [one for one in parts if type(one) not in (QWidget, QScrollBar)]
                return [
                    one
                    for one in parts
                    if not any(one.isAncestorOf(p) for p in parts if p is not one)
                ]

            await settled(leaves)
            QApplication.sendPostedEvents()  # what was just shown gets its place
            places = [one.mapTo(content, one.rect().topLeft()) for one in leaves()]
            begins[tabs.tabText(at)] = (min(p.x() for p in places), min(p.y() for p in places))
        assert {x for x, _ in begins.values()} <= {4, 5}, begins  # a list has a frame
        assert {y for _, y in begins.values()} <= {8, 9}, begins
