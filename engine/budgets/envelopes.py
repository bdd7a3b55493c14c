"""Task envelopes (seed 004): an objective, a phase and budgets around an agent's own work.

An envelope has no body here: a host drives it through browser tools, and each call that names it is
counted. Nothing is ever stopped by it.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from engine import budgets
from engine.budgets import BudgetStatus, ToolCall
from engine.ledger import changes, machine
from engine.ledger.ledger import Ledger
from engine.ledger.machine import wall_ms
from engine.model import redact
from engine.model.errors import EngineError, InvalidArguments, Problem
from engine.model.records import ENVELOPE, LIVE, EngineFields, Status, TaskRecord


class NotAnEnvelope(EngineError):
    """A call, an update or a finish names a task with its own body; nothing was written."""

    code = "not_an_envelope"
    title = "The task is no envelope"
    sentence = "Task {task_id} is a {kind}, not a browser_task: it cannot be driven from outside."
    advice_text = "Only a task started as browser_task takes updates and calls."


class EnvelopeEnded(EngineError):
    """The envelope has ended; terminal is final, and nothing was written."""

    code = "envelope_ended"
    title = "The envelope has ended"
    sentence = "Envelope {task_id} is {status} already."
    advice_text = "Start a new one for more work."


class EnvelopeOfAnother(EngineError):
    """A call names an envelope that another session of OpenChrome owns; nothing was written."""

    code = "envelope_of_another"
    title = "The envelope belongs to another session"
    sentence = "Envelope {task_id} belongs to session {owner}."
    advice_text = "Start an envelope of your own for your calls."


class EnvelopeState(msgspec.Struct, frozen=True):
    """Counters and budgets of one task, at one moment.

    `budget_status` is ok, warning or exceeded, and is evaluated now: time also passes without
    calls. `gauges` has one entry for each budget of the task.
    """

    task_id: str
    kind: str
    status: str
    objective: str
    phase: str
    policy: dict[str, Any]
    counters: dict[str, Any]
    budget_status: str
    budget_exceeded: tuple[str, ...]
    budget_warning: tuple[str, ...]
    recommended_next: str | None
    recent_events: tuple[dict[str, Any], ...]
    gauges: tuple[budgets.Gauge, ...]


def state_of(meta: Mapping[str, Any], now_ms: float) -> EnvelopeState:
    """Read the state from a whole meta.json; values of an invalid shape count as missing."""
    standing = budgets.at(meta, now_ms)
    policy = meta.get("policy")
    return EnvelopeState(
        task_id=_text(meta, "task_id"),
        kind=_text(meta, "kind"),
        status=_text(meta, "status"),
        objective=_text(meta, "objective"),
        phase=_text(meta, "phase"),
        policy=dict(policy) if isinstance(policy, dict) else {},
        counters=budgets.counters_of(meta),
        budget_status=standing.status,
        budget_exceeded=standing.exceeded,
        budget_warning=standing.warning,
        recommended_next=standing.recommended_next,
        recent_events=_events(meta.get("recent_events"))[-budgets.RECENT :],
        gauges=standing.gauges,
    )


def _text(meta: Mapping[str, Any], name: str) -> str:
    given = meta.get(name)
    return given if isinstance(given, str) else ""


def _events(given: object) -> tuple[dict[str, Any], ...]:
    found = given if isinstance(given, list) else []
    return tuple(event for event in found if isinstance(event, dict))


PHASES: Final = ("explore", "act", "verify", "recover", "done")
ARGUMENTS: Final = ("objective", "phase", "policy")
ECHOES: Final = ("last_note", "final_note")  # fields added to an earlier envelope's arguments
OUTCOMES: Final[Mapping[str, Status]] = {
    "completed": Status.COMPLETED,
    "failed": Status.FAILED,
    "cancelled": Status.CANCELLED,
}
OBJECTIVE_CHARACTERS: Final = 4_096
NOTE_CHARACTERS: Final = 500  # as OpenChrome cuts them
_NO_OBJECT: Final = Problem("args", "wrong_type", "must be an object of named arguments")


def start_problems(objective: object, phase: object, policy: object) -> list[Problem]:
    """Collect the mistakes in a request for a new envelope."""
    found: list[Problem] = []
    if not isinstance(objective, str) or not objective.strip():
        found.append(Problem("objective", "required", "must say what is to be reached"))
    elif len(objective) > OBJECTIVE_CHARACTERS:
        limit = f"must be at most {OBJECTIVE_CHARACTERS:,} characters"
        found.append(Problem("objective", "too_long", limit))
    if phase is not None:
        found.extend(_one_of("phase", phase, PHASES))
    return [*found, *budgets.problems(policy)]


@dataclass(frozen=True, slots=True)
class EnvelopeRequest:
    """Valid request for a new envelope."""

    objective: str
    phase: str | None = None
    policy: Mapping[str, Any] | None = None


def envelope_request(args: object, terms: Mapping[str, Any]) -> EnvelopeRequest:
    """Build a request from a start's arguments; its terms override them.

    Raises:
        InvalidArguments: with every mistake.
    """
    given = args if isinstance(args, Mapping) else {}
    found = [] if isinstance(args, Mapping) else [_NO_OBJECT]
    found += [
        Problem(str(name), "unknown_argument", f"is no argument (known: {', '.join(ARGUMENTS)})")
        for name in given
        if name not in (*ARGUMENTS, *ECHOES)
    ]
    asked: dict[str, Any] = {
        name: terms[name] if terms.get(name) is not None else given.get(name) for name in ARGUMENTS
    }
    found += start_problems(**asked)
    if found:
        raise InvalidArguments(tuple(found))
    return EnvelopeRequest(**asked)


def checked_update(phase: object, note: object) -> None:
    """Raises InvalidArguments."""
    found = [] if phase is None else _one_of("phase", phase, PHASES)
    found += _note_problems(note)
    if phase is None and note is None:
        found.append(Problem("phase", "required", "give a phase, a note, or both"))
    if found:
        raise InvalidArguments(tuple(found))


def checked_outcome(outcome: object, note: object) -> Status:
    """Map an outcome to its status. Raises InvalidArguments."""
    found = [*_one_of("outcome", outcome, tuple(OUTCOMES)), *_note_problems(note)]
    if found:
        raise InvalidArguments(tuple(found))
    return OUTCOMES[str(outcome)]


def _one_of(path: str, given: object, known: tuple[str, ...]) -> list[Problem]:
    if isinstance(given, str) and given in known:
        return []
    return [Problem(path, "wrong_value", f"must be one of {', '.join(known)}")]


def _note_problems(note: object) -> list[Problem]:
    if note is None or isinstance(note, str):
        return []
    return [Problem("note", "wrong_type", "must be a text")]


DRIFT_MS: Final = 2_000  # smaller differences from the stored times are not written
_MOST: Final = 10_000  # tasks that one process remembers


class DurationMeter:
    """Measures the tasks of this process. Safe to share between threads.

    The measured duration is stored in the record with the wall time of the measurement, so that
    every other process continues from there. A process measures a task from its first read; before
    that the stored times count. Source: rule "time that the machine slept, and a clock that was
    set, do not count against maxWallMs".

    `asleep_s` is for callers with a fixed interval: a longer gap means that the process itself was
    stopped, and does not count.
    """

    def __init__(
        self, awake_s: Callable[[], float] = machine.awake_s, *, asleep_s: float = math.inf
    ) -> None:
        self._awake_s = awake_s
        self._asleep_s = asleep_s
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[float, float]] = {}  # (duration in ms, time of the measurement)

    def measure(self, meta: dict[str, Any], now_ms: int) -> bool:
        """Update the duration of a task in `meta` as of `now_ms`; nothing is written to disk.

        True when the stored times differ. A task without a time budget is left unchanged.
        """
        policy = meta.get("policy")
        if not isinstance(policy, Mapping) or policy.get("maxWallMs") is None:
            return False
        stored = budgets.lasted_ms(meta, now_ms)
        lasted = self._lasted_ms(str(meta.get("task_id")), stored)
        changes.engine_of(meta).update(lasted_ms=round(lasted), lasted_at=now_ms)
        return abs(stored - lasted) > DRIFT_MS

    def forget(self, task_id: str) -> None:
        """Drop a task that has ended."""
        with self._lock:
            self._seen.pop(task_id, None)

    def _lasted_ms(self, task_id: str, stored: float) -> float:
        with self._lock:
            now_s = self._awake_s()
            lasted, seen_s = self._seen.pop(task_id, (stored, now_s))
            if now_s - seen_s <= self._asleep_s:
                lasted += (now_s - seen_s) * 1_000
            self._seen[task_id] = lasted, now_s
            if len(self._seen) > _MOST:  # tasks that other processes ended, long ago
                del self._seen[next(iter(self._seen))]
            return lasted


Events = list[tuple[str, Mapping[str, Any] | None]]
Guard = Callable[[Mapping[str, Any]], EngineError | None]

# Typed text is never stored, only its length.
_TYPED: Final = frozenset({"text", "value", "keys"})


class Envelopes:
    """Writer of envelopes. Synchronous: every call may wait for a lock or a disk, so use a thread.

    `pid` is the process whose death lets an envelope be reaped a day later. `guard` is called
    before one ends completed, with its meta.json, and may return a refusal. `lasting` measures
    their time; without it the stored times count.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        pid: int | None = None,
        guard: Guard = lambda meta: None,
        now_ms: Callable[[], int] = wall_ms,
        lasting: DurationMeter | None = None,
    ) -> None:
        self._ledger = ledger
        self._pid = os.getpid() if pid is None else pid
        self._guard = guard
        self._now_ms = now_ms
        self._lasting = lasting

    def start(self, request: EnvelopeRequest, engine: EngineFields | None = None) -> TaskRecord:
        """Open an envelope: RUNNING at once, every counter at zero.

        Raises:
            LedgerReadOnly, LedgerWriteFailed: it could not be written.
        """
        now = self._now_ms()
        initial = {
            "objective": redact.text(request.objective),
            "phase": request.phase or "explore",
            "policy": budgets.defaulted(request.policy, envelope=True),
        }
        fields = {
            "status": Status.RUNNING.value,
            "pid": self._pid,
            "started_at": now,
            **initial,
            "counters": budgets.no_calls(),
            "budget_status": "ok",
            "recent_events": [],
        }
        record = self._ledger.create(ENVELOPE, initial, engine=engine, now_ms=now, fields=fields)
        known = {"task_id": record.task_id, "kind": ENVELOPE, "created_at": now}
        self._measured({**fields, **known}, now)  # the measurement starts now
        told = {"objective": initial["objective"], "phase": initial["phase"]}
        self._ledger.note(record.task_id, [("started", told)])
        return record

    def update(
        self, task_id: str, *, phase: str | None = None, note: str | None = None
    ) -> TaskRecord:
        """Record the current phase, or a note; nothing is executed.

        Raises:
            InvalidArguments, NotAnEnvelope, EnvelopeEnded, TaskNotFound.
        """
        checked_update(phase, note)
        clean = _bounded(note) if note is not None else None
        transition: Events = []

        def change(raw: dict[str, Any]) -> None:
            transition.clear()
            _require_open(raw, task_id)
            now, old = self._now_ms(), budgets.before(raw)
            self._measured(raw, now)
            if phase is not None:
                raw["phase"] = phase
            if clean is not None:
                _summary(raw)["last_note"] = clean
            new = budgets.at(raw, now)
            apply(raw, budgets.verdict(new))
            raw["last_activity_at"] = now
            transition.extend(edge_events(old, new))

        record = self._ledger.mutate(task_id, change)
        data = {"phase": record.phase, **({"note": clean} if clean is not None else {})}
        self._ledger.note(task_id, [("log", data), *transition])
        return record

    def finish(
        self,
        task_id: str,
        outcome: str,
        *,
        note: str | None = None,
        before: Iterable[tuple[str, dict[str, Any]]] = (),
    ) -> TaskRecord:
        """Close an envelope for good: completed, failed or cancelled, with a final note.

        A cancel that is on disk by then makes it CANCELLED, as with every task. The events of
        `before` are written with its end, whose event is the last one.

        Raises:
            InvalidArguments, NotAnEnvelope, EnvelopeEnded, TaskNotFound.
            EngineError: the guard's refusal, with the reason.
        """
        status = checked_outcome(outcome, note)
        if status is Status.COMPLETED:
            self._check_guard(task_id)
        clean = _bounded(note) if note is not None else None

        def change(raw: dict[str, Any]) -> None:
            _require_open(raw, task_id)
            now = self._now_ms()
            self._measured(raw, now)
            changes.end(raw, status, now, error=None, units=None, result_path=None)
            raw["phase"] = "done"
            apply(raw, budgets.verdict(budgets.at(raw, now)))
            if clean is not None:
                _summary(raw)["final_note"] = clean

        record = self._ledger.mutate(task_id, change, durable=True)
        if self._lasting is not None:
            self._lasting.forget(task_id)
        data = {"note": clean} if clean is not None else None
        self._ledger.note(task_id, [*before, (record.status.lower(), data)], durable=True)
        return record

    def expect(self, task_id: str, session: str | None) -> dict[str, Any]:
        """Read the meta.json of an envelope that accepts calls of `session` now.

        Raises:
            NotAnEnvelope, EnvelopeEnded, NotATaskId, TaskNotFound, TaskUnreadable.
            EnvelopeOfAnother: another session owns it.
        """
        raw = self._ledger.read_raw(task_id)
        _require_open(raw, task_id)
        _require_owner(raw, task_id, session)
        return raw

    def record(self, task_id: str | None, call: ToolCall) -> EnvelopeState | None:
        """Count a call in its envelope; do nothing without a task id.

        Concurrent calls all count: each is folded in under the task's lock.

        Raises:
            NotAnEnvelope, EnvelopeEnded, NotATaskId, TaskNotFound, TaskUnreadable.
            EnvelopeOfAnother: another session owns it.
        """
        if task_id is None:
            return None
        clean = _redacted_call(call)
        folded: dict[str, Any] = {}
        transition: Events = []

        def change(raw: dict[str, Any]) -> None:
            transition.clear()
            _require_open(raw, task_id)
            _require_owner(raw, task_id, call.session)
            now, old = self._now_ms(), budgets.before(raw)
            self._measured(raw, now)
            apply(raw, budgets.fold(raw, clean, now))
            transition.extend(edge_events(old, budgets.before(raw)))
            folded.update(raw)

        self._ledger.mutate(task_id, change)
        self._ledger.note(task_id, [("tool_call", _call_data(clean)), *transition])
        return state_of(folded, self._now_ms())

    def state(self, task_id: str) -> EnvelopeState:
        """Evaluate counters and budgets of a task now; nothing is written.

        Raises:
            NotATaskId, TaskNotFound, TaskUnreadable.
        """
        now = self._now_ms()
        return state_of(
            self._measured({**self._ledger.read_raw(task_id), "task_id": task_id}, now), now
        )

    def _measured(self, meta: dict[str, Any], now_ms: int) -> dict[str, Any]:
        """Update the measured duration in `meta`, and return it."""
        if self._lasting is not None and meta.get("status") in LIVE:
            self._lasting.measure(meta, now_ms)
        return meta

    def _check_guard(self, task_id: str) -> None:
        raw = self._ledger.read_raw(task_id)
        _require_open(raw, task_id)
        refusal = self._guard({**raw, "task_id": task_id})
        if refusal is not None:
            raise refusal


