"""Scope of the next action: the selected tasks, or all that match the filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Signal

from engine.model.records import TaskRecord, TaskView, Unreadable
from engine.model.status import NEEDS_HELP, Standing, counted_as, standing
from engine.service.feed import Batch
from engine.service.rerun import STARTING, Copies, chance
from engine.service.stop_plan import REACHED, fate
from engine.text.words import count, task_name
from gui.engine_link.scheduling import SlicedWork, Throttle
from gui.tasks.task_model import TaskModel

_SLICE_MS = 2
_AT_ONCE = 300  # Tasks evaluated synchronously on a selection
_AGAIN_MS = 500  # Minimum interval in ms between counts of a filter selection

_ENDED = frozenset({Standing.COMPLETED, Standing.FAILED, Standing.CANCELLED})
# Its states, primary first; whether it can be cancelled, re-run, and waits for help.
Verdict = tuple[tuple[Standing, ...], bool, bool, bool]


@dataclass(frozen=True, slots=True)
class Counts:
    """Number of tasks by state, and by possible action.

    A task counts in each of its states (`counted_as`); `twice` counts tasks with two. A
    `repeatable` task starts unchanged in a re-run. `complete` is False while a large selection is
    evaluated and the numbers grow. Those `needing_help` are task runs in an UNKNOWN state.
    """

    total: int = 0
    cancellable: int = 0
    repeatable: int = 0
    ended: int = 0
    states: Mapping[Standing, int] = field(default_factory=dict)
    needing_help: int = 0
    twice: int = 0
    complete: bool = True


class Scope(QObject):
    """Explicit ids, or the filter (`matching`), resolved when used.

    `changed` reports other tasks or other `counts`. Evaluating 100,000 tasks takes too long for a
    slot, so it is done in slices and cached by record.
    """

    changed = Signal()

    def __init__(self, model: TaskModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._chosen: list[str] = []
        self._names: frozenset[str] = frozenset()
        self._matching = False
        self._other = False  # True when the tasks differ from the last `changed`
        self._may_change: Callable[[TaskView], bool] = lambda _: True
        self._remembers: Callable[[str], bool] = lambda _: False
        self._verdicts: dict[str, tuple[TaskRecord | Unreadable, Verdict]] = {}
        self._tally: Counter[Verdict] = Counter()
        self._copies = Copies()
        self._counts = Counts()
        self._work = SlicedWork(self, budget_ms=_SLICE_MS)
        self._work.paused.connect(self._tell)
        self._work.done.connect(self._tell)
        self._again = Throttle(self, _AGAIN_MS, self._judge_anew)

    # Tasks in scope

    @property
    def matching(self) -> bool:
        """True while the scope is the filter, including later matches."""
        return self._matching

    def __len__(self) -> int:
        return self._model.rowCount() if self._matching else len(self._chosen)

    def ids(self) -> list[str]:
        """Return the tasks in scope, from top to bottom."""
        return list(self._model.ids if self._matching else self._chosen)

    def views(self) -> list[TaskView]:
        """Return the latest views of the tasks in scope, without removed ones."""
        found = map(self._model.view_of, self.ids())
        return [view for view in found if view is not None]

    def describes(self) -> str:
        """Return a description of the scope for titles and bars."""
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
        """Set the scope to these tasks."""
        self._matching, self._chosen = False, list(ids)
        self._names, self._other = frozenset(self._chosen), True
        if len(self._chosen) <= _AT_ONCE:
            self._verdicts.clear()  # Cached only while evaluation is slow
        self._judge_anew()

    def choose_matching(self) -> None:
        """Set the scope to all tasks that match the filter, until another selection."""
        self._matching, self._chosen, self._names = True, [], frozenset()
        self._other = True
        self._judge_anew()

    def ask_leave(self, may_change: Callable[[TaskView], bool]) -> None:
        """Set the predicate for tasks that may be modified."""
        self._may_change = may_change
        self._verdicts.clear()
        self._other = True
        self._judge_anew()

    def ask_memory(self, remembers: Callable[[str], bool]) -> None:
        """Set the predicate for tasks whose complete request is kept."""
        self._remembers = remembers

    def may_change(self, view: TaskView | None) -> bool:
        return view is not None and self._may_change(view)

    def hear(self, batch: Batch) -> None:
        """Evaluate the tasks again that the batch changes."""
        for task_id in batch.gone:
            self._verdicts.pop(task_id, None)
        if self._matching:
            changed = bool(batch.views or batch.gone)
        else:
            changed = bool(self._names) and batch.tells_of(self._names)
        if changed:
            self.refresh()

    def refresh(self) -> None:
        """Evaluate the tasks again, also after a change of the list that no batch reports."""
        if self._again.is_pending:
            return
        if len(self) <= _AT_ONCE:
            self._judge_anew()
        else:
            self._again.request()

    # Counts

    def _judge_anew(self) -> None:
        self._again.cancel()
        self._tally.clear()
        self._copies = Copies()
        ids = self.ids()
        self._work.start(self._judge(ids))
        if len(ids) <= _AT_ONCE:
            self._work.finish()
        else:
            self._work.advance()

    def _judge(self, ids: list[str]) -> Iterator[None]:
        for number, task_id in enumerate(ids, 1):
            view = self._model.view_of(task_id)
            if view is not None:
                verdict = self._verdict(view)
                self._tally[verdict] += 1
                if verdict[2] and self._model.facets.ledgers:
                    self._copies.note(view)
            if number % 32 == 0:
                yield

    def _verdict(self, view: TaskView) -> Verdict:
        state, entry = standing(view), view.entry
        known = self._verdicts.get(view.task_id)
        if known is not None and known[0] is entry and known[1][0][0] is state:
            return known[1]
        starts = chance(view, self._remembers)[0] in STARTING
        cancellable = fate(view) in REACHED and self._may_change(view)
        helps = state is Standing.UNKNOWN and getattr(entry, "status", "") == NEEDS_HELP
        verdict = (counted_as(view, state), cancellable, starts, helps)
        self._verdicts[view.task_id] = (entry, verdict)
        return verdict

    def _tell(self) -> None:
        counts = _summed(self._tally, len(self), self._copies, complete=not self._work.is_active)
        if not counts.complete and counts.total == self._counts.total and not self._other:
            return  # Partial counts of the same tasks would only flicker
        other, self._other = self._other, False
        if other or counts != self._counts:
            self._counts = counts
            self.changed.emit()


def _summed(tally: Mapping[Verdict, int], total: int, copies: Copies, *, complete: bool) -> Counts:
    states: Counter[Standing] = Counter()
    ended = 0
    for (counted, *_), number in tally.items():
        states.update(dict.fromkeys(counted, number))
        ended += number if counted[0] in _ENDED else 0
    return Counts(
        total=total,
        cancellable=sum(number for (_, yes, *_), number in tally.items() if yes),
        repeatable=sum(number for (_, _, yes, _), number in tally.items() if yes) - copies.number,
        ended=ended,
        states=dict(states),
        needing_help=sum(number for (*_, yes), number in tally.items() if yes),
        twice=sum(number for (counted, *_), number in tally.items() if len(counted) > 1),
        complete=complete,
    )
