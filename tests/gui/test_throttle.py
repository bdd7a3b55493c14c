"""Many requests become one call."""

from __future__ import annotations

from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from gui.engine_link.scheduling import Debounce, Throttle

LONG_MS, WAIT_MS = 3_600_000, 60_000


class _Calls(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    def call(self) -> None:
        self.number += 1


def test_a_throttle_calls_once_for_many_requests(qtbot: QtBot) -> None:
    calls = _Calls()
    throttle = Throttle(calls, 1, calls.call)
    for _ in range(20):
        throttle.request()
    assert (calls.number, throttle.is_pending) == (0, True)
    qtbot.waitUntil(lambda: calls.number > 0, timeout=WAIT_MS)
    assert (calls.number, throttle.is_pending) == (1, False)


def test_a_leading_throttle_delays_the_second_call_only(qtbot: QtBot) -> None:
    calls = _Calls()
    throttle = Throttle(calls, LONG_MS, calls.call, leading=True)
    throttle.request()
    qtbot.waitUntil(lambda: calls.number == 1, timeout=WAIT_MS)
    throttle.request()
    qtbot.wait(20)
    assert (calls.number, throttle.is_pending) == (1, True)


def test_only_debounce_is_postponed_by_further_requests(qtbot: QtBot) -> None:
    throttled, debounced = _Calls(), _Calls()
    throttle = Throttle(throttled, LONG_MS, throttled.call)
    debounce = Debounce(debounced, LONG_MS, debounced.call)
    for each in (throttle, debounce):
        each.request()
        each.interval_ms = 1
        each.request()
    qtbot.waitUntil(lambda: debounced.number == 1, timeout=WAIT_MS)
    assert throttled.number == 0
    throttle.expedite()
    qtbot.waitUntil(lambda: throttled.number == 1, timeout=WAIT_MS)


def test_a_pending_call_is_made_at_once_or_dropped() -> None:
    calls = _Calls()
    debounce = Debounce(calls, LONG_MS, calls.call)
    debounce.flush()
    assert calls.number == 0  # Nothing was requested
    debounce.request("a signal's argument")
    debounce.flush()
    assert (calls.number, debounce.is_pending) == (1, False)
    debounce.request()
    debounce.cancel()
    debounce.flush()
    assert calls.number == 1
    debounce.run()
    assert calls.number == 2


def test_a_call_does_not_keep_its_object_alive() -> None:
    calls = _Calls()
    gone: list[bool] = []
    calls.destroyed.connect(lambda: gone.append(True))
    debounce = Debounce(None, LONG_MS, calls.call)
    del calls
    assert gone
    debounce.run()  # Without a receiver nothing happens