def apply(raw: dict[str, Any], fields: Mapping[str, Any]) -> None:
    """Set `fields` in a whole meta.json; None deletes a field."""
    for name, value in fields.items():
        if value is None:
            raw.pop(name, None)
        else:
            raw[name] = value


def edge_events(old: BudgetStatus, new: BudgetStatus) -> Events:
    """Build the `budget` event of a change, or nothing."""
    if not budgets.rises(old, new):
        return []
    data: dict[str, Any] = {
        "from": old.status,
        "to": new.status,
        "exceeded": list(new.exceeded),
        "warning": list(new.warning),
    }
    if new.recommended_next:
        data["recommended_next"] = new.recommended_next
    return [("budget", data)]


def _require_open(raw: Mapping[str, Any], task_id: str) -> None:
    if raw.get("kind") != ENVELOPE:
        raise NotAnEnvelope(task_id=task_id, kind=str(raw.get("kind")))
    if raw.get("status") not in LIVE:
        raise EnvelopeEnded(task_id=task_id, status=str(raw.get("status")))


def _require_owner(raw: Mapping[str, Any], task_id: str, session: str | None) -> None:
    """Refuse a call of a session that does not own the envelope; one without an owner is open.

    The fields are OpenChrome's, as is the rule. Calls here have no tenant, so an owner whose
    tenant counts is never theirs.
    """
    owner = raw.get("owner")
    if owner is None:
        return
    given = owner if isinstance(owner, Mapping) else {}
    of_tenant = given.get("mode") in _TENANT_MODES and given.get("tenant_id") is not None
    if of_tenant or session is None or given.get("session_id") != session:
        raise EnvelopeOfAnother(task_id=task_id, owner=str(given.get("session_id"))[:40])


