"""Clear button of a line edit with an accessible name, which Qt omits."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QLineEdit, QToolButton

from gui.style.theme import plain_tip


def clearable(line: QLineEdit) -> None:
    """Add a clear button with an accessible name and a tool tip to `line`."""
    line.setClearButtonEnabled(True)
    name = QCoreApplication.translate("clearable", "Empty this field")
    for button in line.findChildren(QToolButton):
        button.setAccessibleName(name)
        button.setToolTip(plain_tip(name))
