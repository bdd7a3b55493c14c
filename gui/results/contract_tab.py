"""What a task's contract counts, what its guard says, and which items are named."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

from engine.contracts.contract_views import ContractView
from engine.model.display import display
from engine.model.errors import EngineError
from engine.model.records import TaskRecord, TaskView
from engine.model.status import moment
from engine.results.units import Unit
from engine.text.catalogue import retold
from engine.text.words import clock, count
from gui.engine_link.services import Desk
from gui.i18n import language
from gui.results.viewer_tab import ViewerTab
from gui.style.theme import plain_label

_CHARS = 500


class ContractTab(ViewerTab):
    """Of a task without a contract it says so."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.facts = plain_label("", self, wrap=True)
        self.items = QPlainTextEdit(self)
        self.items.setReadOnly(True)
        self.items.setTabChangesFocus(True)
        self.items.setAccessibleName(self.tr("Items of the contract"))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 0)
        column.addWidget(self.facts)
        column.addWidget(self.items, 1)
        self.setFocusProxy(self.items)

    def show_task(self, view: TaskView, unit: Unit | None) -> None:
        entry = view.entry
        engine_fields = entry.engine if isinstance(entry, TaskRecord) else None
        link = engine_fields.contract_id if engine_fields is not None else None
        self.items.setVisible(link is not None)
        if link is None:
            self.facts.show_text(self.tr("This task has no contract: nothing was promised of it."))
            return
        self.desk.bridge.ask(
            lambda engine: engine.contract(link), self._show, self._tell, name=self._name
        )

    def leave(self) -> None:
        self.desk.bridge.call_off(self._name)

    @property
    def _name(self) -> str:
        return f"contract {id(self)}"

    def _show(self, found: ContractView) -> None:
        self.facts.show_text("\n".join(_facts(found)))
        text = "\n".join(_items(found))
        if self.items.toPlainText() != text:
            self.items.setPlainText(text)

    def _tell(self, error: EngineError) -> None:
        self.facts.show_text(language.sentence(error))


def _tr(text: str) -> str:
    return QCoreApplication.translate("ContractTab", text)


def _facts(found: ContractView) -> Iterator[str]:
    one, guard = found.contract, found.guard
    expected = _tr("unknown") if one.expected_total is None else count(one.expected_total)
    counts = _tr("Expected {0} · done {1} · failed {2} · skipped {3}")
    numbers = map(count, (one.completed_total, one.failed_total, one.skipped_total))
    yield counts.format(expected, *numbers)
    yield display(retold(guard.reason), _CHARS)
    if guard.suggested_next_action:
        yield display(retold(guard.suggested_next_action), _CHARS)
    if one.forced is not None:
        text = _tr("⚑ Forced by {0} at {1}: {2}")
        at = clock(moment(one.forced.at))
        yield text.format(display(one.forced.by, 80), at, display(one.forced.reason, _CHARS))


def _items(found: ContractView) -> Iterator[str]:
    one = found.contract
    for item in found.missing:
        yield _tr("missing: {0}").format(display(item, _CHARS))
    for failed in one.failed:
        text = _tr("failed: {0} ({1})")
        yield text.format(display(failed.item, _CHARS), display(failed.reason, _CHARS))
    for skipped in one.skipped:
        text = _tr("skipped: {0} ({1})")
        yield text.format(display(skipped.item, _CHARS), display(skipped.reason, _CHARS))
    for item in one.completed:
        yield _tr("done: {0}").format(display(item, _CHARS))
