"""Pruning of ended tasks by rules: a preview first, then exactly its tasks, each judged again.

`keep` alone is a limit: all but the newest are removed. With an age or a size it is a minimum: the
newest of them stay, however old or large. Records of a task outside its folder (its run in
`comet-runs/`, its contract) stay: they document what was done, a few hundred bytes each. Ages use
`age_clock_ms`: a clock that is set ahead while the program runs makes nothing old.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from engine.ledger.files import Folder, Unusable
from engine.ledger.lease import is_locked
from engine.ledger.listing import Found, is_task_id
from engine.ledger.lock import OURS, PEERS
from engine.ledger.machine import age_clock_ms
from engine.ledger.ownership import owner_of
from engine.ledger.reader import LedgerReader
from engine.model import redact
from engine.model.display import display
from engine.model.errors import EngineError, InvalidArguments, NotATaskId, Problem, TaskNotFound
from engine.model.records import TERMINAL, Stamp, TaskRecord, Unreadable
from engine.model.status import moment
from engine.text.words import record_name

_SPAN = re.compile(r"(\d{1,6})\s*([mhdw])", re.IGNORECASE | re.ASCII)
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*([kmgt]?)i?b?", re.IGNORECASE | re.ASCII)
_MS: Final = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


class Rules(msgspec.Struct, frozen=True, omit_defaults=True):
    """Rules for removal; without any nothing is removed. `status` restricts all of them."""

    older_than_ms: int | None = None
    keep: int | None = None
    max_bytes: int | None = None
    status: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return self.older_than_ms is None and self.keep is None and self.max_bytes is None


class Ended(msgspec.Struct, frozen=True):
    """Ended task as the rules need it: the time of its end (ms since 1970), the folder's size."""

    task_id: str
    kind: str
    status: str
    name: str
    ended_at: float
    size_bytes: int
    stamp: Stamp


def rules_of(
    older_than: str | None,
    keep: int | None,
    max_size: str | None,
    status: Collection[str],
) -> Rules:
    """Parse rules as people write them: `30d`, `12h`, `2GB`.

    Raises:
        InvalidArguments: names every mistake, also that no rule was given at all.
    """
    problems: list[Problem] = []
    words = tuple(word.upper() for word in status)
    for word in words:
        if word not in TERMINAL:
            known = ", ".join(sorted(TERMINAL))
            message = f"'{word}' is no state of an ended task (there are: {known})"
            problems.append(Problem("status", "unknown_status", message))
    age_ms, size = _span(older_than, problems), _size(max_size, problems)
    rules = Rules(older_than_ms=age_ms, keep=keep, max_bytes=size, status=words)
    if rules.is_empty and not problems:
        message = "say what may go: --older-than 30d, --keep 100 or --max-size 2GB"
        problems.append(Problem("", "missing", message))
    if problems:
        raise InvalidArguments(tuple(problems))
    return rules


def chosen(ended: Sequence[Ended], rules: Rules, now_ms: float) -> list[Ended]:
    """Select the tasks to remove, oldest first."""
    if rules.is_empty:
        return []
    newest = sorted(ended, key=lambda one: (-one.ended_at, one.task_id))
    if rules.status:
        newest = [one for one in newest if one.status in rules.status]
    keep = rules.keep or 0
    late = newest[keep:]
    if rules.older_than_ms is None and rules.max_bytes is None:
        return late[::-1]
    gone = _too_old(late, rules, now_ms) | _too_large(newest, late, rules)
    return [one for one in late[::-1] if one.task_id in gone]


def _too_old(late: list[Ended], rules: Rules, now_ms: float) -> set[str]:
    if rules.older_than_ms is None:
        return set()
    before = now_ms - rules.older_than_ms
    return {one.task_id for one in late if one.ended_at < before}


def _too_large(newest: list[Ended], late: list[Ended], rules: Rules) -> set[str]:
    """Select the oldest tasks until the rest fits the limit."""
    if rules.max_bytes is None:
        return set()
    left = sum(one.size_bytes for one in newest)
    gone: set[str] = set()
    for one in reversed(late):
        if left <= rules.max_bytes:
            break
        gone.add(one.task_id)
        left -= one.size_bytes
    return gone


def _span(given: str | None, problems: list[Problem]) -> int | None:
    if given is None:
        return None
    found = _SPAN.fullmatch(given.strip())
    if found is None:
        message = f"'{given}' is no length of time (30d, 12h, 90m, 2w)"
        problems.append(Problem("older_than", "wrong_form", message))
        return None
    return int(found[1]) * _MS[found[2].lower()]


