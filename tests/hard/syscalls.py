"""System calls of a scene by strace, and making one of them fatal."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.hard.stage import HANG_S, Stage

# What can change a file or a folder, or hold somebody up; "?": not on every processor.
MUTATING = (
    *("?open", "openat", "?creat", "write", "pwrite64", "writev", "fsync", "fdatasync"),
    *("?rename", "renameat", "renameat2", "?mkdir", "mkdirat", "?rmdir", "?unlink", "unlinkat"),
    *("truncate", "ftruncate", "flock", "?link", "linkat", "?symlink", "symlinkat"),
    *("?chmod", "fchmod", "fchmodat", "fallocate", "utimensat"),
)
_LINE = re.compile(r"(?P<name>\w+)\((?P<args>.*)\)\s+= (?P<result>-?\d+|\?)(?:<[^>]*>)?.*")
_OPENED = re.compile(
    r'^(?:AT_FDCWD|\d+)(?:<(?P<folder>[^>]*)>)?, "(?P<name>[^"]*)", (?P<flags>\w[\w|]*)'
)
_FD = re.compile(r"^\d+<(?P<path>[^>]*)>")
_NAMED = re.compile(r'(?:(?:AT_FDCWD|\d+)<(?P<folder>[^>]*)>, )?"(?P<name>[^"]*)"')
_WRITES = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC")


class Call(NamedTuple):
    """One call: the `number`th of its name. `paths` are those that it names or acts on."""

    name: str
    number: int
    paths: tuple[str, ...]
    flags: str
    text: str
    failed: bool

    @property
    def mutates(self) -> bool:
        return self.name not in ("open", "openat") or any(way in self.flags for way in _WRITES)

    @property
    def is_word(self) -> bool:
        """Is it an acknowledgement: a write to a pipe?"""
        return self.name == "write" and self.paths[0].startswith("pipe:")

    def __str__(self) -> str:
        return f"{self.name} #{self.number} ({', '.join(map(last, self.paths))})"


def last(path: str) -> str:
    """The end of a path, without what differs from run to run."""
    return re.sub(r"[0-9a-f]{16}", "…", path.rpartition("/")[2])


def why_not() -> str:
    """Why this machine cannot do it; empty when it can."""
    if sys.platform != "linux":
        return "strace is for Linux"
    if shutil.which("strace") is None:
        return "strace is not on this machine"
    with tempfile.NamedTemporaryFile() as trace:
        tried = subprocess.run(
            ["strace", "-f", "-o", trace.name, "-e", "inject=write:error=EIO:when=9", "true"],
            capture_output=True,
            check=False,
            timeout=HANG_S,
        )
    return "" if tried.returncode == 0 else "strace may not trace here"


def traced(stage: Stage, scene: str, home: Path, trace: Path) -> tuple[dict[str, Any], list[Call]]:
    """Play a scene under a trace: what it said, and every call, in its order."""
    said = played(stage, scene, home, ["-o", str(trace), "-e", f"trace={','.join(MUTATING)}"])
    return said, list(parsed(trace.read_text("utf-8", "replace")))


def injected(
    stage: Stage, scene: str, home: Path, call: Call, fault: str, **words: object
) -> dict[str, Any]:
    """Play a scene with `fault` (see strace: inject) at one call."""
    options = ["-e", f"trace={call.name}", "-o", "/dev/null"]
    options += ["-e", f"inject={call.name}:{fault}:when={call.number}"]
    return played(stage, scene, home, options, **words)


def played(
    stage: Stage, scene: str, home: Path, options: list[str], **words: object
) -> dict[str, Any]:
    child = stage.ask("play", scene=scene, home=str(home), **words)
    if "ready" not in child:
        raise RuntimeError(f"{scene} could not be prepared: {child}")
    command = ["strace", "-y", "-s", "64", *options, "-p", str(child["pid"])]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as strace:
        assert strace.stderr is not None
        while "attached" not in (line := strace.stderr.readline()):
            if not line:
                raise RuntimeError(f"strace did not attach to {scene}")
        said = stage.ask("go")
        strace.wait(HANG_S)
    ids = next((word["ids"] for word in reversed(said["said"]) if "ids" in word), child["ids"])
    return {**said, "ids": ids}


def parsed(trace: str) -> Iterator[Call]:
    counts: Counter[str] = Counter()
    for line in trace.splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        name, args = found["name"], found["args"]
        counts[name] += 1
        flags = opened["flags"] if (opened := _OPENED.match(args)) else ""
        failed = found["result"].startswith("-")
        yield Call(name, counts[name], tuple(_paths(name, args)), flags, args, failed)


def _paths(name: str, args: str) -> Iterator[str]:
    if name in ("write", "pwrite64", "writev", "fsync", "fdatasync", "flock", "ftruncate"):
        by_fd = _FD.match(args)
        yield by_fd["path"] if by_fd else ""
        return
    for named in _NAMED.finditer(args):
        folder, path = named["folder"], named["name"]
        yield path if path.startswith("/") or not folder else f"{folder}/{path}"


def points(calls: list[Call], home: Path) -> list[Call]:
    """The calls that change what is in `home`, lock it, or tell that something is done."""
    return [call for call in within(calls, home) if call.mutates] + [
        call for call in calls if call.is_word
    ]


def within(calls: list[Call], home: Path) -> list[Call]:
    """The calls on files and folders in `home`, those that only look among them."""
    return [call for call in calls if any(str(home) in path for path in call.paths)]
