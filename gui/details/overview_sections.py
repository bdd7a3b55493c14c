"""Sections of the Overview: target, progress, budgets, contract, and what has to be loaded.

Contract, end reason and newest screenshot are loaded off the loop while the tab is visible, and
again when the task has progressed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QGuiApplication, QImage, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QApplication, QGridLayout, QSizePolicy, QVBoxLayout, QWidget

from engine.budgets import Level
from engine.contracts.contract_progress import ContractView
from engine.model.display import display
from engine.model.errors import EngineError
from engine.model.kind_traits import traits_of
from engine.model.records import TaskRecord, TaskView, Unreadable
from engine.model.status import look
from engine.service.engine import Engine
from engine.text import words
from engine.text.messages import retold
from engine.text.words import clock, connection_text, count, failures_text, remarks, workers_text
from gui.context.window_context import Desk
from gui.details.facts import GaugeLine, arguments_text
from gui.engine_link.scheduling import Throttle
from gui.i18n import language
from gui.style.menu import Menu
from gui.style.questions import open_in_browser
from gui.style.theme import PlainLabel, TonedLabel, heading, plain_label, tone
from gui.style.widgets import ElidedLink, arrange
from gui.tasks.cell_painting import Part, bar_colours, paint_bar, paint_progress
from gui.tasks.row import share_of

# The target address, and progress over the whole width.

_BAND_PAD = 12  # pixels of the bar above and below its text, together


class TargetLink(ElidedLink):
    """The address that a task works on; a click opens it in the browser. Hidden without one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._address = ""
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._open_menu)
        self.clicked.connect(lambda: open_in_browser(self._address))
        self.hide()

    def show_view(self, view: TaskView) -> None:
        """Show the target of this task."""
        entry = view.entry
        url = entry.url if isinstance(entry, TaskRecord) else ""
        self._address = url if url.startswith(("http://", "https://")) else ""
        self.show_text(words.bare_address(self._address))
        self.setVisible(bool(self._address))

    def _open_menu(self, at: QPoint) -> None:
        menu = Menu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        copy = menu.addAction(self.tr("Copy address"))
        copy.triggered.connect(lambda: QGuiApplication.clipboard().setText(self._address))
        opened = menu.addAction(self.tr("Open in browser"))
        opened.triggered.connect(lambda: open_in_browser(self._address))
        menu.popup(self.mapToGlobal(at))


class ProgressBand(QWidget):
    """Progress in words on a bar of the state's colour. Hidden while no unit is known."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text, self._part, self._state = "", Part(None), ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.hide()

    def show_view(self, view: TaskView, speed: str) -> None:
        """Show the progress of this task, with its rate and time left in `speed`."""
        entry, units = view.entry, view.units
        if units is None or not isinstance(entry, TaskRecord):
            self.text = ""
            self.hide()
            return
        said = words.progress_spoken(entry.kind, units)
        self.text = f"{said} · {speed}" if speed else said
        share = share_of(units, entry.is_live)
        self._part = Part.of(units, share if share >= 0 else None, entry.is_live)
        self._state = look(view)
        self.setAccessibleName(self.text)
        self.show()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(240, self.fontMetrics().height() + _BAND_PAD)

    def paintEvent(self, _: QPaintEvent) -> None:
        painter, palette = QPainter(self), QApplication.palette()
        ink = palette.color(QPalette.ColorRole.WindowText)
        colours = bar_colours(tone(self._state, palette), tone("bad", palette), ink)
        paint_progress(painter, QRectF(self.rect()), self.text, self._part, colours, margin=0)
        painter.end()


# Budgets as thin bars, each with name, numbers and level in words.

BAR_WIDTH = 140
SIGNS: dict[Level, str] = {"ok": "✓", "warning": "▲", "exceeded": "✖"}
TONES: dict[Level, str] = {"ok": "good", "warning": "warning", "exceeded": "bad"}


class BudgetBars(QWidget):
    """Heading and one line per configured budget; hidden if there is none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lines: list[_Line] = []
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(4, 1)
        title = heading(self.tr("Budgets"), self, grow=1.0)
        arrange(QVBoxLayout(self), title, self._grid, margins=0, spacing=4)
        self.hide()

    def show_lines(self, lines: Sequence[GaugeLine]) -> None:
        """Show exactly these lines, in order."""
        while len(self._lines) < len(lines):
            self._lines.append(self._add(len(self._lines)))
        for number, shown in enumerate(self._lines):
            shown.show_line(lines[number] if number < len(lines) else None)
        self.setVisible(bool(lines))

    def spoken(self) -> list[str]:
        """Return each line as a sentence."""
        return [line.bar.accessibleName() for line in self._lines if line.bar.isVisibleTo(self)]

    def _add(self, row: int) -> _Line:
        line = _Line(
            plain_label("", self, tone="muted"),
            BudgetBar(self),
            plain_label("", self),
            TonedLabel("", "muted", self),
        )
        for column, part in enumerate((line.name, line.bar, line.used, line.state)):
            self._grid.addWidget(part, row, column, Qt.AlignmentFlag.AlignVCenter)
        return line


