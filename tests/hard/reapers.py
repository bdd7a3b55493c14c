"""Reapers beside living runs, after kills, and where a dead owner's pid belongs to another.

Three turns: many reapers look at living runs for a while and must end none; processes with
a claimed task are killed, and the next opening of the ledger ends every one of these tasks;
and, in a pid namespace of its own, the pid of a dead owner is given to another process.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from engine.ledger import machine
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.ledger.reaper import Reaper
from engine.model.records import Status
from engine.service.maintenance import Tidier
from tests.hard.figures import Figures, most_s

REPO = Path(__file__).resolve().parents[2]
LIMIT_S = 240.0
OPEN_S = 2.0
PAUSE_S = 0.05  # between two looks of one reaper
AT_ONCE = 10  # killed between two openings
HOLDERS = 2
LAST_PID = "/proc/sys/kernel/ns_last_pid"  # the namespace's own; the next process gets the next pid
PID = 300


def hold(root: Path, tasks: int) -> None:
    """Run `tasks` tasks until a line comes in, then complete them."""
    lease = Lease.acquire(root)
    ledger = Ledger(root, lease=lease)
    ids = [claimed(ledger) for _ in range(tasks)]
    say({"running": ids})
    sys.stdin.readline()
    for task_id in ids:
        ledger.finish(task_id, Status.COMPLETED)
    say({"completed": len(ids)})
    lease.release()


def reap(root: Path, seconds: float) -> None:
    """Reap for a while; say how often, and who was ended."""
    lease = Lease.acquire(root)
    reaper = Reaper(Ledger(root, lease=lease))
    until, looks, ended = time.monotonic() + seconds, 0, list[str]()
    while not looks or time.monotonic() < until:
        ended += [record.task_id for record in reaper.reap()]
        looks += 1
        time.sleep(PAUSE_S)  # the period of the reapers
    lease.release()
    say({"looks": looks, "ended": ended})


def doomed(root: Path, number: int) -> None:
    """Fork `number` processes, each with a lease and a claimed task of its own, and wait."""
    for _ in range(number):
        if pid := os.fork():
            say({"pid": pid})
            continue
        claimed(Ledger(root, lease=Lease.acquire(root)))
        say({"ready": os.getpid()})
        signal.pause()
    for _ in range(number):
        os.wait()  # else they stay zombies
    say({"gone": number})


def reuse(root: Path) -> None:
    """Inside a fresh pid namespace: owners die, and others are given their pids."""
    foreign, ours = give_task_to(PID, root, with_lease=False), give_task_to(PID, root, True)
    living = write_foreign(root, os.getpid())
    time.sleep(machine.REUSE_SLACK_MS / 1000 + 1.5)  # start times are told to the second
    stranger = fork_as(PID)
    lease = Lease.acquire(root)
    Tidier(root, ()).tidy_after_death()  # removes the dead lease: only the pid is left
    ended = {one.task_id: one for one in Reaper(Ledger(root, lease=lease)).reap()}
    lease.release()
    os.kill(stranger, signal.SIGKILL)
    os.wait()
    words = {name: getattr(ended.get(name), "error", None) for name in (foreign, ours)}
    say(
        {
            "same_pid": stranger == PID,
            "foreign": getattr(words[foreign], "message", ""),
            "ours": getattr(words[ours], "message", ""),
            "living_ended": living in ended,
        }
    )


def give_task_to(pid: int, root: Path, with_lease: bool) -> str:
    """Let a process of this pid own a task, and kill it; the task's id."""
    reader, writer = os.pipe()
    child = fork_as(pid, writer, root if with_lease else None)
    task_id = os.read(reader, 16).decode() if with_lease else write_foreign(root, child)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    os.close(writer)
    return task_id


def fork_as(pid: int, writer: int = -1, root: Path | None = None) -> int:
    """A process with just this pid, which sleeps; with `root` it claims a task at first."""
    Path(LAST_PID).write_text(str(pid - 1))
    if child := os.fork():
        return child
    if root is not None:
        os.write(writer, claimed(Ledger(root, lease=Lease.acquire(root))).encode())
    signal.pause()
    os._exit(0)


def claimed(ledger: Ledger) -> str:
    task_id = ledger.create("crawl", {"url": "http://site.test/"}).task_id
    return ledger.claim(task_id).task_id


def write_foreign(root: Path, pid: int) -> str:
    """A running task as another program writes it: nothing but a pid tells its owner."""
    task_id = os.urandom(8).hex()
    now = machine.wall_ms()
    raw = {"task_id": task_id, "kind": "crawl", "status": "RUNNING", "pid": pid}
    (root / task_id).mkdir(parents=True)
    raw |= {"created_at": now, "started_at": now, "args_summary": {}}
    (root / task_id / "meta.json").write_text(json.dumps(raw))
    return task_id


def say(word: dict[str, Any]) -> None:
    os.write(1, json.dumps(word).encode() + b"\n")


