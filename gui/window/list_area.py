"""Area of the list: the table, or a card while there is nothing to list, and its menus.

Columns are read in advance: sort values in idle time, so that the first sort of a long list by a
column is fast, and contract counts of visible rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QMenu, QProgressBar, QStackedWidget, QVBoxLayout, QWidget

from engine.contracts.completing import Guard
from engine.model.errors import EngineError
from engine.text.words import count
from gui.context.actions import Actions
from gui.context.window_context import WindowContext
from gui.engine_link.bridge import Bridge
from gui.i18n import language
from gui.style.banners import Card, Choice
from gui.style.menu import Menu
from gui.style.theme import plain_label
from gui.style.widgets import arrange
from gui.tasks.columns import COLUMN_AT, COLUMNS, known_contract, learn_contracts
from gui.tasks.row import Row
from gui.tasks.task_header import next_order
from gui.tasks.task_model import MADE_FOR_SORT
from gui.tasks.task_order import NEWEST_FIRST
from gui.tasks.task_table import TaskTable
from gui.window.placeholder_rows import Skeleton

BAR_S = 0.1


@dataclass(frozen=True, slots=True)
class WaysOut:
    """Actions of the buttons on the cards."""

    new_task: Callable[[], object]
    paste: Callable[[], object]
    sample: Callable[[], object]
    open_folder: Callable[[], object]
    clear_filter: Callable[[], object]
    rescan: Callable[[], object]
    create_root: Callable[[], object]


class ListArea(QWidget):
    """Choose between table, loading, empty, empty by filter, and ledger trouble.

    `populated` reports whether any tasks exist to filter or to show.
    """

    populated = Signal(bool)

    def __init__(self, table: QWidget, ways: WaysOut, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown = self._total = 0
        self._complete = False
        self._told_at = 0.0
        self._trouble: EngineError | None = None
        self._gone, self._others = "", False
        self._accepts: bool | None = None
        self._offers_root: bool | None = None
        self._root = ""
        self._ways = ways
        self._table, self._skeleton = table, Skeleton(self)
        self._empty = Card("list", self)
        self._unmatched = Card("search", self)
        self._broken = Card("warning", self)
        self._stack = QStackedWidget(self)
        for page in (table, self._skeleton, self._empty, self._unmatched, self._broken):
            self._stack.addWidget(page)
        self._reading = plain_label(tone="muted", parent=self)
        self._bar = QProgressBar(self)
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(self.tr("How much of the ledger is read"))
        self._bar.setFixedHeight(4)
        self._lay_out()
        self.show_accepting(True)
        self._choose()

    def _lay_out(self) -> None:
        arrange(QVBoxLayout(self), self._bar, (self._stack, 1), self._reading, margins=0, spacing=0)
        self.show_nearest(())
        self._offer_ways(gone=False)

    def _offer_ways(self, *, gone: bool) -> None:
        """Offer the ways out of a trouble; the buttons stay as long as it is of the same sort."""
        if gone is self._offers_root:
            return
        self._offers_root = gone
        again = Choice(self.tr("Try again"), self._ways.rescan)
        other = Choice(self.tr("Open another folder…"), self._ways.open_folder)
        create = Choice(self.tr("Create the folder again"), self._ways.create_root)
        self._broken.show_choices((again, create, other) if gone else (again, other))

    @property
    def state(self) -> str:
        """One of loading, table, empty, unmatched or trouble."""
        names = {
            self._table: "table",
            self._skeleton: "loading",
            self._empty: "empty",
            self._unmatched: "unmatched",
        }
        page = self._stack.currentWidget()
        return names.get(page, "trouble") if page is not None else "loading"

    @property
    def trouble_words(self) -> str:
        """The problem of the ledger with its solution, empty without one."""
        error = self._trouble
        return language.told(error) if error is not None else ""

    def show_root(self, root: str) -> None:
        self._root = root
        self._choose()

    def show_accepting(self, accepts: bool) -> None:
        """Offer to start a task, or another folder for a read-only ledger."""
        if accepts == self._accepts:
            return  # Keep the buttons without a change, because the user may be about to click one
        self._accepts = accepts
        other = Choice(self.tr("Open another folder…"), self._ways.open_folder)
        starting = (
            Choice(self.tr("New task…"), self._ways.new_task),
            Choice(self.tr("Paste a URL"), self._ways.paste),
            Choice(self.tr("Try the sample crawl"), self._ways.sample),
        )
        self._empty.show_choices((*starting, other) if accepts else (other,))

    def show_loading(self, loaded: int, total: int, complete: bool) -> None:
        """Show the loading progress: `loaded` of `total` tasks are in the table."""
        if complete and self._complete and self._trouble is None:
            return  # A complete list needs no progress
        self._complete = complete
        self._trouble = None
        if complete or time.monotonic() - self._told_at > BAR_S:
            self._told_at = time.monotonic()
            self._tell_how_far(loaded, total, complete)
        self._choose()

    def _tell_how_far(self, loaded: int, total: int, complete: bool) -> None:
        # Without this the bar would repaint the window immediately.
        self._bar.setUpdatesEnabled(False)
        self._bar.setRange(0, max(1, total))
        self._bar.setValue(loaded)
        self._bar.setUpdatesEnabled(True)
        self._reading.show_text(
            "" if complete else self.tr("Reading {0} / {1}…").format(count(loaded), count(total))
        )

    def show_numbers(self, shown: int, total: int) -> None:
        """Update the number of filtered and of all tasks."""
        self._shown, self._total = shown, total
        self._choose()

    def show_nearest(self, choices: tuple[Choice, ...]) -> None:
        """Offer filters with a result, next to clearing the filter."""
        clear = Choice(self.tr("Clear the filter"), self._ways.clear_filter)
        self._unmatched.show_choices((clear, *choices))

    def show_trouble(self, error: EngineError) -> None:
        """Show that the ledger cannot be used."""
        self._trouble = error
        self._choose()

    def show_gone(self, reason: str, *, others: bool = False) -> None:
        """Show that the ledger's folder is missing, or available again with an empty reason.

        Tasks of `others` and tasks that wait for the folder remain listed.
        """
        if (reason, others) != (self._gone, self._others):
            self._gone, self._others = reason, others
            self._choose()

    def _choose(self) -> None:
        gone = bool(self._gone) and not (self._others and self._total)
        broken = self._trouble is not None or gone
        reading = not self._complete and not broken
        self._bar.setVisible(reading and self._total > 0)
        self._reading.setVisible(reading and self._total > 0)
        if broken:
            page: QWidget = self._broken
        elif self._shown:
            page = self._table
        elif not self._complete:
            page = self._skeleton
        elif self._total:
            page = self._unmatched
        else:
            page = self._empty
        self._say(page)
        self._show_page(page)
        self.populated.emit(page not in (self._empty, self._broken))

    def _show_page(self, page: QWidget) -> None:
        """Show `page`, which gets the focus that the last page had."""
        last, held = self._stack.currentWidget(), self.window().focusWidget()
        self._stack.setCurrentWidget(page)
        if last is None or held is None or last is page:
            return
        if last is held or last.isAncestorOf(held):  # Qt would take any next widget of the window
            (page.first_choice if isinstance(page, Card) else page).setFocus()

    def _say(self, page: QWidget) -> None:
        """Set the text of `page`, if it has any."""
        if page is self._broken:
            self._say_what_is_broken()
        elif page is self._unmatched:
            hidden = (
                self.tr("1 task is here; the filter hides it.")
                if self._total == 1
                else self.tr("{0} tasks are here; the filter hides all of them.")
            )
            self._unmatched.show_words(
                self.tr("No task matches"), hidden.format(count(self._total))
            )
        elif page is self._empty:
            self._empty.show_words(
                self.tr("No tasks yet"),
                self.tr("Start a crawl, or try one on a small site that runs on this machine."),
                self.tr("Watching {0}").format(self._root),
            )

    def _say_what_is_broken(self) -> None:
        self._offer_ways(gone=self._trouble is None)
        again = self.tr("The window looks again every 2 seconds.")
        if self._trouble is not None:
            self._broken.show_words(language.title(self._trouble), self.trouble_words, again)
        else:
            where = self.tr("Watching {0}").format(self._root)
            self._broken.show_words(self.tr("The ledger folder is gone"), self._gone, where)


class SortMenu(QObject):
    """Fill the `Sort by` menu each time it opens, also by its own shortcut."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._table = ctx.table
        self._menu = ctx.actions.menus["sort"]
        self._then = Menu(self.tr("&Then by"), self._menu)
        self._menu.aboutToShow.connect(self._fill)
        action = ctx.actions.add("sort_menu", self.tr("S&ort the list…"), ["Ctrl+Shift+S"])
        action.triggered.connect(lambda _=False: self.open())

    def open(self) -> None:
        """Open the menu below the header of the list."""
        self._menu.popup(self._table.mapToGlobal(self._table.header().geometry().bottomLeft()))

    def _fill(self) -> None:
        menu, keys = self._menu, self._table.tasks.sort_keys
        menu.clear()
        self._offer(menu, further=False)
        menu.addSeparator()
        self._then.clear()
        self._offer(self._then, further=True)
        menu.addMenu(self._then)
        (first, down), *others = keys
        turn = menu.addAction(self.tr("Turn the order &round"))
        turn.triggered.connect(lambda _=False: self._sort([(first, not down), *others]))
        newest = menu.addAction(self.tr("&Newest first"))
        newest.setEnabled(keys != NEWEST_FIRST)
        newest.triggered.connect(lambda _=False: self._sort(list(NEWEST_FIRST)))

    def _offer(self, menu: QMenu, *, further: bool) -> None:
        """Add one action for each column:

        the first key is checked, further keys show their rank.
        """
        keys = self._table.tasks.sort_keys
        ranks = {key: number for number, (key, _) in enumerate(keys, 1)}
        for column in self._table.header().columns:
            rank = ranks.get(column.key, 0)
            if further and rank == 1:
                continue
            action = menu.addAction(self._named(column.key, rank))
            action.setCheckable(True)
            action.setChecked(rank > 1 if further else rank == 1)
            wanted = next_order(keys, column.key, further=further)
            action.triggered.connect(lambda _=False, wanted=wanted: self._sort(wanted))

    def _named(self, key: str, rank: int) -> str:
        title = COLUMNS[COLUMN_AT[key]].long_title
        if not rank:
            return title
        if self._table.tasks.sort_keys[rank - 1][1]:
            return self.tr("{0} ({1}, descending)").format(title, rank)
        return self.tr("{0} ({1}, ascending)").format(title, rank)

    def _sort(self, keys: list[tuple[str, bool]]) -> None:
        self._table.tasks.set_sort(keys)


