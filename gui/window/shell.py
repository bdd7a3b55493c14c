"""A window before anything is in it: its place, its title, and the outline of what will come.

This is all that a first paint waits for, so nothing here may import the engine's rooms.
"""

from __future__ import annotations

from PySide6.QtCore import QSize, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QMainWindow, QWidget

from gui.state.preferences import Preferences
from gui.state.window_state import Memory
from gui.style.theme import plain_title
from gui.window.placeholder_rows import Skeleton

MIN_WIDTH, MIN_HEIGHT = 900, 560
FIRST_SIZE = QSize(1180, 760)
TITLE_HEIGHT = 40  # what a system puts above a window
SIDEBAR_WIDTH = 190
BARS_HEIGHT = 130  # menu, toolbar, filter and header: about what stands above the rows


class Shell(QMainWindow):
    """Stands where the window stood when it was left. `painted` is told once.

    `pressed_early` holds the keys that nothing in the window took, until somebody who knows
    what they mean sets it to None.
    """

    painted = Signal()

    def __init__(self, memory: Memory, preferences: Preferences, root: str) -> None:
        super().__init__()
        self.memory, self.preferences = memory, preferences
        self.setMinimumSize(MIN_WIDTH, MIN_HEIGHT)
        self.resize(first_size(self.screen().availableSize()))
        self.restoreGeometry(memory.shape("window"))
        self.setWindowTitle(plain_title(root))  # Qt adds the program's name
        outline = _Outline(SIDEBAR_WIDTH if memory.flag("sidebar", True) else 0, self)
        outline.painted.connect(self.painted)
        self.setCentralWidget(outline)
        self.pressed_early: dict[int, None] | None = {}

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self.pressed_early is not None:
            self.pressed_early[event.keyCombination().toCombined()] = None
        super().keyPressEvent(event)


def first_size(room: QSize) -> QSize:
    """For a window that stood nowhere yet, on a screen with this much room; some have too little
    for any window of ours."""
    if room.width() < MIN_WIDTH:
        return FIRST_SIZE
    return FIRST_SIZE.boundedTo(room - QSize(0, TITLE_HEIGHT))


class _Outline(QWidget):
    """Grey bars where the rows will be."""

    painted = Signal()

    def __init__(self, beside: int, parent: QWidget) -> None:
        super().__init__(parent)
        self._beside = beside
        self._rows = Skeleton(self)
        self._told = False

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._rows.setGeometry(self.rect().adjusted(self._beside + 8, BARS_HEIGHT, -8, -32))

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._told:
            self._told = True
            QTimer.singleShot(0, self, self.painted.emit)  # the rows are painted after this
