"""The first paint: its dependencies, and windows closed or broken before it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QPoint, QRect, QSize, Qt

from engine.model.config import VERSION, Settings
from gui.context.preferences import Memory
from gui.desktop.launch_request import Wish
from gui.window.main_window import FIRST_SIZE, TITLE_HEIGHT, MainWindow, first_size, place_aside

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
import gui.app, gui.app, gui.window.main_window
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
gui.app.PAINT_S = 250  # however long a paint takes here
made = gui.window.main_window.MainWindow.__init__
def act(window):
    rooms = {"engine.service.engine", "gui.engine_link.bridge", "playwright"}
    print("rooms:", sorted(rooms & set(sys.modules)))
    print("Qt's own names:", "Qt" in vars(sys.modules["PySide6.QtCore"]))
    if sys.argv[2] == "close":
        window.close()
        return
    look = QTimer(window, interval=20)
    def tell():
        dialog = QApplication.activeModalWidget()
        if dialog is not None:
            print("told by", type(dialog).__name__)
            look.stop()
            window.close()
    look.timeout.connect(tell)
    look.start()
def init(window, *args):
    made(window, *args)
    window.painted.connect(lambda: act(window))
gui.window.main_window.MainWindow.__init__ = init
if sys.argv[2] == "break":
    sys.modules["gui.startup.window_builder"] = None
sys.exit(gui.app.main(["--home", sys.argv[1], "--new-window"]))
"""

# Qt makes an enumeration of each of its names when one of them is first asked for: 45 ms.
PAINTED = ["rooms: []", "Qt's own names: False"]


def ended(tmp_path: Path, what: str) -> tuple[int, list[str]]:
    env = os.environ | {"QT_QPA_PLATFORM": "offscreen", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "home"), what],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout.splitlines()


def test_a_window_is_painted_before_its_rooms_are_there_and_can_be_closed(tmp_path: Path) -> None:
    assert ended(tmp_path, "close") == (0, PAINTED)


def test_a_window_that_cannot_be_furnished_says_so_in_the_crash_dialog(tmp_path: Path) -> None:
    assert ended(tmp_path, "break") == (1, [*PAINTED, "told by CrashDialog"])


def test_a_window_that_stood_nowhere_yet_fits_the_screen() -> None:
    assert first_size(QSize(1920, 1040)) == FIRST_SIZE
    small = first_size(QSize(1366, 728))
    assert (small.width(), small.height()) == (FIRST_SIZE.width(), 728 - TITLE_HEIGHT)
    assert first_size(QSize(960, 1000)).width() == 960
    assert first_size(QSize(640, 480)) == FIRST_SIZE, "no window of ours fits there"


def test_a_further_window_hides_no_other() -> None:
    room = QRect(0, 24, 1920, 1040)
    assert place_aside(QRect(100, 100, 1180, 760), room) == QPoint(132, 132)
    assert place_aside(QRect(740, 100, 1180, 760), room) == room.topLeft()


async def test_only_the_first_of_its_windows_steps_aside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from gui import app

    # Opened again twice, as for another language.
    aside, folders = list[int](), [tmp_path / "b", tmp_path, None]
    window = SimpleNamespace(step_aside=lambda: aside.append(len(folders)))
    door = SimpleNamespace(window=window, broken=False, when_imported=lambda _: None)

    async def one_window(*_: object, **__: object) -> Path | None:
        return folders.pop(0)

    monkeypatch.setattr(app.WindowOpening, "on", lambda *_: door)
    monkeypatch.setattr(app, "_one_window", one_window)
    alarm = SimpleNamespace(install=lambda: None, watch_loop=lambda _: None)
    monkeypatch.setattr(app, "CrashHandler", lambda: alarm)
    monkeypatch.setattr(app, "dress_first", lambda *_: None)
    monkeypatch.setattr(app, "check_screen", lambda *_: None)
    hints = SimpleNamespace(colorSchemeChanged=SimpleNamespace(connect=lambda _: None))
    opener: Any = SimpleNamespace(styleHints=lambda: hints, platformName=lambda: "offscreen")
    options = app._parse(["--new-window"])
    options.screens = ()
    assert await app._windows(opener, Settings.at(home=tmp_path), Wish(), options) == 0
    assert aside == [3]


def test_a_window_without_a_saved_place_is_placed_by_the_desktop(
    qapp: object, tmp_path: Path
) -> None:
    window = MainWindow(Memory(tmp_path / "window.ini"))
    window.step_aside()
    assert not window.testAttribute(Qt.WidgetAttribute.WA_Moved)


def test_the_version_is_the_one_that_the_package_is_built_with() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
