"""Screenshots of pages: captioned, framed, and legible when they are small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication

from gui.details.screenshots import PictureView, Screenshots, halves
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
