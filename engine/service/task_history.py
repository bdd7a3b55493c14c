"""What a task has behind it: where a text or a moment is among its events, how long its units
took, and all of its events as a file of the user's. Nothing is written into a ledger."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from engine.export.output import new_file
from engine.ledger.event_search import Found, Needle
from engine.ledger.reader import LedgerReader
from engine.ledger.routing import OWN_ONLY, Router, routed
from engine.model.records import UnitTimes

Told = Callable[[int, int], object]  # bytes done, bytes in all; called from a worker thread


class Past:
    """Of the tasks of every ledger. Everything raises NotATaskId, TaskNotFound, TaskUnreadable."""

    part_name = "past"

    def __init__(self, root: Path, router: Router = OWN_ONLY) -> None:
        self._root = root
        self.router = router

    @routed()
    async def find(self, task_id: str, text: str, since: int = 0) -> Found:
        """The events whose lines hold `text`, in capitals or not, some MiB from byte `since` on.

        Ask again from `next_offset` until it stands still: a last line may lack its end.
        """
        return await asyncio.to_thread(
            lambda: self._reader.find_events(task_id, Needle(text), since)
        )

    @routed()
    async def place_of(self, task_id: str, ts_ms: float) -> int:
        """The byte at which the first event stands that is not before `ts_ms`."""
        return await asyncio.to_thread(lambda: self._reader.event_place(task_id, ts_ms))

    @routed()
    async def unit_times(self, task_id: str, since: int = 0) -> UnitTimes:
        """How long finished units took, some MiB of them from byte `since` on.

        Ask again from `next_offset` until there are no more.
        """
        return await asyncio.to_thread(lambda: self._reader.unit_times(task_id, since))

    async def save_events(self, task_id: str, place: Path, told: Told) -> int:
        """Copy all events, as they stand, to the file `place`; returns how many bytes they are.

        A file that is there is replaced: who chose the place was asked. Left halfway (cancelled),
        nothing is left behind.

        Raises:
            ExportRefused, ExportFailed: it cannot be written there.
        """
        await self.router.check_outside(place)
        return await self._save_events(task_id, place, told)

    @routed()
    async def _save_events(self, task_id: str, place: Path, told: Told) -> int:
        stop = threading.Event()
        try:
            return await asyncio.to_thread(self._copy, task_id, place, told, stop)
        finally:
            stop.set()

    async def save_lines(self, lines: Iterable[str], place: Path) -> int:
        """Write `lines` as text to the file `place`; how many bytes. Raises as `save_events`."""
        await self.router.check_outside(place)
        return await asyncio.to_thread(self._write, lines, place)

    @property
    def _reader(self) -> LedgerReader:
        """Made where it is used, in a thread: opening a root may wait for a disk."""
        return LedgerReader(self._root)

    def _copy(self, task_id: str, place: Path, told: Told, stop: threading.Event) -> int:
        done = 0
        with new_file(place, self._root, force=True) as out:
            for block, size in self._reader.event_blocks(task_id):
                if stop.is_set():
                    raise InterruptedError  # nobody waits any more; the file is dropped
                out.write(block)
                done += len(block)
                told(done, size)
        return done

    def _write(self, lines: Iterable[str], place: Path) -> int:
        done = 0
        with new_file(place, self._root, force=True) as out:
            for line in lines:
                done += out.write(f"{line}\n".encode("utf-8", "replace"))
        return done
