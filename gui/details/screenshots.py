"""Screenshots tab: thumbnails in a list, and one image large."""

from __future__ import annotations

import asyncio

from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QIcon, QImage, QPixmap
from PySide6.QtWidgets import (
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QSplitter,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display
from engine.model.errors import EngineError
from engine.model.records import TaskView
from engine.results.file_reader import FileFacts
from engine.service.engine import Engine
from engine.text.words import size_words
from gui.details.details_tab import DetailTab
from gui.details.file_handle import FileHandle
from gui.details.part_bar import PartBar
from gui.engine_link.services import Desk
from gui.engine_link.throttle import Throttle
from gui.i18n import language
from gui.style.picture import PictureView, decoded
from gui.style.theme import plain_label, plain_tip

THUMB = QSize(160, 110)
MOST_THUMBS = 2_000
AGAIN_MS = 2_000  # delay before a live task's files are listed again
_NAME = Qt.ItemDataRole.UserRole


class Screenshots(DetailTab):
    """Images among a task's artifacts; new ones are added while visible."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._task_id = ""
        self._known: dict[str, FileFacts] = {}
        self.thumbs = QListWidget(self)
        self.picture = PicturePane(desk, self)
        self._nothing = plain_label(
            self.tr("This task has kept no pictures."), self, tone="muted", wrap=True
        )
        self._again = Throttle(self, AGAIN_MS, self._look_again)
        self.part = PartBar(self)
        self._lay_out()
        self.thumbs.currentItemChanged.connect(lambda *_: self._show_current())
        self.handle = FileHandle(desk, self.thumbs, self._file_at)
        self.part.all_time.connect(desk.span.clear)
        desk.span.changed.connect(self._apply_time_range)
        self.part.show_span(desk.span.range)

    def _lay_out(self) -> None:
        self.thumbs.setIconSize(THUMB)
        self.thumbs.setAccessibleName(self.tr("Pictures"))
        self.thumbs.setUniformItemSizes(True)
        self.thumbs.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        parts = self._parts = QSplitter(self)
        parts.addWidget(self.thumbs)
        parts.addWidget(self.picture)
        parts.setStretchFactor(1, 1)
        parts.setSizes([THUMB.width() * 2, THUMB.width() * 6])
        parts.setChildrenCollapsible(False)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 0)
        column.addWidget(self.part)
        column.addWidget(self._nothing)
        column.addWidget(parts, 1)
        self._nothing.hide()
        self.setFocusProxy(self.thumbs)

    def show_task(self, view: TaskView) -> None:
        if view.task_id != self._task_id:
            self._task_id, self._known = view.task_id, {}
            self.thumbs.clear()
            self.picture.clear()
            self._nothing.hide()
            self.desk.bridge.spawn_once(self._look(view.task_id), name=self._name)
        else:
            self._again.request()

    def leave(self) -> None:
        self._again.cancel()
        self.desk.bridge.call_off(self._name)
        self._task_id = ""

    def _look_again(self) -> None:
        self.desk.bridge.spawn_once(self._look(self._task_id), name=self._name)

    @property
    def _name(self) -> str:
        return f"thumbs {id(self)}"

    async def _look(self, task_id: str) -> None:
        try:
            engine = self.desk.bridge.engine
            files = await engine.reading.files(task_id)
            new = [one for one in files if one.is_picture and one.name not in self._known]
            for one in new[:MOST_THUMBS]:
                await self._add(engine, task_id, one)
        except EngineError as error:
            self._nothing.show_text(language.sentence(error))
        self._nothing.setVisible(not self._known)
        self._parts.setVisible(bool(self._known))

    async def _add(self, engine: Engine, task_id: str, file: FileFacts) -> None:
        data = await engine.reading.picture(task_id, file.name) or b""
        image, size = await asyncio.to_thread(decoded, data, THUMB)
        name = display(file.name.rpartition("/")[2], 100)
        facts = f"{size.width()} × {size.height()} · {size_words(file.size_bytes)}"
        self._known[file.name] = file
        item = QListWidgetItem(name)
        item.setData(_NAME, file.name)
        item.setToolTip(plain_tip(f"{name}\n{facts}"))
        if not image.isNull():
            item.setIcon(QIcon(_on_paper(image)))
        self.thumbs.addItem(item)
        item.setHidden(not self.desk.span.holds(file.changed_at))
        self._parts.show()
        if self.thumbs.currentItem() is None and not item.isHidden():
            self.thumbs.setCurrentItem(item)

    def _apply_time_range(self) -> None:
        """Show only images taken in the time range selected in the Timeline."""
        self.part.show_span(self.desk.span.range)
        for item in map(self.thumbs.item, range(self.thumbs.count())):
            taken = self._known[str(item.data(_NAME))].changed_at
            item.setHidden(not self.desk.span.holds(taken))
        self._select_visible()

    def _select_visible(self) -> None:
        """Select the first visible image if the current one is hidden."""
        current = self.thumbs.currentItem()
        if current is not None and not current.isHidden():
            return
        there = (item for item in map(self.thumbs.item, range(self.thumbs.count())))
        first = next((item for item in there if not item.isHidden()), None)
        if first is not None:
            self.thumbs.setCurrentItem(first)
        elif current is not None:
            self.thumbs.setCurrentRow(-1)
            self.picture.clear()

    def _file_at(self, at: QPoint | None) -> tuple[str, str] | None:
        item = self.thumbs.currentItem() if at is None else self.thumbs.itemAt(at)
        return None if item is None else (self._task_id, str(item.data(_NAME)))

    def _show_current(self) -> None:
        item = self.thumbs.currentItem()
        if item is not None and self._task_id:
            self.picture.show_picture(self._task_id, str(item.data(_NAME)))


class PicturePane(QWidget):
    """One image with zoom controls."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self.view = PictureView(self)
        self._facts = plain_label("", self, tone="muted")
        self._size, self._problem = QSize(), ""
        self._shown: tuple[str, str] | None = None
        self._lay_out()
        self.handle = FileHandle(desk, self.view, self._file_at)
        self.view.zoomed.connect(lambda _: self._tell())

    def _lay_out(self) -> None:
        row = QHBoxLayout()
        for text, name, act in (
            (self.tr("Fit"), self.tr("Fit the picture into its place"), self.view.fit),
            (self.tr("1:1"), self.tr("A pixel for a pixel"), lambda: self.view.zoom_to(1.0)),
            (self.tr("+"), self.tr("Larger"), lambda: self.view.zoom(1)),
            (self.tr("−"), self.tr("Smaller"), lambda: self.view.zoom(-1)),
        ):
            button = QToolButton(self)
            button.setText(text)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.setAccessibleName(name)
            button.setToolTip(plain_tip(name))
            button.clicked.connect(lambda _=False, act=act: act())
            row.addWidget(button)
        row.addWidget(self._facts)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(row)
        column.addWidget(self.view, 1)

    def clear(self) -> None:
        """Show no image."""
        self._desk.bridge.call_off(self._name)
        self._size, self._problem, self._shown = QSize(), "", None
        self.view.show_image(QImage())

    def _file_at(self, at: QPoint | None) -> tuple[str, str] | None:
        """Return the file to drag; an image larger than the view is panned instead."""
        return None if at is not None and self.view.can_be_moved else self._shown

    def show_picture(self, task_id: str, name: str) -> None:
        """Show this image of a task once it is decoded."""
        self._shown = (task_id, name)
        self._desk.bridge.spawn_once(self._take(task_id, name), name=self._name)

    @property
    def _name(self) -> str:
        return f"picture {id(self)}"

    async def _take(self, task_id: str, name: str) -> None:
        try:
            data = await self._desk.bridge.engine.reading.picture(task_id, name)
        except EngineError as error:
            self._problem, data = language.sentence(error), None
        image, self._size = await asyncio.to_thread(decoded, data or b"")
        if image.isNull() and not self._problem:
            self._problem = self.tr("This picture is not there, or is none.")
        elif not image.isNull():
            self._problem = ""
        self.view.show_image(image)

    def _tell(self) -> None:
        if self._problem:
            self._facts.show_text(self._problem)
        elif self._size.isValid() and not self._size.isEmpty():
            text = self.tr("{0} × {1} · {2} %")
            size, percent = self._size, round(self.view.scale * 100)
            self._facts.show_text(text.format(size.width(), size.height(), percent))
        else:
            self._facts.show_text("")


def _on_paper(image: QImage) -> QPixmap:
    return QPixmap.fromImage(image)
