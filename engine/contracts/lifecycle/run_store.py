"""Storage of runs: `<home>/comet-runs/`, or memory while the folder is unwritable."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import msgspec

from engine.contracts.lifecycle.run_record import RUN_ID, Run, decoded
from engine.ledger.files import MIB, Folder, Unusable
from engine.ledger.record_store import RecordNotFound, RecordStore, RecordUnreadable
from engine.model.errors import EngineError, LedgerReadOnly, LedgerUnusable, LedgerWriteFailed
from engine.text.messages import ENGLISH

log = logging.getLogger(__name__)

FOLDER: Final = "comet-runs"
Raw = dict[str, Any]
Change = Callable[[Raw | None], Raw]
_UNWRITABLE: Final = (LedgerReadOnly, LedgerWriteFailed, LedgerUnusable)


class KeptRuns:
    """Records by run id; one process at a time changes a record, under its lock.

    `notice` is a sentence for the user while records are in memory only: they are lost with this
    process, and other processes do not see them. Source: seed 003, persistence.
    """

    def __init__(self, home: Path) -> None:
        self.record_store = RecordStore(home / FOLDER, "run", RUN_ID)
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
