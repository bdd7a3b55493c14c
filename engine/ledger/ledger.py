"""Ledger: the interface through which every process reads and writes task folders.

It owns the layout and the order of writes (result, terminal meta, terminal event). The disk is the
only truth: nothing is cached, so two processes can never disagree. Every call is synchronous and
may wait for a lock or a disk: callers use a thread.

Without a lease it only reads, and reading creates, changes and touches nothing; an explicit change
(a cancel) then acquires a lease for that moment. `Commits` is the read-modify-write of one
meta.json under both locks; a terminal state is final.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from engine.ledger import changes, journal, meta, task_files
from engine.ledger.files import Folder, Unflushed, Unusable, writing
from engine.ledger.lease import Lease, temporary_lease
from engine.ledger.lock import TIMEOUT_S, LockLost, TaskLock, must_wait
from engine.ledger.machine import wall_ms
from engine.ledger.meta import read_meta
from engine.ledger.reader import LedgerReader
from engine.ledger.result_assembly import APART_BYTES, apart, assemble
from engine.model import redact
from engine.model.errors import (
    EngineError,
    LedgerReadOnly,
    LockTimeout,
    TaskExists,
    TaskNotFound,
    TaskUnreadable,
    TransitionError,
)
from engine.model.lifecycle import LEDGER
from engine.model.records import (
    ARTIFACTS_NAME,
    DOCUMENTS,
    EVENTS_NAME,
    LIVE,
    META_NAME,
    PAGES_NAME,
    RESULT_NAME,
    EngineFields,
    ErrorInfo,
    Status,
    TaskRecord,
    Units,
)

log = logging.getLogger(__name__)

Change = Callable[[dict[str, Any]], None]
REASON_CHARACTERS: Final = 500
_ENDINGS: Final = {end: end.lower() for end in (Status.COMPLETED, Status.FAILED, Status.CANCELLED)}
_TRIES: Final = 10


class Ledger(LedgerReader):
    """Tasks in folders below `root`; see the module. Safe to share between threads.

    Calls that write raise LedgerReadOnly or LedgerWriteFailed, and then the old file is intact.
    `on_state_change` is called after each change of state that this ledger wrote (claimed, ended).
    """

    def __init__(
        self, root: Path, *, lease: Lease | None = None, now_ms: Callable[[], int] = wall_ms
    ) -> None:
        super().__init__(root, now_ms=now_ms)
        self.lease = lease
        self.on_state_change: Callable[[TaskRecord], None] = lambda record: None
        self._commits = Commits()
        self._healed: set[tuple[str, str]] = set()  # line files that are known to end in a line end
        self._sizes: dict[tuple[str, str], int] = {}  # of artifacts that grow
        self._appending = threading.Lock()

    def create(
        self,
        kind: str,
        args: Mapping[str, Any],
        *,
        engine: EngineFields | None = None,
        now_ms: int | None = None,
        fields: Mapping[str, Any] | None = None,
        documents: Mapping[str, bytes] | None = None,
    ) -> TaskRecord:
        """Create a PENDING task of this process; it is on disk when this returns.

        `args` are validated by the caller and redacted here. `fields`, redacted already, are in the
        record from its first moment (an envelope is RUNNING at once, and keeps another process'
        pid), and so are its `documents` (see records.DOCUMENTS). Raises LedgerReadOnly also for a
        ledger without a lease: a task needs an owner. A `task_id` among the fields is that of a
        claimed run; TaskExists when another program created it first.
        """
        lease = self._own_lease()
        summary = redact.summarise(args)
        created_at = self._now_ms() if now_ms is None else now_ms
        raw = changes.new_meta(kind, summary, engine or EngineFields(), lease, created_at)
        changes.preset(raw, fields or {})
        claimed_id = raw.get("task_id")
        while True:
            nonce = f"{lease.pid}:{created_at}:{secrets.token_hex(8)}"
            task_id = claimed_id or changes.derived_id(kind, summary.whole, nonce, created_at)
            data = meta.encoded({"task_id": task_id, **raw, "task_nonce": nonce})
            with writing(str(self.root)), Folder.at(str(self.root)) as root:
                files = {META_NAME: data, **(documents or {})}
                if task_files.place_task(root, task_id, files, lease.temp_name("new")):
                    return meta.decode_record(data, task_id)
            if claimed_id is not None:
                raise TaskExists(task_id=task_id)

    def mutate(
        self, task_id: str, change: Change, *, durable: bool = False, wait_s: float = TIMEOUT_S
    ) -> TaskRecord:
        """Read, `change` and replace meta.json under both locks; return the new record.

        Source: seed 000, invariants 1 and 3.

        `change` gets the whole dict and must be quick, because it holds the lock. Without a
        difference nothing is written. `durable` survives a loss of power.

        Raises:
            TransitionError: the task is terminal, or the table forbids the step.
            TaskUnreadable: its meta.json cannot be used and is left alone.
            LockTimeout: the folder stayed locked for `wait_s`.
        """
        return self._commit(task_id, change, How(durable, wait_s)).record

    def must_wait(self, task_id: str) -> bool:
        """Return whether a change of this task would wait for a foreign lock. Writes nothing."""
        with self._task(task_id) as folder:
            return must_wait(folder)

    def claim(self, task_id: str) -> TaskRecord:
        """Claim a PENDING task for this process: RUNNING, with a `started` event.

        Raises TransitionError when another process was first, or when it was cancelled.
        """
        lease = self._own_lease()

        def start(raw: dict[str, Any]) -> None:
            ours = changes.engine_of(raw).get("runner") == lease.nonce
            if raw.get("status") != Status.PENDING and not (
                ours and task_id in self._commits.unsure
            ):
                LEDGER.check(f"task {task_id}", str(raw.get("status")), Status.RUNNING)
            changes.begin(raw, lease, self._now_ms())

        record = self.mutate(task_id, start, durable=True)
        self._notify(record)
        self.note(task_id, [("started", None)])
        return record

    def request_cancel(self, task_id: str, reason: str | None = None) -> TaskRecord:
        """Request a task to stop: CANCELLED at once when it has no runner, else by its owner.

        The first request is kept; an ended task is returned unchanged. `reason` is kept in the
        `cancel_requested` event. Source: seed 000, invariant 4.
        """
        why = redact.text(reason)[:REASON_CHARACTERS] if reason else None
        try:
            commit = self._commit(
                task_id,
                lambda raw: changes.request_stop(raw, self._now_ms(), why),
                How(durable=True),
            )
        except LedgerReadOnly:
            ended = self.read(task_id)
            if isinstance(ended, TaskRecord) and ended.is_terminal:
                return ended  # there is nothing to write
            raise
        if commit.changed:
            events: list[tuple[str, dict[str, Any] | None]] = []
            if reason is not None or not commit.record.is_terminal:
                events.append(("cancel_requested", {"reason": reason} if reason else None))
            if commit.record.is_terminal:
                events.append(("cancelled", None))
            self.note(task_id, events, durable=True)
        return commit.record

    def finish(
        self,
        task_id: str,
        status: Status,
        *,
        error: ErrorInfo | None = None,
        units: Units | None = None,
    ) -> TaskRecord:
        """End a task for good: terminal meta, then its event; `write_result` comes before.

        A stop request that is on disk by now makes it CANCELLED. Raises TransitionError when it has
        already ended.
        """
        if error is not None:
            error = ErrorInfo(message=redact.text(error.message), code=error.code)
        result_path = str(self.root / task_id / RESULT_NAME)

        def end(raw: dict[str, Any]) -> None:
            if self._commits.ended(task_id, str(raw.get("status"))):
                return
            LEDGER.check(f"task {task_id}", str(raw.get("status")), status)
            changes.end(
                raw, status, self._now_ms(), error=error, units=units, result_path=result_path
            )

        record = self.mutate(task_id, end, durable=True)
        error = record.error  # a force may have removed it
        data = {"error": {"message": error.message, "code": error.code}} if error else None
        self.note(task_id, [(_ENDINGS[Status(record.status)], data)], durable=True)
        self._healed -= {(task_id, EVENTS_NAME), (task_id, PAGES_NAME)}
        for mark in [mark for mark in self._sizes if mark[0] == task_id]:
            del self._sizes[mark]
        return record

    def append_event(self, task_id: str, kind: str, data: Mapping[str, Any] | None = None) -> None:
        """Append one redacted event by one write; not flushed (a kill loses nothing)."""
        self.append_events(task_id, [(kind, data)])

    def append_events(
        self,
        task_id: str,
        events: Iterable[tuple[str, Mapping[str, Any] | None]],
        *,
        durable: bool = False,
    ) -> None:
        """Append several events by one write, so that no other line comes between them."""
        now = self._now_ms()
        lines = [
            journal.event_line(kind, now, redact.value(data) if data is not None else None)
            for kind, data in events
        ]
        self._append(task_id, EVENTS_NAME, b"".join(lines), durable)

    def append_page(self, task_id: str, page: Mapping[str, Any]) -> None:
        """Append a finished unit; before its progress event, so that a kill loses no page."""
        self._append(task_id, PAGES_NAME, journal.line(task_files.clean_page(page)), durable=False)

    def append_pages(self, task_id: str, pages: Iterable[Mapping[str, Any]]) -> None:
        """Append several units by one write."""
        lines = b"".join(journal.line(task_files.clean_page(page)) for page in pages)
        self._append(task_id, PAGES_NAME, lines, durable=False)

    def write_units(self, task_id: str, head: Mapping[str, Any], key: str) -> None:
        """Write result.json: `head` with the kept units, or above `APART_BYTES` the head alone.

        Raises TransitionError for a task that has already ended.
        """
        if self.file_size(task_id, PAGES_NAME) <= APART_BYTES:
            self.write_result(task_id, assemble(head, key, self.raw_pages(task_id)))
            return
        # The file that a flushed result refers to must survive a loss of power as well.
        self._append(task_id, PAGES_NAME, b"", durable=True)
        total = sum(1 for _ in self.raw_pages(task_id))
        self.write_result(task_id, apart(head, key, total))

    def write_result(self, task_id: str, chunks: Iterable[bytes]) -> None:
        """Write result.json atomically, streamed and flushed.

        Raises TransitionError for a task that has already ended.
        """
        with self._task(task_id) as folder:
            status = str(self._read_strict(folder, task_id)[1].get("status"))
            if status not in LIVE:
                if self._commits.ended(task_id, status):
                    return  # it is there already
                raise TransitionError(subject=f"task {task_id}", source=status, target="result")
            with temporary_lease(self.root, self.lease) as lease, writing(folder.path):
                temp = lease.temp_name(RESULT_NAME)
                folder.replace(RESULT_NAME, chunks, temp=temp, durable=True)

    def write_artifact(self, task_id: str, name: str, data: bytes) -> str:
        """Write a file of the task under a safe name; return its path in the folder."""
        with (
            self._task(task_id) as folder,
            temporary_lease(self.root, self.lease) as lease,
            writing(folder.path),
        ):
            return task_files.write_artifact(folder, name, data, lease)

    def append_artifact(self, task_id: str, name: str, data: bytes) -> None:
        """Append to a file of the task that this process began; a failed write leaves no part."""
        mark = (task_id, name)
        with (
            self._appending,
            self._task(task_id) as folder,
            self._writable(folder, task_id),
        ):
            known = self._sizes.get(mark, 0)
            self._sizes[mark] = task_files.append_artifact(folder, name, data, known)

    def carry_artifact(
        self,
        task_id: str,
        source: str,
        name: str,
        whole: Callable[[BinaryIO], int],
        check: Callable[[], None],
    ) -> int:
        """Copy an artifact of `source`, which `append_artifact` continues; return its size.

        `whole` returns the number of bytes to copy. `check` may raise to leave everything as it
        was. Returns 0 if the task has no such file.
        """
        path = f"{ARTIFACTS_NAME}/{name}"
        if path not in {found for found, *_ in self.files(source)}:
            return 0
        with (
            self.open_file(source, path) as file,
            self._task(task_id) as folder,
            temporary_lease(self.root, self.lease) as lease,
            self._writable(folder, task_id),
        ):
            size = whole(file)
            task_files.copy_artifact(folder, name, file, size, lease, check)
            self._sizes[task_id, name] = size
        return size

    def carry_pages(
        self,
        task_id: str,
        source: str,
        spans: Iterable[tuple[int, int]],
        check: Callable[[], None],
    ) -> None:
        """Replace pages.jsonl atomically by these byte ranges of that of `source`.

        `check` is called now and then, and may raise to leave everything as it was.
        """
        with (
            self.open_file(source, PAGES_NAME) as file,
            self._task(task_id) as folder,
            temporary_lease(self.root, self.lease) as lease,
            self._writable(folder, task_id),
        ):
            chunks = journal.ranges(file, spans, check)
            folder.replace(PAGES_NAME, chunks, temp=lease.temp_name(PAGES_NAME), durable=False)

    def carry_file(self, task_id: str, source: str, path: str) -> None:
        """Copy an artifact of `source`; one that is missing there is left out."""
        name = path.removeprefix(f"{ARTIFACTS_NAME}/")
        data = self.read_artifact(source, name)
        if data is not None:
            self.write_artifact(task_id, name, data)

    def write_document(self, task_id: str, name: str, data: bytes) -> None:
        """Replace a kind's own file (see records.DOCUMENTS) atomically."""
        if name not in DOCUMENTS:
            raise ValueError(f"{name} is no document of a task")
        with (
            self._task(task_id) as folder,
            temporary_lease(self.root, self.lease) as lease,
            self._writable(folder, task_id),
        ):
            folder.replace(name, [data], temp=lease.temp_name(name), durable=False)

    def _commit(self, task_id: str, change: Change, how: How) -> Commit:
        with self._task(task_id) as folder:
            self._read_strict(folder, task_id)  # an unusable folder gets no lock file either
            with temporary_lease(self.root, self.lease) as lease, self._writable(folder, task_id):
                commit = self._commits.make(folder, task_id, change, lease, how)
        if commit.changed and commit.record.is_terminal:  # it was live before: terminal is final
            self._notify(commit.record)
        return commit

    def _notify(self, record: TaskRecord) -> None:
        try:
            self.on_state_change(record)
        except EngineError as error:  # an observer's failure must not fail the task
            log.warning("task %s: its end was not passed on: %s", record.task_id, error)

    def _append(self, task_id: str, name: str, data: bytes, durable: bool) -> None:
        mark = (task_id, name)
        with self._task(task_id) as folder, self._writable(folder, task_id):
            heal = mark not in self._healed
            self._healed.discard(mark)  # until it is known again to end in a line end
            folder.append(name, data, heal=heal, durable=durable)
            self._healed.add(mark)

    def note(
        self,
        task_id: str,
        events: Iterable[tuple[str, Mapping[str, Any] | None]],
        *,
        durable: bool = False,
    ) -> None:
        """Append events of a change that is on disk already; a failure is only logged."""
        try:
            self.append_events(task_id, events, durable=durable)
        except EngineError as error:
            log.warning("task %s: its event could not be written: %s", task_id, error)

    @contextmanager
    def _writable(self, folder: Folder, task_id: str) -> Iterator[None]:
        with writing(folder.path):
            try:
                yield
            except FileNotFoundError as error:
                raise TaskNotFound(task_id=task_id, root=str(self.root)) from error

    def _own_lease(self) -> Lease:
        if self.lease is None:
            raise LedgerReadOnly(path=str(self.root))
        self.lease.renew(anew=True)  # a task whose owner cannot be found would count as an orphan
        return self.lease


