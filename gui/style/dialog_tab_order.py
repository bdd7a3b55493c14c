"""Tab goes through a dialog as the eye does, also after a part of it was made anew."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QScrollArea, QTabWidget, QWidget

from gui.style.tab_order import within


def chain(*parts: QWidget) -> None:
    """Let Tab go through all that can take it in `parts`, in the order of their layouts."""
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
