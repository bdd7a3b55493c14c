"""Spans of a task, from its events and its units' own durations: their table and their layout.

The layout is precomputed in a thread for up to 20,000 spans, which uses no Qt.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec
from PySide6.QtCore import QAbstractTableModel, QObject, Qt
from PySide6.QtWidgets import QApplication

from engine.model.display import display
from engine.model.records import UnitTime
from engine.text.words import NONE, clock, took
from gui.engine_link.task_events import EventRow, kind_name
from gui.style.tables import ALIGNMENT, COLOUR, DISPLAY, ROOT, SPOKEN, TOOL_TIP, AnyIndex
from gui.style.theme import plain_tip, tone

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
        if not row.ts or (own and row.is_progress):
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
    elif row.is_progress:
        unit = took.get(_address(row.unit))
        known = unit is not None
        start = row.ts - unit.took_ms if unit is not None else (last or row.ts)
        exact = known or start == row.ts
        failed = row.tone == "bad" or (unit is not None and unit.failed)
        tone = "bad" if failed else "running"
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


_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
BEGAN, WHAT, TEXT, TOOK, BAR = range(5)


def duration(ms: float) -> str:
    """Format `240 ms`, `1.3 s`, `2 min 05 s`; "" for 0."""
    return took(ms) if ms > 0 else ""


class TimelineModel(QAbstractTableModel):
    """Spans in the given order."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._spans: list[Span] = []
        self._titles = (
            self.tr("Began"),
            self.tr("Kind"),
            self.tr("What happened"),
            self.tr("Duration"),
            self.tr("When"),
        )

    def show_spans(self, spans: Sequence[Span]) -> None:
        """Show exactly these spans; spans after the known ones are appended without a reset.

        The first and the last known span are compared by identity.
        """
        known, rows = len(self._spans), list(spans)
        goes_on = 0 < known <= len(rows) and rows[known - 1] is self._spans[-1]
        if goes_on and rows[0] is self._spans[0]:
            if len(rows) > known:
                self.beginInsertRows(ROOT, known, len(rows) - 1)
                self._spans = rows
                self.endInsertRows()
            return
        self.beginResetModel()
        self._spans = rows
        self.endResetModel()

    def span_at(self, row: int) -> Span:
        return self._spans[row]

    def row_at(self, ts_ms: float) -> int:
        """Return the first row that ends at or after this time."""
        for row, span in enumerate(self._spans):
            if span.end >= ts_ms:
                return row
        return max(0, len(self._spans) - 1)

    def rowCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self._spans)

    def columnCount(self, parent: AnyIndex = ROOT) -> int:
        return 0 if parent.isValid() else len(self._titles)

    def data(self, index: AnyIndex, role: int = DISPLAY) -> Any:
        if not index.isValid():
            return None
        span, column = self._spans[index.row()], index.column()
        if role == DISPLAY:
            return self._text(span, column)
        if role == SPOKEN:
            return self._spoken(span)
        if role == TOOL_TIP:
            return plain_tip(span.text) if column == TEXT else None
        if role == ALIGNMENT:
            return _RIGHT if column == TOOK else None
        if role == COLOUR and (span.tone == IDLE or (column == WHAT and span.tone)):
            return tone("muted" if span.tone == IDLE else span.tone, QApplication.palette())
        return None

    def _text(self, span: Span, column: int) -> str:
        if column == BEGAN:
            return f"{clock(span.start, span.start)}.{int(span.start % 1000):03d}"
        if column == WHAT:
            return span.name
        if column == TEXT:
            return span.text
        if column == TOOK:
            said = duration(span.took_ms)
            return said if span.exact or not said else f"≤ {said}"
        return ""

    def _spoken(self, span: Span) -> str:
        parts = (span.name, span.text, self._text(span, TOOK) or NONE, self._text(span, BEGAN))
        return ", ".join(part for part in parts if part)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = DISPLAY) -> Any:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(self._titles):
            return None
        if role == ALIGNMENT:
            return _RIGHT if section == TOOK else int(Qt.AlignmentFlag.AlignLeft)
        return self._titles[section] if role == DISPLAY else None


LANES = 4
IDLE = "idle"  # tone of an idle span
# Least duration of a folded gap, in ms and as a share of the whole.
IDLE_MS, IDLE_SHARE = 5000, 0.03
_start = attrgetter("start")


@dataclass(frozen=True, slots=True)
class Drawn:
    """Start and end of each span on a scale."""

    scale: Scale
    starts: list[float]
    ends: list[float]


@dataclass(frozen=True, slots=True)
class TimePicture:
    """Layout of a timeline: `rows` are spans and idle gaps, `longest` the spans by length."""

    spans: list[Span]
    rows: list[Span]
    longest: list[Span]
    lanes: list[int]
    idle: list[tuple[float, float]]
    end: float
    folded: Drawn
    plain: Drawn
    lasting: float  # longest span, ms

    @property
    def start(self) -> float:
        return self.spans[0].start

    def between(self, span: tuple[float, float]) -> list[Span]:
        """Return the spans that ran in this range, in order, without idle gaps."""
        first = bisect_left(self.spans, span[0] - self.lasting, key=_start)
        last = bisect_right(self.spans, span[1], key=_start)
        return [one for one in self.spans[first:last] if one.end >= span[0]]


def picture_of(
    rows: Iterable[EventRow], units: Sequence[UnitTime], before: TimePicture | None, idle_word: str
) -> TimePicture | None:
    """Build the layout of these events; `before` if nothing changed, None without spans.

    Known spans stay the same objects, so that a table is not reset. Slow.
    """
    spans = spans_of(rows, units)
    if not spans:
        return None
    if before is not None:
        same = _equal_prefix(before.spans, spans)
        if same == len(spans) == len(before.spans):
            return before
        spans[:same] = before.spans[:same]
    end = max(span.end for span in spans)
    idle = gaps(spans, max(IDLE_MS, (end - spans[0].start) * IDLE_SHARE))
    with_idle = [*spans, *(Span(a, b, idle_word, "", IDLE) for a, b in idle)]
    with_idle.sort(key=lambda one: (one.start, one.end))
    return TimePicture(
        spans=spans,
        rows=with_idle,
        longest=sorted(spans, key=lambda span: -span.took_ms),
        lanes=lanes(spans, LANES),
        idle=idle,
        end=end,
        folded=_drawn(spans, Scale(spans[0].start, end, idle)),
        plain=_drawn(spans, Scale(spans[0].start, end, ())),
        lasting=max(span.took_ms for span in spans),
    )


def _equal_prefix(old: Sequence[Span], new: Sequence[Span]) -> int:
    """Return how many spans at the start are equal."""
    pairs = zip(old, new, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))


def _drawn(spans: Sequence[Span], scale: Scale) -> Drawn:
    starts = [scale.length(span.start) for span in spans]
    return Drawn(scale, starts, [scale.length(span.end) for span in spans])
