"""Output file of an export, staged in the target folder and published atomically; its errors."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from engine.model.errors import EngineError


class Exported(msgspec.Struct, frozen=True):
    """Result of an export: `partial` unless the task ended COMPLETED; `notes` list omissions."""

    task_id: str
    format: str
    path: str
    rows: int
    partial: bool
    note: str
    notes: list[str]


class NothingToExport(EngineError):
    """The task has no stored unit and no result."""

    code = "nothing_to_export"
    title = "There is nothing to export"
    sentence = "Task {task_id} has kept nothing yet."
    advice_text = "Wait until it has finished a first page or step."


class NothingKept(NothingToExport):
    """The task has ended without any stored unit or result."""

    code = "nothing_kept"
    sentence = "Task {task_id} ended as {status} and has kept nothing."
    advice_text = "`octask get {task_id}` says why; `octask rerun {task_id}` starts it once more."


class ExportExists(EngineError):
    """The file exists already, and replacing it was not allowed."""

    code = "export_exists"
    title = "The file is there already"
    sentence = "There is a file {path} already."
    advice_text = "Give another name, or --force to replace it."


class ExportRefused(EngineError):
    """The path is not valid for an export: a folder, a device, or inside the ledger."""

    code = "export_refused"
    title = "Not there"
    sentence = "Nothing can be exported to {path}: {reason}."
    advice_text = "Give the name of a new file."


class ExportFailed(EngineError):
    """Writing failed (a full disk, say); no file was left behind."""

    code = "export_failed"
    title = "The export could not be written"
    sentence = "The export could not be written to {path}: {reason}"
    advice_text = "Free some space or choose another folder, then try again."


class ExportStopped(EngineError):
    """The user stopped it; no file was left behind."""

    code = "export_stopped"
    title = "The export was stopped"
    sentence = "The export was stopped after {rows} rows; no file was left behind."


class ResultDamaged(EngineError):
    """result.json is truncated or no JSON, so that an export would be incomplete."""

    code = "result_damaged"
    title = "The result is damaged"
    sentence = "result.json of task {task_id} cannot be read: {reason} (behind row {rows})."
    advice_text = "Mend or remove the file; `octask get ID --result` shows it as it stands."


_NEW = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
)
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EACCES}
_STAGED: set[Path] = set()  # files that this process is writing


@contextmanager
def new_file(place: Path, root: Path, *, force: bool) -> Iterator[BinaryIO]:
    """Open a staged file, published at `place` when the block ends without an error.

    Raises:
        ExportExists: the file exists already, or was created while we wrote.
        ExportRefused: a folder, a device, or a place inside the ledger at `root`.
        ExportFailed: the system refuses (no room, no such folder).
    """
    target = _checked_target(place, root, force)
    # A random name, because the target's may be as long as a name can be.
    staged = target.with_name(f".export-{secrets.token_hex(8)}.part")
    _STAGED.add(staged)
    try:
        with _staged(staged) as out:
            yield out
        _publish(staged, target, force)
    except FileExistsError:
        raise ExportExists(path=str(place)) from None
    except OSError as error:
        raise ExportFailed(path=str(place), reason=error.strerror or str(error)) from error
    finally:
        _discard(staged)


def check_outside(place: Path, roots: Iterable[str]) -> None:
    """Raise ExportRefused for a place inside a ledger; `roots` are real paths already."""
    target = Path(os.path.realpath(place))
    if any(map(target.is_relative_to, roots)):
        raise ExportRefused(path=str(place), reason="it is inside the ledger")


def remove_staged() -> None:
    """Remove the staged files, for code that ends the process without leaving its blocks."""
    for staged in tuple(_STAGED):
        _discard(staged)


def _discard(staged: Path) -> None:
    _STAGED.discard(staged)
    with suppress(OSError):
        os.unlink(staged)


def _checked_target(place: Path, root: Path, force: bool) -> Path:
    if "\0" in str(place):
        raise ExportRefused(path=str(place), reason="no name of a file holds a NUL")
    target = Path(os.path.realpath(place))  # a link of the user's own is followed
    check_outside(place, [os.path.realpath(root)])
    try:
        mode = os.lstat(target).st_mode
    except OSError:
        return target
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "no regular file"
        raise ExportRefused(path=str(place), reason=f"it is {kind}")
    if not force:
        raise ExportExists(path=str(place))
    return target


@contextmanager
def _staged(staged: Path) -> Iterator[BinaryIO]:
    with os.fdopen(os.open(staged, _NEW, 0o666), "wb") as out:
        yield out
        out.flush()
        os.fsync(out.fileno())


def _publish(staged: Path, target: Path, force: bool) -> None:
    if force or os.name == "nt":  # Windows' rename does not replace
        (os.replace if force else os.rename)(staged, target)
        return
    try:
        os.link(staged, target)  # unlike a rename it does not replace a file created meanwhile
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(target, _NEW, 0o666))
        os.replace(staged, target)
