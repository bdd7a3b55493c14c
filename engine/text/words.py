"""Shared phrases: ages, counts, sizes, rates, progress, waits and reasons in words.

The messages are in `messages`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from engine.model import redact
from engine.model.display import display
from engine.model.kind_traits import traits_of
from engine.model.ledger_ids import plain_id
from engine.model.records import (
    ENVELOPE,
    ROUTES,
    TASK_RUN,
    EngineFields,
    RunChanges,
    TaskEvent,
    TaskRecord,
    TaskView,
    Units,
    Unreadable,
)
from engine.model.status import (
    NEEDS_HELP,
    Reason,
    Standing,
    given_up_at,
    is_orphan,
    last_used_at,
    moment,
    standing,
    updated_at,
    worked_ms,
)
from engine.text.messages import ENGLISH
from engine.text.messages import count as count
from engine.text.messages import decimal as decimal
from engine.text.messages import retold as retold
from engine.text.messages import say as say

PHASE: Final = "wait"  # phase of the `log` events that report a wait
RETRY_AFTER: Final = "retry_after"
CRAWL_DELAY: Final = "crawl_delay"
OTHER_TASKS: Final = "other_tasks"
HOST_ERRORS: Final = "host_errors"
_MESSAGES: Final = {
    RETRY_AFTER: "wait.retry_after",
    CRAWL_DELAY: "wait.crawl_delay",
    OTHER_TASKS: "wait.other_tasks",
    HOST_ERRORS: "wait.host_errors",
}
_HOST_CHARS: Final = 120
_CLIENT_CHARS: Final = 80
_NO_FIELDS: Final = EngineFields()
_WHOLE_FROM_S: Final = 10  # longer waits are shown without tenths
_LONGEST_S: Final = 86_400.0


class Wait(NamedTuple):
    """A wait of `seconds` from `ts` (ms since 1970); with Crawl-delay before each request."""

    host: str
    seconds: float
    reason: str
    ts: float = 0.0

    def holds(self, now_ms: float) -> bool:
        """Return whether the wait is in effect; a Crawl-delay is, to the crawl's end."""
        return self.reason == CRAWL_DELAY or self.ts <= now_ms < self.ts + self.seconds * 1000


def wait_of(event: TaskEvent) -> Wait | None:
    """Return the wait that this event reports, sanitised; None for other events."""
    data = event.data or {}
    host, seconds, reason = data.get("host"), data.get("seconds"), data.get("reason")
    if event.kind != "log" or data.get("phase") != PHASE or not isinstance(host, str):
        return None
    if not isinstance(reason, str) or reason not in _MESSAGES:
        return None
    if not isinstance(seconds, int | float) or not 0 < seconds <= _LONGEST_S:
        return None
    ts = event.ts if isinstance(event.ts, int | float) and math.isfinite(event.ts) else 0
    return Wait(display(host, _HOST_CHARS), seconds, reason, ts)


def wait_words(wait: Wait) -> str:
    """Format `The answer of site.test asked to wait 30 s (Retry-After)`."""
    is_whole = wait.seconds >= _WHOLE_FROM_S or wait.seconds == int(wait.seconds)
    seconds = decimal(wait.seconds, 0 if is_whole else 1)
    return say(_MESSAGES[wait.reason], host=wait.host, seconds=seconds)


CONCURRENCY: Final = "concurrency"  # phase of the `log` events about the number of pages at once
CONCURRENCY_MESSAGES: Final = {
    "start": "concurrency.start",
    "room": "concurrency.room",
    "slow": "concurrency.slow",
    "failures": "concurrency.failures",
    "refused": "concurrency.refused",
    "memory": "concurrency.memory",
}
_MOST_AT_ONCE: Final = 10_000


class ConcurrencyChange(NamedTuple):
    """A change of the number of pages that load at once, at `ts` (ms since 1970)."""

    number: int
    before: int
    reason: str
    ts: float = 0.0


