"""Screenshots tab: thumbnails, one image large with zoom, and actions on their files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

from PySide6.QtCore import (
    QBuffer,
    QByteArray,
    QIODevice,
    QObject,
    QPoint,
    QRectF,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import (
    QAction,
    QGuiApplication,
    QIcon,
    QImage,
    QImageReader,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QApplication,
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
from engine.model.kind_traits import traits_of
from engine.model.records import TaskView
from engine.results.file_reader import FileFacts
from engine.service.engine import Engine
from engine.text.words import size_words
from gui.context.window_context import Desk
from gui.details.details_tab import EDGES, DetailTab, PartBar
from gui.engine_link.scheduling import Throttle
from gui.i18n import language
from gui.style.drag_and_drop import DragGesture, carried, carry
from gui.style.theme import plain_label, plain_tip, tone
from gui.style.widgets import ElidedLabel, arrange, centre

Wanted = Callable[[QPoint | None], tuple[str, str] | None]


class FileHandle(QObject):
    """File actions of a widget; `wanted` returns the file (task, name) at a point, or the current.

    Files outside the task's folder (a link, a folder) are neither dragged nor copied.
    """

    def __init__(self, desk: Desk, widget: QWidget, wanted: Wanted) -> None:
        super().__init__(widget)
        self._desk, self._widget, self._wanted = desk, widget, wanted
        place = widget.viewport() if isinstance(widget, QAbstractScrollArea) else widget
        self.grip = DragGesture(place, lambda at: wanted(at) is not None)
        self.grip.pulled.connect(self._pull)
        self.copy = self._action(self.tr("&Copy the file"), self._copy)
        self.copy.setShortcut(QKeySequence.StandardKey.Copy)
        self.copy.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self.show = self._action(self.tr("&Show in folder"), self._show)
        widget.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)

    def _action(self, words: str, act: Callable[[Path], object]) -> QAction:
        action = QAction(words, self._widget)
        action.triggered.connect(lambda: self._find(self._wanted(None), act))
        self._widget.addAction(action)
        return action

    def _find(self, file: tuple[str, str] | None, then: Callable[[Path], object]) -> None:
        if file is None:
            return
        task_id, name = file

        def tell(place: Path | None) -> None:
            if place is not None:
                then(place)

        async def look(engine: Engine) -> Any:
            return await engine.reading.place(task_id, name)

        self._desk.bridge.ask(look, tell, name=f"file {id(self)}")

    def _pull(self, at: QPoint) -> None:
        self._find(
            self._wanted(at), lambda one: QTimer.singleShot(0, self, lambda: self._carry(one))
        )

    def _carry(self, place: Path) -> None:
        if self.grip.is_pulled:  # the mouse button is still down
            carry(self._widget, carried(str(place), [place]), place.name)
        self.grip.let_go()

    def _copy(self, place: Path) -> None:
        QGuiApplication.clipboard().setMimeData(carried(str(place), [place]))

    def _show(self, place: Path) -> None:
        from gui.style.questions import show_folder

        show_folder(place.parent)


# Only screenshot formats: an SVG decoder would parse untrusted XML.
_MAGIC = ((b"\x89PNG", b"png"), (b"\xff\xd8\xff", b"jpeg"), (b"RIFF", b"webp"))
MOST_PIXELS = 60_000_000  # A full page of 240 MB decoded; larger images are scaled down
_FRAME = 1  # pixel around an image
_LEAST_HALF = 64  # Pixels of a side that is not halved any more
STEPS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0)


def decoded(data: bytes, most: QSize | None = None) -> tuple[QImage, QSize]:
    """Return the image (within `most`, if given) and its original size, or a null image.

    Slow, for a worker thread.
    """
    kind = next((name for magic, name in _MAGIC if data.startswith(magic)), b"")
    if not kind:
        return QImage(), QSize()
    buffer = QBuffer()
    buffer.setData(QByteArray(data))
    buffer.open(QIODevice.OpenModeFlag.ReadOnly)
    reader = QImageReader(buffer, QByteArray(kind))
    reader.setDecideFormatFromContent(False)
    size = reader.size()
    if not size.isValid():
        return QImage(), QSize()
    pixels = size.width() * size.height()
    if most is not None and (size.width() > most.width() or size.height() > most.height()):
        reader.setScaledSize(size.scaled(most, Qt.AspectRatioMode.KeepAspectRatio))
    elif pixels > MOST_PIXELS:
        grow = (MOST_PIXELS / pixels) ** 0.5
        wanted = QSize(max(1, int(size.width() * grow)), max(1, int(size.height() * grow)))
        reader.setScaledSize(wanted)
    return reader.read(), size


def halves(image: QImage) -> tuple[QImage, ...]:
    """Return the image at 1/2, 1/4, 1/8…, smoothly scaled: letters break if pixels are skipped.

    Slow, for a worker thread.
    """
    found: list[QImage] = []
    while min(image.width(), image.height()) > _LEAST_HALF:
        image = image.scaled(
            image.size() / 2,
            Qt.AspectRatioMode.IgnoreAspectRatio,
            Qt.TransformationMode.SmoothTransformation,
        )
        found.append(image)
    return tuple(found)


class PictureView(QAbstractScrollArea):
    """Scrollable image view with a thin frame around the image.

    `zoomed` reports each new scale (1.0 is one pixel per pixel).
    """

    zoomed = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._image, self._halves = QImage(), tuple[QImage, ...]()
        self._fit, self._scale = True, 1.0
        self._grabbed: QPoint | None = None
        self.setAccessibleName(self.tr("Picture"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    @property
    def scale(self) -> float:
        return self._fitting() if self._fit else self._scale

    @property
    def can_be_moved(self) -> bool:
        """True while the image is larger than the view."""
        return self.horizontalScrollBar().maximum() + self.verticalScrollBar().maximum() > 0

    def show_image(self, image: QImage, smaller: tuple[QImage, ...] = ()) -> None:
        """Show this image with its `halves`; a null image clears the view."""
        self._image, self._halves = image, smaller
        self._arrange()

    def fit(self) -> None:
        """Fit the image to the view without enlarging it."""
        self._fit = True
        self._arrange()

    def zoom_to(self, scale: float) -> None:
        self._fit, self._scale = False, min(max(scale, STEPS[0]), STEPS[-1])
        self._arrange()

    def zoom(self, way: int) -> None:
        """Zoom one step in (1) or out (-1)."""
        now = self.scale
        if way > 0:
            self.zoom_to(next((step for step in STEPS if step > now + 0.01), STEPS[-1]))
        else:
            self.zoom_to(next((step for step in reversed(STEPS) if step < now - 0.01), STEPS[0]))

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._image.isNull():
            return
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, self.scale < 2)
        place = self._place()
        painter.drawImage(place, self._painted())
        painter.setPen(tone("line", QApplication.palette()))  # A white page has no visible edge
        painter.drawRect(place.toRect().adjusted(-1, -1, 0, 0))
        painter.end()

    def _painted(self) -> QImage:
        """Return the smallest version of the image that is not enlarged at this scale."""
        width = self._image.width() * self.scale
        return next((one for one in reversed(self._halves) if one.width() >= width), self._image)

    def resizeEvent(self, event: object) -> None:
        self._arrange()

    def wheelEvent(self, event: QWheelEvent) -> None:
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom(1 if event.angleDelta().y() > 0 else -1)
            event.accept()
        else:
            super().wheelEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._grabbed = event.position().toPoint()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grabbed is not None:
            moved = event.position().toPoint() - self._grabbed
            self._grabbed = event.position().toPoint()
            for bar, by in (
                (self.horizontalScrollBar(), moved.x()),
                (self.verticalScrollBar(), moved.y()),
            ):
                bar.setValue(bar.value() - by)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._grabbed = None

    def _fitting(self) -> float:
        if self._image.isNull():
            return 1.0
        room, ratio = self.maximumViewportSize(), self.devicePixelRatioF()
        across = (room.width() - 2 * _FRAME) * ratio / self._image.width()
        down = (room.height() - 2 * _FRAME) * ratio / self._image.height()
        return max(0.01, min(1.0, across, down))

    def _size(self) -> QSize:
        scale = self.scale / self.devicePixelRatioF()
        return QSize(round(self._image.width() * scale), round(self._image.height() * scale))

    def _place(self) -> QRectF:
        size, room = self._size(), self.viewport().size()
        left = max(_FRAME, (room.width() - size.width()) // 2)
        top = max(_FRAME, (room.height() - size.height()) // 2)
        across, down = self.horizontalScrollBar().value(), self.verticalScrollBar().value()
        return QRectF(left - across, top - down, size.width(), size.height())

    def _arrange(self) -> None:
        size, room = self._size(), self.viewport().size()
        for bar, there, seen in (
            (self.horizontalScrollBar(), size.width(), room.width()),
            (self.verticalScrollBar(), size.height(), room.height()),
        ):
            bar.setRange(0, 0 if self._fit else max(0, there + 2 * _FRAME - seen))
            bar.setPageStep(seen)
            bar.setSingleStep(40)
        self.viewport().update()
        self.zoomed.emit(self.scale)


THUMB = QSize(160, 110)
MOST_THUMBS = 2_000
CAPTION_CHARS = 300
AGAIN_MS = 2_000  # delay before a live task's files are listed again
_NAME = Qt.ItemDataRole.UserRole
_CAPTION, _FACTS = _NAME + 1, _NAME + 2


class Screenshots(DetailTab):
    """Images among a task's artifacts; new ones are added while visible."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._task_id = ""
        self._known: dict[str, FileFacts] = {}
        self._is_of_parts = False
        self.thumbs = QListWidget(self)
        self.picture = PicturePane(desk, self)
        self._nothing = plain_label(self.tr("No screenshots."), self, tone="muted")
        centre(self._nothing)
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
        parted = (self.part, (self._nothing, 1), (parts, 1))
        arrange(QVBoxLayout(self), *parted, margins=EDGES)
        self._nothing.hide()
        self.setFocusProxy(self.thumbs)

    def show_task(self, view: TaskView) -> None:
        if view.task_id != self._task_id:
            self._task_id, self._known = view.task_id, {}
            self._is_of_parts = traits_of(getattr(view.entry, "kind", "")).unit_noun == "parts"
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
            if new:
                await self._read_captions(engine, task_id)
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
        item.setSizeHint(QSize(0, THUMB.height() + 4))  # As wide as the list: long names are elided
        item.setData(_NAME, file.name)
        item.setData(_FACTS, f"{name}\n{facts}")
        item.setToolTip(plain_tip(f"{name}\n{facts}"))
        if not image.isNull():
            item.setIcon(QIcon(QPixmap.fromImage(image)))
        self.thumbs.addItem(item)
        item.setHidden(not self.desk.span.holds(file.changed_at))
        self._parts.show()
        if self.thumbs.currentItem() is None and not item.isHidden():
            self.thumbs.setCurrentItem(item)

    async def _read_captions(self, engine: Engine, task_id: str) -> None:
        """Caption the images with the address and title of the page that they show."""
        missing = {
            str(item.data(_NAME)).rpartition("/")[2]: item
            for item in map(self.thumbs.item, range(self.thumbs.count()))
            if not item.data(_CAPTION)
        }
        if not self._is_of_parts:
            await self._read_units(engine, task_id, missing)
        if not missing:
            return
        # A result about one page has its address, and its units are parts of that page.
        head = await engine.tasks.head(task_id) or {}
        name, title = (display(str(head.get(key) or ""), CAPTION_CHARS) for key in ("url", "title"))
        for item in missing.values() if name else ():
            self._caption(item, name, title)

    async def _read_units(
        self, engine: Engine, task_id: str, missing: dict[str, QListWidgetItem]
    ) -> None:
        """Caption images of units, and remove these from `missing`."""
        async with aclosing(engine.reading.units(task_id)) as parts:
            async for part in parts:
                for unit in part.units:
                    if (item := missing.pop(unit.shot, None)) is not None:
                        self._caption(item, unit.name, unit.title)
                if not missing:
                    return

    def _caption(self, item: QListWidgetItem, name: str, title: str) -> None:
        facts = "\n".join(filter(None, (name, title)))
        item.setToolTip(plain_tip(f"{facts}\n{item.data(_FACTS)}"))
        item.setText(name)
        item.setData(_CAPTION, " · ".join(filter(None, (title, name))))
        if item is self.thumbs.currentItem():
            self.picture.caption.show_text(str(item.data(_CAPTION)))

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
            self.picture.caption.show_text(str(item.data(_CAPTION) or ""))


