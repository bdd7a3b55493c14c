"""Import of a task that was exported as a zip file: its folder comes into a ledger.

The file may come from anybody. Every name in it is checked before anything is written, and nothing
else than regular files below the folder of one ended task is unpacked. That folder has a temp name,
which every reader skips, until it is complete.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import struct
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from engine.ledger import meta, task_files
from engine.ledger.files import MIB, NEW_FLAGS, Folder, Unusable, write_fully, writing
from engine.ledger.lease import make_root, temporary_lease
from engine.ledger.ledger import Ledger
from engine.ledger.listing import is_task_id
from engine.ledger.lock import NAMES
from engine.model.display import display
from engine.model.errors import EngineError
from engine.model.records import META_NAME, RESULT_NAME, TaskRecord
from engine.text.words import size_words

PHASE: Final = "import"  # of the `log` event
MOST_FILES: Final = 100_000
MOST_PARTS: Final = 8  # folders below each other, and the file
MOST_NAME: Final = 200  # bytes of one part of a path
MOST_LIST: Final = 32 * MIB  # of the names and places of all files, which are read at once
BLOCK: Final = MIB
SPARE_BYTES: Final = 100 * MIB  # of the disk, which stay free
_ENCRYPTED: Final = 0x1
_NOT_PORTABLE: Final = frozenset('<>:"|?*\\')
_LOCKS: Final = frozenset(NAMES)
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_UNREADABLE: Final = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError),
    *(NotImplementedError, OverflowError),  # of a newer format, or of places beyond any file
)


class ImportRefused(EngineError):
    """The file is not an exported task, or one that must not be unpacked; nothing was written."""

    code = "import_refused"
    title = "The file cannot be imported"
    sentence = "{path} cannot be imported: {reason}."
    advice_text = "Give a zip file of an ended task, as `octask export` writes it."


class ImportExists(EngineError):
    """The ledger has a task with the same id."""

    code = "import_exists"
    title = "The task is there already"
    sentence = "Task {task_id} is in this ledger already; nothing was changed."
    advice_text = "Remove it first if you want that of the file."


class ImportStopped(EngineError):
    """The user stopped it; nothing was left behind."""

    code = "import_stopped"
    title = "The import was stopped"
    sentence = "The import of {path} was stopped; nothing was left behind."


@dataclass(slots=True)
class ImportProgress:
    """Progress after each block: files, bytes and all bytes; a stop flag is checked there."""

    on_progress: Callable[[int, int, int], None] = lambda *_: None
    stop: threading.Event = field(default_factory=threading.Event)


class Imported(msgspec.Struct, frozen=True):
    """The task that was imported: its id, and the number and size of its files."""

    task_id: str
    files: int
    size_bytes: int


class _Member(NamedTuple):
    """A file in the zip: its folders below the task's, its name, and its entry."""

    folders: tuple[str, ...]
    name: str
    entry: zipfile.ZipInfo


def import_task(ledger: Ledger, source: Path, watch: ImportProgress) -> Imported:
    """Unpack the task in `source` into the ledger, durably; for a thread.

    Raises:
        ImportRefused: it is no exported task, the task has not ended, or the disk has no room.
        ImportExists: the ledger has that task.
        ImportStopped: the user stopped it.
        LedgerReadOnly, LedgerWriteFailed, LedgerUnusable: the ledger cannot be written.
    """
    with _reading(source), _Source(source) as file, zipfile.ZipFile(file) as archive:
        task_id, members = _members(source, archive)
        _expect_ended(source, archive, task_id, members)
        if os.path.lexists(ledger.root / task_id):
            raise ImportExists(task_id=task_id)
        make_root(ledger.root)
        size = sum(member.entry.file_size for member in members)
        _expect_room(source, ledger.root, size)
        _unpack(ledger, archive, _Plan(source, task_id, members, size), watch)
    ledger.note(task_id, [("log", {"phase": PHASE, "note": f"Imported from {source.name}"})])
    return Imported(task_id, len(members), size)


class _Plan(NamedTuple):
    source: Path
    task_id: str
    members: list[_Member]
    size: int


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


class _Source(io.FileIO):
    """The zip file, of which nothing is read that would not fit in memory."""

    def __init__(self, place: Path) -> None:
        super().__init__(place, opener=_opened)  # a pipe without a writer is refused, not awaited

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MOST_LIST:
            raise _refused(Path(os.fsdecode(self.name)), "the list of its files is too long")
        return super().read(size)


@contextmanager
def _reading(source: Path) -> Iterator[None]:
    """Turn a failure of the file into a refusal."""
    try:
        yield
    except _UNREADABLE as wrong:
        raise _refused(source, "it is no complete zip file") from wrong
    except OSError as failed:
        raise _refused(source, display(failed.strerror or str(failed))) from failed


def _refused(source: Path, reason: str) -> ImportRefused:
    return ImportRefused(path=str(source), reason=reason)


