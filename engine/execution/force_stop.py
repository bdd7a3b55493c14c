"""Forced stop of a worker that ignores a stop request: identified as ours, then killed.

A worker (`start --detach`) owns one task and nothing else, so killing it ends only its own browser.
A window or a server may run other tasks: those are never ended from outside.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import psutil

from engine.ledger import machine
from engine.ledger.ownership import Owner, owner_of
from engine.model.errors import EngineError
from engine.model.records import EngineFields, Status, TaskRecord
from engine.model.status import moment

PATIENCE_MS: Final = 10_000  # a healthy one stops within 2 s of the request
WORKER_VERB: Final = "_worker"  # of the command line, as its processes show it


class CannotForceStop(EngineError):
    """The task's process must not be ended from outside, or not yet."""

    code = "cannot_force_stop"
    title = "It cannot be stopped by force"
    sentence = "Task {task_id} cannot be stopped by force: {reason}."
    advice_text = "Ask whoever runs the program that owns it to end that program."


def force_stop(root: Path, record: TaskRecord, patience_ms: int = PATIENCE_MS) -> None:
    """Kill the worker that runs this task, and its children. Reaping settles the task.

    Raises:
        CannotForceStop: it is no worker of ours, or it still has time to stop by itself.
    """
    owner = record.engine
    if record.status != Status.RUNNING or owner is None or not owner.runner:
        raise _cannot(record, "no worker of this program runs it")
    asked = moment(record.cancel_requested_at)
    if asked is None or machine.wall_ms() - asked < patience_ms:
        raise _cannot(record, f"it has {patience_ms // 1000} s to stop by itself when it is asked")
    worker = _worker_of(root, record, owner)
    try:
        family = [worker, *worker.children(recursive=True)]
    except psutil.Error as error:
        raise _cannot(record, f"its process cannot be asked ({error})") from error
    for process in family:
        try:
            process.kill()  # psutil checks the identity, so a reused pid is safe
        except psutil.NoSuchProcess:
            continue
        except psutil.Error as error:
            raise _cannot(record, f"its process cannot be ended ({error})") from error
    psutil.wait_procs(family, timeout=5)


def _worker_of(root: Path, record: TaskRecord, owner: EngineFields) -> psutil.Process:
    """Find the living process that holds the task's lease, if it is a worker on this machine."""
    pid, began = machine.as_pid(record.pid), moment(owner.owner_started_at)
    if owner.host and not machine.same_host(owner.host):
        raise _cannot(record, "it runs on another machine")
    if owner_of(root, record).owner is not Owner.ELSEWHERE:
        raise _cannot(record, "no other process of this machine runs it")
    if pid is None or began is None or not machine.is_process(pid, began):
        raise _cannot(record, "its process is not to be found")
    try:
        found = psutil.Process(pid)
        words = found.cmdline()
    except psutil.Error as error:
        raise _cannot(record, f"its process cannot be asked ({error})") from error
    if WORKER_VERB not in words:
        raise _cannot(record, "the program that runs it may run others, too")
    return found


def _cannot(record: TaskRecord, reason: str) -> CannotForceStop:
    return CannotForceStop(task_id=record.task_id, reason=reason)
