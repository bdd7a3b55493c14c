"""Background tasks with one owner, long work on the event loop in slices, throttles."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal


class TaskSet:
    """Set of background tasks that all end with `close`."""

    def __init__(self, report: Callable[[Exception], None]) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._report = report
        self._closed = False

    def spawn(self, work: Coroutine[Any, Any, object], *, name: str) -> None:
        """Start `work`; a failure is passed to `report` immediately."""
        if self._closed:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(self._guard(work), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A task cancelled before its first step leaves the coroutine unclosed.
        task.add_done_callback(lambda _: work.close())

    def cancel(self, name: str) -> None:
        for task in self._tasks:
            if task.get_name() == name:
                task.cancel()

    async def close(self) -> None:
        """Cancel all tasks and wait for their cleanup."""
        self._closed = True
        pending = list(self._tasks)  # The set changes while tasks end
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    async def _guard(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - every failure is reported
            self._report(error)


class SlicedWork(QObject):
    """Run the steps of an iterator in slices of `budget_ms`, `pause_ms` apart.

    The clock is read after each step. `paused` is emitted after a slice that leaves work, `done`
    after the last step. A budget of 0 makes each step a slice.
    """

    paused = Signal()
    done = Signal()

    def __init__(self, parent: QObject, *, budget_ms: float, pause_ms: int = 0) -> None:
        super().__init__(parent)
        self.slices = 0  # Number of slices since the last start
        self._budget_s = budget_ms / 1000
        self._steps: Iterator[object] | None = None
        self._timer = QTimer(self, interval=pause_ms)
        self._timer.timeout.connect(self.advance)

    @property
    def is_active(self) -> bool:
        """True until the last step, or until the work is cancelled."""
        return self._steps is not None

    def start(self, steps: Iterator[object]) -> None:
        """Replace the current work by `steps`, whose first slice runs after a pause."""
        self._steps, self.slices = steps, 0
        self._timer.start()

    def cancel(self) -> None:
        """Drop the remaining steps, without a signal."""
        self._timer.stop()
        self._steps = None

    def advance(self) -> None:
        """Run one slice now."""
        self._run(time.perf_counter() + self._budget_s)

    def finish(self) -> None:
        """Run all remaining steps now."""
        self._run(float("inf"))

    def _run(self, until: float) -> None:
        steps = self._steps
        if steps is None:
            return
        self.slices += 1
        for _ in steps:
            if self._steps is not steps:  # A step cancelled or replaced the work
                return
            if time.perf_counter() >= until:
                self.paused.emit()
                return
        if self._steps is steps:
            self.cancel()
            self.done.emit()


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
        raise NotImplementedError  # no ABC: a QObject has a metaclass of its own

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
            from PySide6.QtCore import Qt  # Takes 45 ms, which the first paint does not need

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