def concurrency_change(event: TaskEvent) -> ConcurrencyChange | None:
    """Return the change that this event reports; None for other events."""
    data = event.data or {}
    if event.kind != "log" or data.get("phase") != CONCURRENCY:
        return None
    number, before, reason = (data.get(name) for name in ("number", "before", "reason"))
    if not isinstance(number, int) or not isinstance(before, int):
        return None
    if not isinstance(reason, str) or reason not in CONCURRENCY_MESSAGES:
        return None
    if not (0 <= number <= _MOST_AT_ONCE and 0 <= before <= _MOST_AT_ONCE):
        return None
    return ConcurrencyChange(number, before, reason, moment(event.ts) or 0)


def concurrency_words(change: ConcurrencyChange) -> str:
    """Format `6 (before: 4): the site and the machine allow more`."""
    facts = {"number": count(change.number), "before": count(change.before)}
    return say(CONCURRENCY_MESSAGES[change.reason], **facts)


_STEP, _UNITS = 1_000, ("B", "kB", "MB", "GB", "TB")


def size_words(size_bytes: float) -> str:
    """Format `512 B`, `3.4 MB`: in steps of 1,000, as `--max-size` counts."""
    step = 0
    while size_bytes >= _STEP and step < len(_UNITS) - 1:
        size_bytes /= _STEP
        step += 1
    digits = 1 if step and size_bytes < 10 else 0
    return f"{decimal(size_bytes, digits)} {_UNITS[step]}"


# The state of an open task run in a sentence.


def why_open(record: TaskRecord) -> str:
    """Return the help request of a task run, or its progress summary."""
    asked = record.args_summary.get("needs_help")
    if record.status == NEEDS_HELP and isinstance(asked, dict):
        told = (display(str(asked.get(name) or ""), 300) for name in ("reason", "resume_hint"))
        return say("why.help", told=" ".join(told)).strip()
    said = record.args_summary.get("progress_summary")
    summary = display(said, 300) if isinstance(said, str) else ""
    return say("why.run.doing", summary=summary) if summary else say("why.run")


# Progress in words, with the noun of the kind's units.

REMARKS: Final = ("empty", "unsettled", "unloaded")  # remarks on stored pages
SITEMAP_LIMITS: Final = ("files", "bytes", "addresses")  # limits of all sitemaps of a task
LEFT_OUT: Final = (
    *("redacted", "links_over_limit", "links_fragments", "links_sign_out", "windows_refused"),
    "links_host_errors",
)


def remarks(summary: Mapping[str, Any]) -> list[str]:
    """Return remarks of a result's summary: doubtful pages, redactions, unfollowed links.

    For a recording: windows that did not open.
    """
    counted = {f"pages.{kind}": f"{kind}_pages" for kind in REMARKS}
    counted |= {f"left_out.{name}": name for name in LEFT_OUT}
    told = ((message, summary.get(key)) for message, key in counted.items())
    limit = summary.get("sitemap_limit")
    return [
        *(
            say(f"{message}.one" if number == 1 else message, count=count(number))
            for message, number in told
            if isinstance(number, int) and number > 0
        ),
        *([say(f"sitemap_limit.{limit}")] if limit in SITEMAP_LIMITS else []),
    ]


def archive_text(summary: Mapping[str, Any]) -> str:
    """Format `69 records, 38 KB, 1 answer left out` of a web archive; "" without one."""
    known = summary.get("archive")
    if not isinstance(known, Mapping):
        return ""
    records, size, left = (known.get(name) for name in ("records", "bytes", "left_out"))
    if not (isinstance(records, int) and isinstance(size, int)):
        return ""
    message = "archive.kept.one" if records == 1 else "archive.kept"
    told = [say(message, count=count(records)), size_words(size)]
    if isinstance(left, int) and left > 0:
        told.append(
            say("archive.left_out.one" if left == 1 else "archive.left_out", count=count(left))
        )
    return ", ".join(told)


def connection_text(summary: Mapping[str, Any]) -> str:
    """Return the connection to the browser that a crawl used; "" without a browser."""
    message = f"connection.{summary.get('connection')}"
    return say(message) if message in ENGLISH else ""


MOST_NAMED_WORKERS: Final = 6


