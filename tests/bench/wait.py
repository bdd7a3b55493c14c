"""From a task's end, made by another process, to the return of `wait_terminal`."""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from pathlib import Path

from engine.ledger.reader import LedgerReader
from engine.ledger.wait import wait_terminal
from tests.bench.report import report, share
from tests.support.task_folders import elsewhere, now_ns, task_id, write_meta

REPLACES = 5
POLL_S = 0.1
ENDS = f"""
import random
root = Path(sys.argv[1])
for line in sys.stdin:
    number = int(line)
    for count in range({REPLACES}):
        write_meta(root, number, at=count)
        time.sleep(random.uniform(0, 0.03))  # changes at random times
    began = now_ns()
    write_meta(root, number, "COMPLETED")
    print(began, flush=True)
"""


async def polled(path: Path) -> int:
    """The reference: look every 100 ms."""
    while json.loads(path.read_bytes())["status"] != "COMPLETED":
        await asyncio.sleep(POLL_S)
    return now_ns()


async def waited(ledger: LedgerReader, number: int) -> int:
    await wait_terminal(ledger, task_id(number), 30_000)
    return now_ns()


async def measure(root: Path, transitions: int) -> tuple[list[float], list[float]]:
    ledger = LedgerReader(root)
    ours: list[float] = []
    polls: list[float] = []
    with elsewhere(ENDS, root) as child:
        assert child.stdin
        assert child.stdout
        for number in range(transitions):
            folder = write_meta(root, number)
            both = asyncio.gather(waited(ledger, number), polled(folder / "meta.json"))
            child.stdin.write(f"{number}\n")
            child.stdin.flush()
            told, seen = await both
            began = int(await asyncio.to_thread(child.stdout.readline))
            ours.append((told - began) / 1e6)
            polls.append((seen - began) / 1e6)
        child.stdin.close()
    return ours, polls


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench wait", description=__doc__)
    parser.add_argument("--transitions", type=int, default=200)
    transitions = parser.parse_args(argv).transitions
    with tempfile.TemporaryDirectory() as place:
        ours, polls = asyncio.run(measure(Path(place), transitions))
    rows = [
        (name, len(values), share(values, 0.5), share(values, 0.99), max(values))
        for name, values in (("wait_terminal", ours), ("reference: poll 100 ms", polls))
    ]
    facts = {"transitions": len(ours), "replaced_before": REPLACES, "p50_ms": share(ours, 0.5)}
    facts |= {"p99_ms": share(ours, 0.99), "max_ms": max(ours), "poll_p99_ms": share(polls, 0.99)}
    report("wait", ("what", "transitions", "p50 ms", "p99 ms", "max ms"), rows, facts)
