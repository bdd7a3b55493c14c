"""A task in the background: one worker process that owns it before the command returns.

The request reaches the worker by pipe, never by argument or file: it may hold a password.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from engine.model.config import Settings
from engine.model.errors import EngineError, WorkerFailed

HIDDEN_VERB = "_worker"


def worker_command() -> list[str]:
    """How to start this very program as a worker; a packaged one has no interpreter to call."""
    if getattr(sys, "frozen", False):
        return [sys.executable, HIDDEN_VERB]
    # -P: a module that lies in the folder of the moment must not be taken for one of ours
    return [sys.executable, "-P", "-m", "engine.cli", HIDDEN_VERB]


def detach(settings: Settings, request: dict[str, Any]) -> dict[str, Any]:
    """Start the task in a worker and return its record as the worker wrote it down.

    Raises:
        WorkerFailed: the worker refused the request, or ended before it had taken it.
    """
    place = {
        "home": str(settings.home),
        "root": str(settings.root),
        "browser": settings.browser_path,
        "agent": settings.agent_id,
        "files": str(settings.allow_files) if settings.allow_files else None,
    }
    worker = subprocess.Popen(
        worker_command(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        **_apart(),
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    with worker.stdin, worker.stdout:
        try:
            worker.stdin.write(json.dumps({"place": place, "request": request}).encode())
            worker.stdin.close()
        except BrokenPipeError:
            pass  # it ended already; what it had to say is in its answer
        answer = worker.stdout.readline()
    worker.returncode = 0  # it lives on by design: no warning when this handle goes
    return _answer(answer)


def _answer(line: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except ValueError:
        raise WorkerFailed(reason="it ended before it had taken the task") from None
    if "error" in answer:
        raise _told(answer["error"])
    record: dict[str, Any] = answer["record"]
    return record


def _told(error: dict[str, Any]) -> EngineError:
    """The worker's refusal, as the error that it was."""
    from engine.model.errors import InvalidArguments, Problem

    if error.get("problems"):
        return InvalidArguments(tuple(Problem(**each) for each in error["problems"]))
    return WorkerFailed(reason=str(error.get("message", "")))


def _apart() -> dict[str, Any]:
    """Out of this terminal's reach: its Ctrl-C and its closing are not meant for the worker."""
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
        return {"creationflags": flags}
    return {"start_new_session": True}
