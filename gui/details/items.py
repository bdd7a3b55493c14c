"""Items tab: every unit with state and reason, and blocked requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from engine.contracts.contract_views import ContractView
from engine.model.records import TaskRecord, TaskView
from engine.results.units import Unit, UnitState
from gui.details.details_tab import DetailTab
from gui.details.part_bar import PartBar
from gui.details.unit_columns import ITEM_COLUMNS
from gui.details.unit_list import UnitList
from gui.engine_link.services import Desk
from gui.style.theme import plain_tip


class Items(DetailTab):
    """Units of a task that consists of equal steps (pages, actions, parts)."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._view: TaskView | None = None
        self.list = UnitList(desk, ITEM_COLUMNS, self)
        self.list.more = self._others
        self.retry = QPushButton(self.tr("Retry what failed…"), self)
        self.retry.setToolTip(plain_tip(self.tr("Start a new task of the failed items only")))
        self.list.top.addWidget(self.retry)
        self.retry.hide()
        self.part = PartBar(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.part)
        column.addWidget(self.list)
        self.setFocusProxy(self.list)
        self.retry.clicked.connect(self._retry)
        self.list.activated.connect(self._open)
        self.list.counted.connect(self._offer)
        self.list.model.changed.connect(self._offer)
        self.part.all_time.connect(desk.span.clear)
        desk.span.changed.connect(self._apply_time_range)
        if desk.span.range is not None:
            self._apply_time_range()

    def _apply_time_range(self) -> None:
        """Show only units that finished in the time range selected in the Timeline."""
        span = self.desk.span
        self.part.show_span(span.range)
        self.list.model.keep_named(span.names if span.range is not None else None)

    def show_task(self, view: TaskView) -> None:
        self._view = view
        self.list.show_task(view)
        self._offer()

    def leave(self) -> None:
        self.list.leave()

    def _offer(self) -> None:
        """Offer a retry for ended tasks only: a running task may still process the item."""
        entry = self._view.entry if self._view is not None else None
        ended = isinstance(entry, TaskRecord) and entry.is_terminal
        self.retry.setVisible(ended and self.list.model.kinds[UnitState.FAILED] > 0)

    def _retry(self) -> None:
        if self._view is not None:
            self.desk.wishes.retry.emit(self._view.task_id)

    def _open(self, unit: Unit) -> None:
        if self._view is not None:
            self.desk.wishes.result.emit(self._view.task_id, unit)

    async def _others(self, task_id: str, number: int) -> AsyncIterator[Sequence[Unit]]:
        """Yield the contract's items that are no units, and blocked requests."""
        engine = self.desk.bridge.engine
        record = (await engine.tasks.get(task_id)).entry
        link = record.engine.contract_id if isinstance(record, TaskRecord) and record.engine else ""
        if link:
            contract: ContractView = await engine.contracts.get(link)
            known = {one.name for one in self.list.model.units()}
            told = [one for one in _told(contract, number) if one.name not in known]
            yield told
            number += len(told)
        refused = await engine.reading.refusals(task_id)
        yield [
            Unit(number + at, UnitState.REFUSED, one.place, self.tr("Address"), one.reason)
            for at, (one, _) in enumerate(refused.each)
        ]


def _told(view: ContractView, number: int) -> list[Unit]:
    contract = view.contract
    found = [(UnitState.FAILED, one.item, one.reason) for one in contract.failed]
    found += [(UnitState.SKIPPED, one.item, one.reason) for one in contract.skipped]
    found += [(UnitState.WAITING, item, "") for item in view.missing]
    return [
        Unit(number + at, state, item, "", reason) for at, (state, item, reason) in enumerate(found)
    ]
