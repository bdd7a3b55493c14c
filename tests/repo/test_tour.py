"""The tour of the window shows pictures that the program makes, and forgets none."""

from __future__ import annotations

import re
from pathlib import Path

from gui.startup.screenshot_tour import STAGES
from tests.shot import TOUR

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_picture_of_the_tour_is_there_is_shown_and_can_be_made_again() -> None:
    shown = set(re.findall(r"!\[[^\]]+\]\(images/(\w+)\.png\)", (DOCS / "window.md").read_text()))
    made = set(TOUR) | {"window"}
    assert shown == made
    assert set(TOUR) <= STAGES.keys()
    assert made <= {file.stem for file in (DOCS / "images").glob("*.png")}
