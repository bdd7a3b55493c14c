"""Opening of a ledger's root, the files of one task other than its records, and temp files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from engine.ledger.files import MIB, READ_FLAGS, Folder, Unusable, unusable
from engine.ledger.lease import Lease
from engine.model import redact
from engine.model.errors import LedgerReadOnly, LedgerUnusable, ResultMissing
from engine.model.records import ARTIFACTS_NAME, RESULT_NAME

TEMP = re.compile(r"\..+\.([0-9a-f]{16})\.\d+\.tmp", re.ASCII)
_PEER_TEMP = re.compile(r"(meta|result)\.json\.\d+", re.ASCII)  # OpenChrome's (write-file-atomic)


def open_root(root: Path) -> Folder | None:
    """Open the ledger's folder; None while it does not exist. Writes nothing.

    Raises:
        LedgerUnusable: it is no folder, may not be read, or its parents are missing too.
    """
    try:
        return Folder.at(str(root))
    except FileNotFoundError:
        reason = _missing(root)
    except NotADirectoryError:
        reason = "this is not a folder"
    except PermissionError:
        reason = "this folder may not be read by you"
    except OSError as error:
        raise unusable(error, str(root)) from error
    if not reason:
        return None
    raise LedgerUnusable(path=str(root), reason=reason)


def check_writable(root: Path) -> None:
    """Refuse a root in which no task can be created, whatever may be written below it.

    Raises:
        LedgerReadOnly: it exists and may not be written.
    """
    with suppress(OSError), Folder.at(str(root)) as top:  # acquiring the lease reports other faults
        if not top.is_writable():
            raise LedgerReadOnly(path=str(root))


def _missing(root: Path) -> str:
    if os.path.lexists(root):
        return "this link leads nowhere"
    if root.parent.is_dir() or root.parent.parent.is_dir():
        return ""  # the first program that accepts a task creates it
    return f"there is no such folder, and its parent {root.parent} is not there either"


def discard(folder: Folder, name: str) -> None:
    """Remove a temp file, or a folder that was being created under a temp name."""
    with suppress(OSError):
        if not stat.S_ISDIR(folder.facts(name).st_mode):
            folder.remove(name)
            return
        with folder.enter(name) as inner:
            for inside in inner.names():
                discard(inner, inside)
        folder.remove_folder(name)


_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE | re.ASCII)
_NAME_LENGTH: Final = 100
MOST_LISTED: Final = 20_000  # files of one folder that are shown
ARTIFACT_CAP: Final = 64 * 1024 * 1024  # bytes; our own screenshots stop at 8 MiB


def place_task(root: Folder, task_id: str, files: Mapping[str, bytes], temp: str) -> bool:
    """Create the folder of a new task with its `files`; False when the id is taken."""

    def fill(folder: Folder) -> None:
        for name, data in files.items():
            folder.write_new(name, data)

    return place_folder(root, task_id, fill, temp)


def place_folder(root: Folder, task_id: str, fill: Callable[[Folder], None], temp: str) -> bool:
    """Create a task's folder, with what `fill` writes; False when the id is taken.

    It is created under a temp name, which every reader skips, and then renamed: a rename onto an
    existing folder fails just as an exclusive mkdir does, and a crash leaves no half-made task in
    any list.
    """
    root.make_folder(temp)
    try:
        with root.enter(temp) as folder:
            fill(folder)
            folder.sync()
        if root.has(task_id):  # an empty folder would be replaced
            discard(root, temp)
            return False
        root.rename(temp, task_id)
    except OSError:
        discard(root, temp)
        if root.has(task_id):
            return False
        raise
    except BaseException:
        discard(root, temp)
        raise
    _flush_placed(root, task_id, temp)
    return True


def _flush_placed(root: Folder, task_id: str, temp: str) -> None:
    """Flush the new name; on failure remove the task again, because the caller gets an error."""
    try:
        root.sync()
    except OSError:
        with suppress(OSError):
            root.rename(task_id, temp)
        discard(root, temp)
        raise


def clean_page(page: Mapping[str, Any]) -> dict[str, Any]:
    """Redact secrets in a page's addresses and its error before it is stored.

    Its content was redacted by the code that made the page, which has the task's secrets.
    """
    return redact.stored(page)


def open_result(folder: Folder, task_id: str) -> BinaryIO:
    """Open result.json for reading. Raises ResultMissing, Unusable, OSError."""
    try:
        return os.fdopen(folder.open(RESULT_NAME, READ_FLAGS), "rb")
    except FileNotFoundError as error:
        raise ResultMissing(task_id=task_id) from error


def write_artifact(folder: Folder, name: str, data: bytes, lease: Lease) -> str:
    """Write `data` under a safe form of `name`; return its path relative to the task's folder."""
    safe = safe_name(name)
    with suppress(FileExistsError):
        folder.make_folder(ARTIFACTS_NAME)
    with folder.enter(ARTIFACTS_NAME) as artifacts:
        artifacts.replace(safe, [data], temp=lease.temp_name(safe), durable=False)
    return f"{ARTIFACTS_NAME}/{safe}"


