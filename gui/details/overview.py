"""Overview tab: the reason of the task's state, budgets, phase, contract and facts."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAction,
    QHideEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QApplication,
    QBoxLayout,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from engine.model.blocked_places import Refusal, Refusals
from engine.model.display import display
from engine.model.ledger_ids import plain_id
from engine.model.records import TaskRecord, TaskView, Unreadable
from engine.model.status import STALL_MIN_MS, Reason, Standing, standing
from engine.query.attention_reasons import reasons
from engine.text import words
from engine.text.words import (
    CRAWL_DELAY,
    ConcurrencyChange,
    Wait,
    concurrency_words,
    count,
    wait_words,
)
from gui.context.actions import is_suggested
from gui.context.window_context import Desk
from gui.details.details_tab import EDGES
from gui.details.facts import (
    FIELDS,
    Fact,
    arguments_text,
    ended_by,
    facts,
    gauge_lines,
    refused_text,
)
from gui.details.overview_sections import (
    BudgetBars,
    ContractPart,
    Extra,
    Extras,
    ProgressBand,
    TargetLink,
    is_cut,
)
from gui.i18n.names import place_of
from gui.style.theme import (
    PlainLabel,
    TonedLabel,
    fixed_pitch,
    heading,
    lead,
    plain_keys,
    plain_label,
    plain_tip,
    tone,
)
from gui.style.widgets import arrange

# Buttons to the task that this one reruns, and to its own reruns.


class RelatedLinks(QWidget):
    """Links to related tasks; `wanted` carries a task id. Hidden without related tasks."""

    wanted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._parent_id, self._reruns = "", list[str]()
        self.parent_link, self.rerun_link = QPushButton(self), QPushButton(self)
        self.parent_link.clicked.connect(lambda: self.wanted.emit(self._parent_id))
        self.rerun_link.clicked.connect(lambda: self.wanted.emit(self._reruns[-1]))
        arrange(QHBoxLayout(self), self.parent_link, self.rerun_link, 1, margins=0)
        self.hide()

    def show_related(
        self, parent: str, known: bool, reruns: Sequence[str], *, resumes: bool
    ) -> None:
        """Show links to `parent` (`known`: still in the list) and `reruns` (ids, newest last).

        `resumes`: the task continues its parent.
        """
        self._parent_id, self._reruns = parent, list(reruns)
        self.parent_link.setVisible(bool(parent))
        self.parent_link.setEnabled(known)
        text = self.tr("Show what it is a re-run of")
        text = self.tr("Show what it resumes") if resumes else text
        self.parent_link.setText(plain_keys(text))
        why = display(plain_id(parent), 40) if known else self.tr("It is no longer in the list.")
        self.parent_link.setToolTip(plain_tip(why))
        self.rerun_link.setVisible(bool(reruns))
        number = count(len(reruns))
        text = (
            self.tr("Show its re-run")
            if len(reruns) == 1
            else self.tr("Show the newest of its {0} re-runs").format(number)
        )
        self.rerun_link.setText(plain_keys(text))
        self.setVisible(bool(parent or reruns))


MOST_BUTTONS = 2
_SIDE_BY_SIDE, _STACKED = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom


class StateActions(QWidget):
    """Buttons of the first actions that the task's state suggests; hidden without any."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.buttons: dict[QAction, QPushButton] = {}
        self._row = arrange(QBoxLayout(_SIDE_BY_SIDE, self), margins=0)
        self.hide()

    def fit(self, room: int) -> None:
        """Put the buttons side by side where `room` (pixels) suffices, else below each other."""
        shown = [one for one in self.buttons.values() if one.isVisibleTo(self)]
        gaps = self._row.spacing() * (len(shown) - 1)
        wide = sum(one.sizeHint().width() for one in shown) + gaps
        self._row.setDirection(_SIDE_BY_SIDE if wide <= room else _STACKED)

    def offer(self, actions: Iterable[QAction]) -> None:
        """Show buttons for these actions, most urgent first, while they are suggested."""
        for action in actions:
            self.buttons[action] = button = QPushButton(self)
            self._row.addWidget(button)
            lead(button, 1.0, bold=True)
            button.clicked.connect(action.trigger)
            action.changed.connect(self._show)
        self._show()

    def _show(self) -> None:
        shown = list(filter(is_suggested, self.buttons))[:MOST_BUTTONS]
        for action, button in self.buttons.items():
            button.setText(plain_keys(action.iconText()))
            button.setIcon(action.icon())
            button.setVisible(action in shown)
        self.setVisible(bool(shown))


# Phases of an envelope as a line of steps, the current one emphasised.

