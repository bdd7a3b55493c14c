"""Records of runs and their storage: `<home>/comet-runs/`, or memory while it is unwritable.

A record has the seed's thirteen fields, under its names.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypedDict

import msgspec

from engine.ledger.files import MIB, Folder, Unusable
from engine.ledger.record_store import RecordNotFound, RecordStore, RecordUnreadable
from engine.model import redact
from engine.model.errors import (
    EngineError,
    InvalidArguments,
    LedgerReadOnly,
    LedgerUnusable,
    LedgerWriteFailed,
    Problem,
)
from engine.model.lifecycle import RUN
from engine.model.records import ROUTES, RUN_ID, RUNS_FOLDER
from engine.text.messages import ENGLISH

log = logging.getLogger(__name__)

TEXT_CHARACTERS: Final = 500
METADATA_BYTES: Final = 64 * 1024


class Run(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A run's record; times are ISO 8601 in UTC. Source: seed 003, lifecycle envelope."""

    task_thread_id: str
    run_id: str
    status: str
    started_at: str
    route: str | None = None
    fallback_used: bool = False
    agent_id: str | None = None
    tab_group_id: str | None = None
    audit_session_id: str | None = None
    workflow_id: str | None = None
    completed_at: str | None = None
    failure_reason: str | None = None
    metadata: dict[str, Any] | None = None

    @property
    def is_terminal(self) -> bool:
        return RUN.is_terminal(self.status)


class RunUpdate(TypedDict, total=False):
    """Facts that may be added to a running run."""

    audit_session_id: str | None
    tab_group_id: str | None
    workflow_id: str | None
    metadata: Mapping[str, Any] | None


class RunFacts(RunUpdate, total=False):
    """Facts that may be given at a run's start."""

    route: str | None
    fallback_used: bool
    agent_id: str | None


def envelope(run: Run) -> dict[str, Any]:
    """Encode the record under the seed's names, without None fields."""
    found: dict[str, Any] = msgspec.to_builtins(run)
    return {name: value for name, value in found.items() if value is not None}


def decoded(raw: Mapping[str, Any]) -> Run:
    """Decode a record. Raises ValueError with the reason."""
    try:
        run = msgspec.convert(dict(raw), Run)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error
    if run.status not in RUN.steps:
        raise ValueError(f"its status is '{run.status[:40]}'")
    return run


