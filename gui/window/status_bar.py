"""Status bar: the engine's health, the folder, and meters of throughput and memory."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from PySide6.QtCore import QEvent, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QStatusBar, QToolButton, QWidget

from engine.model.cluster_workers import WorkerView
from engine.model.display import display, elide_middle
from engine.model.records import LIVE, Health, TaskRecord, TaskView
from engine.service.engine import Engine
from engine.service.feed import Batch
from engine.text.messages import retold
from engine.text.words import clock, count, size_words
from gui.context.window_context import WindowContext
from gui.engine_link.program_server import ServerState, ServerStatus
from gui.i18n import language
from gui.style.icons import wear
from gui.style.theme import (
    MOST_CHARS,
    TonedLabel,
    from_home,
    plain_keys,
    plain_label,
    plain_tip,
    tone,
)
from gui.style.widgets import ElidedLabel, arrange

ROOT_CHARS, ROOM_CHARS, LEAST_CHARS = 60, 30, 14  # ROOM_CHARS: beside the meters
ENGINE_CHARS, WORK_CHARS = 14, 9  # always shown of these texts, where room is short
SPACING = 8  # Pixels around each part
BROWSER_CHARS = 60
MINUTES: Final = 30
MINUTE_S: Final = 60.0
LOOK_MS: Final = 5_000  # interval of the figures; at a second, the numbers would flicker
BAR_WIDTH, BAR_HEIGHT = 3, 16


class _Sign(QWidget):
    """A coloured dot with its meaning as text, so that colour is not the only sign.

    With `least` the text is elided to that many characters where room is short.
    """

    def __init__(self, parent: QWidget | None = None, *, least: int = 0) -> None:
        super().__init__(parent)
        self._dot = TonedLabel("●", "muted")
        self._words = ElidedLabel(least=least) if least else plain_label()
        arrange(QHBoxLayout(self), self._dot, self._words, margins=0, spacing=5)

    @property
    def text(self) -> str:
        return self._words.text()

    def show_state(self, tone_name: str, words: str, hint: str = "") -> None:
        self._dot.show_tone(tone_name)
        self._words.show_text(words)
        self.setToolTip(plain_tip(hint))
        self.setAccessibleName(self._words.text())
        self.setAccessibleDescription(display(hint, MOST_CHARS))


class _Link(QToolButton):
    """Link to a folder, reachable by keyboard."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAutoRaise(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def show_path(self, path: str, hint: str) -> None:
        self.setText(plain_keys(path))
        self.setToolTip(plain_tip(hint))
        self.setAccessibleName(display(hint, MOST_CHARS))