def _with_halves(data: bytes) -> tuple[QImage, tuple[QImage, ...], QSize]:
    image, size = decoded(data)
    return image, halves(image), size


class PicturePane(QWidget):
    """One image with zoom controls."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self.view = PictureView(self)
        self._facts = plain_label("", self, tone="muted")
        self.caption = ElidedLabel("", self)
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
        row.addWidget(self.caption, 1)
        arrange(QVBoxLayout(self), row, (self.view, 1), margins=0)

    def clear(self) -> None:
        """Show no image."""
        self._desk.bridge.call_off(self._name)
        self._size, self._problem, self._shown = QSize(), "", None
        self.caption.show_text("")
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
        image, smaller, self._size = await asyncio.to_thread(_with_halves, data or b"")
        if image.isNull() and not self._problem:
            self._problem = self.tr("This picture is not there, or is none.")
        elif not image.isNull():
            self._problem = ""
        self.view.show_image(image, smaller)

    def _tell(self) -> None:
        if self._problem:
            self._facts.show_text(self._problem)
        elif self._size.isValid() and not self._size.isEmpty():
            text = self.tr("{0} × {1} · {2} %")
            size, percent = self._size, round(self.view.scale * 100)
            self._facts.show_text(text.format(size.width(), size.height(), percent))
        else:
            self._facts.show_text("")
