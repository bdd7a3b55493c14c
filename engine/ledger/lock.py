"""Two locks of a task folder: one between our processes, one shared with OpenChrome.

First `lock`, which the kernel holds for us and releases when we die; then the directory
`.lock.lock`, which is how OpenChrome (npm proper-lockfile) locks. Only the holder of the first may
touch a dead second, so two of our processes never take it over at once. Nothing is ever put into
that directory and its time is never changed: either would end the peer. A peer's directory is dead
when it was observed idle for longer than a living peer leaves it (`LockWatch`): one touches its
lock every 5 s. The date of a lock proves nothing, because clocks are set and folders are copied, so
the time between two observations is measured by the monotonic clock.
"""

from __future__ import annotations

import os
import random
import secrets
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple

import msgspec

from engine.ledger import machine
from engine.ledger.files import LOCK_FLAGS, NEW_FLAGS, READ_FLAGS, Folder, Unusable, read_fully
from engine.ledger.listing import task_ids
from engine.model.errors import LedgerUnusable, LockTimeout

OURS, TARGET, PEERS = "lock", ".lock", ".lock.lock"
NAMES: Final = (OURS, TARGET, PEERS)  # of a task; a task run uses other names
TIMEOUT_S: Final = 15.0
WATCH_S: Final = 1.0  # a directory of a dead process of ours is observed for this long
COARSE_S: Final = 0.05  # a file's time may lag behind the clock by a tick of the kernel
BUSY_S, YIELD_S = 2.0, 0.15  # OpenChrome tries every 100 ms and gives up after 100 tries
_RECORD_BYTES = 512
# Node makes its directories writable: the mode tells which program made one.
OUR_MODE: Final = 0o500
UNMOVED_S: Final = 8.0  # a living peer moves its lock every 5 s, later when it is busy
GAP_S: Final = 1.0  # a longer gap counts as this: the machine may have slept
_MOST: Final = 4096
_UNUSED_S: Final = 60.0


class Identity(NamedTuple):
    """A lock directory: an inode alone is soon reused. `has_our_mode` is False on Windows."""

    inode: int
    mtime_ns: int
    has_our_mode: bool


class _Observation(NamedTuple):
    identity: Identity
    unmoved_s: float
    at_s: float


class LockWatch:
    """Observations of lock directories by path. Safe to share between threads."""

    def __init__(self) -> None:
        self._observations: dict[str, _Observation] = {}
        self._guard = threading.Lock()

    def unmoved_s(self, place: str, identity: Identity, now_s: float) -> float:
        """Record that `place` is `identity` now; return the seconds for which this was observed."""
        with self._guard:
            last = self._observations.get(place)
            if last is None or last.identity != identity:
                self._drop_old(now_s)
                self._observations[place] = _Observation(identity, 0.0, now_s)
                return 0.0
            unmoved_s = last.unmoved_s + min(max(now_s - last.at_s, 0.0), GAP_S)
            self._observations[place] = _Observation(identity, unmoved_s, now_s)
            return unmoved_s

    def forget(self, place: str) -> None:
        with self._guard:
            self._observations.pop(place, None)

    def _drop_old(self, now_s: float) -> None:
        if len(self._observations) >= _MOST:
            kept = {p: one for p, one in self._observations.items() if now_s - one.at_s < _UNUSED_S}
            self._observations = kept


WATCHED: Final = LockWatch()  # one per process: every attempt adds to the observations


def identity_of(folder: Folder, name: str) -> Identity | None:
    """Identity of the lock directory `name`; None where there is none."""
    try:
        facts = folder.facts(name)
    except OSError:
        return None
    has_our_mode = stat.S_ISDIR(facts.st_mode) and facts.st_mode & 0o777 == OUR_MODE
    # A file or a link blocks the lock as well.
    return Identity(facts.st_ino, facts.st_mtime_ns, has_our_mode)


def place_of(folder: Folder, name: str) -> str:
    return os.path.join(folder.path, name)


class LockLost(Exception):
    """Our `.lock.lock` is gone: data read under it may be stale."""


