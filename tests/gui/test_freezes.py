"""The window tests' own guard: real freezes fail, a slow or a crowded machine does not."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from tests.gui import freezes
from tests.gui.freezes import FREEZE_MS, PIECE_MS, WAIT_MS, FreezeWatch, ready_ms
from tests.loop_monitor import Pulse

QUIET = Pulse(beats=10, stall_ms=20.0, busy_ms=15.0, busy_p99_ms=15.0)


def watched(slot: Callable[[FreezeWatch], object]) -> list[str]:
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
    monkeypatch.setattr(freezes, "FREEZE_MS", 20.0)
    monkeypatch.setattr(freezes, "WAIT_MS", 20.0)
    monkeypatch.setattr(freezes, "piece_ms", lambda: PIECE_MS)
    monkeypatch.setattr(freezes, "_usual_piece_ms", lambda: PIECE_MS)
    monkeypatch.setattr(freezes, "ready_ms", lambda: 0.0)  # a crowd is a test of its own


def waited(told: list[str]) -> bool:
    return any(one.startswith("the loop was waiting for ") for one in told)


def test_a_loop_that_answers_is_not_frozen(qapp: QApplication) -> None:
    assert watched(lambda _: work_for(50)) == []


@pytest.mark.usefixtures("_soon")
def test_a_slot_that_works_for_too_long_is_a_freeze(qapp: QApplication) -> None:
    told = watched(lambda _: work_for(60))
    assert any(one.startswith("the loop was busy for ") for one in told)


@pytest.mark.usefixtures("_soon")
def test_a_slot_that_waits_is_a_freeze(qapp: QApplication) -> None:
    assert waited(watched(wait_for_rounds))


@pytest.mark.usefixtures("_soon")
def test_what_holds_up_every_thread_of_the_process_is_no_freeze(qapp: QApplication) -> None:
    def hold_up_all(watch: FreezeWatch) -> None:
        watch.companion.end()
        time.sleep(0.2)  # nothing of this process comes round

    assert not waited(watched(hold_up_all))


@pytest.mark.skipif(ready_ms() is None, reason="this system does not tell who waits for whom")
def test_how_long_a_thread_stood_in_line_is_known() -> None:
    before = ready_ms()
    work_for(5)
    assert before is not None
    assert (ready_ms() or 0.0) >= before


@pytest.mark.parametrize("took_ms", [FREEZE_MS, 3 * FREEZE_MS - 1])
def test_limits_scale_with_the_machine(took_ms: float, monkeypatch: pytest.MonkeyPatch) -> None:
    pulse = Pulse(beats=10, stall_ms=took_ms, busy_ms=took_ms, busy_p99_ms=took_ms)
    monkeypatch.setattr(freezes, "_usual_piece_ms", lambda: PIECE_MS)
    monkeypatch.setattr(freezes, "piece_ms", lambda: PIECE_MS)
    assert freezes.freezes(pulse, 0.0)
    monkeypatch.setattr(freezes, "piece_ms", lambda: 3 * PIECE_MS)
    assert not freezes.freezes(pulse, 0.0)


def test_what_other_machines_took_of_the_processors_is_no_freeze(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(freezes, "_usual_piece_ms", lambda: PIECE_MS)
    monkeypatch.setattr(freezes, "piece_ms", lambda: PIECE_MS)
    busy_ms = 1.5 * FREEZE_MS
    pulse = Pulse(beats=10, stall_ms=busy_ms, busy_ms=busy_ms, busy_p99_ms=busy_ms)
    assert freezes.freezes(pulse, 0.0)
    assert not freezes.freezes(pulse, 0.0, 0.6 * FREEZE_MS)


def test_what_other_machines_took_is_read_in_milliseconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freezes, "STAT", tmp_path / "stat")
    assert freezes.stolen_ms() == 0.0  # as on a system that does not tell
    (tmp_path / "stat").write_text("cpu  1 2 3 4 5 6 7 21 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
    assert freezes.stolen_ms() == 210.0


def test_standing_in_line_for_a_processor_is_no_freeze(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freezes, "_usual_piece_ms", lambda: PIECE_MS)
    monkeypatch.setattr(freezes, "piece_ms", lambda: PIECE_MS)
    late = Pulse(beats=10, stall_ms=3 * WAIT_MS, busy_ms=10.0, busy_p99_ms=10.0)
    assert freezes.freezes(late, 0.0)
    assert not freezes.freezes(late, 2.5 * WAIT_MS)
    assert not freezes.freezes(late, None)
    assert not freezes.freezes(QUIET, None)
