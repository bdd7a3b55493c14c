"""Details panel of the selected task: head line, overview, tabs; a summary for several tasks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication, QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display, elide_right
from engine.model.kind_traits import traits_of
from engine.model.ledger_ids import plain_id
from engine.model.records import (
    ENVELOPE,
    EVENTS_NAME,
    PAGES_NAME,
    RESULT_NAME,
    TASK_RUN,
    Status,
    TaskRecord,
    TaskView,
)
from engine.model.status import STALL_MIN_MS, Standing, counted_as, look, standing
from engine.service.feed import Batch
from engine.text import words
from engine.text.words import count
from gui.context.scope import Counts
from gui.context.window_context import Desk, WindowContext
from gui.details.details_tab import DetailTab, Files, TabKind
from gui.details.events import Events
from gui.details.overview import Overview
from gui.details.page_tab import has_page
from gui.engine_link.task_events import EventPart
from gui.style.accessibility import Region
from gui.style.theme import PlainLabel, heading, lead, plain_label, tone
from gui.style.widgets import ElidedLabel, LinkButton, Tabs, arrange, centre
from gui.tasks.cell_painting import sign

# Tabs after Overview and Events, from left to right.


def _page(desk: Desk, parent: QWidget) -> DetailTab:
    from gui.details.page_tab import PageTab

    return PageTab(desk, parent)


def _items(desk: Desk, parent: QWidget) -> DetailTab:
    from gui.details.unit_list import Items

    return Items(desk, parent)


def _commands(desk: Desk, parent: QWidget) -> DetailTab:
    from gui.details.commands_tab import Commands

    return Commands(desk, parent)


def _result(desk: Desk, parent: QWidget) -> DetailTab:
    from gui.details.result import Result

    return Result(desk, parent)


def _screenshots(desk: Desk, parent: QWidget) -> DetailTab:
    from gui.details.screenshots import Screenshots

    return Screenshots(desk, parent)


def _raw(desk: Desk, parent: QWidget) -> DetailTab:
    from gui.details.raw import Raw

    return Raw(desk, parent)


def is_task(view: TaskView) -> bool:
    """Return whether it is a readable task; task runs have no task folder."""
    return isinstance(view.entry, TaskRecord) and has_folder(view)


def has_folder(view: TaskView) -> bool:
    return getattr(view.entry, "kind", "") != TASK_RUN


def _is_list(view: TaskView) -> bool:
    """Return whether it has equal units; commands have their own tab, tool calls are events."""
    return is_task(view) and getattr(view.entry, "kind", "") != ENVELOPE and not _has_steps(view)


def _has_steps(view: TaskView) -> bool:
    return is_task(view) and traits_of(getattr(view.entry, "kind", "")).steps


def _keeps_something(view: TaskView) -> bool:
    """Return whether the task has left the queue, or continues another one's work."""
    waits = isinstance(view.entry, TaskRecord) and view.entry.status == Status.PENDING
    return not waits or _done(view) > 0


def _done(view: TaskView) -> int:
    return view.units.done if view.units is not None else 0


def _count_items(view: TaskView, files: Files) -> int | None:
    """Return the finished units; a contract adds missing ones, whose number is not known."""
    engine = getattr(view.entry, "engine", None)
    promised = engine is not None and engine.contract_id is not None
    if _done(view) or promised or files is None:
        return _done(view) or None
    # Tasks of other programs may have units that their records do not count.
    names = {PAGES_NAME} if view.units is not None else {PAGES_NAME, RESULT_NAME}
    return None if any(one.name in names and one.size_bytes for one in files) else 0


def _count_events(_: TaskView, files: Files) -> int | None:
    """Return 0 for an ended task without events; their number comes with the events."""
    there = files is None or any(one.name == EVENTS_NAME and one.size_bytes for one in files)
    return None if there else 0


def _count_results(_: TaskView, files: Files) -> int | None:
    """Return 0 for an ended task without a result; a single one needs no number."""
    there = files is None or any(one.name == RESULT_NAME for one in files)
    return None if there else 0


def _count_pictures(_: TaskView, files: Files) -> int | None:
    return None if files is None else sum(one.is_picture for one in files)


TABS: tuple[TabKind, ...] = (
    TabKind("items", _items, lambda view: _is_list(view) and _keeps_something(view), _count_items),
    TabKind("commands", _commands, _has_steps),
    TabKind(
        "result", _result, lambda view: is_task(view) and _keeps_something(view), _count_results
    ),
    TabKind(
        "screenshots",
        _screenshots,
        lambda view: is_task(view) and _keeps_something(view),
        _count_pictures,
    ),
    TabKind("page", _page, has_page),
    TabKind("raw", _raw, has_folder),
)


