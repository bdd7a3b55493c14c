"""Qt platform, and asyncio event loop on Qt's with precise timers and cheap callbacks.

qasync provides sockets, subprocesses and `exec()`. Callbacks and timers are handled here, because
qasync makes one coarse Qt timer for each: up to 5 % early, about 80 us per callback, and unable to
wait without limit.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import math
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import qasync
from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtWidgets import QApplication

from engine.model.errors import EngineError
from engine.service.router.isolated_executor import Lanes

INVISIBLE: Final = "offscreen"  # Qt's platform that draws in memory only


class NoScreen(EngineError):
    """A screen is configured, but no window can be shown there."""

    code = "window_without_screen"
    title = "There is no screen for the window"
    sentence = "No window can be shown: Qt cannot use the screen that is spoken of ({wanted})."
    advice_text = (
        "Check WAYLAND_DISPLAY, DISPLAY and QT_QPA_PLATFORM, and install what Qt needs "
        "(./dev setup does). `octask` needs no screen."
    )


def wanted_screens(environ: Mapping[str, str], platform: str) -> tuple[str, ...]:
    """Return Qt's platform names for the environment, best first."""
    if not platform.startswith("linux"):
        return ()
    if given := environ.get("QT_QPA_PLATFORM"):
        return tuple(given.split(";"))
    known = (("wayland", "WAYLAND_DISPLAY"), ("xcb", "DISPLAY"))
    return tuple(name for name, variable in known if environ.get(variable))


def platform_for(environ: Mapping[str, str], platform: str) -> dict[str, str]:
    """Return the Qt platform variable: invisible without a screen, else as fallback.

    Without a fallback Qt ends the process without a message when all platforms fail; `check_screen`
    reports it instead.
    """
    wanted = wanted_screens(environ, platform)
    if not platform.startswith("linux") or _invisible(wanted):
        return {}
    return {"QT_QPA_PLATFORM": ";".join([*wanted, INVISIBLE])}


def check_screen(wanted: Sequence[str], drawn_on: str) -> None:
    """Raise NoScreen if the window would be invisible against the configuration."""
    if wanted and drawn_on == INVISIBLE and not _invisible(wanted):
        raise NoScreen(wanted=", ".join(wanted))


def _invisible(wanted: Sequence[str]) -> bool:
    return any(name.split(":")[0] == INVISIBLE for name in wanted)


os.environ["QT_API"] = "pyside6"  # Set before qasync chooses a binding

T = TypeVar("T")

IO_THREADS = 4
SLICE_S = 0.008  # Longest run of callbacks before Qt may paint and handle input
LONGEST_SLEEP_MS = 24 * 3600 * 1000  # A Qt timer counts in 31 bits of ms; later timers are re-armed
# Qt releases the GIL between painted cells: next to a reading thread each cell would wait for the
# switch interval (5 ms; 20 to 150 ms for a table).
SWITCH_S = 0.0005
STALE_TIMERS = 100  # Cancelled timers kept before the heap is rebuilt
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM) + (
    # The terminal was closed, unless the signal was ignored at the start (nohup).
    (signal.SIGHUP,)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    else ()
)
PRECISE = 0  # Qt.TimerType.PreciseTimer, whose import costs the first paint 45 ms
PYTHON_TURN_MS = 200  # Windows: interval at which Python can handle a signal


class _Alarm(QObject):
    """Two Qt timers and a thread-safe signal, all connected to `wake`."""

    rung = Signal()

    def __init__(self, wake: Callable[[], None]) -> None:
        super().__init__()
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._later = QTimer(self, singleShot=True)
        self._later.setProperty("timerType", PRECISE)
        self._soon.timeout.connect(wake)
        self._later.timeout.connect(wake)
        self.rung.connect(self._soon.start)  # Queued when emitted on another thread

    def soon(self) -> None:
        if not self._soon.isActive():
            self._soon.start()

    def after(self, delay_ms: int) -> None:
        self._later.start(delay_ms)

    def silence(self) -> None:
        self._soon.stop()
        self._later.stop()


