"""Selected time range of a task, shared by all tabs of its details."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal


class TimeRange(QObject):
    """Time range: start and end (ms since 1970), None for the whole task.

    `units` holds the units finished in the range, for lists whose rows have no time.
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.range: tuple[float, float] | None = None
        self.units: frozenset[str] = frozenset()

    def choose(self, start_ms: float, end_ms: float, units: frozenset[str] = frozenset()) -> None:
        """Select from `start_ms` to `end_ms`, inclusive."""
        chosen = (min(start_ms, end_ms), max(start_ms, end_ms))
        if (chosen, units) != (self.range, self.units):
            self.range, self.units = chosen, units
            self.changed.emit()

    def clear(self) -> None:
        """Remove the range."""
        if self.range is not None:
            self.range, self.units = None, frozenset()
            self.changed.emit()

    def holds(self, ts_ms: float) -> bool:
        return self.range is None or self.range[0] <= ts_ms <= self.range[1]

    def names(self, unit: str) -> bool:
        """Return whether this unit (a page's address, a command) finished in the range."""
        return self.range is None or unit in self.units