def iso(moment_ms: float) -> str:
    """Format `2026-11-22T04:10:00.123Z`; times outside the calendar become 1970."""
    try:
        moment = datetime.fromtimestamp(moment_ms / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        moment = datetime.fromtimestamp(0, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clean(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Validate, redact and bound `facts` for storage; None values are dropped.

    Raises:
        InvalidArguments: with every mistake.
    """
    found = problems(facts)
    if found:
        raise InvalidArguments(tuple(found))
    return {
        name: redact.text(value) if isinstance(value, str) else redact.value(value)
        for name, value in facts.items()
        if value is not None
    }


def problems(facts: Mapping[str, Any]) -> list[Problem]:
    """Return every mistake in the facts of a run; None values are ignored."""
    return [problem for name, value in facts.items() if (problem := _problem(name, value))]


def _problem(name: str, value: object) -> Problem | None:
    if value is None:
        return None
    if name == "fallback_used":
        right = isinstance(value, bool)
        return None if right else Problem(name, "wrong_type", "must be true or false")
    if name == "metadata":
        return _metadata_problem(value)
    if not isinstance(value, str) or not value or len(value) > TEXT_CHARACTERS:
        return Problem(name, "wrong_value", f"must be a text of 1 to {TEXT_CHARACTERS} characters")
    if name == "route" and value not in ROUTES:
        return Problem(name, "wrong_value", f"must be one of {', '.join(ROUTES)}")
    if name == "audit_session_id" and not RUN_ID.fullmatch(value):
        return Problem(name, "wrong_value", "must be letters, digits, - and _")
    return None


def _metadata_problem(value: object) -> Problem | None:
    if not isinstance(value, Mapping):
        return Problem("metadata", "wrong_type", "must be an object")
    try:
        size = len(msgspec.json.encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return Problem("metadata", "not_json", "must be plain JSON values")
    if size > METADATA_BYTES:
        return Problem("metadata", "too_large", f"must be under 64 KiB, this is {size:,} bytes")
    return None


Raw = dict[str, Any]
Change = Callable[[Raw | None], Raw]
_UNWRITABLE: Final = (LedgerReadOnly, LedgerWriteFailed, LedgerUnusable)


class KeptRuns:
    """Records by run id; one process at a time changes a record, under its lock.

    `notice` is a sentence for the user while records are in memory only: they are lost with this
    process, and other processes do not see them. Source: seed 003, persistence.
    """

    def __init__(self, home: Path) -> None:
        self.record_store = RecordStore(home / RUNS_FOLDER, "run", RUN_ID)
        self.notice = ""
        self._memory: dict[str, Raw] = {}
        self._guard = threading.RLock()

    def find(self, run_id: str) -> Raw | None:
        """Return the record, or None.

        Raises:
            NotAnId: the id is invalid.
            RecordUnreadable: its file is unusable.
        """
        self.record_store.check(run_id)
        with self._guard:
            if run_id in self._memory:
                return deepcopy(self._memory[run_id])
        try:
            return self._checked(self.record_store.read(run_id), run_id)
        except (RecordNotFound, LedgerUnusable):
            return None

    def change(self, run_id: str, change: Change, *, mend: bool = False) -> tuple[Raw | None, Raw]:
        """Replace the record (None: missing) by the result of `change`; return old and new record.

        If `change` raises, nothing changes. With `mend` an unusable file counts as missing.
        """
        with self._guard:
            held = self._memory.get(run_id)
            try:
                before, after = self._on_disk(run_id, change, held, mend)
            except _UNWRITABLE as error:
                before = held if held is not None else self._readable(run_id)
                after = change(deepcopy(before))
                self._memory[run_id] = after
                self._tell(error)
            else:
                self._memory.pop(run_id, None)
                self.notice = self.notice if self._memory else ""
            return before, after

    def is_in_memory(self, run_id: str) -> bool:
        return run_id in self._memory

    def settle(self) -> None:
        """Write the records that are in memory only, after the disk has space again."""
        for run_id in tuple(self._memory):
            try:
                self.change(run_id, _as_it_is)
            except EngineError as error:
                log.info("run %s cannot be written down yet: %s", run_id, error)

    def every(self) -> Iterator[Run]:
        """Yield all readable runs, unordered, in one pass over the folder.

        Raises:
            LedgerUnusable: their folder cannot be read, and none are in memory.
        """
        with self._guard:
            memory = deepcopy(self._memory)
        for raw in memory.values():
            yield decoded(raw)
        ids = [run_id for run_id in self._ids() if run_id not in memory]
        try:
            folder = Folder.at(str(self.record_store.folder))
        except OSError:
            return
        with folder:
            for run_id in ids:
                try:
                    raw = msgspec.json.decode(folder.read(f"{run_id}.json", MIB), type=dict)
                    yield decoded(self._checked(raw, run_id))
                except (OSError, Unusable, ValueError, RecursionError, EngineError) as error:
                    log.info("run %s cannot be read: %s", run_id, error)

    def _ids(self) -> list[str]:
        try:
            return self.record_store.ids()
        except LedgerUnusable:
            if not self._memory:
                raise
            return []  # the notice has the reason

    def _on_disk(
        self, run_id: str, change: Change, held: Raw | None, mend: bool
    ) -> tuple[Raw | None, Raw]:
        with self.record_store.hold(run_id, make=True) as folder:
            before = held if held is not None else self._found(folder, run_id, mend)
            after = change(deepcopy(before))
            if after != before or held is not None:
                self.record_store.put(folder, run_id, after)
            return before, after

    def _found(self, folder: Folder, run_id: str, mend: bool) -> Raw | None:
        try:
            return self._checked(self.record_store.read_in(folder, run_id), run_id)
        except RecordNotFound:
            return None
        except RecordUnreadable:
            if mend:
                return None
            raise

    def _readable(self, run_id: str) -> Raw | None:
        """Read the record from a folder that cannot be written."""
        try:
            return self._checked(self.record_store.read(run_id), run_id)
        except (RecordNotFound, RecordUnreadable, LedgerUnusable):
            return None

    def _checked(self, raw: Raw, run_id: str) -> Raw:
        """Validate a record; a case-insensitive file system may return run `A` for `a`."""
        try:
            run = decoded(raw)
            if run.run_id == run_id:
                return raw
            reason = f"it is the record of run {run.run_id[:40]}"
        except ValueError as error:
            reason = str(error)
        path = str(self.record_store.folder / f"{run_id}.json")
        raise RecordUnreadable(noun="run", id=run_id, reason=reason, path=path)

    def _tell(self, error: EngineError) -> None:
        notice = ENGLISH["notice.runs.memory"].format(reason=str(error))
        if notice != self.notice:
            log.warning("%s", notice)
        self.notice = notice


def _as_it_is(raw: Raw | None) -> Raw:
    return raw or {}
