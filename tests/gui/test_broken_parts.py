"""A part of the window that cannot be created is reported, and the rest works."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel, QPushButton

from engine.model.config import Settings
from gui.app import WindowOpening
from gui.context.preferences import Memory
from gui.desktop.launch_request import Wish
from gui.startup import window_builder
from gui.startup.crash_handler import CrashHandler
from gui.startup.failure_reports import BrokenParts
from gui.startup.window_builder import FEATURES, WindowBuilder
from gui.window.main_window import MainWindow, WindowParts
from tests.gui.result_ledgers import put_task
from tests.gui.test_result_tabs import settled


def breaks(window: MainWindow, parts: WindowParts) -> None:
    raise KeyError("a drawer that is not there")


@asynccontextmanager
async def furnished(home: Path) -> AsyncIterator[tuple[MainWindow, WindowOpening]]:
    """A window as the program makes it."""
    settings = Settings.at(home=home)
    window = MainWindow(Memory(home.parent / "window.ini"), root=str(settings.root))
    door = WindowOpening(window, settings, CrashHandler())
    door.show()
    ended = asyncio.ensure_future(door.ended(Wish(), crashed=False))
    try:
        yield window, door
    finally:
        window.close()
        await ended
        await door.close()


async def test_a_part_that_cannot_be_made_is_told_of_and_the_others_are_there(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put_task(home, 1)
    half, broken = len(FEATURES) // 2, ("broken_part", breaks)
    monkeypatch.setattr(window_builder, "FEATURES", (*FEATURES[:half], broken, *FEATURES[half:]))
    with caplog.at_level(logging.CRITICAL, logger="gui.startup.failure_reports"):
        async with furnished(home) as (window, door):
            await settled(lambda: window.furnished and window.model.total == 1)
            (parts,) = window.findChildren(BrokenParts)
            assert parts.bar is not None
            assert parts.bar.title == "A part of the window is missing"
            said = parts.bar.accessibleName()
            for word in ("broken_part", "KeyError", "window_part_missing", "Start the program"):
                assert word in said
            (log,) = [one for one in parts.bar.findChildren(QPushButton) if one.isVisible()]
            assert log.text() == "Open the log’s folder"
            assert window.area.state == "table"
            assert window.acts["new"].isEnabled()
            assert not door.broken


async def test_a_window_whose_parts_are_all_there_says_nothing_of_them(home: Path) -> None:
    async with furnished(home) as (window, _):
        await settled(lambda: window.furnished)
        (parts,) = window.findChildren(BrokenParts)
        assert parts.bar is None


async def test_where_nothing_can_be_made_the_outline_gives_way_to_what_went_wrong(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def nothing(builder: WindowBuilder) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(WindowBuilder, "_make_list", nothing)
    with caplog.at_level(logging.CRITICAL, logger="gui"):
        async with furnished(home) as (window, door):
            await settled(lambda: door.broken)
            card = window.centralWidget()
            assert card is not None
            said = " ".join(label.text() for label in card.findChildren(QLabel))
            for word in ("could not be made", "the disk is full", "window_broken", "Every task"):
                assert word in said
            (leave,) = [one for one in card.findChildren(QPushButton) if one.text() == "Quit"]
            leave.click()
