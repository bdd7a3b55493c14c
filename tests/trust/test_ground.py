"""The place of a ledger: other writers, the disk, and warnings about them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.doctor import place
from engine.ledger import filesystem_checks
from engine.ledger.filesystem_checks import (
    Mount,
    concerns,
    disk_concern,
    disk_kind,
    unreliable_notices,
)
from engine.ledger.watch import Changes, Watch
from engine.model.config import Settings
from engine.service.engine import Engine
from tests.support.octask import Octask
from tests.trust.plain_user import run_plainly

posix = pytest.mark.skipif(os.name != "posix", reason="modes mean nothing on this system")
OTHER = 65534
PLANT: dict[str, tuple[Callable[[Path], object], str]] = {
    "open to all": (lambda root: root.chmod(0o777), "Anybody on this machine can write to"),
    "open to its group": (lambda root: root.chmod(0o770), "Others of its group can write to"),
    "of another user": (lambda root: os.chown(root, OTHER, -1), "belongs to another user"),
    "below a folder open to all": (
        lambda root: root.parent.chmod(0o777),
        "Anybody can put another folder in the place of",
    ),
}


@pytest.fixture(params=PLANT)
def open_root(home: Path, request: pytest.FixtureRequest) -> tuple[Path, str]:
    """A ledger that others could change, and the words that tell of it."""
    root = home / "tasks"
    root.mkdir(mode=0o700)
    if request.param == "of another user" and os.geteuid() != 0:
        pytest.skip("only root gives a folder away")
    make, words = PLANT[request.param]
    make(root)
    return root, words


@posix
@pytest.mark.case("R49")
def test_doctor_reports_a_ledger_writable_by_others(open_root: tuple[Path, str]) -> None:
    root, words = open_root
    found = [one for one in place(Settings.at(home=root.parent)) if one.state == "warning"]
    assert [one for one in found if words in one.text and str(root) in one.text and one.advice]


@posix
@pytest.mark.case("R49")
async def test_a_writable_ledger_is_used_with_a_warning(open_root: tuple[Path, str]) -> None:
    root, words = open_root
    for accepts in (False, True):
        engine = Engine(Settings.at(home=root.parent), accepts=accepts)
        await engine.open()
        try:
            health = engine.health()
            assert await engine.tasks.list() == []
        finally:
            await engine.close()
        assert any(words in text for text in health.concerns)
        assert not health.warnings
        assert not health.read_only


@posix
@pytest.mark.case("R49")
def test_the_command_line_warns_once_beside_its_answer(home: Path) -> None:
    octask = Octask(home)
    (home / "tasks").mkdir(mode=0o777)
    (home / "tasks").chmod(0o777)
    ran = subprocess.run(
        octask.command("list", "--json", "--home", str(home)),
        env=octask.environment(),
        capture_output=True,
        text=True,
        timeout=150,
        check=True,
    )
    assert ran.stdout.startswith("{")
    assert ran.stderr.count(str(home / "tasks")) == 2  # the sentence, and the command that mends
    assert ran.stderr.count("Anybody on this machine") == 1


@posix
def test_a_private_ledger_and_one_below_a_sticky_folder_are_not_spoken_of(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    root = shared / "home" / "tasks"
    root.mkdir(mode=0o700, parents=True)
    assert not filesystem_checks.privacy_concerns(root, root.parent)


@pytest.mark.case("R53")
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("nfs4", "network disk (nfs4)"),
        ("cifs", "network disk (cifs)"),
        ("smbfs", "network disk (smbfs)"),
        ("remote", "network disk (remote)"),
        ("strange", "not known here (strange)"),
        ("", "not known here (unknown)"),
    ],
)
def test_a_disk_whose_locks_may_not_hold_is_named(tmp_path: Path, kind: str, words: str) -> None:
    mounted = [Mount("/", "ext4"), Mount(str(tmp_path), kind), Mount(str(tmp_path / "a"), "xfs")]
    concern = disk_concern(tmp_path / "ab", lambda: mounted)
    assert concern is not None
    assert words in concern.text
    assert "locks may not hold" in concern.text
    assert disk_concern(tmp_path / "a" / "b", lambda: mounted) is None


@pytest.mark.case("R53")
def test_of_two_disks_at_one_place_the_one_on_top_counts(tmp_path: Path) -> None:
    lower, upper = Mount(str(tmp_path), "autofs"), Mount(str(tmp_path), "nfs")
    assert disk_kind(tmp_path / "tasks", lambda: [lower, upper]) == "nfs"


@pytest.mark.case("R53")
def test_unknown_disks_need_a_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psutil.disk_partitions", lambda all: [])
    assert "does not report every change" in unreliable_notices(tmp_path)
    assert concerns(tmp_path, tmp_path)


def test_the_disk_of_this_machine_is_known(tmp_path: Path) -> None:
    assert disk_concern(tmp_path) is None


@pytest.mark.case("R53")
async def test_on_a_network_disk_a_watch_polls_and_still_uses_what_it_hears(home: Path) -> None:
    watch = Watch(home, scan_s=60, poll_s=0.05, notice_check=lambda _: "nfs does not tell")
    await watch.start()
    try:
        assert (watch.state, watch.lasting_fault) == ("polling", "nfs does not tell")
        rounds: list[Changes] = [await watch.changes(60) for _ in range(3)]
        assert all(one.rescan for one in rounds)
        (home / "0123456789abcdef").mkdir()
        heard: set[str] = set()
        while not heard:
            heard = set((await watch.changes(60)).ids)
        assert heard == {"0123456789abcdef"}
    finally:
        await watch.stop()


@pytest.mark.case("R49")
def test_a_ledger_of_another_user_can_be_read_and_whose_it_is_is_told(home: Path) -> None:
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("only root gives a folder away")
    Octask(home)("reap")  # makes the ledger
    os.chown(home / "tasks", OTHER, -1)
    (home / "tasks").chmod(0o755)
    ran = run_plainly(home, "list", "--json")
    assert ran.returncode == 0, ran.stderr
    assert f"belongs to another user (number {OTHER})" in ran.stderr
    refused = run_plainly(home, "start", "browser_task", "--objective", "look")
    assert (refused.returncode, "The ledger is read-only" in refused.stderr) == (1, True)
