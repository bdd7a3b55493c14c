"""What a task did when, and for how long, out of its events and its units' own times. No Qt."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from engine.model.display import display
from engine.model.records import UnitTime
from gui.engine_link.event_rows import EventRow, kind_name

MOST = 20_000  # spans that are drawn and listed; older ones are left out
_CHARS = 200  # of a stranger's words
_STEPS = frozenset({"progress", "tool_call"})


class Span(msgspec.Struct, frozen=True, gc=False):
    """From `start` to `end` (ms since 1970, the same for what only happened).

    `exact` is False where only the end is told and the start is taken to be the end of what came
    before. `place` is the event's in its file, -1 for none; `unit` the unit that it ended.
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
    """The newest `MOST` spans by their beginning; events without a time have no place there.

    A page's time is its own, counted back from the event that tells of its end; a command
    tells both ends itself, and its event says nothing new.
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
    """The unit's own name: a failed page's event says why behind it."""
    return unit.partition(": ")[0]


def gaps(spans: Sequence[Span], least_ms: float) -> list[tuple[float, float]]:
    """From when until when nothing was under way, for `least_ms` and longer; in order."""
    found: list[tuple[float, float]] = []
    until = spans[0].end if spans else 0.0
    for span in spans:
        if span.start - until >= least_ms:
            found.append((until, span.start))
        until = max(until, span.end)
    return found


class Scale:
    """Times as lengths, with what is idle made short: `length` grows with time, and back.

    Everything between two gaps keeps its proportions; each folded gap takes `folded` of the
    length that the rest has.
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
        """The length of all of it."""
        return self._lengths[-1]

    def length(self, ts_ms: float) -> float:
        """How far along this moment is; never outside of 0 and `whole`."""
        return _between(ts_ms, self._times, self._lengths)

    def moment(self, length: float) -> float:
        """The moment that is so far along."""
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
    """The lane of each span, so that what ran side by side stands below each other."""
    free = [float("-inf")] * most
    found = []
    for span in spans:
        at = next((lane for lane, until in enumerate(free) if until <= span.start), None)
        lane = at if at is not None else free.index(min(free))
        free[lane] = max(free[lane], span.end)
        found.append(lane)
    return found
