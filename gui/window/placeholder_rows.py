"""Placeholder for rows while they load, painted in the first paint."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QPalette
from PySide6.QtWidgets import QWidget

from gui.style.theme import tone

ROW = 28
BARS = ((0.04, 0.10), (0.17, 0.42), (0.62, 0.78), (0.84, 0.90), (0.93, 0.98))


class Skeleton(QWidget):
    """Grey bars at the place of rows, while the ledger loads."""

    def paintEvent(self, event: QPaintEvent) -> None:
        # Only paths and brushes: a pen or a fill colour makes Qt load all its names, 45 ms of the
        # first paint.
        painter, ground, grey = QPainter(self), QPainterPath(), QPalette()
        ground.addRect(QRectF(self.rect()))
        painter.fillPath(ground, self.palette().base())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        grey.setColor(QPalette.ColorRole.Base, tone("track", self.palette()))
        for number in range(self.height() // ROW):
            painter.setOpacity(max(0.15, 1.0 - number * 0.09))
            bars = QPainterPath()
            for left, right in BARS:
                x = left * self.width()
                bar = QRectF(x, number * ROW + 9, (right - left) * self.width(), 10)
                bars.addRoundedRect(bar, 4, 4)
            painter.fillPath(bars, grey.base())
        painter.end()
