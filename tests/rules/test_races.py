"""Two concurrent ends of a task, 500 times each: one state, one event, one end."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from engine.budgets.envelopes import Envelopes, envelope_request
from engine.contracts.completing import Force
from engine.contracts.contract_service import Goals
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.model.errors import EngineError
from engine.model.records import EngineFields, Status, TaskRecord

ROUNDS = 500
ARGS = {"url": "http://x.test/"}
ENDS = {"completed", "failed", "cancelled"}


class Race:
    """Two threads that begin each round together, on two ledgers, as two processes would."""

    def __init__(self) -> None:
        self._gate = threading.Barrier(2)

    def run(self, *rounds: tuple[Callable[[], object], Callable[[], object]]) -> None:
        first = threading.Thread(target=self._side, args=([pair[0] for pair in rounds],))
        second = threading.Thread(target=self._side, args=([pair[1] for pair in rounds],))
        for thread in (first, second):
            thread.start()
        for thread in (first, second):
            thread.join(240)
            assert not thread.is_alive()

    def _side(self, steps: list[Callable[[], object]]) -> None:
        for step in steps:
            self._gate.wait(100)
            with suppress(EngineError):  # refused in words: it came second
                step()


@pytest.fixture
def ledger(home: Path):
    root = home / "tasks"
    lease = Lease.acquire(root)
    yield Ledger(root, lease=lease)
    lease.release()


def ends_of(ledger: Ledger, task_id: str) -> list[str]:
    return [event.kind for event in ledger.read_events(task_id).events if event.kind in ENDS]


def running(ledger: Ledger, number: int) -> list[str]:
    ids = [ledger.create("crawl", {"url": "http://x.test/"}).task_id for _ in range(number)]
    for task_id in ids:
        ledger.claim(task_id)
    return ids


@pytest.mark.case("R11")
def test_cancel_against_finish_ends_once(ledger: Ledger) -> None:
    ids = running(ledger, ROUNDS)
    other = Ledger(ledger.root)

    def both(task_id: str) -> tuple[Callable[[], object], Callable[[], object]]:
        return (
            lambda: ledger.finish(task_id, Status.COMPLETED),
            lambda: other.request_cancel(task_id, "enough"),
        )

    Race().run(*map(both, ids))
    found: Counter[str] = Counter()
    for task_id in ids:
        raw = ledger.read_raw(task_id)
        assert raw["status"] in {"COMPLETED", "CANCELLED"}
        # A request that is on disk before the end wins; one that came later left no trace.
        assert (raw["status"] == "CANCELLED") == ("cancel_requested_at" in raw)
        assert ends_of(ledger, task_id) == [raw["status"].lower()]
        found[raw["status"]] += 1
    assert found.total() == ROUNDS


@pytest.mark.case("R10")
def test_two_ends_at_once_are_one_end(ledger: Ledger) -> None:
    ids = running(ledger, ROUNDS)
    other = Ledger(ledger.root, lease=ledger.lease)

    def both(task_id: str) -> tuple[Callable[[], object], Callable[[], object]]:
        return (
            lambda: ledger.finish(task_id, Status.COMPLETED),
            lambda: other.finish(task_id, Status.FAILED),
        )

    Race().run(*map(both, ids))
    for task_id in ids:
        status = ledger.read_raw(task_id)["status"]
        assert status in {"COMPLETED", "FAILED"}
        assert ends_of(ledger, task_id) == [status.lower()]


@pytest.mark.thorough("CANCELLED")
@pytest.mark.case("R10", "R11")
@pytest.mark.parametrize("second", ["COMPLETED", "CANCELLED"])
def test_concurrent_run_completions_are_one_end(home: Path, ledger: Ledger, second: str) -> None:
    one, two = Goals(home, lambda: ledger), Goals(home, lambda: ledger)
    made = [one.runs.start({"goal": "visit one"}) for _ in range(ROUNDS)]
    ids = [run.run_id for run in made]

    def both(run_id: str) -> tuple[Callable[[], object], Callable[[], object]]:
        return (
            lambda: one.completing.run(run_id, {"status": "COMPLETED"}),
            lambda: two.completing.run(run_id, {"status": second}),
        )

    Race().run(*map(both, ids))
    for run_id in ids:
        view = one.runs.get(run_id, events=True)
        assert view.status in {"COMPLETED", second}
        assert [e.kind for e in view.events if e.kind in ENDS] == [view.status.lower()]


def test_concurrent_completions_give_one_end(home: Path, ledger: Ledger) -> None:
    one, two = Goals(home, lambda: ledger), Goals(home, lambda: ledger)
    ids: list[str] = []
    for _ in range(ROUNDS):
        run = one.runs.start({"goal": "visit three"})
        one.contracts.start({"run_id": run.run_id, "expected_total": 3, "item_key": "url"})
        ids.append(run.run_id)
    force = Force("the third one is gone", "ann")

    def both(run_id: str) -> tuple[Callable[[], object], Callable[[], object]]:
        return (
            lambda: one.completing.run(run_id, {"status": "COMPLETED"}),
            lambda: two.completing.run(run_id, {"status": "COMPLETED"}, force),
        )

    Race().run(*map(both, ids))
    for run_id in ids:
        view = one.runs.get(run_id, events=True)
        assert view.status == "COMPLETED"
        assert [e.kind for e in view.events if e.kind in ENDS] == ["completed"]
        assert view.progress is not None
        assert view.progress.contract.forced is not None
        assert view.progress.contract.forced.reason == "the third one is gone"


def test_cancel_against_the_finish_of_an_envelope_ends_once(ledger: Ledger) -> None:
    envelopes = Envelopes(ledger)
    request = envelope_request({"objective": "look around"}, {})
    ids = [envelopes.start(request).task_id for _ in range(ROUNDS)]
    other = Ledger(ledger.root)

    def both(task_id: str) -> tuple[Callable[[], object], Callable[[], object]]:
        return (
            lambda: envelopes.finish(task_id, "completed", note="seen it all"),
            lambda: other.request_cancel(task_id),
        )

    Race().run(*map(both, ids))
    for task_id in ids:
        raw = ledger.read_raw(task_id)
        assert raw["status"] in {"COMPLETED", "CANCELLED"}
        assert raw["phase"] == "done"
        assert ends_of(ledger, task_id) == [raw["status"].lower()]


def test_cancel_and_force_give_one_end(home: Path, ledger: Ledger) -> None:
    """The word of either is on disk first; the runner's end obeys it."""
    goals = Goals(home, lambda: ledger)
    other = Ledger(ledger.root)

    def made() -> str:
        def create(link: str | None) -> TaskRecord:
            return ledger.create("crawl", ARGS, engine=EngineFields(contract_id=link))

        task_id = goals.accept("crawl", {"expected_total": 3}, None, create).task_id
        ledger.claim(task_id)
        return task_id

    ids = [made() for _ in range(ROUNDS // 5)]
    force = Force("two of three are enough", "ann")

    def both(task_id: str) -> tuple[Callable[[], object], Callable[[], object]]:
        return (
            lambda: goals.completing.task(task_id, Status.COMPLETED, force, never),
            lambda: other.request_cancel(task_id),
        )

    Race().run(*map(both, ids))
    for task_id in ids:
        ledger.finish(task_id, Status.COMPLETED)
        assert ledger.read_raw(task_id)["status"] == "CANCELLED"  # the request is on disk
        assert ends_of(ledger, task_id) == ["cancelled"]


def never() -> TaskRecord:
    raise AssertionError("a crawl is ended by its runner")
