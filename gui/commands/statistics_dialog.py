"""Statistics dialog: numbers, outcomes and durations of a ledger's tasks."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QFormLayout,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QSizePolicy,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display
from engine.model.records import Status, TaskRecord, TaskView
from engine.query import host_of
from engine.text import words
from gui.context.window_context import WindowContext
from gui.style.accessibility import InOrder
from gui.style.theme import plain_label, tones
from gui.style.widgets import arrange

if TYPE_CHECKING:
    from engine.service.engine import Engine


# Statistics of views, as pure functions without Qt.

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
MOST_HOSTS: Final = 10
MOST_KINDS: Final = 12
ENDS: Final = (Status.COMPLETED, Status.FAILED, Status.CANCELLED)


@dataclass(frozen=True, slots=True)
class Span:
    """A period up to now, divided into equal bars; length 0 covers everything."""

    key: str
    length_ms: int = 0
    bars: int = 0


SPANS: Final = (
    Span("day", DAY_MS, 24),
    Span("week", 7 * DAY_MS, 28),
    Span("month", 30 * DAY_MS, 30),
    Span("all"),
)


@dataclass(frozen=True, slots=True)
class Share:
    """Tasks and failures of one kind, host or ledger; the own ledger has an empty name."""

    name: str
    tasks: int
    failed: int


@dataclass(frozen=True, slots=True)
class Numbers:
    """Statistics of a period.

    `bars` count (completed, failed, cancelled) in each part. `median_ms` and `slow_ms` are
    durations of completed tasks; one task of twenty took longer than `slow_ms`. None without
    completed tasks.
    """

    started: int = 0
    ended: tuple[int, int, int] = (0, 0, 0)
    units: int = 0
    median_ms: float | None = None
    slow_ms: float | None = None
    kinds: tuple[Share, ...] = ()
    hosts: tuple[Share, ...] = ()
    roots: tuple[Share, ...] = ()
    bars: tuple[tuple[int, int, int], ...] = ()

    @property
    def success(self) -> float | None:
        """The share of completed tasks among completed and failed ones."""
        completed, failed, _ = self.ended
        return completed / (completed + failed) if completed + failed else None


def count_up(views: Iterable[TaskView], span: Span, now_ms: float) -> Numbers:
    """Return the statistics of tasks created or ended within `span`."""
    tally = _Tally(span, now_ms)
    for view in views:
        if isinstance(view.entry, TaskRecord):
            tally.add(view, view.entry)
    return tally.numbers()


class _Tally:
    def __init__(self, span: Span, now_ms: float) -> None:
        self._begin = now_ms - span.length_ms if span.length_ms else float("-inf")
        self._now, self._span = now_ms, span
        self._started = self._units = 0
        self._ended: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._hosts: Counter[str] = Counter()
        self._bad_kinds: Counter[str] = Counter()
        self._bad_hosts: Counter[str] = Counter()
        self._roots: Counter[str] = Counter()
        self._bad_roots: Counter[str] = Counter()
        self._took: list[float] = []
        self._bars = [[0, 0, 0] for _ in range(span.bars)]

    def add(self, view: TaskView, record: TaskRecord) -> None:
        made, ended = record.created_at, record.ended_at
        is_new = made is not None and self._begin <= made <= self._now
        is_over = ended is not None and self._begin <= ended <= self._now
        if not is_new and not is_over and self._span.length_ms:
            return
        self._started += is_new or not self._span.length_ms
        self._units += view.units.done if view.units is not None else 0
        host, failed = host_of(view), record.status == Status.FAILED
        self._kinds[record.kind] += 1
        self._bad_kinds[record.kind] += failed
        self._roots[view.ledger] += 1
        self._bad_roots[view.ledger] += failed
        if host:
            self._hosts[host] += 1
            self._bad_hosts[host] += failed
        if record.status in ENDS and (is_over or not self._span.length_ms):
            self._end(record)

    def _end(self, record: TaskRecord) -> None:
        self._ended[record.status] += 1
        if record.ended_at is None:
            return
        if record.status == Status.COMPLETED and record.started_at is not None:
            self._took.append(max(0.0, record.ended_at - record.started_at))
        if self._bars:
            part = (record.ended_at - self._begin) * len(self._bars) / self._span.length_ms
            bar = self._bars[min(len(self._bars) - 1, max(0, int(part)))]
            bar[ENDS.index(Status(record.status))] += 1

    def numbers(self) -> Numbers:
        completed, failed, cancelled = (self._ended[status] for status in ENDS)
        took = sorted(self._took)
        return Numbers(
            started=self._started,
            ended=(completed, failed, cancelled),
            units=self._units,
            median_ms=_at(took, 0.5),
            slow_ms=_at(took, 0.95),
            kinds=_shares(self._kinds, self._bad_kinds, MOST_KINDS),
            hosts=_shares(self._hosts, self._bad_hosts, MOST_HOSTS),
            roots=_shares(self._roots, self._bad_roots, MOST_HOSTS),
            bars=tuple((one[0], one[1], one[2]) for one in self._bars),
        )


def _at(ordered: Sequence[float], share: float) -> float | None:
    """Return the quantile of ordered values."""
    if not ordered:
        return None
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _shares(every: Counter[str], bad: Counter[str], most: int) -> tuple[Share, ...]:
    return tuple(Share(name, number, bad[name]) for name, number in every.most_common(most))


SIZE = QSize(720, 560)
CHART_HEIGHT = 120
ROOTS_HEIGHT = 110
ERRAND = "statistics"
_TONES = ("completed", "failed", "cancelled")


class StatisticsDialog(InOrder, QDialog):
    """Dialog that computes the statistics on a thread when a period is chosen."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self._text = ""
        self.setWindowTitle(self.tr("Statistics"))
        self.resize(SIZE)
        self._span = QComboBox(self)
        self._span.setAccessibleName(self.tr("Span of time"))
        names = {
            "day": self.tr("Last 24 hours"),
            "week": self.tr("Last 7 days"),
            "month": self.tr("Last 30 days"),
            "all": self.tr("Everything"),
        }
        for span in SPANS:
            self._span.addItem(names[span.key], span)
        self._chart = _Chart(self)
        self._facts = QFormLayout()
        self._titles = self._made_titles()
        self._values = [plain_label("", self) for _ in self._titles]
        self._kinds, self._hosts = self._table(self.tr("Kind")), self._table(self.tr("Host"))
        self._roots = self._table(words.say("field.ledger"))
        self._lay_out()
        self._span.currentIndexChanged.connect(lambda _: self.count())
        self.finished.connect(lambda _: ctx.bridge.call_off(ERRAND))
        self.count()

    def _lay_out(self) -> None:
        for title, value in zip(self._titles, self._values, strict=True):
            value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self._facts.addRow(plain_label(title, self, tone="muted"), value)
        self._several = bool(self._ctx.ledgers.states)
        self._roots.setVisible(self._several)
        tables = arrange(QHBoxLayout(), self._kinds, self._hosts)
        self._roots.setMaximumHeight(ROOTS_HEIGHT)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(10)
        column.addWidget(self._span)
        column.addWidget(self._chart)
        column.addLayout(self._facts)
        column.addLayout(tables, 1)
        column.addWidget(self._roots)
        column.addLayout(self._buttons())

    def _made_titles(self) -> tuple[str, ...]:
        tr = self.tr
        return (
            tr("Started"),
            tr("Completed, failed, cancelled"),
            tr("Success rate"),
            tr("Parts done"),
            tr("Median duration"),
            tr("95th percentile"),
        )

    def _buttons(self) -> QHBoxLayout:
        copy, close = QPushButton(self.tr("Copy"), self), QPushButton(self.tr("Close"), self)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._text))
        close.clicked.connect(self.accept)
        close.setDefault(True)
        return arrange(QHBoxLayout(), copy, 1, close)

    def _table(self, title: str) -> QTreeWidget:
        table = QTreeWidget(self)
        table.setRootIsDecorated(False)
        table.setUniformRowHeights(True)
        table.setHeaderLabels([title, self.tr("Tasks"), self.tr("Failed")])
        table.setAccessibleName(title)
        for column in (1, 2):  # Aligned with the numbers below
            table.headerItem().setTextAlignment(column, Qt.AlignmentFlag.AlignRight)
        table.header().setStretchLastSection(False)
        table.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        return table

    def count(self) -> None:
        """Compute the statistics of the chosen period."""
        span = self._span.currentData()
        views = [row.view for row in self._ctx.model.rows.values()]
        now_ms = time.time() * 1000

        async def work(_: Engine) -> Numbers:
            return await asyncio.to_thread(count_up, views, span, now_ms)

        self._ctx.bridge.ask(work, self._show, name=ERRAND)

    def _show(self, numbers: Numbers) -> None:
        facts = self._said(numbers)
        for value, fact in zip(self._values, facts, strict=True):
            value.show_text(fact)
        self._chart.setVisible(bool(numbers.bars))
        self._chart.show_bars(numbers.bars)
        self._chart.setAccessibleDescription(facts[1])
        self._fill(self._kinds, _with_names(numbers.kinds))
        self._fill(self._hosts, numbers.hosts)
        self._fill(self._roots, _named(numbers.roots))
        self._text = self._as_text(facts, numbers)

    def _said(self, numbers: Numbers) -> list[str]:
        completed, failed, cancelled = map(words.count, numbers.ended)
        ended = self.tr("✓ {0} completed · ✖ {1} failed · ⊘ {2} cancelled")
        none = self.tr("none yet")
        success = self.tr("{0} % completed")
        share = numbers.success
        return [
            words.count(numbers.started),
            ended.format(completed, failed, cancelled),
            none if share is None else success.format(round(share * 100)),
            words.count(numbers.units),
            none if numbers.median_ms is None else words.took(numbers.median_ms),
            none if numbers.slow_ms is None else words.took(numbers.slow_ms),
        ]

    def _as_text(self, facts: Sequence[str], numbers: Numbers) -> str:
        """Return all numbers as tab-separated lines."""
        lines = [self._span.currentText()]
        lines += [f"{title}\t{fact}" for title, fact in zip(self._titles, facts, strict=True)]
        kinds = _with_names(numbers.kinds)
        shares = (*kinds, *numbers.hosts, *(_named(numbers.roots) if self._several else ()))
        lines += [f"{display(one.name)}\t{one.tasks}\t{one.failed}" for one in shares]
        return "\n".join(lines)

    def _fill(self, table: QTreeWidget, shares: Sequence[Share]) -> None:
        table.clear()
        for share in shares:
            line = [display(share.name), words.count(share.tasks), words.count(share.failed)]
            item = QTreeWidgetItem(line)
            for column in (1, 2):
                item.setTextAlignment(column, Qt.AlignmentFlag.AlignRight)
            table.addTopLevelItem(item)