PHASES = ("explore", "act", "verify", "recover", "done")
_GAP, _PAD = 22, 8


class PhaseSteps(QWidget):
    """Phases of a task; hidden for a task without a phase."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._phase = ""
        self._names = {
            "explore": self.tr("explore"),
            "act": self.tr("act"),
            "verify": self.tr("verify"),
            "recover": self.tr("recover"),
            "done": self.tr("done"),
        }
        self.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
        self.hide()

    def show_phase(self, phase: str) -> None:
        """Show the record's phase; an unknown one is added after the others."""
        if phase != self._phase:
            self._phase = phase
            name = self._names.get(phase, display(phase, 40))
            self.setAccessibleName(self.tr("Phase: {0}").format(name))
            self.updateGeometry()
            self.update()
        self.setVisible(bool(phase))

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        width = sum(metrics.horizontalAdvance(name) + 2 * _PAD for name in self._steps())
        return QSize(width + _GAP * len(PHASES), metrics.height() + 8)

    def _steps(self) -> list[str]:
        known = [self._names[phase] for phase in PHASES]
        return known if self._phase in self._names else [*known, display(self._phase, 40)]

    def paintEvent(self, _: QPaintEvent) -> None:
        painter, palette = QPainter(self), QApplication.palette()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        metrics = self.fontMetrics()
        steps = self._steps()
        here = PHASES.index(self._phase) if self._phase in PHASES else len(steps) - 1
        x, height = 1.0, metrics.height() + 4
        for number, name in enumerate(steps):
            if number:
                painter.setPen(QPen(tone("muted", palette), 1))
                middle = self.height() / 2
                painter.drawLine(QPointF(x + 3, middle), QPointF(x + _GAP - 3, middle))
                x += _GAP
            box = QRectF(x, 2, metrics.horizontalAdvance(name) + 2 * _PAD, height)
            self._paint_step(painter, box, name, here=number == here)
            x = box.right()
        painter.end()

    def _paint_step(self, painter: QPainter, box: QRectF, name: str, *, here: bool) -> None:
        palette = QApplication.palette()
        if here:  # frame and bold, so that the colour is not the only sign
            font = self.font()
            font.setBold(True)
            painter.setFont(font)
            painter.setPen(QPen(tone("accent", palette), 1.4))
            painter.drawRoundedRect(box, box.height() / 2, box.height() / 2)
        painter.setPen(tone("accent" if here else "muted", palette))
        painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter), name)
        painter.setFont(self.font())


# Facts of a task, one per line, and its arguments, all selectable.

_MOST_LINES = 400


class FactGrid(QWidget):
    """Names at the left, values at the right; facts without value are omitted."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(5)
        self._grid.setColumnStretch(1, 1)
        self._lines = {field: self._line(row, field) for row, field in enumerate(FIELDS)}

    def show_facts(self, found: Iterable[Fact]) -> None:
        facts = {fact.field: fact for fact in found}
        for field, (title, value) in self._lines.items():
            fact = facts.get(field)
            if fact is not None:
                value.show_fact(fact.text, fact.tone)
            title.setVisible(fact is not None)
            value.setVisible(fact is not None)

    def text_of(self, field: str) -> str:
        """Return a field's value; "" if the field is hidden."""
        pair = self._lines.get(field)
        return pair[1].text() if pair is not None and pair[1].isVisibleTo(self) else ""

    def _line(self, row: int, field: str) -> tuple[PlainLabel, _Value]:
        title, value = plain_label(words.say(f"field.{field}"), tone="muted"), _Value()
        value.setAccessibleName(words.say(f"field.{field}"))
        self._grid.addWidget(title, row, 0, Qt.AlignmentFlag.AlignTop)
        self._grid.addWidget(value, row, 1)
        return title, value


class _Value(TonedLabel):
    """Value of a field, coloured by its tone."""

    def __init__(self) -> None:
        super().__init__("", "")
        self.setWordWrap(True)
        can_be_marked(self)

    def show_fact(self, text: str, tone_name: str) -> None:
        if self.text() != text:
            self.show_text(text)
        self.show_tone(tone_name)


class Arguments(QPlainTextEdit):
    """Read-only text in fixed pitch, as high as its lines, so that only the sheet scrolls."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        fixed_pitch(self)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self.setTabChangesFocus(True)
        self.setAccessibleName(words.say("field.args"))

    def show_text(self, text: str) -> None:
        if self.toPlainText() != text:
            self.setPlainText(text)
            self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Take the height of all lines; a plain document measures itself in lines."""
        lines = min(_MOST_LINES, math.ceil(self.document().size().height()))
        margins = 2 * (int(self.document().documentMargin()) + self.frameWidth())
        height = lines * self.fontMetrics().lineSpacing() + margins + 2
        if height != self.height():
            self.setFixedHeight(height)


