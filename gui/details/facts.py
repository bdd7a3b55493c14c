"""Facts and budget lines of a task for the Overview, field by field. Does not use Qt."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from engine import budgets
from engine.budgets import Gauge, Level
from engine.model import redact
from engine.model.blocked_places import Refusals
from engine.model.display import display, display_lines, elide_right
from engine.model.kind_traits import traits_of
from engine.model.ledger_ids import plain_id
from engine.model.records import EngineFields, TaskRecord, TaskView, Unreadable
from engine.model.status import STALL_MIN_MS, Reason, moment, updated_at, worked_ms, worked_until
from engine.query.attention_reasons import reasons
from engine.text import words
from engine.text.messages import ENGLISH, retold
from engine.text.words import count, say, took
from gui.engine_link.task_events import refusal_words
from gui.i18n.names import advice_words, budget_name, budget_names
from gui.tasks.row import counted

_TONES = {"warning": "warning", "exceeded": "bad"}


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the Overview: the field (a message id without `field.`), text and tone."""

    field: str
    text: str
    tone: str = ""


@dataclass(frozen=True, slots=True)
class GaugeLine:
    """State of one budget; `fraction` is 1 at its limit."""

    name: str
    used: str
    fraction: float
    level: Level


def gauge_lines(record: TaskRecord, now_ms: float) -> list[GaugeLine]:
    """Return every configured budget, and default budgets that are partly used.

    A budget without a number is returned only while it is exceeded. Evaluated at `now_ms`, since
    time is used up also without calls.
    """
    if not record.policy:
        return []
    gauges = budgets.at(counted(record), now_ms).gauges
    return [
        GaugeLine(
            budget_name(gauge.key),
            _used(gauge),
            gauge.value / gauge.limit if gauge.limit else 1.0,
            gauge.level,
        )
        for gauge in gauges
        if gauge.level != "ok" or (gauge.limit and (gauge.key in record.policy or gauge.value))
    ]


def budget_facts(record: TaskRecord, now_ms: float) -> Iterator[Fact]:
    """Yield budget state and advice, with the engine's thresholds (seed 004)."""
    if not record.policy:
        yield from _told(record)
        return
    standing = budgets.at(counted(record), now_ms)
    said = _standing_words(standing.status, standing.exceeded)
    yield Fact("budget", said, _TONES.get(standing.status, ""))
    yield Fact("advice", advice_words(standing.recommended_next) if record.is_live else "")


def _used(gauge: Gauge) -> str:
    """Format `41 of 50`, `2 min 05 s of 10 min 00 s`; words where there is no number."""
    if gauge.limit is None:
        return say("budget.used.outside")
    timed = gauge.key.endswith("Ms")
    used, limit = (took(n) if timed else count(n) for n in (gauge.value, gauge.limit or 0))
    return say("budget.used", name="", used=used, limit=limit).strip()


def _told(record: TaskRecord) -> Iterator[Fact]:
    """Yield the facts of a record without a policy, from its own fields."""
    status = record.budget_status
    if status:
        said = _standing_words(status, record.budget_exceeded or ())
        yield Fact("budget", said, _TONES.get(status, ""))
        yield Fact("advice", advice_words(record.recommended_next))


def _standing_words(status: str, exceeded: Iterable[object]) -> str:
    names = budget_names(map(str, exceeded))
    if status == "exceeded":
        return say("budget.exceeded", names=names) if names else say("budget.exceeded.plain")
    return say(f"budget.{status}") if status in ("ok", "warning") else display(status, 40)


_ARGS_CHARS = 16_000
# Length of one line of arguments: wrapping one of 16,000 characters took 50 ms. The file has all.
_ARG_CHARS = 600
_LIMITS = frozenset(
    {"max_pages", "max_minutes", "max_bytes", "budget", "max_actions", "host_errors"}
)
MOST_REFUSED = 20  # addresses; the events have all


# In display order.
FIELDS = (
    "error",
    "cancel",
    "forced",
    "objective",
    "ended_by",
    "changes",
    "concurrency",
    "failures",
    "remarks",
    "refused",
    "budget",
    "advice",
    "created",
    "started",
    "updated",
    "ended",
    "owner",
    "client",
    "kind",
    "connection",
    "workers",
    "ledger",
    "id",
    "command_task",
    "contract",
    "task_run",
    "run",
    "parent",
    "resumes",
    "run_before",
    "schedule",
    "path",
    "odd",
)


def facts(
    view: TaskView, now_ms: float, stall_after_ms: float = STALL_MIN_MS, *, held: bool = False
) -> tuple[str, list[Fact]]:
    """Return the summary sentence and the facts; unknown facts are omitted.

    `stall_after_ms` is the stall limit at this task's pace; with `held`, new starts are held.
    """
    needs = reasons(view, now_ms, stall_after_ms)
    sentence = words.why(view, now_ms, Reason.STALLED in needs, with_error=False, held=held)
    entry = view.entry
    if isinstance(entry, Unreadable):
        found = [
            Fact("path", display(entry.path)),
            Fact("id", display(plain_id(entry.task_id))),
            Fact("error", display(retold(entry.reason)), "bad"),
        ]
    else:
        found = list(_record_facts(view, entry, now_ms))
    return sentence, [fact for fact in found if fact.text]


