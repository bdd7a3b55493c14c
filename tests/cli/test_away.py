"""`octask` while the folder of its ledger is away: it waits, reports that, and continues."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.cli.start import print_obstacle
from tests.support.endless_site import asked_pages, endless, run_out
from tests.support.line_files import whole_lines
from tests.support.octask import ENDLESS, FAST, LIMIT_S, Octask, said_until, until
from tests.support.processes import open_files


def pages(root: Path) -> list[str]:
    return [page["url"] for one in root.glob("*/pages.jsonl") for page in whole_lines(one)]


def crawling(
    octask: Octask, site: Any, *words: str, links: int = 3
) -> tuple[subprocess.Popen[str], Path]:
    """A crawl in the foreground that has two pages, and the folder of its ledger."""
    root = octask.home / "tasks"
    program = octask.start("start", "crawl", endless(site, links), *ENDLESS, *words)
    until(lambda: len(pages(root)) >= 2)
    return program, root


@pytest.mark.case("R94")
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_crawl_continues_while_its_ledger_is_away(octask: Octask, site: Any) -> None:
    program, root = crawling(octask, site)
    (folder,) = [one for one in root.iterdir() if one.name != ".runners"]
    waiting = octask.start("wait", folder.name)
    until(lambda: str(folder) in open_files(waiting.pid))  # it has found the task
    aside = root.with_name("aside")
    root.rename(aside)
    assert program.stderr is not None
    said_until(program.stderr, "The ledger folder is away, waiting.")
    said = octask("cancel", folder.name, code=4)
    assert "is not there" in said
    before = len(pages(aside))
    aside.rename(root)
    until(lambda: len(pages(root)) > before + 5)
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=LIMIT_S)
    assert program.returncode == 3, errors
    assert "The ledger folder is back" in errors
    result = json.loads((folder / "result.json").read_bytes())
    assert [page["url"] for page in result["pages"]] == pages(root)
    assert len(pages(root)) == len(set(pages(root)))
    assert waiting.communicate(timeout=LIMIT_S)[1] == ""
    assert waiting.returncode == 3


@pytest.mark.case("R28")
def test_reap_names_the_tasks_whose_owner_cannot_be_judged_from_here(octask: Octask) -> None:
    folder = octask.home / "tasks" / ("a" * 16)
    folder.mkdir(parents=True)
    owner = {"host": "elsewhere", "runner": "e" * 16}
    raw = {"task_id": folder.name, "kind": "crawl", "status": "RUNNING", "pid": 1, "engine": owner}
    (folder / "meta.json").write_text(json.dumps({**raw, "created_at": 1}))
    said = octask("reap")
    assert f"{folder.name}  left as it is: running on elsewhere" in said
    assert "living owner" not in said


@pytest.mark.case("R95")
def test_lost_ledgers_end_runs(octask: Octask, site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OC_LEDGER_AWAY_S", "0.5")
    program, root = crawling(octask, site)
    root.rename(root.with_name("aside"))
    _, errors = program.communicate(timeout=LIMIT_S)
    assert "the ledger folder was away for more than 0.5 s" in errors
    assert "is back" not in errors
    assert "Traceback" not in errors
    assert program.returncode == 1
    assert not root.exists()


@pytest.mark.case("R95")
def test_a_crawl_whose_task_is_removed_stops_and_says_so(octask: Octask, site: Any) -> None:
    program, root = crawling(octask, site)
    (folder,) = [one for one in root.iterdir() if one.name != ".runners"]
    gone = folder.with_name(".gone")  # whole at once: the run may write into it meanwhile
    folder.rename(gone)
    while gone.exists():
        shutil.rmtree(gone, ignore_errors=True)
    _, errors = program.communicate(timeout=LIMIT_S)
    assert f"Task {folder.name} was removed." in errors
    assert program.returncode == 1


@pytest.mark.case("R20")
def test_a_cancel_by_the_keyboard_that_cannot_be_noted_says_why(octask: Octask, site: Any) -> None:
    program, root = crawling(octask, site)
    (folder,) = [one for one in root.iterdir() if one.name != ".runners"]
    meta, aside = folder / "meta.json", folder / "aside"
    meta.rename(aside)
    meta.mkdir()
    program.send_signal(signal.SIGINT)
    assert program.stderr is not None
    said_until(program.stderr, "not a regular file")
    meta.rmdir()
    aside.rename(meta)
    octask("cancel", folder.name)
    program.communicate(timeout=LIMIT_S)
    assert program.returncode == 3


@pytest.mark.thorough
@pytest.mark.case("R20")
def test_a_crawl_settles_once_its_end_can_be_written(octask: Octask, site: Any) -> None:
    program, root = crawling(octask, site, "--delay-ms", "500", links=1)
    (folder,) = [one for one in root.iterdir() if one.name != ".runners"]
    meta, aside = folder / "meta.json", folder / "aside"
    meta.rename(aside)
    meta.mkdir()
    run_out(site)
    assert program.stderr is not None
    said_until(program.stderr, "not a regular file")
    meta.rmdir()
    aside.rename(meta)
    _, errors = program.communicate(timeout=LIMIT_S)
    assert program.returncode == 0, errors
    assert "is back" not in errors
    assert len(json.loads((folder / "result.json").read_bytes())["pages"]) == asked_pages(site)


@pytest.mark.case("R94")
@pytest.mark.parametrize("left", ["nothing", "a mount point"])
def test_bulk_commands_are_refused_for_an_away_ledger(octask: Octask, site: Any, left: str) -> None:
    root = octask.home / "tasks"
    assert octask("list") == ""  # nothing ever ran here, and nothing is missed
    octask("start", "crawl", site.url, *FAST, "--max-pages", "1")
    (task,) = octask.tasks()
    root.rename(root.with_name("aside"))
    if left == "a mount point":
        root.mkdir()
    asked = (
        *(["list"], ["list", "--json"], ["watch", "--once"], ["reap"]),
        *(["cancel", "--all-matching", "status:running", "--yes"], ["prune", "--keep", "1"]),
    )
    for words in asked:
        assert "is away, or was removed" in octask(*words, code=1), words
    for words in (["get", task["task_id"]], ["wait", task["task_id"]]):
        said = octask(*words, code=4)
        assert "folder is not there" in said or "is away, or was removed" in said
    assert [*root.iterdir()] == [] if root.exists() else left == "nothing"


@pytest.mark.case("R94")
def test_watch_reports_when_its_ledger_goes_and_returns(octask: Octask, site: Any) -> None:
    octask("start", "crawl", site.url, *FAST, "--max-pages", "1")
    root = octask.home / "tasks"
    program = octask.start("watch")
    assert program.stdout is not None
    assert program.stderr is not None
    said_until(program.stdout, "Completed")
    aside = root.with_name("aside")
    root.rename(aside)
    said_until(program.stderr, f"The ledger folder is gone: {root}")
    aside.rename(root)
    said_until(program.stderr, f"The ledger folder is back: {root}")
    said_until(program.stdout, "Completed")
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=LIMIT_S)


@pytest.mark.case("R94")
def test_ctrl_c_while_the_ledger_is_away_promises_nothing(octask: Octask, site: Any) -> None:
    program, root = crawling(octask, site)
    (folder,) = [one for one in root.iterdir() if one.name != ".runners"]
    aside = root.with_name("aside")
    root.rename(aside)
    assert program.stderr is not None
    said_until(program.stderr, "The ledger folder is away, waiting.")
    program.send_signal(signal.SIGINT)
    said_until(program.stderr, "Cancelling")
    aside.rename(root)
    _, errors = program.communicate(timeout=LIMIT_S)
    assert program.returncode == 3, errors
    assert "goes on" not in errors
    assert "is back; the task is being cancelled" in errors
    assert json.loads((folder / "meta.json").read_bytes())["status"] == "CANCELLED"


def test_a_full_disk_is_told_of_a_task_that_is_cancelled_as_of_one_that_goes_on() -> None:
    own = SimpleNamespace(lost=lambda _: None, is_away=lambda _: False, trouble="No space left.")
    engine: Any = SimpleNamespace(own=own)
    said: list[str] = []
    before = print_obstacle(engine, ["1"], "", said.append, ending=False)
    before = print_obstacle(engine, ["1"], before, said.append, ending=True)
    print_obstacle(engine, ["1"], before, said.append, ending=True)
    assert said == [
        "No space left. Waiting; the task goes on when that has ended.",
        "No space left. Waiting; the task is cancelled when that has ended.",
    ]
