"""Event search, unit durations and event export of a task; never writes into a ledger."""

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

Told = Callable[[int, int], object]  # bytes done, bytes in total; called from a worker thread


class Past:
    """Events of tasks of every ledger. All raise NotATaskId, TaskNotFound, TaskUnreadable."""

    part_name = "past"

    def __init__(self, root: Path, router: Router = OWN_ONLY) -> None:
        self._root = root
        self.router = router

    @routed()
    async def find(self, task_id: str, text: str, since: int = 0) -> Found:
        """Find events with `text` in their lines, ignoring case, some MiB from byte `since`.

        Repeat from `next_offset` until it stays the same: a last line may be incomplete.
        """
        return await asyncio.to_thread(
            lambda: self._reader.find_events(task_id, Needle(text), since)
        )

    @routed()
    async def place_of(self, task_id: str, ts_ms: float) -> int:
        """Return the byte of the first event at or after `ts_ms`."""
        return await asyncio.to_thread(lambda: self._reader.event_place(task_id, ts_ms))

    @routed()
    async def unit_times(self, task_id: str, since: int = 0) -> UnitTimes:
        """Return the durations of finished units, some MiB of them from byte `since`.

        Repeat from `next_offset` until there are no more.
        """
        return await asyncio.to_thread(lambda: self._reader.unit_times(task_id, since))

    async def save_events(self, task_id: str, place: Path, told: Told) -> int:
        """Copy all events unchanged to the file `place`; return their size in bytes.

        An existing file is replaced, since the user has confirmed the place. A cancelled copy
        leaves no file.

        Raises:
            ExportRefused, ExportFailed: the file cannot be written there.
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
        """Write `lines` as text to the file `place`; return its size. Raises as `save_events`."""
        await self.router.check_outside(place)
        return await asyncio.to_thread(self._write, lines, place)

    @property
    def _reader(self) -> LedgerReader:
        """A new reader, created in the thread that uses it: opening a root may wait for a disk."""
        return LedgerReader(self._root)

    def _copy(self, task_id: str, place: Path, told: Told, stop: threading.Event) -> int:
        done = 0
        with new_file(place, self._root, force=True) as out:
            for block, size in self._reader.event_blocks(task_id):
                if stop.is_set():
                    raise InterruptedError  # cancelled; the file is dropped
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
