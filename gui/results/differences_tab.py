"""Diff tab: compare this run with another run of the same target."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QObject,
    Qt,
    Signal,
)
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QHBoxLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.model.errors import EngineError
from engine.model.ledger_ids import plain_id
from engine.model.records import TaskRecord, TaskView
from engine.model.status import moment
from engine.results.differences import Difference, Differences
from engine.results.units import Unit
from engine.text.words import clock, count, status_word
from gui.details.kind_chips import KindChips
from gui.engine_link.services import Desk
from gui.i18n import language
from gui.results.viewer_tabs import ViewerTab
from gui.style.tables import DISPLAY, ROOT, AnyIndex, PlainTable
from gui.style.theme import plain_label, plain_tip, tone
from gui.tasks.row import Row

KINDS = ("added", "removed", "changed")
MOST_RUNS = 50
_TONES = {"added": "good", "removed": "bad", "changed": "warning"}


class DiffModel(QAbstractTableModel):
    """Differences, filtered by kind of change."""

    widths = (12, 52, 28, 0)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._all: Sequence[Difference] = ()
        self._shown: Sequence[Difference] = ()

    def show_differences(self, found: Sequence[Difference], kinds: frozenset[str]) -> None:
        self.beginResetModel()
        self._all = found
        self._shown = [one for one in found if not kinds or one.change in kinds]
        self.endResetModel()

    def keep_to(self, kinds: frozenset[str]) -> None:
        self.show_differences(self._all, kinds)

    def word(self, kind: str) -> str:
        words = {
            "added": self.tr("+ Added"),
            "removed": self.tr("− Removed"),
            "changed": self.tr("≠ Changed"),
        }
        return words[kind]

    def rowCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self._shown)

    def columnCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self.widths)

    def data(self, index: AnyIndex, role: int = DISPLAY) -> Any:
        if not index.isValid():
            return None
        one = self._shown[index.row()]
        if role == int(Qt.ItemDataRole.ForegroundRole) and index.column() == 0:
            return tone(_TONES[one.change], QApplication.palette())
        after = one.after
        if one.text_changed and one.before == one.after:
            after = self.tr("{0} · other text").format(after)
        cells = (self.word(one.change), one.name, one.before, after)
        if role == DISPLAY:
            return cells[index.column()]
        if role == int(Qt.ItemDataRole.ToolTipRole):
            return plain_tip(cells[index.column()])
        return ", ".join(cells) if role == int(Qt.ItemDataRole.AccessibleTextRole) else None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY) -> Any:
        if orientation != Qt.Orientation.Horizontal or role != DISPLAY:
            return None
        return (self.tr("Change"), self.tr("Item"), self.tr("Before"), self.tr("Now"))[section]


class Diff(ViewerTab):
    """Diff tab; `known` returns the rows of all tasks, to find runs of the same target."""

    _read = Signal(int)  # from a thread

    def __init__(
        self,
        desk: Desk,
        known: Callable[[], Sequence[Row]],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(desk, parent)
        self._known, self._task_id = known, ""
        self.runs = QComboBox(self)
        self.model = DiffModel(self)
        # The sign before the word is wide.
        longest = max(len(self.model.word(kind)) for kind in KINDS) + 4
        widths = (max(self.model.widths[0], longest), *self.model.widths[1:])
        self.table = PlainTable(self.model, self.tr("Differences"), widths, self, grows=1)
        self.chips = KindChips(KINDS, self.model.word, self)
        self.state = plain_label("", self, tone="muted", wrap=True)
        self.stop = QPushButton(self.tr("Stop"), self)
        self._lay_out()
        self.runs.activated.connect(lambda _: self._compare())
        self.chips.changed.connect(self.model.keep_to)
        self.stop.clicked.connect(self._stop)
        self._read.connect(self._show_progress)

    def _lay_out(self) -> None:
        row = QHBoxLayout()
        label = plain_label(self.tr("Compare with"), self)
        label.setBuddy(self.runs)
        self.runs.setAccessibleName(self.tr("The run to compare with"))
        self.runs.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        for widget in (label, self.runs, self.chips, self.stop):
            row.addWidget(widget)
        row.addWidget(self.state, 1)
        self.stop.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 0)
        column.addLayout(row)
        column.addWidget(self.table, 1)
        self.setFocusProxy(self.runs)

    def show_task(self, view: TaskView, unit: Unit | None) -> None:
        if view.task_id == self._task_id:
            return
        self._task_id = view.task_id
        self.runs.clear()
        self.model.show_differences((), frozenset())
        self.chips.show_counts({})
        rows = self._known()
        self.desk.bridge.ask(
            lambda _: asyncio.to_thread(runs_of_same_target, view, rows),
            self._offer,
            name=f"runs {id(self)}",
        )

    def _offer(self, others: Sequence[TaskView]) -> None:
        for other in others:
            self.runs.addItem(run_words(other), other.task_id)
        self.runs.setEnabled(self.runs.count() > 0)
        if self.runs.count():
            self._compare()
        else:
            self.state.show_text(self.tr("There is no other run of the same target."))

    def leave(self) -> None:
        self._stop()
        self._task_id = ""

    @property
    def _name(self) -> str:
        return f"diff {id(self)}"

    def _compare(self) -> None:
        other, task_id = str(self.runs.currentData()), self._task_id
        self.state.show_text(self.tr("Comparing…"))
        self.stop.show()
        self.desk.bridge.ask(
            lambda engine: engine.reading.differences(other, task_id, self._read.emit),
            self._show,
            self._show_error,
            name=self._name,
        )

    def _stop(self) -> None:
        for name in (self._name, f"runs {id(self)}"):
            self.desk.bridge.call_off(name)
        self.stop.hide()
        if self.state.text():
            self.state.show_text(self.tr("Not compared."))

    def _show_progress(self, read: int) -> None:
        if self.stop.isVisible():
            self.state.show_text(self.tr("Comparing… {0} read").format(count(read)))

    def _show(self, found: Differences) -> None:
        self.stop.hide()
        counts = {"added": found.added, "removed": found.removed, "changed": found.changed}
        self.model.show_differences(found.found, self.chips.wanted)
        self.chips.show_counts(Counter(counts))
        text = self.tr("{0} are the same.")
        if not found.found:
            text = self.tr("Nothing differs: {0} are the same.")
        elif sum(counts.values()) > len(found.found):
            text = self.tr("{0} are the same. Only the first differences are shown.")
        self.state.show_text(text.format(count(found.same)))

    def _show_error(self, error: EngineError) -> None:
        self.stop.hide()
        self.state.show_text(language.sentence(error))


def run_words(view: TaskView) -> str:
    """Describe a run in a list: creation time, state, id, and its ledger if it is another one."""
    at = clock(moment(view.entry.created_at))
    told = (at, status_word(view), plain_id(view.task_id)[:8], view.ledger)
    return " · ".join(filter(None, told))


def runs_of_same_target(view: TaskView, rows: Sequence[Row]) -> list[TaskView]:
    """Return tasks of equal kind and address: earlier ones newest first, then later ones.

    Slow with many rows, so call it in a thread.
    """
    entry = view.entry
    if not isinstance(entry, TaskRecord):
        return []
    same = [
        other
        for other in (row.view for row in rows)
        if isinstance(other.entry, TaskRecord)
        and other.task_id != view.task_id
        and (other.entry.kind, other.entry.url) == (entry.kind, entry.url)
    ]
    older = [other for other in same if other.entry.created_at <= entry.created_at]
    newer = [other for other in same if other.entry.created_at > entry.created_at]
    older.sort(key=lambda other: other.entry.created_at, reverse=True)
    newer.sort(key=lambda other: other.entry.created_at)
    return [*older, *newer][:MOST_RUNS]
