"""Command palette (Ctrl+K) of actions, menu entries, kinds and tasks, recent ones first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAction,
    QIcon,
    QKeyEvent,
    QKeySequence,
    QPixmap,
    QStandardItem,
    QStandardItemModel,
)
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QHeaderView,
    QMenu,
    QTreeView,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display, elide_right
from engine.service.rerun import Asked
from engine.text import words
from gui.context.actions import NAME
from gui.context.window_context import WindowContext
from gui.engine_link.scheduling import SlicedWork
from gui.i18n import language
from gui.settings.shortcuts import plain
from gui.start.starting import Starting
from gui.style.fuzzy_match import score
from gui.style.search_field import search_field
from gui.style.theme import plain_label, tone
from gui.style.widgets import arrange
from gui.tasks.row import Row

RECENT = 8
MOST = 40  # Limit of entries of each type
MOST_TASKS = 12
BY_ITS_MENU = 60  # Score penalty for a match of the menu name only
LEAST_WHOLE = 50  # Score of a word that the text contains; less are its letters in order
LEAST_LETTERS = 2  # A single letter matches thousands of tasks
SLICE_MS = 2
MEMORY = "palette"
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the palette; `hint` is a shortcut, a menu or a task's state."""

    key: str
    text: str
    hint: str
    run: Callable[[], object]
    icon: QIcon | None = None
    enabled: bool = True
    name: str = ""  # The name without its menu, which alone matches too much
    also: tuple[str, ...] = ()  # Alternative names, such as those in other languages


class Palette(QObject):
    """Open the dialog and store the recent choices."""

    def __init__(self, ctx: WindowContext, starting: Starting) -> None:
        super().__init__(ctx.parent)
        self._starting = starting
        self._ctx = ctx
        self._dialog: PaletteDialog | None = None
        words_, short = self.tr("Command &palette…"), self.tr("Command…")
        ctx.actions.add("palette", words_, ["Ctrl+K"], "search", short).triggered.connect(self.open)

    def open(self) -> None:
        """Open the palette with all commands."""
        if self._dialog is not None:
            return
        recent = self._ctx.memory.names(MEMORY)
        finder = TaskFinder(self._ctx)
        dialog = self._dialog = PaletteDialog(self.entries(), recent, finder, self._ctx.parent)
        dialog.chosen.connect(self._run)
        dialog.finished.connect(self._forget)
        dialog.open()

    def entries(self) -> list[Entry]:
        """Return all commands in menu order."""
        acts = self._ctx.actions
        found = [self._of(key, acts[key]) for key in acts if key != "palette"]
        for name, menu in acts.menus.items():
            found += self._within(name, menu)
        return found + self._kinds()

    def _of(self, key: str, act: QAction, menu: str = "") -> Entry:
        keys = act.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        name = plain(act.text())
        text = self.tr("{0}: {1}").format(plain(menu), name) if menu else name
        hint = self.tr("on") if act.isCheckable() and act.isChecked() else ""
        icon = None if act.icon().isNull() else act.icon()
        more = self._other_words().get(key, "")
        also = (*self._names(act, menu), *filter(None, [more]), *language.elsewhere(more))
        return Entry(key, text, keys or hint, act.trigger, icon, act.isEnabled(), name, also)

    def _names(self, act: QAction, menu: str) -> Iterator[str]:
        """Yield names in other languages, and the name without its changing part."""
        texts = (act.text(), act.property(NAME), act.text().partition(" (")[0])
        known = dict.fromkeys(text for text in texts if isinstance(text, str))
        names = [plain(name) for text in known for name in _elsewhere(text)]
        yield from names
        titles = map(plain, language.elsewhere(menu)) if menu else ()
        yield from (f"{title}: {name}" for title in titles for name in (plain(act.text()), *names))

    def _other_words(self) -> dict[str, str]:
        """Return synonyms of menu texts by action."""
        return {
            "doctor": self.tr("doctor, diagnosis, check"),
            "settings": self.tr("preferences, options"),
            "quit": self.tr("exit, close the window"),
            "delete": self.tr("delete, remove"),
            "find": self.tr("search, look for"),
            "rerun": self.tr("repeat, start again"),
            "resume_crawl": self.tr("continue, go on"),
            "statistics": self.tr("numbers, figures"),
        }

    def _within(self, name: str, menu: QMenu) -> Iterator[Entry]:
        menu.aboutToShow.emit()  # Some menus are filled only when they open
        for act in menu.actions():
            if act.isSeparator() or act.menu() is not None:
                continue
            key = f"{name}:{plain(act.text())}".replace(" ", "_")
            yield self._of(key, act, menu.title())

    def _kinds(self) -> list[Entry]:
        from engine.service.forms import startable
        from gui.start.kind_form import FormWords

        acts, starting = self._ctx.actions, self._starting
        can, icon = acts["new"].isEnabled(), acts["new"].icon()
        kinds = FormWords(self).kinds()
        named = {one.kind: (one.title, *language.elsewhere(one.title)) for one in kinds}

        def entry(kind: str) -> Entry:
            def start() -> None:
                starting.open(Asked(kind, {}))

            text = self.tr("New task: {0}")
            others = (other.format(kind) for other in language.elsewhere(text))
            also = (*others, *(text.format(one) for one in named.get(kind, ())))
            key = f"new:{kind}"
            return Entry(key, text.format(kind), "", start, icon, can, also=also)

        return [entry(kind) for kind in startable()]

    def _run(self, entry: Entry) -> None:
        if not entry.key.startswith("task:"):
            others = [key for key in self._ctx.memory.names(MEMORY) if key != entry.key]
            self._ctx.memory.keep_names(MEMORY, (entry.key, *others[: RECENT - 1]))
        # Run after the palette has closed, so that a new dialog does not open behind it.
        QTimer.singleShot(0, self, entry.run)

    def _forget(self) -> None:
        if self._dialog is not None:
            self._dialog.deleteLater()
            self._dialog = None


