"""The records of one home beside its tasks: contracts, task runs, runs."""

from __future__ import annotations

from collections.abc import Callable

from engine.contracts.contract_service import Goals
from engine.contracts.run_lifecycle import LinkedRuns, Runs
from engine.ledger.ledger import Ledger
from engine.model.config import Settings


class HomeRecords:
    """Contracts, task runs and run records of one home; `linked` keeps the runs of tasks."""

    def __init__(
        self, settings: Settings, ledger: Callable[[], Ledger], runs_here: Callable[[str], bool]
    ) -> None:
        home = settings.home
        self.goals = Goals(home, ledger)
        self.runs = Runs(home, route=settings.route, agent_id=settings.agent_id)
        self.linked = LinkedRuns(self.runs, home, settings.root)
        self.linked.runs_here = runs_here
