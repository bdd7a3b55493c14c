"""Letters that are larger than the rest or of fixed pitch: they keep step with the size chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtWidgets import QApplication, QWidget

if TYPE_CHECKING:
    from PySide6.QtGui import QFont

LEAST, MOST = 70, 200  # percent: beyond, a window could not be read, nor set right again
_BASE: Final = "letters of the desktop, in points"  # properties: of the application …
_SHARE, _BOLD, _FIXED = "letters: share", "letters: bold", "letters: fixed pitch"  # … of a widget


def lead(widget: QWidget, share: float, *, bold: bool = False) -> None:
    """Make its letters `share` times as large as the others, now and after another size."""
    widget.setProperty(_SHARE, share)
    widget.setProperty(_BOLD, bold)
    widget.setFont(_leading(share, bold=bold))


def fixed_pitch(widget: QWidget) -> None:
    """Make its letters equally wide, in the size that was chosen, now and after another size."""
    widget.setProperty(_FIXED, True)
    widget.setFont(_fixed())


def choose_size(percent: float) -> None:
    """Show all letters in `percent` of the desktop's size, or in the nearest that can be read."""
    from PySide6.QtGui import QFont

    app = QApplication.instance()
    assert isinstance(app, QApplication)
    if not isinstance(app.property(_BASE), float):
        app.setProperty(_BASE, app.font().pointSizeF())
    font = QFont(app.font())
    wanted = app.property(_BASE) * min(max(percent, LEAST), MOST) / 100
    if abs(font.pointSizeF() - wanted) > 0.01:
        font.setPointSizeF(wanted)
        app.setFont(font)
        _renew()


def _renew() -> None:
    # Qt tells windows only, and a child whose own font says its size hears of nothing
    for widget in QApplication.allWidgets():
        share = widget.property(_SHARE)
        if isinstance(share, float):
            widget.setFont(_leading(share, bold=bool(widget.property(_BOLD))))
        elif widget.property(_FIXED):
            widget.setFont(_fixed())


def _leading(share: float, *, bold: bool) -> QFont:
    from PySide6.QtGui import QFont  # 3 ms that the first paint need not wait for

    font = QFont(QApplication.font())
    font.setPointSizeF(font.pointSizeF() * share)
    if bold:
        font.setWeight(QFont.Weight.DemiBold)
    return font


def _fixed() -> QFont:
    """The desktop's own, by as much larger or smaller as the other letters are."""
    from PySide6.QtGui import QFontDatabase

    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    app = QApplication.instance()
    base = app.property(_BASE) if app else None
    if isinstance(base, float) and base > 0 and font.pointSizeF() > 0:
        font.setPointSizeF(font.pointSizeF() * QApplication.font().pointSizeF() / base)
    return font
