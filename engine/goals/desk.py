"""`Goals`: contracts, task runs and their completion in one home, as the service offers them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.goals.completing import Completing
from engine.goals.contracts import Contracts
from engine.goals.progress import ContractDesk
from engine.goals.run_folders import RunFolders
from engine.goals.task_runs import RunDesk
from engine.store.ledger import Ledger
from engine.store.machine import wall_ms


class Goals:
    """Everything of seed 001 in `home`. Synchronous: every call may wait for a lock or a disk.

    `contracts` and `runs` are asked to start, change and show; `completing` ends.
    """

    def __init__(
        self, home: Path, ledger: Callable[[], Ledger], now_ms: Callable[[], int] = wall_ms
    ) -> None:
        self.shelf = Contracts(home, now_ms)
        folders = RunFolders(home, now_ms)
        self.contracts = ContractDesk(self.shelf, folders)
        self.runs = RunDesk(self.shelf, folders)
        self.completing = Completing(self.shelf, folders, self.runs, ledger)
