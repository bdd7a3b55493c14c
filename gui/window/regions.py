"""Focus cycle through the regions of the window (F6)."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget

from gui.style.tab_order import stops_in


def step_region(regions: Sequence[QWidget], step: int) -> None:
    """Focus the next visible region, or the previous one with `step` -1."""
    shown = [region for region in regions if region.isVisible()]
    if not shown:
        return
    focus = QApplication.focusWidget()
    here = next((at for at, region in enumerate(shown) if _holds(region, focus)), -step)
    for away in range(1, len(shown) + 1):
        target = _first_stop(shown[(here + step * away) % len(shown)])
        if target is not None:
            target.setFocus(Qt.FocusReason.TabFocusReason)
            return


def _holds(region: QWidget, focus: QWidget | None) -> bool:
    return focus is not None and (focus is region or region.isAncestorOf(focus))


def _first_stop(region: QWidget) -> QWidget | None:
    """Return the first widget of `region` that accepts Tab."""
    return next(stops_in(region), None)
