"""A worker of a cluster as a task uses it: its state, its pages, and its scheduler's news of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from engine.cluster.cluster_address import ClusterAddress
from engine.cluster.page_records import plain_name
from engine.cluster.wire import Misbehaviour, Wire
from engine.model.cluster_workers import WorkerState, WorkerView
from engine.model.errors import EngineError

RATE_S: Final = 10
_MOST_MEMORY_BYTES: Final = 2**50
_MOST_EPOCH_S: Final = 1e11
_MOST_LISTED: Final = 10_000
_MOST_ADDRESS_CHARS: Final = 300
_Bytes = Annotated[int, Meta(gt=0, le=_MOST_MEMORY_BYTES)]


class _Entry(msgspec.Struct):
    """A scheduler's entry of a worker; each fact is decoded for itself, so that it may be wrong."""

    name: msgspec.Raw = msgspec.Raw(b"\xc0")
    metrics: msgspec.Raw = msgspec.Raw(b"\xc0")
    last_seen: msgspec.Raw = msgspec.Raw(b"\xc0")


class _Metrics(msgspec.Struct):
    memory: msgspec.Raw = msgspec.Raw(b"\xc0")


class _Identity(msgspec.Struct):
    workers: Annotated[dict[str, _Entry], Meta(max_length=_MOST_LISTED)]


class Listed(NamedTuple):
    """A worker as its scheduler lists it; None: unknown.

    `reported_s` is when it last reported, in seconds since 1970 by the scheduler's clock.
    """

    name: str
    memory_bytes: int | None
    reported_s: float | None


def listed_workers(identity: msgspec.Raw) -> dict[str, Listed]:
    """Return the workers of a scheduler's identity, by address; a wrong fact of one is unknown.

    Raises:
        Misbehaviour: it is no list of workers.
    """
    try:
        found = msgspec.msgpack.decode(identity, type=_Identity)
    except (msgspec.DecodeError, RecursionError, ValueError) as failed:
        raise Misbehaviour("it is no scheduler of Dask") from failed
    return {
        address: _listed(address, entry)
        for address, entry in found.workers.items()
        if len(address) <= _MOST_ADDRESS_CHARS
    }


def _listed(address: str, entry: _Entry) -> Listed:
    name = _fact(entry.name, str | int | float | None)
    metrics = _fact(entry.metrics, _Metrics) or _Metrics()
    reported_s = _fact(entry.last_seen, float)
    if reported_s is not None and not 0 < reported_s < _MOST_EPOCH_S:  # NaN is not, either
        reported_s = None
    return Listed(
        plain_name(address if name is None else str(name)[:300]),
        _fact(metrics.memory, _Bytes),
        reported_s,
    )


def _fact(raw: msgspec.Raw, expect: Any) -> Any:
    try:
        return msgspec.msgpack.decode(raw, type=expect)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None


class PageRate:
    """The pages of the last `RATE_S` seconds, counted in full seconds of `time.monotonic`."""

    def __init__(self) -> None:
        self._pages = [0] * RATE_S
        self._second = 0

    def add(self, now_s: float) -> None:
        """Count a page that is loaded."""
        self._advance(now_s)
        self._pages[self._second % RATE_S] += 1

    def per_s(self, now_s: float) -> float:
        """Return the mean of the last seconds, the current one included."""
        self._advance(now_s)
        return sum(self._pages) / RATE_S

    def _advance(self, now_s: float) -> None:
        second = int(now_s)
        for passed in range(max(self._second + 1, second - RATE_S + 1), second + 1):
            self._pages[passed % RATE_S] = 0
        self._second = max(self._second, second)


class WorkerFacts:
    """The counters of one worker for one task, and the scheduler's news of it.

    Attributes:
        pages: the pages that it loaded for this task.
        memory_bytes: of its process, without its browser; None: unknown.
    """

    def __init__(self) -> None:
        self.pages = 0
        self.memory_bytes: int | None = None
        self._rate = PageRate()
        self._reported_s: float | None = None  # by the clock of the scheduler's machine
        self._seen_at_s: float | None = None

    def count_page(self) -> None:
        """Count a page that the worker loaded."""
        self.pages += 1
        self._rate.add(time.monotonic())

    def pages_per_s(self) -> float:
        """Return the pages of one second, as the mean of the last ones."""
        return self._rate.per_s(time.monotonic())

    def seen_s(self) -> float | None:
        """Return the seconds since the worker last reported to the scheduler, if it is known."""
        return None if self._seen_at_s is None else time.monotonic() - self._seen_at_s

    def read(self, listed: Listed) -> None:
        """Take what the scheduler tells of the worker.

        The machines' clocks may differ: what counts is when the time of its report changes.
        """
        self.memory_bytes = listed.memory_bytes
        if listed.reported_s is not None and listed.reported_s != self._reported_s:
            self._reported_s, self._seen_at_s = listed.reported_s, time.monotonic()


@dataclass(eq=False)
class PoolWorker:
    """A worker of the cluster.

    `failure` is why it can load no page, if it has no browser; `trouble` is why it was put aside.
    `is_wrong`: that was not a lost connection; `has_left`: the worker ended in an orderly way.
    `busy_s` is its last pause for lack of room.
    `idle_pages` counts those of the pages in progress in which nothing happens.
    `unreached` counts the pages in a row whose host it did not reach, and `unreached_from` is the
    number of pages that the pool had loaded before them.
    """

    address: ClusterAddress
    name: str
    slots: int = 0
    is_live: bool = False
    is_listed: bool = True
    flying: int = 0
    idle_pages: int = 0
    borrowed: int = 0
    away_until_s: float = 0.0
    strikes: int = 0
    is_wrong: bool = False
    has_left: bool = False
    busy_until_s: float = 0.0
    busy_s: float = 0.0
    failure: EngineError | None = None
    idle: list[Wire] = field(default_factory=list)
    trouble: str = ""
    unreached: int = 0
    unreached_from: int = 0
    facts: WorkerFacts = field(default_factory=WorkerFacts)

    def forgive(self) -> None:
        """End the pauses of a worker that loads pages."""
        self.strikes, self.busy_until_s, self.busy_s = 0, 0.0, 0.0

    def drop_connections(self) -> None:
        while self.idle:
            self.idle.pop().abort()

    @property
    def state(self) -> WorkerState:
        """The state that an operator sees."""
        if self.is_live:
            return "ready"
        if self.failure is not None:
            return "no_browser"
        if self.has_left:
            return "left"
        if not self.trouble:
            return "connecting"
        return "unusable" if self.is_wrong else "lost"

    def view(self, cluster: str) -> WorkerView:
        """Return what is shown of this worker of `cluster`."""
        is_waiting = self.state in ("lost", "unusable", "no_browser") and self.is_listed
        return WorkerView(
            cluster,
            str(self.address),
            self.name,
            self.state,
            slots=self.slots,
            loading=self.flying,
            pages=self.facts.pages,
            pages_per_s=self.facts.pages_per_s(),
            memory_bytes=self.facts.memory_bytes,
            seen_s=self.facts.seen_s(),
            reason="" if self.is_live or self.has_left else self.trouble,
            back_s=max(0.0, self.away_until_s - time.monotonic()) if is_waiting else None,
        )
