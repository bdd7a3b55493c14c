"""State colours are distinct for colour-blind users."""

from __future__ import annotations

import asyncio
from itertools import combinations
from pathlib import Path

import pytest
from PySide6.QtGui import QColor, QPalette

from gui.style import theme
from gui.style.theme import palette_of, tone
from tests.gui.test_theme import contrast
from tests.gui.windows import app, opened

# Machado et al. 2009, severity 1: what the colour looks like, for linear red, green and blue.
BLIND = {
    "protan": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deutan": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "tritan": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}
LEAST_APART = 0.25  # of the way from black to white, in some direction


def seen(colour: QColor, rows: tuple[tuple[float, ...], ...]) -> list[float]:
    linear = [part**2.2 for part in (colour.redF(), colour.greenF(), colour.blueF())]
    mixed = [sum(a * b for a, b in zip(row, linear, strict=True)) for row in rows]
    return [min(1.0, max(0.0, part)) ** (1 / 2.2) for part in mixed]


@pytest.mark.parametrize("blind", BLIND)
@pytest.mark.parametrize("dark", [False, True])
def test_state_colours_differ_for_colour_blind_users(blind: str, dark: bool) -> None:
    palette = palette_of(dark, apart=True)
    colours = [tone(name, palette) for name in ("completed", "failed", "attention")]
    for one, other in combinations([seen(colour, BLIND[blind]) for colour in colours], 2):
        assert max(abs(a - b) for a, b in zip(one, other, strict=True)) >= LEAST_APART


@pytest.mark.parametrize("high", [False, True])
@pytest.mark.parametrize("dark", [False, True])
def test_they_can_be_read_as_well_as_the_usual_ones(dark: bool, high: bool) -> None:
    palette = palette_of(dark, high, apart=True)
    base = palette.color(QPalette.ColorRole.Base)
    for name in theme.DISTINCT_TONES[dark]:
        assert contrast(tone(name, palette), base) >= 7


async def test_the_choice_holds_at_once_and_can_be_taken_back(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        preferences = session.window.desk.preferences
        usual = tone("failed", app().palette())
        preferences.set("appearance.distinct", True)
        while tone("failed", session.window.palette()) == usual:
            await asyncio.sleep(0)
        preferences.set("appearance.distinct", False)
        while tone("failed", session.window.palette()) != usual:
            await asyncio.sleep(0)
