"""`Ledgers`: several ledgers side by side behind the face of one engine.

The own ledger is where tasks are started; any number of others are looked at and, unless they
are only to be watched, acted on. Ids of their tasks end in `@label` (see `ledger_ids`): every
verb goes to the ledger that the id names, and every id that comes back names its ledger.
With no ledger beside, this is the own ledger's engine and nothing more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Container, Iterable, Iterator
from contextlib import aclosing
from pathlib import Path

from msgspec.structs import replace

from engine.kinds.context import Clock
from engine.ledger.folder_presence import ANSWER_S, SILENT_WORDS, FolderProbe
from engine.model.config import Settings
from engine.model.ledger_ids import is_label
from engine.model.records import TaskId
from engine.service.feed import Batch
from engine.service.router.connection import CLOSE_S, Guest, Neighbour, as_engine_error
from engine.service.router.connection_state import Beside, LedgerState
from engine.service.router.errors import BadLabel, NoSuchLedger
from engine.service.router.routed_verbs import SteersBeside

# The live lists of several ledgers as one: the own one's reader also tells what the others do.
#
# The own ledger's batches pass as they come. Those of the others wait here for the next of
# them, and call for it, so that the own ledger costs nothing more than it does alone.

log = logging.getLogger(__name__)

Follow = Callable[[Guest], AsyncGenerator[Batch, None]]
MANY = 100  # tasks whose ids are marked in a thread: more of them would be felt


class _Part:
    """One of the others, as far as it was told."""

    task: asyncio.Task[None]

    def __init__(self, neighbour: Neighbour) -> None:
        self.neighbour = neighbour
        self.known: set[TaskId] = set()
        # What has not answered yet holds nobody up: it counts once it tells something.
        self.last = Batch(complete=True)


class Merging:
    """The others beside one reader of the own ledger. `call` has the own feed tell something;
    where it `counts`, what it hears is how these ledgers stand."""

    def __init__(self, follow: Follow, call: Callable[[], object], *, counts: bool = True) -> None:
        self._follow, self._call, self._counts = follow, call, counts
        self._parts: dict[str, _Part] = {}
        self._waiting: list[Batch] = []
        self._own = Batch(complete=True)
        self._ending: set[asyncio.Task[None]] = set()

    def begin(self, neighbour: Neighbour) -> None:
        """Follow this ledger from now on."""
        label, part = neighbour.beside.label, _Part(neighbour)
        part.task = asyncio.create_task(self._begin(part), name=f"follow ledger {label}")
        self._parts[label] = part

    def end(self, label: str) -> asyncio.Task[None]:
        """Follow it no more: what it told is gone. The task that followed it ends soon."""
        part = self._parts.pop(label)
        part.task.cancel()
        self._ending.add(part.task)
        part.task.add_done_callback(self._ending.discard)
        self._drop(part)
        self._call()
        return part.task

    def joined(self, own: Batch) -> Iterator[Batch]:
        """What is to be told now: a batch of the own ledger, and what waits of the others."""
        self._own = own
        if not self._parts and not self._waiting:
            yield own
            return
        waiting, self._waiting = self._waiting, []
        if own.views or own.gone or not waiting:
            yield self._summed(own)
        yield from map(self._summed, waiting)

    async def close(self) -> None:
        """Follow nobody any more; who hangs is not waited for."""
        for label in tuple(self._parts):
            self.end(label)
        if self._ending:
            await asyncio.wait(self._ending, timeout=CLOSE_S)

    def _summed(self, batch: Batch) -> Batch:
        all_of_them = [self._own, *(part.last for part in self._parts.values())]
        return replace(
            batch,
            loaded=sum(one.loaded for one in all_of_them),
            total=sum(one.total for one in all_of_them),
            complete=all(one.complete for one in all_of_them),
        )

    async def _begin(self, part: _Part) -> None:
        await part.neighbour.lane.run(self._keep_up(part))

    async def _keep_up(self, part: _Part) -> None:
        """Until it is cancelled; a ledger that fails is followed anew."""
        while True:
            try:
                await self._pass_on(part)
            except Exception as error:
                log.warning("a ledger beside cannot be followed", exc_info=error)
                if self._counts:
                    part.neighbour.fail(as_engine_error(error, part.neighbour.beside.path))
            else:
                return  # it is being closed, or has nothing of the kind
            self._drop(part)
            self._call()
            await part.neighbour.pause()

    async def _pass_on(self, part: _Part) -> None:
        neighbour = part.neighbour
        marks, engine = neighbour.marks, await neighbour.ready()
        async with aclosing(self._follow(engine)) as batches:
            async for batch in batches:
                if len(batch.views) > MANY:
                    marked = await asyncio.to_thread(marks.batch, batch)
                else:
                    marked = marks.batch(batch)
                self._take(part, marked)

    def _take(self, part: _Part, batch: Batch) -> None:
        part.last = replace(batch, views=(), gone=())
        part.known.difference_update(batch.gone)
        part.known.update(view.task_id for view in batch.views)
        self._waiting.append(batch)
        self._call()
        if self._counts:
            part.neighbour.hear(batch)
        else:
            part.neighbour.runs = part.known

    def _drop(self, part: _Part) -> None:
        gone, part.known = tuple(part.known), set()
        part.last = Batch(complete=True)
        if gone:
            self._waiting.append(Batch(gone=gone))


SILENT_S = ANSWER_S


def ask_for(settings: Settings) -> Callable[[], str]:
    """Ask the system for the folder of a ledger; the call then says that it is silent, if so."""
    answer = FolderProbe(settings.root, settings.home)
    return lambda: "" if answer.responded(0) else f"{settings.root}: {SILENT_WORDS}"


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
