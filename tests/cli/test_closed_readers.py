"""A task completes although the output of `octask` is closed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import do, task
from tests.support.endless_site import endless
from tests.support.octask import ENDLESS, FAST, LIMIT_S, Octask, only_task, until

_BOTH = ("stdout", "stderr")
POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has no hang-up and no such pipes")


def closed_pipe() -> int:
    """Writing end of a pipe whose reader is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def ended(
    octask: Octask,
    *words: str,
    stdout: int = subprocess.DEVNULL,
    stderr: int = subprocess.DEVNULL,
    umask: int = -1,
) -> int:
    """Exit code of a process of its own with these streams and this mask."""
    ran = subprocess.run(
        octask.command(*words, "--home", str(octask.home)),
        env=octask.environment(),
        timeout=LIMIT_S,
        check=False,
        stdout=stdout,
        stderr=stderr,
        umask=umask,
    )
    return ran.returncode


@POSIX
@pytest.mark.parametrize("names", [["stderr"], ["stdout"], ["stdout", "stderr"]])
def test_a_crawl_completes_without_its_reader(octask: Octask, site: Any, names: list[str]) -> None:
    nobody = closed_pipe()
    streams = {name: nobody if name in names else subprocess.DEVNULL for name in _BOTH}
    code = ended(octask, "start", "crawl", site.url, *FAST, "--max-pages", "3", **streams)
    os.close(nobody)
    assert code == 0
    assert [task["status"] for task in octask.tasks()] == ["COMPLETED"]


@POSIX
def test_a_rerun_whose_reader_is_gone_is_completed(octask: Octask, site: Any) -> None:
    octask("start", "crawl", site.url, *FAST, "--max-pages", "2")
    nobody = closed_pipe()
    first = octask.tasks()[0]["task_id"]
    assert ended(octask, "rerun", first, stdout=nobody, stderr=nobody) == 0
    os.close(nobody)
    assert [task["status"] for task in octask.tasks()] == ["COMPLETED"] * 2


@POSIX
def test_commands_complete_without_their_reader(octask: Octask, site: Any, tmp_path: Path) -> None:
    file, report = tmp_path / "visit.json", tmp_path / "report.xml"
    file.write_text(json.dumps(task(do("goto", url=site.url))), "utf-8")
    nobody = closed_pipe()
    code = ended(octask, "run", str(file), "--junit", str(report), stdout=nobody, stderr=nobody)
    os.close(nobody)
    assert code == 0
    assert b'failures="0"' in report.read_bytes()


@POSIX
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_an_unwritable_answer_fails_a_completed_task(octask: Octask, site: Any) -> None:
    with open("/dev/full", "wb") as full:
        words = ["start", "crawl", site.url, *FAST, "--max-pages", "2"]
        assert ended(octask, *words, stdout=full.fileno()) == 1
    assert [task["status"] for task in octask.tasks()] == ["COMPLETED"]


@POSIX
@pytest.mark.parametrize("hangups", [1, 2])
def test_a_closed_terminal_cancels_the_crawl(octask: Octask, site: Any, hangups: int) -> None:
    running = octask.start("start", "crawl", endless(site), *ENDLESS)
    task_id = only_task(octask)
    until(lambda: octask.pages(task_id) > 1)
    for _ in range(hangups):  # the system and the shell may both report it
        running.send_signal(signal.SIGHUP)
    running.communicate(timeout=LIMIT_S)
    (task,) = octask.tasks()
    assert task["status"] == "CANCELLED"
    assert task["engine"]["cancel_reason"] == "the terminal was closed"
    result = json.loads(octask("get", task_id, "--result", "--json"))["result"]
    assert len(result["pages"]) == octask.pages(task_id) > 1


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_ledger_path_may_be_invalid_utf_8(octask: Octask, site: Any, tmp_path: Path) -> None:
    octask.home = Path(os.fsdecode(os.fsencode(tmp_path) + b"/h\xe9me"))
    said = octask("start", "crawl", site.url, *FAST, "--max-pages", "2")
    assert "COMPLETED: 2 pages" in said
    assert [task["status"] for task in octask.tasks()] == ["COMPLETED"]


@POSIX
def test_a_umask_that_takes_the_owners_access_away_is_not_obeyed(octask: Octask, site: Any) -> None:
    words = ["start", "crawl", site.url, *FAST, "--max-pages", "2"]
    assert ended(octask, *words, umask=0o777) == 0
    folder = octask.home / "tasks" / octask.tasks()[0]["task_id"]
    assert folder.stat().st_mode & 0o777 == 0o700
    modes = {name: (folder / name).stat().st_mode & 0o777 for name in os.listdir(folder)}
    assert {mode for name, mode in modes.items() if not (folder / name).is_dir()} == {0o600}
