"""Throttle and debounce: many requests become one call."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, QTimer, Signal


class _DelayedCall(QObject):
    """A call that is pending until its timer ends; Qt holds `call` as weakly as a slot."""

    _due = Signal()

    def __init__(
        self, parent: QObject | None, interval_ms: int, call: Callable[[], object]
    ) -> None:
        super().__init__(parent)
        self.interval_ms = interval_ms
        self._ran_at = float("-inf")
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self.run)
        self._due.connect(call)

    @property
    def is_pending(self) -> bool:
        """True from a request to the call."""
        return self._timer.isActive()

    def request(self, *_: object) -> None:
        """Request the call; the arguments of a signal are ignored."""
        raise NotImplementedError

    def expedite(self, *_: object) -> None:
        """Call in the next turn of the event loop, whatever the interval."""
        self._timer.start(0)

    def cancel(self) -> None:
        """Drop a pending call."""
        self._timer.stop()

    def flush(self) -> None:
        """Make a pending call now."""
        if self.is_pending:
            self.run()

    def run(self) -> None:
        """Call now, instead of later if a call is pending."""
        self._timer.stop()
        self._ran_at = time.monotonic()
        self._due.emit()


class Throttle(_DelayedCall):
    """Call once for all requests within `interval_ms` of the first.

    A `leading` throttle measures the interval from the last call, so that the first request does
    not wait for more than the next turn of the event loop.
    """

    def __init__(
        self,
        parent: QObject | None,
        interval_ms: int,
        call: Callable[[], object],
        *,
        leading: bool = False,
    ) -> None:
        super().__init__(parent, interval_ms, call)
        self._leading = leading
        if leading:  # The interval is a rate, which a coarse timer would lower
            self._timer.setTimerType(Qt.TimerType.PreciseTimer)

    def request(self, *_: object) -> None:
        """Request the call, unless one is pending."""
        if not self.is_pending:
            passed_ms = (time.monotonic() - self._ran_at) * 1000 if self._leading else 0
            self._timer.start(round(max(0, self.interval_ms - passed_ms)))


class Debounce(_DelayedCall):
    """Call once requests have paused for `interval_ms`."""

    def request(self, *_: object) -> None:
        """Request the call; the pause begins anew."""
        self._timer.start(self.interval_ms)
