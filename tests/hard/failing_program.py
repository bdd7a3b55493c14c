"""The command line as a whole, and a call that fails: a sentence and a code, no traceback."""

from __future__ import annotations

import errno
import os
import random
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.hard.judging import unreadable
from tests.hard.syscalls import MUTATING, Call, parsed, within
from tests.support.octask import FAST, Octask

LIMIT_S = 90.0


def crawled(home: Path, url: str, options: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """`octask start crawl` of three pages, under strace."""
    octask = Octask(home)
    command = octask.command("start", "crawl", url, *FAST, "--max-pages", "3", "--home", str(home))
    return subprocess.run(
        ["strace", "-f", "--seccomp-bpf", "-qq", "-y", "-s", "64", *options, *command],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**octask.environment(), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        check=False,
    )


def calls_of(home: Path, url: str, trace: Path) -> list[Call]:
    """The calls on the home, numbered in their own thread as strace counts them.

    Those that open are left out: at the same number another thread opens what it imports.
    """
    done = crawled(home, url, ["-ff", "-o", str(trace), "-e", f"trace={','.join(MUTATING)}"])
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: list[Call] = []
    for part in sorted(trace.parent.glob(f"{trace.name}.*")):
        found += within(list(parsed(part.read_text("utf-8", "replace"))), home)
    return [call for call in found if not call.name.startswith("open")]


def failed_starts(
    folder: Path, url: str, errors: Sequence[str], count: int, seed: int
) -> Iterator[str]:
    """Let `count` calls fail (in each thread), one a start of the program; what is not as
    promised."""
    calls = calls_of(folder / "whole", url, folder / "trace")
    for number, call in enumerate(random.Random(seed).choices(calls, k=count)):
        home, error = folder / f"home{number}", errors[number % len(errors)]
        fault = f"inject={call.name}:error={error}:when={call.number}"
        done = crawled(home, url, ["-o", "/dev/null", "-e", f"trace={call.name}", "-e", fault])
        for why in problems(home, done, os.strerror(getattr(errno, error))):
            yield f"octask: {call} {error}: {why}"


def problems(home: Path, done: subprocess.CompletedProcess[str], reason: str) -> Iterator[str]:
    said = done.stdout + done.stderr
    if "Traceback" in said:
        yield f"a traceback: {said}"
    if done.returncode not in (0, 1):
        yield f"it ended with {done.returncode}: {said}"
    if done.returncode == 1 and reason not in said and "read-only" not in said:
        yield f"it does not say why: {said}"
    yield from unreadable(home)
