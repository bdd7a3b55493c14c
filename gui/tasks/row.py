"""The row of one task in the table, its shared traits and its query subject, without Qt.

A `Row` holds values and no texts: a column makes its text when a cell is painted, so that thousands
of invisible rows cost nothing, and sorting never compares "2 min".
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from engine.model.display import display
from engine.model.kind_traits import traits_of
from engine.model.records import Status, TaskRecord, TaskView, Units, Unreadable
from engine.model.status import (
    STALL_MIN_MS,
    Facet,
    Pace,
    Reason,
    Standing,
    facets,
    moment,
    stalls_at,
    standing,
    state_words,
    updated_at,
)
from engine.query import ADDRESSES, Subject, haystack, host_of
from engine.query.attention_reasons import reasons, unseen
from engine.text import words
from engine.text.messages import retold
from gui.tasks.budget_gauge import fullest

_ALSO: Final = ADDRESSES[1]  # The second address of a task, which few kinds have
_MOST: Final = 20_000  # Most traits cached; beyond that equal tasks may hold separate objects


class Traits(msgspec.Struct, frozen=True, eq=False, gc=False):
    """State, kind, host, budget and ledger, shared by all tasks with equal values."""

    facets: int = 0
    status: str = ""
    kind: str = ""
    host: str = ""
    hosts: frozenset[str] = frozenset()
    budget: str = ""
    ledger: str = ""


NONE: Final = Traits()


def traits(view: TaskView, facets: int) -> Traits:
    """Return the traits of `view` with the facet mask `facets`."""
    entry = view.entry
    if not isinstance(entry, TaskRecord):
        return _traits(facets, "", "", "", frozenset(), "", view.ledger)
    host = host_of(view)
    hosts = Subject(view, 0).hosts if _ALSO in entry.args_summary else _hosts(host)
    budget = entry.budget_status or ""
    return _traits(facets, entry.status, entry.kind, host, hosts, budget, view.ledger)


_traits = lru_cache(_MOST)(Traits)


@lru_cache(4096)
def _hosts(host: str) -> frozenset[str]:
    bare, _, port = host.rpartition(":")
    return frozenset({host, bare} if port.isdecimal() else {host}) - {""}


FACET_BIT = {facet: 1 << number for number, facet in enumerate(Facet)}
# Highest progress shown for a running task, whatever its counters say.
RUNNING_CAP = 0.99
_CALM = {reason: number for number, reason in enumerate(Reason)}
_RANK = {state: number for number, state in enumerate(Standing)}


_NO_RECORD = TaskRecord(task_id="")


class Row(msgspec.Struct, frozen=True, gc=False):
    """The values of one task in the table, with times in ms since 1970 and `rate` per second.

    `needs` omits acknowledged reasons; `quiet` says that all reasons were acknowledged. `worst` is
    the share of the fullest budget, 1 at its limit. `started_at` and `ended_at` are copied from the
    record, even where they are no valid times. `calm`, `rank`, `folded_name` and `share` are sort
    values: reading a field is six times faster than calling a function of the row. Each field takes
    0.8 MB for 100,000 tasks, so values in `about` and `view` are not repeated.
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
        """The completed share from 0 to 1, or None while the total is unknown."""
        return None if self.share is None or self.share < 0 else self.share


def make_row(
    view: TaskView, pace: Pace | None, now_ms: float, acknowledged: Collection[str] = ()
) -> Row:
    """Build the row of `view`, with the speed from `pace` for a running task.

    `acknowledged` lists the acknowledged reasons, as `engine.query.attention_reasons.seen` returns
    them.
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
        "folded_name": name if folded == name else folded,  # Share one string when both are equal
        "kind": _kind(record.kind),
        "haystack": haystack(view),
    }


def _times(view: TaskView, record: TaskRecord, stall_after_ms: float) -> dict[str, Any]:
    created = moment(record.created_at)
    return {
        "live": record.is_live,
        # Sharing the integers of the record saves 64 bytes but makes filters by time 20 % slower.
        "created_at": created,
        "updated_at": updated_at(view),
        "stalls_at": stalls_at(view, stall_after_ms),
        "started_at": record.started_at,
        "ended_at": record.ended_at,
    }


@lru_cache(512)
def _kind(kind: str) -> str:
    """Return one shared text for all tasks of a kind."""
    return display(kind, 60)


def _with_units(row: Row, units: Units, pace: Pace | None, **more: Any) -> Row:
    """Return `row` with its progress.

    A stalled or agent-driven task has no rate, and a cancelling task has no estimated end.
    """
    if pace is None:
        share = _share(units, row.live)
        return replace(row, share=share, **more)
    running = row.standing in (Standing.RUNNING, Standing.CANCELLING)
    moves = running and not row.stalled and not traits_of(row.kind).agent_driven
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
    """Return 0 to 1 with a known total, else a negative value that grows with the units done."""
    if not units.total or units.total < 0:
        return -1 / (max(0, units.done) + 1)
    return max(0.0, min(RUNNING_CAP if live else 1.0, units.done / units.total))


def moved_on(row: Row, view: TaskView, pace: Pace, now_ms: float) -> Row | None:
    """Return `row` with newer progress of the same record, or None after any other change.

    This shortcut for frequent progress reports costs a tenth of `make_row`.
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


_NEEDY: Final = FACET_BIT[Facet.ATTENTION]


class RowSubject(Subject, frozen=True, gc=False):
    """Query subject of a row, so that queries match the values that the table shows."""

    row: Row

    def needs_attention(self, now_ms: float) -> bool:
        return bool(self.row.needs)  # The row is updated as time passes

    @property
    def haystack(self) -> str:
        return self.row.haystack

    @property
    def states(self) -> frozenset[str]:
        status = None if isinstance(self.view.entry, Unreadable) else self.row.about.status
        return _states(self.row.about.facets & ~_NEEDY, status)

    @property
    def status(self) -> str:
        return self.row.about.status.casefold()

    @property
    def hosts(self) -> frozenset[str]:
        return self.row.about.hosts


def asked(row: Row) -> RowSubject:
    return RowSubject(row.view, 0, row)


@lru_cache(maxsize=512)
def _states(mask: int, status: str | None) -> frozenset[str]:
    return state_words((facet for facet, bit in FACET_BIT.items() if mask & bit), status)