def can_be_marked(label: QLabel) -> None:
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)


AGE_MS, ENDED_AGE_MS = 1000, 5000
LEAST_CHARS = 110  # room in which facts and arguments stand side by side
LEAST_REASON = 40  # characters of the reason that have room beside the buttons
MOST_WAITS = 3  # hosts; the events have all


class Overview(QScrollArea):
    """Overview tab. `duplicate` requests the start dialog with this task's arguments.

    `aged` reports that its ages were updated by its own clock.
    """

    duplicate = Signal()
    aged = Signal()

    def __init__(self, parent: QWidget | None = None, desk: Desk | None = None) -> None:
        super().__init__(parent)
        self._view: TaskView | None = None
        self._desk = desk
        self._stall_after_ms: float = STALL_MIN_MS
        self._speed = ""
        self._refused, self._extra = Refusals(), Extra()
        self._waits: dict[tuple[str, str], Wait] = {}
        self._concurrency: ConcurrencyChange | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        sheet = QWidget(self)
        self._why = plain_label("", sheet, wrap=True)
        lead(self._why, 1.1)
        can_be_marked(self._why)
        self.budgets, self.phase = BudgetBars(sheet), PhaseSteps(sheet)
        self.contract, self.links = ContractPart(sheet), RelatedLinks(sheet)
        self.state_actions = StateActions(sheet)
        self.target, self.band = TargetLink(sheet), ProgressBand(sheet)
        self.grid, self.picture = FactGrid(sheet), PlainLabel("", sheet)
        self.picture.setAccessibleName(self.tr("Newest picture of the task"))
        self._args_title = heading(words.say("field.args"), sheet, grow=1.0)
        self._args = Arguments(sheet)
        self._args_title.setBuddy(self._args)
        self._duplicate = QPushButton(self.tr("Duplicate…"), sheet)
        self._duplicate.clicked.connect(self.duplicate)
        self._lay_out(sheet)
        self._aging = QTimer(self)
        self._aging.timeout.connect(self._age)
        self._extras = Extras(desk, self)
        self._extras.changed.connect(self._show_extra)

    def _lay_out(self, sheet: QWidget) -> None:
        self.setAccessibleName(words.say("details.overview"))
        said = QVBoxLayout()
        said.setSpacing(8)
        for part in (self.contract, self.budgets, self.phase, self.links, self.grid):
            said.addWidget(part)
        said.addStretch(1)
        args = arrange(QHBoxLayout(), self._args_title, self._duplicate, 1)
        beside = arrange(QVBoxLayout(), self.picture, args, self._args, 1, spacing=10)
        self._columns = arrange(QBoxLayout(_SIDE_BY_SIDE), (said, 3), (beside, 2), spacing=16)
        buttons = (self.state_actions, 0, Qt.AlignmentFlag.AlignLeft)
        self._head = arrange(QBoxLayout(_SIDE_BY_SIDE), (self._why, 1), buttons)
        parts = (self._head, self.target, self.band, self._columns)
        arrange(QVBoxLayout(sheet), *parts, 1, margins=EDGES, spacing=8)
        self.setWidget(sheet)
        sheet.installEventFilter(self)
        self.picture.hide()
        self._duplicate.hide()

    def show_view(
        self, view: TaskView, stall_after_ms: float = STALL_MIN_MS, speed: str = ""
    ) -> None:
        """Show this task's current facts; `speed` is its rate and time left."""
        self._view, self._stall_after_ms, self._speed = view, stall_after_ms, speed
        self.target.show_view(view)
        self._show_arguments()
        self._fill()
        self._pace()

    def _show_arguments(self) -> None:
        """Show the arguments; ones too large for the list are loaded by `Extras`."""
        entry = self._view.entry if self._view is not None else None
        text = ""
        if entry is not None and is_cut(entry) and self._extras.can_read:
            text = self._extra.arguments
        elif isinstance(entry, TaskRecord):
            text = arguments_text(entry.args_summary)
        self._args_title.setVisible(bool(text))
        self._args.setVisible(bool(text))
        self._args.show_text(text)

    def _age(self) -> None:
        self._fill()
        self.aged.emit()

    def show_age(self) -> None:
        """Show the ages as of now, as the list has just done."""
        if self.isVisible():
            self._fill()

    def start_over(self) -> None:
        """Clear blocked requests and loaded data for another task."""
        self._refused, self._waits, self._concurrency = Refusals(), {}, None
        self._extras.look(None)
        self._show_extra(Extra())
        self.verticalScrollBar().setValue(0)

    def offer_duplicate(self, offered: bool) -> None:
        """Show or hide the button that starts a task like this one."""
        record = self._view is not None and isinstance(self._view.entry, TaskRecord)
        self._duplicate.setVisible(offered and record)

    def add_refused(self, found: Iterable[Refusal]) -> None:
        """Add blocked requests of this task."""
        known = len(self._refused)
        self._refused.add(found)
        if len(self._refused) != known or known:
            self._fill()

    def add_concurrency(self, found: Iterable[ConcurrencyChange]) -> None:
        """Add changes of the number of pages that load at once; the newest counts."""
        known = self._concurrency
        for one in found:
            if self._concurrency is None or one.ts >= self._concurrency.ts:
                self._concurrency = one
        if self._concurrency is not known:
            self._fill()

    def add_waits(self, found: Iterable[Wait]) -> None:
        """Add waits of this task; for each host and reason the newest counts."""
        new = list(found)
        for one in new:
            known = self._waits.get((one.host, one.reason), one)
            self._waits[one.host, one.reason] = max(known, one, key=lambda wait: wait.ts)
        if new:
            self._fill()

    def text_of(self, field: str) -> str:
        """Return a field's value; "" if the field is hidden."""
        return self.grid.text_of(field)

    @property
    def sentence(self) -> str:
        """The summary sentence at the top."""
        return self._why.text()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._stack()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow other buttons, texts and letters of the sheet."""
        if event.type() == QEvent.Type.LayoutRequest and watched is self.widget():
            self._stack()
        return super().eventFilter(watched, event)

    def _stack(self) -> None:
        """Put buttons beside the reason and arguments beside facts where there is room."""
        wide = self.viewport().width()
        chars = wide / self.fontMetrics().averageCharWidth()
        self._columns.setDirection(_SIDE_BY_SIDE if chars >= LEAST_CHARS else _STACKED)
        room = wide - EDGES[0] - EDGES[2]
        self.state_actions.fit(room)
        least = LEAST_REASON * self._why.fontMetrics().averageCharWidth()
        beside = room - self.state_actions.sizeHint().width() - self._head.spacing() >= least
        self._head.setDirection(_SIDE_BY_SIDE if beside else _STACKED)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fill()
        self._pace()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._pace()

    def _pace(self) -> None:
        """Update ages while visible only, and less often once the task has ended."""
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
        holds = self._desk is not None and self._desk.bridge.look_at_health().hold is not None
        sentence, found = facts(self._view, now_ms, self._stall_after_ms, held=holds)
        if standing(self._view) is Standing.RUNNING:
            held = (one for one in self._waits.values() if one.holds(now_ms))
            waits = list(map(wait_words, sorted(held, key=lambda one: one.reason == CRAWL_DELAY)))
            sentence = " ".join([*waits[:MOST_WAITS], sentence])
            if self._concurrency is not None:
                found.append(Fact("concurrency", concurrency_words(self._concurrency)))
        if self._why.text() != sentence:
            self._why.show_text(sentence)
        stalled = Reason.STALLED in reasons(self._view, now_ms, self._stall_after_ms)
        self.band.show_view(self._view, "" if stalled else self._speed)
        record = entry if isinstance(entry, TaskRecord) else None
        self.budgets.show_lines(gauge_lines(record, now_ms) if record is not None else [])
        self.phase.show_phase(record.phase or "" if record is not None else "")
        if refused := refused_text(self._refused):
            found.append(Fact("refused", refused, "warning"))
        if record is not None and (by := ended_by(record.kind, self._extra.stopped_by)):
            found.append(by)
        self.grid.show_facts([*found, *self._result_facts(), *self._place()])

    def _result_facts(self) -> Iterator[Fact]:
        """Yield what the summary of the result tells."""
        extra = self._extra
        if extra.connection:
            yield Fact("connection", extra.connection)
        if extra.workers:
            yield Fact("workers", extra.workers)
        if extra.failures:
            yield Fact("failures", extra.failures, "warning")
        if extra.remarks:
            yield Fact("remarks", "\n".join(extra.remarks), "warning")

    def _place(self) -> Iterator[Fact]:
        """Yield the task's ledger, if it is not the window's own."""
        label = self._view.ledger if self._view is not None else ""
        if label and self._desk is not None:
            there = (one for one in self._desk.bridge.ledgers if one.label == label)
            yield from (Fact("ledger", place_of(one)) for one in there)
