"""Doctor dialog, which checks everything that a task needs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from engine.doctor import Finding, Report, beside, looks
from engine.model.errors import EngineError
from engine.text.messages import ENGLISH, say
from gui.context.window_context import WindowContext
from gui.i18n import language
from gui.style.accessibility import InOrder
from gui.style.theme import TonedLabel, heading, plain_label

if TYPE_CHECKING:
    from engine.service.engine import Engine

SIZE = QSize(720, 520)
ERRAND = "doctor"
TONES = {"ok": "good", "warning": "warning", "problem": "bad"}


class DoctorDialog(InOrder, QDialog):
    """Dialog that starts the checks when shown and stops them when closed."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self._found: list[Finding] = []
        self.setWindowTitle(self.tr("Doctor"))
        self.resize(SIZE)
        self._verdict = heading("", self)
        self._bar = QProgressBar(self)
        self._beside = ctx.ledgers.states
        self._bar.setRange(0, len(looks()) + len(self._beside))
        self._bar.setAccessibleName(self.tr("How far the look is"))
        self._sheet = QWidget(self)
        self._grid = QGridLayout(self._sheet)
        self._again = QPushButton(self.tr("Look again"), self)
        self._stop = QPushButton(self.tr("Stop"), self)
        self._copy = QPushButton(self.tr("Copy the report"), self)
        self._close = QPushButton(self.tr("Close"), self)
        self._lay_out()
        self._again.clicked.connect(self.look)
        self._stop.clicked.connect(self._call_off)
        self._copy.clicked.connect(self._copy_report)
        self._close.clicked.connect(self.accept)
        self.finished.connect(lambda _: ctx.bridge.call_off(ERRAND))
        self.look()

    def _lay_out(self) -> None:
        self._grid.setHorizontalSpacing(14)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnStretch(2, 1)
        area = QScrollArea(self)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        whole = QWidget(area)
        inner = QVBoxLayout(whole)
        inner.setContentsMargins(0, 0, 8, 0)
        inner.addWidget(self._sheet)
        inner.addStretch(1)
        area.setWidget(whole)
        end = QHBoxLayout()
        for button in (self._copy, self._again, self._stop):
            end.addWidget(button)
        end.addStretch(1)
        end.addWidget(self._close)
        self._close.setDefault(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 16, 18, 14)
        column.setSpacing(10)
        column.addWidget(self._verdict)
        column.addWidget(self._bar)
        column.addWidget(area, 1)
        column.addLayout(end)

    @property
    def report(self) -> Report:
        """The findings so far."""
        return Report(tuple(self._found))

    def look(self) -> None:
        """Run all checks again."""
        self._found = []
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        self._show_progress(0)

        async def examine(engine: Engine) -> None:
            for number, one in enumerate(looks(), 1):
                self._add(await asyncio.to_thread(one, engine.settings))
                self._show_progress(number)
            for number, state in enumerate(self._beside, len(looks()) + 1):
                found = await asyncio.to_thread(beside, state.path, watch_only=state.watch_only)
                self._add([_of(state.label, one) for one in found])
                self._show_progress(number)

        self._ctx.bridge.ask(examine, lambda _: self._end(), self._fail, name=ERRAND)

    def _show_progress(self, number: int) -> None:
        total = self._bar.maximum()
        self._bar.setValue(number)
        self._bar.setVisible(number < total)
        self._stop.setVisible(number < total)
        self._again.setVisible(number >= total)
        self._copy.setEnabled(number > 0)
        self._verdict.show_text(self.tr("Looking at everything a task needs…"))

    def _add(self, found: Sequence[Finding]) -> None:
        names = {
            "ok": self.tr("✓ Fine"),
            "warning": self.tr("⚠ Take care"),
            "problem": self.tr("✖ Problem"),
        }
        top = Qt.AlignmentFlag.AlignTop
        for one in found:
            self._found.append(one)
            row = self._grid.rowCount()
            state = names.get(one.state, one.state)
            self._grid.addWidget(TonedLabel(state, TONES.get(one.state, "muted")), row, 0, top)
            self._grid.addWidget(plain_label(_subject(one)), row, 1, top)
            words = f"{one.text}\n{one.advice}" if one.advice else one.text
            said = plain_label(words, wrap=True)
            said.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self._grid.addWidget(said, row, 2)

    def _end(self) -> None:
        worst = [one for one in self._found if one.state == "problem"]
        cares = [one for one in self._found if one.state == "warning"]
        if worst:
            self._verdict.show_text(self.tr("Something keeps tasks from running."))
        elif cares:
            self._verdict.show_text(self.tr("Tasks can run; some things want care."))
        else:
            self._verdict.show_text(self.tr("Everything a task needs is there."))

    def _fail(self, error: EngineError) -> None:
        self._show_progress(self._bar.maximum())
        self._verdict.show_text(language.sentence(error))

    def _call_off(self) -> None:
        self._ctx.bridge.call_off(ERRAND)
        self._show_progress(self._bar.maximum())
        self._verdict.show_text(self.tr("Stopped before everything was looked at."))

    def _copy_report(self) -> None:
        QGuiApplication.clipboard().setText(self.report.text())


def _of(label: str, one: Finding) -> Finding:
    """Return a finding of a further ledger, at most a warning, since it blocks no task here."""
    state = "warning" if one.state == "problem" else one.state
    return replace(one, subject=f"{label}: {_subject(one)}", state=state)


def _subject(one: Finding) -> str:
    """Return the display name of the subject of a finding, if it has one."""
    known = f"subject.{one.subject}"
    return say(known) if known in ENGLISH else one.subject
