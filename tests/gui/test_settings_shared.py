"""Windows of several ledgers share what was chosen for good: none takes from another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from gui.acknowledged import Acknowledged
from gui.dialogs.setting_parts import CarryOver
from gui.preferences import Preferences
from tests.gui.windows import opened, press

DENSITY, REASONS, THEME = "appearance.density", "force.reasons", "appearance.theme"


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
        part = CarryOver(session.window)
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
