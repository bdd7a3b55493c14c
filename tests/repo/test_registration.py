"""Desktop files match the program's own description."""

from __future__ import annotations

import configparser
import plistlib
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from engine.model.config import VERSION
from gui.app import APP_NAME, DESKTOP_ID, _parse
from gui.desktop.launch_request import SCHEME

PLACE = Path(__file__).resolve().parents[2] / "resources"
TASK = "0123456789abcdef"


def test_the_desktop_file_hands_links_and_files_to_the_program() -> None:
    entry = configparser.ConfigParser(interpolation=None, delimiters="=")
    entry.optionxform = str  # type: ignore[assignment]  # configparser's way to keep the case
    entry.read(PLACE / "linux" / f"{DESKTOP_ID}.desktop", "utf-8")
    main = entry["Desktop Entry"]
    assert main["Exec"] == f"{APP_NAME} -- %U"
    assert main["MimeType"] == f"x-scheme-handler/{SCHEME};"
    assert main["Icon"] == DESKTOP_ID
    for name in main["Actions"].rstrip(";").split(";"):
        command, *options = entry[f"Desktop Action {name}"]["Exec"].split()
        assert command == APP_NAME
        _parse(options)  # leaves the test with SystemExit if there is no such option


def test_the_metainfo_names_the_same_program_and_version() -> None:
    root = ElementTree.parse(PLACE / "linux" / f"{DESKTOP_ID}.metainfo.xml").getroot()
    assert root.findtext("id") == DESKTOP_ID
    assert root.findtext("launchable") == f"{DESKTOP_ID}.desktop"
    release = root.find("releases/release")
    assert release is not None
    assert release.get("version") == VERSION


@pytest.mark.skipif(shutil.which("appstreamcli") is None, reason="no appstreamcli here")
def test_software_centres_accept_the_metainfo() -> None:
    file = PLACE / "linux" / f"{DESKTOP_ID}.metainfo.xml"
    done = subprocess.run(
        ["appstreamcli", "validate", "--no-net", "--no-color", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    wrong = [line for line in done.stdout.splitlines() if line.strip()[:2] in ("E:", "W:")]
    assert wrong == []


def test_the_bundle_takes_the_same_links() -> None:
    facts = plistlib.loads((PLACE / "macos" / "Info.plist").read_bytes())
    assert facts["CFBundleIdentifier"] == DESKTOP_ID
    assert facts["CFBundleShortVersionString"] == VERSION
    assert [one["CFBundleURLSchemes"] for one in facts["CFBundleURLTypes"]] == [[SCHEME]]


def test_windows_hands_a_link_over_as_one_word_that_is_no_option() -> None:
    text = (PLACE / "windows" / "registration.nsh").read_text("utf-8")
    installer = (PLACE.parent / "packaging" / "windows" / "installer.nsi").read_text("utf-8")
    assert f'!define APP_ID "{DESKTOP_ID}"' in text
    assert f'!define SCHEME "{SCHEME}"' in text
    command = re.search(r'\\shell\\open\\command" "" \'(.*)\'$', text, re.MULTILINE)
    assert command is not None
    assert command[1] == '"$INSTDIR\\openchrome-monitor.exe" -- "%1"'
    assert "!insertmacro Register\n" in installer
    assert "!insertmacro Unregister\n" in installer
    assert 'SysAllocString(w "${APP_ID}")' in installer
    # a link is written by strangers: what looks like an option in it must not become one
    assert _parse(["--", f"{SCHEME}://task/{TASK}"]).what == [f"{SCHEME}://task/{TASK}"]
    assert _parse(["--", "--root=/elsewhere"]).what == ["--root=/elsewhere"]


def test_windows_unregisters_every_class_that_it_registers() -> None:
    text = (PLACE / "windows" / "registration.nsh").read_text("utf-8")
    written = set(re.findall(r'WriteRegStr HKCU "\$\{CLASSES\}\\([^"]+)"', text))
    removed = set(re.findall(r'DeleteRegKey HKCU "\$\{CLASSES\}\\([^"]+)"', text))
    assert written
    assert all(any(f"{key}\\".startswith(f"{one}\\") for one in removed) for key in written)
    assert all(len(key) > 3 for key in removed)
