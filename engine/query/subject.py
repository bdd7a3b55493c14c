"""Task as the subject of a query: each value is computed on demand.

Computing all of them beforehand costs 10 µs and half a kilobyte a task, and most queries use one or
two. Unknown numbers are NaN: every comparison with them is false, as "unknown" requires, and costs
no branch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Final, Protocol

import msgspec

from engine.model.ledger_ids import HERE
from engine.model.records import (
    LIVE,
    EngineFields,
    ErrorInfo,
    Status,
    TaskRecord,
    TaskView,
    Units,
    Unreadable,
)
from engine.model.status import (
    LAST_MS,
    STALL_MIN_MS,
    Standing,
    facets,
    moment,
    standing,
    state_words,
    updated_at,
    worked_until,
)
from engine.query.attention_reasons import reasons

UNKNOWN: Final = math.nan
ADDRESSES: Final = ("url", "sitemap_url")
SAID: Final = ("sitemap_url", "label", "objective")  # display names of a task
CUT: Final = 2000  # characters of one text in the haystack
_NETLOC = re.compile(r"[a-z][a-z0-9+.-]*:/*(?:[^/?#@]*@)?([^/?#]*)", re.I)
_PORT = re.compile(r":\d+$")
_FIRST_COMMANDS: Final = 10
_NO_RECORD = TaskRecord(task_id="")
_NO_FIELDS = EngineFields()
_NO_ERROR = ErrorInfo("")
_NO_UNITS = Units()
_NUMBERS: Final = frozenset({float, int})


class Seen(Protocol):
    """Object with a task view; its times are raw values of the record, valid or not.

    `made_haystack` is its `haystack`, or empty until that was read: reading a field takes a third
    of the time of a property.
    """

    @property
    def view(self) -> Any: ...
    @property
    def made_haystack(self) -> str: ...
    @property
    def standing(self) -> Standing: ...
    @property
    def started_at(self) -> float | None: ...
    @property
    def ended_at(self) -> float | None: ...


class Subject(msgspec.Struct, frozen=True, gc=False):
    """Task prepared for tests. Texts are case-folded, times are ms since 1970.

    A list may override values that it has already. `states` are the words of the sidebar, and a
    status that the sidebar lacks.
    """

    view: TaskView
    stall_after_ms: float

    def needs_attention(self, now_ms: float) -> bool:
        """Return whether this task needs a person now."""
        return bool(reasons(self.view, now_ms, self.stall_after_ms))

    @property
    def about(self) -> Hashable:
        """Unique key: no other task counts as equal."""
        return id(self)

    @property
    def record(self) -> TaskRecord:
        """Record; an empty one where it cannot be read."""
        entry = self.view.entry
        return entry if isinstance(entry, TaskRecord) else _NO_RECORD

    @property
    def fields(self) -> EngineFields:
        return self.record.engine or _NO_FIELDS

    @property
    def units(self) -> Units:
        return self.view.units or _NO_UNITS

    @property
    def haystack(self) -> str:
        return haystack(self.view)

    @property
    def made_haystack(self) -> str:
        """Empty, because a subject keeps no text."""
        return ""

    @property
    def task_id(self) -> str:
        return self.view.entry.task_id.casefold()

    @property
    def kind(self) -> str:
        return self.record.kind.casefold()

    @property
    def states(self) -> frozenset[str]:
        return _states(self.view, self.record)

    @property
    def status(self) -> str:
        """Status as stored on disk."""
        return self.record.status.casefold()

    @property
    def addresses(self) -> tuple[str, ...]:
        args = self.record.args_summary
        found = (args.get(name) for name in ADDRESSES)
        said = tuple(each.casefold() for each in found if isinstance(each, str) and each)
        return said or tuple(one.casefold() for one in (first_address(args),) if one)

    @property
    def hosts(self) -> frozenset[str]:
        """Hosts of the addresses, each with and without its port."""
        return frozenset(host for address in self.addresses for host in _hosts(address))

    @property
    def name(self) -> str:
        return (self.fields.name or "").casefold()

    @property
    def objective(self) -> str:
        return (self.record.objective or "").casefold()

    @property
    def phase(self) -> str:
        return (self.record.phase or "").casefold()

    @property
    def error(self) -> str:
        return (self.record.error or _NO_ERROR).message.casefold()

    @property
    def code(self) -> str:
        return ((self.record.error or _NO_ERROR).code or "").casefold()

    @property
    def budget(self) -> str:
        return self.record.budget_status or ""

    @property
    def parent(self) -> str:
        return self.fields.parent_task_id or ""

    @property
    def schedule(self) -> str:
        """Id of the schedule that started it."""
        link = self.fields.schedule
        return link.id if link is not None else ""

    @property
    def changes(self) -> float:
        """Pages that a scheduled run found changed; unknown where nothing was compared."""
        link = self.fields.schedule
        return UNKNOWN if link is None or link.changes is None else link.changes.total

    @property
    def client(self) -> str:
        """Name of the program that requested it."""
        return (self.fields.client or "").casefold()

    @property
    def route(self) -> str:
        """How its request came, as stored on disk."""
        return self.fields.route or ""

    @property
    def other_id(self) -> str:
        return self.fields.command_task_id or ""

    @property
    def root(self) -> str:
        """Label of its ledger, `here` for the program's own."""
        return self.view.ledger or HERE

    @property
    def forced(self) -> bool:
        return self.fields.forced_at is not None

    @property
    def contract(self) -> bool:
        return self.fields.contract_id is not None

    @property
    def created_at(self) -> float:
        return _or_unknown(moment(self.view.entry.created_at))

    @property
    def updated_at(self) -> float:
        return _or_unknown(updated_at(self.view))

    @property
    def live(self) -> bool:
        return self.record.is_live

    @property
    def standing(self) -> Standing:
        return standing(self.view)

    @property
    def started_at(self) -> float | None:
        return self.record.started_at

    @property
    def ended_at(self) -> float | None:
        return self.record.ended_at

    def took_ms(self, now_ms: float) -> float:
        """Duration of the run in ms, up to now for a running task (also one asked to stop).

        It is 0 where the end is before the start, as the list shows it.
        """
        record = self.record
        began = moment(record.started_at)
        if record.status == Status.RUNNING:
            ended: float | None = now_ms
        else:
            ended = None if record.status in LIVE else worked_until(record)
        return UNKNOWN if began is None or ended is None else max(0.0, ended - began)

    @property
    def done(self) -> float:
        return UNKNOWN if self.view.units is None else self.view.units.done

    @property
    def failed(self) -> float:
        return UNKNOWN if self.view.units is None else self.view.units.failed

    @property
    def total(self) -> float:
        return _or_unknown(self.units.total)