def _size(given: str | None, problems: list[Problem]) -> int | None:
    if given is None:
        return None
    found = _SIZE.fullmatch(given.strip())
    if found is None:
        message = f"'{given}' is no size (500MB, 2GB)"
        problems.append(Problem("max_size", "wrong_form", message))
        return None
    return int(float(found[1]) * 1_000 ** _POWERS[found[2].lower()])


_REMOVAL_PREFIX: Final = ".pruned-"
_TRASH_TRIES: Final = 4  # a new trash has up to three folders, each of which may be made meanwhile
_NAME = re.compile(rf"{re.escape(_REMOVAL_PREFIX)}[0-9a-f]{{16}}-[0-9a-f]{{8}}", re.ASCII)


def to_trash(root: Path, task_id: str) -> None:
    """Move the task's folder to the system's trash.

    Raises:
        NoTrash: there is none, or it does not take the folder.
    """
    try:
        _send(os.fspath(root / task_id))
    except OSError as error:
        reason = (error.strerror or str(error) or "there is no trash here").rstrip(".")
        raise NoTrash(task_id=task_id, reason=reason) from error


def _send(place: str) -> None:
    """Move a folder to the trash, whose own folders another thread may be making right now."""
    from send2trash import send2trash

    for tries_left in reversed(range(_TRASH_TRIES)):
        try:
            send2trash(place)
        except FileExistsError:  # send2trash looks first and then makes it; nothing was moved
            if not tries_left:
                raise
        else:
            return


def delete_for_good(root: Path, task_id: str) -> None:
    """Delete the task's folder for good; links in it are removed, their targets stay.

    It is renamed first, so that no reader sees half a task; after a crash the next call of `sweep`
    removes the renamed folder.

    Raises:
        DeleteFailed: the system refuses; `path` is the remaining folder.
    """
    renamed = f"{_REMOVAL_PREFIX}{task_id}-{secrets.token_hex(4)}"
    place = root / task_id
    try:
        with Folder.at(str(root)) as top:
            top.enter(task_id).close()  # a folder, and no link to one
            top.rename(task_id, renamed)
        place = root / renamed
        shutil.rmtree(place)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DeleteFailed(task_id=task_id, reason=reason, path=str(place)) from error


def sweep(root: Path) -> None:
    """Delete folders that an interrupted `delete_for_good` had renamed; failures are left."""
    with suppress(OSError), Folder.at(str(root)) as top:
        for name in top.names():
            if _NAME.fullmatch(name):
                shutil.rmtree(root / name, ignore_errors=True)


class NoTrash(EngineError):
    """The system has no trash for that folder, or refuses it; the folder is untouched."""

    code = "no_trash"
    title = "It could not be moved to the trash"
    sentence = "Task {task_id} could not be moved to the trash: {reason}."
    advice_text = "Delete it for good with --delete, or move its folder away yourself."


class TaskStays(EngineError):
    """A task that a person wanted to remove must stay for now."""

    code = "task_stays"
    title = "The task stays"
    sentence = "Task {task_id} stays: {reason}."
    advice_text = "Try again when it has ended and nobody writes there."


class DeleteFailed(EngineError):
    """A folder could not be deleted. The rest of it is at `path`."""

    code = "delete_failed"
    title = "It could not be deleted"
    sentence = "Task {task_id} could not be deleted: {reason} ({path})."
    advice_text = "Close whatever has its files open, or remove the folder yourself."


STILL_WRITING_MS: Final = 60_000  # after its terminal meta an owner adds an event, a run, a hint

DEAD_LOCK_S: Final = 60.0  # OpenChrome renews the time of its lock every few seconds


class KeepReason(StrEnum):
    """Reason why a task stays, whatever the rules say."""

    LIVING = "living"  # not ended, or in an unknown state
    UNREADABLE = "unreadable"  # only a person can identify it
    LOCKED = "locked"
    JUST_ENDED = "just_ended"  # its owner is alive and may still be writing
    CHANGED = "changed"  # since the preview
    GONE = "gone"  # another program removed it first


