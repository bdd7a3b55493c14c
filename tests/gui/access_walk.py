"""Accessibility faults of a window, found by walking its widgets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QProgressBar,
    QScrollArea,
    QWidget,
)

CONTROLS = (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
)
# What Qt makes for itself inside of a control; the control has the name.
INNER = ("qt_", "QComboBox", "QTabBar")
MOST_STOPS = 300
SPOKEN_ROWS = 20
_SPOKEN, _SHOWN = Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.DisplayRole


def name_of(widget: QWidget) -> str:
    """What a screen reader calls it."""
    if isinstance(widget, QComboBox):  # Qt tells its value as the name, where labels tell the name
        return widget.accessibleName() or "".join(one.text() for one in _labels_of(widget))
    found = QAccessible.queryAccessibleInterface(widget)
    return found.text(QAccessible.Text.Name) if found is not None else ""


def _labels_of(widget: QWidget) -> list[QLabel]:
    labels = widget.window().findChildren(QLabel)
    return [one for one in labels if one.buddy() is widget]


def told(widget: QWidget) -> str:
    """The widget for the reader of a failed test."""
    return f"{type(widget).__name__} in {type(widget.parentWidget()).__name__} {name_of(widget)!r}"


def walk(window: QWidget) -> list[str]:
    """Everything that is wrong in what `window` shows now."""
    shown = list(_shown(window))
    return [
        *(f"no name: {told(one)}" for one in shown if _is_control(one) and not name_of(one)),
        *(f"painted without words: {told(one)}" for one in shown if _is_mute(one)),
        *(f"no buddy: {told(one)}" for one in shown if _lacks_buddy(one)),
        *(f"mouse only: {told(one)}" for one in shown if _needs_mouse(one)),
        *(fault for one in shown if _is_list(one) for fault in _silent_rows(one)),
    ]


def walk_by_tab(window: QWidget) -> list[str]:
    """What is wrong with the way of Tab through `window`: traps, leaps, controls left out."""
    stops = tab_stops(window)
    if stops is None:
        return [f"Tab is caught by {told(QApplication.focusWidget() or window)}"]
    missed = [one for one in _shown(window) if _takes_tab(one) and one not in stops]
    leaps = [(one, then) for one, then in pairwise(_from_the_top(stops)) if _leaps(one, then)]
    return [
        *(f"Tab never reaches {told(one)}" for one in missed),
        *(f"Tab leaps back from {told(one)} to {told(then)}" for one, then in leaps),
    ]


def tab_stops(window: QWidget) -> list[QWidget] | None:
    """Where the focus comes by pressing Tab until it is where it began; None when it is caught."""
    first = window.focusWidget() or window
    stops: list[QWidget] = []
    for _ in range(MOST_STOPS):
        QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_Tab)
        here = QApplication.focusWidget() or window.focusWidget() or first
        if here in stops:
            return stops if here is stops[0] else None
        stops.append(here)
    return None


def _shown(window: QWidget) -> Iterator[QWidget]:
    for widget in window.findChildren(QWidget):
        inner = widget.objectName().startswith("qt_") or isinstance(widget, QMenu)
        if widget.window() is window and widget.isVisible() and not inner:
            yield widget


def _is_control(widget: QWidget) -> bool:
    if isinstance(widget, QHeaderView) or isinstance(widget.parent(), QHeaderView):
        return False
    if isinstance(widget.parent(), QAbstractSpinBox | QComboBox):
        return False
    takes = bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)
    return isinstance(widget, CONTROLS) or (takes and widget.focusProxy() is None and _own(widget))


def _own(widget: QWidget) -> bool:
    return type(widget).__module__.startswith("gui.")


def _is_mute(widget: QWidget) -> bool:
    """Does it paint something that nobody is told in words?"""
    painted = next((kind for kind in type(widget).__mro__ if "paintEvent" in vars(kind)), None)
    ours = painted is not None and painted.__module__.startswith("gui.")
    return ours and not isinstance(widget, QLabel) and not name_of(widget)


def _lacks_buddy(widget: QWidget) -> bool:
    text = widget.text().replace("&&", "") if isinstance(widget, QLabel) else ""
    plain = isinstance(widget, QLabel) and widget.buddy() is None
    return plain and any(f"&{letter}" in text for letter in "abcdefghijklmnopqrstuvwxyz")


def _needs_mouse(widget: QWidget) -> bool:
    hand = widget.cursor().shape() is Qt.CursorShape.PointingHandCursor
    proxied = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
    grouped = isinstance(widget, QAbstractButton) and (widget.group() or widget.autoExclusive())
    button = isinstance(widget, QAbstractButton) and widget.isEnabled() and not grouped
    inner = isinstance(widget.parent(), QLineEdit)  # the line has keys for it
    return (hand or button) and not proxied and not inner


def _is_list(widget: QWidget) -> bool:
    return isinstance(widget, QAbstractItemView) and not isinstance(widget, QHeaderView)


def _silent_rows(view: QWidget) -> Iterator[str]:
    assert isinstance(view, QAbstractItemView)
    model = view.model()
    for row in range(min(model.rowCount(view.rootIndex()), SPOKEN_ROWS) if model else 0):
        index = model.index(row, 0, view.rootIndex())
        if not (index.data(_SPOKEN) or index.data(_SHOWN)):
            yield f"row {row} of {told(view)} says nothing"


def _takes_tab(widget: QWidget) -> bool:
    takes = widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.focusProxy() is None
    group = isinstance(widget, QAbstractButton) and widget.autoExclusive() | bool(widget.group())
    return bool(takes) and _is_control(widget) and widget.isEnabled() and not group


def _from_the_top(stops: Sequence[QWidget]) -> list[QWidget]:
    """The round as it begins at the first control above all others."""
    at = min(range(len(stops)), key=lambda n: (_place(stops[n]).top(), _place(stops[n]).left()))
    return [*stops[at:], *stops[:at]]


def _place(widget: QWidget) -> QRect:
    return QRect(widget.mapTo(widget.window(), QPoint(0, 0)), widget.size())


def _seen_beside(other: QWidget, widget: QWidget) -> QRect:
    """Where a widget is beside one outside of its form, which scrolls to what has the focus."""
    place, area = _place(widget), widget.parentWidget()
    while area is not None and not isinstance(area, QScrollArea):
        area = area.parentWidget()
    if area is not None and not area.isAncestorOf(other):
        place.moveBottom(min(place.bottom(), _place(area).bottom()))
        place.moveTop(max(place.top(), _place(area).top()))
    return place


def _leaps(one: QWidget, then: QWidget) -> bool:
    """Does the eye have to go back, within what stands together, from `one` to `then`?"""
    before, after = _seen_beside(then, one), _seen_beside(one, then)
    beside = after.left() >= before.right()
    above = after.bottom() <= before.top() and not beside
    same_line = min(before.bottom(), after.bottom()) - max(before.top(), after.top())
    back = same_line > min(before.height(), after.height()) / 2 and after.right() <= before.left()
    return above or back
