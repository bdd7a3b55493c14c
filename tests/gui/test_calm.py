"""A list that is being read repaints now and then only, and always once it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QApplication, QWidget

from engine.feed import Batch
from gui.calm import Calm

TOTAL = 5000


class Counted(QWidget):
    paints = 0
    told: Callable[[], object] = staticmethod(lambda: None)

    def paintEvent(self, event: QPaintEvent) -> None:
        self.paints += 1
        self.told()


def read(at: int) -> Batch:
    return Batch(loaded=at, total=TOTAL, complete=at == TOTAL)


def test_parts_do_not_repaint_the_list_each_but_the_first_and_the_last_do(
    qapp: QApplication, qtbot: Any
) -> None:
    owner, widget = QObject(), Counted()
    calm = Calm(lambda: (widget,), owner)
    qtbot.addWidget(widget)
    widget.show()
    qtbot.waitUntil(lambda: widget.paints > 0, timeout=60_000)
    calm.hear(read(100))
    shown = widget.paints
    for at in range(200, 300):
        calm.hear(read(at))
        widget.update()
        qapp.sendPostedEvents()
        qapp.processEvents()
    assert widget.paints - shown < 50
    assert calm.may_tell()
    assert not calm.may_tell()
    told = widget.paints
    calm.hear(read(TOTAL))
    assert calm.may_tell()
    qtbot.waitUntil(lambda: widget.paints > told, timeout=60_000)


def test_a_reading_that_stands_still_keeps_nothing_from_being_painted(
    qapp: QApplication, qtbot: Any
) -> None:
    owner, widget = QObject(), Counted()
    calm = Calm(lambda: (widget,), owner)
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

    calm = Calm(lambda: widgets, owner, hold)
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