def subject(view: TaskView, stall_after_ms: float = STALL_MIN_MS) -> Subject:
    """Wrap `view`; `stall_after_ms` is `Pace.stall_after_ms` where the pace is known."""
    return Subject(view, stall_after_ms)


def took_all(found: Iterable[Any], now_ms: float) -> list[float]:
    """Compute `Subject.took_ms` of each row of a list, with a fast path for ended tasks."""
    return [
        end - began
        if not (about := each.about).live
        and not about.orphan
        and type(began := each.started_at) in _NUMBERS
        and type(end := each.ended_at) in _NUMBERS
        and 0 < began <= end < LAST_MS
        else Subject(each.view, 0).took_ms(now_ms)
        for each in found
    ]


def haystack(view: TaskView) -> str:
    """Text that free words search: id, name, addresses, kind, status and error."""
    entry = view.entry
    if isinstance(entry, Unreadable):
        return f"{entry.task_id}\nunreadable\n{entry.reason}".casefold()
    parts = [entry.task_id, entry.kind, entry.status, entry.url, entry.objective or ""]
    args = entry.args_summary
    parts += [args[name] for name in SAID if isinstance(args.get(name), str)]
    if entry.engine is not None:
        parts += [entry.engine.name or "", entry.engine.command_task_id or ""]
    if entry.error is not None:
        parts += [entry.error.code or "", entry.error.message]
    whole = "\n".join(parts)
    if len(whole) > CUT:  # one of the parts may be too long
        whole = "\n".join([part[:CUT] for part in parts])
    return whole.casefold()


def host_of(view: TaskView) -> str:
    """Host of a task's address, with its port, folded; empty without an address."""
    entry = view.entry
    if isinstance(entry, Unreadable):
        return ""
    found = _NETLOC.match(address_in(entry.args_summary))
    return found[1].casefold() if found is not None else ""


def address_in(args: Mapping[str, Any]) -> str:
    """Return the address with a host that a task opens first; "" without one."""
    for name in ADDRESSES:
        address = args.get(name)
        if isinstance(address, str) and _has_host(address):
            return address
    first = first_address(args)
    return first if _has_host(first) else ""


def _has_host(address: str) -> bool:
    found = _NETLOC.match(address)
    return found is not None and bool(found[1])


def first_address(args: Mapping[str, Any]) -> str:
    """Return the address that the first commands of a task open; "" for other tasks."""
    commands = args.get("commands")
    for command in commands[:_FIRST_COMMANDS] if isinstance(commands, list) else ():
        given = command.get("args") if isinstance(command, Mapping) else None
        url = given.get("url") if isinstance(given, Mapping) else None
        if isinstance(url, str) and url:
            return url
    return ""


def _or_unknown(value: float | None) -> float:
    return UNKNOWN if value is None else value


def _states(view: TaskView, record: TaskRecord) -> frozenset[str]:
    status = None if isinstance(view.entry, Unreadable) else record.status
    return state_words(facets(view, standing(view), ()), status)


def _hosts(address: str) -> tuple[str, ...]:
    """Host with and without its port."""
    found = _NETLOC.match(address)
    if found is None or not found[1]:
        return ()
    return found[1], _PORT.sub("", found[1])
