"""F6 goes round the window's regions, so that a keyboard reaches all of them without Tab."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget

from gui.style.tab_order import stops_in


def step_region(regions: Sequence[QWidget], step: int) -> None:
    """Put the focus into the next visible region (or the previous one, `step` -1)."""
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
    """The first widget in `region` that takes the focus by Tab."""
    return next(stops_in(region), None)