class TaskLock:
    """Both locks of the task in `folder`, for one read-modify-write of its meta.json.

    Used once. Entering raises LockTimeout after `timeout_s`, or OSError and Unusable for a folder
    that cannot be written.
    """

    def __init__(
        self,
        folder: Folder,
        task_id: str,
        *,
        timeout_s: float = TIMEOUT_S,
        names: tuple[str, str, str] = NAMES,
    ) -> None:
        self._ours, self._target, self._peers = names
        self._folder = folder
        self._task_id = task_id
        self._timeout_s = timeout_s
        self._fd = -1
        self._identity: Identity | None = None
        self._previous = _Record()
        self._record: dict[str, Any] = {}

    def __enter__(self) -> TaskLock:
        began = time.monotonic()
        self._acquire_own(began)
        try:
            self._previous = self._recorded()
            self._record = msgspec.structs.asdict(self._previous)
            self._yield_to_peer()
            self._acquire_shared(began)
        except BaseException:
            os.close(self._fd)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._current_identity() == self._identity:
                # A directory that cannot be removed stays recorded as ours, so our next process
                # takes it at once.
                with suppress(OSError):
                    self._folder.remove_folder(self._peers)
                    self._record["dir"] = None
            self._record["trying_ns"] = 0
            self._write_record(last=time.monotonic())
        finally:
            os.close(self._fd)

    def free_dead(self) -> None:
        """Remove a `.lock.lock` whose maker, one of our processes, died; without waiting.

        For an ended task: nothing would take its lock again, and so find the directory.
        """
        fd = self._folder.open(self._ours, LOCK_FLAGS)
        try:
            identity = self._current_identity()
            if identity is None or not lock_now(fd):
                return
            self._fd = fd
            self._previous = self._recorded()
            tried = self._was_tried(identity) and time.time() - identity.mtime_ns / 1e9 > WATCH_S
            if tried or self._was_ours(identity):
                self._take_over(identity)
        finally:
            os.close(fd)

    def check(self) -> None:
        """Raise LockLost unless `.lock.lock` is still the one that we made."""
        if self._current_identity() != self._identity:
            raise LockLost(self._task_id)

    def _acquire_own(self, began: float) -> None:
        while (fd := locked_descriptor(self._folder, self._ours)) is None:
            self._give_up_or_wait(began, 0.002, 0.012)
        self._fd = fd

    def _give_up_or_wait(self, began: float, least_s: float, most_s: float) -> None:
        waited_s = time.monotonic() - began
        if waited_s > self._timeout_s:
            raise LockTimeout(task_id=self._task_id, waited_s=waited_s)
        # The peer's lock is a folder, which nothing announces.
        time.sleep(random.uniform(least_s, most_s))

    def _yield_to_peer(self) -> None:
        """Pause 150 ms for the peer after 2 s of unbroken use of this task by our processes.

        All our processes wait at `lock` meanwhile. The monotonic clock is the same for every
        process until the machine restarts, and then it is smaller.
        """
        now = time.monotonic()
        since, last = self._record.get("since", now), self._record.get("last", 0.0)
        if not 0 <= now - last < YIELD_S or not now - since >= 0:
            since = now
        if now - since > BUSY_S:
            time.sleep(YIELD_S)  # lets other processes take the lock
            since = time.monotonic()
        self._record["since"] = since

    def _acquire_shared(self, began: float) -> None:
        if not self._folder.has(self._target):  # OpenChrome resolves its real path
            self._make_target()
        place = place_of(self._folder, self._peers)
        while not self._make_directory():
            if (identity := self._current_identity()) is not None:
                unmoved_s = WATCHED.unmoved_s(place, identity, time.monotonic())
                if self._is_dead(identity, unmoved_s):
                    self._take_over(identity)
                    continue
            self._give_up_or_wait(began, 0.005, 0.05)
        WATCHED.forget(place)

    def _make_target(self) -> None:
        with suppress(FileExistsError):
            fd = self._folder.open(self._target, NEW_FLAGS)
            try:
                os.write(fd, b"{}")
            finally:
                os.close(fd)

    def _make_directory(self) -> bool:
        self._record["trying_ns"] = time.time_ns()
        self._write_record()
        try:
            self._folder.make_folder(self._peers, OUR_MODE)
        except (FileExistsError, PermissionError) as error:
            self._record["trying_ns"] = 0  # a later holder is not one of our dead processes
            self._write_record()
            # Windows refuses while a removed directory is still open somewhere: treat it as busy.
            if isinstance(error, PermissionError) and not self._folder.is_writable():
                raise
            return False
        self._identity = self._current_identity()
        self._record["dir"] = self._identity and self._identity[:2]
        self._write_record()
        return True

    def _current_identity(self) -> Identity | None:
        return identity_of(self._folder, self._peers)

    def _is_dead(self, identity: Identity, unmoved_s: float) -> bool:
        if self._was_ours(identity) or unmoved_s >= UNMOVED_S:
            return True
        return unmoved_s >= WATCH_S and self._was_tried(identity)

    def _was_ours(self, identity: Identity) -> bool:
        """Return whether one of our dead processes made it: a living one would hold `lock`, as we
        do."""
        return self._previous.is_maker_of(identity)

    def _was_tried(self, identity: Identity) -> bool:
        return self._previous.was_tried_by(identity)

    def _take_over(self, identity: Identity) -> None:
        """Move the dead directory aside, verify its identity, and remove it."""
        aside = f"{self._peers}.dead-{secrets.token_hex(8)}"
        with suppress(OSError):  # gone, or busy: the next round tries again
            self._folder.rename(self._peers, aside)
            moved = identity_of(self._folder, aside)
            if moved != identity and not self._folder.has(self._peers):
                # A living peer was quicker: its directory is put back.
                self._folder.rename(aside, self._peers)
                return
            self._folder.remove_folder(aside)

    def _recorded(self) -> _Record:
        return _read_record(self._fd)

    def _write_record(self, last: float | None = None) -> None:
        """Record in `lock` which process holds `.lock.lock`, for recovery after a crash."""
        if last is not None:
            self._record["last"] = last
        self._record["pid"], self._record["started_at"] = machine.own_process()
        data = msgspec.json.encode(self._record)
        with suppress(OSError):  # on a full disk the locks work without it
            os.lseek(self._fd, 0, os.SEEK_SET)
            os.write(self._fd, data.ljust(_RECORD_BYTES))


