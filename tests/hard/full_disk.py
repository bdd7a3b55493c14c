"""A disk of 256 KiB that fills up under running tasks, and is then made read-only: no corruption.

A process with a mount table of its own works on a small tmpfs. While it is full, what cannot
be written is refused with one sentence or waited out with one banner; once there is room
again, the same process goes on without a restart.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.model.config import Settings
from engine.model.errors import EngineError, LedgerReadOnly, LedgerWriteFailed
from engine.model.records import TaskRecord
from engine.service.engine import Engine
from fixtures.site.site import Site
from tests.hard.figures import BESIDE_OTHERS, Figures
from tests.hard.judging import left, unreadable

SIZE = "256k"
BLOCK = 4096
LIMIT_S = 240.0
REFUSED_S = 2.0 * BESIDE_OTHERS  # an answer, and no time-out
REPO = Path(__file__).resolve().parents[2]
SLOW = {"engine": "static", "delay_ms": 150, "max_pages": 8, "respect_robots": False}
QUICK = {"engine": "static", "delay_ms": 0, "max_pages": 2, "respect_robots": False}
COMMANDS = {
    "task_name": "look",
    "task_intention": "to look",
    "commands": [
        {
            "tool_name": "browser_navigate",
            "intention": "to wait",
            "args": {"action": "goto", "url": "http://127.0.0.1:1/"},
        }
    ],
}
FULL = os.strerror(errno.ENOSPC)


def measure(*, short: bool) -> Figures:
    """Fill the disk and make it read-only, once (`short`) or ten times."""
    if missing := why_not():
        return Figures("G14", {"tmpfs": missing})
    rounds = 1 if short else 10
    told = [play() for _ in range(rounds)]
    misses = [miss for one in told for miss in one["misses"]]
    facts = {"rounds": rounds, "size": SIZE, "violations": len(misses), **told[-1]["facts"]}
    return Figures("G14", facts, misses)


def why_not() -> str:
    """Why this machine cannot do it; empty when it can."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return "there is no unshare on this machine"
    with tempfile.TemporaryDirectory() as folder:
        command = [*namespace(), "mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder]
        tried = subprocess.run(command, capture_output=True, check=False, timeout=LIMIT_S)
    return "" if tried.returncode == 0 else "nothing can be mounted here"


def namespace() -> list[str]:
    """A mount table of one's own; who is not root becomes it, in there."""
    return ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]


def play() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [*namespace(), sys.executable, "-m", "tests.hard.full_disk", folder]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=LIMIT_S, cwd=REPO
        )
    try:
        told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {"facts": {}, "misses": [f"no word from the disk: {done.stderr[-2_000:]}"]}
    if "Traceback" in done.stderr:
        told["misses"].append(f"a traceback: {done.stderr[-2_000:]}")
    return told


class Disk:
    """The small disk below `place`; the window's mount table is not this one's."""

    def __init__(self, place: Path) -> None:
        self.place = place
        mount("-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place))

    def fill(self) -> None:
        """Write until nothing fits any more."""
        with open(self.place / "ballast", "ab", buffering=0) as file:
            size = BLOCK
            while size:
                try:
                    file.write(b"x" * size)
                except OSError:
                    size //= 2

    def free(self) -> None:
        (self.place / "ballast").unlink()

    def forbid(self) -> None:
        """Lay a read-only view over it: the lease that is held open forbids to remount it."""
        mount("--bind", str(self.place), str(self.place))
        mount("-o", "remount,bind,ro", str(self.place))

    def allow(self) -> None:
        subprocess.run(["umount", str(self.place)], check=True, timeout=LIMIT_S)


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, timeout=LIMIT_S)