def judge(ledger: LedgerReader, found: Found, now_ms: float) -> Ended | KeepReason:
    """Judge one task of a listing: its facts for the rules, or the reason why it stays."""
    record, mark = found.entry, found.stamp
    if isinstance(record, Unreadable) or mark is None:
        return KeepReason.UNREADABLE
    if not record.is_terminal:
        return KeepReason.LIVING
    ended_at = _ended_at(record, mark)
    if just_ended(ledger, record, mark, now_ms):
        return KeepReason.JUST_ENDED
    size = _free_size(ledger, record.task_id)
    if isinstance(size, KeepReason):
        return size
    return Ended(
        task_id=record.task_id,
        kind=display(record.kind, 40),
        status=record.status,
        name=redact.text(record_name(record)),
        ended_at=ended_at,
        size_bytes=size,
        stamp=mark,
    )


def just_ended(ledger: LedgerReader, record: TaskRecord, mark: Stamp, now_ms: float) -> bool:
    """Return whether its living owner may still be writing after the task's end."""
    lately = now_ms - _ended_at(record, mark) < STILL_WRITING_MS
    return lately and not _owner_is_dead(ledger, record)


def lock_verdict(ledger: LedgerReader, task_id: str) -> KeepReason | None:
    """Return None for a folder without a lock. Raises OSError where that cannot be read."""
    try:
        with Folder.at(str(ledger.root)) as root, root.enter(task_id) as folder:
            return KeepReason.LOCKED if _is_locked(folder) else None
    except FileNotFoundError:
        return KeepReason.GONE


def _free_size(ledger: LedgerReader, task_id: str) -> int | KeepReason:
    """Return the size of a folder without a lock."""
    try:
        with Folder.at(str(ledger.root)) as root, root.enter(task_id) as folder:
            return KeepReason.LOCKED if _is_locked(folder) else size_of(folder)
    except FileNotFoundError:
        return KeepReason.GONE
    except (OSError, Unusable):
        return KeepReason.UNREADABLE


def judge_again(ledger: LedgerReader, one: Ended, now_ms: float) -> KeepReason | None:
    """Judge a task again right before removal: the reason why it has to stay, or None."""
    if not is_task_id(one.task_id):
        raise NotATaskId(given=one.task_id)
    found = ledger.read_many([one.task_id])
    if not found:
        return KeepReason.GONE
    if found[0].stamp != one.stamp:
        return KeepReason.CHANGED
    verdict = judge(ledger, found[0], now_ms)
    return verdict if isinstance(verdict, KeepReason) else None


def size_of(folder: Folder) -> int:
    """Sum the bytes of all files below; links are not followed."""
    total = 0
    with folder.scan() as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                with folder.enter(entry.name) as inner:
                    total += size_of(inner)
            else:
                total += entry.stat(follow_symlinks=False).st_size
    return total


def _is_locked(folder: Folder) -> bool:
    """Return whether the folder is locked; OpenChrome's directory counts until it is surely
    dead."""
    with suppress(FileNotFoundError):
        age_s = age_clock_ms() / 1_000 - folder.facts(PEERS).st_mtime
        return age_s < DEAD_LOCK_S or _own_lock_is_held(folder)
    return _own_lock_is_held(folder)


def _own_lock_is_held(folder: Folder) -> bool:
    return is_locked(folder, OURS) is not False


def _ended_at(record: TaskRecord, mark: Stamp) -> float:
    """Time of the end; of a record without a usable time, that of its last write.

    It is the newest of its times: a clock that was set back must not make a new task look old.
    """
    times = (record.ended_at, record.last_activity_at, record.started_at, record.created_at)
    return max(filter(None, map(moment, times)), default=mark.mtime_ns / 1e6)


def _owner_is_dead(ledger: LedgerReader, record: TaskRecord) -> bool:
    # `owner_of` judges live tasks only; this asks for the maker of an ended one.
    living = msgspec.structs.replace(record, status="RUNNING")
    try:
        return owner_of(ledger.root, living).dead
    except EngineError:
        return False


class Preview(msgspec.Struct, frozen=True):
    """Tasks to remove, oldest first, their bytes, and the number kept for each reason.

    `by_rules` counts ended tasks that the rules keep.
    """

    tasks: tuple[Ended, ...]
    size_bytes: int
    by_rules: int
    kept: dict[str, int]


class Refused(msgspec.Struct, frozen=True):
    """A task that should have been removed and was not."""

    task_id: str
    error: EngineError


