"""Open a home after a death, as the next program does, and list broken promises."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from engine.model.errors import EngineError
from engine.model.records import ENVELOPE, LIVE, TaskRecord, Unreadable
from tests.hard.figures import BESIDE_OTHERS
from tests.hard.place import Place
from tests.hard.scenes import BY_NAME

RECOVERY_S = 2.0  # the long rig holds it; several stages at once share the machine
UNPROVED_S = 1.1  # a lock whose holder died before it could note its name is dead after a second
ENDINGS = ("completed", "failed", "cancelled")


def judged(home: Path, scene: str, said: Sequence[str], ids: dict[str, str]) -> dict[str, Any]:
    """What is wrong, as sentences, and how long the recovery took (s)."""
    place = Place(home)
    place.ids = ids
    began = time.monotonic()
    place.recover()
    took_s = time.monotonic() - began
    wrong = [f"recovery took {took_s:.1f} s"] if took_s > RECOVERY_S * BESIDE_OTHERS else []
    try:
        wrong += lost(place, scene, said)
        for entry in place.ledger.list(limit=None):
            wrong += half_states(place, entry)
        wrong += unreadable(home)
        wrong += beside(place)
        if any(".lock" in path for path in left(home)):
            time.sleep(UNPROVED_S)  # the moment itself: that long it could be a peer's
            place.tidy()
    finally:
        place.close()
    wrong += [f"left behind: {path}" for path in left(home)]
    return {"wrong": wrong, "recovery_s": took_s}


def lost(place: Place, scene: str, said: Sequence[str]) -> Iterator[str]:
    """What was acknowledged, and is not kept."""
    for step in BY_NAME[scene].steps:
        if step.name not in said:
            continue
        try:
            if not step.kept(place):
                yield f"{step.name} was acknowledged and is lost"
        except (EngineError, OSError, KeyError, ValueError) as error:
            yield f"{step.name} was acknowledged: {type(error).__name__}: {error}"


def half_states(place: Place, entry: TaskRecord | Unreadable) -> Iterator[str]:
    """A task after a recovery has ended, with all that belongs to its end, or is an envelope."""
    if isinstance(entry, Unreadable):
        yield f"{entry.task_id} is unreadable: {entry.reason}"
        return
    if entry.status in LIVE and entry.kind != ENVELOPE:
        yield f"{entry.task_id} is {entry.status}, and its owner is dead"
    raw = place.ledger.read_raw(entry.task_id)
    if place.ledger.has_result(entry.task_id):
        with place.ledger.open_result(entry.task_id) as file:
            json.load(file)
    if ("result_path" in raw) != (entry.status == "COMPLETED" and entry.kind != ENVELOPE):
        yield f"{entry.task_id} is {entry.status}; result_path: {raw.get('result_path')}"
    if (
        entry.kind == "commands"
        and place.ledger.read_document(entry.task_id, "commands.json") is None
    ):
        yield f"{entry.task_id} has no document"
    ends = [one.kind for one in place.ledger.read_events(entry.task_id).events]
    ends = [kind for kind in ends if kind in ENDINGS]
    if len(ends) > 1 or (ends and ends[0].upper() != entry.status):
        yield f"{entry.task_id} is {entry.status}; its events say {ends}"


def unreadable(home: Path) -> Iterator[str]:
    """Every file parses; of a line file only the last line may be torn."""
    for path in home.rglob("*.json"):
        try:
            json.loads(path.read_bytes())
        except ValueError as error:
            yield f"{path.relative_to(home)}: {error}"
    for path in home.rglob("*.jsonl"):
        for line in path.read_bytes().split(b"\n")[:-1]:
            try:
                json.loads(line)
            except ValueError:
                yield f"{path.relative_to(home)}: a torn line: {line[:60]!r}"


def beside(place: Place) -> Iterator[str]:
    """Contracts, task runs and lifecycle records can be read, and runs stand where tasks do."""
    for view in (*place.goals.contracts.list(), *place.goals.runs.list(limit=None)):
        if isinstance(view, Unreadable):
            yield f"{view.task_id} is unreadable: {view.reason}"
    for run_id in place.runs._kept.record_store.ids():
        run = place.runs.get_run(run_id)
        if run is None:
            yield f"run {run_id} is not there"
    for entry in place.ledger.list(limit=None):
        if isinstance(entry, TaskRecord) and entry.is_terminal and entry.engine is not None:
            run_id = entry.engine.run_id or ""
            run = place.runs.get_run(run_id) if run_id else None
            if run is not None and not run.is_terminal:
                yield f"run {run_id} is {run.status}, its task {entry.status}"


def left(home: Path) -> Iterator[str]:
    """Temp files, lock directories, leases of the dead, open marks, half contracts."""
    for path in sorted(home.rglob("*")):
        name, place = path.name, path.relative_to(home)
        if name.endswith(".tmp") or name.startswith(".lock.lock") or name == "meta.lock.lock":
            yield str(place)
        if path.parent.name == ".runners":
            yield str(place)
        if path.parent.name == "open" and len(place.parts) == 3:
            yield str(place)
        if name.endswith(".items.jsonl") and not path.with_name(f"{name[:16]}.json").exists():
            yield str(place)
