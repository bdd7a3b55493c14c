"""JSON tree with search, and copy of a value or its path."""

from __future__ import annotations

import json
from contextlib import aclosing

from PySide6.QtCore import QModelIndex, QPoint, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QLineEdit,
    QMenu,
    QPushButton,
    QTreeView,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display_lines
from engine.model.errors import EngineError
from engine.results.json_search import Hit
from engine.results.json_tree import Node, Step, path_of
from engine.text.words import count
from gui.details.json_tree import JsonModel
from gui.engine_link.services import Desk
from gui.i18n import language
from gui.style.accessibility import clearable
from gui.style.labels import ElidedLabel

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
        self.search = QLineEdit(self)
        self._state = ElidedLabel("muted", self)
        self._path = ElidedLabel("muted", self)
        self.stop = QPushButton(self.tr("Stop"), self)
        self._hits: list[Hit] = []
        self._at = -1
        self._wanted: tuple[Step, ...] | None = None
        self._typed = QTimer(self, singleShot=True, interval=300)
        self._lay_out()
        self._connect()

    def _lay_out(self) -> None:
        self.tree.setModel(self.model)
        self.tree.setUniformRowHeights(True)
        self.tree.setAccessibleName(self.tr("JSON"))
        self.tree.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        character = self.fontMetrics().averageCharWidth()
        self.tree.header().resizeSection(0, _NAME_CHARS * character)
        self.search.setPlaceholderText(self.tr("Search names and values"))
        self.search.setAccessibleName(self.tr("Search names and values"))
        clearable(self.search)
        self.search.setFixedWidth(32 * character)
        self.stop.hide()
        self.top = QHBoxLayout()
        for widget in (self.search, self._state, self.stop):
            self.top.addWidget(widget)
        self.top.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(self.top)
        column.addWidget(self.tree, 1)
        column.addWidget(self._path)
        self._path.setWordWrap(True)
        self.setFocusProxy(self.tree)

    def _connect(self) -> None:
        self.search.textChanged.connect(lambda _: self._typed.start())
        self._typed.timeout.connect(self._look)
        self.search.returnPressed.connect(self.next_hit)
        self.stop.clicked.connect(self._stop_search)
        self.model.settled.connect(self._go_on)
        self.model.broken.connect(self._state.show_text)
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
        self._typed.stop()
        self._state.show_text("")
        self._path.show_text("")
        self.model.show_file(task_id, name)

    def leave(self) -> None:
        """Cancel running reads."""
        self._stop_search()
        self.model.stop()
        self._where = ("", "")

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
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(self.tr("Copy value"), self.copy_value)
        menu.addAction(self.tr("Copy JSONPath"), self.copy_path)
        menu.popup(self.tree.viewport().mapToGlobal(at))

    def _show_path(self, current: QModelIndex, _: QModelIndex) -> None:
        text = path_of(self.model.branch(current).steps) if current.isValid() else ""
        self._path.show_text(display_lines(text, 500))
