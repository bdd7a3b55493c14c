"""Which tasks are selected, and whether any of them could still be cancelled."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine.feed import Batch
from engine.records import TaskView
from gui.dialogs.cancel import can_be_cancelled


class Selection:
    """The selection may be the whole list: what a batch does not name is not judged again."""

    def __init__(self, view_of: Callable[[str], TaskView | None]) -> None:
        self._view_of = view_of
        self._ids: frozenset[str] = frozenset()
        self._stoppable: set[str] = set()

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def can_be_cancelled(self) -> bool:
        return bool(self._stoppable)

    def choose(self, ids: Iterable[str]) -> None:
        """These are selected now, and no others."""
        self._ids = frozenset(ids)
        self._stoppable = {one for one in self._ids if can_be_cancelled(self._view_of(one))}

    def hear(self, batch: Batch) -> None:
        """Judge anew what the batch names."""
        self._stoppable.difference_update(batch.gone)
        for view in batch.views:
            if view.task_id in self._ids:
                change = self._stoppable.add if can_be_cancelled(view) else self._stoppable.discard
                change(view.task_id)
