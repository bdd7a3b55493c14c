"""The Overview tab: why the task stands where it stands, its budgets, phase and contract, and
the facts around it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QPixmap, QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from engine.model.blocked_places import Refusal, Refusals
from engine.model.pace import STALL_MIN_MS
from engine.model.records import TaskRecord, TaskView, Unreadable
from engine.model.status import Standing, standing
from engine.text import words
from engine.text.host_waits import CRAWL_DELAY, Wait, wait_words
from gui.details.budget_bars import BudgetBars
from gui.details.budget_facts import Fact, gauge_lines
from gui.details.contract_bar import ContractPart
from gui.details.extras import Extra, Extras, is_cut
from gui.details.fact_grid import Arguments, FactGrid, can_be_marked
from gui.details.facts import arguments_text, ended_by, facts, refused_text
from gui.details.phase_steps import PhaseSteps
from gui.details.related_links import KinLinks
from gui.engine_link.services import Desk
from gui.i18n.ledger_names import place_of
from gui.style.fonts import lead
from gui.style.theme import PlainLabel, plain_label

AGE_MS, ENDED_AGE_MS = 1000, 5000
MOST_WAITS = 3  # hosts; all of them stand among the events


class Overview(QScrollArea):
    """A sheet that is read from top to bottom. `duplicate` asks for the start dialog with what
    this task was asked."""

    duplicate = Signal()

    def __init__(self, parent: QWidget | None = None, desk: Desk | None = None) -> None:
        super().__init__(parent)
        self._view: TaskView | None = None
        self._desk = desk
        self._stall_after_ms: float = STALL_MIN_MS
        self._refused, self._extra = Refusals(), Extra()
        self._waits: dict[tuple[str, str], Wait] = {}
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        sheet = QWidget(self)
        self._why = plain_label("", sheet, wrap=True)
        lead(self._why, 1.1)
        can_be_marked(self._why)
        self.budgets, self.phase = BudgetBars(sheet), PhaseSteps(sheet)
        self.contract, self.links = ContractPart(sheet), KinLinks(sheet)
        self.grid, self.picture = FactGrid(sheet), PlainLabel("", sheet)
        self.picture.setAccessibleName(self.tr("Newest picture of the task"))
        self._args_title = plain_label(words.say("field.args"), sheet, tone="muted")
        self._args = Arguments(sheet)
        self._args_title.setBuddy(self._args)
        self._duplicate = QPushButton(self.tr("Duplicate…"), sheet)
        self._duplicate.clicked.connect(self.duplicate)
        self._lay_out(sheet)
        self._aging = QTimer(self)
        self._aging.timeout.connect(self._fill)
        self._extras = Extras(desk, self)
        self._extras.changed.connect(self._show_extra)

    def _lay_out(self, sheet: QWidget) -> None:
        self.setAccessibleName(words.say("details.overview"))
        said = QVBoxLayout()
        said.setSpacing(8)
        for part in (self._why, self.contract, self.budgets, self.phase, self.links, self.grid):
            said.addWidget(part)
        said.addStretch(1)
        top = QHBoxLayout()
        top.setSpacing(16)
        top.addLayout(said, 1)
        top.addWidget(self.picture, 0, Qt.AlignmentFlag.AlignTop)
        args = QHBoxLayout()
        args.addWidget(self._args_title)
        args.addWidget(self._duplicate)
        args.addStretch(1)
        column = QVBoxLayout(sheet)
        column.setContentsMargins(8, 8, 8, 8)
        column.setSpacing(10)
        column.addLayout(top)
        column.addLayout(args)
        column.addWidget(self._args)
        column.addStretch(1)
        self.setWidget(sheet)
        self.picture.hide()
        self._duplicate.hide()

    def show_view(self, view: TaskView, stall_after_ms: float = STALL_MIN_MS) -> None:
        """Show this task's facts as they are now."""
        self._view, self._stall_after_ms = view, stall_after_ms
        self._show_arguments()
        self._fill()
        self._pace()

    def _show_arguments(self) -> None:
        """What of them is too large for a list comes when it was read; see `Extras`."""
        entry = self._view.entry if self._view is not None else None
        text = ""
        if entry is not None and is_cut(entry) and self._extras.can_read:
            text = self._extra.arguments
        elif isinstance(entry, TaskRecord):
            text = arguments_text(entry.args_summary)
        self._args_title.setVisible(bool(text))
        self._args.setVisible(bool(text))
        self._args.show_text(text)

    def start_over(self) -> None:
        """Forget what was refused and read: another task is shown from now on."""
        self._refused, self._waits = Refusals(), {}
        self._extras.look(None)
        self._show_extra(Extra())
        self.verticalScrollBar().setValue(0)

    def offer_duplicate(self, offered: bool) -> None:
        """May a task be started like this one?"""
        record = self._view is not None and isinstance(self._view.entry, TaskRecord)
        self._duplicate.setVisible(offered and record)

    def add_refused(self, found: Iterable[Refusal]) -> None:
        """The browser of this task was refused these as well."""
        known = len(self._refused)
        self._refused.add(found)
        if len(self._refused) != known or known:
            self._fill()

    def add_waits(self, found: Iterable[Wait]) -> None:
        """This task told of these waits as well; of each host the newest of a sort counts."""
        new = list(found)
        for one in new:
            known = self._waits.get((one.host, one.reason), one)
            self._waits[one.host, one.reason] = max(known, one, key=lambda wait: wait.ts)
        if new:
            self._fill()

    def text_of(self, field: str) -> str:
        """What stands beside a field's name; empty when the field is not shown."""
        return self.grid.text_of(field)

    @property
    def sentence(self) -> str:
        """The sentence on top: why now."""
        return self._why.text()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fill()
        self._pace()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._pace()

    def _pace(self) -> None:
        """Ages and times go on only while they are looked at; slower once a task has ended."""
        entry = self._view.entry if self._view is not None else None
        if self.isVisible() and entry is not None and not isinstance(entry, Unreadable):
            self._aging.start(AGE_MS if entry.is_live else ENDED_AGE_MS)
        else:
            self._aging.stop()
        self._extras.look(self._view if self.isVisible() else None)

    def _show_extra(self, extra: Extra) -> None:
        self._extra = extra
        self.contract.show_contract(extra.contract, extra.problem)
        self.picture.setVisible(extra.picture is not None)
        if extra.picture is not None:
            self.picture.setPixmap(QPixmap.fromImage(extra.picture))
        if self._view is not None and is_cut(self._view.entry):
            self._show_arguments()
        self._fill()

    def _fill(self) -> None:
        if self._view is None:
            return
        now_ms, entry = time.time() * 1000, self._view.entry
        sentence, found = facts(self._view, now_ms, self._stall_after_ms)
        if standing(self._view) is Standing.RUNNING:
            held = (one for one in self._waits.values() if one.holds(now_ms))
            waits = list(map(wait_words, sorted(held, key=lambda one: one.reason == CRAWL_DELAY)))
            sentence = " ".join([*waits[:MOST_WAITS], sentence])
        if self._why.text() != sentence:
            self._why.show_text(sentence)
        record = entry if isinstance(entry, TaskRecord) else None
        self.budgets.show_lines(gauge_lines(record, now_ms) if record is not None else [])
        self.phase.show_phase(record.phase or "" if record is not None else "")
        if refused := refused_text(self._refused):
            found.append(Fact("refused", refused, "warning"))
        if record is not None and (by := ended_by(record.kind, self._extra.stopped_by)):
            found.append(by)
        if self._extra.failures:
            found.append(Fact("failures", self._extra.failures, "warning"))
        if self._extra.remarks:
            found.append(Fact("remarks", "\n".join(self._extra.remarks), "warning"))
        self.grid.show_facts([*found, *self._place()])

    def _place(self) -> Iterator[Fact]:
        """Where it is, if that is not the window's own ledger."""
        label = self._view.ledger if self._view is not None else ""
        if label and self._desk is not None:
            there = (one for one in self._desk.bridge.ledgers if one.label == label)
            yield from (Fact("ledger", place_of(one)) for one in there)
