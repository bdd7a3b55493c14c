"""The choice of the browser, and the message when there is none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from engine import doctor
from engine.browser.chromium import locate
from engine.model.config import Settings
from engine.model.errors import BrowserMissing

posix = pytest.mark.skipif(sys.platform == "win32", reason="makes programs out of shell scripts")


def program(path: Path, says: str = "Chromium 1.2.3.4", then: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n{then}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing installed, whose path is one empty folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(locate, "downloads", lambda: tmp_path / "browsers")
    monkeypatch.setattr(locate, "_installed", lambda: iter(()))
    monkeypatch.setattr(locate, "HEADLESS_SHELL", "no-such-program")
    return folder


@posix
def test_the_setting_comes_before_everything(bare: Path, tmp_path: Path) -> None:
    program(bare / "chromium-headless-shell")
    mine = program(tmp_path / "mine" / "chrome")
    assert locate.locate(str(mine)).path == str(mine)


def test_a_wrong_setting_is_named_and_nothing_else_is_taken(tmp_path: Path) -> None:
    wrong = str(tmp_path / "no" / "chrome")
    with pytest.raises(BrowserMissing) as missing:
        locate.locate(wrong)
    assert str(missing.value) == (
        f"Chromium could not be started: {wrong} is not a program that can be run."
    )
    assert "OC_BROWSER" in missing.value.advice


@posix
def test_the_headless_shell_is_for_headless_work_only(bare: Path) -> None:
    shell = program(bare / "chromium-headless-shell")
    chrome = program(bare / "google-chrome")
    assert locate.locate().path == str(shell)
    assert locate.locate(headless=False).path == str(chrome)


@posix
def test_chrome_comes_before_edge_and_edge_before_chromium(bare: Path) -> None:
    for name in ("chromium", "microsoft-edge", "google-chrome"):
        path = program(bare / name)
        assert locate.locate().path == str(path)


@posix
def test_the_own_download_precedes_installed_browsers(bare: Path, tmp_path: Path) -> None:
    program(bare / "google-chrome")
    for revision in ("999", "1200"):
        program(tmp_path / "browsers" / f"chromium-{revision}" / "chrome-linux" / "chrome")
        (tmp_path / "browsers" / f"chromium-{revision}" / locate.COMPLETE).touch()
    assert "chromium-1200" in locate.locate().path


@posix
def test_a_download_that_is_not_complete_is_not_found(bare: Path, tmp_path: Path) -> None:
    program(tmp_path / "browsers" / "chromium-1200" / "chrome-linux" / "chrome")
    with pytest.raises(BrowserMissing):
        locate.locate()


def test_without_a_browser_the_doctor_tells_every_place(bare: Path, tmp_path: Path) -> None:
    with pytest.raises(BrowserMissing) as missing:
        locate.locate()
    assert str(missing.value).endswith("no browser was found on this machine.")
    (told,) = doctor.browser(Settings.at(home=tmp_path))
    for name in ("chromium-headless-shell", "google-chrome", "msedge", "chromium"):
        assert name in told.text


@posix
def test_a_file_that_cannot_be_run_is_no_browser(bare: Path, tmp_path: Path) -> None:
    plain = tmp_path / "chrome"
    plain.write_text("not a program")
    with pytest.raises(BrowserMissing):
        locate.locate(str(plain))


@posix
def test_the_doctor_gets_the_version_and_the_places(bare: Path) -> None:
    path = program(bare / "chromium", says="Chromium 156.0.8078.79 built on Debian")
    told = locate.describe()
    assert told.found is not None
    assert told.found.path == str(path)
    assert told.version == "156.0.8078.79"
    assert [place.where for place in told.places if place.found] == ["chromium"]


@posix
def test_a_silent_version_query_has_a_limit(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "VERSION_LIMIT_S", 0.2)
    monkeypatch.setenv("PATH", f"{bare}{os.pathsep}{os.defpath}")
    path = program(bare / "slow-browser", then="exec sleep 30")
    assert locate.version_of(str(path)) == ""


@posix
def test_a_version_is_not_taken_from_the_other_lines_of_a_wrapper(tmp_path: Path) -> None:
    path = tmp_path / "chromium"
    lines = ("Gtk-Message: 12:00:01.123: no module", "Chromium 131.0.6778.108 snap")
    path.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
    path.chmod(0o755)
    assert locate.version_of(str(path)) == "131.0.6778.108"


@posix
def test_of_two_versions_that_an_update_leaves_on_windows_the_newer_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    for name in ("140.0.7339.9", "140.0.7339.80", "99.0.1.1", "SetupMetrics"):
        (tmp_path / name).mkdir()
    assert locate.version_of(str(tmp_path / "chrome.exe")) == "140.0.7339.80"


@posix
def test_a_program_whose_folder_cannot_be_listed_has_no_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert locate.version_of(str(tmp_path / "missing" / "chrome.exe")) == ""
