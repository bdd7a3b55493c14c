"""The part of a task's time that somebody wants to see, in every tab of its details alike."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal


class TimeRange(QObject):
    """`range` is from when until when (ms since 1970), None: all of it.

    `units` names what was finished in that time, for lists whose rows know no time.
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.range: tuple[float, float] | None = None
        self.units: frozenset[str] = frozenset()

    def choose(self, start_ms: float, end_ms: float, units: frozenset[str] = frozenset()) -> None:
        """Show what was from `start_ms` to `end_ms`, both included."""
        chosen = (min(start_ms, end_ms), max(start_ms, end_ms))
        if (chosen, units) != (self.range, self.units):
            self.range, self.units = chosen, units
            self.changed.emit()

    def clear(self) -> None:
        """Show all of it again."""
        if self.range is not None:
            self.range, self.units = None, frozenset()
            self.changed.emit()

    def holds(self, ts_ms: float) -> bool:
        return self.range is None or self.range[0] <= ts_ms <= self.range[1]

    def names(self, unit: str) -> bool:
        """Was this unit (a page's address, a command) finished in that time?"""
        return self.range is None or unit in self.units
