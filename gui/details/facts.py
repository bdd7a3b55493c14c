"""What the Overview says of a task, field by field. Knows no Qt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine import words
from engine.attention import Reason, moment, reasons, updated_at
from engine.display import display, display_lines
from engine.pace import STALL_MIN_MS
from engine.records import TaskRecord, TaskView, Unreadable
from engine.words import say

_ARGS_CHARS = 16_000
_BUDGETS = (
    ("maxToolCalls", "toolCalls"),
    ("maxWallMs", "wallMs"),
    ("maxSameToolStreak", "sameToolStreak"),
    ("maxObservationStreak", "observationStreak"),
    ("maxFailureStreak", "failureStreak"),
    ("maxSameUrlNavigations", "sameUrlNavigations"),
)


# In the order in which they are read.
FIELDS = (
    "error",
    "cancel",
    "progress",
    "budget",
    "phase",
    "advice",
    "created",
    "started",
    "updated",
    "ended",
    "owner",
    "kind",
    "id",
    "parent",
    "path",
    "odd",
)


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the Overview: the field (a message id without `field.`), text and tone."""

    field: str
    text: str
    tone: str = ""


def facts(
    view: TaskView, now_ms: float, stall_after_ms: float = STALL_MIN_MS
) -> tuple[str, list[Fact]]:
    """The sentence on top and the facts below it; what is not known is left out.

    `stall_after_ms` is the silence that counts as a stall at this task's pace.
    """
    needs = reasons(view, now_ms, stall_after_ms)
    sentence = words.why(view, now_ms, Reason.STALLED in needs)
    entry = view.entry
    if isinstance(entry, Unreadable):
        found = [
            Fact("path", display(entry.path)),
            Fact("id", display(entry.task_id)),
            Fact("error", display(entry.reason), "bad"),
        ]
    else:
        found = list(_record_facts(view, entry, now_ms))
    return sentence, [fact for fact in found if fact.text]


def _record_facts(view: TaskView, record: TaskRecord, now_ms: float) -> Iterator[Fact]:
    yield Fact("error", words.error_text(record), "bad")
    yield Fact("cancel", _cancel(record, now_ms), "warning")
    if view.units is not None:
        yield Fact("progress", words.progress_spoken(record.kind, view.units))
    yield from _times(view, record, now_ms)
    yield Fact("owner", _owner(view))
    yield from _budget(record)
    yield Fact("kind", display(record.kind, 80))
    yield Fact("id", display(record.task_id))
    if record.engine is not None and record.engine.parent_task_id:
        yield Fact("parent", display(record.engine.parent_task_id, 40))
    if record.odd:
        yield Fact("odd", say("odd.fields", names=", ".join(map(display, record.odd))), "warning")


def _times(view: TaskView, record: TaskRecord, now_ms: float) -> Iterator[Fact]:
    created, started = moment(record.created_at), moment(record.started_at)
    ended = moment(record.ended_at)
    yield Fact("created", _with_ago(created, now_ms))
    yield Fact("started", _with_ago(started, now_ms))
    if ended is not None:
        at = words.clock(ended, now_ms)
        lasted = None if started is None else words.took(ended - started)
        yield Fact("ended", at if lasted is None else say("time.took", at=at, took=lasted))
    elif record.is_live:
        yield Fact("updated", _with_ago(updated_at(view), now_ms))


def _with_ago(at: float | None, now_ms: float) -> str:
    if at is None:
        return ""
    return say("time.with_ago", at=words.clock(at, now_ms), ago=words.ago(at, now_ms))


def _cancel(record: TaskRecord, now_ms: float) -> str:
    if record.cancel_requested_at is None:
        return ""
    at = words.clock(moment(record.cancel_requested_at), now_ms)
    return say("cancel.asked", at=at)


def _owner(view: TaskView) -> str:
    who = words.owner(view)
    if view.ours:
        return f"{say('owner.ours')} ({who})"
    return f"{say('owner.foreign')} ({who})" if view.foreign else who


def _budget(record: TaskRecord) -> Iterator[Fact]:
    if record.phase:
        yield Fact("phase", display(record.phase, 40))
    status = record.budget_status
    used = _used(record.policy or {}, record.counters or {})
    if status is None and not used:
        return
    names = ", ".join(display(str(name), 60) for name in record.budget_exceeded or ())
    if status == "exceeded":
        said = say("budget.exceeded", names=names) if names else say("budget.exceeded.plain")
        yield Fact("budget", " · ".join([said, *used]), "bad")
    elif status in ("ok", "warning"):
        yield Fact("budget", " · ".join([say(f"budget.{status}"), *used]), _tone(status))
    else:
        yield Fact("budget", " · ".join([display(status or "", 40), *used]).strip(" ·"))
    yield Fact("advice", display(record.recommended_next or "", 200))


def _tone(status: str) -> str:
    return "warning" if status == "warning" else ""


def _used(policy: dict[str, Any], counters: dict[str, Any]) -> list[str]:
    found = []
    for limit_name, counter in _BUDGETS:
        limit = policy.get(limit_name)
        if limit is None:
            continue
        used = counters.get(counter, 0)
        shown = display(str(used), 20), display(str(limit), 20)
        found.append(say("budget.used", name=counter, used=shown[0], limit=shown[1]))
    return found


def arguments_text(args: dict[str, Any]) -> str:
    """The redacted arguments as indented JSON; a sentence where they were too long to be kept."""
    if not args:
        return ""
    if args.get("_truncated") is True:
        return say("field.args.truncated", size=display(str(args.get("_bytes", "?")), 20))
    shown = {key: value for key, value in args.items() if key != "__task_nonce"}
    text = json.dumps(shown, ensure_ascii=False, indent=2, default=str)
    return display_lines(text, _ARGS_CHARS)
