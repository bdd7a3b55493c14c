"""Events of one task: rows for the event table, and following of new ones. No Qt."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from engine.model.blocked_places import Refusal, refusal
from engine.model.display import ELLIPSIS, clipboard_cell, display
from engine.model.errors import EngineError
from engine.model.records import History, TaskEvent, TaskId, TaskRecord, Unreadable
from engine.model.status import moment
from engine.service.feed import Batch
from engine.text import words
from engine.text.messages import ENGLISH, retold
from engine.text.words import (
    ConcurrencyChange,
    Wait,
    concurrency_change,
    concurrency_words,
    size_words,
    wait_of,
    wait_words,
)
from gui.i18n.names import advice_words, budget_names

KEPT = 50_000  # events; older ones stay in the file, since a million would take 300 MB
_TEXT_CHARS = 600
_HEAD_CHARS = 300
_UNIT_CHARS = 400
_CLIPPED = "_clipped"  # Must match the name in `engine.ledger.event_search`
REFUSED = "refused"  # Key of the filter for refused requests; their kind in the file is `log`
UNIT_FAILED = "unit_failed"  # Key of the filter for failed units; their kind is `progress`
TONES = {
    "failed": "bad",
    UNIT_FAILED: "bad",
    "completed": "good",
    "cancelled": "cancelled",
    "cancel_requested": "warning",
    "guard": "warning",
    "started": "running",
    REFUSED: "warning",
}


class EventRow(msgspec.Struct, frozen=True, gc=False):
    """One event, ready to be shown, with times in ms since 1970 (0 if unknown).

    `guarded` is its clipboard line where that differs. `refused` and `wait` describe a refused
    address and a wait, `concurrency` a new number of pages at once. `place` is the byte offset of
    its line, `took_ms` its reported duration, `unit` the unit that it completed. `failures` counts
    the failed units so far; -1 if the event reports no progress.
    """

    at: str
    kind: str
    name: str
    text: str
    tone: str
    guarded: str = ""
    refused: Refusal | None = None
    wait: Wait | None = None
    concurrency: ConcurrencyChange | None = None
    place: int = -1
    ts: float = 0
    took_ms: float | None = None
    unit: str = ""
    failures: int = -1

    @property
    def is_progress(self) -> bool:
        return self.failures >= 0

    @property
    def line(self) -> str:
        """The event as tab-separated text that no spreadsheet evaluates."""
        return self.guarded or f"{self.at}\t{self.name}\t{self.text}"


class EventPart(msgspec.Struct, frozen=True):
    """A part of a task's events, ready to be shown.

    `older` rows precede those reported so far. `earlier` is the number of preceding lines in the
    file, None if they were not counted.
    """

    rows: tuple[EventRow, ...]
    skipped: int = 0
    older: bool = False
    earlier: int | None = None


def event_row(event: TaskEvent, place: int = -1) -> EventRow:
    """Convert a line of events.jsonl; unknown kinds and fields are shown too."""
    refused, wait, data = refusal(event), wait_of(event), event.data or {}
    concurrency = concurrency_change(event)
    kind = REFUSED if refused else event.kind
    row = EventRow(
        at=_clock(event.ts),
        kind=kind,
        name=kind_name(kind),
        text=_told(refused, wait, concurrency) or display(_text(event), _TEXT_CHARS),
        tone="warning" if refused or wait else _tone(event),
        refused=refused,
        wait=wait,
        concurrency=concurrency,
        place=place,
        ts=moment(event.ts) or 0,
        took_ms=moment(data.get("durationMs")) if event.kind == "tool_call" else None,
        unit=display(_str(data.get("message")), _UNIT_CHARS) if event.kind == "progress" else "",
        failures=_failures(data) if event.kind == "progress" else -1,
    )
    # Computed here on a worker thread, because all rows may be copied at once.
    return _guarded(row)


def _guarded(row: EventRow) -> EventRow:
    guarded = "\t".join(map(clipboard_cell, (row.at, row.name, row.text)))
    plain = f"{row.at}\t{row.name}\t{row.text}"
    return replace(row, guarded="" if guarded == plain else guarded)


def _failures(data: dict[str, Any]) -> int:
    failed = data.get("unitsFailed")
    return max(0, failed) if isinstance(failed, int) else 0


def mark_failures(
    rows: Sequence[EventRow], before: int | None
) -> tuple[list[EventRow], int | None]:
    """Mark the events of failed units: those in which the number of failed units grew.

    `before` is that number before `rows`, None if unknown; return it after `rows` too.
    """
    marked: list[EventRow] = []
    for row in rows:
        before = 0 if row.kind == "started" else before
        failed = row.is_progress and before is not None and row.failures > before
        before = row.failures if row.is_progress else before
        marked.append(_of_failure(row) if failed else row)
    return marked, before


def _of_failure(row: EventRow) -> EventRow:
    return _guarded(replace(row, kind=UNIT_FAILED, name=kind_name(UNIT_FAILED), tone="bad"))


def _told(refused: Refusal | None, wait: Wait | None, concurrency: ConcurrencyChange | None) -> str:
    if refused is not None:
        return refusal_words(refused)
    if concurrency is not None:
        return f"{words.say('field.concurrency')}: {concurrency_words(concurrency)}"
    return wait_words(wait) if wait is not None else ""


def refusal_words(refused: Refusal, times: int = 1) -> str:
    """Return `169.254.169.254:80: link-local address`, with the number of repetitions."""
    message = "refused.line" if times == 1 else "refused.line.times"
    told = refused._asdict() | {"reason": retold(refused.reason) or words.NONE}
    return words.say(message, count=words.count(times), **told)


def _tone(event: TaskEvent) -> str:
    data = event.data or {}
    if event.kind == "tool_call":
        return "bad" if data.get("ok") is False else ""
    if event.kind == "budget":
        return {"exceeded": "bad", "warning": "warning"}.get(str(data.get("to")), "")
    if event.kind == "guard" and data.get("allowed") is True:
        return "good"
    return TONES.get(event.kind, "")


def kind_name(kind: str) -> str:
    """Return the display name of an event kind; unknown kinds are shown literally."""
    message = f"event.{kind}"
    return words.say(message) if message in ENGLISH else display(kind, 40)


def _clock(ts: object) -> str:
    at = moment(ts)
    if at is None:
        return words.NONE
    return f"{words.clock(at, at)}.{int(at % 1000):03d}"


def _text(event: TaskEvent) -> str:
    data = dict(event.data or {})
    if _CLIPPED in data:
        return _clipped(data)
    if event.kind == "progress":
        return _progress(data)
    if event.kind == "log":
        phase, note = data.pop("phase", ""), data.pop("note", "")
        told = (_phase_word(phase), retold(note) if isinstance(note, str) else note)
        said = ": ".join(str(part) for part in told if part)
        return _join(said, data)
    if event.kind in _TOLD:
        return _TOLD[event.kind](data)
    if event.kind == "failed":
        error = data.get("error")
        if isinstance(error, dict):
            del data["error"]
            data = {**data, "code": error.get("code"), "message": error.get("message")}
        return _join(retold(_str(data.pop("message", None))), data)
    return _join("", data)


def _clipped(data: dict[str, Any]) -> str:
    """Return the start of an oversized line and its size."""
    head, size = display(_str(data[_CLIPPED]), _HEAD_CHARS), data.get("_bytes")
    told = size_words(size) if isinstance(size, int) else words.NONE
    return f"{head.removesuffix(ELLIPSIS)}{ELLIPSIS} ({told})"


def _tool_call(data: dict[str, Any]) -> str:
    tool, ok, lasted = data.pop("tool", ""), data.pop("ok", None), moment(data.get("durationMs"))
    parts = [str(tool), words.say("said.call.failed") if ok is False else ""]
    if lasted is not None:
        del data["durationMs"]
        parts.append(words.took(lasted))
    said, more = ", ".join(filter(None, parts)), data.pop("summary", None)
    if isinstance(error := data.get("error"), dict):
        del data["error"]
        code, message = error.get("code"), _str(error.get("message"))
        data["code"] = code
        more = retold(message) if message and more in (code, None) else more
    return _join(f"{said}: {more}" if more else said, data)


def _budget(data: dict[str, Any]) -> str:
    before, after = str(data.pop("from", "")), str(data.pop("to", ""))
    names = budget_names(map(str, _items(data.pop(after, None))))
    advice = advice_words(_str(data.pop("recommended_next", None)))
    near = budget_names(map(str, _items(data.get("warning"))))
    kept = {key: value for key, value in data.items() if value != [] and key != "warning"}
    if near:
        kept["near"] = near
    message = f"said.budget.{after}"
    if message not in ENGLISH:
        return _join(f"{before} → {after}", kept)
    said = words.say(message, names=names).strip(" :")
    return _join(f"{said}. {advice}." if advice else said, kept)


def _guard(data: dict[str, Any]) -> str:
    """Return refused, passed or forced; the counts are in the contract and in the file."""
    allowed, forced = data.get("allowed"), data.get("forced")
    reason, advice = (
        retold(_str(data.get("reason"))),
        retold(_str(data.get("suggested_next_action"))),
    )
    if isinstance(forced, dict):
        by, why = _str(forced.get("by")), _str(forced.get("reason"))
        return words.say("said.guard.forced", by=by, why=why, reason=reason)
    if not isinstance(allowed, bool):
        return _join("", data)
    said = words.say(f"said.guard.{'allowed' if allowed else 'refused'}")
    return " ".join(filter(None, [f"{said}:" if reason else said, reason, advice]))


def _items(given: object) -> list[object]:
    return given if isinstance(given, list) else []


def _str(given: object) -> str:
    return given if isinstance(given, str) else ""


def _progress(data: dict[str, Any]) -> str:
    done, total = data.pop("unitsDone", None), data.pop("unitsTotal", None)
    message, failed = _unit_words(data.pop("message", "")), data.pop("unitsFailed", None)
    data.pop("unitsCarried", None)  # told once, by the event that carried them
    said = "" if done is None else str(done) if total is None else f"{done}/{total}"
    if failed is not None:
        said = words.say("progress.failed", progress=said, failed=_value(failed))
    return _join("  ".join(str(part) for part in (said, message) if part), data)


def _unit_words(message: object) -> object:
    """Translate what a progress event says: an activity, or the `name: reason` of a failed unit."""
    if not isinstance(message, str):
        return message
    address, colon, reason = message.partition(": ")
    if colon and address.startswith(("http://", "https://")):
        return f"{address}{colon}{retold(reason)}"
    if colon and f"part.{address}" in ENGLISH:
        return f"{_known('part', address)}{colon}{retold(reason)}"
    return retold(message)


def _join(said: str, rest: dict[str, Any]) -> str:
    kept = {key: value for key, value in rest.items() if value is not None}
    if not kept:
        return said
    if said == "" and len(kept) == 1:
        (only,) = kept.values()
        if isinstance(only, str):
            return only
    more = ", ".join(f"{_known('log.field', key)} {_fact(key, kept[key])}" for key in kept)
    return f"{said} ({more})" if said else more


def _fact(key: str, value: object) -> str:
    return str(_phase_word(value)) if key == "phase" else _value(value)


def _phase_word(phase: object) -> object:
    return _known("log.phase", phase) if isinstance(phase, str) else phase


def _known(group: str, name: str) -> str:
    """Return the word of this group for `name`; names of other programs stay as they are."""
    message = f"{group}.{name}"
    return words.say(message) if message in ENGLISH else name


def _value(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


_TOLD: dict[str, Callable[[dict[str, Any]], str]] = {
    "tool_call": _tool_call,
    "budget": _budget,
    "guard": _guard,
}


log = logging.getLogger(__name__)

Offset = int | None  # A byte offset of the file
EVENTS_S = 0.25  # Poll interval for new event lines
LAST_LOOKS = 4  # Reads after a task ended, because its last event follows its last state
AROUND = 5  # Parts read on each side of a requested place
AGAIN_S = 2.0  # Delay before a failed read is repeated


class Told:
    """Known tasks, used to report removed ones when a feed restarts."""

    def __init__(self) -> None:
        self._entries: dict[str, TaskRecord | Unreadable] = {}
        self._stale: set[str] = set()

    def has_ended(self, task_id: str) -> bool:
        entry = self._entries.get(task_id)
        return isinstance(entry, TaskRecord) and entry.is_terminal

    def start_over(self) -> None:
        """Mark all known tasks as stale until the new feed reports them."""
        self._stale = set(self._entries)

    def whole(self, batch: Batch) -> Batch:
        """Return `batch`, with stale tasks added as removed once the new feed is complete."""
        entries = {view.entry.task_id: view.entry for view in batch.views}
        self._entries.update(entries)
        self._stale.difference_update(entries)
        if batch.complete and self._stale:
            stale, self._stale = self._stale, set()
            batch = replace(batch, gone=(*batch.gone, *map(TaskId, stale)))
        for task_id in batch.gone:
            self._entries.pop(task_id, None)
        return batch


class EventFollower:
    """Read the events of one task, newest first, and only while they are visible.

    `hear` receives every batch, because an ended task is read again only after a change.
    """

    def __init__(
        self,
        read: Callable[[str, Offset, Offset], Awaitable[History[EventRow]]],
        has_ended: Callable[[str], bool],
        tell: Callable[[str, EventPart], object],
    ) -> None:
        self._read, self._has_ended, self._tell = read, has_ended, tell
        self._task_id = ""
        self._news, self._shown = asyncio.Event(), asyncio.Event()
        self._shown.set()

    def show(self, shown: bool) -> None:
        """Set whether the events are visible; hidden events are not read."""
        if shown:
            self._shown.set()
        else:
            self._shown.clear()

    def hear(self, batch: Batch) -> None:
        if batch.tells_of((self._task_id,)):
            self._news.set()

    async def follow(self, task_id: str) -> None:
        """Report existing and new events until cancelled, and retry failed reads.

        The newest events come first, then new events alternate with older ones.
        """
        self._task_id = task_id
        newest = await self._part(task_id, None, None)
        self._tell(task_id, EventPart(newest.events, newest.skipped, earlier=newest.earlier))
        start, told, since, quiet = newest.start, len(newest.events), newest.next_offset, 0
        while True:
            later = await self._part(task_id, None, since)
            quiet = 0 if later.next_offset != since else quiet + 1
            if not quiet:
                since = later.next_offset
                self._tell(task_id, EventPart(later.events, later.skipped))
            if start and told < KEPT:
                older = await self._part(task_id, start, None)
                start, told, quiet = older.start, told + len(older.events), 0
                self._tell(task_id, EventPart(older.events, older.skipped, older=True))
                continue
            await self._pause(quiet)

    async def look_at(self, task_id: str, place: int) -> None:
        """Report the events around byte `place`, the start of a line."""
        self._task_id = task_id
        later = await self._part(task_id, None, place)
        self._tell(task_id, EventPart(later.events, later.skipped))
        start = place
        for _ in range(AROUND):
            if start:
                older = await self._part(task_id, start, None)
                start = older.start
                self._tell(task_id, EventPart(older.events, older.skipped, older=True))
            since, later = later.next_offset, await self._part(task_id, None, later.next_offset)
            if later.next_offset != since:
                self._tell(task_id, EventPart(later.events, later.skipped))

    async def _part(self, task_id: str, before: int | None, since: int | None) -> History[EventRow]:
        while True:
            await self._shown.wait()
            try:
                return await self._read(task_id, before, since)
            except EngineError as error:
                log.info("the events of %s cannot be read now: %s", task_id, error)
                await asyncio.sleep(AGAIN_S)

    async def _pause(self, quiet: int) -> None:
        if not quiet:
            await asyncio.sleep(0)  # Process clicks between the parts of a long history
            return
        self._news.clear()
        done = quiet > LAST_LOOKS and self._has_ended(self._task_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(None if done else EVENTS_S):
                await self._news.wait()
