"""Notifications: which changes are reported and at which rate, their history, and pop-ups."""

from __future__ import annotations

import datetime
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

import msgspec
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QIcon, QPalette
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display
from engine.model.records import LIVE, TASK_RUN, TERMINAL, TaskRecord, TaskView
from engine.model.status import STALL_MIN_MS, Reason, Standing, moment, standing
from engine.query.attention_reasons import reasons
from engine.service.feed import Batch
from engine.text import words
from engine.text.words import clock, count
from gui.context.window_context import WindowContext
from gui.desktop.awaited_ends import EndNotices
from gui.i18n.names import name_with_ledger
from gui.style.accessibility import InOrder, announce
from gui.style.icons import glyph, icon
from gui.style.theme import plain_label, plain_tip, tone
from gui.style.widgets import arrange

SETTLE_MS = 400  # Delay in ms that groups tasks ending together
BURST_MS = 10_000
MOST_ALONE = 2  # Separate notifications within ten seconds; three or more are grouped into one
MOST_REMEMBERED = 20_000


class Kind(StrEnum):
    """Type of a notification."""

    FAILED = "failed"
    ATTENTION = "attention"
    CHANGED = "changed"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class Happening(msgspec.Struct, frozen=True):
    """One event of one task, with a `reason` for attention."""

    at_ms: float
    kind: Kind
    view: TaskView
    reason: Reason | None = None


class Popup(msgspec.Struct, frozen=True):
    """A desktop notification and the tasks that a click on it shows."""

    title: str
    body: str = ""
    task_ids: tuple[str, ...] = ()
    urgent: bool = False
    sound: bool = False


_ENDS = {
    Standing.COMPLETED: Kind.COMPLETED,
    Standing.FAILED: Kind.FAILED,
    Standing.CANCELLED: Kind.CANCELLED,
}


class Watch:
    """Detect notable task changes, each end and each reason for attention once.

    `stall_after_ms` returns the silence after which a task counts as stalled.
    """

    def __init__(
        self, since_ms: float, stall_after_ms: Callable[[str], float] = lambda _: STALL_MIN_MS
    ) -> None:
        self._since_ms, self._stall_after_ms = since_ms, stall_after_ms
        self._live: dict[str, None] = {}
        self._told: dict[tuple[str, object], None] = {}

    @property
    def live(self) -> Sequence[str]:
        """The live tasks, oldest first."""
        return tuple(self._live)

    def learn(self, views: Iterable[TaskView]) -> None:
        """Record the state before the window opened, without notifications."""
        for view in views:  # 100,000 while a ledger loads: an ended task costs no call
            if type(entry := view.entry) is TaskRecord and entry.status in TERMINAL:
                self._live.pop(entry.task_id, None)
            elif not self._sort_in(view):
                self._needs_of(view, self._since_ms)

    def ended_since(self, views: Iterable[TaskView], now_ms: float) -> list[Happening]:
        """Return tasks, seen for the first time, that ended since this watch started.

        Opening a ledger ends the tasks that a killed program left running.
        """
        records = ((view, view.entry) for view in views if isinstance(view.entry, TaskRecord))
        recent = [view for view, entry in records if (entry.ended_at or 0) >= self._since_ms]
        return [one for view in recent for one in self._end_of(view, False, now_ms)]

    def hear(self, views: Iterable[TaskView], now_ms: float) -> list[Happening]:
        """Return new happenings in these views; mere progress costs almost nothing."""
        found: list[Happening] = []
        for view in views:
            was_live = view.entry.task_id in self._live
            if self._sort_in(view):
                continue
            if view.entry.task_id in self._live or not _has_ended(view):
                found += self._needs_of(view, now_ms)
            else:
                found += self._end_of(view, was_live, now_ms)
        return found

    def find_needs(self, views: Iterable[TaskView], now_ms: float) -> list[Happening]:
        """Return new reasons for attention; stalls are detected only here."""
        return [one for view in views for one in self._needs_of(view, now_ms)]

    def note_ends(self, views: Iterable[TaskView]) -> None:
        """Record ends that were reported in another way."""
        for view in views:
            self._live.pop(view.task_id, None)
            self._note(view, "end")

    def forget(self, task_ids: Iterable[str]) -> None:
        """Drop removed tasks."""
        for task_id in task_ids:
            self._live.pop(task_id, None)

    def _sort_in(self, view: TaskView) -> bool:
        """Return whether the task just continues; called for 20,000 changes a second."""
        entry = view.entry
        if isinstance(entry, TaskRecord) and entry.status in LIVE:
            self._live[entry.task_id] = None
            # After it has continued, another request for help is reported again.
            if entry.kind == TASK_RUN:
                self._told.pop((entry.task_id, Reason.HELP), None)
            return entry.budget_status != "exceeded" and not view.orphaned
        self._live.pop(entry.task_id, None)
        return False

    def _end_of(self, view: TaskView, was_live: bool, now_ms: float) -> list[Happening]:
        kind = _ENDS.get(standing(view))
        assert isinstance(view.entry, TaskRecord)
        ended = moment(view.entry.ended_at)
        # A short task may have ended before it was seen live.
        news = was_live or (ended is not None and ended >= self._since_ms)
        if kind is None or not news or not self._note(view, "end"):
            return []
        return [Happening(now_ms, _or_changed(kind, view.entry), view)]

    def _needs_of(self, view: TaskView, now_ms: float) -> list[Happening]:
        """Return the most urgent reason if it is new; it covers the others."""
        if _has_ended(view):
            return []
        new = [reason for reason in self._reasons(view, now_ms) if self._note(view, reason)]
        return [Happening(now_ms, Kind.ATTENTION, view, new[0])] if new else []

    def _reasons(self, view: TaskView, now_ms: float) -> tuple[Reason, ...]:
        return reasons(view, now_ms, self._stall_after_ms(view.task_id))

    def _note(self, view: TaskView, what: object) -> bool:
        """Return whether this is new and record it, dropping the oldest of very many."""
        key = (view.task_id, what)
        if key in self._told:
            return False
        self._told[key] = None
        if len(self._told) > MOST_REMEMBERED:
            self._told.pop(next(iter(self._told)))
        return True


