"""Focus ring around the focused control for keyboard users.

The style's own mark has a contrast of 1.1 to 1.6 : 1; this one has at least 3 : 1 in every palette.
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

RINGED = (QAbstractButton, QComboBox, QTabBar)  # Text fields show a cursor instead
WIDTH, CORNER = 2.0, 3.0
NAME = "qt_focus_ring"  # Prefix that Qt uses for parts of a control


def show_focus_ring() -> None:
    """Mark the focus in all windows and dialogs, from the first window on."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    if not app.property(NAME):
        app.setProperty(NAME, True)
        FocusMark(app)


class FocusMark(QObject):
    """Move one ring with the keyboard focus.

    It lives as long as the application, since windows change focus while they are destroyed.
    """

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        self._ring: _Ring | _Edges | None = None
        app.focusChanged.connect(self._follow)

    def _follow(self, _: QWidget | None, now: QWidget | None) -> None:
        # The ring is deleted together with its control.
        if self._ring is not None and isValid(self._ring):
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
    """Edges around a list, whose current row alone does not show the focus.

    They stay on the frame, because over the rows each scroll would repaint them. Without a current
    row or a frame, or with high contrast, they are as wide as any ring.
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
        """Hide and delete the edges."""
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
        if not isValid(view):  # The model emits signals while the view is deleted
            return
        whole = view.rect()
        # With high contrast the frame itself is as strong as a mark of its width.
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
    """Ring over its control, which is its parent."""

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
