"""Grey bars where rows will be, while they are read: the first thing that is ever painted."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QWidget

from gui.theme import tone

ROW = 28
BARS = ((0.04, 0.10), (0.17, 0.42), (0.62, 0.78), (0.84, 0.90), (0.93, 0.98))


class Skeleton(QWidget):
    """Grey bars where rows will be: the ledger is being read."""

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.palette().base())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = QColor(tone("track", self.palette()))
        for number in range(self.height() // ROW):
            colour.setAlphaF(max(0.15, 1.0 - number * 0.09))
            bars = QPainterPath()  # filled only: no pen, whose names are slow to load
            for left, right in BARS:
                x = left * self.width()
                bar = QRectF(x, number * ROW + 9, (right - left) * self.width(), 10)
                bars.addRoundedRect(bar, 4, 4)
            painter.fillPath(bars, colour)
        painter.end()
