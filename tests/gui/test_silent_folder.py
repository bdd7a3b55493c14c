"""The window on a folder that does not answer reports that and keeps its rows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from engine.model.config import Settings
from gui.context.preferences import Memory
from gui.startup.crash_handler import CrashHandler
from gui.startup.session import Session
from tests.gui.windows import opened, until
from tests.support.dead_mount import dead_mount
from tests.support.task_folders import write_meta

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts by FUSE")
SILENT = "The ledger folder does not answer"


@pytest.fixture(autouse=True)
def told_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.ledger.watch.ANSWER_S", 2.0)
    monkeypatch.setattr("gui.engine_link.bridge.SILENT_S", 2.0)


@pytest.mark.thorough
@pytest.mark.case("R98")
async def test_a_folder_that_falls_silent_is_told_and_its_rows_stay(tmp_path: Path) -> None:
    root = tmp_path / "home" / "tasks"
    for number in range(3):
        write_meta(root, number, "COMPLETED")
    async with opened(tmp_path / "home") as session:
        window = session.window
        # On a busy machine the folder may not answer within the short limit of this test.
        await until(lambda: window.model.rowCount() == 3, session.bridge.batch)
        with dead_mount(root):
            session.bridge.rescan()
            await until(lambda: window.banner.title == SILENT, session.bridge.health)
            assert window.model.rowCount() == 3
            assert window.area.state == "table"
        await until(lambda: not window.banner.title, session.bridge.health)
        # Who was reading when the mount went away got an error, and may read once more.
        await until(lambda: window.model.rowCount() == 3, session.bridge.batch)


@pytest.mark.case("R98")
async def test_a_window_that_opens_on_a_silent_folder_says_so_and_goes_on(tmp_path: Path) -> None:
    root = tmp_path / "home" / "tasks"
    write_meta(root, 1, "COMPLETED")
    settings = Settings.at(home=tmp_path / "home")
    session = Session(settings, Memory(tmp_path / "window.ini"), CrashHandler())
    window = session.window
    try:
        with dead_mount(root):
            session.open()
            await until(lambda: window.banner.title == SILENT, session.bridge.health)
        await until(lambda: window.model.rowCount() == 1, window.bridge.loaded)
        await until(lambda: not window.banner.title, session.bridge.health)
    finally:
        window.remember()
        await session.close()