def _with_names(kinds: Sequence[Share]) -> list[Share]:
    """Return the shares with the names of the kinds for people."""
    return [replace(one, name=words.kind_name(one.name)) for one in kinds]


def _named(ledgers: Sequence[Share]) -> list[Share]:
    """Return the shares with a display name for the window's own ledger."""
    return [replace(one, name=one.name or words.say("root.here")) for one in ledgers]


class _Chart(QWidget):
    """Stacked bar chart: completed below, then failed, then cancelled."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bars: tuple[tuple[int, int, int], ...] = ()
        self.setFixedHeight(CHART_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("What ended when"))

    def show_bars(self, bars: tuple[tuple[int, int, int], ...]) -> None:
        self._bars = bars
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._bars:
            return
        painter = QPainter(self)
        found = tones(self.palette())
        room = self.height() - self.fontMetrics().height() - 4
        most = max(1, *(sum(bar) for bar in self._bars))
        wide = self.width() / len(self._bars)
        for at, bar in enumerate(self._bars):
            self._paint_bar(painter, bar, QRectF(at * wide + 1, 0, max(1.0, wide - 2), room), most)
        painter.setPen(found["line"])
        painter.drawLine(0, room, self.width(), room)
        painter.setPen(found["muted"])
        stays = Qt.AlignmentFlag.AlignAbsolute  # Time runs from left to right in every language
        below = self.rect().adjusted(0, room + 4, 0, 0)
        painter.drawText(below, Qt.AlignmentFlag.AlignRight | stays, self.tr("now"))
        legend = self.tr("Peak: {0}. Bottom to top: completed, failed, cancelled.")
        highest = legend.format(words.count(most))
        painter.drawText(below, Qt.AlignmentFlag.AlignLeft | stays, highest)
        painter.end()

    def _paint_bar(
        self, painter: QPainter, bar: tuple[int, int, int], room: QRectF, most: int
    ) -> None:
        found = tones(self.palette())
        bottom = room.bottom()
        for number, name in zip(bar, _TONES, strict=True):
            high = room.height() * number / most
            box = QRectF(room.left(), bottom - high, room.width(), high)
            painter.fillRect(box, QColor(found[name]))
            bottom -= high
