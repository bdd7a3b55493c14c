"""Drag and drop with other programs: the gesture, the MIME data and the drop target.

Files are offered for copying only, because moving a file out of a task folder makes the task
unreadable. What is dropped is shown and never run automatically.

"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import (
    QByteArray,
    QCoreApplication,
    QEvent,
    QMimeData,
    QObject,
    QPoint,
    QRectF,
    QSize,
    Qt,
    QUrl,
    Signal,
)
from PySide6.QtGui import (
    QColor,
    QDrag,
    QDragEnterEvent,
    QDragMoveEvent,
    QDropEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QPixmap,
)
from PySide6.QtWidgets import QApplication, QWidget

from engine.model.display import display
from gui.style.theme import tone

_LEFT: Final = Qt.MouseButton.LeftButton
_NOTHING_HELD: Final = Qt.KeyboardModifier.NoModifier
# Some file managers paste nothing without this format.
_GNOME: Final = "x-special/gnome-copied-files"
_PAD: Final = 8
_LABEL_CHARS: Final = 60
_FRAME: Final = 2  # Pixels of the frame around a place for drops


class DragGesture(QObject):
    """Drag gesture that emits `pulled` where `holds` accepts the start point.

    With `keeps` the press is delayed until it proves to be a click, because it would replace a
    selection of several rows. `gripped` reports press and release.
    """

    pulled = Signal(QPoint)
    gripped = Signal(bool)

    def __init__(
        self, place: QWidget, holds: Callable[[QPoint], bool], *, keeps: bool = False
    ) -> None:
        super().__init__(place)
        self._place, self._holds, self._keeps = place, holds, keeps
        self._press: QMouseEvent | None = None
        self._again = self.is_pulled = False
        place.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if self._again or not isinstance(event, QMouseEvent):
            return False
        if event.type() == QEvent.Type.MouseButtonPress:
            return self._begin(event)
        if event.type() == QEvent.Type.MouseMove:
            return self._move(event)
        return self._end() if event.type() == QEvent.Type.MouseButtonRelease else False

    def let_go(self) -> None:
        """Reset the gesture after a drop or a cancelled drag."""
        self._press, self.is_pulled = None, False
        self.gripped.emit(False)

    def _begin(self, event: QMouseEvent) -> bool:
        plain = event.button() == _LEFT and event.modifiers() == _NOTHING_HELD
        if not plain or not self._holds(event.position().toPoint()):
            return False
        self._press = event.clone()
        self.gripped.emit(True)
        return self._keeps

    def _move(self, event: QMouseEvent) -> bool:
        if self._press is None:
            return False
        start = self._press.position().toPoint()
        far = (event.position().toPoint() - start).manhattanLength()
        if not self.is_pulled and far >= QApplication.startDragDistance():
            self.is_pulled = True
            self.pulled.emit(start)
        return self.is_pulled or self._keeps

    def _end(self) -> bool:
        press, pulled = self._press, self.is_pulled
        if press is None:
            return False
        self.let_go()
        if self._keeps and not pulled:  # The gesture was a click
            self._again = True
            QCoreApplication.sendEvent(self._place, press)
            self._again = False
        return pulled


def carried(text: str, files: Sequence[Path] = ()) -> QMimeData:
    """Return MIME data with a text and files to copy."""
    mime = QMimeData()
    mime.setText(text)
    if files:
        urls = [QUrl.fromLocalFile(str(file)) for file in files]
        mime.setUrls(urls)
        said = "\n".join(
            ["copy", *(url.toString(QUrl.ComponentFormattingOption.FullyEncoded) for url in urls)]
        )
        mime.setData(_GNOME, QByteArray(said.encode()))
    return mime


def carry(source: QWidget, mime: QMimeData, label: str) -> None:
    """Run the drag of `mime` and return after the drop.

    Never call it from a coroutine, because the desktop runs a nested event loop meanwhile.
    """
    drag = QDrag(source)
    drag.setMimeData(mime)
    drag.setPixmap(_tag(source, label))
    drag.setHotSpot(QPoint(-_PAD, -_PAD))
    drag.exec(Qt.DropAction.CopyAction)


def _tag(source: QWidget, label: str) -> QPixmap:
    """Return the label that follows the pointer."""
    text, metrics = display(label, _LABEL_CHARS), source.fontMetrics()
    size = QSize(metrics.horizontalAdvance(text) + 2 * _PAD, metrics.height() + _PAD)
    ratio, palette = source.devicePixelRatioF(), QApplication.palette()
    picture = QPixmap(size * ratio)
    picture.setDevicePixelRatio(ratio)
    picture.fill(palette.color(QPalette.ColorRole.Highlight))
    painter = QPainter(picture)
    painter.setFont(source.font())
    painter.setPen(palette.color(QPalette.ColorRole.HighlightedText))
    painter.drawText(
        QRectF(0, 0, size.width(), size.height()), int(Qt.AlignmentFlag.AlignCenter), text
    )
    painter.end()
    return picture


class DropFrame(QWidget):
    """Frame and tint over a place while something is dragged over it."""

    def __init__(self, place: QWidget) -> None:
        super().__init__(place)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setGeometry(place.rect())
        self.raise_()
        self.show()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, colour = QPainter(self), QColor(tone("accent", QApplication.palette()))
        painter.setPen(QPen(colour, _FRAME))
        colour.setAlphaF(0.08)
        painter.setBrush(colour)
        edge = _FRAME / 2
        painter.drawRect(QRectF(self.rect()).adjusted(edge, edge, -edge, -edge))
        painter.end()


class DropTarget(QObject):
    """Make `place` accept drops and emit `dropped`; drags from this window are ignored."""

    dropped = Signal(object)

    def __init__(self, place: QWidget) -> None:
        super().__init__(place)
        self._place = place
        self._frame: DropFrame | None = None
        place.setAcceptDrops(True)
        place.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QDragEnterEvent | QDragMoveEvent) and _is_wanted(event):
            self._frame = self._frame or DropFrame(self._place)
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
            return True
        if event.type() in (QEvent.Type.DragLeave, QEvent.Type.Drop):
            self._hide_frame()
        if type(event) is QDropEvent and _is_wanted(event):
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
            self.dropped.emit(_copied(event.mimeData()))
            return True
        return False

    def _hide_frame(self) -> None:
        if self._frame is not None:
            self._frame.hide()
            self._frame.deleteLater()
            self._frame = None


def _is_wanted(event: QDropEvent) -> bool:
    mime = event.mimeData()
    return event.source() is None and (mime.hasUrls() or mime.hasText())


def _copied(mime: QMimeData) -> QMimeData:
    """Copy the MIME data, which Qt deletes after the drop."""
    copy = QMimeData()
    if mime.hasUrls():
        copy.setUrls(mime.urls())
    if mime.hasText():
        copy.setText(mime.text())
    return copy
