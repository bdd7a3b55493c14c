"""Icons are drawn from files, in the colours of the palette."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QIcon, QImage, QPalette
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gui.start.kind_form import FormWords
from gui.style.icons import FOLDER, glyph, icon

NAMES = sorted(file.stem for file in FOLDER.glob("*.svg"))
RED = QColor(0xD0, 0x10, 0x20)


def _colours(image: QImage) -> set[str]:
    dots = (image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height()))
    return {dot.name() for dot in dots if dot.alpha() == 255}


@pytest.mark.parametrize("name", NAMES)
def test_each_file_is_drawn_in_one_colour_and_inside_its_edges(qtbot: QtBot, name: str) -> None:
    image = glyph(name, 24, RED, 2.0).toImage()
    assert (image.width(), image.devicePixelRatio()) == (48, 2.0)
    assert _colours(image) == {RED.name()}
    edge = [image.pixelColor(at, side).alpha() for at in range(48) for side in (0, 47)]
    edge += [image.pixelColor(side, at).alpha() for at in range(48) for side in (0, 47)]
    assert max(edge) == 0


def test_icons_use_the_current_palette(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    palette = QPalette(QApplication.palette())
    role = QPalette.ColorRole.ButtonText
    palette.setColor(QPalette.ColorGroup.Active, role, RED)
    palette.setColor(QPalette.ColorGroup.Disabled, role, QColor("gray"))
    monkeypatch.setattr(QApplication, "palette", lambda: palette)
    made = icon("search")
    for mode, colour in ((QIcon.Mode.Normal, RED), (QIcon.Mode.Disabled, QColor("gray"))):
        for ratio in (1.0, 2.0):
            pixmap = made.pixmap(QSize(24, 24), ratio, mode)
            assert pixmap.width() == 24 * ratio
            assert _colours(pixmap.toImage()) == {colour.name()}


def test_each_kind_has_an_icon(qtbot: QtBot) -> None:
    assert {kind.sign for kind in FormWords().kinds()} <= set(NAMES)
