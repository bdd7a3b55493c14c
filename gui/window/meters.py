"""Throughput chart and memory figure in the status bar."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from PySide6.QtCore import QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QToolButton, QWidget

from engine.model.records import LIVE, TaskRecord, TaskView
from engine.service.engine import Engine
from engine.service.feed import Batch
from engine.text.words import clock, count, size_words
from gui.context.window_context import WindowContext
from gui.style.theme import plain_label, plain_tip, tone
from gui.style.widgets import arrange

MINUTES: Final = 30
MINUTE_S: Final = 60.0
LOOK_MS: Final = 5_000  # interval of the figures; at a second, the numbers would flicker
BAR_WIDTH, HEIGHT = 3, 16


class Throughput:
    """Finished units of all listed tasks, by minute.

    Units that a task had before it was first seen do not count, unless it began later than this
    count. Source: the views of the live list, which have the total of each task.
    """

    def __init__(self, now_s: float) -> None:
        self.since_s = now_s
        self._minute = now_s // MINUTE_S
        self._minutes: deque[int] = deque([0] * MINUTES, maxlen=MINUTES)
        self._done: dict[str, int] = {}  # tasks whose units count

    def add(self, views: Iterable[TaskView], now_s: float) -> None:
        """Count the units that these tasks finished since their last views."""
        known, finished = self._done, 0
        for view in views:  # 100,000 while a ledger loads: a known task costs no call
            task_id, units = view.entry.task_id, view.units
            done = 0 if units is None else units.done
            before = known.get(task_id)
            if before is None:
                if (before := self._first(view, done)) is None:
                    continue
                known[task_id] = before
            if done > before:
                finished += done - before
                known[task_id] = done
        if finished:
            self._advance(now_s)
            self._minutes[-1] += finished

    def _first(self, view: TaskView, done: int) -> int | None:
        """Return the units that do not count; None for a task that ended before."""
        entry = view.entry
        if type(entry) is not TaskRecord:
            return None
        if entry.created_at >= self.since_s * 1000:
            return 0  # it may have ended before anything was heard of it
        return done if entry.status in LIVE else None

    def forget(self, task_id: str) -> None:
        """Drop a removed task."""
        self._done.pop(task_id, None)

    def minutes(self, now_s: float) -> tuple[int, ...]:
        """Return the units of the last 30 minutes, the current one last."""
        self._advance(now_s)
        return tuple(self._minutes)

    def per_minute(self, now_s: float) -> float:
        """Return the rate of the last two minutes at most, which the current one begins."""
        *_, last, current = self.minutes(now_s)
        passed_s = min(now_s - self.since_s, MINUTE_S + now_s % MINUTE_S)
        return (last + current) * MINUTE_S / max(passed_s, 5.0)

    def _advance(self, now_s: float) -> None:
        minute = now_s // MINUTE_S
        steps = int(min(max(0, minute - self._minute), MINUTES))
        self._minutes.extend([0] * steps)
        self._minute = max(self._minute, minute)


class Sparkline(QToolButton):
    """Bars of the last 30 minutes; a click asks for the statistics."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._minutes: tuple[int, ...] = (0,) * MINUTES
        self.setAutoRaise(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def sizeHint(self) -> QSize:
        return QSize(MINUTES * BAR_WIDTH + 8, HEIGHT + 6)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def show_minutes(self, minutes: tuple[int, ...]) -> None:
        """Show the bars, and repaint only for other ones."""
        if minutes != self._minutes:
            self._minutes = minutes
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        palette, highest = QApplication.palette(), max(self._minutes)
        painter = QPainter(self)
        left, bottom = (self.width() - MINUTES * BAR_WIDTH) // 2, (self.height() + HEIGHT) // 2
        painter.fillRect(left, bottom, MINUTES * BAR_WIDTH, 1, tone("muted", palette))
        ink = tone("accent", palette)
        for number, value in enumerate(self._minutes):
            if value:
                high = max(2, round(value / highest * (HEIGHT - 1)))
                bar = QRect(left + number * BAR_WIDTH, bottom - high, BAR_WIDTH - 1, high)
                painter.fillRect(bar, ink)
        painter.end()


class Meters(QWidget):
    """Throughput of the list and memory of this program, shown while the window is visible.

    Running tasks are counted each time the figures are looked at, not with each report: there may
    be 20,000 reports a second. `changed` reports another width; `clicked` asks for the statistics.
    """

    clicked = Signal()
    changed = Signal()

    def __init__(self, ctx: WindowContext, now_s: Callable[[], float] = time.time) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._now_s = ctx, now_s
        self.throughput = Throughput(now_s())
        self.chart, self.memory = Sparkline(self), plain_label(parent=self)
        arrange(QHBoxLayout(self), self.chart, self.memory, margins=0, spacing=6)
        self.memory.hide()
        self.chart.clicked.connect(self.clicked)
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self.look)
        self._timer.start()
        ctx.bridge.news.connect(self._take)
        ctx.bridge.opened.connect(self.look)
        self._show_rate()

    def look(self) -> None:
        """Count, and update both figures if they are seen; the memory is measured in a thread."""
        self.throughput.add(self._ctx.model.running_views(), self._now_s())
        if not self._ctx.parent.isVisible():
            return
        self._show_rate()
        self._ctx.bridge.ask(_memory, self._show_memory, lambda _: None, name="memory")

    def _take(self, batch: Batch) -> None:
        self.throughput.add(batch.views, self._now_s())
        for task_id in batch.gone:
            self.throughput.forget(task_id)

    def _show_rate(self) -> None:
        now_s = self._now_s()
        minutes = self.throughput.minutes(now_s)
        self.chart.show_minutes(minutes)
        rate = self.tr("{0} items per minute").format(
            count(round(self.throughput.per_minute(now_s)))
        )
        if self.chart.accessibleName() == rate and not any(minutes):
            return
        self.chart.setAccessibleName(rate)
        since = max(self.throughput.since_s, now_s - MINUTES * MINUTE_S)
        words = self.tr("{0}. Since {1}: {2} items, at most {3} in a minute.").format(
            rate, clock(since * 1000, now_s * 1000), count(sum(minutes)), count(max(minutes))
        )
        self.chart.setAccessibleDescription(words)
        self.chart.setToolTip(plain_tip(f"{words}\n{self.tr('Click for the statistics.')}"))

    def _show_memory(self, size_bytes: int) -> None:
        words = size_words(size_bytes)
        if words == self.memory.text():
            return
        self.memory.show_text(words)
        hint = self.tr("{0} of memory: this window, its engine and its browsers.").format(words)
        self.memory.setToolTip(plain_tip(hint))
        self.memory.setAccessibleName(hint)
        self.memory.show()
        self.changed.emit()


async def _memory(engine: Engine) -> int:
    return await engine.memory_bytes()
