"""Both themes can be read, and a label never guesses that a text is markup."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QCheckBox, QLabel

from gui.style.theme import (
    MORE_CONTRAST,
    Theme,
    apply_theme,
    is_dark,
    is_high_contrast,
    palette_of,
    plain_label,
    plain_tip,
    tone,
    tones,
)

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


def test_a_tooltip_is_wide_enough_for_a_path(qapp: QApplication) -> None:
    path = "/home/operator/projects/a-long-folder-name/home2/tasks/0123456789abcdef"
    label = QLabel(plain_tip(f"{path}\n{'word ' * 40}"))
    label.setWordWrap(True)  # as in a tool tip
    lines = round(label.sizeHint().height() / label.fontMetrics().lineSpacing())
    assert label.sizeHint().width() >= label.fontMetrics().horizontalAdvance(path)
    assert 4 <= lines <= 5


def test_an_unknown_state_still_has_a_colour(qapp: QApplication) -> None:
    assert tone("EXPLODED", palette_of(True)) == tones(palette_of(True))["muted"]


@pytest.mark.parametrize("dark", [False, True])
def test_more_contrast_is_seven_to_one_and_without_tints(dark: bool) -> None:
    palette = palette_of(dark, high=True)
    roles = QPalette.ColorRole
    base = palette.color(roles.Base)
    assert palette.color(roles.AlternateBase) == base == palette.color(roles.Window)
    shown = {name: colour for name, colour in tones(palette).items() if name not in NOT_TEXT}
    shown |= {role.name: palette.color(role) for role in (roles.Text, roles.PlaceholderText)}
    shown |= {"Link": palette.color(roles.Link)}
    weak = {name: contrast(colour, base) for name, colour in shown.items()}
    assert {name: ratio for name, ratio in weak.items() if ratio < 7} == {}
    chosen = contrast(palette.color(roles.HighlightedText), palette.color(roles.Highlight))
    assert chosen >= 7


def test_who_asks_for_more_contrast_gets_it_and_can_give_it_back(qapp: QApplication) -> None:
    qapp.setProperty(MORE_CONTRAST, True)
    try:
        apply_theme(qapp, Theme.LIGHT)
        assert is_high_contrast(qapp.palette())
    finally:
        qapp.setProperty(MORE_CONTRAST, False)
        apply_theme(qapp, Theme.LIGHT)
    assert not is_high_contrast(qapp.palette())


@pytest.mark.parametrize(
    ("dark", "high"), [(True, False), (True, True), (False, True), (False, False)]
)
def test_unchecked_boxes_are_visible(qapp: QApplication, dark: bool, high: bool) -> None:
    box = QCheckBox("x")
    qapp.setProperty(MORE_CONTRAST, high)
    try:
        apply_theme(qapp, Theme.DARK if dark else Theme.LIGHT)
        picture = box.grab().toImage()
        ground = qapp.palette().color(QPalette.ColorRole.Window)
        row = [picture.pixelColor(x, picture.height() // 2) for x in range(20)]
        assert max(contrast(colour, ground) for colour in row) >= 3
    finally:
        qapp.setProperty(MORE_CONTRAST, False)
        apply_theme(qapp, Theme.LIGHT)
