"""The six operations on runs, with the seed's idempotency. Source: seed 003."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Unpack
from uuid import uuid4

import msgspec

from engine.contracts.lifecycle.errors import LifecycleTransitionError, RunNotRunning
from engine.contracts.lifecycle.run_store import (
    RUN_ID,
    TEXT_CHARACTERS,
    KeptRuns,
    Raw,
    Run,
    RunFacts,
    RunUpdate,
    clean,
    decoded,
    envelope,
    iso,
)
from engine.ledger import journal
from engine.ledger.files import Folder, writing
from engine.ledger.lease import make_root
from engine.ledger.machine import wall_ms
from engine.model import redact
from engine.model.errors import EngineError, InvalidArguments, Problem
from engine.model.lifecycle import RUN

# `lifecycle.jsonl` holds every transition of a run, in the run's audit session.

log = logging.getLogger(__name__)

FOLDER: Final = "audit"
FILE: Final = "lifecycle.jsonl"


class Audit:
    """Audit sessions below `<home>/audit/`; `session_id` is this process' own.

    A session folder is created with its first line, so that a read-only process leaves none.
    """

    def __init__(self, home: Path, session_id: str | None = None) -> None:
        self._folder = home / FOLDER
        self.session_id = session_id or f"session-{uuid4()}"

    def write(self, session_id: str, line: dict[str, Any]) -> None:
        """Append one line by one write; failure is only logged, since the run record is
        authoritative.
        """
        if not RUN_ID.fullmatch(session_id):
            session_id = self.session_id
        try:
            make_root(self._folder)
            with writing(str(self._folder)), Folder.at(str(self._folder)) as audit:
                with suppress(FileExistsError):
                    audit.make_folder(session_id)
                with audit.enter(session_id) as session:
                    session.append(FILE, journal.line(line), heal=True)
        except EngineError as error:
            log.warning("audit session %s: a transition was not written: %s", session_id, error)


class Runs:
    """Runs of one home. Synchronous: calls may wait for a lock or the disk, so use a thread.

    `route` and `agent_id` are the defaults of new runs. Every call raises LockTimeout, and NotAnId
    for an invalid id, of which no path is built.
    """

    def __init__(
        self,
        home: Path,
        *,
        route: str | None = None,
        agent_id: str | None = None,
        now_ms: Callable[[], int] = wall_ms,
        new_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self._kept = KeptRuns(home)
        self.folder = self._kept.record_store.folder
        self.audit = Audit(home)
        self.new_id = new_id
        self._defaults = {"route": route, "agent_id": agent_id}
        self._now_ms = now_ms

    @property
    def notice(self) -> str:
        """The reason why records are in memory only; "" while they are on disk."""
        return self._kept.notice

    def settle(self) -> None:
        """Write the records that are in memory only, as far as possible."""
        self._kept.settle()

    def is_on_disk(self, run_id: str) -> bool:
        """Return False while the newest state is in memory only."""
        return not self._kept.is_in_memory(run_id)

    def start_run(
        self,
        task_thread_id: str,
        *,
        run_id: str | None = None,
        deferred: bool = False,
        at_ms: float | None = None,
        **facts: Unpack[RunFacts],
    ) -> Run:
        """Register and start a run, or start a pending one; `deferred` leaves it pending.

        An existing run keeps its facts, and a running one is returned unchanged. `at_ms` is the
        creation time, by default now.

        Raises:
            InvalidArguments: with every mistake.
            LifecycleTransitionError: the run has ended.
        """
        said = {name: value for name, value in facts.items() if value is not None}
        fields = clean({**self._defaults, **said, "task_thread_id": task_thread_id})
        run_id = run_id or self.new_id()
        target = "pending" if deferred else "running"

        def start(raw: Raw | None) -> Raw:
            if raw is None:
                return self._new(run_id, target, at_ms, fields)
            source = raw["status"]
            if source == target or (deferred and source == "running"):
                return raw
            return {**raw, "status": _allowed(run_id, source, target)}

        return self._change(run_id, start, mend=at_ms is not None)

    def update_run(self, run_id: str, **facts: Unpack[RunUpdate]) -> Run:
        """Add audit session, tab group, workflow or metadata to a running run.

        `metadata` is merged key by key.

        Raises:
            InvalidArguments, RunNotRunning, RecordNotFound.
        """
        fields = clean(facts)
        if not fields:
            raise InvalidArguments((Problem("", "required", "there is nothing to update"),))

        def update(raw: Raw | None) -> Raw:
            found = self._known(raw, run_id)
            if found["status"] != "running":
                raise RunNotRunning(run_id=run_id, status=found["status"])
            merged = {**(found.get("metadata") or {}), **fields.get("metadata", {})}
            added = _camel({**fields, "metadata": merged} if merged else fields)
            return {**found, **added}

        return self._change(run_id, update)

    def complete_run(self, run_id: str, *, at_ms: float | None = None) -> Run:
        """Complete a running run; a completed one is unchanged.

        Raises:
            LifecycleTransitionError: the run never ran, or ended otherwise.
            RecordNotFound: there is no such run.
        """
        return self._end(run_id, "completed", None, at_ms)

    def abort_run(
        self, run_id: str, reason: str | None = None, *, at_ms: float | None = None
    ) -> Run:
        """Abort a run with an optional reason; an ended one is unchanged.

        Raises:
            RecordNotFound: there is no such run.
        """
        return self._end(run_id, "aborted", reason, at_ms)

    def fail_run(self, run_id: str, reason: str, *, at_ms: float | None = None) -> Run:
        """Fail a run with a reason; an ended one is unchanged.

        Raises:
            InvalidArguments: the reason is blank.
            RecordNotFound: there is no such run.
        """
        if not reason.strip():
            raise InvalidArguments((Problem("reason", "required", "must say what went wrong"),))
        return self._end(run_id, "failed", reason, at_ms)

    def get_run(self, run_id: str) -> Run | None:
        """Return the whole record, or None. Writes nothing.

        Raises:
            RecordUnreadable: its file is unusable; it is not changed.
        """
        raw = self._kept.find(run_id)
        return None if raw is None else decoded(raw)

    def known_run(self, run_id: str) -> Run:
        """Return the record as `get_run`; raise RecordNotFound where there is none."""
        run = self.get_run(run_id)
        if run is None:
            raise self._kept.record_store.missing(run_id)
        return run

    def list_runs(self, *, status: Collection[str] = (), limit: int | None = 50) -> list[Run]:
        """List runs, newest first, all of them if `limit` is None; unreadable ones are omitted.

        Raises:
            LedgerUnusable: their folder cannot be read.
        """
        found = (run for run in self._kept.every() if not status or run.status in status)
        if limit is None:
            return sorted(found, key=_age, reverse=True)
        return heapq.nlargest(limit, found, key=_age)

    def _end(self, run_id: str, target: str, reason: str | None, at_ms: float | None) -> Run:
        def end(raw: Raw | None) -> Raw:
            found = self._known(raw, run_id)
            source = found["status"]
            if source == target or (target != "completed" and RUN.is_terminal(source)):
                return found
            ended: Raw = {
                **found,
                "status": _allowed(run_id, source, target),
                "completedAt": iso(self._now_ms() if at_ms is None else at_ms),
            }
            if reason:
                ended["failureReason"] = redact.text(reason)[:TEXT_CHARACTERS]
            return ended

        return self._change(run_id, end)

    def _new(self, run_id: str, status: str, at_ms: float | None, fields: Raw) -> Raw:
        facts = {
            "audit_session_id": self.audit.session_id,
            **fields,
            "run_id": run_id,
            "status": status,
            "started_at": iso(self._now_ms() if at_ms is None else at_ms),
        }
        return envelope(Run(**facts))

    def _known(self, raw: Raw | None, run_id: str) -> Raw:
        if raw is None:
            raise self._kept.record_store.missing(run_id)
        return raw

    def _change(
        self, run_id: str, change: Callable[[Raw | None], Raw], *, mend: bool = False
    ) -> Run:
        self._kept.record_store.check(run_id)
        before, after = self._kept.change(run_id, change, mend=mend)
        run, source = decoded(after), None if before is None else before["status"]
        if source != run.status:
            self._write_transition(run, source)
        return run

    def _write_transition(self, run: Run, source: str | None) -> None:
        line = {"ts": iso(self._now_ms()), "event": "lifecycle", "from": source, **envelope(run)}
        for name in ("metadata", "startedAt", "completedAt"):
            line.pop(name, None)
        line["to"] = line.pop("status")
        self.audit.write(run.audit_session_id or self.audit.session_id, line)


def _allowed(run_id: str, source: str, target: str) -> str:
    if not RUN.allows(source, target):
        raise LifecycleTransitionError(run_id, source, target)
    return target


def _age(run: Run) -> tuple[str, str]:
    return run.started_at, run.run_id


def _camel(fields: dict[str, Any]) -> dict[str, Any]:
    """Rename fields to their stored names."""
    stored = {field.name: field.encode_name for field in msgspec.structs.fields(Run)}
    return {stored[name]: value for name, value in fields.items()}
