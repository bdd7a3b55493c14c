"""The program around the window: its options, pictures, self-test, and one window per ledger."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from engine.model.config import VERSION
from gui.app import keep_customs
from gui.desktop.launch_request import Instance, is_kept_back
from gui.engine_link.scheduling import TaskSet
from gui.startup.loop import NoScreen, check_screen, platform_for, wanted_screens
from tests.gui.windows import heard

ROOT = Path(__file__).resolve().parents[2]


def program(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the program to its end on a machine without a screen."""
    known = {key: value for key, value in os.environ.items() if key != "QT_QPA_PLATFORM"}
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-m", "gui.app", *words],
        env=known | {"DISPLAY": "", "WAYLAND_DISPLAY": ""} | env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def test_the_version_is_told() -> None:
    done = program("--version")
    assert (done.returncode, done.stdout.strip()) == (0, f"openchrome-monitor {VERSION}")


def test_an_unknown_option_is_bad_usage() -> None:
    done = program("--frobnicate")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_relative_root_in_the_environment_is_refused_in_a_sentence() -> None:
    done = program("--shot", "x.png", OPENCHROME_TASK_ROOT="relative/tasks")
    assert done.returncode == 1
    assert "absolute path" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.thorough("empty")
@pytest.mark.parametrize("scene", ["main", "start", "empty"])
def test_a_picture_is_saved_without_a_screen(tmp_path: Path, scene: str) -> None:
    file = tmp_path / "shot.png"
    done = program("--home", str(tmp_path / "home"), "--shot", str(file), "--scene", scene)
    assert (done.returncode, done.stderr) == (0, "")
    picture = QImage(str(file))
    assert picture.width() >= 900
    assert len({picture.pixel(x, 300) for x in range(0, picture.width(), 7)}) > 1


def test_a_picture_before_the_first_start_shows_no_trouble_and_makes_no_folder(
    tmp_path: Path,
) -> None:
    home, pictures = tmp_path / "home", []
    for scene in ("main", "empty"):
        file = tmp_path / f"{scene}.png"
        done = program("--home", str(home), "--shot", str(file), "--scene", scene)
        assert (done.returncode, done.stderr) == (0, "")
        pictures.append(QImage(str(file)).copy(210, 60, 960, 350))  # without the folder's name
    assert pictures[0] == pictures[1]
    assert not home.exists()


def test_a_picture_of_a_root_that_is_a_file_shows_the_trouble(tmp_path: Path) -> None:
    (tmp_path / "tasks").write_text("no folder")
    file = tmp_path / "shot.png"
    done = program("--root", str(tmp_path / "tasks"), "--shot", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert file.stat().st_size > 1000


def test_a_picture_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "nowhere" / "shot.png"
    done = program("--home", str(tmp_path / "home"), "--shot", str(file), "--scene", "empty")
    assert done.returncode == 1
    assert done.stderr == f"The picture cannot be written to {file}.\n"


def test_the_self_test_passes_and_leaves_no_process() -> None:
    done = program("--self-test")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
    assert done.stderr == ""


def test_the_self_test_says_what_is_missing() -> None:
    done = program("--self-test", OC_BROWSER="/nowhere/chromium")
    assert done.returncode == 1
    assert "/nowhere/chromium is not a program that can be run" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_the_first_paint_needs_neither_playwright_nor_watchdog() -> None:
    heavy = ["playwright", "watchdog", "aiohttp", "html_to_markdown", "click", "rich"]
    code = f"import sys, gui.app; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("environ", "platform", "told"),
    [
        ({}, "linux", {"QT_QPA_PLATFORM": "offscreen"}),
        ({"DISPLAY": ":0"}, "linux", {"QT_QPA_PLATFORM": "xcb;offscreen"}),
        (
            {"DISPLAY": ":0", "WAYLAND_DISPLAY": "w"},
            "linux",
            {"QT_QPA_PLATFORM": "wayland;xcb;offscreen"},
        ),
        ({"QT_QPA_PLATFORM": "vnc"}, "linux", {"QT_QPA_PLATFORM": "vnc;offscreen"}),
        ({"QT_QPA_PLATFORM": "offscreen"}, "linux", {}),
        ({"QT_QPA_PLATFORM": "offscreen:x;xcb"}, "linux", {}),
        ({}, "darwin", {}),
        ({}, "win32", {}),
    ],
)
def test_no_screen_is_needed(environ: dict[str, str], platform: str, told: dict[str, str]) -> None:
    assert platform_for(environ, platform) == told


