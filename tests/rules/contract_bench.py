"""Crawls with contracts on a real executor and a real ledger, without a browser."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.browser.chromium.browser_session import BrowserSession
from engine.contracts.bulk_progress import Contract
from engine.contracts.completing import Force
from engine.contracts.contract_service import Goals
from engine.contracts.run_lifecycle import LinkedRuns, Runs
from engine.execution.executor import Executor
from engine.execution.runner import Job
from engine.kinds.context import Clock, Context, UnitStopped
from engine.kinds.spec import Head, KindSpec, Tools
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.model.config import Settings
from engine.model.records import EngineFields, Status, TaskId, TaskRecord, Units

ENDS = {"completed", "failed", "cancelled"}
FORCE = Force("three of ten are enough today", "ann")
Page = Mapping[str, Any]
TEN: Mapping[str, Any] = {"expected_total": 10}
THREE: tuple[Page, ...] = tuple({"url": f"http://x.test/{number}"} for number in (1, 2, 3))


async def counting(args: tuple[Page, ...], ctx: Context, tools: Tools) -> Head:
    """A crawl without a browser: a page is a turn of the loop. One without an address hangs."""
    try:
        for done, page in enumerate(args, start=1):
            async with ctx.unit(f"page {done}", 60):
                await (asyncio.sleep(0) if page else asyncio.Event().wait())
            await ctx.page(dict(page), Units(done=done, total=len(args)))
    except UnitStopped:
        pass
    return {"summary": {"stopped_by": ctx.stop_reason or "max_pages"}}


KIND = KindSpec("crawl", lambda given: given, counting, lambda *_: {"partial": True})


class Bench:
    """An executor on a real ledger, with contracts and runs; `other` is another program's view."""

    def __init__(self, home: Path) -> None:
        self.root = home / "tasks"
        self.lease = Lease.acquire(self.root)
        self.ledger = Ledger(self.root, lease=self.lease)
        self.other = Ledger(self.root)
        self.runs = Runs(home)
        self.linked = LinkedRuns(self.runs, home, self.root)
        for ledger in (self.ledger, self.other):
            ledger.on_state_change = self.linked.follow
        self.goals = Goals(home, lambda: self.ledger)
        self.others = Goals(home, lambda: self.other)
        tools = Tools(Settings(home=home, root=self.root, slots=2), BrowserSession())
        self.executor = Executor(self.ledger, tools, Clock(), lambda _: None)

    def submit(
        self, run_id: str, contract: Mapping[str, Any] = TEN, pages: tuple[Page, ...] = THREE
    ) -> TaskId:
        def create(link: str | None) -> TaskRecord:
            fields = EngineFields(contract_id=link, run_id=run_id)
            return self.ledger.create("crawl", {}, engine=fields)

        record = self.goals.accept("crawl", contract, None, create)
        self.linked.accept(record, {})
        task_id = TaskId(record.task_id)
        along = self.goals.companion(self.link(task_id), task_id)
        self.executor.submit(Job(task_id, KIND, pages, (along,)))
        return task_id

    def contract(self, task_id: str) -> Contract:
        return self.goals.contracts.get(self.link(task_id)).contract

    def link(self, task_id: str) -> str:
        return str(self.ledger.read_raw(task_id)["engine"]["contract_id"])

    def force(self, task_id: str) -> TaskRecord:
        return self.others.completing.task(task_id, Status.COMPLETED, FORCE, never)

    def cancel(self, task_id: str) -> TaskRecord:
        return self.other.request_cancel(task_id)

    def ends(self, task_id: str) -> list[str]:
        return [one.kind for one in self.ledger.read_events(task_id).events if one.kind in ENDS]


def never() -> TaskRecord:
    raise AssertionError("a crawl is ended by its runner")
