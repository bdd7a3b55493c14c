"""Both themes can be read, and a label never guesses that a text is markup."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

from gui.theme import Theme, apply_theme, is_dark, palette_of, plain_label, plain_tip, tone, tones

NOT_TEXT = {"line", "track"}


def luminance(colour: QColor) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    parts = [colour.redF(), colour.greenF(), colour.blueF()]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: QColor, other: QColor) -> float:
    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("ground", ["Base", "AlternateBase", "Window"])
def test_every_state_colour_can_be_read_on_every_ground(dark: bool, ground: str) -> None:
    palette = palette_of(dark)
    base = palette.color(QPalette.ColorRole[ground])
    weak = {
        name: round(contrast(colour, base), 2)
        for name, colour in tones(palette).items()
        if name not in NOT_TEXT and contrast(colour, base) < 4.5
    }
    assert weak == {}


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(
    ("text", "ground"),
    [
        ("WindowText", "Window"),
        ("Text", "Base"),
        ("Text", "AlternateBase"),
        ("ButtonText", "Button"),
        ("HighlightedText", "Highlight"),
        ("PlaceholderText", "Base"),
        ("PlaceholderText", "Window"),
        ("Link", "Base"),
        ("ToolTipText", "ToolTipBase"),
    ],
)
def test_the_palettes_own_pairs_can_be_read(dark: bool, text: str, ground: str) -> None:
    palette = palette_of(dark)
    ratio = contrast(
        palette.color(QPalette.ColorRole[text]), palette.color(QPalette.ColorRole[ground])
    )
    assert ratio >= 4.5


def test_a_choice_of_theme_overrules_the_desktop(qapp: QApplication) -> None:
    apply_theme(qapp, Theme.DARK)
    assert is_dark(qapp.palette())
    apply_theme(qapp, Theme.LIGHT)
    assert not is_dark(qapp.palette())


def test_a_label_shows_markup_as_text(qapp: QApplication) -> None:
    label = plain_label("<img src='file:///etc/hostname'><b>bold</b>")
    assert label.textFormat() == Qt.TextFormat.PlainText
    assert label.text().startswith("<img")


def test_a_tooltip_shows_markup_as_text() -> None:
    assert "<img" not in plain_tip("<img src='x'>")


def test_an_unknown_state_still_has_a_colour(qapp: QApplication) -> None:
    assert tone("EXPLODED", palette_of(True)) == tones(palette_of(True))["muted"]