def workers_text(summary: Mapping[str, Any]) -> str:
    """Format `local-1: 40, local-2: 38` of a crawl on a cluster, busiest first; else ""."""
    told = summary.get("workers")
    pages = told if isinstance(told, Mapping) else {}
    found = [(str(name), n) for name, n in pages.items() if isinstance(n, int) and n > 0]
    found.sort(key=lambda one: -one[1])
    parts = [f"{display(name, 64)}: {count(n)}" for name, n in found[:MOST_NAMED_WORKERS]]
    if left := len(found) - len(parts):
        parts.append(say("workers.more", count=count(left)))
    return ", ".join(parts)


def kind_name(kind: str) -> str:
    """Return the name of a kind for people; an unknown kind is shown as on disk."""
    message = f"kind.{kind}"
    return say(message) if message in ENGLISH else display(kind, 60)


def unit_word(kind: str, number: int) -> str:
    """Return the noun of `number` units of this kind."""
    return _unit_noun(traits_of(kind).unit_noun, number)


def _unit_noun(noun: str, number: int) -> str:
    return say(f"unit.{noun}.{'one' if number == 1 else 'many'}")


def progress(kind: str, units: Units | None) -> str:
    """Format `41/120`, or `137 pages` while the total is unknown; "" without units."""
    if units is None:
        return ""
    if units.total is not None and units.total > 0:
        said = say("progress.known", done=count(units.done), total=count(units.total))
    else:
        said = say("progress.open", done=count(units.done), unit=unit_word(kind, units.done))
    if units.failed:
        said = say("progress.failed", progress=said, failed=count(units.failed))
    return said


def progress_spoken(kind: str, units: Units) -> str:
    """Format `41 of 120 pages`, `137 pages, 2 of them failed`."""
    return units_spoken(traits_of(kind).unit_noun, units)


def units_spoken(noun: str, units: Units) -> str:
    """Format as `progress_spoken`, with the noun of the units. Failed units are among the done."""
    done = count(units.done)
    if units.total is None or units.total <= 0:
        said = say("progress.open", done=done, unit=_unit_noun(noun, units.done))
    else:
        # The unit has its own form here: other languages inflect it after "of".
        unit = say(f"unit.{noun}.of.{'one' if units.total == 1 else 'many'}")
        said = say("progress.of", done=done, total=count(units.total), unit=unit)
    if units.failed:
        said = say("progress.failed.spoken", progress=said, failed=count(units.failed))
    return said


def failures_text(summary: Mapping[str, Any]) -> str:
    """Format `3 answered with an error, 2 not loaded` of a crawl's summary; "" without failures."""
    parts = (("http_errors", "failures.http"), ("not_loaded", "failures.not_loaded"))
    found = [(summary.get(name), message) for name, message in parts]
    told = (say(message, count=count(n)) for n, message in found if isinstance(n, int) and n > 0)
    return ", ".join(told)


NONE: Final = "–"
_NAME_LIMIT = 300
_REASON_LIMIT = 200
_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000


def status_word(view: TaskView) -> str:
    """Return the state in a word; an unknown status is shown as on disk."""
    state = standing(view)
    if state is not Standing.UNKNOWN or isinstance(view.entry, Unreadable):
        return say(f"status.{state.value}")
    if view.entry.status == NEEDS_HELP:
        return say("status.needs_help")
    return display(view.entry.status, 40) or say("status.nameless")


def span(ms: float) -> str:
    """Format a duration coarsely: `8 s`, `4 min`, `2 h`, `3 d`."""
    if ms < _MINUTE:
        return f"{max(0, int(ms // _SECOND))} s"
    if ms < _HOUR:
        return f"{int(ms // _MINUTE)} min"
    if ms < 2 * _DAY:
        return f"{int(ms // _HOUR)} h"
    return f"{count(int(ms // _DAY))} d"


def took(ms: float) -> str:
    """Format a duration: `240 ms`, `1.3 s`, `4 min 05 s`, `2 h 10 min`.

    A duration that rounds to 0 ms reads "under 1 ms".
    """
    if round(ms) < 1:
        return say("took.under")
    if round(ms) < _SECOND:
        return f"{round(ms)} ms"
    if ms < 10 * _SECOND:
        return f"{decimal(ms / _SECOND, 1)} s"
    if ms < _MINUTE:
        return span(ms)
    if ms < _HOUR:
        return f"{int(ms // _MINUTE)} min {int(ms % _MINUTE // _SECOND):02d} s"
    if ms < _DAY:
        return f"{int(ms // _HOUR)} h {int(ms % _HOUR // _MINUTE):02d} min"
    return f"{count(int(ms // _DAY))} d {int(ms % _DAY // _HOUR)} h"


