"""Search fields: Esc clears and then leaves them, and the window's shortcuts work in them."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QMetaMethod, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QLineEdit, QWidget

from gui.style.accessibility import clearable

_Key = QKeySequence.StandardKey
_EDITS: Final = (_Key.Undo, _Key.Redo, _Key.Cut, _Key.Copy, _Key.Paste, _Key.SelectAll)


class SearchLine(QLineEdit):
    """Line edit that Esc clears; a second Esc emits `left`, if it is connected."""

    left = Signal()

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            if event.key() == Qt.Key.Key_Escape and self._uses_escape():
                event.accept()  # else a shortcut closes the window
                return True
            if _is_for_window(event):
                event.ignore()
                return False
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() != Qt.Key.Key_Escape or not self._uses_escape():
            super().keyPressEvent(event)
        elif self.text():
            self.clear()
        else:
            self.left.emit()

    def _uses_escape(self) -> bool:
        is_connected = self.isSignalConnected(QMetaMethod.fromSignal(self.left))
        return bool(self.text()) or is_connected


def _is_for_window(event: QKeyEvent) -> bool:
    """Return whether the keys are Ctrl and a letter that edits nothing on most desktops.

    On X11 Qt's line edits take Ctrl+E for the end of the line, as Emacs does, and would hide the
    shortcut of the export.
    """
    if event.modifiers() != Qt.KeyboardModifier.ControlModifier:
        return False
    is_letter = Qt.Key.Key_A <= event.key() <= Qt.Key.Key_Z
    return is_letter and not any(map(event.matches, _EDITS))


def search_field(parent: QWidget, hint: str, name: str = "") -> SearchLine:
    """Return a clearable field whose accessible name is `name`, or the hint it shows when empty."""
    field = SearchLine(parent)
    field.setPlaceholderText(hint)
    field.setAccessibleName(name or hint)
    clearable(field)
    return field
