"""A list of tasks by a clock that the test sets."""

from __future__ import annotations

from gui.tasks.task_model import TaskModel
from tests.gui.task_views import NOW


class Clock:
    """Milliseconds since 1970, at a standstill until the test moves `now_ms`."""

    def __init__(self) -> None:
        self.now_ms = NOW

    def __call__(self) -> float:
        return self.now_ms


def ids(model: TaskModel) -> list[str]:
    """The tasks that the list shows, from the top."""
    return [model.id_at(row) for row in range(model.rowCount())]