_HEAD_CHARS = 120
_LEAST_NAME, _LEAST_STATE = 14, 8  # characters with room at all times
_LEAST = 235  # pixels; one height for all tabs, so that they do not move under the pointer
_FIRST = ("overview", "events")


class Details(QWidget):
    """Details of one task, or a note that none is selected.

    `wants_events` requests a task's events from the start, `wants_folder` opens its folder,
    `wants_task` shows another task; `shown` is emitted for every update.
    """

    wants_events = Signal(str)
    wants_folder = Signal(str)
    wants_task = Signal(str)
    shown = Signal(TaskView)

    def __init__(self, parent: QWidget | None = None, desk: Desk | None = None) -> None:
        super().__init__(parent)
        self._task_id, self._desk = "", desk
        self.setMinimumHeight(_LEAST)
        self._view: TaskView | None = None
        self.setAccessibleName(words.say("details.name"))
        self._head = _Head(self)
        self.overview, self.events = Overview(self, desk), Events(self, desk)
        self._make_tabs(desk)
        self._stand_in: QWidget | None = None
        self._nothing = plain_label(words.say("details.none"), self, tone="muted")
        centre(self._nothing)
        self._lay_out()
        self._head.folder.clicked.connect(lambda: self.wants_folder.emit(self._task_id))
        self.events.counted.connect(self._name_events)
        self.overview.links.wanted.connect(self.wants_task)

    def _make_tabs(self, desk: Desk | None) -> None:
        self._tabs = Tabs(self)
        self._tabs.addTab(self.overview, words.say("details.overview"))
        self._tabs.addTab(self.events, words.say("details.events"))
        timeline = TabKind("timeline", self._timeline, has_times, _count_events)
        kinds = (timeline, *TABS) if desk is not None else ()
        self._more = [LazyTab(kind, desk, self) for kind in kinds if desk is not None]
        for tab in self._more:
            self._tabs.addTab(tab, tab.kind.title)
        self._keys = [*_FIRST, *(tab.kind.key for tab in self._more)]
        self._wanted = self._keys[0]  # the user's choice, also while a task has no such tab
        self._offering = False
        self._listed = ("", False)
        self._files: Files = None
        self._event_count = 0
        self._tabs.currentChanged.connect(self._tab_changed)

    def _lay_out(self) -> None:
        full = QWidget(self)
        arrange(QVBoxLayout(full), self._head, (self._tabs, 1), margins=(8, 6, 8, 4), spacing=4)
        self._pages = QStackedWidget(self)
        self._pages.addWidget(self._nothing)
        self._pages.addWidget(full)
        arrange(QVBoxLayout(self), self._pages, margins=0)

    @property
    def task_id(self) -> str:
        """The id of the shown task; "" for none."""
        return self._task_id

    def regions(self) -> tuple[Region, ...]:
        """Return its regions for F6: the tabs, and what the current one shows."""
        body = self._tabs.currentWidget()
        if self._pages.currentIndex() != 1:  # no single task is shown
            return (Region(self, self),)
        return (Region(self, self._tabs.tabBar()), Region(body, body))

    def save_state(self) -> str:
        """Return the chosen tab, for the next start."""
        return self._wanted

    def restore_state(self, state: str) -> None:
        """Choose the tab of `save_state`; other values are ignored."""
        if state in self._keys:
            self._wanted = state
            self._show_wanted()

    def show_tab(self, number: int) -> None:
        """Choose a tab by its position among the visible ones, from 0."""
        bar = self._tabs
        there = [at for at in range(bar.count()) if bar.isTabVisible(at)]
        if 0 <= number < len(there):
            bar.setCurrentIndex(there[number])

    def show_view(
        self, view: TaskView | None, stall_after_ms: float = STALL_MIN_MS, speed: str = ""
    ) -> None:
        """Show this task; None: nothing is selected.

        `stall_after_ms` is the table's stall limit: `TaskModel.stall_after_ms`, and `speed` its
        rate and time left: `TaskModel.speed`.
        """
        self._view = view
        if view is None:
            self._task_id = ""
            self._pages.setCurrentWidget(self._stand_in or self._nothing)
            self._update_tabs()
            return
        changed = view.task_id != self._task_id
        self._task_id = view.task_id
        self._head.show_view(view)
        if changed:
            self.overview.start_over()
            if self._desk is not None:
                self._desk.span.clear()
        self.overview.show_view(view, stall_after_ms, speed)
        self._pages.setCurrentIndex(1)
        if changed:
            self.events.start_over(self._task_id)
            if has_folder(view):
                self.wants_events.emit(self._task_id)
        self._offer_tabs(view, stays=None if changed else self._tabs.currentWidget())
        self._read_files(view)
        self._update_tabs()
        self.shown.emit(view)

    def stand_in(self, page: QWidget | None) -> None:
        """Show `page` while no single task is shown; None: the note that none is selected."""
        if page is not None and self._pages.indexOf(page) < 0:
            self._pages.addWidget(page)
        self._stand_in = page
        if self._view is None:
            self._pages.setCurrentWidget(page or self._nothing)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._update_tabs()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._update_tabs()

    def _timeline(self, desk: Desk, parent: QWidget) -> DetailTab:
        from gui.details.timeline import Timeline  # loaded on first display

        tab = Timeline(desk, self.events.model, parent)
        tab.place_wanted.connect(self._show_place)
        return tab

    def _show_place(self, place: int) -> None:
        """Show the event at this byte in the Events tab."""
        self._tabs.setCurrentIndex(self._keys.index("events"))
        self.events.show_place(place)

    def _tab_changed(self, at: int) -> None:
        if not self._offering:
            self._wanted = self._keys[at]
        self._update_tabs()

    def _offer_tabs(self, view: TaskView, stays: QWidget | None) -> None:
        """Hide the tabs that do not suit the task, but never the one that the user looks at."""
        self._offering = True  # Qt leaves a tab that is hidden, which is no choice of the user
        self._tabs.setTabVisible(self._keys.index("events"), has_folder(view))
        for tab in self._more:
            at, suits = self._tabs.indexOf(tab), tab.kind.suits(view) or tab is stays
            if self._tabs.isTabVisible(at) != suits:
                self._tabs.setTabVisible(at, suits)
        self._offering = False
        self._show_wanted()

    def _show_wanted(self) -> None:
        at = self._keys.index(self._wanted)
        self._offering = True
        self._tabs.setCurrentIndex(at if self._tabs.isTabVisible(at) else 0)
        self._offering = False

    def _update_tabs(self) -> None:
        """Update the current tab only."""
        current = self._tabs.currentWidget() if self.isVisible() else None
        for tab in self._more:
            tab.look(self._view if tab is current else None)

    def show_events(self, task_id: str, events: EventPart) -> None:
        """Add events of the shown task; events of other tasks are ignored."""
        if task_id == self._task_id:
            self.events.add(events)
            if found := [row.refused for row in events.rows if row.refused is not None]:
                self.overview.add_refused(found)
            self.overview.add_waits(row.wait for row in events.rows if row.wait is not None)
            self.overview.add_concurrency(filter(None, (row.concurrency for row in events.rows)))

    def _name_events(self, count: int) -> None:
        self._event_count = count
        self._name_tabs()

    def _read_files(self, view: TaskView) -> None:
        """Read the files of a task once it has ended; a live one still gets more."""
        entry, task_id = view.entry, view.task_id
        ended = isinstance(entry, TaskRecord) and entry.is_terminal
        if self._listed != (task_id, ended):
            self._listed, self._files = (task_id, ended), None
            if self._desk is not None and ended:
                self._desk.bridge.ask(
                    lambda engine: engine.reading.files(task_id),
                    self._take_files,
                    lambda _: None,  # the tab itself shows the error
                    name=f"files of {id(self)}",
                )
        self._name_tabs()

    def _take_files(self, files: Files) -> None:
        self._files = files
        self._name_tabs()

    def _name_tabs(self) -> None:
        """Show in each title how much there is behind it."""
        if self._view is None:
            return
        events = self._event_count or _count_events(self._view, self._files)
        self._name_tab(1, words.say("details.events"), events)
        for tab in self._more:
            number = tab.kind.count(self._view, self._files)
            self._name_tab(self._tabs.indexOf(tab), tab.kind.title, number)

    def _name_tab(self, at: int, title: str, number: int | None) -> None:
        if number is not None:
            title = words.say("details.tab.count", title=title, count=words.count(number))
        if self._tabs.tabText(at) != title:  # Qt lays out the bar again for each title
            self._tabs.setTabText(at, title)