class Trial:
    """One engine on the small disk; `misses` are the promises that it did not keep."""

    def __init__(self, disk: Disk, site: str) -> None:
        self.disk = disk
        self.site = site
        self.home = disk.place / "home"
        self.engine = Engine(Settings.at(home=self.home), accepts=True)
        self.misses: list[str] = []
        self.facts: dict[str, Any] = {}

    async def run(self) -> None:
        await self.engine.open()
        try:
            await self.trouble("full", self.disk.fill, self.disk.free)
            await self.trouble("read-only", self.disk.forbid, self.disk.allow)
        finally:
            await self.engine.close()
        self.misses += [f"at the end: {why}" for why in unreadable(self.home)]
        self.misses += [f"left behind: {path}" for path in left(self.home)]

    async def trouble(self, name: str, begin: Callable[[], None], end: Callable[[], None]) -> None:
        """A crawl runs; writing ends; what is asked for is refused; writing goes on, and it all."""
        record = await self.engine.requests.start("crawl", {"url": self.site, **SLOW})
        await until(lambda: self.pages(record.task_id) >= 2)
        begin()
        before = self.tasks()
        await self.refused(name, "crawl", {"url": self.site, **QUICK})
        await self.refused(name, "commands", COMMANDS)
        if self.tasks() != before:
            self.misses.append(f"{name}: a task that was refused is there")
        await until(lambda: any("Cannot" in one or "read-only" in one for one in self.said()))
        self.facts[f"{name}: banner"] = [one.replace(str(self.home), "~") for one in self.said()]
        if len(set(self.said())) != len(self.said()) or len(self.said()) > 2:
            self.misses.append(f"{name}: the banner says too much: {self.said()}")
        self.misses += [f"{name}: {why}" for why in unreadable(self.home)]
        end()
        began = time.monotonic()
        await self.over(name, record)
        again = await self.engine.requests.start("crawl", {"url": self.site, **QUICK})
        await self.over(name, again, "COMPLETED")
        self.facts[f"{name}: goes on after (s)"] = round(time.monotonic() - began, 2)
        await self.engine.commands.reap()  # which every engine does twice a minute
        await self.settled(name)

    async def refused(self, name: str, kind: str, args: dict[str, Any]) -> None:
        began = time.monotonic()
        try:
            await self.engine.requests.start(kind, args)
        except (LedgerWriteFailed, LedgerReadOnly) as error:
            self.facts.setdefault(f"{name}: {kind}", str(error).replace(str(self.home), "~"))
            if name == "full" and FULL not in str(error):
                self.misses.append(f"{name}: {kind} was refused with: {error}")
        except EngineError as error:
            self.misses.append(f"{name}: {kind} was refused with {error.code}: {error}")
        else:
            self.misses.append(f"{name}: {kind} was accepted")
        if (took_s := time.monotonic() - began) > REFUSED_S:
            self.misses.append(f"{name}: {kind} was refused only after {took_s:.0f} s")

    async def over(self, name: str, record: TaskRecord, status: str = "") -> None:
        """It ends, in this process, with a record that says how."""
        ended = await self.engine.tasks.wait(record.task_id, timeout_ms=60_000)
        why = f": {ended.error.message}" if ended.error is not None else ""
        self.facts.setdefault(f"{name}: the crawl ended", ended.status + why)
        if status and ended.status != status:
            self.misses.append(f"{name}: a crawl ended {ended.status}: {ended.error}")
        await self.engine.tasks.join(record.task_id)
        run_id = ended.engine.run_id if ended.engine is not None else None
        await asyncio.to_thread(self.engine.runs.settle)
        run = self.engine.runs.get_run(run_id or "none")
        if run is None or not run.is_terminal:
            self.misses.append(f"{name}: the run of an ended task is {run and run.status}")

    async def settled(self, name: str) -> None:
        await until(lambda: not self.said())
        if self.said():
            self.misses.append(f"{name}: the banner stays: {self.said()}")

    def said(self) -> list[str]:
        return list(self.engine.health().warnings)

    def pages(self, task_id: str) -> int:
        place = self.engine.settings.root / task_id / "pages.jsonl"
        return place.read_bytes().count(b"\n") if place.exists() else 0

    def tasks(self) -> list[str]:
        return sorted(path.name for path in self.engine.settings.root.iterdir())


async def until(condition: Callable[[], object]) -> None:
    """Until it holds, or for 60 s: what is asked next tells the difference."""
    ends = time.monotonic() + 60
    while not condition() and time.monotonic() < ends:
        await asyncio.sleep(0.02)


def work(place: Path) -> None:
    """Be the process on the small disk; the last line tells what came of it."""
    with Site(pages=40) as site:
        trial = Trial(Disk(place), site.url)
        asyncio.run(trial.run())
    print(json.dumps({"facts": trial.facts, "misses": trial.misses}), flush=True)


if __name__ == "__main__":
    work(Path(sys.argv[1]))
