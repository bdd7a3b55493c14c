"""A line with a button that empties it, which Qt leaves without a name."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QLineEdit, QToolButton

from gui.style.theme import plain_tip


def clearable(line: QLineEdit) -> None:
    """Give `line` its button, and the button a name for ears and pointers."""
    line.setClearButtonEnabled(True)
    name = QCoreApplication.translate("clearable", "Empty this field")
    for button in line.findChildren(QToolButton):
        button.setAccessibleName(name)
        button.setToolTip(plain_tip(name))