@pytest.mark.parametrize(
    ("environ", "drawn_on", "fails"),
    [
        ({}, "offscreen", False),
        ({"QT_QPA_PLATFORM": "offscreen"}, "offscreen", False),
        ({"WAYLAND_DISPLAY": "w"}, "wayland", False),
        ({"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}, "xcb", False),
        ({"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}, "offscreen", True),
        ({"QT_QPA_PLATFORM": "xcb"}, "offscreen", True),
    ],
)
def test_a_named_screen_must_exist(environ: dict[str, str], drawn_on: str, fails: bool) -> None:
    wanted = wanted_screens(environ, "linux")
    with pytest.raises(NoScreen) if fails else nullcontext():
        check_screen(wanted, drawn_on)


@pytest.mark.parametrize(
    ("platform", "token", "kept"),
    [("wayland", "", True), ("wayland-egl", "", True), ("wayland", "x", False), ("xcb", "", False)],
)
def test_attention_is_requested_on_wayland(platform: str, token: str, kept: bool) -> None:
    assert is_kept_back(platform, token) is kept


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="others have one screen")
@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"WAYLAND_DISPLAY": "nobody-listens"}, "wayland"),
        ({"QT_QPA_PLATFORM": "wayland", "WAYLAND_DISPLAY": "nobody-listens"}, "wayland"),
        ({"QT_QPA_PLATFORM": "no-such-thing"}, "no-such-thing"),
    ],
)
def test_a_broken_screen_is_reported(tmp_path: Path, environ: dict[str, str], named: str) -> None:
    done = program("--home", str(tmp_path / "home"), XDG_RUNTIME_DIR=str(tmp_path), **environ)
    assert done.returncode == 1
    assert f"Qt cannot use the screen that is spoken of ({named})" in done.stderr
    assert "Check WAYLAND_DISPLAY" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="others have one screen")
def test_a_picture_needs_no_screen_also_where_one_is_spoken_of(tmp_path: Path) -> None:
    file = tmp_path / "shot.png"
    words = ("--home", str(tmp_path / "home"), "--shot", str(file), "--scene", "empty")
    done = program(*words, QT_QPA_PLATFORM="wayland", XDG_RUNTIME_DIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert not QImage(str(file)).isNull()


@pytest.mark.parametrize(("platform", "bare"), [("darwin", True), ("linux", False)])
def test_menu_icons_follow_the_platform(qapp: QApplication, platform: str, bare: bool) -> None:
    hidden = Qt.ApplicationAttribute.AA_DontShowIconsInMenus
    try:
        keep_customs(qapp, platform)
        assert qapp.testAttribute(hidden) is bare
    finally:
        qapp.setAttribute(hidden, False)


CALLER = """
import sys
import time
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from gui.desktop import launch_request as instance
from gui.desktop.launch_request import Instance
instance.ANSWER_MS = 120_000  # the other one may take its time
app = QCoreApplication([])
other = Instance(Path(sys.argv[1]), Path(sys.argv[2]))
print(other.claim(), other.hand_over({"raise": True}))
"""


async def test_a_second_start_hands_over_to_the_first(tmp_path: Path) -> None:
    root, place = tmp_path / "tasks", tmp_path / "run"
    first = Instance(root, place)
    assert first.claim()
    first.listen()
    called = heard(first.called)
    second = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CALLER, str(root), str(place), stdout=subprocess.PIPE, cwd=ROOT
    )
    said, _ = await second.communicate()
    assert said.split() == [b"False", b"True"]
    assert await called == ({"raise": True},)
    first.release()


def test_another_ledger_has_its_own_window(qapp: QApplication, tmp_path: Path) -> None:
    one, two = Instance(tmp_path / "a", tmp_path), Instance(tmp_path / "b", tmp_path)
    assert one.claim()
    assert two.claim()
    one.release()
    two.release()


def test_the_next_window_may_claim_what_was_released(qapp: QApplication, tmp_path: Path) -> None:
    first, second = Instance(tmp_path / "a", tmp_path), Instance(tmp_path / "a", tmp_path)
    assert first.claim()
    assert not second.claim()
    first.release()
    assert second.claim()
    second.release()


async def test_nothing_spawned_outlives_its_task_set() -> None:
    told: list[Exception] = []
    tasks = TaskSet(told.append)
    ended = asyncio.Event()

    async def long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async def broken() -> Any:
        raise ValueError("seen")

    tasks.spawn(long(), name="long")
    tasks.spawn(broken(), name="broken")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [str(error) for error in told] == ["seen"]
    tasks.spawn(long(), name="called off before its first step")
    await tasks.close()
    assert ended.is_set()
    tasks.spawn(long(), name="too late")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to send")
def test_a_terminated_window_closes_in_order_and_prints_nothing(tmp_path: Path) -> None:
    words = [sys.executable, "-X", "dev", "-m", "gui.app", "--home", str(tmp_path / "home")]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as run:
        lease = tmp_path / "home" / "tasks" / ".runners"
        deadline = time.monotonic() + 150
        while not (lease.is_dir() and os.listdir(lease)) and time.monotonic() < deadline:
            assert run.poll() is None, run.communicate()
            time.sleep(0.05)  # another process: there is nothing to wait on but its file
        run.terminate()
        said, _ = run.communicate(timeout=120)
    assert (run.returncode, said) == (130, b"")
