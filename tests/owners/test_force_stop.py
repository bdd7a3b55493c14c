"""Ending a worker that does not stop: only one of ours, only late, and all it did is kept."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.model.config import Settings
from engine.model.records import EngineFields, Status, TaskRecord
from engine.service import commands as module
from engine.service.admission import NO_TERMS
from engine.service.commands import CannotForceStop
from engine.service.engine import Engine
from engine.service.worker_process import detach
from tests.support.engines import opened, until

CRAWL = {"delay_ms": 0, "engine": "static", "max_pages": 3, "timeout_ms": 600_000}


async def detached(home: Path, url: str) -> str:
    asked = {"kind": "crawl", "args": {"url": url, **CRAWL}}
    request = {**asked, "name": None, "parent": None, "terms": to_builtins(NO_TERMS)}
    record = await asyncio.to_thread(detach, Settings.at(home=home), request)
    return str(record["task_id"])


async def record_of(engine: Engine, task_id: str) -> TaskRecord:
    entry = (await engine.tasks.get(task_id)).entry
    assert isinstance(entry, TaskRecord)
    return entry


def asked_at(home: Path, task_id: str, minutes: int) -> None:
    """As if the request to stop had been made so long after the task (or before it)."""
    meta = home / "tasks" / task_id / "meta.json"
    raw = json.loads(meta.read_bytes())
    asked = raw["created_at"] + minutes * 60_000
    meta.write_text(json.dumps({**raw, "cancel_requested_at": asked}))


@pytest.mark.skipif(sys.platform == "win32", reason="a process is made to hang by a signal")
async def test_a_worker_that_hangs_is_ended_and_its_task_settled(home: Path, site: Any) -> None:
    async with opened(home) as engine:
        task_id = await detached(home, f"{site.url}/hang")
        # By then its claim is written and unlocked; who is stopped inside a lock keeps it.
        await until(lambda: site.hits["/hang"])
        pid = int((await record_of(engine, task_id)).pid or 0)
        os.kill(pid, signal.SIGSTOP)
        try:
            await engine.commands.cancel(task_id)
            asked_at(home, task_id, 60)  # just now, however slow this test is
            with pytest.raises(CannotForceStop, match="10 s"):
                await engine.commands.force_stop(task_id)
            asked_at(home, task_id, -1)
            ended = await engine.commands.force_stop(task_id)
        finally:
            os.kill(pid, signal.SIGKILL) if _lives(pid) else None
        assert ended.status == Status.FAILED
        assert ended.error is not None
        assert ended.error.code == "orphaned"


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_task_of_a_program_that_may_run_others_is_never_ended(home: Path) -> None:
    async with opened(home) as engine:
        lease = Lease.acquire(home / "tasks")
        other = Ledger(home / "tasks", lease=lease)
        made = other.create("crawl", {"url": "https://a.invalid/"}, engine=EngineFields())
        other.claim(made.task_id)
        other.request_cancel(made.task_id)
        asked_at(home, made.task_id, -1)
        with pytest.raises(CannotForceStop):
            await engine.commands.force_stop(made.task_id)
        assert (await record_of(engine, made.task_id)).status == Status.RUNNING
        lease.release()


@pytest.mark.parametrize(
    "changes", [{"status": "COMPLETED"}, {"engine": {}}, {"engine": {"runner": "x", "host": "y"}}]
)
async def test_force_stop_needs_a_local_worker(home: Path, changes: dict[str, Any]) -> None:
    fields = {"engine": EngineFields(**changes["engine"])} if "engine" in changes else changes
    record = TaskRecord("0" * 16, "crawl", **{"status": "RUNNING", **fields, "pid": os.getpid()})
    with pytest.raises(CannotForceStop):
        module.force_stop(home / "tasks", record)


async def test_a_task_that_has_ended_meanwhile_needs_no_force(home: Path) -> None:
    async with opened(home) as engine:
        lease = Lease.acquire(home / "tasks")
        other = Ledger(home / "tasks", lease=lease)
        made = other.create("crawl", {"url": "https://a.invalid/"}, engine=EngineFields())
        other.request_cancel(made.task_id)  # it had not begun, and so is cancelled at once
        before = (home / "tasks" / made.task_id / "meta.json").read_bytes()
        ended = await engine.commands.force_stop(made.task_id)
        assert ended.status == Status.CANCELLED
        assert (home / "tasks" / made.task_id / "meta.json").read_bytes() == before
        lease.release()
