"""Task views for tests of the window: short to write, real records."""

from __future__ import annotations

from typing import Any

from engine.model.records import EngineFields, ErrorInfo, TaskRecord, TaskView, Units

NOW = 1_780_000_000_000.0
SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000


def task_id(number: int) -> str:
    return f"{number:016x}"


def a_view(number: int = 1, status: str = "COMPLETED", **given: Any) -> TaskView:
    """A crawl made `age` ms ago; `done`, `total`, `quiet` (ms since its last event) as given."""
    age = given.pop("age", number * MINUTE)
    created = NOW - age
    done, total = given.pop("done", None), given.pop("total", None)
    quiet, error = given.pop("quiet", None), given.pop("error", None)
    seen = {
        key: given.pop(key) for key in ("orphaned", "foreign", "ours", "ledger") if key in given
    }
    ended = created + 5000 if status in ("COMPLETED", "FAILED", "CANCELLED") else None
    record = TaskRecord(
        task_id=task_id(number),
        kind=given.pop("kind", "crawl"),
        status=status,
        created_at=created,
        started_at=None if status == "PENDING" else created + 1,
        ended_at=given.pop("ended_at", ended),
        args_summary=given.pop("args", {"url": f"https://host{number}.example/"}),
        error=ErrorInfo(*error) if error else None,
        engine=EngineFields(
            **{key: given.pop(key) for key in ("name", "client", "route") if key in given}
        ),
        **given,
    )
    units = None if done is None else Units(done, total)
    last = None if quiet is None else NOW - quiet
    return TaskView(record, units=units, last_event_at=last, **seen)