def ago(at_ms: float | None, now_ms: float) -> str:
    """Format the time since `at_ms` as `span`; a future time reads as now."""
    return NONE if at_ms is None else span(max(0.0, now_ms - at_ms))


def age(at_ms: float | None, now_ms: float) -> str:
    """Format `ago` for a list; a future time reads `in 3 h`."""
    ahead = ahead_of(at_ms, now_ms)
    return say("age.ahead", span=ahead) if ahead else ago(at_ms, now_ms)


def ahead_of(at_ms: float | None, now_ms: float) -> str:
    """Format how far a time is in the future; "" below a minute, as two clocks may differ."""
    return "" if at_ms is None or at_ms - now_ms <= _MINUTE else span(at_ms - now_ms)


def time_left(ms: float) -> str:
    """Format an estimate, rounded so that it does not flicker: `~10 s`, `~4 min`, `~2 h`."""
    if ms < _MINUTE:
        return f"~{max(5, round(ms / 5000) * 5)} s" if ms < 57_500 else "~1 min"
    if ms < 90 * _MINUTE:
        return f"~{round(ms / _MINUTE)} min"
    return f"~{round(ms / _HOUR)} h" if ms < 2 * _DAY else f"~{count(round(ms / _DAY))} d"


def clock(at_ms: float | None, now_ms: float | None = None) -> str:
    """Format local time; the date is omitted on the day of `now_ms`."""
    if at_ms is None:
        return NONE
    try:
        at = time.localtime(at_ms / 1000)
        today = now_ms is not None and time.localtime(now_ms / 1000)[:3] == at[:3]
    except (
        OverflowError,
        OSError,
        ValueError,
    ):  # out of the platform's range
        return NONE
    return time.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S", at)


def changes(found: RunChanges | None, *, spoken: bool = False) -> str:
    """Format `+2 −1 ~5` (added, removed, changed pages); empty where nothing was compared."""
    if found is None:
        return ""
    if not found.total:
        return say("changes.none")
    return say(
        "changes.spoken" if spoken else "changes.counted",
        added=count(found.added),
        removed=count(found.removed),
        changed=count(found.changed),
    )


def rate(per_second: float | None) -> str:
    """Format `1.3/s`, `24/s`, `12/min`; "" while unknown."""
    if per_second is None or per_second <= 0:
        return ""
    if per_second < 0.1:
        return say("rate.per_minute", rate=decimal(per_second * 60, 1))
    digits = 0 if per_second >= 10 else 1
    return say("rate.per_second", rate=decimal(per_second, digits))


def attention(reason: Reason, silence_ms: float = 0) -> str:
    """Return a reason for attention as a sentence without full stop."""
    return say(f"attention.{reason.value}", silence=span(silence_ms))


def showing(shown: int, total: int, selected: int = 0) -> str:
    """Format `Showing 214 of 12,480 · 3 selected`."""
    if total == 0:
        return say("filter.none")
    if shown == total:
        words = say("filter.all.one") if total == 1 else say("filter.all", total=count(total))
    else:
        words = say("filter.showing", shown=count(shown), total=count(total))
    return f"{words} · {say('filter.selected', selected=count(selected))}" if selected else words


def task_name(view: TaskView) -> str:
    """Return a task's name in one line, as `record_name`."""
    entry = view.entry
    if isinstance(entry, Unreadable):
        return say("task.unreadable", task_id=plain_id(entry.task_id))
    return record_name(entry)


def record_name(entry: TaskRecord) -> str:
    """Return a task's name in one line: name, address or objective; else kind and id."""
    name = entry.engine.name if entry.engine else None
    found = name or _given(entry, "label") or bare_address(entry.url) or entry.objective
    found = found or bare_address(_given(entry, "sitemap_url")) or _given(entry, "objective")
    shown = display(found, _NAME_LIMIT).strip()
    kind = display(entry.kind, 40)
    return shown or say("task.unnamed", kind=kind, task_id=plain_id(entry.task_id)).strip()


