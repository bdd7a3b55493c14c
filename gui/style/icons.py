"""Icons of window and buttons: desktop icons where available, else drawn in the text colour.

Drawn icons are lines on a grid of 24 units, sharp at any size without files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QIcon,
    QPainter,
    QPainterPath,
    QPalette,
    QPen,
    QPixmap,
    QPixmapCache,
)
from PySide6.QtWidgets import QAbstractButton, QApplication

GRID: Final = 24.0
STROKE: Final = 2.0
BLUE: Final = QColor(0x2B, 0x63, 0xC6)
WHITE: Final = QColor(0xFF, 0xFF, 0xFF)
SIZES: Final = (16, 20, 24, 32)
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
        for size in SIZES:
            for scale in (1, 2):
                found.addPixmap(glyph(name, size, colour, scale), mode)
    return found


def glyph(name: str, size: int, colour: QColor, scale: float = 1.0) -> QPixmap:
    """Return a drawn icon of `size` logical pixels, cached by colour."""
    key = f"glyph {name} {size} {scale} {colour.rgba()}"
    kept = QPixmap()
    if not QPixmapCache.find(key, kept):
        kept = _painted(name, size, colour, scale)
        QPixmapCache.insert(key, kept)
    return kept


def _painted(name: str, size: int, colour: QColor, scale: float) -> QPixmap:
    side = round(size * scale)
    pixmap = QPixmap(side, side)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.scale(side / GRID, side / GRID)
    pen = QPen(colour, STROKE)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    painter.setPen(pen)
    painter.drawPath(_PATHS[name]())
    painter.end()
    pixmap.setDevicePixelRatio(scale)
    return pixmap


def _lines(*runs: tuple[tuple[float, float], ...]) -> Callable[[], QPainterPath]:
    """Return a path function for open lines through these points."""

    def draw() -> QPainterPath:
        path = QPainterPath()
        for run in runs:
            path.moveTo(QPointF(*run[0]))
            for point in run[1:]:
                path.lineTo(QPointF(*point))
        return path

    return draw


def _round(
    *shapes: QRectF, runs: tuple[tuple[tuple[float, float], ...], ...] = ()
) -> Callable[[], QPainterPath]:
    """Return a path function for rounded boxes with lines on top."""

    def draw() -> QPainterPath:
        path = _lines(*runs)()
        for shape in shapes:
            path.addRoundedRect(shape, 2.5, 2.5)
        return path

    return draw


def _refresh() -> QPainterPath:
    path = QPainterPath()
    box = QRectF(4.5, 4.5, 15, 15)
    path.arcMoveTo(box, 40)
    path.arcTo(box, 40, 290)
    path.moveTo(QPointF(18.5, 3.2))
    path.lineTo(QPointF(18.2, 7.6))
    path.lineTo(QPointF(13.8, 7.3))
    return path


def _again() -> QPainterPath:
    """Return a path of an arrow that turns back, for re-runs."""
    path = QPainterPath()
    path.moveTo(5, 9)
    path.lineTo(15, 9)
    path.arcTo(QRectF(10, 9, 10, 10), 90, -180)
    path.lineTo(9, 19)
    path.addPath(_lines(((9, 4.5), (4.5, 9), (9, 13.5)))())
    return path


def _warning() -> QPainterPath:
    path = _lines(((12, 4), (21, 19.5), (3, 19.5), (12, 4)), ((12, 10), (12, 14)))()
    path.addEllipse(QPointF(12, 16.8), 0.3, 0.3)
    return path


def _cross_in_circle() -> QPainterPath:
    path = _lines(((9, 9), (15, 15)), ((15, 9), (9, 15)))()
    path.addEllipse(QPointF(12, 12), 9, 9)
    return path


def _search() -> QPainterPath:
    path = _lines(((15.3, 15.3), (20, 20)))()
    path.addEllipse(QPointF(10.5, 10.5), 6, 6)
    return path


def _sliders() -> QPainterPath:
    path = _lines(((4, 8), (12, 8)), ((18, 8), (20, 8)), ((4, 16), (6, 16)), ((12, 16), (20, 16)))()
    path.addEllipse(QPointF(15, 8), 2.5, 2.5)
    path.addEllipse(QPointF(9, 16), 2.5, 2.5)
    return path


def _info() -> QPainterPath:
    path = _lines(((12, 11), (12, 16.5)))()
    path.addEllipse(QPointF(12, 12), 9, 9)
    path.addEllipse(QPointF(12, 7.7), 0.3, 0.3)
    return path


def _eye() -> QPainterPath:
    path = QPainterPath(QPointF(2.5, 12))
    path.quadTo(QPointF(12, 1), QPointF(21.5, 12))
    path.quadTo(QPointF(12, 23), QPointF(2.5, 12))
    path.addEllipse(QPointF(12, 12), 3, 3)
    return path


def _globe() -> QPainterPath:
    path = _lines(((3, 12), (21, 12)))()
    path.addEllipse(QPointF(12, 12), 9, 9)
    path.addEllipse(QPointF(12, 12), 4, 9)
    return path


def _record() -> QPainterPath:
    path = QPainterPath()
    path.addEllipse(QPointF(12, 12), 9, 9)
    path.addEllipse(QPointF(12, 12), 3.5, 3.5)
    return path


def _camera() -> QPainterPath:
    path = _round(QRectF(3, 7, 18, 12), runs=(((8.5, 7), (10, 4.5), (14, 4.5), (15.5, 7)),))()
    path.addEllipse(QPointF(12, 13), 3.2, 3.2)
    return path


def _agent() -> QPainterPath:
    path = _round(QRectF(4, 8, 16, 11), runs=(((12, 8), (12, 4)), ((9.5, 15.8), (14.5, 15.8))))()
    path.addEllipse(QPointF(9, 12.2), 0.6, 0.6)
    path.addEllipse(QPointF(15, 12.2), 0.6, 0.6)
    return path


def _bell() -> QPainterPath:
    path = QPainterPath(QPointF(4.5, 17.5))
    path.lineTo(QPointF(6.5, 15))
    path.lineTo(QPointF(6.5, 10.5))
    path.cubicTo(QPointF(6.5, 3), QPointF(17.5, 3), QPointF(17.5, 10.5))
    path.lineTo(QPointF(17.5, 15))
    path.lineTo(QPointF(19.5, 17.5))
    path.closeSubpath()
    path.moveTo(QPointF(10, 20.5))
    path.lineTo(QPointF(14, 20.5))
    return path


_PATHS: Final[dict[str, Callable[[], QPainterPath]]] = {
    "new": _lines(((12, 5), (12, 19)), ((5, 12), (19, 12))),
    "stop": _cross_in_circle,
    "rerun": _again,
    "trash": _lines(
        *(((4, 7), (20, 7)), ((9, 7), (9, 4), (15, 4), (15, 7))),
        *(((6, 7), (7, 20), (17, 20), (18, 7)), ((10, 11), (10, 16)), ((14, 11), (14, 16))),
    ),
    "stop_recording": _round(QRectF(6, 6, 12, 12)),
    "force": _lines(((5, 12.5), (10, 17.5), (19, 6.5)), ((5, 21), (19, 21))),
    "refresh": _refresh,
    "export": _lines(((12, 4), (12, 14)), ((7.5, 10), (12, 14.5), (16.5, 10)), ((5, 19), (19, 19))),
    "folder": _lines(
        ((3, 18.5), (3, 5.5), (9.5, 5.5), (12, 8.5), (21, 8.5), (21, 18.5), (3, 18.5))
    ),
    "acknowledge": _lines(((5, 12.5), (10, 17.5), (19, 6.5))),
    "sidebar": _round(QRectF(3, 5, 18, 14), runs=(((9, 5), (9, 19)),)),
    "details": _round(QRectF(3, 5, 18, 14), runs=(((3, 13.5), (21, 13.5)),)),
    "sample": _lines(((8, 5), (18.5, 12), (8, 19), (8, 5))),
    "close": _lines(((6.5, 6.5), (17.5, 17.5)), ((17.5, 6.5), (6.5, 17.5))),
    "more": _lines(((9, 6), (15, 12), (9, 18))),
    "less": _lines(((6, 9), (12, 15), (18, 9))),
    "warning": _warning,
    "search": _search,
    "bell": _bell,
    "settings": _sliders,
    "watch": _eye,
    "info": _info,
    "globe": _globe,
    "record": _record,
    "camera": _camera,
    "agent": _agent,
    "tabs": _round(QRectF(3, 9, 13, 11), runs=(((7, 5), (20, 5), (20, 16)),)),
    "steps": _lines(
        ((4, 6.5), (6, 8.5), (9, 4.5)),
        ((12, 7), (20, 7)),
        ((12, 12), (20, 12)),
        ((12, 17), (20, 17)),
        ((5, 12), (8, 12)),
        ((5, 17), (8, 17)),
    ),
    "up": _lines(((12, 19), (12, 5)), ((6, 11), (12, 5), (18, 11))),
    "down": _lines(((12, 5), (12, 19)), ((6, 13), (12, 19), (18, 13))),
    "star": _lines(
        (
            (12, 3.5),
            (14.6, 9),
            (20.6, 9.8),
            (16.2, 14),
            (17.3, 20),
            (12, 17.1),
            (6.7, 20),
            (7.8, 14),
            (3.4, 9.8),
            (9.4, 9),
            (12, 3.5),
        )
    ),
    "list": _lines(((4, 7), (20, 7)), ((4, 12), (20, 12)), ((4, 17), (14, 17))),
}
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