@contextmanager
def kernel_lock(
    folder: Folder, name: str, subject: str, timeout_s: float = TIMEOUT_S
) -> Iterator[None]:
    """Hold the kernel lock on `name`, for records that only we write. Raises as `TaskLock`."""
    began = time.monotonic()
    while (fd := locked_descriptor(folder, name)) is None:
        if (waited_s := time.monotonic() - began) > timeout_s:
            raise LockTimeout(task_id=subject, waited_s=waited_s)
        time.sleep(random.uniform(0.001, 0.005))  # the kernel sends no notice when it is free
    try:
        yield
    finally:
        os.close(fd)


def lock_now(fd: int) -> bool:
    """Take the kernel lock of an open file without waiting; return whether it was free."""
    import filelock  # readers of ended tasks take no lock

    return filelock.lock_descriptor(fd, blocking=False)


def locked_descriptor(folder: Folder, name: str) -> int | None:
    """Return a descriptor of `name` with the kernel lock; None while another process holds it."""
    fd = folder.open(name, LOCK_FLAGS)
    try:
        # A file that was unlinked while we opened it guards nothing; the next try opens the new
        # one.
        if lock_now(fd) and os.fstat(fd).st_nlink:
            return fd
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    return None


class _Record(msgspec.Struct):
    """Content of `lock`: the last maker of `.lock.lock`, and the start of our unbroken use."""

    dir: list[int] | None = None
    trying_ns: int = 0
    since: float = 0.0
    last: float = 0.0
    pid: int = 0
    started_at: float = 0.0

    def is_maker_of(self, identity: Identity) -> bool:
        return self.dir is not None and tuple(self.dir) == identity[:2]

    def was_tried_by(self, identity: Identity) -> bool:
        """Return whether one of us made it and died before recording that.

        A peer's directory could be that young, too; but it has another mode.
        """
        after_s = (identity.mtime_ns - self.trying_ns) / 1e9
        return -COARSE_S < after_s < WATCH_S and identity.has_our_mode


def _read_record(fd: int) -> _Record:
    os.lseek(fd, 0, os.SEEK_SET)
    try:
        return msgspec.json.decode(read_fully(fd, _RECORD_BYTES), type=_Record)
    except (msgspec.DecodeError, OSError):
        return _Record()


def held_by_another(folder: Folder) -> bool:
    """Return whether a foreign lock directory exists here. Writes nothing."""
    return lock_of_another(folder) is not None


def lock_of_another(folder: Folder) -> Identity | None:
    """Return the identity of a foreign lock directory, if one exists. Writes nothing."""
    identity = identity_of(folder, PEERS)
    if identity is None:
        return None
    record = _record_in(folder)
    return None if record.is_maker_of(identity) or record.was_tried_by(identity) else identity


def _record_in(folder: Folder) -> _Record:
    try:
        fd = folder.open(OURS, READ_FLAGS)
    except (OSError, Unusable):
        return _Record()
    try:
        return _read_record(fd)
    finally:
        os.close(fd)


def locks_of_others(root: Path) -> dict[str, Identity]:
    """Map each task below `root` that another program has locked to that lock. Writes nothing."""
    found: dict[str, Identity | None] = {}
    with suppress(OSError, LedgerUnusable), Folder.at(str(root)) as top:
        for task_id in list(task_ids(top)):
            with suppress(OSError), top.enter(task_id) as folder:
                found[task_id] = lock_of_another(folder)
    return {task_id: identity for task_id, identity in found.items() if identity is not None}


def must_wait(folder: Folder) -> bool:
    """Return whether taking this lock now would fail; each call adds to the observation of it."""
    identity = identity_of(folder, PEERS)
    if identity is None:
        return False
    record = _record_in(folder)
    if record.is_maker_of(identity):
        return False
    limit_s = WATCH_S if record.was_tried_by(identity) else UNMOVED_S
    return WATCHED.unmoved_s(place_of(folder, PEERS), identity, time.monotonic()) < limit_s