@dataclass(frozen=True, slots=True)
class _Line:
    name: PlainLabel
    bar: BudgetBar
    used: PlainLabel
    state: TonedLabel

    def show_line(self, given: GaugeLine | None) -> None:
        for part in (self.name, self.bar, self.used, self.state):
            part.setVisible(given is not None)
        if given is None:
            return
        word = words.say(f"budget.level.{given.level}")
        for label, text in ((self.name, given.name), (self.used, given.used)):
            if label.text() != text:
                label.show_text(text)
        self.state.show_text(f"{SIGNS[given.level]} {word}")
        self.state.show_tone(TONES[given.level])
        self.bar.show_fraction(given.fraction, TONES[given.level])
        self.bar.setAccessibleName(f"{given.name}: {given.used}, {word}")


class BudgetBar(QWidget):
    """Used part of a budget; a frame marks an exceeded one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._fraction, self._tone = 0.0, "good"
        self.setFixedSize(self.sizeHint())

    def sizeHint(self) -> QSize:
        return QSize(BAR_WIDTH, self.fontMetrics().height())

    def show_fraction(self, fraction: float, tone_name: str) -> None:
        """Set the used part; 1 is the limit."""
        if (fraction, tone_name) != (self._fraction, self._tone):
            self._fraction, self._tone = fraction, tone_name
            self.update()

    def paintEvent(self, _: QPaintEvent) -> None:
        painter, palette = QPainter(self), QApplication.palette()
        room = QRectF(self.rect()).adjusted(0.5, 0, -0.5, 0)
        fill = tone(self._tone, palette)
        paint_bar(painter, room, min(1.0, self._fraction), fill, tone("track", palette))
        if self._tone == TONES["exceeded"]:
            painter.setPen(fill)
            painter.drawRect(QRectF(room.x(), room.center().y() - 5, room.width() - 1, 10))
        painter.end()


# Progress of a task's contract: done, failed, skipped, missing.

BAR_HEIGHT = 10
LEAST_WIDTH, MOST_WIDTH = 160, 560
_SAID_CHARS = 500
_SOLID, _HATCH, _DOTS = (
    Qt.BrushStyle.SolidPattern,
    Qt.BrushStyle.BDiagPattern,
    Qt.BrushStyle.Dense5Pattern,
)


class ContractPart(QWidget):
    """Heading, progress bar, counts and guard of the contract; hidden without a contract."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.bar = ContractBar(self)
        self.counts = plain_label("", self, wrap=True)
        self.guard = TonedLabel("", "muted", self)
        self.forced = TonedLabel("", "warning", self)
        for toned in (self.guard, self.forced):
            toned.setWordWrap(True)
        for label in (self.counts, self.guard, self.forced):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        title = heading(self.tr("Contract"), self, grow=1.0)
        parts = (title, self.bar, self.counts, self.guard, self.forced)
        arrange(QVBoxLayout(self), *parts, margins=0, spacing=3)
        self.hide()

    def show_contract(self, view: ContractView | None, problem: str = "") -> None:
        """Show the contract, or `problem` if it cannot be read."""
        self.setVisible(view is not None or bool(problem))
        self.bar.setVisible(view is not None)
        self.counts.setVisible(view is not None)
        self.forced.setVisible(view is not None and view.contract.forced is not None)
        if view is None:
            self.guard.show_tone("bad")
            self.guard.show_text(problem)
            return
        self.bar.show_counts(*self._numbers(view))
        self.counts.show_text(self._counts(view))
        self.bar.setAccessibleName(self.counts.text())
        guard = view.guard
        self.guard.show_tone("good" if guard.allowed else "warning")
        said = retold(guard.reason)
        if not guard.allowed:
            said = f"{said} {retold(guard.suggested_next_action)}"
        self.guard.show_text(display(said, _SAID_CHARS))
        if (forced := view.contract.forced) is not None:
            told = self.tr("⚑ Completed by force by {0} at {1}: {2}")
            by, why = display(forced.by, 80), display(forced.reason, _SAID_CHARS)
            self.forced.show_text(told.format(by, clock(forced.at), why))

    @staticmethod
    def _numbers(view: ContractView) -> tuple[int, int, int, int | None]:
        guard = view.guard
        seen = guard.completed_count + guard.failed_count + guard.skipped_count
        total = guard.expected_total
        missing = None if total is None else max(0, total - seen)
        return guard.completed_count, guard.failed_count, guard.skipped_count, missing

    def _counts(self, view: ContractView) -> str:
        done, failed, skipped, missing = self._numbers(view)
        parts = [self.tr("{0} done").format(count(done))]
        if failed:
            parts.append(self.tr("{0} failed").format(count(failed)))
        if skipped:
            parts.append(self.tr("{0} skipped").format(count(skipped)))
        if missing is None:
            parts.append(self.tr("total not known"))
        else:
            total = view.guard.expected_total or 0
            said = self.tr("{0} missing of {1}")
            parts.append(said.format(count(missing), count(total)))
        return " · ".join(parts)