def _given(record: TaskRecord, name: str) -> str:
    found = record.args_summary.get(name)
    return found if isinstance(found, str) else ""


def bare_address(url: str) -> str:
    """Shorten an address: `https://example.com/` → `example.com`; without tokens."""
    bare = redact.url(url).removeprefix("https://")
    return bare.removesuffix("/") if bare.count("/") == 1 else bare


def row_sentence(view: TaskView, status: str) -> str:
    """Describe a task for screen readers: `crawl example.com, running, 41 of 120 pages`."""
    entry = view.entry
    if isinstance(entry, Unreadable):
        return f"{task_name(view)}, {status}"
    name = task_name(view)
    kind = kind_name(entry.kind)
    said = name if name.startswith(kind) else f"{kind} {name}"
    parts = [said.strip(), status.removesuffix("…").lower()]
    if view.units is not None:
        parts.append(progress_spoken(entry.kind, view.units))
    if view.foreign:
        parts.append(say("row.sentence.foreign"))
    return ", ".join([*parts, *badges(view, foreign=False)])


def badges(view: TaskView, *, foreign: bool = True) -> list[str]:
    """Return what a task's state does not say: forced, reaped as an orphan, `foreign`, file marks.

    File marks are temporary: the task is locked, or its file is being rewritten.
    """
    found, entry = [], view.entry
    if isinstance(entry, TaskRecord):
        if entry.engine is not None and entry.engine.forced_at is not None:
            found.append(say("badge.forced"))
        if entry.engine is not None and entry.engine.resumes:
            found.append(say("badge.resumed"))
        if is_orphan(entry):
            found.append(say("badge.orphaned"))
    if foreign and view.foreign:
        found.append(say("badge.foreign"))
    if view.locked:
        found.append(say("badge.locked"))
    if view.stale:
        found.append(say("badge.stale"))
    return found


def why(
    view: TaskView,
    now_ms: float,
    stalled: bool = False,
    *,
    with_error: bool = True,
    held: bool = False,
) -> str:
    """Explain a task's current state in one sentence, of a failed one `with_error`.

    With `held`, the ledger holds new starts, for which a pending task waits.
    """
    entry = view.entry
    if isinstance(entry, Unreadable):
        return say("why.unreadable", reason=display(retold(entry.reason), 500))
    state = standing(view)
    if entry.kind == TASK_RUN and not entry.is_terminal:
        return why_open(entry)
    if state is Standing.UNKNOWN:
        return say("why.unknown", status=display(entry.status, 40))
    if entry.is_terminal:
        return _why_ended(view, entry, state, with_error=with_error)
    foreign = ".foreign" if view.foreign else ""
    if state is Standing.CANCELLING:
        asked = ago(moment(entry.cancel_requested_at), now_ms)
        unit = unit_word(entry.kind, 1)
        message = "why.cancelling.foreign" if foreign else traits_of(entry.kind).cancelling_message
        return say(message, ago=asked, unit=unit)
    if state is Standing.RUNNING:
        return _why_running(view, now_ms, stalled)
    if state is Standing.ORPHANED and view.locked:
        return say("why.orphaned.locked")
    if state is Standing.PENDING and held and not view.ledger:
        return say("why.pending.held")
    return say(f"why.{state.value}{foreign if state is Standing.PENDING else ''}")


def _why_running(view: TaskView, now_ms: float, stalled: bool) -> str:
    engine = view.entry.engine if isinstance(view.entry, TaskRecord) else None
    if engine is not None and engine.stop_requested_at is not None:
        return say("why.stopping", ago=ago(moment(engine.stop_requested_at), now_ms))
    if view.away:
        return say("why.running.away")
    at = updated_at(view)
    message = display(retold(view.units.message or ""), 300) if view.units is not None else ""
    if view.undriven and isinstance(view.entry, TaskRecord):
        return _why_undriven(view, view.entry, now_ms)
    if isinstance(view.entry, TaskRecord) and view.entry.kind == ENVELOPE:
        said = [say("why.running.outside", owner=owner(view))]
    elif view.foreign:
        said = [say("why.running.foreign", owner=owner(view))]
    else:
        said = [say("why.running" if view.ours else "why.running.unknown")]
    if message:
        said = [say("why.running.doing", message=message)]
    if stalled and at is not None:
        said.insert(0, say("why.stalled", silence=span(now_ms - at)))
    return " ".join(said)


