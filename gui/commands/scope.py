"""What the next act is about: the chosen tasks, or all that pass the filter when it happens."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, QTimer, Signal

from engine.model.records import TaskRecord, TaskView, Unreadable
from engine.model.status import Standing, counted_as, standing
from engine.service.feed import Batch
from engine.service.rerun import STARTING, Copies, chance
from engine.service.stop_many import REACHED, fate
from engine.text.words import count, task_name
from gui.tasks.task_model import TaskModel

_SLICE_S = 0.002
_AT_ONCE = 300  # so many are judged in the turn in which they are chosen
_AGAIN_MS = 500  # what the filter lets through is counted anew at most so often

_ENDED = frozenset({Standing.COMPLETED, Standing.FAILED, Standing.CANCELLED})
# The states it counts in, its own first; can be cancelled; can be run again as it was.
Verdict = tuple[tuple[Standing, ...], bool, bool]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many tasks, of which states, and what could be done with how many of them.

    A task counts in each of its states (`counted_as`), `twice` says how many have two. What is
    `repeatable` starts as it was, as the dry run of a re-run says, too.
    `complete` is False while a great many are still being judged: the numbers then grow.
    """

    total: int = 0
    cancellable: int = 0
    repeatable: int = 0
    ended: int = 0
    states: Mapping[Standing, int] = field(default_factory=dict)
    twice: int = 0
    complete: bool = True


class Scope(QObject):
    """Explicit ids, or the filter itself (`matching`): ids at the moment of use, never before.

    `changed` says that other tasks are meant or that `counts` differ. Judging 100,000 tasks
    takes longer than a slot may: it is done in slices, and kept for each record.
    """

    changed = Signal()

    def __init__(self, model: TaskModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._chosen: list[str] = []
        self._names: frozenset[str] = frozenset()
        self._matching = False
        self._other = False  # other tasks than when `changed` was last told
        self._may_change: Callable[[TaskView], bool] = lambda _: True
        self._remembers: Callable[[str], bool] = lambda _: False
        self._verdicts: dict[str, tuple[TaskRecord | Unreadable, Verdict]] = {}
        self._tally: Counter[Verdict] = Counter()
        self._copies = Copies()
        self._counts = Counts()
        self._left: Iterator[str] | None = None
        self._slices = QTimer(self, interval=0)
        self._slices.timeout.connect(self._judge_more)
        self._again = QTimer(self, singleShot=True, interval=_AGAIN_MS)
        self._again.timeout.connect(self._judge_anew)

    # what is meant

    @property
    def matching(self) -> bool:
        """Is the filter itself meant, and so also what will pass it later?"""
        return self._matching

    def __len__(self) -> int:
        return self._model.rowCount() if self._matching else len(self._chosen)

    def ids(self) -> list[str]:
        """The tasks meant now, from top to bottom."""
        return list(self._model.ids if self._matching else self._chosen)

    def views(self) -> list[TaskView]:
        """The newest word about each of them; what is gone meanwhile is left out."""
        found = map(self._model.view_of, self.ids())
        return [view for view in found if view is not None]

    def describes(self) -> str:
        """Whom an act would meet, as a title of a question or of a bar says it."""
        number = len(self)
        if not number:
            return self.tr("No task")
        if number == 1:
            view = self._model.view_of(self.ids()[0])
            return task_name(view) if view is not None else self.tr("1 task")
        if not self._matching:
            return self.tr("{0} selected tasks").format(count(number))
        if not self._model.is_filtered:
            return self.tr("All {0} tasks").format(count(number))
        return self.tr("All {0} tasks that match the filter").format(count(number))

    @property
    def counts(self) -> Counts:
        return self._counts

    def choose(self, ids: Iterable[str]) -> None:
        """These tasks are meant now, and no others."""
        self._matching, self._chosen = False, list(ids)
        self._names, self._other = frozenset(self._chosen), True
        if len(self._chosen) <= _AT_ONCE:
            self._verdicts.clear()  # kept only where judging takes a while
        self._judge_anew()

    def choose_matching(self) -> None:
        """Whatever passes the filter is meant, until something else is chosen."""
        self._matching, self._chosen, self._names = True, [], frozenset()
        self._other = True
        self._judge_anew()

    def ask_leave(self, may_change: Callable[[TaskView], bool]) -> None:
        """From now on `may_change` says about which tasks anything may be written."""
        self._may_change = may_change
        self._verdicts.clear()
        self._other = True
        self._judge_anew()

    def ask_memory(self, remembers: Callable[[str], bool]) -> None:
        """From now on `remembers` tells which requests are known whole, secrets included."""
        self._remembers = remembers

    def may_change(self, view: TaskView | None) -> bool:
        """May anything be written about this task?"""
        return view is not None and self._may_change(view)

    def hear(self, batch: Batch) -> None:
        """Judge anew what the batch changes."""
        for task_id in batch.gone:
            self._verdicts.pop(task_id, None)
        if self._matching:
            changed = bool(batch.views or batch.gone)
        else:
            changed = bool(self._names) and batch.tells_of(self._names)
        if not changed or self._again.isActive():
            return
        if len(self) <= _AT_ONCE:
            self._judge_anew()
        else:
            self._again.start()

    # how many are what

    def _judge_anew(self) -> None:
        self._again.stop()
        self._tally.clear()
        self._copies = Copies()
        ids = self.ids()
        self._left = iter(ids)
        if len(ids) <= _AT_ONCE:
            self._judge(float("inf"))
        else:
            self._judge_more()

    def _judge_more(self) -> None:
        self._judge(time.perf_counter() + _SLICE_S)

    def _judge(self, until: float) -> None:
        left = self._left
        assert left is not None
        for number, task_id in enumerate(left, 1):
            view = self._model.view_of(task_id)
            if view is not None:
                verdict = self._verdict(view)
                self._tally[verdict] += 1
                if verdict[2] and self._model.facets.ledgers:
                    self._copies.note(view)
            if number % 32 == 0 and time.perf_counter() >= until:
                self._slices.start()
                break
        else:
            self._slices.stop()
            self._left = None
        self._tell()

    def _verdict(self, view: TaskView) -> Verdict:
        state, entry = standing(view), view.entry
        known = self._verdicts.get(view.task_id)
        if known is not None and known[0] is entry and known[1][0][0] is state:
            return known[1]
        starts = chance(view, self._remembers)[0] in STARTING
        cancellable = fate(view) in REACHED and self._may_change(view)
        verdict = (counted_as(view, state), cancellable, starts)
        self._verdicts[view.task_id] = (entry, verdict)
        return verdict

    def _tell(self) -> None:
        counts = _summed(self._tally, len(self), self._copies, complete=self._left is None)
        if not counts.complete and counts.total == self._counts.total and not self._other:
            return  # half-counted news of the same tasks would only flicker
        other, self._other = self._other, False
        if other or counts != self._counts:
            self._counts = counts
            self.changed.emit()


def _summed(tally: Mapping[Verdict, int], total: int, copies: Copies, *, complete: bool) -> Counts:
    states: Counter[Standing] = Counter()
    ended = 0
    for (counted, _, _), number in tally.items():
        states.update(dict.fromkeys(counted, number))
        ended += number if counted[0] in _ENDED else 0
    return Counts(
        total=total,
        cancellable=sum(number for (_, yes, _), number in tally.items() if yes),
        repeatable=sum(number for (_, _, yes), number in tally.items() if yes) - copies.number,
        ended=ended,
        states=dict(states),
        twice=sum(number for (counted, _, _), number in tally.items() if len(counted) > 1),
        complete=complete,
    )
