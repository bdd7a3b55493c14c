"""The Raw tab: the task's files as they stand, as text in parts or, where they are JSON, a tree."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtWidgets import (
    QListWidget,
    QListWidgetItem,
    QSplitter,
    QStackedWidget,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display
from engine.model.records import TaskRecord, TaskView
from engine.results.file_parts import FileFacts
from engine.text.sizes import size_words
from gui.details.details_tab import DetailTab
from gui.details.file_text import FileText
from gui.details.json_view import JsonView
from gui.details.screenshots import PicturePane
from gui.engine_link.services import Desk
from gui.style.theme import plain_tip

AGAIN_MS = 2_000
_NAME = Qt.ItemDataRole.UserRole
_FIRST = ("result.json", "meta.json")


class Raw(DetailTab):
    """Every file of one task. What it holds is a stranger's, and shown as text only."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._task_id = ""
        self._files: tuple[FileFacts, ...] = ()
        self._seen: FileFacts | None = None  # the file that is shown, as it was then
        self._ended = False
        self.list = QListWidget(self)
        # a bar of its own would fill itself with the colour that is meant for its outline
        self._ways = QTabWidget(self)
        self.modes = self._ways.tabBar()
        self.text, self.tree = FileText(desk, self), JsonView(desk, self)
        self._picture = PicturePane(desk, self)
        self._stack = QStackedWidget(self)
        self._again = QTimer(self, singleShot=True, interval=AGAIN_MS)
        self._again.timeout.connect(self._look)
        self._lay_out()
        self.list.currentItemChanged.connect(lambda *_: self._show_file())
        self.modes.currentChanged.connect(lambda _: self._show_file())

    def _lay_out(self) -> None:
        self.list.setAccessibleName(self.tr("Files of the task"))
        self.list.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self._ways.setDocumentMode(True)
        for text in (self.tr("Tree"), self.tr("Text")):
            self._ways.addTab(QWidget(self._ways), text)
        self._ways.setFixedHeight(self.modes.sizeHint().height())
        for page in (self.tree, self.text, self._picture):
            self._stack.addWidget(page)
        side = QWidget(self)
        beside = QVBoxLayout(side)
        beside.setContentsMargins(0, 0, 0, 0)
        beside.setSpacing(4)
        beside.addWidget(self._ways)
        beside.addWidget(self._stack, 1)
        whole = QSplitter(self)
        whole.addWidget(self.list)
        whole.addWidget(side)
        whole.setStretchFactor(1, 1)
        whole.setSizes([220, 700])
        whole.setChildrenCollapsible(False)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 0)
        column.addWidget(whole)
        self.setFocusProxy(self.list)

    def show_task(self, view: TaskView) -> None:
        self._ended = isinstance(view.entry, TaskRecord) and view.entry.is_terminal
        if view.task_id != self._task_id:
            self.leave()
            self._task_id, self._files = view.task_id, ()
            self.list.clear()
            self._look()
        elif not self._again.isActive():
            self._again.start()

    def leave(self) -> None:
        self._again.stop()
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
        # as wide as the list: what is longer is elided, and not scrolled to
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
        """The file that is shown has changed: once the task has ended, or nobody reads in it."""
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
