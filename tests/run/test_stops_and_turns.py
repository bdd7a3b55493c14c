"""Stop reasons and their outcome; jobs of one queue run in order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.browser.chromium.browser_session import BrowserSession
from engine.execution.executor import Executor
from engine.execution.runner import Job
from engine.kinds.context import Clock, Context, StopReason, UnitStopped
from engine.kinds.spec import Head, KindSpec, Tools
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.ledger.ownership import Owner
from engine.logging.logs import log_path
from engine.model.config import Settings
from engine.model.errors import LedgerWriteFailed, TaskFailed
from engine.model.records import ErrorInfo, Status, TaskId, TaskRecord, Units
from tests.support.engines import until

WHY_ENDS = {
    "cancelled": (Status.CANCELLED, None),
    "budget": (Status.FAILED, "BUDGET_EXCEEDED"),
    "forced": (Status.COMPLETED, None),
    "stopped": (Status.COMPLETED, None),
}


class Companion:
    """Goes along with a task and does what a test tells it."""

    def __init__(
        self,
        stop_after: int = 0,
        reason: StopReason = "",
        refusal: ErrorInfo | None = None,
        broken: bool = False,
    ) -> None:
        self.stop_after, self.reason, self._refusal, self.broken = (
            stop_after,
            reason,
            refusal,
            broken,
        )
        self.kept_units: list[Mapping[str, Any]] = []
        self.over = False
        self.clock: StopReason = ""

    def on_unit(self, unit: Mapping[str, Any], units: Units) -> StopReason:
        self.kept_units.append(unit)
        if self.broken:
            raise LedgerWriteFailed(path="x", reason="no room")
        return self.reason if units.done == self.stop_after else ""

    def on_carried(self, units: Iterable[Mapping[str, Any]]) -> None:
        self.kept_units.extend(units)

    def on_tick(self) -> StopReason:
        return self.clock

    def refusal(self, head: Mapping[str, Any] | None) -> ErrorInfo | None:
        return self._refusal

    def on_end(self) -> None:
        self.over = True

    def on_result(self) -> None:
        pass


async def counting(args: int, ctx: Context, tools: Tools) -> Head:
    """A body of `args` units; at a stop it goes on with what it has."""
    done = 0
    try:
        for done in range(1, args + 1):
            async with ctx.unit(f"unit {done}", 100):
                await asyncio.sleep(0)
            await ctx.page({"n": done}, Units(done=done, total=args))
    except UnitStopped:
        done -= 1
    return {"counted": done}


def kind(body: Any = counting, queue: Callable[[Any], str | None] = lambda _: None) -> KindSpec:
    return KindSpec("crawl", lambda given: given, body, lambda *_: {"partial": True}, queue)


class Bench:
    """An executor on a real ledger."""

    def __init__(self, home: Path, slots: int = 2) -> None:
        self.root = home / "tasks"
        self.lease = Lease.acquire(self.root)
        self.ledger = Ledger(self.root, lease=self.lease)
        settings = Settings(home=home, root=self.root, slots=slots)
        tools = Tools(settings, BrowserSession())  # no body here asks it for a browser
        self.executor = Executor(self.ledger, tools, Clock(), lambda _: None)

    async def run(self, made: KindSpec, args: Any, *companions: Companion) -> TaskRecord:
        task_id = self.submit(made, args, *companions)
        await self.executor.join(task_id)
        record = self.ledger.read(task_id)
        assert isinstance(record, TaskRecord)
        return record

    def submit(self, made: KindSpec, args: Any, *companions: Companion) -> TaskId:
        task_id = TaskId(self.ledger.create("crawl", {}).task_id)
        self.executor.submit(Job(task_id, made, args, companions))
        return task_id

    def result(self, record: TaskRecord) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            (self.root / record.task_id / "result.json").read_bytes()
        )
        return found


@pytest.fixture
def bench(home: Path) -> Any:
    made = Bench(home)
    yield made
    made.lease.release()


@pytest.mark.parametrize("reason", WHY_ENDS)
async def test_the_stop_reason_decides_the_state(bench: Bench, reason: StopReason) -> None:
    record = await bench.run(kind(), 50, Companion(stop_after=3, reason=reason))
    status, code = WHY_ENDS[reason]
    assert record.status == status
    assert (record.error.code if record.error else None) == code
    result = bench.result(record)
    assert result["counted"] == 3
    assert [page["n"] for page in result["pages"]] == [1, 2, 3]


@pytest.mark.parametrize("reason", WHY_ENDS)
async def test_a_body_that_hears_of_no_stop_is_cut_short_and_told_by_its_reason(
    bench: Bench, reason: StopReason, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.execution.runner.HARD_STOP_S", 0.01)

    async def deaf(args: int, ctx: Context, tools: Tools) -> Head:
        await ctx.page({"n": 1}, Units(done=1))
        await asyncio.Event().wait()
        raise AssertionError

    def partial(args: int, pages: object, stopped_by: str, lasted_ms: int) -> Head:
        return {"told": stopped_by}

    made = KindSpec("crawl", lambda given: given, deaf, partial)
    begun = Companion()
    task_id = bench.submit(made, 1, begun)
    async with asyncio.timeout(100):
        while not begun.kept_units:
            await asyncio.sleep(0.01)
        begun.clock = reason  # is asked four times a second
        await bench.executor.join(task_id)
    record = bench.ledger.read(task_id)
    assert isinstance(record, TaskRecord)
    assert record.status == WHY_ENDS[reason][0]
    assert bench.result(record) == {"told": reason, "pages": [{"n": 1}]}


async def test_a_companion_hears_of_every_unit_and_of_the_end(bench: Bench) -> None:
    companion = Companion()
    await bench.run(kind(), 5, companion)
    assert [unit["n"] for unit in companion.kept_units] == [1, 2, 3, 4, 5]
    assert companion.over


async def test_what_would_be_complete_is_failed_when_a_companion_refuses(bench: Bench) -> None:
    refusal = ErrorInfo(message="two are missing", code="bulk_incomplete")
    record = await bench.run(kind(), 3, Companion(refusal=refusal))
    assert record.status == Status.FAILED
    assert record.error == refusal
    assert bench.result(record)["counted"] == 3


async def test_a_forced_task_is_complete_although_a_companion_would_refuse(bench: Bench) -> None:
    refusal = ErrorInfo(message="two are missing", code="bulk_incomplete")
    forced = Companion(stop_after=2, reason="forced", refusal=refusal)
    assert (await bench.run(kind(), 3, forced)).status == Status.COMPLETED


async def test_a_companion_that_cannot_count_does_not_lose_the_work(bench: Bench) -> None:
    record = await bench.run(kind(), 3, Companion(broken=True))
    assert record.status == Status.COMPLETED
    assert len(bench.result(record)["pages"]) == 3


async def test_a_body_may_fail_with_a_code_and_a_result_of_its_own(bench: Bench) -> None:
    async def failing(args: int, ctx: Context, tools: Tools) -> Head:
        await ctx.page({"n": 1}, Units(done=1))
        raise TaskFailed("COMMAND_TIMEOUT", "it took too long", {"state": "failed"})

    record = await bench.run(kind(failing), 1)
    assert record.status == Status.FAILED
    assert record.error == ErrorInfo(message="it took too long", code="COMMAND_TIMEOUT")
    assert bench.result(record) == {"state": "failed", "pages": [{"n": 1}]}


async def test_a_lone_surrogate_of_a_page_is_stored_as_it_came(bench: Bench) -> None:
    async def titled(args: int, ctx: Context, tools: Tools) -> Head:
        return {"title": "a\ud800b"}

    record = await bench.run(kind(titled), 1)
    assert record.status == Status.COMPLETED
    assert bench.result(record) == {"title": "a\ud800b", "pages": []}


async def test_a_result_that_cannot_be_encoded_ends_the_task_and_keeps_its_units(
    bench: Bench,
) -> None:
    async def odd(args: int, ctx: Context, tools: Tools) -> Head:
        await ctx.page({"n": 1}, Units(done=1))
        return {"odd": object()}

    record = await bench.run(kind(odd), 1)
    assert record.status == Status.FAILED
    assert record.error is not None
    assert record.error.code == "internal_error"
    assert record.error.message.endswith(f"ended the task; the log has the details: {log_path()}")
    assert record.engine is not None
    assert record.engine.units == Units(done=1)


async def test_a_body_that_cancels_itself_fails(bench: Bench) -> None:
    async def cancelling(args: int, ctx: Context, tools: Tools) -> Head:
        raise asyncio.CancelledError  # by a library; no stop was requested

    record = await bench.run(kind(cancelling), 1)
    assert record.status == Status.FAILED
    assert record.error is not None
    assert record.error.code == "internal_error"


async def test_a_stop_with_an_away_folder_keeps_all_pages(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.execution.runner.HARD_STOP_S", 0.1)
    away, cancelled = bench.root.with_name("away"), asyncio.Event()

    async def writing(args: int, ctx: Context, tools: Tools) -> Head:
        bench.root.rename(away)
        try:
            await asyncio.gather(*(ctx.page({"n": n}, Units(done=n)) for n in (1, 2, 3)))
        finally:
            cancelled.set()
        raise AssertionError("the pages were written into a folder that is away")

    task_id = bench.submit(kind(writing), 1)
    await until(lambda: bench.executor.run_of(task_id).owner is Owner.AWAY)
    bench.executor.request_stop(task_id)
    await cancelled.wait()
    away.rename(bench.root)
    await bench.executor.join(task_id)
    record = bench.ledger.read(task_id)
    assert isinstance(record, TaskRecord)
    assert record.status == Status.CANCELLED
    assert [page["n"] for page in bench.result(record)["pages"]] == [1, 2, 3]


@pytest.mark.parametrize("field", ["stop_requested_at", "forced_at"])
async def test_a_request_in_the_tasks_own_fields_ends_it_in_order(bench: Bench, field: str) -> None:
    begun = asyncio.Event()

    async def waiting(args: int, ctx: Context, tools: Tools) -> Head:
        begun.set()
        try:
            async with ctx.unit("wait", 150):
                await asyncio.Event().wait()
        except UnitStopped:
            return {"ended": ctx.stop_reason}
        raise AssertionError("it was never told to stop")

    task_id = bench.submit(kind(waiting), 1)
    await begun.wait()
    await asyncio.to_thread(
        bench.ledger.mutate, task_id, lambda raw: raw["engine"].update({field: 1})
    )
    bench.executor.nudge(task_id)
    async with asyncio.timeout(60):
        await bench.executor.join(task_id)
    record = bench.ledger.read(task_id)
    assert isinstance(record, TaskRecord)
    assert record.status == Status.COMPLETED
    assert bench.result(record)["ended"] == ("stopped" if field[0] == "s" else "forced")


async def test_jobs_without_a_queue_end_without_an_error(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(2):
        await bench.run(kind(), number)
    assert [record.getMessage() for record in caplog.records if record.levelno > 30] == []


async def test_jobs_of_one_queue_run_in_order(bench: Bench) -> None:
    running: set[str] = set()
    seen: list[frozenset[str]] = []
    order: list[str] = []
    passed = asyncio.Event()

    async def noting(args: str, ctx: Context, tools: Tools) -> Head:
        running.add(args)
        seen.append(frozenset(running))
        order.append(args)
        if args == "b1":
            passed.set()
        async with ctx.unit("work", 60):
            await passed.wait()  # the first of the queue works until another has passed it
        running.discard(args)
        return {}

    queued = kind(noting, queue=lambda args: args[0])
    ids = [bench.submit(queued, name) for name in ("a1", "a2", "a3", "b1")]
    for task_id in ids:
        await bench.executor.join(task_id)
    assert [name for name in order if name[0] == "a"] == ["a1", "a2", "a3"]
    assert not any(len([name for name in now if name[0] == "a"]) > 1 for now in seen)
    assert order.index("b1") < order.index("a2")  # no slot was held by a job that waited