class _Beside(QWidget):
    """Summary of further ledgers with a link, hidden without any."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._dot, self.link = TonedLabel("●", "muted"), _Link(self)
        arrange(QHBoxLayout(self), self._dot, self.link, margins=0, spacing=1)
        self.hide()

    def show_state(self, tone_name: str, words: str, hint: str) -> None:
        self._dot.show_tone(tone_name)
        self.link.show_path(words, hint)
        self.link.setAccessibleName(words)
        self.link.setAccessibleDescription(display(hint, MOST_CHARS))
        self.setVisible(bool(hint))


class StatusBar(QStatusBar):
    """Status bar for one `Health` and a summary of further ledgers."""

    root_clicked = Signal()
    beside_clicked = Signal()
    programs_clicked = Signal()
    workers_clicked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.engine = _Sign(self, least=ENGINE_CHARS)
        self.watcher, self.ground = _Sign(self), _Sign(self)
        self.work, self.root = ElidedLabel(parent=self, least=WORK_CHARS), _Link(self)
        self.beside, self.programs = _Beside(self), _Link(self)
        self.workers = _Link(self)
        self._root = ""
        self.setSizeGripEnabled(False)
        self.setContentsMargins(8, 0, 8, 0)
        for number, part in enumerate((self.engine, self.work, self.watcher)):
            if number:
                self.addWidget(_rule(self))
            self.addWidget(part)
        self._meters: QWidget | None = None
        self.addPermanentWidget(self.ground)
        self.addPermanentWidget(self.workers)
        self.addPermanentWidget(self.programs)
        self.addPermanentWidget(self.beside)
        self.addPermanentWidget(self.root)
        self.ground.hide()
        for link in (self.workers, self.programs):
            link.hide()
            link.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.workers.clicked.connect(self.workers_clicked)
        self.programs.clicked.connect(self.programs_clicked)
        self.root.clicked.connect(self.root_clicked)
        self.beside.link.clicked.connect(self.beside_clicked)

    def add_meters(self, meters: QWidget) -> None:
        """Show figures after the state of the watch, while the bar has room for them."""
        self._meters = meters
        self.addWidget(meters)
        self.fit()

    def show_health(self, health: Health) -> None:
        self.engine.show_state(*self._engine(health))
        self.watcher.show_state(*self._watcher(health))
        self.ground.show_state(
            "warning", self.tr("Ledger at risk"), "\n".join(map(retold, health.concerns))
        )
        self.ground.setVisible(bool(health.concerns))
        hint = self.tr("What this window runs itself. The list also has what other programs run.")
        self.work.show_text(self._work(health), hint)
        self.work.setAccessibleDescription(hint)
        self._root = health.root
        self.fit()

    def show_beside(self, tone_name: str, words: str, hint: str) -> None:
        """Show the summary from `ledger_words.summed_up`; an empty `hint` hides it."""
        self.beside.show_state(tone_name, words, hint)
        self.fit()

    def show_programs(self, status: ServerStatus) -> None:
        """Show that other programs may connect, or why they cannot."""
        runs, failed = status.state is ServerState.RUNNING, status.error is not None
        if runs:
            words = self.tr("Open to programs")
            hint = self.tr("Programs on this machine may start and watch tasks at {0}.")
            hint = hint.format(status.url)
        else:
            words = self.tr("Closed to programs")
            hint = language.told(status.error) if status.error is not None else ""
        wear(self.programs, "warning" if failed else "agent")
        self.programs.setText(words)
        self.programs.setToolTip(plain_tip(hint))
        self.programs.setAccessibleName(words)
        self.programs.setAccessibleDescription(display(hint, MOST_CHARS))
        self.programs.setVisible(runs or failed)
        self.fit()

    def show_workers(self, workers: Sequence[WorkerView] | None) -> None:
        """Show how many workers of clusters load pages, and how many cannot; None: no cluster."""
        self.workers.setVisible(workers is not None)
        if workers is None:
            self.fit()
            return
        lost = sum(one.state == "lost" for one in workers)
        unusable = sum(one.state in ("unusable", "no_browser") for one in workers)
        ready = sum(one.state == "ready" for one in workers)
        words = self.tr("1 worker") if ready == 1 else self.tr("{0} workers").format(count(ready))
        if lost:
            words += " · " + self.tr("{0} lost").format(count(lost))
        if unusable:
            words += " · " + self.tr("{0} not usable").format(count(unusable))
        away = any(one.scheduler_away for one in workers)
        if away:
            words += " · " + self.tr("no scheduler")
        if words != self.workers.text():
            wear(self.workers, "warning" if lost or unusable or away or not ready else "globe")
            hint = self.tr("Workers of a cluster load pages of tasks of this window.")
            self.workers.show_path(words, hint)
            self.workers.setAccessibleName(words)
            self.workers.setAccessibleDescription(hint)
        self.fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            QTimer.singleShot(0, self, self.fit)  # after the parts have the new font

    def fit(self) -> None:
        """Fit the path into the remaining width, so that no part is pushed out.

        The meters are hidden where the path would become too short; where it is at its shortest,
        the layout elides the texts of the engine and of its work.
        """
        if not self._root:
            return
        beside = self.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)
        parts = (self.root, self._meters)
        others = [one for one in beside if one not in parts and not one.isHidden()]
        left = self.width() - sum(one.sizeHint().width() + SPACING for one in others)
        metrics = self.fontMetrics()
        letter = metrics.averageCharWidth()
        if self._meters is not None:
            wide = self._meters.sizeHint().width() + SPACING
            has_room = left - wide >= ROOM_CHARS * letter
            self._meters.setVisible(has_room)
            left -= wide if has_room else 0
        room = max(left - 2 * SPACING, LEAST_CHARS * letter)  # without the frame of the link
        path = metrics.elidedText(short_path(self._root), Qt.TextElideMode.ElideMiddle, room)
        self.root.show_path(path, self.tr("Open {0}").format(self._root))

    def _engine(self, health: Health) -> tuple[str, str, str]:
        browser = display(health.browser_name, BROWSER_CHARS) or self.tr("browser")
        words = {
            "idle": ("muted", self.tr("Engine ready · {0} not started").format(browser)),
            "starting": ("warning", self.tr("Engine ready · starting {0}…").format(browser)),
            "ready": ("good", self.tr("Engine ready · {0}").format(browser)),
            "missing": ("bad", self.tr("No browser found")),
            "failed": ("bad", self.tr("The browser does not start")),
        }
        if health.engine == "closing":
            return "warning", self.tr("Closing…"), ""
        if health.engine != "ready" and health.watcher == "gone":
            return "bad", self.tr("The ledger cannot be opened"), retold(health.watcher_reason)
        if health.engine != "ready":
            return "muted", self.tr("Opening the ledger…"), ""
        if health.read_only:
            return "warning", self.tr("Read-only: nothing new is started"), retold(health.read_only)
        return *words.get(health.browser, words["idle"]), retold(health.browser_reason)

    def _watcher(self, health: Health) -> tuple[str, str, str]:
        words = {
            "live": ("good", self.tr("Live")),
            "polling": ("warning", self.tr("Polling")),
            "gone": ("bad", self.tr("Folder gone")),
            "silent": ("bad", self.tr("No answer")),
        }
        tone_name, text = words.get(health.watcher, words["live"])
        hint = retold(health.watcher_reason) or self.tr("Changes in the ledger are seen at once.")
        return tone_name, text, hint

    def _work(self, health: Health) -> str:
        words = self.tr("{0} running here · {1} slots")
        if health.slots == 1:
            words = self.tr("{0} running here · 1 slot")
        words = words.format(health.running, health.slots)
        if health.queued:
            words += " · " + self.tr("{0} waiting").format(health.queued)
        if health.hold is not None:
            words += " · " + self.tr("starts held")
        return words


def short_path(path: str) -> str:
    """Return `path` with ~ for the home folder, elided in the middle."""
    return elide_middle(display(from_home(path)), ROOT_CHARS)


def _rule(parent: QWidget) -> QFrame:
    rule = QFrame(parent)
    rule.setFrameShape(QFrame.Shape.VLine)
    rule.setForegroundRole(rule.foregroundRole().Mid)
    return rule


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
        return QSize(MINUTES * BAR_WIDTH + 8, BAR_HEIGHT + 6)

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
        left, bottom = (
            (self.width() - MINUTES * BAR_WIDTH) // 2,
            (self.height() + BAR_HEIGHT) // 2,
        )
        painter.fillRect(left, bottom, MINUTES * BAR_WIDTH, 1, tone("muted", palette))
        ink = tone("accent", palette)
        for number, value in enumerate(self._minutes):
            if value:
                high = max(2, round(value / highest * (BAR_HEIGHT - 1)))
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
