"""All that the Timeline shows, worked out beforehand: a thread has the time for 20,000 spans, the
window has not. No Qt."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from engine.model.records import UnitTime
from gui.details.timeline_spans import Scale, Span, gaps, lanes, spans_of
from gui.engine_link.event_rows import EventRow

LANES = 4
IDLE = "idle"  # the tone of a span in which nothing happened
IDLE_MS, IDLE_SHARE = 5000, 0.03  # what is folded lasted so long, and so much of the whole
_start = attrgetter("start")


@dataclass(frozen=True, slots=True)
class Drawn:
    """Where each span begins and ends on a scale."""

    scale: Scale
    starts: list[float]
    ends: list[float]


@dataclass(frozen=True, slots=True)
class TimePicture:
    """`rows` are the spans with what is idle between them, `longest` the spans by length."""

    spans: list[Span]
    rows: list[Span]
    longest: list[Span]
    lanes: list[int]
    idle: list[tuple[float, float]]
    end: float
    folded: Drawn
    plain: Drawn
    lasting: float  # the longest of all spans, ms

    @property
    def start(self) -> float:
        return self.spans[0].start

    def between(self, span: tuple[float, float]) -> list[Span]:
        """What was under way in that time, in order, without what was idle."""
        first = bisect_left(self.spans, span[0] - self.lasting, key=_start)
        last = bisect_right(self.spans, span[1], key=_start)
        return [one for one in self.spans[first:last] if one.end >= span[0]]


def picture_of(
    rows: Iterable[EventRow], units: Sequence[UnitTime], before: TimePicture | None, idle_word: str
) -> TimePicture | None:
    """The picture of these events; `before` itself where nothing is new, None without any span.

    What was there already stays the same object, so that a table need not begin anew. Slow.
    """
    spans = spans_of(rows, units)
    if not spans:
        return None
    if before is not None:
        same = _alike(before.spans, spans)
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


def _alike(old: Sequence[Span], new: Sequence[Span]) -> int:
    """How many of the first spans are the same."""
    pairs = zip(old, new, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))


def _drawn(spans: Sequence[Span], scale: Scale) -> Drawn:
    starts = [scale.length(span.start) for span in spans]
    return Drawn(scale, starts, [scale.length(span.end) for span in spans])