def has_times(view: TaskView) -> bool:
    """Return whether it may have events with durations."""
    entry = view.entry
    if not has_folder(view):
        return False
    waits = entry.status == Status.PENDING if isinstance(entry, TaskRecord) else True
    return not waits or getattr(entry, "kind", "") == ENVELOPE


class LazyTab(QWidget):
    """Placeholder that creates its tab on first display."""

    def __init__(self, kind: TabKind, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.kind, self._desk = kind, desk
        self.tab: DetailTab | None = None
        self._looked = False
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)

    def look(self, view: TaskView | None) -> None:
        """Show this task; None hides the tab."""
        if view is not None:
            if self.tab is None:
                self.tab = self.kind.make(self._desk, self)
                self._column.addWidget(self.tab)
                self.setFocusProxy(self.tab)
            self.tab.show_task(view)
        elif self._looked and self.tab is not None:
            self.tab.leave()
        self._looked = view is not None


class _Head(QWidget):
    """Name, state and progress in one line, with two buttons for the task's folder."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._task_id = ""
        self._name = ElidedLabel("", self, least=_LEAST_NAME)
        lead(self._name, 1.05, bold=True)
        self._state = ElidedLabel("muted", self, least=_LEAST_STATE)
        self._copy = QPushButton(words.say("details.copy_id"), self)
        self.folder = QPushButton(words.say("details.open_folder"), self)
        self._copy.clicked.connect(self._copy_id)
        row = QHBoxLayout(self)
        row.setContentsMargins(4, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(self._name, 1)
        row.addWidget(self._state)
        row.addWidget(self._copy)
        row.addWidget(self.folder)

    def show_view(self, view: TaskView) -> None:
        self._task_id = view.task_id
        self._name.show_text(elide_right(words.task_name(view), _HEAD_CHARS))
        kind = getattr(view.entry, "kind", "")
        parts = [words.status_word(view), words.progress(kind, view.units)]
        parts += words.badges(view)
        self._state.show_text(" · ".join(part for part in parts if part))
        self._state.show_tone(look(view))

    def _copy_id(self) -> None:
        QGuiApplication.clipboard().setText(display(plain_id(self._task_id)))


MOST_TAB_KEYS = 9


def add_tab_keys(ctx: WindowContext, details: Details) -> None:
    """Add nine actions: each selects a tab by position among the visible ones."""
    key = "Ctrl" if sys.platform == "darwin" else "Alt"
    for number in range(1, MOST_TAB_KEYS + 1):
        title = ctx.parent.tr("Details: tab {0}").format(count(number))
        action = ctx.actions.add(f"tab_{number}", title, [f"{key}+{number}"])
        action.triggered.connect(partial(_show_tab, ctx, details, number - 1))


def _show_tab(ctx: WindowContext, details: Details, number: int, _: bool = False) -> None:
    ctx.actions["details"].setChecked(True)
    details.show_tab(number)


class RerunLinks(QObject):
    """Map each task to its re-runs, oldest first, and follow links between them."""

    def __init__(self, ctx: WindowContext, details: Details) -> None:
        super().__init__(ctx.parent)
        self._details = details
        self._ctx = ctx
        self._reruns: dict[str, dict[str, float]] = {}
        ctx.bridge.batch.connect(self._hear)
        details.shown.connect(self._tell)
        details.wants_task.connect(self._lead_to)
        details.overview.duplicate.connect(self._duplicate)

    def reruns_of(self, task_id: str) -> list[str]:
        """Return the ids of the re-runs of a task that still exist, oldest first."""
        found = self._reruns.get(task_id, {})
        there = (one for one in found if self._ctx.model.view_of(one))
        return sorted(there, key=lambda one: found[one])

    def _hear(self, batch: Batch) -> None:
        changed = False
        for view in batch.views:
            entry = view.entry
            if isinstance(entry, TaskRecord) and entry.engine and entry.engine.parent_task_id:
                family = self._reruns.setdefault(entry.engine.parent_task_id, {})
                changed |= view.task_id not in family
                family[view.task_id] = entry.created_at
        if changed or batch.gone:
            self._tell(self._ctx.model.view_of(self._details.task_id))

    def _tell(self, view: TaskView | None) -> None:
        if view is None:
            return
        entry = view.entry
        engine = entry.engine if isinstance(entry, TaskRecord) else None
        parent = (engine.parent_task_id or "") if engine is not None else ""
        known = bool(parent) and self._ctx.model.view_of(parent) is not None
        links = self._details.overview.links
        resumes = engine is not None and engine.resumes
        links.show_related(parent, known, self.reruns_of(view.task_id), resumes=resumes)
        can_duplicate = "duplicate" in set(self._ctx.actions)
        self._details.overview.offer_duplicate(can_duplicate)

    def _lead_to(self, task_id: str) -> None:
        """Select a task, and clear the filter if it hides the task."""
        ctx = self._ctx
        if ctx.model.view_of(task_id) is None:
            return
        ctx.table.select_ids([task_id])
        if ctx.table.selected_ids() != [task_id]:
            ctx.clear_filter()
            ctx.table.select_ids([task_id])

    def _duplicate(self) -> None:
        if "duplicate" in set(self._ctx.actions):
            self._ctx.actions["duplicate"].trigger()


# More single rows than this are better found with the sidebar than selected one by one.
MOST_PICKED = 2000


HELP, ATTENTION = "needs_help", "attention"  # The state of a task run, and its look


class Several(QScrollArea):
    """One line for each state of the selected tasks, with a button that selects only those."""

    def __init__(self, ctx: WindowContext, details: Details) -> None:
        super().__init__(ctx.parent)
        self._details = details
        self._ctx, self._scope = ctx, ctx.scope
        self.setVisible(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        sheet = QWidget(self)
        self._title = heading("", sheet, grow=1.05)
        self._can = plain_label("", sheet, tone="muted", wrap=True)
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(10)
        self._grid.setVerticalSpacing(2)
        self._lines: dict[str, _Line] = {}
        column = QVBoxLayout(sheet)
        column.setContentsMargins(12, 10, 12, 10)
        column.setSpacing(8)
        column.addWidget(self._title)
        column.addLayout(self._grid)
        column.addWidget(self._can)
        column.addStretch()
        self._grid.setColumnStretch(4, 1)
        self.setWidget(sheet)
        self._scope.changed.connect(self._show)

    def _show(self) -> None:
        if len(self._scope) < 2:
            self._details.stand_in(None)
            return
        counts = self._scope.counts
        self._title.show_text(self._scope.describes())
        self.setAccessibleName(self._scope.describes())
        for place, (name, number) in enumerate(_numbers(counts)):
            if number and name not in self._lines:
                line = self._lines[name] = _Line(name, self._grid, place)
                line.only.clicked.connect(lambda _=False, one=name: self._pick(one))
            if name in self._lines:
                self._lines[name].show_number(number, alone=number == counts.total)
        cancel, again = words.count(counts.cancellable), words.count(counts.repeatable)
        said = self.tr("{0} can be cancelled, {1} can be re-run as they are.")
        said = said.format(cancel, again)
        self._can.show_text("\n".join([*self._duplicate_notes(counts.twice), said]))
        self._details.stand_in(self)

    def _duplicate_notes(self, number: int) -> Iterator[str]:
        """Explain why the lines may add up to more than the selection."""
        if number == 1:
            yield self.tr("1 is counted twice: it was orphaned, and has ended since.")
        elif number:
            said = self.tr("{0} are counted twice: they were orphaned, and have ended since.")
            yield said.format(words.count(number))

    def _pick(self, name: str) -> None:
        wanted = [one.task_id for one in self._scope.views() if _is_in(one, name)]
        self._ctx.table.select_ids(wanted)
        self._ctx.table.setFocus()


def _numbers(counts: Counts) -> Iterator[tuple[str, int]]:
    """Yield each state with its number; task runs that wait for help are no unknown state."""
    for state in Standing:
        number = counts.states.get(state, 0)
        yield state.value, number - counts.needing_help * (state is Standing.UNKNOWN)
    yield HELP, counts.needing_help


def _is_in(view: TaskView, name: str) -> bool:
    helps = look(view) == ATTENTION
    if name == HELP:
        return helps
    return not helps and Standing(name) in counted_as(view, standing(view))


class _Line:
    """Icon, number, state, and a button that selects only these."""

    def __init__(self, name: str, grid: QGridLayout, place: int) -> None:
        self._sign = _Sign(ATTENTION if name == HELP else name)
        self._number = plain_label("")
        self._number.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        word = QApplication.translate("Several", "In another state")
        self._word = plain_label(word if name == Standing.UNKNOWN else words.say(f"status.{name}"))
        self.only = LinkButton(QApplication.translate("Several", "Only these"))
        for column, part in enumerate((self._sign, self._number, self._word, self.only)):
            grid.addWidget(part, place, column)

    def show_number(self, number: int, *, alone: bool) -> None:
        self._number.show_text(words.count(number))
        for part in (self._sign, self._number, self._word):
            part.setVisible(number > 0)
        self.only.setVisible(0 < number <= MOST_PICKED and not alone)
        name = QApplication.translate("Several", "Select only the {0} that are: {1}")
        self.only.setAccessibleName(name.format(words.count(number), self._word.text()))


class _Sign(PlainLabel):
    """Icon of a state in the theme's colour."""

    def __init__(self, look_name: str) -> None:
        super().__init__()
        self._look_name = look_name
        self._draw()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._draw()

    def _draw(self) -> None:
        colour = tone(self._look_name, QApplication.palette())
        self.setPixmap(sign(self._look_name, colour, self.devicePixelRatioF()))
