"""Refresh contract counts of visible rows periodically on a worker thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QObject, QTimer

from engine.contracts.completing import Guard
from gui.engine_link.bridge import Bridge
from gui.tasks.columns import COLUMN_AT, known_contract, learn_contracts
from gui.tasks.row import Row
from gui.tasks.task_table import TaskTable

LOOK_MS: Final = 1500
_ASK: Final = "what contracts say"


class ContractCounts(QObject):
    """Poll the contracts of visible tasks that are live or have no cached counts."""

    def __init__(self, table: TaskTable, bridge: Bridge) -> None:
        super().__init__(table)
        self._table, self._bridge, self._busy = table, bridge, False
        self._clock = QTimer(self, interval=LOOK_MS)
        self._clock.timeout.connect(self.look)
        bridge.loaded.connect(self._begin)

    def look(self) -> None:
        """Request the counts, unless a request is pending."""
        wanted = sorted({link for row in self._rows() if (link := link_of(row)) and _asks(row)})
        if wanted and not self._busy:
            self._busy = True
            ask = self._bridge.ask
            ask(lambda engine: engine.contracts.counts(wanted), self._show, self._fail, name=_ASK)

    def _begin(self) -> None:
        self._clock.start()

    def _rows(self) -> list[Row]:
        table, model = self._table, self._table.tasks
        if not table.header().is_wanted("contract"):
            return []
        first, last = table.rows_in_sight()
        return [model.row_at(at) for at in range(first, last + 1)]

    def _show(self, found: Mapping[str, Guard]) -> None:
        self._busy = False
        news, model, column = learn_contracts(found), self._table.tasks, COLUMN_AT["contract"]
        if not news:
            return
        for row in self._rows():
            at = model.row_of(row.task_id) if link_of(row) in news else -1
            if at >= 0:
                model.dataChanged.emit(model.index(at, column), model.index(at, column))

    def _fail(self, _error: object) -> None:
        self._busy = False  # The cell stays empty after a failed request


def link_of(row: Row) -> str:
    """Return the contract id of a task, qualified by a foreign ledger, or an empty string."""
    ours = getattr(row.view.entry, "engine", None)
    return getattr(ours, "contract_id", None) or ""


def _asks(row: Row) -> bool:
    return row.live or known_contract(link_of(row)) is None
