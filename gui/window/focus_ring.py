"""Where the keyboard is: a ring round the control that has the focus, for who goes by keys.

The style's own mark is a tint of 1.1 to 1.6 : 1; this is at least 3 : 1 in every palette.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRect, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QComboBox,
    QTabBar,
    QWidget,
)
from shiboken6 import isValid

from gui.style.theme import MORE_CONTRAST, tone

RINGED = (QAbstractButton, QComboBox, QTabBar)  # a field has its caret
WIDTH, CORNER = 2.0, 3.0
NAME = "qt_focus_ring"  # as Qt names what stands inside of a control


def attach() -> None:
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
        self._ring: _Ring | _Edges | None = None
        app.focusChanged.connect(self._follow)

    def _follow(self, _: QWidget | None, now: QWidget | None) -> None:
        if self._ring is not None and isValid(self._ring):  # its control may be gone, and it too
            self._ring.hide()
            self._ring.deleteLater()
        self._ring = _mark_of(now) if now is not None else None


def _mark_of(widget: QWidget) -> _Ring | _Edges | None:
    if not widget.window().testAttribute(Qt.WidgetAttribute.WA_KeyboardFocusChange):
        return None
    if isinstance(widget, RINGED):
        return _Ring(widget)
    return _Edges(widget) if isinstance(widget, QAbstractItemView) else None


class _Edges(QObject):
    """The four edges of a list. Its row alone does not tell: it looks the same without the focus,
    and an empty list has none.

    They keep to the frame, because over the rows they would make each scroll a repaint. Where
    that is not enough (no current row, no frame, more contrast) they are as wide as any ring.
    """

    def __init__(self, view: QAbstractItemView) -> None:
        super().__init__(view)
        self._view = view
        self._edges = [_Edge(view) for _ in range(4)]
        view.installEventFilter(self)
        if view.model() is not None:
            view.selectionModel().currentChanged.connect(self._place)
            view.model().modelReset.connect(self._place)
        self._place()

    def hide(self) -> None:
        """Take them away at once."""
        for edge in self._edges:
            edge.hide()
            edge.deleteLater()
        self._edges = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._place()
        return False

    def _place(self) -> None:
        view = self._view
        if not isValid(view):  # its model tells of its end while it goes
            return
        whole = view.rect()
        # where there is more contrast, the frame itself is as strong as any mark of its width
        app = QApplication.instance()
        strong = app is not None and bool(app.property(MORE_CONTRAST))
        thin = view.currentIndex().isValid() and not strong
        width = (view.frameWidth() if thin else 0) or round(WIDTH)
        wide, high = whole.width(), whole.height()
        places = (
            *(QRect(0, 0, wide, width), QRect(0, high - width, wide, width)),
            *(QRect(0, 0, width, high), QRect(wide - width, 0, width, high)),
        )
        for edge, place in zip(self._edges, places, strict=False):
            edge.setGeometry(place)
            edge.raise_()


class _Edge(QWidget):
    """One side, in the colour of all rings."""

    def __init__(self, view: QAbstractItemView) -> None:
        super().__init__(view)
        self.setObjectName(NAME)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.show()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), tone("accent", QApplication.palette()))
        painter.end()


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