_TENANT_MODES: Final = ("api-key", "jwt")


def _summary(raw: dict[str, Any]) -> dict[str, Any]:
    """Return `args_summary`, which holds the notes; created where no usable one exists."""
    given = raw.get("args_summary")
    if not isinstance(given, dict):
        given = raw["args_summary"] = {}
    return given


def _bounded(text: str) -> str:
    return redact.text(text)[:NOTE_CHARACTERS]


def _redacted_call(call: ToolCall) -> ToolCall:
    args = {
        name: {"_length": len(item)} if name in _TYPED and isinstance(item, str) else item
        for name, item in call.args.items()
    }
    error = call.error
    if error is not None:
        error = msgspec.structs.replace(error, message=_bounded(error.message))
    return replace(
        call,
        tool=_bounded(call.tool),
        args=redact.value(args),
        summary=_bounded(call.summary),
        error=error,
    )


def _call_data(call: ToolCall) -> dict[str, Any]:
    """Data of a `tool_call` event: OpenChrome's fields, shortened arguments, and the error."""
    data: dict[str, Any] = {
        "tool": call.tool,
        "ok": call.ok,
        "durationMs": round(call.duration_ms),
        "sessionId": call.session,
        "args": json.dumps(call.args, ensure_ascii=False, default=str)[:NOTE_CHARACTERS],
        "summary": call.summary,
        "error": msgspec.to_builtins(call.error),
    }
    return {name: value for name, value in data.items() if value not in (None, "", "{}")}