def append_artifact(folder: Folder, name: str, data: bytes, size: int) -> int:
    """Append to an artifact of which `size` bytes are known; return the new size."""
    with suppress(FileExistsError):
        folder.make_folder(ARTIFACTS_NAME)
    with folder.enter(ARTIFACTS_NAME) as artifacts:
        return artifacts.append_whole(safe_name(name), data, size)


def copy_artifact(
    folder: Folder, name: str, file: BinaryIO, size: int, lease: Lease, check: Callable[[], None]
) -> None:
    """Write the first `size` bytes of `file` as an artifact, atomically."""
    safe = safe_name(name)
    with suppress(FileExistsError):
        folder.make_folder(ARTIFACTS_NAME)
    with folder.enter(ARTIFACTS_NAME) as artifacts:
        temp = lease.temp_name(safe)
        artifacts.replace(safe, _first(file, size, check), temp=temp, durable=False)


def _first(file: BinaryIO, size: int, check: Callable[[], None]) -> Iterator[bytes]:
    file.seek(0)
    while size and (block := file.read(min(size, MIB))):
        check()
        size -= len(block)
        yield block


def read_artifact(folder: Folder, name: str) -> bytes | None:
    """Read an artifact; never through a link, never another folder's file."""
    if safe_name(name) != name:
        return None
    try:
        with folder.enter(ARTIFACTS_NAME) as artifacts:
            return artifacts.read(name, ARTIFACT_CAP)
    except (OSError, Unusable):
        return None


def listed(folder: Folder) -> list[tuple[str, int, float]]:
    """Regular files of a task (name, bytes, mtime in ms), those in `artifacts/` last.

    Dot files (locks, temp files), temp files of OpenChrome and links are skipped. Raises OSError.
    """
    found = _listed(folder, "")
    with suppress(OSError), folder.enter(ARTIFACTS_NAME) as artifacts:
        found += _listed(artifacts, f"{ARTIFACTS_NAME}/")
    return found


def _listed(folder: Folder, before: str) -> list[tuple[str, int, float]]:
    found = []
    for name in sorted(folder.names())[:MOST_LISTED]:
        if not _is_plain(name):
            continue
        with suppress(OSError):
            facts = folder.facts(name)
            if stat.S_ISREG(facts.st_mode):
                found.append((before + name, facts.st_size, facts.st_mtime_ns / 1e6))
    return found


def is_listed(folder: Folder, name: str) -> bool:
    """Return whether `name` is one of `listed`. Raises OSError, Unusable."""
    inside, plain = name.rpartition("/")[::2]
    if inside not in ("", ARTIFACTS_NAME) or not _is_plain(plain):
        return False
    if not inside:
        return folder.has(plain) and stat.S_ISREG(folder.facts(plain).st_mode)
    with folder.enter(ARTIFACTS_NAME) as artifacts:
        return artifacts.has(plain) and stat.S_ISREG(artifacts.facts(plain).st_mode)


def open_listed(folder: Folder, name: str) -> BinaryIO:
    """Open one of `listed` for reading. Raises Unusable, OSError."""
    inside, artifact = name.rpartition("/")[::2]
    if inside not in ("", ARTIFACTS_NAME) or not _is_plain(artifact):
        raise Unusable("this is no file of the task")
    if not inside:
        return os.fdopen(folder.open(artifact, READ_FLAGS), "rb")
    with folder.enter(ARTIFACTS_NAME) as artifacts:
        return os.fdopen(artifacts.open(artifact, READ_FLAGS), "rb")


def _is_plain(name: str) -> bool:
    if not name or name[0] == "." or name == "lock" or set(name) & set("/\\:\0"):
        return False
    return _PEER_TEMP.fullmatch(name) is None


def is_device(name: str) -> bool:
    """Return whether Windows takes a file's name for a device."""
    return _DEVICE.fullmatch(name) is not None


def safe_name(name: str) -> str:
    """Convert `name` to a safe file name: no path, no leading dot, no device."""
    stem = _UNSAFE.sub("_", name).strip("._")
    if not stem or is_device(stem):
        stem = f"file_{stem}"
    if len(stem) <= _NAME_LENGTH:
        return stem
    head, dot, kind = stem.rpartition(".")
    kind = dot + kind if dot and len(kind) <= 8 else ""
    return (head if kind else stem)[: _NAME_LENGTH - len(kind)] + kind