def _why_undriven(view: TaskView, record: TaskRecord, now_ms: float) -> str:
    left = span(max(0.0, given_up_at(record) - now_ms))
    last = ago(last_used_at(record), now_ms)
    return say("why.running.undriven", owner=owner(view), ago=last, left=left)


def _why_ended(view: TaskView, record: TaskRecord, state: Standing, *, with_error: bool) -> str:
    started, worked = moment(record.started_at), worked_ms(record)
    if state is Standing.CANCELLED and started is None:
        return say("why.cancelled.early")
    lasted = say("took.unknown") if worked is None else took(worked)
    if state is Standing.COMPLETED and record.engine and record.engine.forced_at is not None:
        return _why_forced(record.kind, view.units, lasted)
    if state is Standing.COMPLETED and view.units is not None and view.units.failed > 0:
        return _why_partly(record.kind, view.units, lasted)
    if state is not Standing.FAILED:
        return say(f"why.{state.value}", took=lasted)
    # Our own records have the time of the start; another program may store none.
    never_started = started is None and record.engine is not None
    if record.error is not None and not with_error:
        if never_started:
            return say("why.failed.early.after")
        return say("why.failed.after", took=lasted)
    reason = display(retold(record.error.message), _REASON_LIMIT) if record.error else ""
    if reason and never_started:
        return say("why.failed.early", reason=reason)
    return (
        say("why.failed", took=lasted, reason=reason)
        if reason
        else say("why.failed.plain", took=lasted)
    )


def _why_forced(kind: str, units: Units | None, lasted: str) -> str:
    """Explain a forced completion, with the progress at that time if it was incomplete."""
    if units is None or units.total is None or units.done >= units.total:
        return say("why.completed.forced", took=lasted)
    at = progress_spoken(kind, Units(done=units.done, total=units.total))
    return say("why.completed.forced.at", took=lasted, progress=at)


def _why_partly(kind: str, units: Units, lasted: str) -> str:
    failed, done = count(units.failed), count(max(units.done, units.failed))
    unit = unit_word(kind, 2)  # plural: `1 of 1 pages` names a part of a set
    return say("why.completed.partly", took=lasted, failed=failed, done=done, unit=unit)


def error_text(record: TaskRecord) -> str:
    """Return the error with its code; "" without an error."""
    if record.error is None:
        return ""
    message = display(retold(record.error.message), 2000)
    if not record.error.code:
        return message
    return say("error.with_code", message=message, code=display(record.error.code, 80)).strip()


def client(name: str, route: str) -> str:
    """Return the name of a client, of a nameless one its route: `claude-code`, `Command line`."""
    if name:
        return display(name, _CLIENT_CHARS)
    return say(f"route.{route}") if route in ROUTES else ""


def caller(record: TaskRecord) -> str:
    """Describe who requested a task: `claude-code over MCP`; "" for the window or an unknown."""
    ours = record.engine or _NO_FIELDS
    route = f".{ours.route}" if ours.route in ROUTES else ""
    if ours.client:
        return say(f"caller.named{route}", client=display(ours.client, _CLIENT_CHARS))
    return say(f"caller{route}") if route else ""


def owner(view: TaskView) -> str:
    """Describe the owner: `process 4312 on crawler-1`."""
    entry = view.entry
    if isinstance(entry, Unreadable):
        return say("owner.unknown")
    parts = []
    if entry.pid is not None:
        parts.append(say("owner.pid", pid=display(f"{entry.pid}", 24)))
    if entry.engine is not None and entry.engine.host:
        parts.append(say("owner.host", host=display(entry.engine.host, 80)))
    return " ".join(parts) or say("owner.unknown")