def _members(source: Path, archive: zipfile.ZipFile) -> tuple[str, list[_Member]]:
    """Return the task's id and its files; locks are left out. Raises ImportRefused."""
    entries = [entry for entry in archive.infolist() if not entry.filename.endswith("/")]
    if len(entries) > MOST_FILES:
        raise _refused(source, f"it has more than {MOST_FILES:,} files")
    task_id = entries[0].filename.partition("/")[0] if entries else ""
    if not is_task_id(task_id):
        raise _refused(source, "it does not contain the folder of a task")
    members: list[_Member] = []
    for entry in entries:
        top, *folders, name = entry.filename.split("/")
        if top != task_id or not _may_be_unpacked(entry, (*folders, name)):
            shown = display(entry.filename, 100)
            raise _refused(source, f"a name or a type of file in it is not allowed: {shown}")
        if not {*folders, name} & _LOCKS:
            members.append(_Member(tuple(folders), name, entry))
    if _clash(members):
        raise _refused(source, "two files in it have the same name")
    return task_id, members


def _clash(members: list[_Member]) -> bool:
    """Return whether two files have the same name, or a file that of a folder of another one."""
    names = {member.entry.filename.casefold() for member in members}
    folders = {name.rpartition("/")[0] for name in names}
    folders |= {part for name in folders for part in _above(name)}
    return len(names) < len(members) or not names.isdisjoint(folders)


def _above(name: str) -> Iterator[str]:
    while name:
        name = name.rpartition("/")[0]
        yield name


def _may_be_unpacked(entry: zipfile.ZipInfo, parts: tuple[str, ...]) -> bool:
    """Return whether this is a regular file whose path is safe on every system."""
    kind = stat.S_IFMT(entry.external_attr >> 16)  # 0 where the writer knows no types
    is_plain = kind in (0, stat.S_IFREG) and not entry.flag_bits & _ENCRYPTED
    is_known = is_plain and entry.compress_type in _METHODS
    return is_known and len(parts) <= MOST_PARTS and all(map(_is_safe, parts))


def _is_safe(part: str) -> bool:
    """Return whether a name is neither empty, special nor hidden, and means the same everywhere."""
    if not part.isprintable() or len(part.encode()) > MOST_NAME or _NOT_PORTABLE & set(part):
        return False
    if part in _LOCKS:  # of a lock, and left out
        return True
    return part[:1] not in (".", "") and part[-1] not in ". " and not task_files.is_device(part)


def _expect_ended(
    source: Path, archive: zipfile.ZipFile, task_id: str, members: list[_Member]
) -> None:
    """Raise ImportRefused unless the record in the file is that of an ended task."""
    record = _record(archive, task_id, members)
    if record is None:
        raise _refused(source, "the record of its task cannot be read")
    if not record.is_terminal:
        raise _refused(source, "its task had not ended when it was exported")


def _record(archive: zipfile.ZipFile, task_id: str, members: list[_Member]) -> TaskRecord | None:
    for member in members:
        if (member.folders, member.name) != ((), META_NAME):
            continue
        if member.entry.file_size > meta.META_CAP:
            return None
        try:
            return meta.decode_record(archive.read(member.entry), task_id)
        except Unusable:
            return None
    return None


def _expect_room(source: Path, root: Path, size: int) -> None:
    free = shutil.disk_usage(root).free
    if size + SPARE_BYTES > free:
        has, needs = size_words(free), size_words(size)
        raise _refused(source, f"it needs {needs}, and the disk of the ledger has {has} free")


def _unpack(ledger: Ledger, archive: zipfile.ZipFile, plan: _Plan, watch: ImportProgress) -> None:
    done = 0

    def fill(folder: Folder) -> None:
        nonlocal done
        for number, member in enumerate(plan.members):
            with ExitStack() as stack, archive.open(member.entry) as file:
                place = folder
                for name in member.folders:
                    place = stack.enter_context(_made(place, name))
                fd = place.open(member.name, NEW_FLAGS)
                stack.callback(os.close, fd)
                _expect_wanted(plan, watch)
                while block := file.read(BLOCK):
                    _expect_wanted(plan, watch)
                    write_fully(fd, block)
                    done += len(block)
                    watch.on_progress(number, done, plan.size)
                os.fsync(fd)
        _point_to_result(folder, ledger.root / plan.task_id / RESULT_NAME)

    with (
        temporary_lease(ledger.root, ledger.lease) as lease,
        writing(str(ledger.root)),
        Folder.at(str(ledger.root)) as root,
    ):
        if not task_files.place_folder(root, plan.task_id, fill, lease.temp_name("import")):
            raise ImportExists(task_id=plan.task_id)


def _point_to_result(folder: Folder, place: Path) -> None:
    """Name the result's new place in the record: other programs open it by that."""
    try:
        raw = meta.decode_task(folder.read(META_NAME, meta.META_CAP))
    except Unusable:
        return  # readable for a list, but not for a rewrite
    if isinstance(raw.get("result_path"), str):
        raw["result_path"] = str(place)
        folder.remove(META_NAME)
        folder.write_new(META_NAME, meta.encoded(raw))


def _expect_wanted(plan: _Plan, watch: ImportProgress) -> None:
    if watch.stop.is_set():
        raise ImportStopped(path=str(plan.source))


def _made(folder: Folder, name: str) -> Folder:
    """Open the folder `name`, which is made if it is not there. Raises OSError."""
    with suppress(FileExistsError):
        folder.make_folder(name)
    return folder.enter(name)
