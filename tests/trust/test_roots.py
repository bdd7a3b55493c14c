"""A root that cannot be used as it is: one sentence with the path and the way out, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.model.config import Settings
from engine.model.errors import LedgerUnusable
from tests.support.disk_without_space import full_disk_at
from tests.support.octask import Octask
from tests.trust.plain_user import plainly, run_plainly

ENVELOPE = ("start", "browser_task", "--objective", "look")
DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file": (lambda root: root.write_text("mine"), "this is not a folder"),
    "a dangling link": (
        lambda root: root.symlink_to(root.parent / "nowhere"),
        "this link leads nowhere",
    ),
    "missing with its parents": (lambda root: None, "there is no such folder"),
}


@pytest.fixture(params=DAMAGE)
def bad_root(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, str]:
    make, words = DAMAGE[request.param]
    root = tmp_path / "tasks"
    if request.param.startswith("missing"):
        root = tmp_path / "no" / "such" / "place" / "tasks"
    make(root)
    return root, words


@pytest.mark.case("R51")
def test_a_root_must_be_a_folder(bad_root: tuple[Path, str], home: Path) -> None:
    root, words = bad_root
    ran = run_plainly(home, "list", "--root", str(root))
    first, advice = ran.stderr.splitlines()
    assert ran.returncode == 1
    assert first.startswith(f"{root}: ")
    assert words in first
    assert advice == "Choose another folder with --root, or mend this one."


@pytest.mark.case("R51")
def test_an_unusable_root_stays_unchanged(bad_root: tuple[Path, str], home: Path) -> None:
    root, _ = bad_root
    before = sorted(root.parent.parent.rglob("*")) if root.parent.is_dir() else []
    ran = run_plainly(home, *ENVELOPE, "--root", str(root))
    assert ran.returncode == 1
    assert str(root) in ran.stderr
    after = sorted(root.parent.parent.rglob("*")) if root.parent.is_dir() else []
    assert before == after


@pytest.mark.case("R51")
def test_the_first_task_creates_the_root(home: Path) -> None:
    octask, root = Octask(home), home / "tasks"
    assert '"count": 0' in octask("list", "--json")
    assert not root.exists()
    octask(*ENVELOPE)
    assert root.is_dir()


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    with full_disk_at(tmp_path / "disk") as place:
        yield place


@pytest.mark.case("R51")
def test_a_root_on_a_full_disk_can_be_listed(full_disk: Path) -> None:
    ran = run_plainly(full_disk, *ENVELOPE)
    assert ran.returncode == 1
    assert "Cannot write the task ledger: No space left on device" in ran.stderr
    assert str(full_disk / "tasks") in ran.stderr
    assert "Free some space" in ran.stderr
    assert run_plainly(full_disk, "list").returncode == 0


@pytest.mark.case("R50")
def test_a_read_only_root_takes_no_task(home: Path, read_only: Callable[[Path], None]) -> None:
    root = home / "tasks"
    ledger = Ledger(root, lease=Lease.acquire(root))
    task_id = ledger.create("crawl", {"url": "http://x.test/"}).task_id
    assert ledger.lease is not None
    ledger.lease.release()
    read_only(root)
    listed = run_plainly(home, "list", "--json")
    assert (listed.returncode, task_id in listed.stdout) == (0, True)
    for words in (ENVELOPE, ("start", "crawl", "http://x.test/", "--engine", "static")):
        refused = run_plainly(home, *words)
        assert refused.returncode == 1
        assert f"The ledger is read-only: {root}" in refused.stderr


@pytest.mark.case("R50")
def test_modes_alone_make_a_root_read_only_for_a_plain_user(home: Path) -> None:
    root = home / "tasks"
    Octask(home)("reap")
    root.chmod(0o500)
    try:
        assert run_plainly(home, "list").returncode == 0
        refused = run_plainly(home, *ENVELOPE)
        assert f"The ledger is read-only: {root}" in refused.stderr
    finally:
        root.chmod(0o700)


def test_a_root_that_may_not_be_read_says_so(home: Path) -> None:
    root = home / "tasks"
    root.mkdir()
    root.chmod(0)
    try:
        ran = run_plainly(home, "list")
    finally:
        root.chmod(0o700)
    assert (ran.returncode, f"{root}: this folder may not be read" in ran.stderr) == (1, True)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"OPENCHROME_TASK_ROOT": "tasks"}, "must be an absolute path"),
        ({"OPENCHROME_TASK_ROOT": "~/tasks"}, "must be an absolute path"),
        ({"OPENCHROME_TASK_ROOT": "/x\0y"}, "no path holds the character NUL"),
        ({"OPENCHROME_HOME": "/x\0y"}, "no path holds the character NUL"),
        ({"HOME": ""}, "HOME must be an absolute path"),
    ],
)
def test_unusable_folders_of_the_environment(given: dict[str, Any], words: str) -> None:
    if "HOME" in given and os.name != "posix":
        pytest.skip("HOME means nothing on this system")
    with pytest.raises(LedgerUnusable, match=words):
        Settings.chosen(given)


def test_an_empty_variable_counts_as_none(tmp_path: Path) -> None:
    chosen = Settings.chosen({"OPENCHROME_TASK_ROOT": "", "OPENCHROME_HOME": str(tmp_path)})
    assert chosen.root == Path.home() / ".openchrome" / "tasks"
    assert chosen.home == tmp_path


@pytest.mark.parametrize("name", ["--root", "--home"])
def test_an_empty_folder_is_never_taken_for_the_one_we_are_in(name: str, home: Path) -> None:
    ran = run_plainly(home, "list", name, "", place=False)
    assert (ran.returncode, "this is empty" in ran.stderr) == (2, True)


def test_a_file_as_root_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tasks"
    file.write_text("mine")
    monkeypatch.setenv("OPENCHROME_TASK_ROOT", str(file))
    ran = run_plainly(tmp_path, "list", place=False)
    assert (ran.returncode, ran.stderr.splitlines()[0]) == (1, f"{file}: this is not a folder")


@pytest.mark.case("R50")
def test_an_engine_on_a_root_that_modes_close_knows_before_it_takes_a_task(home: Path) -> None:
    root = home / "tasks"
    Octask(home)("reap")  # leaves a folder of leases behind, in which could still be written
    root.chmod(0o500)
    ask = (
        "import asyncio, sys; from pathlib import Path; from engine.model.config import Settings\n"
        "from engine.service.engine import Engine\n"
        "async def look():\n"
        "    engine = Engine(Settings.at(home=Path(sys.argv[1])), accepts=True)\n"
        "    await engine.open()\n"
        "    print(engine.health().read_only)\n"
        "    await engine.close()\n"
        "asyncio.run(look())"
    )
    try:
        told = subprocess.run(
            plainly([sys.executable, "-c", ask, str(home)]),
            env=Octask(home).environment(),
            capture_output=True,
            text=True,
            timeout=150,
            check=True,
        )
    finally:
        root.chmod(0o700)
    assert told.stdout.strip() == f"The ledger is read-only: {root}"