class Commit(NamedTuple):
    """Record that is on disk now, and whether this call changed it."""

    record: TaskRecord
    changed: bool


class How(NamedTuple):
    """Options of a commit: `durable` survives a loss of power, `patience_s` limits the lock
    wait."""

    durable: bool
    patience_s: float = TIMEOUT_S


class Commits:
    """Changes that one process makes to the tasks of a ledger.

    `unsure` maps tasks to the status that they were given in a change that is in place but was not
    flushed, so that its caller got an error. The same change, requested again, is written and
    flushed again.
    """

    def __init__(self) -> None:
        self.unsure: dict[str, str] = {}

    def ended(self, task_id: str, status: str) -> bool:
        """Return whether we gave the task this end in an unflushed change."""
        return status not in LIVE and self.unsure.get(task_id) == status

    def make(self, folder: Folder, task_id: str, change: Change, lease: Lease, how: How) -> Commit:
        """Apply `change` to the whole dict on disk; see `Ledger.mutate` for its errors."""
        for _ in range(_TRIES):
            try:
                with TaskLock(folder, task_id, timeout_s=how.patience_s) as lock:
                    raw, was = _read(folder, task_id)
                    data = self._changed(raw, was, task_id, change)
                    if data is None:
                        return Commit(meta.decode_record(meta.encoded(raw), task_id), False)
                    temp = lease.temp_name(META_NAME)
                    folder.replace(
                        META_NAME, [data], temp=temp, durable=how.durable, check=lock.check
                    )
            except LockLost:
                log.warning("task %s: somebody took our lock; nothing was written, again", task_id)
            except Unflushed:
                self.unsure[task_id] = str(raw.get("status"))
                raise
            else:
                self.unsure.pop(task_id, None)
                return Commit(meta.decode_record(data, task_id), True)
        raise LockTimeout(task_id=task_id, waited_s=TIMEOUT_S)

    def _changed(self, raw: dict[str, Any], was: str, task_id: str, change: Change) -> bytes | None:
        """Return the file's new bytes; None when there is no difference. Raises Unusable."""
        again = task_id in self.unsure
        before = meta.encoded(raw)
        change(raw)
        data = meta.encoded(raw)
        if data == before and not again:
            return None
        status = raw.get("status")
        if (was not in LIVE or was != status) and not (again and was == status):
            LEDGER.check(f"task {task_id}", was, str(status))
        if len(data) > meta.META_CAP:
            raise Unusable("meta.json would be larger than 1 MiB")
        return data


def _read(folder: Folder, task_id: str) -> tuple[dict[str, Any], str]:
    """Read the whole dict and its status. Raises TaskUnreadable, OSError."""
    try:
        _, raw = read_meta(folder)
        status = raw.get("status", "")
        if not isinstance(status, str):
            raise Unusable("its status is not a text")
    except Unusable as error:
        raise TaskUnreadable(task_id=task_id, reason=str(error), path=folder.path) from error
    return raw, status
