"""What a task was asked to do, where that is known whole: to ask it once more.

Source: the ledger keeps a request only if nothing in it had to be hidden; a repeated task
that silently lacks a password would be another task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.admission import NO_TERMS, Terms
from engine.errors import EngineError
from engine.records import ENVELOPE, TaskRecord
from engine.redact import MARK


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


def repeatable(record: TaskRecord) -> bool:
    """Is the request of this task known whole, as far as its own record tells?"""
    try:
        asked(record)
    except CannotRepeat:
        return False
    return True


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
