"""The command line as a real process on a home of its own, for tests."""

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tests.support.far_limits import PATIENT, is_patient
from tests.support.loaded_octask import CAN_FORK, Loaded

FAST = ["--engine", "static", "--delay-ms", "0", "--respect-robots", "false"]
SLOW = ["--engine", "static", "--delay-ms", "30", "--max-depth", "100"]
SLOW += ["--max-pages", "1000000", "--timeout-ms", "600000"]  # it does not end by itself
ENDLESS = [*SLOW, "--respect-robots", "false"]  # on a site without end, or on a page that hangs
LIMIT_S = 150  # a crowded machine may take its time


@contextmanager
def by_default(name: str) -> Iterator[None]:
    """Let child processes react to a signal that the tests may ignore.

    SIGHUP is ignored under `nohup`, and SIGINT in the background of a script.
    """
    number = getattr(signal, name, None)
    if number is None:
        yield
        return
    before = signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(number, before)


class Octask:
    """The command line on a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._started: list[subprocess.Popen[str]] = []

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "engine.cli", *words]

    def environment(self) -> dict[str, str]:
        places = [str(Path(__file__).resolve().parents[2])]
        places += [PATIENT] * is_patient({**os.environ})
        return {**os.environ, "PYTHONPATH": os.pathsep.join(places), "PYTHONWARNINGS": "error"}

    def __call__(self, *words: str, code: int = 0, place: bool = True) -> str:
        """Run to its end; the exit code must be `code`, and no traceback may be printed."""
        where = ["--home", str(self.home)] if place else []
        ended = run(*words, *where, environment=self.environment())
        said = (ended.stdout + ended.stderr).decode("utf-8", "replace")
        assert "Traceback" not in said, said
        assert ended.returncode == code, said
        return said

    def start(self, *words: str) -> subprocess.Popen[str]:
        with by_default("SIGHUP"):
            running = subprocess.Popen(
                self.command(*words, "--home", str(self.home)),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=self.environment(),
            )
        self._started.append(running)
        return running

    def end(self) -> None:
        """Kill the programs that still run, as after a failed test."""
        for running in self._started:
            if running.poll() is None:
                running.kill()
                running.communicate()

    def tasks(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self("list", "--json"))["tasks"]
        return found

    def pages(self, task_id: str) -> int:
        path = self.home / "tasks" / task_id / "pages.jsonl"
        return path.read_bytes().count(b"\n") if path.exists() else 0


_idle: list[Loaded] = []  # loaded programs of this test run; each answers one call at a time


def run(
    *words: str, given: bytes = b"", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run `octask` to its end in a process of its own, with `given` on its standard input.

    It is forked from a program that has all modules loaded, which spares 0.8 s of CPU.
    """
    command = [sys.executable, "-m", "engine.cli", *words]
    environment = {**os.environ} if environment is None else environment
    if not CAN_FORK:
        return subprocess.run(
            command, input=given, capture_output=True, timeout=LIMIT_S, env=environment, check=False
        )
    program = _idle.pop() if _idle else Loaded().__enter__()
    answer = program(*words, given=given, environment=environment, limit_s=LIMIT_S)
    _idle.append(program)
    if answer.code is None:
        raise subprocess.TimeoutExpired(command, LIMIT_S, answer.out, answer.err)
    return subprocess.CompletedProcess(command, answer.code, answer.out, answer.err)


def run_as_text(
    *words: str, given: str = "", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run as `run` does, with text in the place of bytes."""
    ended = run(*words, given=given.encode(), environment=environment)
    out, err = (said.decode().replace("\r\n", "\n") for said in (ended.stdout, ended.stderr))
    return subprocess.CompletedProcess(ended.args, ended.returncode, out, err)


@atexit.register
def end_loaded_programs() -> None:
    """End all that answer no call."""
    while _idle:
        _idle.pop().__exit__(None, None, None)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)  # no event to wait for: another process changes it


def said_until(stream: IO[str], words: str) -> str:
    """What a program says, line by line, up to the line with `words`; it may take LIMIT_S."""
    lines: list[str] = []

    def read() -> None:
        while line := stream.readline():
            lines.append(line)
            if words in line:
                return

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(LIMIT_S)
    assert lines, f"nothing was said, and not: {words}"
    assert words in lines[-1], "".join(lines)
    return "".join(lines)


def only_task(octask: Octask) -> str:
    root = octask.home / "tasks"
    until(lambda: root.is_dir() and [name for name in os.listdir(root) if name[0] != "."])
    return next(name for name in os.listdir(root) if name[0] != ".")
