"""Windows of several ledgers share saved settings without losing any."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from gui.commands.attention import Acknowledged
from gui.context.preferences import LOCK_S, Preferences, locked
from gui.settings.setting_controls import CarryOver
from tests.gui.windows import opened, press

DENSITY, REASONS, THEME = "appearance.density", "force.reasons", "appearance.theme"
ROUNDS = 2
KEYS = (
    ("appearance.letters", "engine.slots", "retention.days", "views.last"),
    ("retention.keep", "retention.gigabytes", "engine.away_s", "browser.path"),
    ("export.folder", "commands.allow_files", "notify.quiet_from", "notify.quiet_until"),
    ("general.language", DENSITY, THEME, "export.format"),
)
_WINDOW = """
import sys
from pathlib import Path
from gui.context import preferences as settings
from gui.commands.attention import Acknowledged
from gui.context.preferences import Preferences
settings.LOCK_S = 60  # a crowded machine is no reason to go on without the lock
folder, rounds, keys = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
print("ready", flush=True)
sys.stdin.readline()
preferences, seen = Preferences(folder / "preferences.json"), Acknowledged(folder / "seen.json")
for number in range(rounds):
    for key in keys:
        preferences.set(key, f"{key} {number}")
        seen.add(f"{key} {number}", ["failed:1"])
        seen.save()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "settings" / "preferences.json"


@pytest.mark.usefixtures("qapp")
def test_what_one_window_chooses_takes_nothing_from_the_other(file: Path) -> None:
    one, other = Preferences(file), Preferences(file)
    one.set(REASONS, ["checked by hand"])
    other.set(DENSITY, "roomy")
    kept = Preferences(file)
    assert kept.get(REASONS, list) == ["checked by hand"]
    assert kept.get(DENSITY, str) == "roomy"


@pytest.mark.usefixtures("qapp")
def test_who_comes_to_a_window_finds_what_was_chosen_in_another(file: Path) -> None:
    one, other = Preferences(file), Preferences(file)
    told: list[str] = []
    other.changed.connect(told.append)
    one.set(THEME, "dark")
    one.set(DENSITY, "roomy")
    other.refresh()
    assert sorted(told) == [DENSITY, THEME]
    assert other.get(THEME, str) == "dark"
    other.refresh()
    assert len(told) == 2, "what is known is not told again"
    one.restore("appearance.")
    other.refresh()
    assert other.get(THEME, str) == "system"


@pytest.mark.usefixtures("qapp")
def test_a_file_that_is_damaged_or_gone_takes_nothing_away(file: Path) -> None:
    here = Preferences(file)
    here.set(THEME, "dark")
    file.write_text("{", "utf-8")
    here.refresh()
    assert here.get(THEME, str) == "dark"
    here.set(DENSITY, "roomy")
    file.unlink()
    here.refresh()
    here.set(REASONS, ["checked by hand"])
    kept = Preferences(file)
    assert [kept.get(THEME, str), kept.get(DENSITY, str)] == ["dark", "roomy"]


@pytest.mark.usefixtures("qapp")
def test_windows_that_save_in_the_same_instant_keep_the_values_of_all(file: Path) -> None:
    windows = [
        subprocess.Popen(
            [sys.executable, "-c", _WINDOW, str(file.parent), str(ROUNDS), *keys],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for keys in KEYS
    ]
    for window in windows:
        assert window.stdout is not None
        assert window.stdout.readline() == "ready\n"
    codes = []
    for window in windows:
        assert window.stdin is not None
        window.stdin.write("go\n")
        window.stdin.flush()
    for window in windows:
        window.communicate(timeout=150)  # 64 saves, each to the disk
        codes.append(window.returncode)
    assert codes == [0] * len(KEYS)
    every = [key for keys in KEYS for key in keys]
    kept = json.loads(file.read_text("utf-8"))["values"]
    assert kept == {key: f"{key} {ROUNDS - 1}" for key in every}
    seen = {f"{key} {number}" for key in every for number in range(ROUNDS)}
    assert Acknowledged(file.with_name("seen.json")).marks.keys() == seen
    assert sorted(each.name for each in file.parent.iterdir()) == [
        *("preferences.json", "preferences.json.bak", "seen.json")
    ]


@pytest.mark.usefixtures("qapp")
def test_what_is_saved_while_another_saves_is_not_taken_back(file: Path) -> None:
    one, other = Preferences(file), Preferences(file)
    one.changed.connect(lambda key: other.set(THEME, "dark") if key == DENSITY else None)
    one.set(DENSITY, "roomy")
    one.set(REASONS, ["checked by hand"])
    kept = Preferences(file)
    assert [kept.get(key, str) for key in (THEME, DENSITY)] == ["dark", "roomy"]
    assert one.get(THEME, str) == "dark"


@pytest.mark.usefixtures("qapp")
def test_a_lock_that_is_held_for_long_stops_no_window(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.parent.mkdir()
    here = Preferences(file)
    assert LOCK_S < 1
    with locked(file):
        here.set(THEME, "dark")
        assert "is saved without its lock" in caplog.text
    assert Preferences(file).get(THEME, str) == "dark"


async def test_a_window_that_gets_the_focus_looks_what_was_chosen(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        preferences = session.window.desk.preferences
        preferences._file = tmp_path / "preferences.json"
        preferences.set(DENSITY, "compact")
        Preferences(tmp_path / "preferences.json").set(DENSITY, "roomy")
        app = QGuiApplication.instance()
        assert isinstance(app, QGuiApplication)
        app.applicationStateChanged.emit(Qt.ApplicationState.ApplicationActive)
        assert preferences.get(DENSITY, str) == "roomy"


async def test_all_defaults_leave_what_a_person_made(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        preferences = session.window.desk.preferences
        view = {"name": "Mine", "query": "status:failed"}
        preferences.set("views.saved", [view])
        preferences.set(REASONS, ["checked by hand"])
        preferences.set(DENSITY, "roomy")
        part = CarryOver(session.window.context)
        press(part, "Restore all defaults")
        assert preferences.get(DENSITY, str) == "normal"
        assert preferences.get("views.saved", list) == [view]
        assert preferences.get(REASONS, list) == ["checked by hand"]
        assert "stayed" in part.said.text()
        part.deleteLater()


@pytest.mark.usefixtures("qapp")
def test_what_two_windows_acknowledge_is_kept_of_both(tmp_path: Path) -> None:
    file = tmp_path / "acknowledged.json"
    first = Acknowledged(file)
    first.add("aa", ["failed:1"])
    first.add("bb", ["failed:2"])
    first.save()
    one, other = Acknowledged(file), Acknowledged(file)
    one.add("cc", ["failed:3"])
    one.drop("aa")
    other.add("dd", ["failed:4"])
    one.save()
    other.save()
    assert sorted(Acknowledged(file).marks) == ["bb", "cc", "dd"]
    file.write_text("rubbish", "utf-8")
    one.add("ee", ["failed:5"])
    one.save()
    assert {"bb", "cc", "ee"} <= set(json.loads(file.read_text("utf-8"))["tasks"])
