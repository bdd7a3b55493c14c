"""Accessibility: Tab order as shown, names of clear buttons, announcements, the focus ring."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QPoint, QRect, QRectF, Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QKeySequenceEdit,
    QLayout,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QSplitter,
    QStackedWidget,
    QTabBar,
    QTabWidget,
    QTextEdit,
    QToolButton,
    QWidget,
)
from shiboken6 import isValid

from gui.style.theme import MORE_CONTRAST, application, plain_tip, tone

# Composite widgets that handle the focus of their parts.
_WHOLE = (QAbstractItemView, QAbstractSpinBox, QComboBox, QKeySequenceEdit, QLineEdit)


class InOrder:
    """Mixin that comes before the Qt class of a window: `class Sheet(InOrder, QDialog)`."""

    def focusNextPrevChild(self, forwards: bool) -> bool:
        assert isinstance(self, QWidget)
        return step((self,), forwards)


def step(parts: Sequence[QWidget], forwards: bool) -> bool:
    """Focus the next or previous widget within `parts`, wrapping; False if none accepts focus."""
    stops = [stop for part in parts for stop in stops_in(part)]
    focus = QApplication.focusWidget()
    holders = [at for at, stop in enumerate(stops) if _holds(stop, focus)]
    here = holders[-1] if holders else (-1 if forwards else len(stops))  # The innermost widget
    target = stops[(here + (1 if forwards else -1)) % len(stops)] if stops else None
    if target is None or target is focus:
        return False
    reasons = Qt.FocusReason
    target.setFocus(reasons.TabFocusReason if forwards else reasons.BacktabFocusReason)
    return True


def stops_in(widget: QWidget) -> Iterator[QWidget]:
    """Yield the visible widgets of `widget` that accept Tab, in reading order."""
    if not widget.isVisible() or not widget.isEnabled():
        return
    if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.focusProxy() is None:
        yield widget
    if not isinstance(widget, _WHOLE):
        for inner in _inside(widget):
            yield from stops_in(inner)


def _inside(widget: QWidget) -> Iterator[QWidget]:
    if isinstance(widget, QTabWidget):
        yield widget.tabBar()
        yield from _known((widget.cornerWidget(), widget.currentWidget()))
    elif isinstance(widget, QScrollArea):
        yield from _known((widget.widget(),))
    elif isinstance(widget, QStackedWidget):
        yield from _known((widget.currentWidget(),))
    elif isinstance(widget, QSplitter):
        yield from _known(widget.widget(at) for at in range(widget.count()))
    else:
        yield from _laid_out(widget)


def _laid_out(widget: QWidget) -> Iterator[QWidget]:
    """Yield the widgets of the layout in order, then those outside of it by position."""
    layout = widget.layout()
    held = list(within(layout)) if layout is not None else []
    yield from held
    rest = [one for one in widget.children() if isinstance(one, QWidget) and one not in held]
    loose = [one for one in rest if one.isVisible() and not one.isWindow()]
    yield from sorted(loose, key=_place)


def within(layout: QLayout) -> Iterator[QWidget]:
    """Yield the widgets of a layout and its nested layouts in order."""
    for number in range(layout.count()):
        item = layout.itemAt(number)
        inner, widget = (item.layout(), item.widget()) if item is not None else (None, None)
        if inner is not None:
            yield from within(inner)
        elif widget is not None:
            yield widget


def _place(widget: QWidget) -> tuple[int, int]:
    at: QPoint = widget.pos()
    return at.y(), at.x()


def _known(widgets: Iterable[QWidget | None]) -> Iterator[QWidget]:
    yield from (one for one in widgets if one is not None)


def _holds(stop: QWidget, focus: QWidget | None) -> bool:
    return focus is not None and (stop is focus or stop.isAncestorOf(focus))


# Tab order of dialogs, which follows their layouts after parts were replaced.


def chain(*parts: QWidget) -> None:
    """Set the Tab order of all widgets in `parts` by their layouts."""
    for first, then in pairwise([one for part in parts for one in _stops(part)]):
        QWidget.setTabOrder(first, then)


def _stops(widget: QWidget | None) -> Iterator[QWidget]:
    if widget is None:
        return
    if isinstance(widget, QTabWidget):
        yield widget.tabBar()
        for number in range(widget.count()):
            yield from _stops(widget.widget(number))
        return
    if isinstance(widget, QScrollArea):
        yield from _stops(widget.widget())
        return
    if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.focusProxy() is None:
        yield widget
    layout = widget.layout()
    if layout is not None:
        for inner in within(layout):
            yield from _stops(inner)


class Region(NamedTuple):
    """Part of a window that F6 reaches: the first widget of `entry` that accepts Tab.

    A region may lie within an earlier one, to which then only the rest of that belongs.
    """

    whole: QWidget
    entry: QWidget


def step_region(regions: Sequence[Region], step: int) -> None:
    """Focus the next visible region, or the previous one with `step` -1."""
    shown = [region for region in regions if region.entry.isVisible()]
    if not shown:
        return
    focus = QApplication.focusWidget()
    holders = [at for at, region in enumerate(shown) if _holds(region.whole, focus)]
    here = holders[-1] if holders else -step  # the innermost one
    for away in range(1, len(shown) + 1):
        target = _first_stop(shown[(here + step * away) % len(shown)].entry)
        if target is not None:
            # Without the Tab key Qt takes a Tab reason for a click, which shows no ring.
            target.setFocus(Qt.FocusReason.ShortcutFocusReason)
            return


def _first_stop(region: QWidget) -> QWidget | None:
    """Return the first widget of `region` that accepts Tab."""
    return next(stops_in(region), None)


def clearable(line: QLineEdit) -> None:
    """Add a clear button with an accessible name and a tool tip to `line`."""
    line.setClearButtonEnabled(True)
    name = QCoreApplication.translate("clearable", "Empty this field")
    for button in line.findChildren(QToolButton):
        button.setAccessibleName(name)
        button.setToolTip(plain_tip(name))


def announce(where: QWidget, words: str) -> None:
    """Announce `words` independent of the focus; free of cost without a screen reader."""
    if words and QAccessible.isActive():
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(where, words))


RINGED = (QAbstractButton, QComboBox, QTabBar)
# Of scroll areas, which have the focus for the arrow keys, these show a cursor instead.
WITH_CURSOR = (QPlainTextEdit, QTextEdit)
RING_WIDTH, RING_CORNER = 2.0, 3.0
RING_NAME = "qt_focus_ring"  # Prefix that Qt uses for parts of a control


def show_focus_ring() -> None:
    """Mark the focused control in all windows for keyboard users, from the first window on.

    The style's own mark has a contrast of 1.1 to 1.6 : 1; this one has at least 3 : 1 in every
    palette.
    """
    app = application()
    if not app.property(RING_NAME):
        app.setProperty(RING_NAME, True)
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
    if isinstance(widget, QAbstractItemView):
        return _Edges(widget)
    scrolls = isinstance(widget, QAbstractScrollArea) and not isinstance(widget, WITH_CURSOR)
    return _Ring(widget) if scrolls or isinstance(widget, RINGED) else None


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
        width = (view.frameWidth() if thin else 0) or round(RING_WIDTH)
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
        self.setObjectName(RING_NAME)
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
        self.setObjectName(RING_NAME)
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
        painter.setPen(QPen(tone("accent", QApplication.palette()), RING_WIDTH))
        half = RING_WIDTH / 2
        place = self.rect()
        if isinstance(self._control, QTabBar):
            place = self._control.tabRect(self._control.currentIndex())
        painter.drawRoundedRect(
            QRectF(place).adjusted(half, half, -half, -half), RING_CORNER, RING_CORNER
        )
        painter.end()
