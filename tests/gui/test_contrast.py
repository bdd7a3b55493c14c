"""Text has enough contrast on every background, in every palette."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QLineEdit, QPlainTextEdit, QWidget
from pytestqt.qtbot import QtBot

from gui.style.theme import MORE_CONTRAST, Theme, apply_theme, palette_of, tones
from gui.tasks.cell_painting import TRACK_ALPHA
from gui.tasks.row import LEVEL_TONES
from tests.gui.test_theme import NOT_TEXT, contrast

TEXT, PART = 4.5, 3.0  # WCAG 2.2: 1.4.3 for words, 1.4.11 for what is painted
PALETTES = [
    pytest.param(palette_of(*chosen), id=" ".join(map(str, chosen)))
    for chosen in product((False, True), repeat=3)
]
GROUNDS = ("Base", "AlternateBase", "Window", "Button")
WORDS = ("WindowText", "Text", "ButtonText", "PlaceholderText", "Link")
BANNER_ALPHA = 0.10


def over(colour: QColor, ground: QColor, alpha: float) -> QColor:
    """`colour` laid over `ground` so thinly."""
    parts = ((part(colour), part(ground)) for part in (QColor.redF, QColor.greenF, QColor.blueF))
    red, green, blue = (one * alpha + other * (1 - alpha) for one, other in parts)
    return QColor.fromRgbF(red, green, blue)


def of(palette: QPalette, role: str) -> QColor:
    return palette.color(QPalette.ColorGroup.Active, QPalette.ColorRole[role])


def weak(pairs: Iterator[tuple[str, QColor, QColor]], least: float) -> dict[str, float]:
    found = {name: round(contrast(ink, ground), 2) for name, ink, ground in pairs}
    return {name: ratio for name, ratio in found.items() if ratio < least}


@pytest.mark.parametrize("palette", PALETTES)
def test_every_tone_and_word_can_be_read_on_every_ground(palette: QPalette) -> None:
    inks = {name: ink for name, ink in tones(palette).items() if name not in NOT_TEXT}
    inks |= {role: of(palette, role) for role in WORDS}
    pairs = (
        (f"{name} on {ground}", ink, of(palette, ground))
        for (name, ink), ground in product(inks.items(), GROUNDS)
    )
    assert weak(pairs, TEXT) == {}


@pytest.mark.parametrize("palette", PALETTES)
def test_a_chosen_row_can_be_read_with_and_without_the_focus(palette: QPalette) -> None:
    groups = (QPalette.ColorGroup.Active, QPalette.ColorGroup.Inactive)
    roles = QPalette.ColorRole
    pairs = (
        (group.name, palette.color(group, roles.HighlightedText), palette.color(group, ground))
        for group, ground in product(groups, (roles.Highlight,))
    )
    assert weak(pairs, TEXT) == {}


@pytest.mark.parametrize("palette", PALETTES)
def test_a_chosen_row_is_seen_to_be_chosen(palette: QPalette) -> None:
    mark = of(palette, "Highlight")
    pairs = ((ground, mark, of(palette, ground)) for ground in ("Base", "AlternateBase"))
    assert weak(pairs, PART) == {}


@pytest.mark.parametrize("palette", PALETTES)
def test_a_banner_can_be_read_on_its_own_tint(palette: QPalette) -> None:
    known, window = tones(palette), of(palette, "Window")
    pairs = (
        (f"{ink} on {name}", of(palette, ink), over(known[name], window, BANNER_ALPHA))
        for name, ink in product(("warning", "bad", "accent", "good"), ("WindowText",))
    )
    assert weak(pairs, TEXT) == {}


def gauges(palette: QPalette) -> Iterator[tuple[str, QColor, QColor]]:
    """Each filling beside its track, in rows, in chosen rows, and in the details."""
    known, alpha = tones(palette), TRACK_ALPHA / 255
    states = ("pending", "running", "cancelling", "completed", "failed", "orphaned")
    for name, ground in product((*states, *LEVEL_TONES.values()), ("Base", "AlternateBase")):
        base = of(palette, ground)
        yield f"{name} on {ground}", known[name], base
        yield f"{name} on its track, {ground}", known[name], over(known[name], base, alpha)
    marked, mark = of(palette, "HighlightedText"), of(palette, "Highlight")
    yield "chosen", marked, over(marked, mark, alpha)
    for name in LEVEL_TONES.values():
        yield f"{name} in the details", known[name], known["track"]


@pytest.mark.parametrize("palette", PALETTES)
def test_how_full_a_gauge_is_can_be_seen(palette: QPalette) -> None:
    assert weak(gauges(palette), PART) == {}


@pytest.mark.parametrize("palette", PALETTES)
def test_the_focus_frame_has_contrast(palette: QPalette, qapp: QApplication, qtbot: QtBot) -> None:
    field = QLineEdit()
    qtbot.addWidget(field)
    field.setPalette(palette)
    field.show()
    field.activateWindow()
    field.setFocus()
    qtbot.waitUntil(field.hasFocus, timeout=60_000)
    picture, ground = field.grab().toImage(), of(palette, "Base")
    middle = picture.height() // 2
    assert max(contrast(picture.pixelColor(x, middle), ground) for x in range(3)) >= PART


@pytest.mark.parametrize("kind", [QLineEdit, QPlainTextEdit])
@pytest.mark.parametrize(("dark", "high"), list(product((False, True), repeat=2)))
def test_where_one_can_write_can_be_seen_without_the_keys(
    qapp: QApplication, qtbot: QtBot, kind: type[QWidget], dark: bool, high: bool
) -> None:
    qapp.setProperty(MORE_CONTRAST, high)
    try:
        apply_theme(qapp, Theme.DARK if dark else Theme.LIGHT)
        field = kind()
        qtbot.addWidget(field)
        picture, ground = field.grab().toImage(), of(qapp.palette(), "Window")
        middle = picture.height() // 2
        assert max(contrast(picture.pixelColor(x, middle), ground) for x in range(20)) >= PART
    finally:
        qapp.setProperty(MORE_CONTRAST, False)
        apply_theme(qapp, Theme.LIGHT)
