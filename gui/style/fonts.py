"""Scaled and monospaced fonts that follow the chosen text size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtWidgets import QApplication, QWidget

if TYPE_CHECKING:
    from PySide6.QtGui import QFont

# Percent: beyond these limits the window could not be read, nor the setting undone.
LEAST, MOST = 70, 200
_BASE: Final = "letters of the desktop, in points"  # Properties of the application
# Properties of a widget.
_SHARE, _BOLD, _FIXED = "letters: share", "letters: bold", "letters: fixed pitch"


def lead(widget: QWidget, share: float, *, bold: bool = False) -> None:
    """Scale the widget's font by `share`, also after the text size changes."""
    widget.setProperty(_SHARE, share)
    widget.setProperty(_BOLD, bold)
    widget.setFont(_leading(share, bold=bold))


def fixed_pitch(widget: QWidget) -> None:
    """Use a monospaced font in the chosen text size, also after it changes."""
    widget.setProperty(_FIXED, True)
    widget.setFont(_fixed())


def choose_size(percent: float) -> None:
    """Scale all fonts to `percent` of the desktop's size, within the limits."""
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
    # Qt notifies windows only, and not a child whose own font has a size.
    for widget in QApplication.allWidgets():
        share = widget.property(_SHARE)
        if isinstance(share, float):
            widget.setFont(_leading(share, bold=bool(widget.property(_BOLD))))
        elif widget.property(_FIXED):
            widget.setFont(_fixed())


def _leading(share: float, *, bold: bool) -> QFont:
    from PySide6.QtGui import QFont  # Import here saves 3 ms before the first paint

    font = QFont(QApplication.font())
    font.setPointSizeF(font.pointSizeF() * share)
    if bold:
        font.setWeight(QFont.Weight.DemiBold)
    return font


def _fixed() -> QFont:
    """Return the desktop's monospaced font, scaled like the other fonts."""
    from PySide6.QtGui import QFontDatabase

    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    app = QApplication.instance()
    base = app.property(_BASE) if app else None
    if isinstance(base, float) and base > 0 and font.pointSizeF() > 0:
        font.setPointSizeF(font.pointSizeF() * QApplication.font().pointSizeF() / base)
    return font
