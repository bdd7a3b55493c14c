"""The exit codes that scripts rely on, as numbers, and the one that two Ctrl-C end with."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import pytest

from engine.cli import calls, exit_codes
from engine.contracts.bulk_progress import BulkCompletionRefused
from engine.ledger.record_store import RecordNotFound
from engine.model.errors import EngineError, InvalidArguments, NotATaskId, TaskNotFound, WaitTimeout
from engine.model.records import Status
from tests.support.endless_site import endless
from tests.support.octask import ENDLESS, LIMIT_S, Octask, only_task, until


def test_the_codes_are_the_promised_numbers() -> None:
    assert calls.BY_STATUS == {Status.COMPLETED: 0, Status.FAILED: 1, Status.CANCELLED: 3}
    told = dict(calls.BY_ERROR)
    assert told[InvalidArguments] == told[NotATaskId] == 2
    assert told[TaskNotFound] == told[RecordNotFound] == 4
    assert told[BulkCompletionRefused] == 5
    assert told[WaitTimeout] == 124
    assert exit_codes.KILLED == 130
    assert calls.exit_code(EngineError(message="anything else")) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
def test_a_second_interrupt_ends_the_program_at_once(octask: Octask, site: Any) -> None:
    run = octask.start("start", "crawl", endless(site), *ENDLESS)
    task_id = only_task(octask)
    until(lambda: octask.pages(task_id))
    lock = octask.home / "tasks" / task_id / ".lock.lock"
    lock.mkdir()  # so that no cancel can be written, however long this takes: it stays young
    os.utime(lock, (time.time() + 3_600,) * 2)
    run.send_signal(signal.SIGINT)
    assert run.stderr is not None
    heard = any("Press Ctrl-C again" in line for line in run.stderr)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=LIMIT_S)
    assert (heard, run.returncode) == (True, 130)
