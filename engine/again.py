"""What a task was asked to do, where that is known whole: to ask it once more.

Source: the ledger keeps a request only if nothing in it had to be hidden; a repeated task
that silently lacks a password would be another task.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from engine.admission import NO_TERMS, Terms
from engine.errors import EngineError
from engine.ledger_ids import plain_id
from engine.records import ENVELOPE, TASK_RUN, TaskId, TaskRecord, TaskView
from engine.redact import MARK
from engine.run.kinds import KINDS

STARTABLE: Final = frozenset({*KINDS, ENVELOPE})


class CannotRepeat(EngineError):
    """A task's request is not known whole, so the same task cannot be started again."""

    code = "cannot_repeat"
    title = "The task cannot be repeated as it was"
    sentence = "Task {task_id} cannot be repeated: {reason}."
    advice_text = "Start it anew with `octask start {kind}` and give what is missing."

    def __init__(self, record: TaskRecord, reason: str) -> None:
        super().__init__(task_id=record.task_id, kind=record.kind, reason=reason)


class RequestHidden(CannotRepeat):
    """Something in the request was secret and was not written down."""

    code = "request_hidden"


class RequestCut(CannotRepeat):
    """The request was too long to be kept."""

    code = "request_cut"


class RequestUnknown(CannotRepeat):
    """Another program made the task; of its request there is a summary only."""

    code = "request_unknown"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it was made: what `start` takes."""

    kind: str
    args: dict[str, Any]
    name: str | None = None
    terms: Terms = NO_TERMS


def asked(record: TaskRecord, contract: Mapping[str, Any] | None = None) -> Asked:
    """What this task was asked to do; `contract` are the terms of the one that it carries.

    Raises:
        RequestHidden, RequestCut, RequestUnknown: it is not known whole.
    """
    engine = record.engine
    if engine is None or engine.host is None:
        raise RequestUnknown(record, "another program made it and kept only a summary")
    args = record.args_summary if engine.args is None else engine.args
    if engine.withheld or holds_mark([args, record.policy, record.objective, engine.metadata]):
        raise RequestHidden(record, "something in it was secret and was not written down")
    if args.get("_truncated") is True:
        raise RequestCut(record, "its arguments were too long to be kept")
    if record.kind == "commands" and engine.metadata is not None:
        args = {**args, "metadata": engine.metadata}  # it is a part of the task's own document
    if record.kind == ENVELOPE:
        args = {}  # the rest of its summary is what became of it
    terms = Terms(
        objective=record.objective,
        phase=_first_phase(record),
        policy=record.policy,
        enforce=engine.enforce,
        contract=contract,
        metadata=engine.metadata,
    )
    return Asked(record.kind, dict(args), engine.name, terms)


def known(record: TaskRecord) -> Asked:
    """As much of a request as the record tells, for a person to complete.

    What was taken out as secret is left out whole: its mark must never be typed into a page.
    """
    engine = record.engine
    whole = engine.args if engine is not None and engine.args is not None else record.args_summary
    cut = whole.get("_truncated") is True
    args = {} if cut else {name: given for name, given in whole.items() if not holds_mark(given)}
    objective = None if holds_mark(record.objective) else record.objective
    policy = None if holds_mark(record.policy) else record.policy
    terms = Terms(
        objective=objective,
        phase=_first_phase(record),
        policy=policy,
        enforce=engine.enforce if engine is not None else False,
    )
    return Asked(record.kind, args, engine.name if engine is not None else None, terms)


def repeatable(record: TaskRecord) -> bool:
    """Is the request of this task known whole, as far as its own record tells?"""
    try:
        asked(record)
    except CannotRepeat:
        return False
    return True


class Chance(StrEnum):
    """What asking a task once more comes to, as far as its own record tells.

    Whoever counts what can be re-run counts the ones that are in `STARTING`.
    """

    STARTS = "starts"
    LED = "led"  # starts, and then waits for an agent to drive it
    ASKS = "asks"  # not known whole: what is missing must be given by hand
    LIVE = "live"  # has not ended
    COPY = "copy"  # would start, as its copy in another ledger does: it is the same request
    GOAL = "goal"  # a task run: a goal that others work for, nothing that could be started
    STRANGE = "strange"  # of a kind that another program knows how to run, not this one
    LOST = "lost"  # unreadable, or in a state that we do not know


STARTING: Final = (Chance.STARTS, Chance.LED)  # as they were, without being asked anything


@dataclass(frozen=True, slots=True)
class Repeats:
    """A set of tasks sorted by what asking each once more comes to; nothing was started.

    `whys` counts what keeps the ones that ask from starting, by the code of the error.
    """

    chances: Mapping[Chance, tuple[TaskView, ...]]
    whys: Mapping[str, int]

    @property
    def with_copies(self) -> tuple[TaskId, ...]:
        """As `ids`, and each copy in another ledger of its own accord."""
        return tuple(view.task_id for view in self.of(*STARTING, Chance.COPY))

    def of(self, *chances: Chance) -> tuple[TaskView, ...]:
        return tuple(view for each in chances for view in self.chances.get(each, ()))

    @property
    def ids(self) -> tuple[TaskId, ...]:
        """Those that can be started as they were, in the order they were given."""
        return tuple(view.task_id for view in self.of(*STARTING))


def repeats(
    views: Iterable[TaskView], remembers: Callable[[str], bool] = lambda _: False
) -> Repeats:
    """A dry run: what would be started, and what keeps the others from it.

    `remembers` tells which requests the asking process still knows whole, secrets included.
    """
    groups: dict[Chance, list[TaskView]] = {}
    whys: Counter[str] = Counter()
    for view in views:
        found, why = chance(view, remembers)
        groups.setdefault(found, []).append(view)
        if why:
            whys[why] += 1
    _set_aside_copies(groups)
    return Repeats({each: tuple(found) for each, found in groups.items()}, whys)


class Copies:
    """Counts the tasks that another ledger has, too: of equal ids only one is to start."""

    def __init__(self) -> None:
        self.number = 0
        self._first: set[str] = set()

    def note(self, view: TaskView) -> None:
        known = len(self._first)
        self._first.add(plain_id(view.task_id))
        self.number += len(self._first) == known


def _set_aside_copies(groups: dict[Chance, list[TaskView]]) -> None:
    """Of one task in two ledgers the own one starts, or else the first: equal ids, equal tasks."""
    starting = [view for each in STARTING for view in groups.get(each, ())]
    starting.sort(key=lambda view: view.ledger != "")
    first = {plain_id(view.task_id): view.task_id for view in reversed(starting)}
    if len(first) == len(starting):
        return
    for each in STARTING:
        found = groups.pop(each, [])
        for view in found:
            copy = first[plain_id(view.task_id)] != view.task_id
            groups.setdefault(Chance.COPY if copy else each, []).append(view)


def chance(
    view: TaskView, remembers: Callable[[str], bool] = lambda _: False
) -> tuple[Chance, str]:
    """What asking this task once more comes to, and the code of what keeps one that asks."""
    record = view.entry
    if not isinstance(record, TaskRecord):
        return Chance.LOST, ""
    if record.kind == TASK_RUN:
        return Chance.GOAL, ""
    if not record.is_terminal:
        return (Chance.LIVE if record.is_live else Chance.LOST), ""
    if record.kind not in STARTABLE:
        return Chance.STRANGE, ""
    if not remembers(record.task_id):
        try:
            asked(record)
        except CannotRepeat as error:
            return Chance.ASKS, error.code
    return (Chance.LED if record.kind == ENVELOPE else Chance.STARTS), ""


def _first_phase(record: TaskRecord) -> str | None:
    """The phase that it began in: an envelope's own has moved on since."""
    first = record.args_summary.get("phase") if record.kind == ENVELOPE else record.phase
    return first if isinstance(first, str) else None


def holds_mark(given: Any) -> bool:
    """Was something in here taken out by the redactor?"""
    if isinstance(given, str):
        return MARK in given
    if isinstance(given, Mapping):
        return any(holds_mark(name) or holds_mark(item) for name, item in given.items())
    return isinstance(given, list | tuple) and any(map(holds_mark, given))
