"""Exports for whoever has a loop: the work is done on a thread, and stops when it is left."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from msgspec.structs import replace

from engine.export.exporter import Exported, Order, Watch, export_file, export_stream
from engine.export.output import new_file
from engine.export.task_list import export_list
from engine.ledger.command_task_ids import Names
from engine.ledger.reader import LedgerLook
from engine.model.records import TaskView

ZIP: Final = "zip"  # no table but the task's whole folder


class Exports:
    """The results of one ledger as files; looking only, nothing in it is changed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names = Names()

    async def to_file(
        self, order: Order, place: Path, *, force: bool = False, watch: Watch | None = None
    ) -> Exported:
        """Write the file `place`, whole or not at all; see `exporter.export_file` for errors."""
        look_on = watch or Watch()

        def work() -> Exported:
            look = LedgerLook(self._root)
            named = self._named(look, order)
            if order.format != ZIP:
                return export_file(look, named, place, look_on, force=force)
            from engine.export.folder import zip_folder

            with new_file(place, look.root, force=force) as out:
                done = zip_folder(look, named.task_id, out, look_on)
            return replace(done, path=str(place))

        try:
            return await asyncio.to_thread(work)
        finally:
            look_on.stop.set()  # who was cancelled here leaves no thread writing behind

    async def list_to_file(
        self,
        views: Sequence[TaskView],
        order: Order,
        place: Path,
        *,
        force: bool = False,
        watch: Watch | None = None,
    ) -> Exported:
        """Write the list of these tasks itself; see `task_list.export_list` for errors."""
        look_on = watch or Watch()
        work = partial(export_list, views, order, place, self._root, look_on, force=force)
        try:
            return await asyncio.to_thread(work)
        finally:
            look_on.stop.set()

    async def to_stream(
        self, order: Order, out: BinaryIO, *, watch: Watch | None = None
    ) -> Exported:
        """Write a text format into `out` as it comes; see `exporter.export_stream` for errors."""
        look_on = watch or Watch()

        def work() -> Exported:
            look = LedgerLook(self._root)
            return export_stream(look, self._named(look, order), out, look_on)

        try:
            return await asyncio.to_thread(work)
        finally:
            look_on.stop.set()

    def _named(self, look: LedgerLook, order: Order) -> Order:
        """The order with the id of the task's folder: a command task has another one, too."""
        return replace(order, task_id=self._names.ledger_id(look, order.task_id))
