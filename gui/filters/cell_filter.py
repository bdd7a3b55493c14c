"""Filter by the value of a cell, with Alt+click or `Filter by this value`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QMouseEvent

from engine.model.display import display, elide_right
from engine.model.ledger_ids import HERE, plain_id
from engine.model.records import EngineFields, TaskRecord
from engine.model.status import Standing
from engine.query import term
from gui.context.window_context import WindowContext
from gui.filters.active_filter import ActiveFilter
from gui.tasks.columns import COLUMNS
from gui.tasks.facets import AGES, OLDER
from gui.tasks.row import Row

_CHARS = 40
_MOST_VALUE = 1000
_NO_FIELDS = EngineFields()
_NO_RECORD = TaskRecord(task_id="")


def condition_of(row: Row, column: str, now_ms: float) -> str:
    """Return the condition for the value of this column, or an empty string without one."""
    make = _CELLS.get(column)
    return make(row, now_ms) if make is not None else ""


def _record(row: Row) -> TaskRecord | None:
    entry = row.view.entry
    return entry if isinstance(entry, TaskRecord) else None


def _status(row: Row, _: float) -> str:
    if row.standing is not Standing.UNKNOWN:
        return f"status:{row.standing.value}"
    status = row.about.status
    return term("status", status, quoted=True) if 0 < len(status) <= _MOST_VALUE else ""


def _task(row: Row, _: float) -> str:
    record = _record(row)
    return _term("url", record.url) if record is not None else ""


def _error(row: Row, _: float) -> str:
    record = _record(row)
    if record is None or record.error is None:
        return ""
    return _term("code", record.error.code or "") or _term("error", record.error.message)


def _budget(row: Row, _: float) -> str:
    return {"ok": "budget:ok", "warning": "budget:near", "exceeded": "budget:exceeded"}.get(
        row.about.budget, ""
    )


def _owner(row: Row, _: float) -> str:
    view = row.view
    if view.ours or view.foreign:
        return "owner:ours" if view.ours else "owner:foreign"
    return "owner:gone" if view.orphaned else ""


def _fields(row: Row) -> EngineFields:
    record = _record(row)
    return (record.engine if record is not None else None) or _NO_FIELDS


def _within(field: str, at: float | None, now_ms: float) -> str:
    """Return the shortest preset age range that includes `at`."""
    if at is None:
        return ""
    spans = ((key.partition(":")[2], ms) for key, ms in AGES.items())
    found = next((span for span, ms in spans if now_ms - at < ms), OLDER.partition(":")[2])
    return f"{field}:{found}"


def _term(key: str, value: str) -> str:
    return term(key, value) if 0 < len(value) <= _MOST_VALUE else ""


_CELLS: Final[dict[str, Callable[[Row, float], str]]] = {
    "attention": lambda row, _: "status:attention" if row.needs else "",
    "status": _status,
    "task": _task,
    "kind": lambda row, _: _term("kind", row.about.kind),
    "progress": lambda row, _: "" if row.done is None else f"done:{row.done}",
    "budget": _budget,
    "age": lambda row, now: _within("age", row.created_at, now),
    "updated": lambda row, now: _within("updated", row.updated_at, now),
    "id": lambda row, _: _term("id", plain_id(row.task_id)),
    "root": lambda row, _: _term("root", row.about.ledger or HERE),
    "host": lambda row, _: _term("host", row.about.host),
    "error": _error,
    "failures": lambda row, _: "failed:>0" if row.view.units and row.view.units.failed else "",
    "contract": lambda row, _: "has:contract" if _fields(row).contract_id is not None else "",
    "forced": lambda row, _: "forced:yes" if _fields(row).forced_at is not None else "forced:no",
    "phase": lambda row, _: _term("phase", (_record(row) or _NO_RECORD).phase or ""),
    "owner": _owner,
    "parent": lambda row, _: _term("parent", plain_id(_fields(row).parent_task_id or "")),
}


class CellFilter(QObject):
    """Alt+click on a cell filters by its value, Alt+Shift+click excludes it."""

    def __init__(self, ctx: WindowContext, narrowing: ActiveFilter) -> None:
        super().__init__(ctx.parent)
        self._narrowing = narrowing
        self._ctx = ctx
        self._action = ctx.actions.add("filter_by_value", self.tr("Filter by t&his value"))
        self._action.setShortcut("Alt+F3")
        self._action.triggered.connect(lambda _=False: self._filter_by_current())
        ctx.actions.keep_to(ctx.table, "filter_by_value")
        ctx.table.viewport().installEventFilter(self)
        # The table has its final model and selection model by now.
        ctx.table.selectionModel().currentChanged.connect(lambda *_: self._name())
        self._name()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QMouseEvent) or event.button() != Qt.MouseButton.LeftButton:
            return False
        if not event.modifiers() & Qt.KeyboardModifier.AltModifier:
            return False
        if event.type() == QEvent.Type.MouseButtonPress:
            index = self._ctx.table.indexAt(event.position().toPoint())
            others = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self._add(self._condition(index), others=others)
        # The release and the second press of a double click must not select a row either.
        return True

    def _condition(self, index: QModelIndex | QPersistentModelIndex) -> str:
        if not index.isValid():
            return ""
        model = self._ctx.model
        return condition_of(model.row_at(index.row()), COLUMNS[index.column()].key, model.now_ms())

    def _filter_by_current(self) -> None:
        self._add(self._condition(self._ctx.table.currentIndex()), others=False)

    def _add(self, condition: str, *, others: bool) -> None:
        if condition:
            self._narrowing.add(f"-{condition}" if others else condition)

    def _name(self) -> None:
        """Show the condition in the menu text."""
        condition = self._condition(self._ctx.table.currentIndex())
        self._action.setEnabled(bool(condition))
        shown = elide_right(display(condition), _CHARS).replace("&", "&&")
        text = (
            self.tr("Filter b&y {0}").format(shown) if shown else self.tr("Filter by t&his value")
        )
        self._action.setText(text)
