"""Worker processes: one task each, which outlives the process that started it.

The request and its secrets reach the worker through a pipe, never by its command line or a file.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

from engine.kinds.traits import COMMANDS_TRAITS
from engine.model.config import Settings
from engine.model.errors import EngineError, InvalidArguments, Problem, WorkerFailed
from engine.model.program import apart, program_command

HIDDEN_VERB = "_worker"


def worker_command() -> list[str]:
    """Return the command line of a worker."""
    return [*program_command(), HIDDEN_VERB]


def detach(settings: Settings, request: Mapping[str, Any]) -> dict[str, Any]:
    """Start the task in a worker and return its record.

    Raises:
        WorkerFailed: the worker refused the request, or ended before it owned the task.
    """
    place = {
        "home": str(settings.home),
        "root": str(settings.root),
        "browser": settings.browser_path,
        "agent": settings.agent_id,
        "files": str(settings.allow_files) if settings.allow_files else None,
        "private": [*settings.allow_private],
        "secrets": [*settings.allow_secrets],
        "proxy": settings.proxy.words,
        "cluster": settings.cluster,
    }
    worker = subprocess.Popen(
        worker_command(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        **apart(),
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    with worker.stdin, worker.stdout:
        try:
            worker.stdin.write(json.dumps({"place": place, "request": request}).encode())
            worker.stdin.close()
        except BrokenPipeError:
            pass  # it has ended already; its answer has the reason
        answer = worker.stdout.readline()
    worker.returncode = 0  # it outlives this handle by design: no warning on deletion
    return _answer(answer)


def _answer(line: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except ValueError:
        raise WorkerFailed(reason="it ended before it had taken the task") from None
    if "error" in answer:
        raise _worker_error(answer["error"])
    record: dict[str, Any] = answer["record"]
    return record


def _worker_error(error: dict[str, Any]) -> EngineError:
    """Rebuild the worker's error."""
    if error.get("problems"):
        return InvalidArguments(tuple(Problem(**each) for each in error["problems"]))
    return WorkerFailed(reason=str(error.get("message", "")))


def needs_this_process(kind: str, args: Mapping[str, Any]) -> bool:
    """Return whether the task uses a browser instance or a tab of the process that starts it."""
    if args.get("instanceId") is not None or args.get("tab") is not None:
        return True
    commands = args.get("commands") if kind == COMMANDS_TRAITS.name else None
    listed = commands if isinstance(commands, list | tuple) else ()
    return any(isinstance(one, Mapping) and one.get("tool_name") == _INSTANCES for one in listed)


_INSTANCES = "browser_instance"  # the tool that opens and closes instances