class Loop(qasync.QEventLoop):  # type: ignore[misc]  # qasync has no types
    """asyncio event loop on Qt: callbacks in order, timers never early."""

    def __init__(self, app: QApplication) -> None:
        self._callbacks: deque[asyncio.Handle] = deque()
        self._timers: list[asyncio.TimerHandle] = []
        self._stale = 0
        self._alarm = _Alarm(self._turn)
        super().__init__(app)
        self.set_default_executor(Lanes(IO_THREADS, thread_name_prefix="oc-io"))

    # asyncio interface

    def call_soon(
        self,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """Run `callback` in one of the next turns, in call order."""
        self._check_closed()
        handle = asyncio.Handle(callback, args, self, context=context)
        self._add_callback(handle)
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run `callback` after at least `delay` seconds; `inf` waits for ever."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run `callback` at or shortly after `when` (seconds of `time()`), never before."""
        self._check_closed()
        handle = asyncio.TimerHandle(when, callback, args, self, context=context)
        heapq.heappush(self._timers, handle)
        handle._scheduled = True  # type: ignore[attr-defined]  # then asyncio reports a cancellation
        if self._timers[0] is handle:
            self._arm()
        return handle

    def call_soon_threadsafe(
        self,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """Run `callback` on the loop's thread.

        Raises: RuntimeError: the loop is closed (qasync would drop the call silently).
        """
        self._check_closed()
        handle = asyncio.Handle(callback, args, self, context=context)
        self._callbacks.append(handle)
        self._alarm.rung.emit()
        return handle

    def time(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        """Free all callbacks and timers; later calls raise `RuntimeError`."""
        self._alarm.silence()
        super().close()
        self._callbacks.clear()
        self._timers.clear()

    # Qt interface

    def run_forever(self) -> int:
        self._alarm.soon()  # Callbacks may be queued before the loop runs
        usual = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S)
        # Qt's loop begins by dropping the requests to quit that were posted before it.
        QApplication.sendPostedEvents(QApplication.instance(), QEvent.Type.Quit.value)
        try:
            return int(super().run_forever())
        finally:
            sys.setswitchinterval(usual)

    def run_until_complete(self, future: asyncio.Future[T] | Coroutine[Any, Any, T]) -> T:
        """Run until `future` is done.

        qasync processes events once more after it has unset the running loop, which runs tasks
        outside of any loop (its issue 176); this method does not.

        Raises: RuntimeError: Qt's loop ended before the future did.
        """
        work: asyncio.Future[T] = asyncio.ensure_future(future, loop=self)
        ended = _stopper(self)
        work.add_done_callback(ended)
        try:
            self.run_forever()
        finally:
            work.remove_done_callback(ended)
        if not work.done():
            raise RuntimeError("Event loop stopped before Future completed.")
        return work.result()

    def _add_callback(self, handle: asyncio.Handle, delay: float = 0) -> asyncio.Handle:
        # asyncio adds signal callbacks here, and qasync its sockets.
        if delay > 0:
            return self.call_later(delay, handle._run)
        self._callbacks.append(handle)
        self._alarm.soon()
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        self._stale += 1
        if self._stale > STALE_TIMERS and self._stale * 2 > len(self._timers):
            self._timers = [timer for timer in self._timers if not timer.cancelled()]
            heapq.heapify(self._timers)
            self._stale = 0

    def _turn(self) -> None:
        """Run due timers and the callbacks queued before this turn, for one slice."""
        if not self.is_running():
            return
        now = self.time()
        self._collect_due(now)
        for _ in range(len(self._callbacks)):
            handle = self._callbacks.popleft()
            if not handle.cancelled():
                handle._run()
            if not self.is_running() or self.time() - now > SLICE_S:
                break
        if self._callbacks:
            self._alarm.soon()
        self._arm()

    def _collect_due(self, now: float) -> None:
        while self._timers and (self._timers[0].cancelled() or self._timers[0].when() <= now):
            timer = heapq.heappop(self._timers)
            timer._scheduled = False  # type: ignore[attr-defined]  # as asyncio's own loop does
            if timer.cancelled():
                self._stale = max(0, self._stale - 1)
            else:
                self._callbacks.append(timer)

    def _arm(self) -> None:
        if self._timers:
            wait_s = min(self._timers[0].when() - self.time(), LONGEST_SLEEP_MS / 1000)
            self._alarm.after(max(0, math.ceil(wait_s * 1000)))


def _stopper(loop: Loop) -> Callable[[object], None]:
    return lambda _: loop.stop()


def run(app: QApplication, main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end on a new loop; its `finally` blocks always finish.

    This also holds when Qt quits, and for SIGINT, SIGTERM and SIGHUP, which cancel `main`.

    Raises: asyncio.CancelledError: `main` was cancelled from outside and did not catch it.
    """
    app.setQuitOnLastWindowClosed(False)
    loop = Loop(app)
    asyncio.set_event_loop(loop)
    try:
        with loop:
            work: asyncio.Task[T] = loop.create_task(main, name="main")
            ended = _stopper(loop)
            work.add_done_callback(ended)
            with _cancelled_by_signals(loop, work):
                loop.run_forever()  # Returns also when Qt quits
                work.remove_done_callback(ended)
                if not work.done():
                    work.cancel()
                loop.run_until_complete(asyncio.wait([work]))
                loop.run_until_complete(_cancel_the_rest())
                loop.run_until_complete(loop.shutdown_asyncgens())
            return work.result()
    finally:
        asyncio.set_event_loop(None)


async def _cancel_the_rest() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)


@contextmanager
def _cancelled_by_signals(loop: Loop, work: asyncio.Task[Any]) -> Iterator[None]:
    """Cancel `work` on SIGINT and SIGTERM inside the block."""
    # The annotation keeps mypy from narrowing to the current platform.
    windows: bool = os.name == "nt"
    old = [(name, signal.getsignal(name)) for name in ENDING_SIGNALS]
    turn = QTimer(interval=PYTHON_TURN_MS)
    turn.timeout.connect(_let_python_look)
    for name in ENDING_SIGNALS:
        if windows:
            signal.signal(name, lambda *_: loop.call_soon_threadsafe(work.cancel))
        else:
            loop.add_signal_handler(name, work.cancel)
    if windows:
        turn.start()
    try:
        yield
    finally:
        turn.stop()
        for name, handler in old:
            if not windows:
                loop.remove_signal_handler(name)
            signal.signal(name, handler)


def _let_python_look() -> None:
    """Do nothing; Python handles pending signals whenever it runs."""
