"""Schedules on disk: `<ledger>/.schedules/<id>.json`, one file each, changed under its lock.

The folder lies in the ledger whose tasks they start, under a name that no listing takes for a task.
A run is claimed in the file before its task exists, together with the task's id; see `Claim`. The
lock is held for that change only.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from engine.ledger.record_store import RecordNotFound, RecordStore, RecordUnreadable
from engine.model.errors import EngineError
from engine.model.records import SCHEDULES_FOLDER, Unreadable
from engine.schedules.schedule import (
    Claim,
    Decision,
    Refusal,
    Schedule,
    applied,
    decide,
    occurrence_id,
)

NOUN: Final = "schedule"


class ScheduleRunGoing(EngineError):
    """A run was requested while the run before it has not ended."""

    code = "schedule_run_going"
    title = "The last run has not ended"
    sentence = "Task {task_id} of this schedule has not ended."
    advice_text = "Wait for its end, or cancel it first."


class ScheduleStore:
    """Schedules of one ledger. Thread-safe; every call may wait for a lock or a disk.

    Calls with an id may raise NotAnId, RecordNotFound and RecordUnreadable, those that write also
    LockTimeout, LedgerReadOnly and LedgerWriteFailed. `is_going` returns whether a task of this id
    is live and has an owner.
    """

    def __init__(self, root: Path) -> None:
        self._records = RecordStore(root / SCHEDULES_FOLDER, NOUN)

    @property
    def folder(self) -> Path:
        return self._records.folder

    def all(self) -> list[Schedule | Unreadable]:
        """Return all schedules, oldest first, then the unreadable ones."""
        found: list[Schedule] = []
        broken: list[Schedule | Unreadable] = []
        for schedule_id in self._records.ids():
            try:
                found.append(self.read(schedule_id))
            except RecordNotFound:
                continue  # deleted since
            except RecordUnreadable as error:
                broken.append(Unreadable(schedule_id, str(error), str(error.fields["path"])))
        return [*sorted(found, key=lambda one: (one.created_at, one.schedule_id)), *broken]

    def read(self, schedule_id: str) -> Schedule:
        """Read one schedule."""
        return self._decoded(schedule_id, self._records.read(schedule_id))

    def create(self, schedule: Schedule) -> Schedule:
        """Write a new schedule under a new id; it is on disk on return."""
        made = msgspec.structs.replace(schedule, schedule_id=secrets.token_hex(8))
        self._records.create(made.schedule_id, msgspec.to_builtins(made))
        return made

    def change(self, schedule_id: str, change: Callable[[Schedule], Schedule]) -> Schedule:
        """Replace a schedule by what `change` makes of it, under its lock."""

        def rewrite(raw: dict[str, Any]) -> None:
            before = self._decoded(schedule_id, raw)
            after = change(before)
            if after == before:
                return
            for name in Schedule.__struct_fields__:
                raw.pop(name, None)
            raw.update(msgspec.to_builtins(after))

        raw = self._records.change(schedule_id, rewrite, durable=True)
        return self._decoded(schedule_id, raw)

    def remove(self, schedule_id: str) -> None:
        """Delete a schedule; its tasks stay."""
        self._records.read(schedule_id)
        self._records.remove(schedule_id)

    def claim_due(
        self, schedule_id: str, now_ms: int, is_going: Callable[[str], bool]
    ) -> tuple[Schedule, Decision | None]:
        """Decide what is due, and claim it: the claim is on disk on return."""
        made: list[Decision] = []

        def claim(schedule: Schedule) -> Schedule:
            last = schedule.claim
            going = last is not None and last.created and is_going(last.task_id)
            decision = decide(schedule, now_ms, going)
            if decision is None:
                return schedule
            made.append(decision)
            return applied(schedule, decision)

        found = self.change(schedule_id, claim)
        return found, made[-1] if made else None

    def claim_now(
        self, schedule_id: str, now_ms: int, is_going: Callable[[str], bool]
    ) -> tuple[Schedule, Claim]:
        """Claim a run between two occurrences; a pending claim is returned instead.

        Raises:
            ScheduleRunGoing: the last run has not ended.
        """

        def claim(schedule: Schedule) -> Schedule:
            last = schedule.claim
            if schedule.pending is not None:
                return schedule
            if last is not None and is_going(last.task_id):
                raise ScheduleRunGoing(task_id=last.task_id)
            task_id = occurrence_id(schedule_id, now_ms, secrets.token_hex(8))
            made = Claim(task_id, now_ms, parent=last.task_id if last is not None else None)
            return msgspec.structs.replace(schedule, claim=made, refusal=None)

        found = self.change(schedule_id, claim)
        assert found.claim is not None
        return found, found.claim

    def confirm(self, schedule_id: str, task_id: str) -> None:
        """Record that the task of a claim exists; does nothing for another claim's task."""

        def note(schedule: Schedule) -> Schedule:
            claim = schedule.claim
            if claim is None or claim.task_id != task_id or claim.created:
                return schedule
            made = msgspec.structs.replace(claim, created=True)
            return msgspec.structs.replace(schedule, claim=made)

        try:
            self.change(schedule_id, note)
        except RecordNotFound:
            return  # deleted since; its task stays

    def refuse(self, schedule_id: str, refusal: Refusal) -> Schedule:
        """Record why what is due could not start; the same reason is written once."""

        def note(schedule: Schedule) -> Schedule:
            known = schedule.refusal
            if known is not None and msgspec.structs.replace(known, at=refusal.at) == refusal:
                return schedule
            return msgspec.structs.replace(schedule, refusal=refusal)

        return self.change(schedule_id, note)

    def _decoded(self, schedule_id: str, raw: dict[str, Any]) -> Schedule:
        try:
            return msgspec.convert({**raw, "schedule_id": schedule_id}, Schedule)
        except msgspec.ValidationError as error:
            path = str(self.folder / f"{schedule_id}.json")
            raise RecordUnreadable(
                noun=NOUN, id=schedule_id, reason=str(error), path=path
            ) from error
