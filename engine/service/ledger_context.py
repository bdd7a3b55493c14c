"""Objects shared by all parts of one engine."""

from __future__ import annotations

from dataclasses import dataclass

from engine.contracts.contract_service import Goals
from engine.contracts.lifecycle import LinkedRuns, Runs
from engine.ledger.ledger import Ledger
from engine.model.config import Settings
from engine.service.maintenance import LedgerMaintenance
from engine.service.own_tasks import OwnTasks
from engine.service.router.ledger_router import LedgerRouter


@dataclass(frozen=True, slots=True)
class LedgerContext:
    """One ledger with its settings, its lease, its own tasks, and the router to other ledgers."""

    settings: Settings
    maintenance: LedgerMaintenance
    own: OwnTasks
    goals: Goals
    runs: Runs
    linked: LinkedRuns
    router: LedgerRouter

    @property
    def ledger(self) -> Ledger:
        """The currently open ledger; it gets a lease when the engine opens."""
        return self.maintenance.ledger