def _elsewhere(text: str) -> Iterator[str]:
    """Yield the text in other languages, with its number filled in."""
    yield from language.elsewhere(text)
    number = _NUMBER.search(text)
    if number is not None:
        template = _NUMBER.sub("{0}", text, count=1)
        yield from (one.replace("{0}", number[0]) for one in language.elsewhere(template))


def ranked(entries: Sequence[Entry], typed: str, recent: Sequence[str]) -> list[Entry]:
    """Return the matches, best first, then recent ones, then in menu order.

    Disabled entries come after enabled ones, and letters in order after whole words.
    """
    places, number = {key: at for at, key in enumerate(recent)}, len(typed.split())
    found = []
    for at, entry in enumerate(entries):
        points = _points(entry, typed)
        if points is not None:
            place = places.get(entry.key, len(places))
            weak = points < LEAST_WHOLE * number
            found.append((weak, not entry.enabled, -points, place, at))
    return [entries[at] for *_, at in sorted(found)][:MOST]


def _points(entry: Entry, typed: str) -> int | None:
    """Return the best score of all names; on a tie the window's language wins."""
    others = (score(typed, one) for one in entry.also)
    found = [points - 1 for points in others if points is not None]
    own = _own_points(entry, typed)
    return max(found if own is None else [*found, own], default=None)


def _own_points(entry: Entry, typed: str) -> int | None:
    whole = score(typed, entry.text)
    if not entry.name or entry.name == entry.text or whole is None:
        return whole
    own = score(typed, entry.name)
    return whole - BY_ITS_MENU if own is None else own


class TaskFinder(QObject):
    """Search tasks like a filter, newest first, in small slices."""

    found = Signal(list)

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self._hits: list[Entry] = []
        self._reported = 0  # Number of matches in the last `found`
        self._work = SlicedWork(self, budget_ms=SLICE_MS)
        self._work.paused.connect(self._report)
        self._work.done.connect(self._report)

    def look_for(self, typed: str) -> None:
        """Start a search and cancel the previous one.

        `found` is emitted for each slice with matches.
        """
        self._hits, self._reported = [], 0
        self._work.cancel()
        if len(typed.strip()) >= LEAST_LETTERS:
            rows = list(self._ctx.model.rows.values())
            self._work.start(self._search(rows, typed.casefold().split()))

    def stop(self) -> None:
        self._work.cancel()

    def _search(self, rows: Sequence[Row], wanted: Sequence[str]) -> Iterator[None]:
        for row in rows:
            if all(word in row.haystack for word in wanted):
                self._hits.append(self._entry(row))
            if len(self._hits) >= MOST_TASKS:
                return
            yield

    def _report(self) -> None:
        if len(self._hits) > self._reported:
            self._reported = len(self._hits)
            self.found.emit(list(self._hits))

    def _entry(self, row: Row) -> Entry:
        task_id, table = row.task_id, self._ctx.table

        def show() -> None:
            if self._ctx.model.row_of(task_id) < 0:
                self._ctx.clear_filter()
            table.select_ids([task_id])
            table.setFocus()

        told = (words.status_word(row.view), row.kind, row.about.ledger)
        hint = " · ".join(filter(None, told))
        return Entry(f"task:{task_id}", words.task_name(row.view), hint, show)


