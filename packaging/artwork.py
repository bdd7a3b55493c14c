"""Pictures of the program's sign in the formats of the systems, drawn from its SVG."""

from __future__ import annotations

import os
import struct
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QBuffer, QIODevice, QRectF, Qt
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

ICO_SIZES = (16, 20, 24, 32, 40, 48, 64, 256)
# The types that icns files name their PNG pictures by (iconutil writes the same).
ICNS_TYPES = {
    "icp4": 16,
    "icp5": 32,
    "ic07": 128,
    "ic08": 256,
    "ic09": 512,
    "ic10": 1024,
    "ic11": 32,
    "ic12": 64,
    "ic13": 256,
    "ic14": 512,
}


def png(svg: Path, size: int) -> bytes:
    """Return the picture in `size` x `size` pixels.

    Raises:
        ValueError: the file is no SVG.
    """
    if QGuiApplication.instance() is None:
        _KEPT.append(QGuiApplication(["artwork"]))
    drawing = QSvgRenderer(str(svg))
    if not drawing.isValid():
        raise ValueError(f"{svg} is no SVG")
    image = QImage(size, size, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    drawing.render(painter, QRectF(0, 0, size, size))
    painter.end()
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, b"PNG")
    return bytes(buffer.data().data())


_KEPT: list[QGuiApplication] = []


def write_png(svg: Path, target: Path, size: int) -> None:
    target.write_bytes(png(svg, size))


def write_ico(svg: Path, target: Path) -> None:
    """Write an icon of Windows; its pictures are PNGs, which every Windows since Vista reads."""
    pictures = [png(svg, size) for size in ICO_SIZES]
    head = struct.pack("<HHH", 0, 1, len(pictures))
    place = len(head) + 16 * len(pictures)
    for size, picture in zip(ICO_SIZES, pictures, strict=True):
        edge = size % 256  # 0 stands for 256
        head += struct.pack("<BBBBHHII", edge, edge, 0, 0, 1, 32, len(picture), place)
        place += len(picture)
    target.write_bytes(head + b"".join(pictures))


def write_icns(svg: Path, target: Path) -> None:
    """Write an icon of macOS."""
    parts = b""
    for kind, size in ICNS_TYPES.items():
        picture = png(svg, size)
        parts += kind.encode() + struct.pack(">I", len(picture) + 8) + picture
    target.write_bytes(b"icns" + struct.pack(">I", len(parts) + 8) + parts)
