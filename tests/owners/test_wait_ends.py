"""`octask wait` and its watcher: each end of a wait has its exit code and message."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from engine.ledger import wait
from engine.ledger.ledger import Ledger
from engine.ledger.wait import wait_terminal
from engine.model.errors import WaitTimeout
from tests.hard.reapers import write_foreign
from tests.support.octask import Octask
from tests.support.processes import open_files, until


def living(octask: Octask) -> str:
    """A task whose owner lives: this very process."""
    return write_foreign(octask.home / "tasks", os.getpid())


@pytest.mark.case("R58")
def test_wait_has_exit_codes_for_unknown_limit_and_removal(octask: Octask) -> None:
    task_id = living(octask)
    unknown = octask("wait", "0" * 16, code=4)
    assert f"There is no task {'0' * 16}" in unknown
    late = json.loads(octask("wait", task_id, "--timeout-ms", "200", "--json", code=124))
    assert late["error"]["code"] == "ETIMEDOUT"
    assert late["error"]["message"] == f"Task {task_id} did not end within 200 ms."


@pytest.mark.case("R58")
@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc to look in")
def test_a_deleted_task_ends_wait(octask: Octask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OC_LEDGER_AWAY_S", "0.5")
    task_id = living(octask)
    folder = octask.home / "tasks" / task_id
    waiting = octask.start("wait", task_id, "--timeout-ms", "90000")
    until(lambda: "anon_inode:inotify" in open_files(waiting.pid))  # it listens, so it waits
    folder.rename(folder.with_name(".gone"))  # at once: half of it would be a damaged task
    out, errors = waiting.communicate(timeout=120)
    assert "Traceback" not in errors
    assert f"Task {task_id} was removed." in out + errors
    assert waiting.returncode == 1


@pytest.mark.case("R58")
async def test_a_slow_watcher_delays_no_limit(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, opening, closed = threading.Event(), threading.Event(), threading.Event()

    class Slow:
        recursive = False

        def watch_folder(self, *_: object) -> Any:
            raise OSError("too late")

        def close(self) -> None:
            closed.set()

    def slowly() -> Slow:
        asked.set()
        assert opening.wait(180)
        return Slow()

    monkeypatch.setattr(wait, "open_watcher", slowly)
    task_id = write_foreign(home / "tasks", 1)
    for limit_ms in (100, 1_000, 10_000, 60_000):
        with pytest.raises(WaitTimeout):
            await wait_terminal(Ledger(home / "tasks"), task_id, limit_ms)
        if asked.is_set():  # else the limit was over before anybody could begin to open
            break
    assert not opening.is_set()  # the limit was kept although nothing was open yet
    assert not wait._pollers.get(asyncio.get_running_loop())
    opening.set()
    await asyncio.to_thread(until, closed.is_set)  # and what opened after all was closed


async def test_a_wait_ends_on_time_while_all_its_waits_come_and_go(home: Path) -> None:
    root = home / "tasks"
    ids = [write_foreign(root, 1) for _ in range(20)]

    async def one(task_id: str, limit_ms: int) -> None:
        with pytest.raises(WaitTimeout):
            await wait_terminal(Ledger(root), task_id, limit_ms)

    began = time.monotonic()
    await asyncio.gather(*(one(task_id, 50 + 10 * n) for n, task_id in enumerate(ids)))
    assert time.monotonic() - began < 60
    assert not wait._pollers.get(asyncio.get_running_loop())
