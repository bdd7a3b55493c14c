"""Speed of `octask mcp` as a host sees it: first answer, a start, lists beside a long wait.

A list must be answered within 150 ms while another call waits 30 s.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from tests.bench.report import report, share
from tests.support.task_folders import write_meta

WAIT_MS = 30_000


async def timed(client: Client, tool: str, **arguments: Any) -> tuple[float, dict[str, Any]]:
    began = time.perf_counter()
    answer = await client.call_tool(tool, arguments)
    took_ms = (time.perf_counter() - began) * 1000
    assert not answer.is_error, answer.content
    return took_ms, dict(answer.structured_content)


async def measure(home: Path, lists: int) -> dict[str, float]:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-P", "-m", "engine.cli", "mcp", "--home", str(home)],
        env=dict(os.environ),
    )
    began = time.perf_counter()
    async with Client(server) as client:
        await client.list_tools()
        ready_ms = (time.perf_counter() - began) * 1000
        envelope_ms, opened = await timed(client, "oc_task_start", objective="to be waited for")
        waiting = {"task_id": opened["task_id"], "timeout_ms": WAIT_MS}
        wait = asyncio.create_task(client.call_tool("oc_task_wait", waiting))
        took = [(await timed(client, "oc_task_list"))[0] for _ in range(lists)]
        assert not wait.done()
        args = {"url": "https://example.invalid/", "max_pages": 1}
        start_ms, started = await timed(client, "oc_task_start", kind="crawl", args=args)
        await timed(client, "oc_task_cancel", task_ids=[started["task_id"], opened["task_id"]])
        await wait
    return {
        "first_answer_ms": ready_ms,
        "open_envelope_ms": envelope_ms,
        "start_crawl_ms": start_ms,
        "list_p50_ms": share(took, 0.5),
        "list_p99_ms": share(took, 0.99),
        "list_max_ms": max(took),
    }


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench mcp", description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000, help="tasks in the ledger")
    parser.add_argument("--lists", type=int, default=200, help="lists beside the wait")
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="oc-bench-") as folder:
        home = Path(folder)
        for number in range(given.tasks):
            write_meta(home / "tasks", number, "COMPLETED")
        found = asyncio.run(measure(home, given.lists))
    report("mcp", ("figure", "value"), [*found.items()], {**found, "tasks": given.tasks})