def _record_facts(view: TaskView, record: TaskRecord, now_ms: float) -> Iterator[Fact]:
    yield Fact("error", words.error_text(record), "bad")
    yield Fact("cancel", _cancel(record, now_ms), "warning")
    yield Fact("forced", _forced(record, now_ms), "warning")
    yield Fact("objective", display(record.objective or "", 500))
    yield from _times(view, record, now_ms)
    yield Fact("owner", _owner(view))
    yield Fact("client", words.caller(record))
    yield from budget_facts(record, now_ms)
    yield Fact("kind", words.kind_name(record.kind))
    yield Fact("id", display(plain_id(record.task_id)))
    if record.engine is not None:
        link = record.engine.schedule
        yield Fact("changes", words.changes(link.changes if link else None, spoken=True))
        yield from _links(record.engine)
    if record.odd:
        yield Fact("odd", say("odd.fields", names=", ".join(map(display, record.odd))), "warning")


def ended_by(kind: str, word: str) -> Fact | None:
    """Return why a task ended by itself (mostly a limit), from the value in its result."""
    message = f"{traits_of(kind).ended_message}.{word}"
    if message not in ENGLISH:
        return None
    return Fact("ended_by", say(message), "warning" if word in _LIMITS else "")


def refused_text(refused: Refusals) -> str:
    """Return the number of blocked addresses, then each with its reason; "" without any."""
    number = len(refused)
    if not number:
        return ""
    message = "refused.count.one" if number == 1 else "refused.count"
    lines = [refusal_words(one, times) for one, times in refused.each[:MOST_REFUSED]]
    if more := number - len(lines):
        lines.append(say("refused.more", count=words.count(more)))
    return "\n".join([say(message, count=words.count(number)), *lines])


def _links(engine: EngineFields) -> Iterator[Fact]:
    """Yield the ids of linked records."""
    ids = {
        "command_task": engine.command_task_id,
        "contract": engine.contract_id,
        "task_run": engine.task_run_id,
        "run": engine.run_id,
        _relation(engine): engine.parent_task_id,
        "schedule": engine.schedule.id if engine.schedule is not None else None,
    }
    yield from (Fact(field, display(plain_id(one or ""), 60)) for field, one in ids.items())


def _relation(engine: EngineFields) -> str:
    """Return the field for the task before this one."""
    if engine.resumes:
        return "resumes"
    return "parent" if engine.schedule is None else "run_before"


def _times(view: TaskView, record: TaskRecord, now_ms: float) -> Iterator[Fact]:
    created, started = moment(record.created_at), moment(record.started_at)
    ended = moment(record.ended_at)
    yield Fact("created", _with_ago(created, now_ms))
    yield Fact("started", _with_ago(started, now_ms))
    if ended is not None:
        at = words.clock(ended, now_ms)
        worked = worked_ms(record)
        said = "time.took" if worked_until(record) == ended else "time.found_dead"
        yield Fact("ended", at if worked is None else say(said, at=at, took=words.took(worked)))
    elif record.is_live:
        yield Fact("updated", _with_ago(updated_at(view), now_ms))


def _with_ago(at: float | None, now_ms: float) -> str:
    if at is None:
        return ""
    if ahead := words.ahead_of(at, now_ms):  # a clock was set
        return say("time.ahead", at=words.clock(at, now_ms), span=ahead)
    return say("time.with_ago", at=words.clock(at, now_ms), ago=words.ago(at, now_ms))


def _cancel(record: TaskRecord, now_ms: float) -> str:
    if record.cancel_requested_at is None:
        return ""
    at = words.clock(moment(record.cancel_requested_at), now_ms)
    reason = display((record.engine and record.engine.cancel_reason) or "", 500)
    return say("cancel.asked.why", at=at, reason=reason) if reason else say("cancel.asked", at=at)


def _forced(record: TaskRecord, now_ms: float) -> str:
    if record.engine is None or record.engine.forced_at is None:
        return ""
    return say("forced.at", at=words.clock(moment(record.engine.forced_at), now_ms))


def _owner(view: TaskView) -> str:
    who = words.owner(view)
    if view.ours:
        return f"{say('owner.ours')} ({who})"
    return f"{say('owner.foreign')} ({who})" if view.foreign else who


def arguments_text(args: dict[str, Any]) -> str:
    """Format the redacted arguments as indented JSON, or a note that they were too long."""
    if not args:
        return ""
    if args.get("_truncated") is True:
        return say("field.args.truncated", size=display(str(args.get("_bytes", "?")), 20))
    shown = redact.value({key: args[key] for key in args if key != "__task_nonce"})
    text = json.dumps(shown, ensure_ascii=False, indent=2, default=str)
    lines = display_lines(text, _ARGS_CHARS).split("\n")
    return "\n".join(elide_right(line, _ARG_CHARS) for line in lines)
