"""Icons of window and buttons: desktop icons where available, else drawn in the text colour.

Drawn icons are the files in `svg`, lines on a grid of 24 units, of which only the shape counts.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from PySide6.QtCore import QEvent, QObject, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QImage, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton, QApplication

FOLDER: Final = Path(__file__).parent / "svg"
BLUE: Final = QColor(0x2B, 0x63, 0xC6)
WHITE: Final = QColor(0xFF, 0xFF, 0xFF)
SIZES: Final = (16, 20, 24, 32)
SIDES: Final = (*SIZES, 40, 48, 64)  # In device pixels, at a ratio of 1 and 2
_THEME: Final = QIcon.ThemeIcon


def icon(name: str) -> QIcon:
    """Return the icon `name` in the colours of the current palette."""
    drawn = _drawn(name)
    theme = _NAMES.get(name)
    return drawn if theme is None else QIcon.fromTheme(theme, drawn)


def window_icon() -> QIcon:
    """Return the program icon for title bars and task bars: a list on blue."""
    found = QIcon()
    for size in (*SIZES, 48, 64, 128, 256):
        pixmap = QPixmap(size, size)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(BLUE)
        painter.drawRoundedRect(QRectF(0, 0, size, size), size / 5, size / 5)
        inner = round(size * 0.75)
        painter.drawPixmap((size - inner) // 2, (size - inner) // 2, glyph("list", inner, WHITE))
        painter.end()
        found.addPixmap(pixmap)
    return found


def _drawn(name: str) -> QIcon:
    palette = QApplication.palette()
    found = QIcon()
    for mode, group in (
        (QIcon.Mode.Normal, QPalette.ColorGroup.Active),
        (QIcon.Mode.Disabled, QPalette.ColorGroup.Disabled),
    ):
        colour = palette.color(group, QPalette.ColorRole.ButtonText)
        for side in SIDES:
            found.addPixmap(glyph(name, side, colour), mode)
    return found


def glyph(name: str, size: int, colour: QColor, scale: float = 1.0) -> QPixmap:
    """Return a drawn icon of `size` logical pixels."""
    # A copy: pixmaps of one image have one key, by which a label keeps the one that it has.
    image = _shape(name, round(size * scale)).copy()
    painter = QPainter(image)
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceIn)
    painter.fillRect(image.rect(), colour)
    painter.end()
    pixmap = QPixmap.fromImage(image)
    pixmap.setDevicePixelRatio(scale)
    return pixmap


@cache  # Colouring a shape takes a tenth of the time of drawing it
def _shape(name: str, side: int) -> QImage:
    image = QImage(side, side, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    _file(name).render(painter)
    painter.end()
    return image


@cache
def _file(name: str) -> QSvgRenderer:
    return QSvgRenderer((FOLDER / f"{name}.svg").read_bytes())


_NAMES: Final = {
    "new": _THEME.ListAdd,
    "stop": _THEME.ProcessStop,
    "refresh": _THEME.ViewRefresh,
    "folder": _THEME.FolderOpen,
}


def wear(button: QAbstractButton, name: str) -> None:
    """Set the icon `name` on `button`, also after palette changes."""
    worn = button.findChild(_Worn) or _Worn(button)
    worn.put(name)


class _Worn(QObject):
    """Redraw the icon after each palette change."""

    def __init__(self, button: QAbstractButton) -> None:
        super().__init__(button)
        self._button, self._name = button, ""
        button.installEventFilter(self)

    def put(self, name: str) -> None:
        self._name = name
        self._button.setIcon(icon(name))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.PaletteChange:
            self.put(self._name)
        return False
