"""Record store: one JSON file per id in one folder, changed under a lock (runs, contracts).

The disk is the only truth: nothing is cached. Every call is synchronous and may wait for a lock or
a disk, so callers use a thread. Reading writes nothing, not even the folder. A file is staged under
a temp name and renamed; unknown fields survive, because a change starts from the whole dict. An id
is checked before it becomes part of a path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from engine.ledger import meta
from engine.ledger.files import MIB, Folder, Unusable, unusable, writing
from engine.ledger.lease import make_root
from engine.ledger.lock import TIMEOUT_S, kernel_lock
from engine.model.errors import EngineError
from engine.model.records import META_NAME

HEX16: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)
_END: Final = ".json"


class NotAnId(EngineError):
    """The text does not have the shape of a record id; no file was touched."""

    code = "not_an_id"
    title = "Not an id"
    sentence = "'{given}' is not the id of a {noun}"
    advice_text = "Copy the id from the list."


class RecordNotFound(EngineError):
    """No record has this id."""

    code = "record_not_found"
    title = "No such record"
    sentence = "There is no {noun} {id} in {path}."
    advice_text = "Look at the list, or point --home at another folder."


class RecordExists(EngineError):
    """A record with this id exists already; it was left unchanged."""

    code = "record_exists"
    title = "That record is there already"
    sentence = "There is a {noun} {id} already."


class RecordUnreadable(EngineError):
    """The record's file cannot be used, and is left unchanged."""

    code = "record_unreadable"
    title = "The record cannot be read"
    sentence = "The {noun} {id} is unreadable: {reason}"
    advice_text = "Repair or move away {path}."


@dataclass(frozen=True, slots=True)
class RecordStore:
    """Records `noun` in `folder`; ids match `id_pattern` whole, files have at most `cap` bytes.

    Every call may raise NotAnId; those that write also LockTimeout (after 15 s), LedgerReadOnly,
    LedgerWriteFailed and LedgerUnusable, and then the old file is intact.
    """

    folder: Path
    noun: str
    id_pattern: re.Pattern[str] = HEX16
    cap: int = MIB

    def ids(self) -> list[str]:
        """All ids in the store, sorted; none without a folder. Raises LedgerUnusable."""
        try:
            with self.open_folder() as folder:
                names = folder.names()
        except RecordNotFound:
            return []
        found = (name.removesuffix(_END) for name in names if name.endswith(_END))
        return sorted(one for one in found if self.id_pattern.fullmatch(one))

    def has(self, record_id: str) -> bool:
        """Return whether a record with this id exists, readable or not."""
        self.check(record_id)
        try:
            with self.open_folder(record_id) as folder:
                return folder.has(record_id + _END)
        except RecordNotFound:
            return False

    def read(self, record_id: str) -> dict[str, Any]:
        """Read the whole record.

        Raises:
            RecordNotFound: there is none.
            RecordUnreadable: its file is no JSON object of at most `cap` bytes.
        """
        self.check(record_id)
        with self.open_folder(record_id) as folder:
            return self.read_in(folder, record_id)

    def create(self, record_id: str, raw: dict[str, Any]) -> None:
        """Write a new record, creating the folder (0700) where it is missing.

        Raises:
            RecordExists: the id is taken; nothing was changed.
        """
        with self.hold(record_id, make=True) as folder:
            if folder.has(record_id + _END):
                raise RecordExists(noun=self.noun, id=record_id)
            self.put(folder, record_id, raw, durable=True)

    def change(
        self, record_id: str, change: Callable[[dict[str, Any]], None], *, durable: bool = False
    ) -> dict[str, Any]:
        """Read, `change` and replace a record under its lock; return the new record.

        `change` must be quick; an exception in it leaves the file unchanged, and without a
        difference nothing is written. `durable` survives a loss of power.

        Raises:
            RecordNotFound, RecordUnreadable: as `read`.
        """
        with self.hold(record_id) as folder:
            raw = self.read_in(folder, record_id)
            before = meta.encoded(raw)
            change(raw)
            if meta.encoded(raw) != before:
                self.put(folder, record_id, raw, durable=durable)
            return raw

    def remove(self, record_id: str) -> None:
        """Delete a record, with what a dead writer left of it; does nothing where there is none."""
        if self.has(record_id):
            with self.hold(record_id) as folder:
                folder.remove(_temp_of(record_id + _END))
                folder.remove(record_id + _END)
                if folder.has(record_id + _END):
                    raise Unusable(f"{record_id}{_END} cannot be removed")

    @contextmanager
    def hold(
        self, record_id: str, *, make: bool = False, wait_s: float = TIMEOUT_S
    ) -> Iterator[Folder]:
        """Open the folder and hold the lock of this id: for changes of several files.

        Sixteen locks serve all ids, so that thousands of records need no lock file each.
        """
        self.check(record_id)
        if make:
            make_root(self.folder)
        with writing(str(self.folder)), self.open_folder(record_id) as folder:
            if not make and not folder.has(record_id + _END):
                raise self.missing(record_id)  # a missing record creates no lock file
            with kernel_lock(folder, f".lock-{record_id[0]}", record_id, wait_s):
                yield folder

    def read_in(self, folder: Folder, record_id: str) -> dict[str, Any]:
        """Read as `read`, in a folder that is open. Raises RecordNotFound, RecordUnreadable."""
        name = record_id + _END
        try:
            return meta.decode_object(folder.read(name, self.cap))
        except FileNotFoundError as error:
            raise self.missing(record_id) from error
        except Unusable as error:
            reason = str(error).replace(META_NAME, "the file")
        except OSError as error:
            reason = error.strerror or str(error)
        path = str(self.folder / name)
        raise RecordUnreadable(noun=self.noun, id=record_id, reason=reason, path=path)

    def put(
        self, folder: Folder, record_id: str, raw: dict[str, Any], *, durable: bool = False
    ) -> None:
        """Write a whole record while holding its lock. Raises Unusable, OSError."""
        data = meta.encoded(raw)
        if len(data) > self.cap:
            raise Unusable(f"the {self.noun} would be larger than {self.cap // MIB} MiB")
        stage(folder, record_id + _END, data, durable=durable)

    def check(self, record_id: str) -> None:
        """Raise NotAnId unless `record_id` has the shape of this store's ids."""
        if not isinstance(record_id, str) or not self.id_pattern.fullmatch(record_id):
            raise NotAnId(given=record_id, noun=self.noun)

    def missing(self, record_id: str) -> RecordNotFound:
        return RecordNotFound(noun=self.noun, id=record_id, path=str(self.folder))

    def open_folder(self, record_id: str = "") -> Folder:
        """Open the folder for reading. Raises RecordNotFound, LedgerUnusable."""
        try:
            return Folder.at(str(self.folder))
        except FileNotFoundError as error:
            raise self.missing(record_id) from error
        except OSError as error:
            raise unusable(error, str(self.folder)) from error


def stage(folder: Folder, name: str, data: bytes, *, durable: bool) -> None:
    """Replace `name` atomically while holding its lock. Raises Unusable, OSError.

    The temp file has a fixed name: under the lock, an existing one is left from a dead holder.
    """
    temp = _temp_of(name)
    try:
        folder.replace(name, [data], temp=temp, durable=durable)
    except FileExistsError:
        folder.remove(temp)
        folder.replace(name, [data], temp=temp, durable=durable)


def _temp_of(name: str) -> str:
    return f".{name}.tmp"
