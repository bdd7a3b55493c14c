"""Wait while the folder of a running task is absent, so that the run can continue afterwards."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from engine.ledger.filesystem_checks import HeldFolder, Presence, may_be_away
from engine.ledger.ledger import Ledger
from engine.ledger.ownership import AWAY_WORDS
from engine.model.errors import (
    EngineError,
    LedgerAway,
    LedgerOutOfFiles,
    LedgerWriteFailed,
    TaskRemoved,
    UnitsMissing,
    WriteOutOfFiles,
)
from engine.model.records import TaskId

log = logging.getLogger(__name__)

CHECK_S: Final = 0.1  # interval of checks for the folder's return
REMOVED_S: Final = 1.0  # a folder that is replaced by a copy is missing for a moment
COPIED_S: Final = 3.0  # another folder may take this long to be complete
RETRY_S: Final = 0.05
PASSED_S: Final = 10.0  # without an error a shortage of descriptors is over
MAX_RETRIES: Final = 100  # retries of a write that fails although the folder is there
PHASE: Final = "ledger"  # of the `log` event about the absence


class FolderWait:
    """Presence of one run's folder, and the wait for its return.

    `lost` is why the run was given up, `since` when the folder vanished. `report` gets a sentence
    while the folder is absent, and an empty one when it is back; `pause_deadlines` is called with
    True at the start of the absence and with False at its end. `stored_units` returns the number
    of units that the run has written into the folder.
    """

    def __init__(
        self,
        ledger: Ledger,
        task_id: TaskId,
        limit_s: float,
        report: Callable[[str], None],
        pause_deadlines: Callable[[bool], None],
        stored_units: Callable[[], int],
    ) -> None:
        self._ledger, self._task_id, self._limit_s = ledger, task_id, limit_s
        self._report, self._pause_deadlines, self._stored_units = (
            report,
            pause_deadlines,
            stored_units,
        )
        self._lock = asyncio.Lock()
        self._folder: HeldFolder | None = None
        self._retries = 0
        self._short_since_s = self._short_until_s = -PASSED_S  # of a lack of descriptors
        self.since: float | None = None
        self.lost: EngineError | None = None

    async def open(self) -> None:
        """Open the folder and hold it from now on."""
        self._folder = await asyncio.to_thread(HeldFolder, self._ledger.root, self._task_id)

    def close(self) -> None:
        if self._folder is not None:
            self._folder.close()

    def give_up_waiting(self) -> None:
        """Give up at the next check; the limit becomes the time waited until now."""
        waited_s = time.monotonic() - self.since if self.since is not None else self._limit_s
        self._limit_s = min(self._limit_s, round(waited_s, 1))

    def give_up(self, error: EngineError) -> None:
        """Give up the run, although its folder is there, because of `error`."""
        self.lost = error
        log.warning("task %s: given up: %s", self._task_id, error)

    @property
    def holds_writes(self) -> bool:
        """Whether a write waits for the folder, or for a descriptor."""
        return self.since is not None or self._short_until_s > 0

    def reset_retries(self) -> None:
        """Reset the retry count after a successful write."""
        self._retries = 0
        if self._short_until_s > 0:
            self._short_until_s = -PASSED_S
            self._report("")

    async def wait_out(self, error: EngineError) -> None:
        """Return once the folder is there, and the write that raised `error` can be repeated.

        Raises:
            LedgerAway, TaskRemoved: the folder does not come back; the run has to end.
            WriteOutOfFiles, LedgerOutOfFiles: no descriptor became free; the run has to end.
            EngineError: `error` itself, which has another cause.
        """
        if self.lost is not None:
            raise self.lost
        if isinstance(error, WriteOutOfFiles | LedgerOutOfFiles):
            await self._wait_for_descriptors(error)
            return
        if not may_be_away(error) or self._folder is None:
            raise error
        async with self._lock:
            if self.lost is not None:
                raise self.lost
            presence = await asyncio.to_thread(self._folder.check)
            if presence is not Presence.THERE or self.since is not None:
                await self._wait_for_folder(self._folder, presence)
            elif isinstance(error, LedgerWriteFailed) or self._retries >= MAX_RETRIES:
                raise error
            else:
                self._retries += 1
                await asyncio.sleep(RETRY_S)

    async def _wait_for_descriptors(self, error: EngineError) -> None:
        """Pause until descriptors may be free; a shortage has the limit of an absent folder."""
        now_s = time.monotonic()
        if now_s - self._short_until_s > PASSED_S:
            self._short_since_s = now_s
        self._short_until_s = now_s
        if now_s - self._short_since_s >= self._limit_s:
            self.give_up(error)
            raise error
        self._report(f"{error.title}: {error}")
        await asyncio.sleep(CHECK_S)

    async def _wait_for_folder(self, folder: HeldFolder, presence: Presence) -> None:
        """Wait for the folder. A cancelled wait keeps `since`, so that the next one continues
        it."""
        if self.since is None:
            self.since = time.monotonic()
            log.warning("task %s: %s, waiting", self._task_id, AWAY_WORDS)
        self._pause_deadlines(True)
        try:
            while presence is not Presence.THERE:
                self._check(presence, time.monotonic() - self.since)
                await asyncio.sleep(CHECK_S)
                presence = await asyncio.to_thread(folder.check)
            lasted_s = time.monotonic() - self.since
            missing = await self._missing(folder)
            await asyncio.to_thread(self._note_return, lasted_s, missing)
        finally:
            self._pause_deadlines(False)
            self._report("")
        self.since = None
        if missing:
            raise UnitsMissing(task_id=self._task_id, number=missing)

    def _check(self, presence: Presence, lasted_s: float) -> None:
        """Raise when the folder will not come back."""
        if presence is Presence.REMOVED and lasted_s >= REMOVED_S:
            self.lost = TaskRemoved(task_id=self._task_id)
        elif lasted_s >= self._limit_s:
            self.lost = LedgerAway(
                task_id=self._task_id, root=str(self._ledger.root), limit_s=f"{self._limit_s:g}"
            )
        if self.lost is not None:
            self.since = None
            log.warning("task %s: given up: %s", self._task_id, self.lost)
            raise self.lost
        self._report(f"{AWAY_WORDS}, waiting")

    async def check(self) -> None:
        """Check for another folder in place of this one that no write has noticed.

        Raises:
            UnitsMissing: it is an older one.
        """
        folder = self._folder
        if folder is None or self._lock.locked():
            return
        async with self._lock:
            if await asyncio.to_thread(folder.check) is Presence.THERE and (
                missing := await self._missing(folder)
            ):
                raise UnitsMissing(task_id=self._task_id, number=missing)

    async def _missing(self, folder: HeldFolder) -> int:
        """Count the units missing from a replaced folder; it may still be in copying."""
        if not folder.replaced:
            return 0
        folder.replaced = False
        until = time.monotonic() + COPIED_S
        while (missing := await asyncio.to_thread(self._count_missing)) > 0:
            if time.monotonic() > until:
                break
            await asyncio.sleep(CHECK_S)
        return missing

    def _count_missing(self) -> int:
        stored_units = (
            self._stored_units()
        )  # first: a unit may be added while the others are counted
        try:
            return max(0, stored_units - sum(1 for _ in self._ledger.raw_pages(self._task_id)))
        except EngineError:
            return 0

    def _note_return(self, lasted_s: float, missing: int) -> None:
        if self._ledger.lease is not None:
            self._ledger.lease.renew()  # a copy that came back has an unlocked lease
        note = f"{AWAY_WORDS}: the run waited {lasted_s:.1f} s for it"
        if missing:
            note += f"; {missing} finished units are not in the folder that came back"
        self._ledger.note(self._task_id, [("log", {"phase": PHASE, "note": note})])
