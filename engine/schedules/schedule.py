"""One schedule, and what its rule demands at an instant.

Pure: `decide` gets the schedule as it is on disk, the time, and whether the last run is still
going. Every occurrence up to `after` has been decided. `after` only grows, so that a clock that is
set back starts no occurrence again.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, Literal

import msgspec

from engine.schedules.rules import Rule, latest, next_after

KEPT_SKIPS: Final = 20
USUAL_GRACE_MINUTES: Final = 10
MINUTE_MS: Final = 60_000

Missed = Literal["once", "skip"]
Why = Literal["missed", "running"]


class StoredRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A start request as a JSON document, in which nothing was redacted.

    `route` and `client` are those of the program that made the schedule; its runs reach what this
    route may reach.
    """

    document: dict[str, Any]
    route: str | None = None
    client: str | None = None


class Claim(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last run: claimed first, then created with exactly this id.

    `due_at` is None for a run that a user started between two occurrences. While `created` is False
    any program may create the task; its folder's name decides who was first.
    """

    task_id: str
    claimed_at: int
    due_at: int | None = None
    parent: str | None = None
    created: bool = False


class Skip(msgspec.Struct, frozen=True, omit_defaults=True):
    """Occurrences that did not run, the latest at `due_at`: they were `missed`, or the run before
    (`task_id`) was still `running`."""

    due_at: int
    why: Why
    number: int = 1
    at: int = 0
    task_id: str | None = None


class Refusal(msgspec.Struct, frozen=True):
    """Why an occurrence could not start. It stays due until a program can start it."""

    due_at: int
    at: int
    code: str
    message: str


class Schedule(msgspec.Struct, frozen=True, omit_defaults=True):
    """One schedule as stored. Times in ms since 1970.

    With `missed` "once", one run replaces all that were missed; with "skip" an occurrence runs only
    if it is at most `grace_minutes` late. `notify` requests a notification of a run with changes.
    """

    schedule_id: str
    request: StoredRequest
    rule: Rule
    name: str = ""
    missed: Missed = "once"
    grace_minutes: int = USUAL_GRACE_MINUTES
    notify: bool = False
    paused: bool = False
    created_at: int = 0
    after: int = 0
    claim: Claim | None = None
    skips: tuple[Skip, ...] = ()
    refusal: Refusal | None = None

    @property
    def kind(self) -> str:
        """The kind of the task that it starts; "" where the file does not say."""
        kind = self.request.document.get("kind")
        return kind if isinstance(kind, str) else ""

    def next_at(self, now_ms: int) -> int | None:
        """The next occurrence; None while the schedule is paused."""
        return None if self.paused else next_after(self.rule, max(self.after, now_ms))

    @property
    def pending(self) -> Claim | None:
        """The claim whose task has not been created, because its program died in between."""
        return self.claim if self.claim is not None and not self.claim.created else None


class Decision(msgspec.Struct, frozen=True):
    """What to do now: `claim` a run, note a `skip`, or both; then all is decided up to `after`."""

    after: int
    claim: Claim | None = None
    skip: Skip | None = None


def decide(schedule: Schedule, now_ms: int, is_going: bool) -> Decision | None:
    """Return what is due at `now_ms`; None when nothing is.

    A pending claim comes first, however late: it may have been created meanwhile. It replaces what
    else was missed.
    """
    due = None if schedule.paused else latest(schedule.rule, schedule.after, now_ms)
    if schedule.pending is not None:
        skip = None if due is None else Skip(due.at_ms, "missed", due.number, now_ms)
        return Decision(due.at_ms if due else schedule.after, schedule.pending, skip)
    if due is None:
        return None
    before = schedule.claim.task_id if schedule.claim is not None else None
    if is_going:
        return Decision(due.at_ms, skip=Skip(due.at_ms, "running", due.number, now_ms, before))
    late = now_ms - due.at_ms > schedule.grace_minutes * MINUTE_MS
    if late and schedule.missed == "skip":
        return Decision(due.at_ms, skip=Skip(due.at_ms, "missed", due.number, now_ms))
    task_id = occurrence_id(schedule.schedule_id, due.at_ms)
    claim = Claim(task_id, now_ms, due.at_ms, parent=before)
    earlier = Skip(due.at_ms, "missed", due.number - 1, now_ms) if due.number > 1 else None
    return Decision(due.at_ms, claim, earlier)


def applied(schedule: Schedule, decision: Decision) -> Schedule:
    """Return the schedule after a decision."""
    skips = (*schedule.skips, *filter(None, [decision.skip]))[-KEPT_SKIPS:]
    claim = decision.claim or schedule.claim
    refusal = None if decision.claim is not None or decision.skip is not None else schedule.refusal
    return msgspec.structs.replace(
        schedule,
        after=max(schedule.after, decision.after),
        claim=claim,
        skips=skips,
        refusal=refusal,
    )


def occurrence_id(schedule_id: str, at_ms: int, extra: str = "") -> str:
    """Return the task id of an occurrence: the same in every program."""
    text = f"schedule\0{schedule_id}\0{at_ms}\0{extra}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
