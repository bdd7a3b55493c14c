"""`Ledgers`: several ledgers side by side behind the face of one engine.

The own ledger is where tasks are started; any number of others are looked at and, unless they
are only to be watched, acted on. Ids of their tasks end in `@label` (see `ledger_ids`): every
verb goes to the ledger that the id names, and every id that comes back names its ledger.
With no ledger beside, this is the own ledger's engine and nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Container, Iterable, Iterator
from contextlib import aclosing
from pathlib import Path

from engine.kinds.context import Clock
from engine.ledger.folder_presence import ANSWER_S, SILENT_WORDS, Answer
from engine.model.config import Settings
from engine.model.ledger_ids import is_label
from engine.service.feed import Batch
from engine.service.router.connection import Guest, Neighbour
from engine.service.router.connection_state import Beside, LedgerState
from engine.service.router.errors import BadLabel, NoSuchLedger
from engine.service.router.merged_feed import Merging
from engine.service.router.routed_commands import SteersBeside

SILENT_S = ANSWER_S


def ask_for(settings: Settings) -> Callable[[], str]:
    """Ask the system for the folder of a ledger; the call then says that it is silent, if so."""
    answer = Answer(settings.root, settings.home)
    return lambda: "" if answer.came(0) else f"{settings.root}: {SILENT_WORDS}"


class Ledgers(SteersBeside):
    """An engine on its own ledger, and on those beside it; see the module.

    `told` hears, on the loop, when one of them is in another state.
    """

    _keeps_all = True

    def __init__(self, settings: Settings, *, accepts: bool, clock: Clock | None = None) -> None:
        super().__init__(settings, accepts=accepts, clock=clock)
        self.told: Callable[[], object] = lambda: None
        self._readers: set[Merging] = set()
        self._run_readers: set[Merging] = set()
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def ledgers(self) -> tuple[LedgerState, ...]:
        """Each ledger beside the own one, in the order in which they came, as it is now."""
        return tuple(each.state for each in self._neighbours.by_label.values())

    def add(self, beside: Beside) -> None:
        """Show a ledger beside; it is opened in the background, and again while that fails.

        A folder that cannot stand beside the others (it is one of them, or inside one) is
        `unusable` with that error, as is one that cannot be read.

        Raises:
            BadLabel: it cannot be called so, or another one is.
        """
        check_label(beside.label, self._neighbours.by_label)
        before = tuple(self._neighbours.by_label)
        neighbour = Neighbour(beside, self.settings, lambda: self._roots(before), self._tell)
        self._neighbours.by_label[beside.label] = neighbour
        neighbour.begin()
        for reader in self._readers | self._run_readers:
            reader.begin(neighbour)
        self.told()

    def remove(self, label: str) -> None:
        """Show it no more: its rows go at once; its folder is let go of in the background.

        Raises:
            NoSuchLedger.
        """
        neighbour = self._neighbours.by_label.pop(label, None)
        if neighbour is None:
            raise NoSuchLedger(label=label)
        ending = [reader.end(label) for reader in self._readers | self._run_readers]
        closing = asyncio.create_task(neighbour.close(ending), name=f"close ledger {label}")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        self.told()

    def allow(self, label: str, *, watch_only: bool) -> None:
        """Watch it only, or let it be changed, from now on.

        Raises:
            NoSuchLedger.
        """
        neighbour = self._neighbours.by_label.get(label)
        if neighbour is None:
            raise NoSuchLedger(label=label)
        one = neighbour.beside
        neighbour.beside = Beside(one.path, one.label, watch_only)
        self.told()

    async def close(self, grace_s: float = 5.0) -> None:
        """Let go of every ledger; see `Engine.close`."""
        for label in tuple(self._neighbours.by_label):
            self.remove(label)
        await asyncio.gather(*self._closing)
        await super().close(grace_s)

    def changes(self) -> AsyncGenerator[Batch, None]:
        """The live list of all ledgers; see `Engine.changes`."""
        return self._merged(super().changes(), Merging(_tasks_of, self._call_feeds), self._readers)

    def run_changes(self) -> AsyncGenerator[Batch, None]:
        """The task runs of all ledgers whose runs are known; see `Engine.run_changes`."""
        merging = Merging(_runs_of, self._call_goals, counts=False)
        return self._merged(super().run_changes(), merging, self._run_readers)

    def rescan(self) -> None:
        """Look at every folder again, and try again what could not be opened, now."""
        super().rescan()
        for each in self._neighbours.by_label.values():
            each.rescan()

    async def _merged(
        self, own: AsyncGenerator[Batch, None], reader: Merging, readers: set[Merging]
    ) -> AsyncGenerator[Batch, None]:
        readers.add(reader)
        try:
            for each in self._neighbours.by_label.values():
                reader.begin(each)
            async with aclosing(own) as batches:
                async for batch in batches:
                    for one in reader.joined(batch):
                        yield one
        finally:
            readers.discard(reader)
            await reader.close()

    def _tell(self) -> None:
        self.told()

    def _call_feeds(self) -> None:
        for feed in self._feeds:
            feed.call()

    def _call_goals(self) -> None:
        for goals in self._goal_feeds:
            goals.call()

    def _roots(self, labels: Iterable[str]) -> Iterator[Path]:
        """The folders of the own ledger and of these."""
        yield self.settings.root
        near = self._neighbours.by_label
        yield from (near[label].beside.path for label in labels if label in near)


def check_label(label: str, taken: Container[str]) -> None:
    """Raise BadLabel unless a ledger can be called so beside those that are there."""
    if not is_label(label):
        raise BadLabel(label=label, reason="a label has other signs, or another length")
    if label in taken:
        raise BadLabel(label=label, reason="another ledger is called so")


def _tasks_of(guest: Guest) -> AsyncGenerator[Batch, None]:
    return guest.changes()


async def _runs_of(guest: Guest) -> AsyncGenerator[Batch, None]:
    if guest.has_runs:
        async with aclosing(guest.run_changes()) as batches:
            async for batch in batches:
                yield batch
