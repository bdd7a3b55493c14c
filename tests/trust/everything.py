"""`python -m tests.trust.everything HOME`: one task of each kind, to inspect its files.

A process of its own, because the umask, the user and the place of the log belong to a process.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

from engine.logging.logs import log_to_file
from engine.model.records import TaskRecord
from engine.service.admission import Terms
from engine.service.engine import Engine
from fixtures.site.site import Site
from tests.support.engines import opened

FAST = {"engine": "static", "delay_ms": 0, "respect_robots": False, "max_pages": 2}


async def make(home: Path, site: Site, *, browser: bool) -> None:
    """A crawl with a contract and budgets, an envelope, a task run, and what browsers leave."""
    async with opened(home) as engine:
        terms = Terms(policy={"maxToolCalls": 9}, contract={"expected_total": 2})
        crawl = await engine.requests.start("crawl", {"url": site.url, **FAST}, terms=terms)
        ends = [await engine.tasks.wait(crawl.task_id, 150_000)]
        await engine.requests.start("browser_task", {}, terms=Terms(objective="look"))
        run = engine.goals.runs.start({"goal": "all"}, {"items": ["a"]})
        engine.goals.runs.update(run.run_id, {"completed_items": ["a"]})
        engine.goals.runs.checkpoint(run.run_id, {"summary": "half"})
        if browser:
            page = {"url": f"{site.url}/login", "include": ["dom", "screenshot"]}
            ends.append(await _ended(engine, "oc_evidence_bundle", page))
        for record in ends:
            assert record.status == "COMPLETED", record


async def _ended(engine: Engine, kind: str, args: Mapping[str, object]) -> TaskRecord:
    return await engine.tasks.wait((await engine.requests.start(kind, args)).task_id, 150_000)


if __name__ == "__main__":
    log_to_file()
    with Site() as here:
        asyncio.run(make(Path(sys.argv[1]), here, browser="--browser" in sys.argv))
