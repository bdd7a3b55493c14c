"""JSON file as a tree; each level is read when it is expanded, so any size works."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from itertools import count
from typing import Any

from PySide6.QtCore import (
    QAbstractItemModel,
    QModelIndex,
    QObject,
    Qt,
    Signal,
)
from PySide6.QtWidgets import QApplication

from engine.model.display import display
from engine.model.errors import EngineError
from engine.results.json_tree import Kind, Node, Rest, Step, path_of
from gui.engine_link.services import Desk
from gui.i18n import language
from gui.style.tables import COLOUR, DISPLAY, ROOT, SPOKEN, TOOL_TIP, AnyIndex
from gui.style.theme import plain_tip, tone

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
        self._next = count(1)
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
