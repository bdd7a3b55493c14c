"""Other processes of the program: a script, its arguments, and its output line by line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[2]
LEDGER = """
import json, os, signal, sys, time
from pathlib import Path
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
root = Path(sys.argv[1])
lease = Lease.acquire(root)
ledger = Ledger(root, lease=lease)
def say(**word):
    print(json.dumps(word), flush=True)
"""
ENGINE = """
import asyncio, json, os, signal, sys, time
from pathlib import Path
from engine.model.config import Settings
from engine.model.errors import EngineError
from engine.service.engine import Engine
home = Path(sys.argv[1])
def say(**word):
    print(json.dumps(word), flush=True)
async def with_engine(work):
    engine = Engine(Settings(home=home, root=home / "tasks"), accepts=True)
    await engine.open()
    try:
        await work(engine)
    finally:
        await engine.close()
"""


def started(script: str, *words: object, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Run `script` with our modules; `before` are words in front of the interpreter."""
    return subprocess.Popen(
        [*before, sys.executable, "-c", script, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPO,
        env={**os.environ, "PYTHONPATH": str(REPO)},
    )


def heard(program: subprocess.Popen[str]) -> dict[str, Any]:
    """The next line that a program says; fails with its last words when there is none."""
    assert program.stdout is not None
    line = program.stdout.readline()
    if not line:
        raise AssertionError(program.communicate(timeout=90)[1])
    word: dict[str, Any] = json.loads(line)
    return word


def told(program: subprocess.Popen[str], word: str = "") -> None:
    """Say `word` to a program that waits for a line."""
    assert program.stdin is not None
    program.stdin.write(f"{word}\n")
    program.stdin.flush()


def ended(program: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """Wait for the end of a program, which must be a good one; what else it said."""
    out, errors = program.communicate(timeout=120)
    assert "Traceback" not in errors, errors
    assert program.returncode == 0, errors
    return [json.loads(line) for line in out.splitlines()]


def until(condition: Callable[[], object], limit_s: float = 90.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)  # no event to wait for: another process changes it


def open_files(pid: int) -> set[str]:
    """What a process has open (Linux)."""
    found: set[str] = set()
    with suppress(OSError):  # it has ended meanwhile: it has nothing open any more
        for number in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):  # closed meanwhile
                found.add(os.readlink(f"/proc/{pid}/fd/{number}"))
    return found
