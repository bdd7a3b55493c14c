"""The objects that every part of one engine shares."""

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
    """One ledger with its settings, its lease, its own tasks, and the router to the others."""

    settings: Settings
    maintenance: LedgerMaintenance
    own: OwnTasks
    goals: Goals
    runs: Runs
    linked: LinkedRuns
    router: LedgerRouter

    @property
    def ledger(self) -> Ledger:
        """The ledger as it is open now: it gets a lease when the engine opens."""
        return self.maintenance.ledger