def _or_changed(kind: Kind, record: TaskRecord) -> Kind:
    """Return CHANGED for a completed run whose schedule reports its changes."""
    link = record.engine.schedule if record.engine is not None else None
    if kind is not Kind.COMPLETED or link is None or not link.notify:
        return kind
    return Kind.CHANGED if link.changes is not None and link.changes.total else kind


def _has_ended(view: TaskView) -> bool:
    """Return whether the task ended, so that its needs were reported with its end."""
    return isinstance(view.entry, TaskRecord) and view.entry.is_terminal


class Grouping:
    """Rate limit for notifications.

    The first ones wait 0.4 s for others, later ones until ten seconds have passed. So at most four
    notifications appear in ten seconds, and none is delayed longer.
    """

    def __init__(self) -> None:
        self._waiting: list[Happening] = []
        self._open_at = -float("inf")  # Time of the next allowed notification

    def add(self, news: Iterable[Happening]) -> None:
        self._waiting += news

    def due_in(self, now_ms: float) -> float | None:
        """Return the delay in ms until the next notification, or None without any."""
        if not self._waiting:
            return None
        return max(self._waiting[0].at_ms + SETTLE_MS, self._open_at) - now_ms

    def take(self, now_ms: float) -> list[tuple[Happening, ...]]:
        """Return the notifications due now, each as a group."""
        due = self.due_in(now_ms)
        if due is None or due > 0:
            return []
        news, self._waiting = self._waiting, []
        self._open_at = now_ms + BURST_MS
        if len(news) <= MOST_ALONE:
            return [(one,) for one in news]
        return [tuple(news)]


def is_quiet(now: datetime.time, start: str, end: str) -> bool:
    """Return whether `now` is in a quiet period (HH:MM), which may span midnight."""
    try:
        first, last = _clock(start), _clock(end)
    except ValueError:
        return False
    if first <= last:
        return first <= now < last
    return now >= first or now < last


def _clock(written: str) -> datetime.time:
    """Parse a time; accepts `7:30`, which `time.fromisoformat` rejects. Raises ValueError."""
    hour, _, minute = written.partition(":")
    return datetime.time(int(hour), int(minute))


# Status bar button with the number of unread notifications.

MOST_SHOWN = 99


