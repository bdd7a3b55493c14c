"""Events in the form of the details panel."""

from __future__ import annotations

from engine.model.records import TaskEvent
from gui.engine_link.task_events import EventPart, event_row
from tests.gui.task_views import NOW


def part(*events: TaskEvent, older: bool = False) -> EventPart:
    return EventPart(tuple(map(event_row, events)), older=older)


def progress(first: int, last: int) -> EventPart:
    events = tuple(
        TaskEvent(NOW + n, "progress", {"unitsDone": n, "unitsTotal": 500, "message": f"page {n}"})
        for n in range(first, last + 1)
    )
    return part(*events)


def waits(host: str, seconds: float, reason: str, at: float) -> TaskEvent:
    told = {"host": host, "seconds": seconds, "reason": reason}
    return TaskEvent(at, "log", {"phase": "wait", "note": "Waiting", **told})


def at_once(number: int, before: int, reason: str, at: float) -> TaskEvent:
    told = {"number": number, "before": before, "reason": reason}
    return TaskEvent(at, "log", {"phase": "concurrency", "note": "Pages at once", **told})


def refused(place: str, reason: str, at: float = NOW) -> TaskEvent:
    data = {"phase": "egress", "note": f"Refused {place}: {reason}"}
    return TaskEvent(at, "log", data | {"place": place, "reason": reason})