# The dialog: a field and its matches; arrows select, Enter runs, Esc closes.

WIDTH, HEIGHT = 620, 420
FROM_TOP = 70
MOST_CHARS = 90
ROW_PAD = 9
_MOVES = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


class PaletteDialog(QDialog):
    """Palette dialog; `chosen` carries the entry after it has closed."""

    chosen = Signal(Entry)

    def __init__(
        self,
        entries: Sequence[Entry],
        recent: Sequence[str],
        finder: TaskFinder,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._entries, self._recent, self._finder = entries, recent, finder
        self._commands: list[Entry] = []
        self._shown: list[Entry] = []
        blank = QPixmap(16, 16)  # Aligns names without an icon
        blank.fill(Qt.GlobalColor.transparent)
        self._blank = QIcon(blank)
        self.setWindowTitle(self.tr("Command palette"))
        self.resize(WIDTH, HEIGHT)
        hint = self.tr("Type a command, or a task’s name, address or id")
        self._field = search_field(self, hint, self.tr("Command"))
        self._nothing = plain_label(self.tr("Nothing answers to that."), self, tone="muted")
        self._items = QStandardItemModel(0, 2, self)
        self._list = _List(self)
        self._list.setModel(self._items)
        self._list.setAccessibleName(self.tr("Commands and tasks"))
        self._lay_out()
        self._field.installEventFilter(self)
        self._field.textChanged.connect(self._narrow)
        self._list.activated.connect(self._choose)
        self._list.clicked.connect(self._choose)
        finder.found.connect(self._show_tasks)
        self.finished.connect(lambda _: finder.stop())
        self.finished.connect(finder.deleteLater)
        self._narrow("")

    def _lay_out(self) -> None:
        arrange(
            QVBoxLayout(self), self._field, self._nothing, (self._list, 1), margins=10, spacing=8
        )
        head = self._list.header()
        head.setStretchLastSection(False)
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        head.setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        parent = self.parentWidget()
        if parent is not None:
            left = (parent.width() - self.width()) // 2
            self.move(parent.mapToGlobal(QPoint(max(0, left), FROM_TOP)))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Send navigation keys to the list, while the field keeps the focus."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in _MOVES:
                QApplication.sendEvent(self._list, event)
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._choose(self._list.currentIndex())
                return True
            if event.key() == Qt.Key.Key_Escape:  # the field would clear first, as in a window
                self.reject()
                return True
        return super().eventFilter(watched, event)

    def _narrow(self, typed: str) -> None:
        self._commands = ranked(self._entries, typed, self._recent)
        self._show(self._commands)
        self._finder.look_for(typed)

    def _show_tasks(self, tasks: list[Entry]) -> None:
        self._show([*self._commands, *tasks])

    def _show(self, entries: list[Entry]) -> None:
        at = self._list.currentIndex().row() if entries[: len(self._shown)] == self._shown else 0
        self._shown = entries
        # Removing rows keeps the column resize modes.
        self._items.removeRows(0, self._items.rowCount())
        for entry in entries:
            self._items.appendRow(self._line(entry))
        if at <= 0:
            at = next((row for row, entry in enumerate(entries) if entry.enabled), 0)
        self._list.setCurrentIndex(self._items.index(at, 0))
        self._nothing.setVisible(not entries)

    def _line(self, entry: Entry) -> list[QStandardItem]:
        name = QStandardItem(elide_right(display(entry.text), MOST_CHARS))
        name.setIcon(entry.icon or self._blank)
        name.setSizeHint(QSize(0, self.fontMetrics().height() + ROW_PAD))
        hint = QStandardItem(display(entry.hint))
        hint.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        hint.setForeground(tone("muted", self.palette()))
        for item in (name, hint):
            item.setEditable(False)
            item.setEnabled(entry.enabled)
        return [name, hint]

    def _choose(self, index: QModelIndex) -> None:
        if not index.isValid() or not self._shown[index.row()].enabled:
            return
        entry = self._shown[index.row()]
        self.accept()
        self.chosen.emit(entry)


class _List(QTreeView):
    """Tree view without branches that never takes the focus."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setHeaderHidden(True)
        self.setAllColumnsShowFocus(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
