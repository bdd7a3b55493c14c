"""The row of one task in the table, its shared traits and its query subject, without Qt.

A `Row` holds values and no texts: a column makes its text when a cell is painted, so that thousands
of invisible rows cost nothing, and sorting never compares "2 min".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec
from msgspec.structs import replace

from engine import budgets
from engine.budgets import Gauge, Level
from engine.model.display import display
from engine.model.kind_traits import traits_of
from engine.model.records import TERMINAL, Status, TaskRecord, TaskView, Units, Unreadable
from engine.model.status import (
    LAST_MS,
    STALL_MIN_MS,
    Facet,
    Pace,
    Reason,
    Standing,
    facets,
    is_orphan,
    moment,
    stalls_at,
    standing,
    state_words,
    updated_at,
)
from engine.query import ADDRESSES, Subject, haystack, host_of
from engine.query.attention_reasons import budget_at, reasons, unseen
from engine.text import words
from engine.text.messages import ENGLISH, retold

_LEVELS: tuple[Level, ...] = ("ok", "warning", "exceeded")
EXCEEDED_SIGN = "✖"  # of a budget without a number; tip and speech have the word
LEVEL_TONES = {"ok": "good", "warning": "warning", "exceeded": "bad"}


@dataclass(frozen=True, slots=True)
class Fullest:
    """The text of one budget and its share, with `fraction` from 0 to 1 for the bar."""

    text: str
    fraction: float
    level: Level
    share: float


def fullest(record: TaskRecord, now_ms: float) -> float | None:
    """Return the share of the fullest budget, 1 at its limit, or None without budgets."""
    found = fullest_of(record, now_ms)
    return None if found is None else found.share


def fullest_of(record: TaskRecord, now_ms: float) -> Fullest | None:
    """Return the budget that is nearest to its limit, by the thresholds of the engine."""
    if not record.policy:
        return _told(record) if record.budget_status else None
    found = budgets.at(counted(record), now_ms).gauges
    gauges = [gauge for gauge in found if gauge.limit or gauge.level != "ok"]
    if not gauges:
        return None
    worst = max(gauges, key=_weight)
    share = _weight(worst)[1]
    # The number comes first, because a narrow cell elides the end.
    percent = f"{words.count(min(int(share * 100), 99_999))} %"
    if worst.limit is None:
        percent = EXCEEDED_SIGN
    text = words.say("budget.worst", name=_name(worst.key), percent=percent)
    return Fullest(text, min(1.0, share), worst.level, share)


def _weight(gauge: Gauge) -> tuple[int, float]:
    share = gauge.value / gauge.limit if gauge.limit else float(gauge.level != "ok")
    # A checkpoint that is due is no limit, so real limits come before it.
    return _LEVELS.index(gauge.level) if gauge.key != "checkpointEveryCalls" else 0, share


def _told(record: TaskRecord) -> Fullest | None:
    """Return the gauge for a record that carries a budget status without a policy."""
    shares: dict[str | None, tuple[Level, float]] = {
        "warning": ("warning", 0.75),
        "exceeded": ("exceeded", 1.0),
    }
    known = shares.get(record.budget_status)
    if known is None:
        return None
    level, share = known
    return Fullest(words.say(f"budget.level.{level}"), share, level, share)


def _name(key: str) -> str:
    message = f"budget.short.{key}"
    return words.say(message) if message in ENGLISH else key


def counted(record: TaskRecord) -> dict[str, object]:
    """Return the fields of the record that budgets are computed from, named as in meta.json."""
    names = ("kind", "status", "policy", "counters", "created_at", "started_at", "ended_at")
    found = {name: getattr(record, name) for name in names}
    ours = record.engine
    measured = {"lasted_ms": ours.lasted_ms, "lasted_at": ours.lasted_at} if ours else {}
    return {**found, "engine": measured, "budget_exceeded": record.budget_exceeded}


_ALSO: Final = ADDRESSES[1]  # The second address of a task, which few kinds have
_MOST: Final = 20_000  # Most traits cached; beyond that equal tasks may hold separate objects


class Traits(msgspec.Struct, frozen=True, eq=False, gc=False):
    """State, kind, host, budget, ledger, client and route, shared by tasks with equal values.

    `awaited`: the user is notified of the end. `orphan`: its owner died (`status.is_orphan`).
    `needs` omits acknowledged reasons; `quiet` says that all reasons were acknowledged. `calm` and
    `rank` are sort values of `needs` and `standing`.
    """

    facets: int = 0
    status: str = ""
    kind: str = ""
    host: str = ""
    hosts: frozenset[str] = frozenset()
    budget: str = ""
    ledger: str = ""
    client: str = ""
    route: str = ""
    awaited: bool = False
    orphan: bool = False
    live: bool = False
    standing: Standing = Standing.UNKNOWN
    needs: tuple[Reason, ...] = ()
    stalled: bool = False
    quiet: bool = False
    calm: int = 0
    rank: int = 0


NONE: Final = Traits()
_traits = lru_cache(_MOST)(Traits)


def traits(
    view: TaskView,
    now_ms: float,
    found: tuple[Reason, ...],
    needs: tuple[Reason, ...],
    awaited: bool = False,
) -> Traits:
    """Return the shared traits of a task with the reasons `found`, of which the user `needs` some.

    `awaited` is that of `Traits`.
    """
    entry, state = view.entry, standing(view)
    mask, quiet = _mask(facets(view, state, needs)), bool(found) and not needs
    stalled = Reason.STALLED in found
    calm, rank = _CALM[needs[0]] if needs else NO_REASON - bool(found), _RANK[state]
    judged = (state, needs, stalled, quiet, calm, rank)
    if not isinstance(entry, TaskRecord):
        return _traits(
            *(mask, "", "", "", frozenset(), "", view.ledger, "", "", awaited, False, False),
            *judged,
        )
    host = host_of(view)
    hosts = Subject(view, 0).hosts if _ALSO in entry.args_summary else _hosts(host)
    budget, orphan = budget_at(entry, now_ms), is_orphan(entry)
    client = route = ""
    if (ours := entry.engine) is not None:
        client, route = ours.client or "", ours.route or ""
    name, status = view.ledger, entry.status
    return _traits(
        *(mask, status, entry.kind, host, hosts, budget, name, client, route, awaited, orphan),
        *(entry.is_live, *judged),
    )


@lru_cache(_MOST)
def _ended_traits(
    status: str, kind: str, host: str, ledger: str, client: str | None, route: str | None
) -> Traits:
    """Return what `traits` does for an ended task without budget, reasons and second address."""
    view = TaskView(TaskRecord("", kind, status))
    state = standing(view)
    return _traits(
        *(_mask(facets(view, state, ())), status, kind, host, _hosts(host), "", ledger),
        *(client or "", route or "", False, False, False),
        *(state, (), False, False, NO_REASON, _RANK[state]),
    )


@lru_cache(4096)
def _hosts(host: str) -> frozenset[str]:
    bare, _, port = host.rpartition(":")
    return frozenset({host, bare} if port.isdecimal() else {host}) - {""}


FACET_BIT = {facet: 1 << number for number, facet in enumerate(Facet)}
# Highest progress shown for a running task, whatever its counters say.
RUNNING_CAP = 0.99
_CALM = {reason: number for number, reason in enumerate(Reason)}
NO_REASON: Final = len(_CALM) + 1  # `calm` of a task that gives no reason for attention
_RANK = {state: number for number, state in enumerate(Standing)}


_NO_RECORD: Final = TaskRecord(task_id="")
_set_field: Final = msgspec.structs.force_setattr


class Row(msgspec.Struct, frozen=True, gc=False):
    """The values of one task in the table, with times in ms since 1970 and `rate` per second.

    `kind` is the name for people, `about.kind` the one on disk. `worst` is the share of the fullest
    budget, 1 at its limit, `share` the sort value of the progress. `started_at` and `ended_at` are
    copied from the record, even where they are no valid times. Each field takes 0.8 MB for 100,000
    tasks, so values in `about` and `view` are not repeated, and the texts of a row are made on
    their first use: those of 100,000 tasks take 0.8 s and 20 MB.
    """

    task_id: str
    view: TaskView
    about: Traits
    share: float | None = None
    created_at: float | None = None
    updated_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    stalls_at: float | None = None
    worst: float | None = None
    rate: float | None = None
    ends_at: float | None = None
    made_name: str = ""
    made_haystack: str = ""

    @property
    def name(self) -> str:
        if not self.made_name:
            _set_field(self, "made_name", _full_name(self.view))
        return self.made_name

    @property
    def folded_name(self) -> str:
        """The sort value of the name, which is not kept: the column has it."""
        return (self.made_name or _full_name(self.view)).casefold()

    @property
    def haystack(self) -> str:
        if not self.made_haystack:
            _set_field(self, "made_haystack", haystack(self.view))
        return self.made_haystack

    @property
    def status(self) -> str:
        return words.status_word(self.view)

    @property
    def kind(self) -> str:
        return words.kind_name(self.about.kind)

    @property
    def host(self) -> str:
        return self.about.host

    @property
    def standing(self) -> Standing:
        return self.about.standing

    @property
    def needs(self) -> tuple[Reason, ...]:
        return self.about.needs

    @property
    def live(self) -> bool:
        return self.about.live

    @property
    def stalled(self) -> bool:
        return self.about.stalled

    @property
    def quiet(self) -> bool:
        return self.about.quiet

    @property
    def awaited(self) -> bool:
        return self.about.awaited

    @property
    def done(self) -> int | None:
        return None if (units := self.view.units) is None else units.done

    @property
    def worked(self) -> int | None:
        """The units that this task did itself: a resumed crawl has others too."""
        return None if (units := self.view.units) is None else max(0, units.done - units.carried)

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
    view: TaskView,
    pace: Pace | None,
    now_ms: float,
    acknowledged: Collection[str] = (),
    *,
    awaited: bool = False,
) -> Row:
    """Build the row of `view`, with the speed from `pace` for a running task.

    `acknowledged` lists the acknowledged reasons, as `engine.query.attention_reasons.seen` returns
    them.
    """
    entry = view.entry
    if type(entry) is TaskRecord and entry.status in TERMINAL:
        return _ended_row(view, entry, now_ms, acknowledged, awaited)
    after = pace.stall_after_ms if pace is not None else STALL_MIN_MS
    found = reasons(view, now_ms, after)
    needs = unseen(view, found, acknowledged) if acknowledged else found
    about = traits(view, now_ms, found, needs, awaited)
    record = entry if type(entry) is TaskRecord else _NO_RECORD
    share, rate, ends_at = _progress(about, view.units, pace)
    return Row(
        entry.task_id,
        view,
        about,
        share,
        moment(record.created_at),
        updated_at(view),
        record.started_at,
        record.ended_at,
        stalls_at(view, after),
        fullest(record, now_ms),
        rate,
        ends_at,
    )


def _ended_row(
    view: TaskView, record: TaskRecord, now_ms: float, acknowledged: Collection[str], awaited: bool
) -> Row:
    """Build the row of an ended task, of which a ledger may have 100,000."""
    found: tuple[Reason, ...] = ()
    if record.status == Status.FAILED or record.budget_status:
        found = reasons(view, now_ms)
    special = record.budget_status or _ALSO in record.args_summary or is_orphan(record)
    if found or awaited or special:
        needs = unseen(view, found, acknowledged) if acknowledged else found
        about = traits(view, now_ms, found, needs, awaited)
    else:
        ours = record.engine
        client, route = (ours.client, ours.route) if ours is not None else (None, None)
        about = _ended_traits(record.status, record.kind, host_of(view), view.ledger, client, route)
    units, made, ended = view.units, record.created_at, record.ended_at
    started = record.started_at
    share, newest = None, None
    if units is not None:
        share = 1.0 if units.done == units.total and units.done > 0 else share_of(units, False)
    silent = record.last_activity_at is None and view.last_event_at is None
    if silent and type(ended) is type(started) is int and 0 < started <= ended < LAST_MS:
        newest = float(ended)  # Equal to `updated_at`, at a fifth of the time
    return Row(
        record.task_id,
        view,
        about,
        share,
        # Sharing the integers of the record saves 48 bytes but makes filters by time 20 % slower.
        float(made) if type(made) is int and 0 < made < LAST_MS else moment(made),
        updated_at(view) if newest is None else newest,
        started,
        ended,
        None,
        fullest(record, now_ms) if record.policy or record.budget_status else None,
    )


def _progress(
    about: Traits, units: Units | None, pace: Pace | None
) -> tuple[float | None, float | None, float | None]:
    """Return the share, rate and estimated end of a task.

    A stalled or agent-driven task has no rate, and a cancelling task has no estimated end.
    """
    if units is None:
        return None, None, None
    share = share_of(units, about.live)
    running = about.standing in (Standing.RUNNING, Standing.CANCELLING)
    if pace is None or not running or about.stalled or traits_of(about.kind).agent_driven:
        return share, None, None
    total = None if units.total is None else units.total - units.carried
    ends_at = pace.ends_at(total) if about.standing is Standing.RUNNING else None
    return share, pace.rate, ends_at


def share_of(units: Units, live: bool) -> float:
    """Return 0 to 1 with a known total, else a negative value that grows with the units done."""
    if not units.total or units.total < 0:
        return -1 / (max(0, units.done) + 1)
    return max(0.0, min(RUNNING_CAP if live else 1.0, units.done / units.total))


def only_progressed(old: TaskView, new: TaskView) -> bool:
    """Return whether two views of a task differ in nothing but progress."""
    same_owner = old.orphaned == new.orphaned and old.foreign == new.foreign
    same_owner = same_owner and old.ours == new.ours
    same_owner = same_owner and (old.locked, old.stale) == (new.locked, new.stale)
    return same_owner and old.away == new.away and old.entry == new.entry


def moved_on(row: Row, view: TaskView, pace: Pace, now_ms: float) -> Row | None:
    """Return `row` with newer progress of the same record, or None after any other change.

    This shortcut for frequent progress reports costs a tenth of `make_row`.
    """
    if row.stalls_at is None or row.about.stalled or not only_progressed(row.view, view):
        return None
    updated = updated_at(view)
    stalls = None if updated is None else updated + pace.stall_after_ms
    if view.units is None or stalls is None or now_ms >= stalls:
        return None
    share, rate, ends_at = _progress(row.about, view.units, pace)
    return replace(
        row,
        view=view,
        share=share,
        rate=rate,
        ends_at=ends_at,
        updated_at=updated,
        stalls_at=stalls,
    )


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