class Pruned(msgspec.Struct, frozen=True):
    """Result of pruning: removed tasks, tasks kept after all (id and reason), and failures."""

    gone: tuple[Ended, ...]
    size_bytes: int
    stayed: tuple[tuple[str, str], ...]
    refused: tuple[Refused, ...]


def preview(ledger: LedgerReader, rules: Rules, now_ms: float) -> Preview:
    """Find the tasks that `rules` would remove now; nothing is changed."""
    ended: list[Ended] = []
    kept: Counter[str] = Counter()
    for found in ledger.read_many([task_id for task_id, _ in ledger.scan()]):
        verdict = judge(ledger, found, now_ms)
        if isinstance(verdict, KeepReason):
            kept[verdict.value] += 1
        else:
            ended.append(verdict)
    tasks = tuple(chosen(ended, rules, now_ms))
    size = sum(one.size_bytes for one in tasks)
    return Preview(tasks, size, len(ended) - len(tasks), dict(kept))


def prune(
    ledger: LedgerReader,
    shown: Preview,
    *,
    delete: bool = False,
    stop: Callable[[], bool] = lambda: False,
    now_ms: Callable[[], float] = age_clock_ms,
) -> Pruned:
    """Remove the tasks of the preview; those that have changed since, or fail, stay."""
    gone: list[Ended] = []
    stayed: list[tuple[str, str]] = []
    refused: list[Refused] = []
    remove = delete_for_good if delete else to_trash
    if delete:
        sweep(ledger.root)
    for one in shown.tasks:
        if stop():
            break
        try:
            why = judge_again(ledger, one, now_ms())
            if why is not None:
                stayed.append((one.task_id, why.value))
                continue
            remove(ledger.root, one.task_id)
        except EngineError as error:  # an error of one task must not stop the others
            refused.append(Refused(one.task_id, error))
        else:
            gone.append(one)
    size = sum(one.size_bytes for one in gone)
    return Pruned(tuple(gone), size, tuple(stayed), tuple(refused))


class Retention:
    """Asynchronous preview and prune; the work runs on a thread."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def preview(self, rules: Rules) -> Preview:
        """Preview on a thread. Raises LedgerUnusable."""
        return await asyncio.to_thread(
            lambda: preview(LedgerReader(self._root), rules, age_clock_ms())
        )

    async def prune(
        self, shown: Preview, *, delete: bool = False, stop: threading.Event | None = None
    ) -> Pruned:
        """Move to the trash, or with `delete` remove for good; `stop` ends it between two tasks."""
        stopped = stop or threading.Event()
        try:
            return await asyncio.to_thread(
                lambda: prune(LedgerReader(self._root), shown, delete=delete, stop=stopped.is_set)
            )
        finally:
            stopped.set()


# Removal of one task that a person points at: to the trash, or for good.

WHY = {
    KeepReason.LIVING: "it has not ended",
    KeepReason.LOCKED: "another program is changing it right now",
    KeepReason.JUST_ENDED: "the program that ran it may still be writing; try again in a minute",
}


def discard(root: Path, task_id: str, *, delete: bool, settled: bool) -> None:
    """Remove one task's folder; `settled` says that its owner has surely finished with it.

    An unreadable task may be removed, too: only a person can decide that.

    Raises:
        TaskStays: it has not ended, or its owner may still be writing.
        NoTrash, DeleteFailed, NotATaskId, TaskNotFound.
    """
    ledger = LedgerReader(root)
    ledger.read(task_id)  # refuses an invalid task id before it becomes a path
    found = ledger.read_many([task_id])
    if not found:
        raise TaskNotFound(task_id=task_id, root=str(root))
    why = _keep_reason(ledger, found[0], settled)
    if why is KeepReason.GONE:
        raise TaskNotFound(task_id=task_id, root=str(root))
    if why is not None:
        raise TaskStays(task_id=task_id, reason=WHY[why])
    if delete:
        delete_for_good(root, task_id)
    else:
        to_trash(root, task_id)


def _keep_reason(ledger: LedgerReader, found: Found, settled: bool) -> KeepReason | None:
    record = found.entry
    if isinstance(record, TaskRecord):
        if not record.is_terminal:
            return KeepReason.LIVING
        stamp = None if settled else found.stamp
        if stamp is not None and just_ended(ledger, record, stamp, age_clock_ms()):
            return KeepReason.JUST_ENDED
    with suppress(OSError):
        return lock_verdict(ledger, record.task_id)
    return None
