"""JSON tree with search, and copy of a value or its path.

Each level of a file is read when it is expanded, so that any size works.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QHBoxLayout,
    QPushButton,
    QTreeView,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display, display_lines
from engine.model.errors import EngineError
from engine.results.file_reader import JsonMistake
from engine.results.json_tree import Hit, Kind, Node, Rest, Step, path_of
from engine.text.words import count
from gui.context.window_context import Desk
from gui.engine_link.scheduling import Debounce
from gui.i18n import language
from gui.style.menu import Menu
from gui.style.search_field import search_field
from gui.style.tables import COLOUR, DISPLAY, ROOT, SPOKEN, TOOL_TIP, AnyIndex, show_plain_columns
from gui.style.theme import TonedLabel, plain_tip, tone
from gui.style.widgets import ElidedLabel, arrange

LEVEL = 500  # members that are read at once
_TONES = {"text": "good", "number": "running", "word": "cancelling"}
_NOTHING = Node("$", "word", 0, "")


class Branch:
    """One value in the tree, with the members read so far."""

    __slots__ = ("children", "key", "loading", "node", "parent", "rest", "row", "started")

    def __init__(self, node: Node, parent: Branch | None = None, row: int = 0) -> None:
        self.node, self.parent, self.row = node, parent, row
        self.key = 0
        self.children: list[Branch] = []
        self.rest: Rest | None = None
        self.started = self.loading = False

    @property
    def steps(self) -> tuple[Step, ...]:
        found: list[Step] = []
        at: Branch | None = self
        while at is not None and at.parent is not None:
            found.append(at.node.step)
            at = at.parent
        return tuple(reversed(found))


class JsonModel(QAbstractItemModel):
    """Tree model of a JSON file; `settled` after a read, `broken` with the reason of a failure."""

    settled = Signal()
    broken = Signal(str)

    def __init__(self, desk: Desk, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self._where = ("", "")
        self._root = Branch(_NOTHING)
        # By number: a stale index of Qt must not refer to freed memory.
        self._branches: dict[int, Branch] = {}
        self._next = itertools.count(1)
        self._names: set[str] = set()

    def show_file(self, task_id: str, name: str) -> None:
        """Show this file of a task from the start; an empty name shows nothing."""
        self.stop()
        self.beginResetModel()
        self._where = (task_id, name)
        self._branches.clear()
        self._root = Branch(Node("$", _kind_of(name), 0, ""))
        self.endResetModel()
        if name:
            self.open(ROOT)

    def stop(self) -> None:
        """Cancel running reads."""
        for name in self._names:
            self._desk.bridge.call_off(name)
        self._names.clear()

    @property
    def is_reading(self) -> bool:
        return bool(self._names)

    def branch(self, index: AnyIndex) -> Branch:
        return self._branches.get(index.internalId(), self._root) if index.isValid() else self._root

    def node(self, index: AnyIndex) -> Node:
        return self.branch(index).node

    def path(self, index: AnyIndex) -> str:
        """Return the JSONPath of this value."""
        return path_of(self.branch(index).steps)

    def open(self, index: AnyIndex, until: int = 0) -> None:
        """Read the next members of this value, up to member `until`."""
        branch = self.branch(index)
        if branch.loading or not branch.node.is_open or (branch.started and branch.rest is None):
            return
        branch.loading = branch.started = True
        most = max(LEVEL, until + 1 - len(branch.children))
        name = f"json {id(self)} {id(branch)}"
        self._names.add(name)
        self._desk.bridge.spawn(self._take(branch, most, name), name=name)

    async def _take(self, branch: Branch, most: int, name: str) -> None:
        node, rest = branch.node, branch.rest
        if branch is self._root and node.kind == "json":
            node = Node("$", "object", 0, "")  # the root is a file, not a JSON text inside one
        try:
            reading = self._desk.bridge.engine.reading
            parts = reading.members(*self._where, node, rest, most)
            branch.rest = None
            async with aclosing(parts):
                async for part in parts:
                    self._add(branch, part)
        except EngineError as error:
            self.broken.emit(language.sentence(error))
        branch.loading = False
        self._names.discard(name)
        self.settled.emit()

    def _add(self, branch: Branch, part: Sequence[Node | Rest]) -> None:
        nodes = [one for one in part if isinstance(one, Node)]
        if len(nodes) < len(part) and isinstance(part[-1], Rest):
            branch.rest = part[-1]
        if not nodes:
            return
        first = len(branch.children)
        self.beginInsertRows(self._index_of(branch), first, first + len(nodes) - 1)
        for at, one in enumerate(nodes, first):
            self._branches[key := next(self._next)] = new = Branch(one, branch, at)
            new.key = key
            branch.children.append(new)
        self.endInsertRows()

    def _index_of(self, branch: Branch) -> QModelIndex:
        if branch.parent is None:
            return QModelIndex()
        return self.createIndex(branch.row, 0, branch.key)

    # Qt's model interface.

    def index(self, row: int, column: int, parent: AnyIndex = ROOT) -> QModelIndex:
        children = self.branch(parent).children
        if parent.isValid() and parent.column() != 0:
            return QModelIndex()
        if 0 <= row < len(children) and 0 <= column < 2:
            return self.createIndex(row, column, children[row].key)
        return QModelIndex()

    # Qt never calls a model's parent() without an index, as a QObject's.
    def parent(self, index: AnyIndex) -> QModelIndex:  # type: ignore[override]
        above = self.branch(index).parent if index.isValid() else None
        return QModelIndex() if above is None else self._index_of(above)

    def rowCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.column() > 0 else len(self.branch(parent).children)

    def columnCount(self, parent: AnyIndex = ROOT) -> int:
        return 2

    def hasChildren(self, parent: AnyIndex = ROOT) -> bool:
        branch = self.branch(parent)
        if parent.column() > 0 or not branch.node.is_open:
            return False
        return not branch.started or branch.loading or bool(branch.children)

    def canFetchMore(self, parent: AnyIndex) -> bool:
        branch = self.branch(parent)
        fresh = not branch.started or branch.rest is not None
        return branch.node.is_open and fresh and not branch.loading

    def fetchMore(self, parent: AnyIndex) -> None:
        self.open(parent)

    def data(self, index: AnyIndex, role: int = DISPLAY) -> Any:
        if not index.isValid():
            return None
        node = self.branch(index).node
        if role == DISPLAY:
            return _name(node) if index.column() == 0 else node.preview
        if role == COLOUR:
            wanted = "muted" if index.column() == 0 else _TONES.get(node.kind, "muted")
            return tone(wanted, QApplication.palette())
        if role == TOOL_TIP:
            return plain_tip(node.preview)
        return f"{_name(node)}: {node.preview}" if role == SPOKEN else None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == DISPLAY:
            return self.tr("Name") if section == 0 else self.tr("Value")
        return None


def _kind_of(name: str) -> Kind:
    if not name:
        return "word"
    return "lines" if name.endswith(".jsonl") else "json"


def _name(node: Node) -> str:
    return f"[{node.step}]" if isinstance(node.step, int) else display(node.step, 200)


MOST_HITS = 10_000
_NAME_CHARS = 28


class JsonView(QWidget):
    """One JSON file of one task."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self._where = ("", "")
        self.model = JsonModel(desk, self)
        self.tree = QTreeView(self)
        self.search = search_field(self, self.tr("Search names and values"))
        self._state = ElidedLabel("muted", self)
        self._path = ElidedLabel("muted", self)
        self._mistake = TonedLabel("", "warning", self)
        self.stop = QPushButton(self.tr("Stop"), self)
        self._hits: list[Hit] = []
        self._at = -1
        self._wanted: tuple[Step, ...] | None = None
        self._typed = Debounce(self, 300, self._look)
        self._lay_out()
        self._connect()

    def _lay_out(self) -> None:
        self.tree.setModel(self.model)
        show_plain_columns(self.tree)
        self.tree.setUniformRowHeights(True)
        self.tree.setAccessibleName(self.tr("JSON"))
        self.tree.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        character = self.fontMetrics().averageCharWidth()
        self.tree.header().resizeSection(0, _NAME_CHARS * character)
        self.search.setFixedWidth(32 * character)
        self.stop.hide()
        self.top = arrange(QHBoxLayout(), self.search, self._state, self.stop, 1)
        self._mistake.setWordWrap(True)
        self._mistake.hide()
        parts = (self.top, self._mistake, (self.tree, 1), self._path)
        arrange(QVBoxLayout(self), *parts, margins=0, spacing=6)
        self._path.setWordWrap(True)
        self.setFocusProxy(self.tree)

    def _connect(self) -> None:
        self.search.textChanged.connect(self._typed.request)
        self.search.returnPressed.connect(self.next_hit)
        self.search.left.connect(self.tree.setFocus)
        self.stop.clicked.connect(self._stop_search)
        self.model.settled.connect(self._go_on)
        self.model.broken.connect(self._show_broken)
        self.tree.selectionModel().currentChanged.connect(self._show_path)
        self.tree.customContextMenuRequested.connect(self._show_menu)
        scope = Qt.ShortcutContext.WidgetWithChildrenShortcut
        for keys, act in (
            (QKeySequence(QKeySequence.StandardKey.FindNext), self.next_hit),
            (QKeySequence(QKeySequence.StandardKey.FindPrevious), self.last_hit),
        ):
            QShortcut(keys, self, act).setContext(scope)
        for keys, act in (
            (QKeySequence(QKeySequence.StandardKey.Copy), self.copy_value),
            (QKeySequence("Ctrl+Shift+C"), self.copy_path),
        ):
            QShortcut(keys, self.tree, act).setContext(Qt.ShortcutContext.WidgetShortcut)

    def show_file(self, task_id: str, name: str) -> None:
        """Show this file; a no-op if it is shown."""
        if self._where != (task_id, name):
            self.leave()
            self.show_again(task_id, name)

    def show_again(self, task_id: str, name: str) -> None:
        """Read the file again."""
        self._where, self._hits, self._at, self._wanted = (task_id, name), [], -1, None
        self.search.clear()
        self._typed.cancel()
        self._state.show_text("")
        self._path.show_text("")
        self._show_mistake("")
        self.model.show_file(task_id, name)
        if name.endswith(".json"):
            self._desk.bridge.ask(
                lambda engine: engine.reading.mistake(task_id, name),
                self._take_mistake,
                lambda _: None,  # the tree shows the error
                name=self._check,
            )

    def leave(self) -> None:
        """Cancel running reads."""
        self._stop_search()
        self.model.stop()
        self._desk.bridge.call_off(self._check)
        self._where = ("", "")

    # Mistakes.

    @property
    def _check(self) -> str:
        return f"json mistake {id(self)}"

    def _take_mistake(self, found: JsonMistake | None) -> None:
        if found is None:
            return
        text = self.tr("Not valid JSON in line {0}, column {1}: the tree may miss a part.")
        self._show_mistake(text.format(count(found.line), count(found.column)))

    def _show_broken(self, reason: str) -> None:
        if self._mistake.isHidden():  # its line and column say more than a byte
            self._show_mistake(reason)

    def _show_mistake(self, text: str) -> None:
        self._mistake.show_text(text)
        self._mistake.setVisible(bool(text))

    # Search.

    @property
    def hits(self) -> list[Hit]:
        return self._hits

    def next_hit(self) -> None:
        self._step(1)

    def last_hit(self) -> None:
        self._step(-1)

    def _look(self) -> None:
        needle = self.search.text()
        self._stop_search()
        self._hits, self._at, self._wanted = [], -1, None
        self._state.show_text("")
        if needle and self._where[1]:
            self.stop.show()
            self._desk.bridge.spawn(self._search(needle), name=self._name)

    def _stop_search(self) -> None:
        self._desk.bridge.call_off(self._name)
        self.stop.hide()

    @property
    def _name(self) -> str:
        return f"json search {id(self)}"

    async def _search(self, needle: str) -> None:
        try:
            parts = self._desk.bridge.engine.reading.search(*self._where, needle)
            async with aclosing(parts):
                async for part in parts:
                    self._hits += part.hits
                    self._tell(part.done * 100 // max(1, part.size), part.passed_over)
                    if self._at < 0 and self._hits:
                        self._step(1)
                    if len(self._hits) >= MOST_HITS:
                        break
        except EngineError as error:
            self._state.show_text(language.sentence(error))
        else:
            self._tell(None, 0)
        self.stop.hide()

    def _tell(self, percent: int | None, passed_over: int) -> None:
        found = count(len(self._hits))
        if self._at >= 0:
            found = self.tr("{0} of {1}").format(count(self._at + 1), found)
        if percent is not None:
            text = self.tr("{0} · looked through {1} %").format(found, percent)
        elif not self._hits:
            text = self.tr("Not found")
        else:
            text = found
        self._state.show_text(text)

    def _step(self, way: int) -> None:
        if not self._hits:
            return
        self._at = (self._at + way) % len(self._hits)
        self._wanted = self._hits[self._at].steps
        self._tell(None, 0)
        self._go_on()

    def _go_on(self) -> None:
        """Expand level by level until the wanted match is loaded."""
        wanted, at = self._wanted, QModelIndex()
        if wanted is None:
            return
        for step in wanted:
            found = self._member(at, step)
            if found is None:
                self.tree.expand(at)
                self.model.open(at, step if isinstance(step, int) else 0)
                if not self.model.is_reading:
                    self._wanted = None
                return
            at = found
        self._wanted = None
        self.tree.setCurrentIndex(at)
        self.tree.scrollTo(at, QAbstractItemView.ScrollHint.PositionAtCenter)

    def _member(self, parent: QModelIndex, step: Step) -> QModelIndex | None:
        children = self.model.branch(parent).children
        if isinstance(step, int):
            return self.model.index(step, 0, parent) if step < len(children) else None
        for row, child in enumerate(children):
            if child.node.step == step:
                return self.model.index(row, 0, parent)
        return None

    # Copy.

    def copy_path(self) -> None:
        """Copy the JSONPath of the current value."""
        QGuiApplication.clipboard().setText(self.model.path(self.tree.currentIndex()))

    def copy_value(self) -> None:
        """Copy the current value: a string as it is, other values as JSON."""
        index = self.tree.currentIndex()
        if index.isValid():
            node, where = self.model.node(index), self._where
            self._desk.bridge.ask(
                lambda engine: engine.reading.value(*where, node),
                lambda data: self._copied(node, data),
                name=f"json value {id(self)}",
            )

    def _copied(self, node: Node, data: bytes | None) -> None:
        if data is None:
            self._state.show_text(self.tr("This value is larger than 8 MB: export the result."))
            return
        try:
            value = json.loads(data, strict=False)
        except (ValueError, RecursionError):
            value = data.decode("utf-8", "replace")
        told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        QGuiApplication.clipboard().setText(told.encode("utf-8", "replace").decode())
        self._state.show_text(self.tr("Copied."))

    def _show_menu(self, at: QPoint) -> None:
        menu = Menu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(self.tr("Copy value"), self.copy_value)
        menu.addAction(self.tr("Copy JSONPath"), self.copy_path)
        menu.popup(self.tree.viewport().mapToGlobal(at))

    def _show_path(self, current: QModelIndex, _: QModelIndex) -> None:
        text = path_of(self.model.branch(current).steps) if current.isValid() else ""
        self._path.show_text(display_lines(text, 500))
