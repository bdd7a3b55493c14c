"""Whatever the umask says: folders of the program are 0700 and its files are 0600."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.site.site import Site
from tests.support.octask import FAST

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes mean nothing on this system")
ROOT = Path(__file__).resolve().parents[2]
WINDOW = """
import os, sys
from pathlib import Path
from PySide6.QtWidgets import QApplication
from gui.app import _write_crashes_down
from gui.desktop.launch_request import Instance
from gui.context.preferences import Memory
app = QApplication([])
memory = Memory()
memory.keep_text("theme", "dark")
memory.save()
_write_crashes_down()
one = Instance(Path(sys.argv[1]))
assert one.claim()
one.listen()
print("ready", flush=True)
sys.stdin.read()
"""


def surroundings(user: Path) -> dict[str, str]:
    """The environment of a user whose home is `user`, and nothing of ours."""
    ours = ("OPENCHROME", "XDG_", "HOME", "TMPDIR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    temp = user.parent / "temp"
    temp.mkdir(exist_ok=True)
    return {**kept, "HOME": str(user), "TMPDIR": str(temp), "PYTHONPATH": str(ROOT)}


def open_to_others(place: Path) -> Iterator[str]:
    """Everything below `place` that is not for its owner alone."""
    for path in place.rglob("*"):
        mode = path.lstat().st_mode
        wanted = 0o700 if stat.S_ISDIR(mode) else 0o600
        if not stat.S_ISLNK(mode) and not stat.S_ISSOCK(mode) and stat.S_IMODE(mode) != wanted:
            yield f"{stat.S_IMODE(mode):04o} {path.relative_to(place)}"


@pytest.fixture
def user(tmp_path: Path) -> Path:
    place = tmp_path / "user"
    place.mkdir()
    return place


@pytest.mark.thorough("63")
@pytest.mark.case("R48")
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_everything_that_is_made_is_its_owners_alone(user: Path, umask: int) -> None:
    words = [sys.executable, "-m", "tests.trust.everything", str(user / ".openchrome")]
    if umask == 0:
        words.append("--browser")  # it makes what the other does, and pictures
    ran = subprocess.run(
        words, env=surroundings(user), umask=umask, capture_output=True, timeout=250, check=False
    )
    assert ran.returncode == 0, ran.stderr.decode()
    made = {path.name for path in user.rglob("*")}
    assert {"meta.json", "events.jsonl", "pages.jsonl", "result.json", "lock"} <= made
    assert {"task-runs", "progress-contracts", "comet-runs", "audit", ".runners"} <= made
    assert not list(open_to_others(user))
    assert not list((user.parent / "temp").rglob("*"))


@pytest.mark.case("R48")
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_log_settings_and_lock_files_are_private(user: Path, umask: int) -> None:
    window = subprocess.Popen(
        [sys.executable, "-c", WINDOW, str(user)],
        env={**surroundings(user), "QT_QPA_PLATFORM": "offscreen"},
        umask=umask,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert window.stdout is not None
        assert window.stdout.readline() == b"ready\n"
        made = {path.name for path in user.rglob("*")}
        assert {"window.ini", "openchrome-monitor.crash"} <= made
        assert any(name.endswith(".lock") for name in made)
        assert not list(open_to_others(user))
    finally:
        window.communicate(timeout=120)
    assert window.returncode == 0


@pytest.mark.case("R48")
def test_exports_follow_the_umask(user: Path, site: Site, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    octask = [sys.executable, "-m", "engine.cli"]
    start = [*octask, "start", "crawl", site.url, *FAST, "--max-pages", "1", "--json"]
    subprocess.run(
        start, env=surroundings(user), umask=0, capture_output=True, timeout=150, check=True
    )
    task_id = next((user / ".openchrome" / "tasks").glob("[0-9a-f]*")).name
    export = [*octask, "export", task_id, "--format", "csv", "-o", str(out)]
    subprocess.run(export, env=surroundings(user), umask=0o027, timeout=150, check=True)
    assert stat.S_IMODE(out.stat().st_mode) == 0o640
    assert not list(open_to_others(user))
