"""Drop target for addresses, files and lists, which are shown and never run automatically."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QMimeData, QObject, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent
from PySide6.QtWidgets import QWidget


class DropTarget(QObject):
    """Make `place` accept drops and emit `dropped`; drags from this window are ignored."""

    dropped = Signal(object)

    def __init__(self, place: QWidget) -> None:
        super().__init__(place)
        place.setAcceptDrops(True)
        place.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QDragEnterEvent | QDragMoveEvent) and _is_wanted(event):
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
            return True
        if type(event) is QDropEvent and _is_wanted(event):
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
            self.dropped.emit(_copied(event.mimeData()))
            return True
        return False


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
