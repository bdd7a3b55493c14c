"""`octask consent-rules` shows and installs the rules for consent banners."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.sample.site import Answer
from tests.support.consent_package import VERSION, package
from tests.support.serving import served

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the folder is set as on Linux")


def octask(place: Path, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "engine.cli", "consent-rules", *words]
    env = {**os.environ, "XDG_DATA_HOME": str(place), "no_proxy": "*"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=env, check=False, timeout=150
    )
    return done.returncode, done.stdout + done.stderr


def test_a_package_is_installed_and_shown(tmp_path: Path) -> None:
    file = package(tmp_path / "given.tgz")
    code, said = octask(tmp_path, "--json")
    assert (code, json.loads(said)["version"]) == (0, None)
    assert octask(tmp_path)[1].startswith("Not installed.")
    code, said = octask(tmp_path, "install", str(file))
    assert code == 0
    assert VERSION in said
    assert json.loads(octask(tmp_path, "--json")[1])["version"] == VERSION


def test_a_pipe_in_place_of_the_package_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tgz")
    code, said = octask(tmp_path, "install", str(tmp_path / "pipe.tgz"))
    assert code == 1
    assert "it is not a file" in said


def test_a_failed_installation_says_the_way_out(tmp_path: Path) -> None:
    code, said = octask(tmp_path, "install", str(tmp_path / "none.tgz"))
    assert code == 1
    assert "npm pack" in said
    with served(lambda _: Answer(b"another file")) as url:
        code, said = octask(tmp_path, "install", "--base-url", url)
    assert code == 1
    assert "checksum" in said
    assert "install that file" in said
