"""Events as the table of events shows them. Knows no Qt."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from engine import words
from engine.attention import moment
from engine.display import display
from engine.messages import ENGLISH
from engine.records import TaskEvent

_TEXT_CHARS = 600
TONES = {
    "failed": "bad",
    "completed": "good",
    "cancelled": "cancelled",
    "cancel_requested": "warning",
    "guard": "warning",
    "started": "running",
}


class EventRow(msgspec.Struct, frozen=True, gc=False):
    """One event, ready to be shown."""

    at: str
    kind: str
    name: str
    text: str
    tone: str


def event_row(event: TaskEvent) -> EventRow:
    """What one line of events.jsonl says, in words; unknown kinds and fields are shown too."""
    return EventRow(
        at=_clock(event.ts),
        kind=event.kind,
        name=kind_name(event.kind),
        text=display(_text(event), _TEXT_CHARS),
        tone=TONES.get(event.kind, ""),
    )


def kind_name(kind: str) -> str:
    """A kind of event in words; one that we do not know as it stands in the file."""
    message = f"event.{kind}"
    return words.say(message) if message in ENGLISH else display(kind, 40)


def _clock(ts: object) -> str:
    at = moment(ts)
    if at is None:
        return words.NONE
    return f"{words.clock(at, at)}.{int(at % 1000):03d}"


def _text(event: TaskEvent) -> str:
    data = dict(event.data or {})
    if event.kind == "progress":
        return _progress(data)
    if event.kind == "log":
        phase, note = data.pop("phase", ""), data.pop("note", "")
        said = ": ".join(str(part) for part in (phase, note) if part)
        return _join(said, data)
    if event.kind == "failed" and isinstance(data.get("error"), dict):
        error = data.pop("error")
        return _join(str(error.get("message", "")), {**data, "code": error.get("code")})
    return _join("", data)


def _progress(data: dict[str, Any]) -> str:
    done, total = data.pop("unitsDone", None), data.pop("unitsTotal", None)
    message = data.pop("message", "")
    said = "" if done is None else str(done) if total is None else f"{done}/{total}"
    return _join("  ".join(str(part) for part in (said, message) if part), data)


def _join(said: str, rest: dict[str, Any]) -> str:
    kept = {key: value for key, value in rest.items() if value is not None}
    if not kept:
        return said
    if said == "" and len(kept) == 1:
        (only,) = kept.values()
        if isinstance(only, str):
            return only
    more = ", ".join(f"{key} {_value(value)}" for key, value in kept.items())
    return f"{said} ({more})" if said else more


def _value(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
