"""Read columns in advance: sort values in idle time, and contract counts of visible rows.

With its sort values read, the first sort of a long list by a column is fast.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from engine.contracts.completing import Guard
from gui.engine_link.bridge import Bridge
from gui.tasks.columns import COLUMN_AT, known_contract, learn_contracts
from gui.tasks.row import Row
from gui.tasks.task_model import MADE_FOR_SORT
from gui.tasks.task_table import TaskTable

FEWEST = 20_000  # A shorter list is sorted fast enough without.
SOON_MS = 1000  # Delay after loading, or after a change of the shown columns.
EXPENSIVE = ("took", "ended", "started", "average")  # Read even while hidden.
TURN_MS = 12  # Pause between two slices, in which clicks and keys are processed.
SLICE_S = 0.002
BUSY_SHARE = 0.05  # Share of a turn used by other work that postpones the slice.
BUSY_MS = 250
HIDDEN_MS = 5000


class ColumnPrefetch(QObject):
    """Read the shown and the expensive columns in slices, while the visible window is idle.

    `turned` is emitted after each attempt.
    """

    turned = Signal()

    def __init__(self, table: TaskTable, bridge: Bridge) -> None:
        super().__init__(table)
        self._table = table
        self._steps: Iterator[None] = iter(())
        self._checked_at = self._worked = 0.0
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._turn)
        bridge.loaded.connect(self._start)
        table.header().rearranged.connect(self._start)

    @property
    def is_busy(self) -> bool:
        """True while columns remain to be read."""
        return self._timer.isActive()

    def _start(self) -> None:
        model, header = self._table.tasks, self._table.header()
        if self._timer.isActive() or model.total < FEWEST:
            return
        shown = [one.key for one in header.columns if header.is_wanted(one.key)]
        # Names are made in slices on the first sort by them: they take 16 MB for 100,000 tasks.
        wanted = [key for key in dict.fromkeys((*shown, *EXPENSIVE)) if key not in MADE_FOR_SORT]
        if model.lacks_columns(wanted):
            self._steps = model.prepare_columns(wanted)
            self._timer.start(SOON_MS)
            self._note_time()

    def _turn(self) -> None:
        table = self._table
        if not table.isVisible() or table.window().isMinimized():
            self._timer.start(HIDDEN_MS)
        elif self._others_work():
            self._timer.start(BUSY_MS)
        elif self._read_slice():
            self._timer.start(TURN_MS)
        self._note_time()
        self.turned.emit()

    def _note_time(self) -> None:
        self._checked_at, self._worked = time.perf_counter(), time.thread_time()

    def _others_work(self) -> bool:
        """Return whether this thread has done other work since the last check."""
        worked = time.thread_time() - self._worked
        return worked > BUSY_SHARE * (time.perf_counter() - self._checked_at)

    def _read_slice(self) -> bool:
        """Read for one slice and return False once all columns are read."""
        until = time.perf_counter() + SLICE_S
        more = True
        while more and time.perf_counter() < until:
            more = next(self._steps, self) is None  # Each step is None.
        return more


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
