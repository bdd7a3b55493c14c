"""Where the keyboard is: a ring round the control that has the focus, for who goes by keys.

The style's own mark is a tint of 1.1 to 1.6 : 1; this is at least 3 : 1 in every palette.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QTabBar,
    QWidget,
)
from shiboken6 import isValid

from gui.theme import tone

if TYPE_CHECKING:
    from gui.main_window import MainWindow

# A field has its caret and a list its row. Over a list a ring would make each scroll a repaint.
RINGED = (QAbstractButton, QComboBox, QTabBar)
WIDTH, CORNER = 2.0, 3.0
NAME = "qt_focus_ring"  # as Qt names what stands inside of a control


def attach(_: MainWindow) -> None:
    """Mark the focus in every window and dialog of the program, from the first window on."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    if not app.property(NAME):
        app.setProperty(NAME, True)
        FocusMark(app)


class FocusMark(QObject):
    """Moves one ring along with the focus, where that was moved by keys.

    It lives as long as the application: windows tell of their focus while they are destroyed.
    """

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        self._ring: _Ring | None = None
        app.focusChanged.connect(self._follow)

    def _follow(self, _: QWidget | None, now: QWidget | None) -> None:
        if self._ring is not None and isValid(self._ring):  # its control may be gone, and it too
            self._ring.hide()
            self._ring.deleteLater()
        self._ring = _Ring(now) if now is not None and _wants_ring(now) else None


def _wants_ring(widget: QWidget) -> bool:
    by_keys = widget.window().testAttribute(Qt.WidgetAttribute.WA_KeyboardFocusChange)
    return by_keys and isinstance(widget, RINGED)


class _Ring(QWidget):
    """Lies over its control, which it follows because it is a part of it."""

    def __init__(self, control: QWidget) -> None:
        super().__init__(control)
        self.setObjectName(NAME)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._control = control
        if isinstance(control, QTabBar):
            control.currentChanged.connect(self.update)
        control.installEventFilter(self)
        self.resize(control.size())
        self.show()
        self.raise_()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self.resize(self._control.size())
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(tone("accent", QApplication.palette()), WIDTH))
        half = WIDTH / 2
        place = self.rect()
        if isinstance(self._control, QTabBar):
            place = self._control.tabRect(self._control.currentIndex())
        painter.drawRoundedRect(QRectF(place).adjusted(half, half, -half, -half), CORNER, CORNER)
        painter.end()
