"""Many processes change one task at once: no change that was acknowledged is ever lost.

Four turns: all of ours together with two Node programs that lock as OpenChrome does; ours
with half of them killed in the middle; ours and one Node program while locks are left
behind by "dead" holders again and again; and a Node program right after one of ours died
inside the lock. Without npm the Node side is left out, and the facts say why.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.ledger.files import Folder
from engine.ledger.lease import Lease
from engine.ledger.ledger import Change, Ledger
from engine.ledger.lock import TaskLock
from engine.model.errors import LockTimeout
from engine.service.maintenance import Tidier
from tests.hard.figures import Figures
from tests.hard.peer import LIMIT_S, answer, node_modules, start_node

REPO = Path(__file__).resolve().parents[2]
RATE, LONGEST_S, NODE_S = 60.0, 2.0, 11.0
OLD_S = 13.0  # Node calls 10 s stale; ours watches each for 8 s, whatever its date


@dataclass(frozen=True)
class Size:
    """How much one run does."""

    processes: int
    mutations: int
    node_updates: int
    plants: int
    aged_s: float  # so much of Node's wait after a death is spared


LONG, SHORT = Size(8, 200, 30, 12, 0.0), Size(3, 25, 3, 2, 9.5)


@dataclass
class Turn:
    """What the programs of one turn acknowledged, and what then stood in the file."""

    acknowledged: int = 0
    counted: int = 0
    in_flight: int = 0
    longest_s: float = 0.0
    lasted_s: float = 0.0
    crashed: int = 0
    node_acknowledged: int = 0
    node_counted: int = 0
    litter: tuple[str, ...] = ()

    @property
    def lost(self) -> int:
        return max(0, self.acknowledged - self.counted)

    @property
    def node_lost(self) -> int:
        return max(0, self.node_acknowledged - self.node_counted)


def work(root: Path, task_id: str, mutations: int) -> None:
    """Add one to `ours`, `mutations` times; a line for each that returned: how long it took."""
    lease = Lease.acquire(root)
    ledger = Ledger(root, lease=lease)

    def count(raw: dict[str, Any]) -> None:
        raw["ours"] = raw.get("ours", 0) + 1

    for _ in range(mutations):
        began = time.monotonic()
        while not changed(ledger, task_id, count):
            pass
        os.write(1, b"%.6f\n" % (time.monotonic() - began))
    lease.release()


def changed(ledger: Ledger, task_id: str, change: Change) -> bool:
    """Was it? Behind a dead lock at every turn somebody may well wait for 15 s: then again."""
    try:
        ledger.mutate(task_id, change)
    except LockTimeout:
        return False
    return True


def die_inside(root: Path, task_id: str) -> None:
    """Take the task's lock and be killed in it."""
    with Folder.at(str(root / task_id)) as folder, TaskLock(folder, task_id):
        os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def task() -> Iterator[tuple[Path, str]]:
    """A fresh ledger with one task in it."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "home" / "tasks"
        lease = Lease.acquire(root)
        try:
            made = Ledger(root, lease=lease).create("crawl", {"url": "http://site.test/"})
            yield root, made.task_id
        finally:
            lease.release()


def together(size: Size, modules: Path | None, *, nodes: int, plants: int = 0) -> Turn:
    """All of ours and `nodes` Node programs at once, between locks that dead holders left."""
    with task() as (root, task_id):
        began = time.monotonic()
        folder = root / task_id
        ours = [start_ours(root, task_id, size.mutations) for _ in range(size.processes)]
        updates = size.node_updates + plants
        peers = [start_node(modules, folder, n, updates) for n in range(nodes)] if modules else []
        over = threading.Event()
        planter = threading.Thread(target=plant, args=(folder / ".lock.lock", plants, over))
        planter.start()
        turn = Turn()
        for program in ours:
            hear(program, turn)
        turn.lasted_s = time.monotonic() - began
        for program in peers:
            said = answer(program)
            turn.node_acknowledged += said["done"]
            turn.crashed += said["crashed"]
        over.set()
        planter.join()
        return counted(root, task_id, turn, len(peers))


def half_killed(size: Size) -> Turn:
    """Ours alone; every second one is killed somewhere in the middle of its work."""
    chance = random.Random()
    with task() as (root, task_id):
        began = time.monotonic()
        ours = [start_ours(root, task_id, size.mutations) for _ in range(size.processes)]
        turn = Turn()
        killers: list[threading.Thread] = []
        said: list[int] = []
        for program in ours[::2]:
            turn.in_flight += 1
            after = chance.randrange(1, size.mutations // 2)
            killers.append(threading.Thread(target=kill_at, args=(program, said, after)))
            killers[-1].start()
        for program in ours[1::2]:
            hear(program, turn)
        for program in ours[::2]:
            program.wait(LIMIT_S)
        for killer in killers:
            killer.join(LIMIT_S)
        turn.acknowledged += sum(said)
        turn.lasted_s = time.monotonic() - began
        return counted(root, task_id, turn, 0)


def after_our_death(size: Size, modules: Path | None) -> float | None:
    """How long a Node program waits for the lock that one of ours died in, in s."""
    if modules is None:
        return None
    with task() as (root, task_id):
        module("--die", root, task_id).communicate(timeout=LIMIT_S)
        left = root / task_id / ".lock.lock"
        at = time.time() - size.aged_s
        os.utime(left, (at, at))
        said = answer(start_node(modules, root / task_id, 0, 1))
        waited_s = float(said["longestMs"]) / 1000
        return waited_s + size.aged_s if said["done"] == 1 else float("inf")


def plant(place: Path, plants: int, over: threading.Event) -> None:
    """Hold the lock as a peer does that died long ago, `plants` times, as soon as it is free."""
    while plants and not over.is_set():
        try:
            place.mkdir()
        except FileExistsError:
            over.wait(0.003)
            continue
        then = time.time() - OLD_S
        with suppress(FileNotFoundError):  # so slow that it was taken for dead already
            os.utime(place, (then, then))
        plants -= 1
        over.wait(0.05)


def kill_at(program: subprocess.Popen[bytes], counts: list[int], number: int) -> None:
    """Kill `program` right after it acknowledged `number` changes; `counts` gets all it said."""
    assert program.stdout is not None
    said = [program.stdout.readline() for _ in range(number)]
    program.send_signal(signal.SIGKILL)
    said += program.stdout.readlines()
    counts.append(sum(line.endswith(b"\n") for line in said))
    program.stdout.close()


def hear(program: subprocess.Popen[bytes], turn: Turn) -> None:
    """Wait for `program` to end, and count what it said."""
    out, _ = program.communicate(timeout=LIMIT_S)
    took = [float(line) for line in out.splitlines()]
    turn.acknowledged += len(took)
    turn.longest_s = max([turn.longest_s, *took])
    turn.crashed += bool(program.returncode)


def counted(root: Path, task_id: str, turn: Turn, peers: int) -> Turn:
    """What stands in the file, and what lies beside it."""
    raw = Ledger(root).read_raw(task_id)
    turn.counted = raw.get("ours", 0)
    turn.node_counted = sum(raw.get(f"peer{n}", 0) for n in range(peers))
    # The next program removes the files of the killed ones; a lock in which the last of them
    # died, unproved yet, goes with the next change.
    lease = Lease.acquire(root)
    Tidier(root, ()).tidy_after_death()
    Ledger(root, lease=lease).mutate(task_id, lambda raw: None)
    lease.release()
    names = sorted(os.listdir(root / task_id))
    turn.litter = tuple(n for n in names if n.endswith(".tmp") or n.startswith(".lock.lock"))
    return turn


def module(mode: str, *words: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.hard.many_writers", mode, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPO)


def start_ours(root: Path, task_id: str, mutations: int) -> subprocess.Popen[bytes]:
    return module("--work", root, task_id, mutations)


def measure(*, short: bool) -> Figures:
    size = SHORT if short else LONG
    with tempfile.TemporaryDirectory() as folder:
        modules, why_not = node_modules(Path(folder))
        alone = together(size, None, nodes=0)
        mixed = together(size, modules, nodes=2)
        killed = half_killed(size)
        left = together(size, modules, nodes=1, plants=size.plants)
        node_s = after_our_death(size, modules)
    rate = alone.acknowledged / alone.lasted_s
    longest_s = max(turn.longest_s for turn in (alone, killed))
    turns = {"alone": alone, "with Node": mixed, "half killed": killed, "dead locks": left}
    facts = {
        "node": why_not or "2 programs",
        **{f"{name}: changes": turn.acknowledged for name, turn in turns.items()},
        "lost": sum(turn.lost for turn in turns.values()),
        "half killed: in file": killed.counted,
        "Node's changes": mixed.node_acknowledged + left.node_acknowledged,
        "Node's lost": mixed.node_lost + left.node_lost,
        "changes per s": round(rate, 1),
        "longest wait s": round(longest_s, 2),
        "Node after our death s": None if node_s is None else round(node_s, 1),
    }
    return Figures("G4", facts, misses(turns, rate, longest_s, node_s, short))


def misses(
    turns: dict[str, Turn], rate: float, longest_s: float, node_s: float | None, short: bool
) -> list[str]:
    """What was not kept; how quick it is counts in the long form only, on a quiet machine."""
    found: list[str] = []
    for name, turn in turns.items():
        if turn.lost or turn.node_lost:
            found.append(f"{name}: {turn.lost} of ours and {turn.node_lost} of Node's were lost")
        if turn.counted > turn.acknowledged + turn.in_flight:
            found.append(f"{name}: {turn.counted} changes for {turn.acknowledged} that were said")
        if turn.crashed or turn.litter:
            found.append(f"{name}: {turn.crashed} programs crashed, left {turn.litter}")
    if node_s is not None and node_s > NODE_S:
        found.append(f"Node waited {node_s:.1f} s for the lock that one of ours died in")
    if not short and rate < RATE:
        found.append(f"{rate:.0f} changes a second are less than {RATE:.0f}")
    if not short and longest_s > LONGEST_S:
        found.append(f"one change took {longest_s:.1f} s")
    return found


if __name__ == "__main__":
    mode, given_root, given_id, *rest = sys.argv[1:]
    if mode == "--die":
        die_inside(Path(given_root), given_id)
    else:
        work(Path(given_root), given_id, int(rest[0]))
