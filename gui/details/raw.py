"""Raw tab: the task's files as text in chunks, or JSON files as a tree."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut, QTextCursor
from PySide6.QtWidgets import (
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display, display_lines
from engine.model.errors import EngineError
from engine.model.records import TaskRecord, TaskView
from engine.results.file_reader import FileFacts, FilePart
from engine.text.words import size_words
from gui.context.window_context import Desk
from gui.details.details_tab import EDGES, DetailTab
from gui.details.json_view import JsonView
from gui.details.screenshots import PicturePane
from gui.engine_link.scheduling import Throttle
from gui.i18n import language
from gui.style.editors import read_only_text
from gui.style.search_field import search_field
from gui.style.theme import plain_label, plain_tip
from gui.style.widgets import Tabs, arrange

# Viewer of a file in chunks, so that 500 MB open at once.

PART = 64 * 1024  # bytes shown at a time
_WRAP = 1_000  # characters of one line; Qt needs seconds to lay out a longer one


class FileText(QWidget):
    """Text of a file by chunks; the search covers the whole file."""

    _read_so_far = Signal(object, object)  # bytes, which exceed a C int; emitted in a thread

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self._where = ("", "")
        self._part = FilePart(b"", 0, 0)
        self._found = -1
        self.text = read_only_text(self, self.tr("The file as text"), fixed=True)
        self.search = search_field(self, self.tr("Search the whole file"))
        self._place = plain_label("", self, tone="muted")
        self._state = plain_label("", self, tone="muted")
        self.earlier = QPushButton(self.tr("Earlier"), self)
        self.later = QPushButton(self.tr("Later"), self)
        self.stop = QPushButton(self.tr("Stop"), self)
        self._lay_out()
        self._connect()

    def _lay_out(self) -> None:
        self.search.setFixedWidth(32 * self.fontMetrics().averageCharWidth())
        self.stop.hide()
        row = QHBoxLayout()
        row.addWidget(self.search)
        row.addWidget(self._state)
        row.addWidget(self.stop)
        row.addStretch(1)
        for widget in (self._place, self.earlier, self.later):
            row.addWidget(widget)
        arrange(QVBoxLayout(self), row, (self.text, 1), margins=0, spacing=6)
        self.setFocusProxy(self.text)

    def _connect(self) -> None:
        self.earlier.clicked.connect(lambda: self._go(self._part.start - PART))
        self.later.clicked.connect(lambda: self._go(self._part.start + len(self._part.data)))
        self.search.returnPressed.connect(self.find_next)
        self.search.textChanged.connect(lambda _: self._forget_search())
        self.search.left.connect(self.text.setFocus)
        self.stop.clicked.connect(self._forget_search)
        self._read_so_far.connect(self._show_progress)
        again = QShortcut(QKeySequence.StandardKey.FindNext, self, self.find_next)
        again.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)

    def show_file(self, task_id: str, name: str) -> None:
        """Show the start of this file; a no-op if it is shown."""
        if self._where != (task_id, name):
            self.leave()
            self._where = (task_id, name)
            self.search.clear()
            self._go(0)

    def leave(self) -> None:
        self._where = ("", "")
        self._forget_search()
        self._desk.bridge.call_off(self._name("part"))

    def find_next(self) -> None:
        """Go to the next match after the shown position."""
        needle, where = self.search.text(), self._where
        if not needle or not where[1]:
            return
        start = self._found + 1 if self._found >= 0 else self._part.start
        self.stop.show()
        self._desk.bridge.ask(
            lambda engine: engine.reading.find(*where, needle, start, self._read_so_far.emit),
            self._show_found,
            self._show_error,
            name=self._name("find"),
        )

    def _name(self, what: str) -> str:
        return f"file {what} {id(self)}"

    def _go(self, start: int) -> None:
        where = self._where
        self._desk.bridge.ask(
            lambda engine: engine.reading.part(*where, max(0, start), PART),
            self._show,
            self._show_error,
            name=self._name("part"),
        )

    def _show(self, part: FilePart) -> None:
        self._part = part
        self.text.setPlainText(_shown(part.data))
        end = part.start + len(part.data)
        self.earlier.setEnabled(part.start > 0)
        self.later.setEnabled(end < part.size)
        whole = part.start == 0 and end == part.size
        place = self.tr("{0} to {1} of {2}")
        words = map(size_words, (part.start, end, part.size))
        self._place.show_text(size_words(part.size) if whole else place.format(*words))
        for widget in (self.earlier, self.later):
            widget.setVisible(not whole)
        if part.start <= self._found < end:
            self._mark()

    def _show_found(self, at: int) -> None:
        self.stop.hide()
        if at < 0:
            first = self._found < 0
            self._found = -1
            no_more = self.tr("No more from here on")
            self._state.show_text(self.tr("Not found from here on") if first else no_more)
            return
        self._found = at
        self._state.show_text(self.tr("At {0}").format(size_words(at)))
        if self._part.start <= at < self._part.start + len(self._part.data):
            self._mark()
        else:
            self._go(at - PART // 8)

    def _mark(self) -> None:
        before = self._part.data[: self._found - self._part.start]
        at = len(_shown(before))
        cursor = self.text.textCursor()
        cursor.setPosition(at)
        most = len(self.text.toPlainText())
        cursor.setPosition(min(most, at + len(self.search.text())), QTextCursor.MoveMode.KeepAnchor)
        self.text.setTextCursor(cursor)
        self.text.centerCursor()

    def _forget_search(self) -> None:
        self._desk.bridge.call_off(self._name("find"))
        self._found = -1
        self.stop.hide()
        self._state.show_text("")

    def _show_progress(self, done: int, size: int) -> None:
        if self.stop.isVisible():
            percent = done * 100 // max(1, size)
            self._state.show_text(self.tr("Looked through {0} %").format(percent))

    def _show_error(self, error: EngineError) -> None:
        self.stop.hide()
        self._state.show_text(language.sentence(error))


def _shown(data: bytes) -> str:
    """Decode bytes to sanitised text, with very long lines wrapped."""
    lines = display_lines(data.decode("utf-8", "replace")).split("\n")
    parts = (line[at : at + _WRAP] for line in lines for at in range(0, max(1, len(line)), _WRAP))
    return "\n".join(parts)


AGAIN_MS = 2_000
_NAME = Qt.ItemDataRole.UserRole
_FIRST = ("result.json", "meta.json")


class Raw(DetailTab):
    """Files of one task; their untrusted content is shown as text only."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._task_id = ""
        self._files: tuple[FileFacts, ...] = ()
        self._seen: FileFacts | None = None  # the shown file, as it was when loaded
        self._ended = False
        self.list = QListWidget(self)
        # a separate QTabBar would be filled with its outline's colour
        self._ways = Tabs(self)
        self.modes = self._ways.tabBar()
        self.text, self.tree = FileText(desk, self), JsonView(desk, self)
        self._picture = PicturePane(desk, self)
        self._stack = QStackedWidget(self)
        self._again = Throttle(self, AGAIN_MS, self._look)
        self._lay_out()
        self.list.currentItemChanged.connect(lambda *_: self._show_file())
        self.modes.currentChanged.connect(lambda _: self._show_file())

    def _lay_out(self) -> None:
        self.list.setAccessibleName(self.tr("Files of the task"))
        self.list.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        for text in (self.tr("Tree"), self.tr("Text")):
            self._ways.addTab(QWidget(self._ways), text)
        self._ways.setFixedHeight(self.modes.sizeHint().height())
        for page in (self.tree, self.text, self._picture):
            self._stack.addWidget(page)
        side = QWidget(self)
        arrange(QVBoxLayout(side), self._ways, (self._stack, 1), margins=0, spacing=4)
        whole = QSplitter(self)
        whole.addWidget(self.list)
        whole.addWidget(side)
        whole.setStretchFactor(1, 1)
        whole.setSizes([220, 700])
        whole.setChildrenCollapsible(False)
        arrange(QVBoxLayout(self), whole, margins=EDGES)
        self.setFocusProxy(self.list)

    def show_task(self, view: TaskView) -> None:
        self._ended = isinstance(view.entry, TaskRecord) and view.entry.is_terminal
        if view.task_id != self._task_id:
            self.leave()
            self._task_id, self._files = view.task_id, ()
            self.list.clear()
            self._look()
        else:
            self._again.request()

    def leave(self) -> None:
        self._again.cancel()
        self._task_id = ""
        self.desk.bridge.call_off(f"files {id(self)}")
        self.text.leave()
        self.tree.leave()

    def _look(self) -> None:
        task_id = self._task_id
        self.desk.bridge.ask(
            lambda engine: engine.reading.files(task_id), self._show, name=f"files {id(self)}"
        )

    def _add(self, one: FileFacts) -> None:
        item = QListWidgetItem(_words(one), self.list)
        item.setData(_NAME, one.name)
        item.setToolTip(plain_tip(one.name))
        # as wide as the list: longer names are elided, not scrolled
        item.setSizeHint(QSize(0, self.list.fontMetrics().height() + 2))

    def _show(self, files: tuple[FileFacts, ...]) -> None:
        before = [one.name for one in self._files]
        self._files = files
        if before != [one.name for one in files]:
            current = self._current
            self.list.blockSignals(True)
            self.list.clear()
            for one in files:
                self._add(one)
            names = [one.name for one in files]
            wanted = (
                current.name
                if current is not None
                else next((name for name in _FIRST if name in names), "")
            )
            self.list.setCurrentRow(names.index(wanted) if wanted in names else 0)
            self.list.blockSignals(False)
            if current is None:
                self._show_file()
        else:
            for row, one in enumerate(files):
                self.list.item(row).setText(_words(one))
        self._show_newer()

    def _show_newer(self) -> None:
        """Reload the shown file after a change, once the task has ended or nothing is selected in
        it.
        """
        file = self._current
        if file is None or not file.is_json or self._seen in (None, file):
            return
        in_use = self.tree.search.text() or self.tree.tree.currentIndex().isValid()
        if self._ended or not in_use:
            self._show_file(again=True)

    @property
    def _current(self) -> FileFacts | None:
        item = self.list.currentItem()
        name = item.data(_NAME) if item is not None else ""
        return next((one for one in self._files if one.name == name), None)

    def _show_file(self, *, again: bool = False) -> None:
        file = self._seen = self._current
        if file is None:
            return
        if again:
            self.tree.leave()
            self.text.leave()
        self._ways.setVisible(file.is_json)
        if file.is_picture:
            self._stack.setCurrentWidget(self._picture)
            self._picture.show_picture(self._task_id, file.name)
        elif file.is_json and self.modes.currentIndex() == 0:
            self._stack.setCurrentWidget(self.tree)
            self.tree.show_file(self._task_id, file.name)
        else:
            self._stack.setCurrentWidget(self.text)
            self.text.show_file(self._task_id, file.name)


def _words(file: FileFacts) -> str:
    return f"{display(file.name, 120)}  ·  {size_words(file.size_bytes)}"
