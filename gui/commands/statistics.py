"""What a ledger's tasks come to: how many, how well, how long; pure, over views. Knows no Qt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from engine.model.records import Status, TaskRecord, TaskView
from engine.query import host_of

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
MOST_HOSTS: Final = 10
MOST_KINDS: Final = 12
ENDS: Final = (Status.COMPLETED, Status.FAILED, Status.CANCELLED)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time up to now, cut into bars of equal length; no length: everything."""

    key: str
    length_ms: int = 0
    bars: int = 0


SPANS: Final = (
    Span("day", DAY_MS, 24),
    Span("week", 7 * DAY_MS, 28),
    Span("month", 30 * DAY_MS, 30),
    Span("all"),
)


@dataclass(frozen=True, slots=True)
class Share:
    """How the tasks of one kind, host or ledger went; the window's own ledger has no name."""

    name: str
    tasks: int
    failed: int


@dataclass(frozen=True, slots=True)
class Numbers:
    """`bars` hold what ended in each part of the span: (completed, failed, cancelled).

    `median_ms` and `slow_ms` are of completed tasks, from start to end; of twenty tasks one
    took longer than `slow_ms`. None where none completed.
    """

    started: int = 0
    ended: tuple[int, int, int] = (0, 0, 0)
    units: int = 0
    median_ms: float | None = None
    slow_ms: float | None = None
    kinds: tuple[Share, ...] = ()
    hosts: tuple[Share, ...] = ()
    roots: tuple[Share, ...] = ()
    bars: tuple[tuple[int, int, int], ...] = ()

    @property
    def success(self) -> float | None:
        """The share of completed tasks among those that completed or failed."""
        completed, failed, _ = self.ended
        return completed / (completed + failed) if completed + failed else None


def count_up(views: Iterable[TaskView], span: Span, now_ms: float) -> Numbers:
    """The numbers of all tasks that were made, or ended, within `span`."""
    tally = _Tally(span, now_ms)
    for view in views:
        if isinstance(view.entry, TaskRecord):
            tally.add(view, view.entry)
    return tally.numbers()


class _Tally:
    def __init__(self, span: Span, now_ms: float) -> None:
        self._begin = now_ms - span.length_ms if span.length_ms else float("-inf")
        self._now, self._span = now_ms, span
        self._started = self._units = 0
        self._ended: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._hosts: Counter[str] = Counter()
        self._bad_kinds: Counter[str] = Counter()
        self._bad_hosts: Counter[str] = Counter()
        self._roots: Counter[str] = Counter()
        self._bad_roots: Counter[str] = Counter()
        self._took: list[float] = []
        self._bars = [[0, 0, 0] for _ in range(span.bars)]

    def add(self, view: TaskView, record: TaskRecord) -> None:
        made, ended = record.created_at, record.ended_at
        is_new = made is not None and self._begin <= made <= self._now
        is_over = ended is not None and self._begin <= ended <= self._now
        if not is_new and not is_over and self._span.length_ms:
            return
        self._started += is_new or not self._span.length_ms
        self._units += view.units.done if view.units is not None else 0
        host, failed = host_of(view), record.status == Status.FAILED
        self._kinds[record.kind] += 1
        self._bad_kinds[record.kind] += failed
        self._roots[view.ledger] += 1
        self._bad_roots[view.ledger] += failed
        if host:
            self._hosts[host] += 1
            self._bad_hosts[host] += failed
        if record.status in ENDS and (is_over or not self._span.length_ms):
            self._end(record)

    def _end(self, record: TaskRecord) -> None:
        self._ended[record.status] += 1
        if record.ended_at is None:
            return
        if record.status == Status.COMPLETED and record.started_at is not None:
            self._took.append(max(0.0, record.ended_at - record.started_at))
        if self._bars:
            part = (record.ended_at - self._begin) * len(self._bars) / self._span.length_ms
            bar = self._bars[min(len(self._bars) - 1, max(0, int(part)))]
            bar[ENDS.index(Status(record.status))] += 1

    def numbers(self) -> Numbers:
        completed, failed, cancelled = (self._ended[status] for status in ENDS)
        took = sorted(self._took)
        return Numbers(
            started=self._started,
            ended=(completed, failed, cancelled),
            units=self._units,
            median_ms=_at(took, 0.5),
            slow_ms=_at(took, 0.95),
            kinds=_shares(self._kinds, self._bad_kinds, MOST_KINDS),
            hosts=_shares(self._hosts, self._bad_hosts, MOST_HOSTS),
            roots=_shares(self._roots, self._bad_roots, MOST_HOSTS),
            bars=tuple((one[0], one[1], one[2]) for one in self._bars),
        )


def _at(ordered: Sequence[float], share: float) -> float | None:
    """The value that this share of all does not exceed."""
    if not ordered:
        return None
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _shares(every: Counter[str], bad: Counter[str], most: int) -> tuple[Share, ...]:
    return tuple(Share(name, number, bad[name]) for name, number in every.most_common(most))
