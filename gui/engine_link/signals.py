"""What one part of a window asks of another that it does not know, and that may not be there."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal


class Wishes(QObject):
    """`result` asks for the result viewer of a task, at that unit (or None); `retry` for a new
    task of what failed in one; `export` for the results of one as a file; `task` to select one.
    """

    result = Signal(str, object)
    retry = Signal(str)
    export = Signal(str)
    task = Signal(str)
