"""Envelopes of one ledger: start, update, finish, and the calls that name one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from engine import budgets
from engine.budgets import BudgetStatus, ToolCall
from engine.budgets.envelopes.envelope_requests import (
    NOTE_CHARACTERS,
    EnvelopeRequest,
    checked_outcome,
    checked_update,
)
from engine.budgets.envelopes.envelope_state import EnvelopeState, state_of
from engine.budgets.envelopes.errors import EnvelopeEnded, NotAnEnvelope
from engine.budgets.envelopes.task_duration import DurationMeter
from engine.ledger import changes
from engine.ledger.ledger import Ledger
from engine.ledger.machine import wall_ms
from engine.model import redact
from engine.model.errors import EngineError
from engine.model.records import ENVELOPE, LIVE, EngineFields, Status, TaskRecord

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

    def finish(self, task_id: str, outcome: str, *, note: str | None = None) -> TaskRecord:
        """Close an envelope for good: completed, failed or cancelled, with a final note.

        A cancel that is on disk by then makes it CANCELLED, as with every task.

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
        self._ledger.note(task_id, [(record.status.lower(), data)], durable=True)
        return record

    def expect(self, task_id: str) -> dict[str, Any]:
        """Read the meta.json of an envelope that accepts calls now.

        Raises:
            NotAnEnvelope, EnvelopeEnded, NotATaskId, TaskNotFound, TaskUnreadable.
        """
        raw = self._ledger.read_raw(task_id)
        _require_open(raw, task_id)
        return raw

    def record(self, task_id: str | None, call: ToolCall) -> EnvelopeState | None:
        """Count a call in its envelope; do nothing without a task id.

        Concurrent calls all count: each is folded in under the task's lock.

        Raises:
            NotAnEnvelope, EnvelopeEnded, NotATaskId, TaskNotFound, TaskUnreadable.
        """
        if task_id is None:
            return None
        clean = _redacted_call(call)
        folded: dict[str, Any] = {}
        transition: Events = []

        def change(raw: dict[str, Any]) -> None:
            transition.clear()
            _require_open(raw, task_id)
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
        refusal = self._guard({**self.expect(task_id), "task_id": task_id})
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
    return replace(
        call, tool=_bounded(call.tool), args=redact.value(args), summary=_bounded(call.summary)
    )


def _call_data(call: ToolCall) -> dict[str, Any]:
    """Data of a `tool_call` event: OpenChrome's fields and the shortened arguments."""
    data: dict[str, Any] = {
        "tool": call.tool,
        "ok": call.ok,
        "durationMs": round(call.duration_ms),
        "sessionId": call.session,
        "args": json.dumps(call.args, ensure_ascii=False, default=str)[:NOTE_CHARACTERS],
        "summary": call.summary,
    }
    return {name: value for name, value in data.items() if value not in (None, "", "{}")}
