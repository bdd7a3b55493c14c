"""A list that is being read repaints now and then only, and always once it is read."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QObject
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QApplication, QWidget

from engine.service.feed import Batch
from gui.engine_link import subscription as calm_module
from gui.engine_link.subscription import SHARE, TELL_S, RepaintThrottle
from gui.tasks.task_model import TaskModel
from tests.gui.task_views import a_view

TOTAL = 5000
FAR_MS = 3_600_000  # no turn by itself while the test lasts


class Clock:
    """The time of day and of the processor, both at a standstill until the test moves them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.worked = 1000.0
        told = SimpleNamespace(monotonic=lambda: self.now, thread_time=lambda: self.worked)
        monkeypatch.setattr(calm_module, "time", told)


class Counted(QWidget):
    paints = 0
    told: Callable[[], object] = staticmethod(lambda: None)

    def paintEvent(self, event: QPaintEvent) -> None:
        self.paints += 1
        self.told()


def read(at: int) -> Batch:
    return Batch(loaded=at, total=TOTAL, complete=at == TOTAL)


def painted(qtbot: Any, owner: QObject) -> tuple[Counted, RepaintThrottle]:
    """A widget that has been painted, and what keeps it calm; its pause ends by hand only."""
    widget = Counted()
    calm = RepaintThrottle(lambda: (widget,), owner)
    calm._turn.setInterval(FAR_MS)
    qtbot.addWidget(widget)
    widget.show()
    qtbot.waitUntil(lambda: widget.paints > 0, timeout=60_000)
    return widget, calm


def test_parts_do_not_repaint_the_list_each_but_the_first_and_the_last_do(
    qapp: QApplication, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, owner = Clock(monkeypatch), QObject()
    widget, calm = painted(qtbot, owner)
    before = widget.paints
    calm.hear(read(100))
    shown = widget.paints
    assert shown > before
    for at in range(200, 300):
        calm.hear(read(at))
        widget.update()
        qapp.sendPostedEvents()
        qapp.processEvents()
    assert widget.paints == shown
    assert calm.may_tell()
    assert not calm.may_tell()
    clock.now += 2 * TELL_S
    assert calm.may_tell()
    calm.hear(read(TOTAL))
    assert calm.may_tell()
    qtbot.waitUntil(lambda: widget.paints > shown, timeout=60_000)


def test_after_a_paint_there_is_other_work_for_many_times_as_long(
    qapp: QApplication, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, owner = Clock(monkeypatch), QObject()
    widget, calm = painted(qtbot, owner)
    calm.hear(read(100))

    def work() -> None:
        clock.worked += 0.5  # so long a paint takes

    def turn(worked: float) -> int:
        """How often it is painted in a turn before which so much else was done."""
        clock.worked += worked
        before = widget.paints
        calm.hear(read(200))
        calm._turn.timeout.emit()
        for _ in range(3):
            qapp.processEvents()
        return widget.paints - before

    widget.told = work
    assert turn(0.0) == 1
    assert [turn(0.5) for _ in range(SHARE)] == [0] * (SHARE - 1) + [1]
    calm.hear(read(TOTAL))


def test_a_stalled_read_does_not_block_painting(qapp: QApplication, qtbot: Any) -> None:
    owner, widget = QObject(), Counted()
    calm = RepaintThrottle(lambda: (widget,), owner)
    qtbot.addWidget(widget)
    widget.show()
    calm.hear(read(100))
    assert not widget.updatesEnabled()
    qtbot.waitUntil(widget.updatesEnabled, timeout=60_000)


def test_what_is_painted_has_a_turn_of_the_loop_for_itself(qapp: QApplication, qtbot: Any) -> None:
    owner, widgets = QObject(), (Counted(), Counted())
    held: list[bool] = []
    painted: list[bool] = []  # were parts kept back while it was painted?

    def hold(more: bool) -> None:
        held.append(more)

    calm = RepaintThrottle(lambda: widgets, owner, hold)
    for widget in widgets:
        qtbot.addWidget(widget)
        widget.show()
    qtbot.waitUntil(lambda: all(widget.paints for widget in widgets), timeout=60_000)
    calm.hear(read(100))
    before = [widget.paints for widget in widgets]
    widgets[1].told = lambda: painted.append(bool(held) and held[-1])

    def both_painted() -> bool:
        calm.hear(read(200))
        return all(widget.paints > old for widget, old in zip(widgets, before, strict=True))

    qtbot.waitUntil(both_painted, timeout=60_000)
    assert painted
    assert all(painted)
    qtbot.waitUntil(lambda: not held[-1], timeout=60_000)
    calm.hear(read(TOTAL))


def test_a_read_that_stalls_tells_the_numbers_that_it_has(
    qtbot: Any, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    Clock(monkeypatch)  # at a standstill: all tasks come within a tenth of a second
    owner, widget, model = QObject(), Counted(), TaskModel()
    calm = RepaintThrottle(lambda: (widget,), owner)
    model.limit_counts(calm.may_tell)
    calm.ended.connect(model.tell_counts)
    told: list[int] = []
    model.shown_changed.connect(lambda shown, _: told.append(shown))
    qtbot.addWidget(widget)
    calm.hear(read(100))
    for number in range(1, 6):
        model.put_many([a_view(number)])
    assert told == [1]
    qtbot.waitUntil(lambda: told == [1, 5], timeout=60_000)
