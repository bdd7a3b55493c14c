"""CPU of commands that only look, against a bare import of click, rich, msgspec and asyncio.

Every round runs all of them in turn, since the speed of a shared machine changes; each row is the
median of the rounds, and the ratio that of the pairs.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from tests.bench.listing import fill
from tests.bench.report import report
from tests.support.task_folders import task_id

TARGET_HELP, TARGET_READ = 1.5, 2.2  # 90 and 130 ms where the bare import takes 60
BARE = [sys.executable, "-c", "import click, rich, msgspec, asyncio"]
OCTASK = [sys.executable, "-m", "engine.cli"]


def cpu_ms(command: list[str], environ: dict[str, str]) -> float:
    """CPU of one run in ms, its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, timeout=120, env=environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def completion(typed: str) -> dict[str, str]:
    """What a shell tells the program when it completes the line."""
    return {
        "_OCTASK_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split(" ")) - 1),
    }


def commands(home: Path, large: Path) -> dict[str, tuple[list[str], dict[str, str], float | str]]:
    """What is measured: the words, the environment, and the target."""
    first = task_id(0)
    helps = {
        "--version": ["--version"],
        "--help": ["--help"],
        "list --help": ["list", "--help"],
        "start --help": ["start", "--help"],
    }
    reads = {
        "list": ["list", "--home", str(home)],
        "list --json": ["list", "--json", "--home", str(home)],
        "get": ["get", first, "--home", str(home)],
        "get --events": ["get", first, "--events", "--home", str(home)],
        "runs list": ["runs", "list", "--home", str(home)],
        "contract list": ["contract", "list", "--home", str(home)],
    }
    found: dict[str, tuple[list[str], dict[str, str], float | str]] = {
        **{name: ([*OCTASK, *words], {}, TARGET_HELP) for name, words in helps.items()},
        "complete a command": (OCTASK, completion("octask li"), TARGET_HELP),
        "complete an id": (OCTASK, completion(f"octask --home {home} get "), TARGET_HELP),
        **{name: ([*OCTASK, *words], {}, TARGET_READ) for name, words in reads.items()},
    }
    every = ["list", "--limit", "1000", "--home", str(large)]
    return {**found, "list of 1,000 tasks": ([*OCTASK, *every], {}, "")}


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench commands", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args(argv)
    environ = {**os.environ}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a program that is in use is compiled
    with tempfile.TemporaryDirectory() as place:
        home, large = Path(place) / "ten", Path(place) / "thousand"
        fill(home / "tasks", 10)
        fill(large / "tasks", 1_000)
        asked = commands(home, large)
        for words, more, _ in asked.values():  # compiles the modules
            cpu_ms(words, environ | more)
        rounds = [
            (
                cpu_ms(BARE, environ),
                {name: cpu_ms(words, environ | more) for name, (words, more, _) in asked.items()},
            )
            for _ in range(given.rounds)
        ]
    bare = median(one for one, _ in rounds)
    used = {name: median(each[name] for _, each in rounds) for name in asked}
    ratio = {name: median(each[name] / one for one, each in rounds) for name in asked}
    rows = [(name, used[name], ratio[name], asked[name][2]) for name in asked]
    facts = {"bare_ms": bare, "ms": used, "ratio": ratio}
    report(
        "commands", ("command", "ms", "x bare", "at most"), [("bare", bare, 1.0, ""), *rows], facts
    )
