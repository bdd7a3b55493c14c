"""Work in slices: when it pauses, ends, and is replaced."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from gui.engine_link.scheduling import SlicedWork


def steps(seen: list[int], number: int) -> Iterator[None]:
    for at in range(number):
        seen.append(at)
        yield


def test_without_a_budget_each_step_is_a_slice_and_the_end_is_told_once(qtbot: QtBot) -> None:
    parent, seen = QObject(), list[int]()
    work = SlicedWork(parent, budget_ms=0)
    with qtbot.waitSignals([work.paused] * 3 + [work.done], timeout=60_000):
        work.start(steps(seen, 3))
        assert not seen, "the first slice waits for the event loop"
    assert seen == [0, 1, 2]
    assert not work.is_active


def test_work_can_be_finished_at_once(qtbot: QtBot) -> None:
    parent, seen = QObject(), list[int]()
    work = SlicedWork(parent, budget_ms=0)
    work.start(steps(seen, 100))
    with qtbot.waitSignal(work.done, timeout=60_000), qtbot.assertNotEmitted(work.paused):
        work.finish()
    assert len(seen) == 100


def test_a_step_may_replace_the_work_that_it_belongs_to(qtbot: QtBot) -> None:
    parent, seen = QObject(), list[int]()
    work = SlicedWork(parent, budget_ms=1000)

    def replacing() -> Iterator[None]:
        work.start(steps(seen, 2))
        yield
        raise AssertionError("the replaced work went on")

    with qtbot.waitSignal(work.done, timeout=60_000):
        work.start(replacing())
    assert seen == [0, 1]


def test_cancelled_work_says_nothing(qtbot: QtBot) -> None:
    parent, seen = QObject(), list[int]()
    work = SlicedWork(parent, budget_ms=0)
    with qtbot.assertNotEmitted(work.done, wait=50):
        work.start(steps(seen, 3))
        work.cancel()
    assert not seen
