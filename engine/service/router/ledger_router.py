"""The router of an engine: other ledgers by label, and their live lists merged with the own one.

The own ledger is where tasks are started; any number of others are read and, unless they
are only to be watched, changed. Ids of their tasks end in `@label` (see `ledger_ids`); see
`engine.ledger.routing` for how a call finds its ledger.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Container, Iterable, Iterator
from contextlib import aclosing
from pathlib import Path

from engine.export.output import check_outside
from engine.ledger.filesystem_checks import ANSWER_S, SILENT_WORDS, FolderProbe
from engine.model.config import Settings
from engine.model.ledger_ids import SIGN, is_label, ledger_label
from engine.service.feed import Batch
from engine.service.router.connection import LedgerConnection, OtherEngine
from engine.service.router.ledger_paths import BadLabel, Beside, LedgerState, NoSuchLedger
from engine.service.router.merging import Merging

SILENT_S = ANSWER_S


def ask_for(settings: Settings) -> Callable[[], str]:
    """Probe the folder of a ledger; the returned call reports a silent one."""
    answer = FolderProbe(settings.root, settings.home)
    return lambda: "" if answer.responded(0) else f"{settings.root}: {SILENT_WORDS}"


class LedgerRouter:
    """Other ledgers of one engine, by label, in the order of addition.

    `told` is called on the loop after a change of a ledger's state. `open_engine` creates the
    engine of another ledger, and may wait for a disk.
    """

    def __init__(self, settings: Settings, open_engine: Callable[[Path], OtherEngine]) -> None:
        self.told: Callable[[], object] = lambda: None
        self._settings = settings
        self._open_engine = open_engine
        self._by_label: dict[str, LedgerConnection] = {}
        self._readers: set[Merging] = set()
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def states(self) -> tuple[LedgerState, ...]:
        """The current state of each ledger."""
        return tuple(each.state for each in self._by_label.values())

    def add(self, beside: Beside) -> None:
        """Add another ledger, which is opened in the background, with retries.

        A folder that overlaps with another ledger is `unusable` with that error, as is one that
        cannot be read.

        Raises:
            BadLabel: the label is invalid or in use.
        """
        check_label(beside.label, self._by_label)
        before = tuple(self._by_label)
        connection = LedgerConnection(
            beside, self._open_engine, lambda: self._roots(before), self._tell
        )
        self._by_label[beside.label] = connection
        connection.begin()
        for reader in self._readers:
            reader.begin(connection)
        self.told()

    def remove(self, label: str) -> None:
        """Remove a ledger: its rows at once; its folder is closed in the background.

        Raises:
            NoSuchLedger.
        """
        connection = self._known(label)
        del self._by_label[label]
        ending = [reader.end(label) for reader in self._readers]
        closing = asyncio.create_task(connection.close(ending), name=f"close ledger {label}")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        self.told()

    def allow(self, label: str, *, watch_only: bool) -> None:
        """Set whether a ledger is only watched, or may be changed.

        Raises:
            NoSuchLedger.
        """
        connection = self._known(label)
        one = connection.beside
        connection.beside = Beside(one.path, one.label, watch_only)
        self.told()

    async def close(self) -> None:
        """Close all other ledgers."""
        for label in tuple(self._by_label):
            self.remove(label)
        await asyncio.gather(*self._closing)

    def rescan(self) -> None:
        """Read every folder again, and retry ledgers that could not be opened, now."""
        for each in self._by_label.values():
            each.rescan()

    def of(self, task_id: str) -> LedgerConnection | None:
        """Return the ledger that the id names; None for the own.

        Raises:
            NoSuchLedger: there is no ledger of this label.
        """
        if SIGN not in task_id:  # the only cost of an id with a single ledger
            return None
        return self._known(ledger_label(task_id))

    def all_open(self) -> Iterator[LedgerConnection]:
        """Yield the ledgers that are open now."""
        return (each for each in tuple(self._by_label.values()) if each.is_open)

    def all_with_runs(self) -> Iterator[LedgerConnection]:
        """Yield the open ledgers whose contracts and task runs are in a known folder."""
        return (each for each in self.all_open() if each.engine.has_runs)

    async def check_outside(self, place: Path) -> None:
        """Raise ExportRefused for a place inside any ledger."""
        places = [each.place for each in self._by_label.values()]
        if places:  # otherwise the writer checks the own ledger
            own = self._settings.root
            await asyncio.to_thread(lambda: check_outside(place, [os.path.realpath(own), *places]))

    async def merged(
        self, own: AsyncGenerator[Batch, None], reader: Merging
    ) -> AsyncGenerator[Batch, None]:
        """Yield the own batches, merged with those of other ledgers."""
        self._readers.add(reader)
        try:
            for each in self._by_label.values():
                reader.begin(each)
            async with aclosing(own) as batches:
                async for batch in batches:
                    for one in reader.joined(batch):
                        yield one
        finally:
            self._readers.discard(reader)
            await reader.close()

    def _tell(self) -> None:
        self.told()

    def _known(self, label: str) -> LedgerConnection:
        found = self._by_label.get(label)
        if found is None:
            raise NoSuchLedger(label=label)
        return found

    def _roots(self, labels: Iterable[str]) -> Iterator[Path]:
        """Yield the folders of the own ledger and of these."""
        yield self._settings.root
        near = self._by_label
        yield from (near[label].beside.path for label in labels if label in near)


def check_label(label: str, taken: Container[str]) -> None:
    """Raise BadLabel unless the label is valid and not in use."""
    if not is_label(label):
        raise BadLabel(label=label, reason="a label has other signs, or another length")
    if label in taken:
        raise BadLabel(label=label, reason="another ledger is called so")
