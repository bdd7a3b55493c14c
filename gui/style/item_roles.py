"""Item roles as integers, because comparing enums is slower for 100,000 cells."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt

AnyIndex = QModelIndex | QPersistentModelIndex

ROOT: Final = QModelIndex()
DISPLAY: Final = int(Qt.ItemDataRole.DisplayRole)
TOOL_TIP: Final = int(Qt.ItemDataRole.ToolTipRole)
COLOUR: Final = int(Qt.ItemDataRole.ForegroundRole)
FONT: Final = int(Qt.ItemDataRole.FontRole)
ALIGNMENT: Final = int(Qt.ItemDataRole.TextAlignmentRole)
SPOKEN: Final = int(Qt.ItemDataRole.AccessibleTextRole)
SPOKEN_MORE: Final = int(Qt.ItemDataRole.AccessibleDescriptionRole)
