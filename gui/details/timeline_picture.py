"""Precomputed layout of the Timeline, built in a thread for up to 20,000 spans. No Qt."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from engine.model.records import UnitTime
from gui.details.timeline_spans import Scale, Span, gaps, lanes, spans_of
from gui.engine_link.event_rows import EventRow

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
