"""Spans of a task, from its events and its units' own durations. No Qt."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from engine.model.display import display
from engine.model.records import UnitTime
from gui.engine_link.event_rows import EventRow, kind_name

MOST = 20_000  # spans shown; older ones are omitted
_CHARS = 200  # of untrusted text
_STEPS = frozenset({"progress", "tool_call"})


class Span(msgspec.Struct, frozen=True, gc=False):
    """Span from `start` to `end` (ms since 1970, equal for a point in time).

    `exact` is False if only the end is known, and the start is assumed at the end of the span
    before. `place` is the event's byte position, -1 for none; `unit` the unit that it ended.
    """

    start: float
    end: float
    name: str
    text: str
    tone: str = ""
    exact: bool = True
    place: int = -1
    unit: str = ""

    @property
    def took_ms(self) -> float:
        return self.end - self.start


def spans_of(rows: Iterable[EventRow], units: Sequence[UnitTime]) -> list[Span]:
    """Return the newest `MOST` spans by start; events without a time are omitted.

    A page's duration is its own, counted back from the event of its end; a command records both
    times itself, so its event is ignored.
    """
    own = [unit for unit in units if unit.began is not None]
    took = {unit.label: unit for unit in units if unit.began is None}
    found = [_of_command(unit) for unit in own]
    last = 0.0
    for row in rows:
        if not row.ts or (own and row.kind == "progress"):
            continue
        found.append(_of_event(row, took, last))
        if row.kind in _STEPS or row.kind == "started":
            last = max(last, row.ts)
    found.sort(key=lambda span: (span.start, span.end))
    return found[-MOST:]


def _of_command(unit: UnitTime) -> Span:
    began = unit.began or 0.0
    tone = "bad" if unit.failed else "running"
    name, about = display(unit.label, _CHARS), display(unit.about, _CHARS)
    return Span(began, began + unit.took_ms, name, about, tone, unit=unit.label)


def _of_event(row: EventRow, took: Mapping[str, UnitTime], last: float) -> Span:
    start, exact, tone = row.ts, True, row.tone
    if row.kind == "tool_call" and row.took_ms is not None:
        start = row.ts - row.took_ms
    elif row.kind == "progress":
        unit = took.get(_address(row.unit))
        known = unit is not None
        start = row.ts - unit.took_ms if unit is not None else (last or row.ts)
        exact = known or start == row.ts
        tone = "bad" if unit is not None and unit.failed else "running"
    if row.kind in _STEPS and not tone:
        tone = "running"
    start = min(start, row.ts)
    name = kind_name(row.kind)
    return Span(start, row.ts, name, row.text, tone, exact, row.place, _address(row.unit))


def _address(unit: str) -> str:
    """Return the unit's name; the event of a failed page adds the reason after it."""
    return unit.partition(": ")[0]


def gaps(spans: Sequence[Span], least_ms: float) -> list[tuple[float, float]]:
    """Return the idle gaps of at least `least_ms`, in order."""
    found: list[tuple[float, float]] = []
    until = spans[0].end if spans else 0.0
    for span in spans:
        if span.start - until >= least_ms:
            found.append((until, span.start))
        until = max(until, span.end)
    return found


class Scale:
    """Monotonic map of times to lengths, with idle gaps shortened, and back.

    Busy time is proportional; each folded gap takes at most the share `folded` of its length.
    """

    def __init__(
        self, start: float, end: float, idle: Sequence[tuple[float, float]], folded: float = 0.02
    ) -> None:
        busy = (end - start) - sum(b - a for a, b in idle)
        short = max(1.0, busy * folded)
        self.idle = list(idle)
        self._times, self._lengths = [start], [0.0]
        for a, b in idle:
            self._add(a, 1.0)
            self._times.append(b)
            self._lengths.append(self._lengths[-1] + min(short, b - a))
        self._add(max(end, self._times[-1] + 1), 1.0)

    def _add(self, time: float, grow: float) -> None:
        self._lengths.append(self._lengths[-1] + (time - self._times[-1]) * grow)
        self._times.append(time)

    @property
    def whole(self) -> float:
        """The total length."""
        return self._lengths[-1]

    def length(self, ts_ms: float) -> float:
        """Return the position of a time, between 0 and `whole`."""
        return _between(ts_ms, self._times, self._lengths)

    def moment(self, length: float) -> float:
        """Return the time at this position."""
        return _between(length, self._lengths, self._times)


def _between(value: float, given: Sequence[float], wanted: Sequence[float]) -> float:
    if value <= given[0]:
        return wanted[0]
    if value >= given[-1]:
        return wanted[-1]
    at = bisect_right(given, value) - 1
    wide = given[at + 1] - given[at]
    share = (value - given[at]) / wide if wide else 0.0
    return wanted[at] + share * (wanted[at + 1] - wanted[at])


def lanes(spans: Sequence[Span], most: int) -> list[int]:
    """Assign each span a lane, so that concurrent spans do not overlap."""
    free = [float("-inf")] * most
    found = []
    for span in spans:
        at = next((lane for lane, until in enumerate(free) if until <= span.start), None)
        lane = at if at is not None else free.index(min(free))
        free[lane] = max(free[lane], span.end)
        found.append(lane)
    return found
