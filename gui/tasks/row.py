"""One task as the table knows it. Knows no Qt.

A `Row` holds values, not texts: a column makes its text when a cell is painted, so that
the thousands of rows out of sight cost nothing, and sorting never compares "2 min".
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from engine.model.display import display
from engine.model.pace import STALL_MIN_MS, Pace
from engine.model.records import Status, TaskRecord, TaskView, Units, Unreadable
from engine.model.status import (
    LED,
    Facet,
    Reason,
    Standing,
    facets,
    moment,
    reasons,
    stalls_at,
    standing,
    unseen,
    updated_at,
)
from engine.query import haystack
from engine.text import words
from engine.text.catalogue import retold
from gui.tasks.budget_gauge import fullest
from gui.tasks.shared_traits import NONE, Traits, traits

FACET_BIT = {facet: 1 << number for number, facet in enumerate(Facet)}
# A running task never shows more than this, whatever it claims.
RUNNING_CAP = 0.99
_CALM = {reason: number for number, reason in enumerate(Reason)}
_RANK = {state: number for number, state in enumerate(Standing)}


_NO_RECORD = TaskRecord(task_id="")


class Row(msgspec.Struct, frozen=True, gc=False):
    """What the table knows of one task. Times are ms since 1970, `rate` is units a second.

    `needs` leaves out what was acknowledged; `quiet` says that all of it was. `worst` is the
    fullest budget, 1 at its limit; `started_at` and `ended_at` are as the record has them, be
    they times or not. `calm`, `rank`, `folded_name` and `share` are
    there to sort by: a field is read six times faster than a function of the row is called.
    Each field takes 0.8 MB for 100,000 tasks: what `about` and `view` have is asked of these.
    """

    task_id: str
    view: TaskView
    standing: Standing
    status: str
    name: str
    folded_name: str
    kind: str
    haystack: str
    needs: tuple[Reason, ...]
    calm: int
    rank: int
    live: bool
    stalled: bool = False
    quiet: bool = False
    worst: float | None = None
    rate: float | None = None
    ends_at: float | None = None
    share: float | None = None
    created_at: float | None = None
    updated_at: float | None = None
    stalls_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    about: Traits = NONE

    @property
    def host(self) -> str:
        return self.about.host

    @property
    def done(self) -> int | None:
        return None if (units := self.view.units) is None else units.done

    @property
    def total(self) -> int | None:
        return None if (units := self.view.units) is None else units.total

    @property
    def running(self) -> bool:
        return self.about.status == Status.RUNNING

    @property
    def fraction(self) -> float | None:
        """How much is done, 0 to 1; None while nobody knows the total."""
        return None if self.share is None or self.share < 0 else self.share


def make_row(
    view: TaskView, pace: Pace | None, now_ms: float, acknowledged: Collection[str] = ()
) -> Row:
    """Everything the table needs of `view`, with its speed from `pace` where it runs.

    `acknowledged` is what a person has seen of its needs: `engine.model.status.seen`.
    """
    entry = view.entry
    state = standing(view)
    after = pace.stall_after_ms if pace is not None else STALL_MIN_MS
    found = reasons(view, now_ms, after)
    needs = unseen(view, found, acknowledged) if acknowledged else found
    record = entry if type(entry) is TaskRecord else _NO_RECORD
    about = traits(view, _mask(facets(view, state, needs)))
    row = Row(
        task_id=entry.task_id,
        view=view,
        standing=state,
        needs=needs,
        calm=_CALM[needs[0]] if needs else len(_CALM) + (not found),
        rank=_RANK[state],
        stalled=Reason.STALLED in found,
        quiet=bool(found) and not needs,
        worst=fullest(record, now_ms),
        about=about,
        **_said(view, record),
        **_times(view, record, after),
    )
    return row if view.units is None else _with_units(row, view.units, pace)


def _said(view: TaskView, record: TaskRecord) -> dict[str, Any]:
    name = _full_name(view)
    folded = name.casefold()
    return {
        "status": words.status_word(view),
        "name": name,
        "folded_name": name if folded == name else folded,  # one text instead of two alike
        "kind": _kind(record.kind),
        "haystack": haystack(view),
    }


def _times(view: TaskView, record: TaskRecord, stall_after_ms: float) -> dict[str, Any]:
    created = moment(record.created_at)
    return {
        "live": record.is_live,
        # as floats of its own: to share the record's whole numbers would save 64 bytes, and every
        # filter by a time would take a fifth longer
        "created_at": created,
        "updated_at": updated_at(view),
        "stalls_at": stalls_at(view, stall_after_ms),
        "started_at": record.started_at,
        "ended_at": record.ended_at,
    }


@lru_cache(512)
def _kind(kind: str) -> str:
    """One text for all tasks of a kind."""
    return display(kind, 60)


def _with_units(row: Row, units: Units, pace: Pace | None, **more: Any) -> Row:
    """`row` with its progress; what stalls or is led by somebody has no speed of its own, and
    what stops no end to foresee."""
    if pace is None:
        share = _share(units, row.live)
        return replace(row, share=share, **more)
    running = row.standing in (Standing.RUNNING, Standing.CANCELLING)
    moves = running and not row.stalled and row.kind not in LED
    moving = pace if moves else None
    ending = moving if row.standing is Standing.RUNNING else None
    return replace(
        row,
        share=_share(units, row.live),
        rate=moving.rate if moving else None,
        ends_at=ending.ends_at(units.total) if ending else None,
        **more,
    )


def _share(units: Units, live: bool) -> float:
    """0 to 1 where the total is known. Else below 0, so that more pages still sort later."""
    if not units.total or units.total < 0:
        return -1 / (max(0, units.done) + 1)
    return max(0.0, min(RUNNING_CAP if live else 1.0, units.done / units.total))


def moved_on(row: Row, view: TaskView, pace: Pace, now_ms: float) -> Row | None:
    """`row` with newer progress of the same record; None when more than that has changed.

    The short way for the flood of progress reports: a tenth of the cost of `make_row`.
    """
    old = row.view
    same_owner = old.orphaned == view.orphaned and old.foreign == view.foreign
    same_owner = same_owner and (old.locked, old.stale) == (view.locked, view.stale)
    same_owner = same_owner and old.away == view.away
    if old.entry != view.entry or not same_owner or row.stalls_at is None or row.stalled:
        return None
    updated = updated_at(view)
    stalls = None if updated is None else updated + pace.stall_after_ms
    if view.units is None or stalls is None or now_ms >= stalls:
        return None
    return _with_units(row, view.units, pace, view=view, updated_at=updated, stalls_at=stalls)


def _full_name(view: TaskView) -> str:
    entry = view.entry
    name = words.task_name(view)
    return (
        f"{name}: {display(retold(entry.reason), 200)}" if isinstance(entry, Unreadable) else name
    )


@lru_cache(128)
def _mask(found: frozenset[Facet]) -> int:
    mask = 0
    for facet in found:
        mask |= FACET_BIT[facet]
    return mask
