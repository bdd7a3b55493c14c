"""Exports for whoever has a loop: the work is done on a thread, and stops when it is left."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import BinaryIO

from engine.export.exporter import Exported, Order, Watch, export_file, export_stream
from engine.store.look import LedgerLook


class Exports:
    """The results of one ledger as files; looking only, nothing in it is changed."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def to_file(
        self, order: Order, place: Path, *, force: bool = False, watch: Watch | None = None
    ) -> Exported:
        """Write the file `place`, whole or not at all; see `exporter.export_file` for errors."""
        look_on = watch or Watch()
        try:
            return await asyncio.to_thread(
                lambda: export_file(LedgerLook(self._root), order, place, look_on, force=force)
            )
        finally:
            look_on.stop.set()  # who was cancelled here leaves no thread writing behind

    async def to_stream(
        self, order: Order, out: BinaryIO, *, watch: Watch | None = None
    ) -> Exported:
        """Write a text format into `out` as it comes; see `exporter.export_stream` for errors."""
        look_on = watch or Watch()
        try:
            return await asyncio.to_thread(
                lambda: export_stream(LedgerLook(self._root), order, out, look_on)
            )
        finally:
            look_on.stop.set()
