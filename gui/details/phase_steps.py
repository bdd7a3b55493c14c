"""The phases of an envelope as a line of steps, the one that it is in standing out."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QApplication, QSizePolicy, QWidget

from engine.model.display import display
from gui.style.theme import tone

PHASES = ("explore", "act", "verify", "recover", "done")
_GAP, _PAD = 22, 8


class PhaseSteps(QWidget):
    """Hidden for a task that has no phase."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._phase = ""
        self._names = {
            "explore": self.tr("explore"),
            "act": self.tr("act"),
            "verify": self.tr("verify"),
            "recover": self.tr("recover"),
            "done": self.tr("done"),
        }
        self.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
        self.hide()

    def show_phase(self, phase: str) -> None:
        """`phase` as the record says it; one that is not known stands behind the others."""
        if phase != self._phase:
            self._phase = phase
            name = self._names.get(phase, display(phase, 40))
            self.setAccessibleName(self.tr("Phase: {0}").format(name))
            self.updateGeometry()
            self.update()
        self.setVisible(bool(phase))

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        width = sum(metrics.horizontalAdvance(name) + 2 * _PAD for name in self._steps())
        return QSize(width + _GAP * len(PHASES), metrics.height() + 8)

    def _steps(self) -> list[str]:
        known = [self._names[phase] for phase in PHASES]
        return known if self._phase in self._names else [*known, display(self._phase, 40)]

    def paintEvent(self, _: QPaintEvent) -> None:
        painter, palette = QPainter(self), QApplication.palette()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        metrics = self.fontMetrics()
        steps = self._steps()
        here = PHASES.index(self._phase) if self._phase in PHASES else len(steps) - 1
        x, height = 1.0, metrics.height() + 4
        for number, name in enumerate(steps):
            if number:
                painter.setPen(QPen(tone("muted", palette), 1))
                middle = self.height() / 2
                painter.drawLine(QPointF(x + 3, middle), QPointF(x + _GAP - 3, middle))
                x += _GAP
            box = QRectF(x, 2, metrics.horizontalAdvance(name) + 2 * _PAD, height)
            self._paint_step(painter, box, name, here=number == here)
            x = box.right()
        painter.end()

    def _paint_step(self, painter: QPainter, box: QRectF, name: str, *, here: bool) -> None:
        palette = QApplication.palette()
        if here:  # a frame and bold type: the colour only repeats it
            font = self.font()
            font.setBold(True)
            painter.setFont(font)
            painter.setPen(QPen(tone("accent", palette), 1.4))
            painter.drawRoundedRect(box, box.height() / 2, box.height() / 2)
        painter.setPen(tone("accent" if here else "muted", palette))
        painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter), name)
        painter.setFont(self.font())