def heard(program: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert program.stdout is not None
    word: dict[str, Any] = json.loads(program.stdout.readline())
    return word


@contextmanager
def programs(mode: str, number: int, *words: object) -> Iterator[list[subprocess.Popen[bytes]]]:
    command = [sys.executable, "-m", "tests.hard.reapers", mode, *map(str, words)]
    pipe = subprocess.PIPE
    # Each in a group of its own: what it forked goes with it.
    running = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=REPO, process_group=0)
        for _ in range(number)
    ]
    limit = threading.Timer(LIMIT_S, kill, args=(running,))
    limit.start()
    try:
        yield running
    except BaseException:
        kill(running)
        raise
    finally:
        for one in running:
            one.communicate()
        limit.cancel()


def kill(programs: list[subprocess.Popen[bytes]]) -> None:
    for one in programs:
        with suppress(OSError):
            os.killpg(one.pid, signal.SIGKILL)


def beside_the_living(reapers: int, runs: int, seconds: float) -> dict[str, int]:
    """How often was looked at how many living runs, and how many were ended or not completed."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "home" / "tasks"
        holders = min(HOLDERS, runs)
        with programs("--hold", holders, root, runs // holders) as holding:
            ids = [task_id for one in holding for task_id in heard(one)["running"]]
            ids.append(write_foreign(root, os.getpid()))
            with programs("--reap", reapers, root, seconds) as reaping:
                said = [heard(one) for one in reaping]
            for one in holding:
                assert one.stdin is not None
                one.stdin.write(b"\n")
                one.stdin.flush()
            completed = sum(heard(one)["completed"] for one in holding)
    ended = sum(len(word["ended"]) for word in said)
    looks = sum(word["looks"] for word in said)
    return {
        "runs": len(ids),
        "looks": looks,
        "false": ended,
        "unfinished": len(ids) - 1 - completed,
    }


def after_kills(kills: int) -> tuple[int, float]:
    """How many of the killed processes' tasks the next opening ended, and the slowest one in s."""
    reaped, slowest_s = 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "home" / "tasks"
        for _ in range(kills // AT_ONCE):
            with programs("--doomed", 1, root, AT_ONCE) as (template,):
                words = [heard(template) for _ in range(2 * AT_ONCE)]
                for pid in [word["pid"] for word in words if "pid" in word]:
                    os.kill(pid, signal.SIGKILL)
                assert heard(template) == {"gone": AT_ONCE}
            began = time.monotonic()
            lease = Lease.acquire(root)
            reaped += len(Reaper(Ledger(root, lease=lease)).reap())
            slowest_s = max(slowest_s, time.monotonic() - began)
            lease.release()
    return reaped, slowest_s


def with_reused_pids() -> tuple[dict[str, Any] | None, str]:
    """What came of owners whose pid another process has; or why that cannot be had here."""
    if shutil.which("unshare") is None:
        return None, "there is no unshare on this machine"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "home" / "tasks"
        (root.parent).mkdir()
        inside = [sys.executable, "-m", "tests.hard.reapers", "--reuse", str(root)]
        command = ["unshare", "-p", "-f", "--mount-proc", "--kill-child", *inside]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=REPO, timeout=LIMIT_S, check=False
        )
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1][:200]
    word: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return word, ""


def measure(*, short: bool) -> Figures:
    if sys.platform == "win32":
        return Figures("G5", {"reapers": "there is no SIGKILL and no fork on this machine"})
    reapers, runs, seconds, kills = (4, 8, 1.0, 10) if short else (50, 20, 30.0, 100)
    living = beside_the_living(reapers, runs, seconds)
    reaped, slowest_s = after_kills(kills)
    reused, why_not = with_reused_pids()
    facts = {
        "reapers": reapers,
        "living runs": living["runs"],
        "looks": living["looks"],
        "falsely ended": living["false"],
        "kills": kills,
        "reaped at next open": reaped,
        "slowest open s": round(slowest_s, 2),
        "pid reuse": reused or why_not,
    }
    found = misses(living, kills - reaped, reused)
    if slowest_s > most_s(OPEN_S, short=short):
        found.append(f"one opening took {slowest_s:.1f} s")
    return Figures("G5", facts, found)


def misses(living: dict[str, int], left: int, reused: dict[str, Any] | None) -> list[str]:
    found: list[str] = []
    if living["false"] or living["unfinished"]:
        found.append(f"{living['false']} living runs were ended, {living['unfinished']} never did")
    if left:
        found.append(f"{left} tasks of killed processes were not reaped")
    if reused is not None and not reused["same_pid"]:
        found.append("no process got the dead owner's pid")
    if reused is not None and ("reused" not in reused["foreign"] or not reused["ours"]):
        found.append(f"a task whose owner's pid was reused was not reaped: {reused}")
    if reused is not None and reused["living_ended"]:
        found.append("a living owner in the same namespace lost its task")
    return found


if __name__ == "__main__":
    mode, given_root, *rest = sys.argv[1:]
    place = Path(given_root)
    match mode:
        case "--hold":
            hold(place, int(rest[0]))
        case "--reap":
            reap(place, float(rest[0]))
        case "--doomed":
            doomed(place, int(rest[0]))
        case "--reuse":
            reuse(place)
