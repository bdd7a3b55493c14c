"""This process' place in a ledger: its lease, and the ending of what dead processes left behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path

from engine.comet import LinkedRuns
from engine.errors import EngineError, LedgerReadOnly
from engine.records import TaskRecord
from engine.store.lease import Lease
from engine.store.ledger import Ledger
from engine.store.opening import check_writable
from engine.store.reaper import Reaper
from engine.store.tidying import Tidier

log = logging.getLogger(__name__)


class Keeper:
    """Holds the lease of an engine that accepts tasks, and reaps now and then.

    `read_only` says why nothing may be written, `failures` what could not be reaped and why.
    """

    def __init__(
        self,
        root: Path,
        reap_s: float,
        linked: LinkedRuns | None = None,
        shelves: Iterable[Path] = (),
    ) -> None:
        self._root = root
        self._linked = linked
        self._reap_s = reap_s
        self._tidier = Tidier(root, shelves)
        self._reaper: Reaper | None = None
        self._upkeep: asyncio.Task[None] | None = None
        self.lease: Lease | None = None
        self.read_only = ""
        self.failures: tuple[EngineError, ...] = ()

    async def open(self) -> Ledger:
        """Take a lease, sweep, and end orphans; the ledger to work with, read-only if need be.

        Raises:
            LedgerUnusable: the root is no folder, or cannot be read or made.
            LedgerWriteFailed: there is no room for a lease (a full disk).
        """
        try:
            self.lease = await asyncio.to_thread(self._take_lease)
        except LedgerReadOnly as error:
            self.read_only = str(error)
            return await asyncio.to_thread(Ledger, self._root)
        try:
            ledger = await asyncio.to_thread(self._leased)
            self._reaper = Reaper(ledger)
        except BaseException:
            await self.close()
            raise
        self._upkeep = asyncio.create_task(self._keep_up(), name="reap now and then")
        return ledger

    def _take_lease(self) -> Lease:
        check_writable(self._root)
        return Lease.acquire(self._root)

    def _leased(self) -> Ledger:
        ledger = Ledger(self._root, lease=self.lease)
        if self._linked is not None:
            ledger.told = self._linked.follow
        return ledger

    async def reap(self) -> list[TaskRecord]:
        """End what dead processes left behind; what could not be ended is in `failures`."""
        if self._reaper is None:
            raise LedgerReadOnly(path=str(self._root))
        if self.lease is not None:  # a cleaner may have taken it away
            await asyncio.to_thread(self.lease.renew)
        ended = await asyncio.to_thread(self._reaper.reap)
        if self._linked is not None:  # a run may lag behind, or its task have been ended by others
            await asyncio.to_thread(self._linked.heal, self._reaper.ledger)
        self.failures = tuple(self._reaper.failures.values())
        return ended

    async def close(self) -> None:
        """Let go of the lease: whatever this process still owns counts as orphaned."""
        if self._upkeep is not None:
            self._upkeep.cancel()
            await asyncio.wait({self._upkeep})
            self._upkeep = None
        lease, self.lease = self.lease, None
        if lease is not None:
            await asyncio.to_thread(lease.release)

    async def _keep_up(self) -> None:
        while True:
            await asyncio.sleep(self._reap_s)
            try:
                await self.reap()
            except EngineError as error:
                log.warning("reaping failed, trying again later: %s", error)
            await asyncio.to_thread(self._tidier.tidy)