def follow_table(actions: Actions, table: TaskTable) -> None:
    """Fill the column menu from the table each time it opens."""
    columns = actions.menus["columns"]
    columns.aboutToShow.connect(lambda: _fill_columns(columns, table))


def _fill_columns(menu: QMenu, table: TaskTable) -> None:
    menu.clear()
    table.header().fill_menu(menu)


FEWEST = 20_000  # A shorter list is sorted fast enough without.
SOON_MS = 1000  # Delay after loading, or after a change of the shown columns.
EXPENSIVE = ("took", "ended", "started", "average")  # Read even while hidden.
TURN_MS = 12  # Pause between two slices, in which clicks and keys are processed.
SLICE_S = 0.002
BUSY_SHARE = 0.05  # Share of a turn used by other work that postpones the slice.
BUSY_MS = 250
HIDDEN_MS = 5000


class ColumnPrefetch(QObject):
    """Read the shown and the expensive columns in slices, while the visible window is idle.

    `turned` is emitted after each attempt.
    """

    turned = Signal()

    def __init__(self, table: TaskTable, bridge: Bridge) -> None:
        super().__init__(table)
        self._table = table
        self._steps: Iterator[None] = iter(())
        self._checked_at = self._worked = 0.0
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._turn)
        bridge.loaded.connect(self._start)
        table.header().rearranged.connect(self._start)

    @property
    def is_busy(self) -> bool:
        """True while columns remain to be read."""
        return self._timer.isActive()

    def _start(self) -> None:
        model, header = self._table.tasks, self._table.header()
        if self._timer.isActive() or model.total < FEWEST:
            return
        shown = [one.key for one in header.columns if header.is_wanted(one.key)]
        # Names are made in slices on the first sort by them: they take 16 MB for 100,000 tasks.
        wanted = [key for key in dict.fromkeys((*shown, *EXPENSIVE)) if key not in MADE_FOR_SORT]
        if model.lacks_columns(wanted):
            self._steps = model.prepare_columns(wanted)
            self._timer.start(SOON_MS)
            self._note_time()

    def _turn(self) -> None:
        table = self._table
        if not table.isVisible() or table.window().isMinimized():
            self._timer.start(HIDDEN_MS)
        elif self._others_work():
            self._timer.start(BUSY_MS)
        elif self._read_slice():
            self._timer.start(TURN_MS)
        self._note_time()
        self.turned.emit()

    def _note_time(self) -> None:
        self._checked_at, self._worked = time.perf_counter(), time.thread_time()

    def _others_work(self) -> bool:
        """Return whether this thread has done other work since the last check."""
        worked = time.thread_time() - self._worked
        return worked > BUSY_SHARE * (time.perf_counter() - self._checked_at)

    def _read_slice(self) -> bool:
        """Read for one slice and return False once all columns are read."""
        until = time.perf_counter() + SLICE_S
        more = True
        while more and time.perf_counter() < until:
            more = next(self._steps, self) is None  # Each step is None.
        return more