class ContractBar(QWidget):
    """Stacked bar of done, failed, skipped and missing; patterns repeat the colours."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._parts: tuple[int, int, int, int | None] = (0, 0, 0, 0)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(LEAST_WIDTH)
        self.setMaximumWidth(MOST_WIDTH)

    def sizeHint(self) -> QSize:
        return QSize(MOST_WIDTH, BAR_HEIGHT + 2)

    def show_counts(self, done: int, failed: int, skipped: int, missing: int | None) -> None:
        """Set the counts; `missing` is None while the total is unknown."""
        if (done, failed, skipped, missing) != self._parts:
            self._parts = (done, failed, skipped, missing)
            self.update()

    def paintEvent(self, _: QPaintEvent) -> None:
        painter, palette = QPainter(self), QApplication.palette()
        done, failed, skipped, missing = self._parts
        room = QRectF(0.5, 1, self.width() - 1, BAR_HEIGHT)
        painter.fillRect(room, tone("track", palette))
        whole = done + failed + skipped + (missing or 0)
        x = room.x()
        kinds = ((done, "good", _SOLID), (failed, "bad", _HATCH), (skipped, "muted", _DOTS))
        for number, name, pattern in kinds:
            # A count above 0 is always visible.
            width = max(3.0, room.width() * number / whole) if number else 0.0
            part = QRectF(x, room.y(), min(width, room.right() - x), room.height())
            painter.fillRect(part, QBrush(tone(name, palette), pattern))
            x = part.right()
        painter.setPen(tone("muted", palette))
        painter.drawRect(room)
        painter.end()


NAME = "overview"
EVERY_MS = 1000  # of a live task
PICTURE = QSize(240, 150)


@dataclass(frozen=True, slots=True)
class Extra:
    """Loaded data; `problem` is the error of the contract, `picture` a thumbnail."""

    contract: ContractView | None = None
    problem: str = ""
    stopped_by: str = ""
    remarks: tuple[str, ...] = ()
    failures: str = ""
    connection: str = ""
    workers: str = ""
    picture: QImage | None = None
    arguments: str = ""  # of a record that the list truncates


class Extras(QObject):
    """Loader of the sections; `changed` carries the data of the shown task."""

    changed = Signal(Extra)

    def __init__(self, desk: Desk | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self._view: TaskView | None = None
        self._read: object = None
        self._soon = Throttle(self, EVERY_MS, self._ask, leading=True)

    @property
    def can_read(self) -> bool:
        return self._desk is not None

    def look(self, view: TaskView | None) -> None:
        """Load the data of this task; None stops loading."""
        if self._desk is None:
            return
        other = self._view is None or view is None or view.task_id != self._view.task_id
        self._view = view
        if other:
            self._read = None
            self._soon.cancel()
            self._desk.bridge.call_off(NAME)
        if other and view is not None:
            self.changed.emit(Extra())
        if view is not None and self._read != _state(view):
            self._soon.expedite() if other else self._soon.request()

    def _ask(self) -> None:
        view = self._view
        if self._desk is None or view is None or not isinstance(view.entry, TaskRecord):
            return
        self._read = _state(view)
        record, ratio = view.entry, _scale(self.parent())

        async def work(engine: Engine) -> Extra:
            contract, problem = await _contract(engine, record)
            summary = await _summary(engine, record)
            stopped_by = summary.get("stopped_by")
            if stopped_by == "frontier" and summary.get("links_too_deep"):
                stopped_by = "frontier.deep"
            elif stopped_by == "frontier" and record.args_summary.get("max_depth") == 0:
                stopped_by = "frontier.start"
            return Extra(
                contract,
                problem,
                stopped_by if isinstance(stopped_by, str) else "",
                tuple(remarks(summary)),
                failures_text(summary),
                connection_text(summary),
                workers_text(summary),
                await _picture(engine, record, ratio),
                await _arguments(engine, record),
            )

        self._desk.bridge.ask(work, self.changed.emit, lambda _: None, name=NAME)


def _state(view: TaskView) -> object:
    """Return a value that changes when the data should be loaded again."""
    entry = view.entry
    return getattr(entry, "status", ""), view.units, getattr(entry, "engine", None)


def _scale(parent: QObject | None) -> float:
    ratio = getattr(parent, "devicePixelRatioF", None)
    return float(ratio()) if ratio is not None else 1.0


async def _contract(engine: Engine, record: TaskRecord) -> tuple[ContractView | None, str]:
    named = record.engine.contract_id if record.engine is not None else None
    if not named:
        return None, ""
    try:
        return await engine.contracts.get(named, items=False), ""
    except EngineError as error:
        return None, language.told(error)


async def _summary(engine: Engine, record: TaskRecord) -> Mapping[str, Any]:
    """Return the result's summary; {} without a result."""
    if not record.is_terminal:
        return {}
    try:
        head: Mapping[str, Any] = await engine.tasks.head(record.task_id)
    except EngineError:
        return {}
    summary = head.get("summary")
    return summary if isinstance(summary, Mapping) else head


