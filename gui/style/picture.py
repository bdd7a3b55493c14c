"""Viewer for images of untrusted pages, decoded on a thread, fitted, at 1:1 or zoomed."""

from __future__ import annotations

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QImage, QImageReader, QMouseEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

# Only screenshot formats: an SVG decoder would parse untrusted XML.
_MAGIC = (
    (b"\x89PNG", b"png"),
    (b"\xff\xd8\xff", b"jpeg"),
    (b"RIFF", b"webp"),
)
MOST_PIXELS = 60_000_000  # A full page of 240 MB decoded; larger images are scaled down
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


class PictureView(QAbstractScrollArea):
    """Scrollable image view; `zoomed` reports each new scale (1.0 is one pixel per pixel)."""

    zoomed = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._image = QImage()
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

    def show_image(self, image: QImage) -> None:
        """Show this image; a null image clears the view."""
        self._image = image
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
        painter.drawImage(self._place(), self._image)
        painter.end()

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
        across = room.width() * ratio / self._image.width()
        return max(0.01, min(1.0, across, room.height() * ratio / self._image.height()))

    def _size(self) -> QSize:
        scale = self.scale / self.devicePixelRatioF()
        return QSize(round(self._image.width() * scale), round(self._image.height() * scale))

    def _place(self) -> QRectF:
        size, room = self._size(), self.viewport().size()
        left = max(0, (room.width() - size.width()) // 2) - self.horizontalScrollBar().value()
        top = max(0, (room.height() - size.height()) // 2) - self.verticalScrollBar().value()
        return QRectF(left, top, size.width(), size.height())

    def _arrange(self) -> None:
        size, room = self._size(), self.viewport().size()
        for bar, there, seen in (
            (self.horizontalScrollBar(), size.width(), room.width()),
            (self.verticalScrollBar(), size.height(), room.height()),
        ):
            bar.setRange(0, 0 if self._fit else max(0, there - seen))
            bar.setPageStep(seen)
            bar.setSingleStep(40)
        self.viewport().update()
        self.zoomed.emit(self.scale)