COUNTS_MS: Final = 1500
_ASK: Final = "what contracts say"


class ContractCounts(QObject):
    """Poll the contracts of visible tasks that are live or have no cached counts."""

    def __init__(self, table: TaskTable, bridge: Bridge) -> None:
        super().__init__(table)
        self._table, self._bridge, self._busy = table, bridge, False
        self._clock = QTimer(self, interval=COUNTS_MS)
        self._clock.timeout.connect(self.look)
        bridge.loaded.connect(self._begin)

    def look(self) -> None:
        """Request the counts, unless a request is pending."""
        wanted = sorted({link for row in self._rows() if (link := link_of(row)) and _asks(row)})
        if wanted and not self._busy:
            self._busy = True
            ask = self._bridge.ask
            ask(lambda engine: engine.contracts.counts(wanted), self._show, self._fail, name=_ASK)

    def _begin(self) -> None:
        self._clock.start()

    def _rows(self) -> list[Row]:
        table, model = self._table, self._table.tasks
        if not table.header().is_wanted("contract"):
            return []
        first, last = table.rows_in_sight()
        return [model.row_at(at) for at in range(first, last + 1)]

    def _show(self, found: Mapping[str, Guard]) -> None:
        self._busy = False
        news, model, column = learn_contracts(found), self._table.tasks, COLUMN_AT["contract"]
        if not news:
            return
        for row in self._rows():
            at = model.row_of(row.task_id) if link_of(row) in news else -1
            if at >= 0:
                model.dataChanged.emit(model.index(at, column), model.index(at, column))

    def _fail(self, _error: object) -> None:
        self._busy = False  # The cell stays empty after a failed request


def link_of(row: Row) -> str:
    """Return the contract id of a task, qualified by a foreign ledger, or an empty string."""
    ours = getattr(row.view.entry, "engine", None)
    return getattr(ours, "contract_id", None) or ""


def _asks(row: Row) -> bool:
    return row.live or known_contract(link_of(row)) is None
