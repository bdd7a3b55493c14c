"""Many processes change one task at once, two Node programs with OpenChrome's locks among them.

    python -m tests.hard.many_writers [processes] [mutations] [updates of each Node program]

Every acknowledged change must be counted in the file. Without npm the Node side is left
out, and the table says why.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from engine.store.lease import Lease
from engine.store.ledger import Ledger

PACKAGES = ("proper-lockfile@4.1.2", "write-file-atomic@5")
NODES = 2
LIMIT_S = 240
REPO = Path(__file__).resolve().parents[2]
PEER = Path(__file__).with_name("peer.mjs")


def work(root: Path, task_id: str, mutations: int) -> None:
    """Add one to `ours`, `mutations` times; print how many returned and the slowest (s)."""
    lease = Lease.acquire(root)
    ledger = Ledger(root, lease=lease)

    def count(raw: dict[str, Any]) -> None:
        raw["ours"] = raw.get("ours", 0) + 1

    longest_s = 0.0
    for _ in range(mutations):
        began = time.monotonic()
        ledger.mutate(task_id, count)
        longest_s = max(longest_s, time.monotonic() - began)
    print(json.dumps({"done": mutations, "longest_s": longest_s}))
    lease.release()


def node_modules(folder: Path) -> tuple[Path | None, str]:
    """Install the two packages below `folder`; where they are, or why they are not there."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        return None, "there is no npm on this machine"
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder)]
    try:
        done = subprocess.run(
            [*command, *PACKAGES], capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return None, f"npm did not answer within {LIMIT_S} s"
    if done.returncode:
        return None, f"npm could not install: {done.stderr.strip()[-200:]}"
    return folder, ""


def run(processes: int, mutations: int, node_updates: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "home" / "tasks"
        modules, why_not = node_modules(Path(folder) / "npm")
        lease = Lease.acquire(root)
        try:
            ledger = Ledger(root, lease=lease)
            task_id = ledger.create("crawl", {"url": "http://site.test/"}).task_id
            began = time.monotonic()
            ours = [start_ours(root, task_id, mutations) for _ in range(processes)]
            nodes = (
                [start_node(modules, root / task_id, n, node_updates) for n in range(NODES)]
                if modules
                else []
            )
            said = [answer(program) for program in ours]
            ours_s = time.monotonic() - began
            peers = [answer(program) for program in nodes]
            raw = ledger.read_raw(task_id)
            left = sorted(path.name for path in (root / task_id).iterdir())
        finally:
            lease.release()
    acknowledged = sum(word["done"] for word in said)
    peers_done = [word["done"] for word in peers]
    return {
        "hard": "many_writers",
        "processes": processes,
        "mutations": acknowledged,
        "counted": raw.get("ours", 0),
        "lost": acknowledged - raw.get("ours", 0),
        "mutations_per_s": round(acknowledged / ours_s, 1),
        "longest_s": round(max(word["longest_s"] for word in said), 2),
        "node": why_not or f"{NODES} programs",
        "node_acknowledged": sum(peers_done),
        "node_lost": sum(peers_done) - sum(raw.get(f"peer{n}", 0) for n in range(len(peers))),
        "node_refused": sum(word["refused"] for word in peers),
        "node_crashed": sum(word["crashed"] for word in peers),
        "node_longest_ms": max((word["longestMs"] for word in peers), default=0),
        "litter": [name for name in left if name.endswith(".tmp") or name.startswith(".lock.lock")],
    }


def start_ours(root: Path, task_id: str, mutations: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.hard.many_writers", "--work"]
    return subprocess.Popen(
        [*command, str(root), task_id, str(mutations)], stdout=subprocess.PIPE, text=True, cwd=REPO
    )


def start_node(modules: Path, folder: Path, number: int, updates: int) -> subprocess.Popen[str]:
    command = ["node", str(PEER), str(modules), str(folder), f"peer{number}", str(updates)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def answer(program: subprocess.Popen[str]) -> dict[str, Any]:
    """What a program printed at its end; one that crashed acknowledged nothing by it."""
    out, _ = program.communicate(timeout=LIMIT_S)
    if program.returncode:
        return {"done": 0, "refused": 0, "longestMs": 0, "longest_s": 0.0, "crashed": 1}
    word: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return {**word, "crashed": 0}


def main(argv: list[str]) -> None:
    if argv[:1] == ["--work"]:
        work(Path(argv[1]), argv[2], int(argv[3]))
        return
    given = [*map(int, argv), *[8, 200, 30][len(argv) :]]
    result = run(*given)
    for name, value in result.items():
        print(f"{name:>20}  {value}")
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