def is_cut(record: TaskRecord | Unreadable) -> bool:
    """Return whether the list has truncated the arguments."""
    return isinstance(record, TaskRecord) and record.args_summary.get("_truncated") is True


async def _arguments(engine: Engine, record: TaskRecord) -> str:
    if not is_cut(record):
        return ""
    try:
        whole = (await engine.tasks.get(record.task_id)).entry
    except EngineError:
        return ""
    if not isinstance(whole, TaskRecord):
        return ""
    args = whole.args_summary
    if whole.engine is not None and whole.engine.args is not None:
        args = whole.engine.args
    if args.get("_truncated") is True and traits_of(whole.kind).steps:
        return words.say("field.args.commands")
    return await asyncio.to_thread(arguments_text, args)


async def _picture(engine: Engine, record: TaskRecord, ratio: float) -> QImage | None:
    try:
        files = await engine.reading.files(record.task_id)
        pictures = [file for file in files if file.is_picture]
        if not pictures:
            return None
        newest = max(pictures, key=lambda file: file.changed_at)
        data = await engine.reading.picture(record.task_id, newest.name)
    except EngineError:
        return None
    return await asyncio.to_thread(_thumbnail, data, ratio) if data else None


def _thumbnail(data: bytes, ratio: float) -> QImage | None:
    """Decode and scale an image to `PICTURE`; None if it is invalid. Slow: call in a thread."""
    from gui.details.screenshots import decoded  # loaded with the first image, not with the window

    image, _ = decoded(data, PICTURE * ratio)
    if image.isNull():
        return None
    image.setDevicePixelRatio(ratio)
    return image
