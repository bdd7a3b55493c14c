"""One home as a program has it open, for the scenes in which that program is killed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from engine.budgets.envelopes import Envelopes
from engine.contracts.contract_service import Goals
from engine.contracts.run_lifecycle import LinkedRuns, Runs
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.ledger.reaper import Reaper
from engine.model.records import EngineFields, TaskRecord, Unreadable
from engine.service.maintenance import Tidier

URL = {"url": "http://site.test/"}
RUN_ID = "run-of-the-scene"


class Place:
    """`ids` are what the steps of a scene made, by name: whoever looks later needs them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / "tasks"
        self.ids: dict[str, str] = {}
        self.runs = Runs(home)
        self.linked = LinkedRuns(self.runs, home, self.root)
        self.lease: Lease | None = None
        self.ledger = Ledger(self.root)
        self.goals = Goals(home, lambda: self.ledger)

    def open(self) -> None:
        """Take a lease, as a program does that takes tasks."""
        self.lease = Lease.acquire(self.root)
        self.ledger = Ledger(self.root, lease=self.lease)
        self.ledger.on_state_change = self.linked.follow

    def recover(self) -> None:
        """Open after a death: end orphans, bring runs up to their tasks, tidy."""
        self.open()
        Reaper(self.ledger).settle()
        self.linked.heal(self.ledger)
        self.tidy()

    def tidy(self) -> None:
        """What a program does after half a minute, and to the youngest litter, too."""
        Tidier(self.root, (*self.goals.folders, self.runs.folder)).tidy(old_s=0)

    def close(self) -> None:
        if self.lease is not None:
            self.lease.release()

    @property
    def envelopes(self) -> Envelopes:
        return Envelopes(self.ledger, guard=self.goals.completing.guards)

    def create(self, name: str = "task", **fields: Any) -> TaskRecord:
        record = self.ledger.create("crawl", URL, engine=EngineFields(**fields))
        self.ids[name] = record.task_id
        return record

    def status(self, name: str = "task") -> str:
        entry = self.ledger.read(self.ids[name])
        return "" if isinstance(entry, Unreadable) else entry.status

    def raw(self) -> dict[str, Any]:
        return self.ledger.read_raw(self.ids["task"])

    def pages(self) -> int:
        return len(list(self.ledger.read_pages(self.ids["task"])))

    def told(self, kind: str) -> int:
        """How many events of `kind` the task has."""
        events = self.ledger.read_events(self.ids["task"]).events
        return sum(event.kind == kind for event in events)

    def result(self) -> dict[str, Any]:
        with self.ledger.open_result(self.ids["task"]) as file:
            found: dict[str, Any] = json.load(file)
        return found

    def run_status(self, run_id: str = RUN_ID) -> str:
        run = self.runs.get_run(run_id)
        return run.status if run is not None else ""

    def task_run(self) -> dict[str, Any]:
        return dict(self.goals.runs.get(self.ids["run"]).raw)

    def completed(self) -> int:
        """How many items the contract counts as completed."""
        return self.goals.contracts.get(self.ids["contract"]).contract.completed_total


Act = Callable[[Place], object]


class Step(NamedTuple):
    """One operation, and whether it is on disk once it was acknowledged."""

    name: str
    act: Act
    kept: Callable[[Place], bool]


class Scene(NamedTuple):
    """`prepare` is done in peace; then each step is acknowledged when it returned."""

    name: str
    prepare: Act
    steps: tuple[Step, ...]
