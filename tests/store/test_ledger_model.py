"""Any order of operations keeps the ledger equal to a small model of the seed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.ledger.reaper import Reaper
from engine.model.errors import TransitionError
from engine.model.records import LIVE, Status, TaskRecord

TERMINAL_KINDS = {"completed", "failed", "cancelled"}


class LedgerModel(RuleBasedStateMachine):
    """Two owners and a looker on one ledger; one owner may die and come back as another."""

    tasks = Bundle("tasks")

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.root = Path(self._folder.name) / "home" / "tasks"
        self.leases = [Lease.acquire(self.root), Lease.acquire(self.root)]
        self.look = Ledger(self.root)
        self.status: dict[str, str] = {}
        self.asked: dict[str, bool] = {}
        self.owner: dict[str, str] = {}
        self.pages: dict[str, int] = {}
        self.extra: dict[str, dict[str, int]] = {}
        self.final: dict[str, bytes] = {}

    def ledger(self, who: int) -> Ledger:
        return Ledger(self.root, lease=self.leases[who])

    def teardown(self) -> None:
        for lease in self.leases:
            lease.release()
        self._folder.cleanup()

    def step(self, task: str, allowed: bool, change, status: str | None = None) -> None:
        """`change` must work exactly when `allowed`, and then leave `status`."""
        if not allowed:
            with pytest.raises(TransitionError):
                change()
            return
        change()
        if status is not None:
            self.status[task] = status

    @rule(target=tasks, who=st.integers(0, 1), kind=st.sampled_from(["crawl", "browser_task"]))
    def create(self, who: int, kind: str) -> str:
        task = self.ledger(who).create(kind, {"url": "http://site.test/"}).task_id
        assert task not in self.status
        self.status[task], self.asked[task], self.pages[task] = "PENDING", False, 0
        self.owner[task], self.extra[task] = self.leases[who].nonce, {}
        return task

    @rule(task=tasks, who=st.integers(0, 1))
    def claim(self, task: str, who: int) -> None:
        allowed = self.status[task] == "PENDING"
        self.step(task, allowed, lambda: self.ledger(who).claim(task), "RUNNING")
        if allowed:
            self.owner[task] = self.leases[who].nonce

    @rule(task=tasks, status=st.sampled_from(["COMPLETED", "FAILED", "CANCELLED"]))
    def finish(self, task: str, status: str) -> None:
        was = self.status[task]
        allowed = was == "RUNNING" or (was == "PENDING" and status != "COMPLETED")
        ends = "CANCELLED" if self.asked[task] else status
        self.step(task, allowed, lambda: self.ledger(0).finish(task, Status(status)), ends)

    @rule(task=tasks, reason=st.none() | st.text(max_size=5))
    def cancel(self, task: str, reason: str | None) -> None:
        record = self.look.request_cancel(task, reason)
        if self.status[task] in LIVE:
            self.asked[task] = True
            if self.status[task] == "PENDING" or record.kind == "browser_task":
                self.status[task] = "CANCELLED"
        assert record.status == self.status[task]

    @rule(task=tasks, name=st.sampled_from("abc"), value=st.integers(0, 9))
    def write_a_field_of_somebody_else(self, task: str, name: str, value: int) -> None:
        same = self.extra[task].get(name) == value
        allowed = self.status[task] in LIVE or same
        self.step(
            task, allowed, lambda: self.look.mutate(task, lambda raw: raw.update({name: value}))
        )
        if allowed:
            self.extra[task][name] = value

    @rule(task=tasks)
    def page(self, task: str) -> None:
        self.ledger(1).append_page(task, {"url": "http://site.test/", "depth": 0})
        self.pages[task] += 1

    @rule(who=st.integers(0, 1))
    def die_and_come_back(self, who: int) -> None:
        self.leases[who].release()
        self.leases[who] = Lease.acquire(self.root)

    @rule()
    def reap(self) -> None:
        alive = {lease.nonce for lease in self.leases}
        dead = {
            task
            for task, owner in self.owner.items()
            if owner not in alive
            and self.status[task] in LIVE
            and self.look.read_raw(task)["kind"] != "browser_task"  # this pid lives on
        }
        assert {record.task_id for record in Reaper(self.ledger(0)).reap()} == dead
        for task in dead:
            self.status[task] = "FAILED"
            assert self.look.has_result(task) == bool(self.pages[task])

    @invariant()
    def the_disk_is_as_the_model_says(self) -> None:
        listed = self.look.list(limit=None, status=[*Status])
        shown = {e.task_id: e.status for e in listed if isinstance(e, TaskRecord)}
        assert shown == self.status
        for task, status in self.status.items():
            raw = self.look.read_raw(task)
            assert {name: raw[name] for name in self.extra[task]} == self.extra[task]
            assert len(list(self.look.read_pages(task))) == self.pages[task]
            kinds = [event.kind for event in self.look.read_events(task).events]
            assert sum(kind in TERMINAL_KINDS for kind in kinds) == (status not in LIVE)
            if status not in LIVE:
                data = (self.root / task / "meta.json").read_bytes()
                assert self.final.setdefault(task, data) == data
        assert not list(self.root.rglob("*.tmp"))


TestLedgerModel = LedgerModel.TestCase
TestLedgerModel.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
