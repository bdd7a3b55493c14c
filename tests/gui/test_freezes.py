"""The window tests' own guard: a blocking call fails, a slow or a crowded machine does not."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from tests.gui import freezes
from tests.gui.freezes import WAIT_MS, FreezeWatch, freeze, ready_ms
from tests.loop_monitor import Pulse

LATE = Pulse(beats=10, stall_ms=3 * WAIT_MS, busy_ms=10.0, busy_p99_ms=10.0)


def watched(slot: Callable[[FreezeWatch], object]) -> str:
    """What the watch tells of a loop in which `slot` runs once."""
    watch, loop = FreezeWatch(), QEventLoop()
    watch.start()
    QTimer.singleShot(0, lambda: slot(watch))
    QTimer.singleShot(20, loop.quit)
    loop.exec()
    return watch.stop()


def work_for(ms: float) -> None:
    until = time.thread_time() + ms / 1000
    while time.thread_time() < until:
        pass


def wait_for_rounds(watch: FreezeWatch) -> None:
    """A blocking call, which lasts for so many rounds of another thread."""
    until = watch.companion.rounds + 4
    while watch.companion.rounds < until:
        time.sleep(0.005)  # the blocking call itself


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little is a freeze already, on whatever machine."""
    monkeypatch.setattr(freezes, "WAIT_MS", 20.0)
    monkeypatch.setattr(freezes, "ready_ms", lambda: 0.0)  # a crowd is a test of its own


def test_a_loop_that_works_is_not_frozen(qapp: QApplication) -> None:
    assert watched(lambda _: work_for(50)) == ""


@pytest.mark.usefixtures("_soon")
def test_a_slot_that_waits_is_a_freeze(qapp: QApplication) -> None:
    assert watched(wait_for_rounds).startswith("the loop was waiting for ")


@pytest.mark.usefixtures("_soon")
def test_what_holds_up_every_thread_of_the_process_is_no_freeze(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freezes, "ROUND_S", 60.0)  # no round before the loop began, either

    def hold_up_all(watch: FreezeWatch) -> None:
        watch.companion.end()
        time.sleep(0.2)  # nothing of this process comes round

    assert watched(hold_up_all) == ""


@pytest.mark.skipif(ready_ms() is None, reason="this system does not tell who waits for whom")
def test_how_long_a_thread_stood_in_line_is_known() -> None:
    before = ready_ms()
    work_for(5)
    assert before is not None
    assert (ready_ms() or 0.0) >= before


def test_standing_in_line_for_a_processor_is_no_freeze() -> None:
    assert freeze(LATE, 3 * WAIT_MS, 0.0)
    assert not freeze(LATE, 3 * WAIT_MS, 2.5 * WAIT_MS)
    assert not freeze(LATE, 3 * WAIT_MS, None)


def test_work_is_no_blocking_call() -> None:
    assert not freeze(Pulse(10, 3 * WAIT_MS, 3 * WAIT_MS, 10.0), 3 * WAIT_MS, 0.0)