class Bell(QToolButton):
    """Button that opens the notification history; its accessible name contains the number."""

    def __init__(self, action: QAction, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAutoRaise(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.clicked.connect(action.trigger)
        self.show_number(0)
        self._draw()

    def show_number(self, number: int) -> None:
        """Show the number of unread notifications, or only the icon without any."""
        style = Qt.ToolButtonStyle
        self.setToolButtonStyle(
            style.ToolButtonTextBesideIcon if number else style.ToolButtonIconOnly
        )
        self.setText(count(number) if number <= MOST_SHOWN else f"{MOST_SHOWN}+")
        if not number:
            said = self.tr("No new notices")
        elif number == 1:
            said = self.tr("1 new notice")
        else:
            said = self.tr("{0} new notices").format(count(number))
        self.setAccessibleName(said)
        self.setToolTip(plain_tip(said))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._draw()

    def _draw(self) -> None:
        self.setIcon(icon("bell"))


KEPT = 300
MOST_JOINED = 1_000  # Tasks in one line
MOST_NAMED = 3
LOOK_MS = 5000  # Interval in ms for stall detection, because stalls emit no event
MOST_LOOKED_AT = 200  # Running tasks checked at a time


class Entry(msgspec.Struct, frozen=True):
    """One line of the notification history."""

    at_ms: float
    kind: Kind
    title: str
    body: str
    task_ids: tuple[str, ...]
    asked: bool = False  # The user asked for it, whatever the settings say


class News(QObject):
    """Keep the last 300 notifications and select those for the desktop.

    `told` carries a desktop notification; `changed` reports a different history.
    """

    told = Signal(Popup)
    changed = Signal()

    def __init__(self, ctx: WindowContext, show_tasks: Callable[[tuple[str, ...]], object]) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self._show_tasks = show_tasks
        self._preferences = ctx.preferences
        self._watch = Watch(_now_ms(), ctx.model.stall_after_ms)
        self._grouping = Grouping()
        self._awaited = EndNotices(ctx)
        self.entries: deque[Entry] = deque(maxlen=KEPT)
        self.unread = 0
        self._read = False
        self._known: frozenset[str] = frozenset()  # Further ledgers that were loaded
        self._meeting: set[str] = set()  # Ledgers that are loading, whose current state is no news
        self._at = 0
        self._due = QTimer(self, singleShot=True)
        self._due.timeout.connect(self._tell)
        self._looking = QTimer(self, interval=LOOK_MS)
        self._looking.timeout.connect(self._look)
        self._looking.start()
        ctx.bridge.news.connect(self._hear)
        self.told.connect(ctx.services.wishes.pop_up)

    def see(self) -> None:
        """Mark all notifications as read."""
        self.unread = 0
        self.changed.emit()

    def clear(self) -> None:
        self.entries.clear()
        self.see()

    def open(self) -> None:
        """Open the history."""
        NewsList(self, self._ctx.parent).open()

    def show_tasks(self, entry: Entry) -> None:
        self._show_tasks(entry.task_ids)

    def _hear(self, batch: Batch) -> None:
        if awaited := self._awaited.take_ended(batch.views, batch.gone):
            self._report_awaited(awaited)
            told = {view.task_id for view in awaited}
            self._watch.note_ends(awaited)
            batch = replace(batch, views=tuple(v for v in batch.views if v.task_id not in told))
        self._watch.forget(batch.gone)
        labels = self._ctx.ledgers.labels
        if self._read and labels <= self._known:
            self._take(self._watch.hear(batch.views, _now_ms()))
            return
        known = {"", *self._known} if self._read else set()
        new = [view for view in batch.views if view.ledger not in known]
        self._watch.learn(new)
        if not self._read:
            own = (view for view in new if not view.ledger)
            self._take(self._watch.ended_since(own, _now_ms()))
        self._meeting |= {view.ledger for view in new}
        self._take(self._watch.hear([v for v in batch.views if v.ledger in known], _now_ms()))
        if batch.complete:
            self._read, self._known = True, (self._known | self._meeting) & labels
            self._meeting = set()

    def _report_awaited(self, views: Iterable[TaskView]) -> None:
        """Report each end that the user asked for, whatever the settings say of other tasks."""
        for view in views:
            kind = _ENDS.get(standing(view), Kind.FAILED)
            happening = Happening(_now_ms(), kind, view)
            entry = self._entry_of((happening,))
            asked = self.tr("You asked to be notified of its end.")
            self._add(replace(entry, body=f"{entry.body}\n{asked}", asked=True))
            self.told.emit(self._popup(entry))
        self.changed.emit()

    def _add(self, entry: Entry) -> None:
        """Add a line; completed tasks in a row are one, and only what needs a person is unread."""
        last = self.entries[0] if self.entries else None
        joins = entry.kind is Kind.COMPLETED and last is not None and last.kind is entry.kind
        if last is not None and joins and not (last.asked or entry.asked):
            self.entries[0] = self._joined(last, entry)
        else:
            self.entries.appendleft(entry)
        self.unread += not _is_plain(entry)
        announce(self._ctx.parent, f"{entry.title}. {entry.body}")

    def _joined(self, last: Entry, entry: Entry) -> Entry:
        ids = tuple(dict.fromkeys((*last.task_ids, *entry.task_ids)))
        title = self.tr("{0} tasks finished").format(count(len(ids)))
        found = map(self._ctx.model.view_of, reversed(ids[-MOST_JOINED:]))
        names = _names([view for view in found if view is not None])
        return Entry(entry.at_ms, entry.kind, title, names, ids[-MOST_JOINED:])

    def _look(self) -> None:
        """Check the next running tasks for stalls, round robin."""
        live = self._watch.live
        if not live or not self._read:
            return
        self._at = self._at % len(live)
        views = map(self._ctx.model.view_of, live[self._at : self._at + MOST_LOOKED_AT])
        self._at += MOST_LOOKED_AT
        known = (view for view in views if view is not None)
        self._take(self._watch.find_needs(known, _now_ms()))

    def _take(self, news: Sequence[Happening]) -> None:
        self._grouping.add(one for one in news if self._fate(one.kind) != "none")
        self._wait()

    def _wait(self) -> None:
        due = self._grouping.due_in(_now_ms())
        if due is not None and not self._due.isActive():
            self._due.start(max(0, round(due)))

    def _tell(self) -> None:
        groups = self._grouping.take(_now_ms())
        for group in groups:
            self._add(self._entry_of(group))
            loud = [one for one in group if self._fate(one.kind) == "popup"]
            if loud and self._may_pop_up():
                self.told.emit(self._popup(self._entry_of(loud)))
        if groups:
            self.changed.emit()
        self._wait()

    def _fate(self, kind: Kind) -> str:
        return self._preferences.get(f"notify.{kind.value}", str)

    def _may_pop_up(self) -> bool:
        """Return whether it is neither a quiet hour nor the window active."""
        get = self._preferences.get
        start, end = get("notify.quiet_from", str), get("notify.quiet_until", str)
        if is_quiet(datetime.datetime.now().astimezone().time(), start, end):
            return False
        return get("notify.while_active", bool) or not self._is_looked_at()

    def _is_looked_at(self) -> bool:
        """Return whether this window or one of its dialogs is active."""
        active = QApplication.activeWindow()
        while isinstance(active, QDialog):
            parent = active.parentWidget()
            active = parent.window() if parent is not None else None
        return active is self._ctx.parent

    def _popup(self, entry: Entry) -> Popup:
        urgent = entry.kind in (Kind.FAILED, Kind.ATTENTION)
        sound = self._preferences.get("notify.sound", bool)
        return Popup(entry.title, entry.body, entry.task_ids, urgent, sound)

    def _entry_of(self, group: Sequence[Happening]) -> Entry:
        ids = tuple(dict.fromkeys(str(one.view.task_id) for one in group))
        kind = min((one.kind for one in group), key=list(Kind).index)
        if len(group) == 1:
            title, body = self._title(group[0]), name_with_ledger(group[0].view)
        else:
            title, body = self._sum_up(group), _names([one.view for one in group])
        return Entry(group[0].at_ms, kind, title, body, ids)

    def _title(self, news: Happening) -> str:
        if news.kind is Kind.ATTENTION and news.reason is not None:
            silence_ms = self._ctx.model.stall_after_ms(news.view.task_id)
            return words.attention(news.reason, silence_ms)
        return {
            Kind.FAILED: self.tr("A task failed"),
            Kind.CHANGED: self.tr("A scheduled run found changes: {0}").format(_changes(news.view)),
            Kind.COMPLETED: self.tr("A task is completed"),
            Kind.CANCELLED: self.tr("A task was cancelled"),
        }.get(news.kind, self.tr("A task needs attention"))

    def _sum_up(self, group: Sequence[Happening]) -> str:
        """Return a summary such as `12 tasks finished, 2 failed`;

        attention does not count as an end.
        """
        failed = sum(one.kind is Kind.FAILED for one in group)
        ended = sum(one.kind is not Kind.ATTENTION for one in group)
        needy = len(group) - ended
        if not ended:
            return self.tr("{0} tasks need attention").format(count(needy))
        if failed == len(group):
            said = self.tr("{0} tasks failed")
        elif needy:
            said = self.tr("{0} tasks finished ({1} failed), {2} need attention")
        elif failed:
            said = self.tr("{0} tasks finished, {1} failed")
        else:
            said = self.tr("{0} tasks finished")
        return said.format(count(ended), count(failed), count(needy))


def _changes(view: TaskView) -> str:
    """Return what a run found changed, in words."""
    ours = view.entry.engine if isinstance(view.entry, TaskRecord) else None
    link = ours.schedule if ours is not None else None
    return words.changes(link.changes if link is not None else None, spoken=True)


def _is_plain(entry: Entry) -> bool:
    """Return whether nothing has to be done about it: tasks that completed, unasked."""
    return entry.kind in (Kind.COMPLETED, Kind.CANCELLED) and not entry.asked


def _names(views: Iterable[TaskView]) -> str:
    """Return the names of the first tasks, one per line."""
    names = list(dict.fromkeys(map(name_with_ledger, views)))
    return "\n".join(names[:MOST_NAMED] + (["…"] if len(names) > MOST_NAMED else []))


def _now_ms() -> float:
    return time.time() * 1000


def make_bell(ctx: WindowContext, show_tasks: Callable[[tuple[str, ...]], object]) -> Bell:
    """Add the notification action; return the button for the status bar."""
    news = News(ctx, show_tasks)
    action = ctx.actions.add("news", ctx.parent.tr("&News…"), ["Ctrl+Shift+J"], "bell")
    action.triggered.connect(news.open)
    bell = Bell(action, ctx.parent)
    news.changed.connect(lambda: bell.show_number(news.unread))
    news.changed.connect(lambda: ctx.services.wishes.unread.emit(news.unread))
    return bell


# Notification history, newest first, with a link to the tasks of each line.

SIZE = (620, 420)
LINE_CHARS = 300
_SIGNS = {
    Kind.FAILED: ("warning", "failed"),
    Kind.ATTENTION: ("bell", "attention"),
    Kind.CHANGED: ("bell", "completed"),
    Kind.COMPLETED: ("info", "completed"),
    Kind.CANCELLED: ("stop", "cancelled"),
}


class NewsList(InOrder, QDialog):
    """List of notifications; Enter or a double click shows the tasks."""

    def __init__(self, news: News, parent: QWidget) -> None:
        super().__init__(parent)
        self._news = news
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("News"))
        self.resize(*SIZE)
        self._empty = plain_label(
            self.tr("Nothing has happened since this window was opened."), tone="muted", wrap=True
        )
        self.list = QListWidget(self)
        self.list.setAccessibleName(self.tr("What happened, the newest first"))
        self.list.setWordWrap(True)
        self.list.setAlternatingRowColors(True)
        self.list.itemActivated.connect(self._go)
        self._lay_out()
        self._fill()
        news.changed.connect(self._fill)

    def _lay_out(self) -> None:
        self._show = QPushButton(self.tr("&Show the tasks"), self)
        self._clear = QPushButton(self.tr("&Clear the list"), self)
        close = QPushButton(self.tr("Close"), self)
        self._show.setDefault(True)
        self._show.clicked.connect(self._go)
        self._clear.clicked.connect(self._news.clear)
        close.clicked.connect(self.close)
        row = arrange(QHBoxLayout(), self._clear, 0, self._show, close)
        arrange(QVBoxLayout(self), self._empty, self.list, row)

    def _fill(self) -> None:
        """Rebuild all lines, at most 300, which change only a few times a minute."""
        row = max(0, self.list.currentRow())
        self.list.clear()
        for entry in self._news.entries:
            self.list.addItem(self._item(entry))
        self.list.setCurrentRow(min(row, self.list.count() - 1))
        some = self.list.count() > 0
        self._empty.setVisible(not some)
        self.list.setVisible(some)
        self._show.setEnabled(some)
        self._clear.setEnabled(some)
        if self._news.unread:
            self._news.see()

    def _item(self, entry: Entry) -> QListWidgetItem:
        lines = [
            f"{clock(entry.at_ms, time.time() * 1000)}   {entry.title}",
            *entry.body.split("\n"),
        ]
        item = QListWidgetItem("\n".join(display(line, LINE_CHARS) for line in lines))
        sign, tone_name = _SIGNS[entry.kind]
        item.setIcon(self._sign(sign, tone_name))
        item.setData(Qt.ItemDataRole.UserRole, entry)
        return item

    def _sign(self, sign: str, tone_name: str) -> QIcon:
        """Return the icon in its colour, and in the text colour for a selected line."""
        palette, scale = QApplication.palette(), self.devicePixelRatioF()
        found = QIcon(glyph(sign, 20, tone(tone_name, palette), scale))
        chosen = palette.color(QPalette.ColorRole.HighlightedText)
        found.addPixmap(glyph(sign, 20, chosen, scale), QIcon.Mode.Selected)
        return found

    def _go(self) -> None:
        item = self.list.currentItem()
        if item is not None:
            self.close()
            self._news.show_tasks(item.data(Qt.ItemDataRole.UserRole))
