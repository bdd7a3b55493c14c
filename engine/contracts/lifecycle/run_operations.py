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
from engine.contracts.lifecycle.run_record import (
    RUN_ID,
    TEXT_CHARACTERS,
    Run,
    RunFacts,
    RunUpdate,
    clean,
    decoded,
    envelope,
    iso,
)
from engine.contracts.lifecycle.run_store import KeptRuns, Raw
from engine.ledger import journal
from engine.ledger.files import Folder, writing
from engine.ledger.lease import make_root
from engine.ledger.machine import wall_ms
from engine.model import redact
from engine.model.errors import EngineError, InvalidArguments, Problem
from engine.model.lifecycle import RUN

# `lifecycle.jsonl`: every transition of a run, in the audit session that the run is linked to.

log = logging.getLogger(__name__)

FOLDER: Final = "audit"
FILE: Final = "lifecycle.jsonl"


class Audit:
    """The audit sessions below `<home>/audit/`; `session_id` is this process' own.

    Its folder is made with its first line, so that a process that only looks leaves none.
    """

    def __init__(self, home: Path, session_id: str | None = None) -> None:
        self._folder = home / FOLDER
        self.session_id = session_id or f"session-{uuid4()}"

    def write(self, session_id: str, line: dict[str, Any]) -> None:
        """Add one line by one write. What cannot be written is logged: the run itself counts."""
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
    """Runs of one home. Synchronous: every call may wait for a lock or a disk, so use a thread.

    `route` and `agent_id` stand in every run that does not say otherwise. Every call raises
    NotAnId for an id that no run can have (no path is made of it), and LockTimeout.
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
        self.folder = self._kept.shelf.folder
        self.audit = Audit(home)
        self.new_id = new_id
        self._defaults = {"route": route, "agent_id": agent_id}
        self._now_ms = now_ms

    @property
    def notice(self) -> str:
        """Why records are in memory only; empty while they are on disk."""
        return self._kept.notice

    def settle(self) -> None:
        """Write down the records that are in memory only, as far as that goes by now."""
        self._kept.settle()

    def is_on_disk(self, run_id: str) -> bool:
        """False while its newest state is in memory only."""
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
        """Register a run and start it, or start one that is pending; `deferred` leaves it pending.

        A run that is there already keeps its facts: started again, a running one is returned
        as it is. `at_ms` is when it was created, by default now.

        Raises:
            InvalidArguments: with every mistake.
            LifecycleTransitionError: it has ended.
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
        """Add to a running run: audit session, tab group, workflow, metadata; never its state.

        `metadata` is laid over what is there, key by key.

        Raises:
            InvalidArguments, RunNotRunning, NotOnShelf.
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
        """End a running run well; one that is completed already stays as it is.

        Raises:
            LifecycleTransitionError: it never ran, or it ended otherwise.
            NotOnShelf: there is no such run.
        """
        return self._end(run_id, "completed", None, at_ms)

    def abort_run(
        self, run_id: str, reason: str | None = None, *, at_ms: float | None = None
    ) -> Run:
        """End a run on purpose, for an optional reason; one that has ended stays as it is.

        Raises:
            NotOnShelf: there is no such run.
        """
        return self._end(run_id, "aborted", reason, at_ms)

    def fail_run(self, run_id: str, reason: str, *, at_ms: float | None = None) -> Run:
        """End a run with what went wrong; one that has ended stays as it is.

        Raises:
            InvalidArguments: the reason is blank.
            NotOnShelf: there is no such run.
        """
        if not reason.strip():
            raise InvalidArguments((Problem("reason", "required", "must say what went wrong"),))
        return self._end(run_id, "failed", reason, at_ms)

    def get_run(self, run_id: str) -> Run | None:
        """The whole record, or None where there is none. Looking writes nothing.

        Raises:
            RecordUnreadable: its file cannot be used, and is left alone.
        """
        raw = self._kept.find(run_id)
        return None if raw is None else decoded(raw)

    def known_run(self, run_id: str) -> Run:
        """As `get_run`; raises NotOnShelf where there is none."""
        run = self.get_run(run_id)
        if run is None:
            raise self._kept.shelf.missing(run_id)
        return run

    def list_runs(self, *, status: Collection[str] = (), limit: int | None = 50) -> list[Run]:
        """Runs, newest first; without `limit` all of them. What cannot be read is left out.

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
            raise self._kept.shelf.missing(run_id)
        return raw

    def _change(
        self, run_id: str, change: Callable[[Raw | None], Raw], *, mend: bool = False
    ) -> Run:
        self._kept.shelf.check(run_id)
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
    """Field names as they are stored."""
    stored = {field.name: field.encode_name for field in msgspec.structs.fields(Run)}
    return {stored[name]: value for name, value in fields.items()}
