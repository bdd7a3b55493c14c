"""A task as a query sees it: folded once, so that a keystroke over 100,000 tasks costs little.

Numbers that nobody knows are not-a-number: every comparison with them is false, which is
what "unknown" should answer, and costs no branch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from engine.attention import Standing, facets, moment, spell, standing, updated_at
from engine.pace import STALL_MIN_MS
from engine.records import LIVE, Status, TaskRecord, TaskView, Units, Unreadable

UNKNOWN: Final = math.nan
ADDRESSES: Final = ("url", "sitemap_url")
_SAID: Final = ("sitemap_url", "label", "objective")  # what a list calls a task by
_MAX_HAYSTACK = 2000
_NETLOC = re.compile(r"[a-z][a-z0-9+.-]*:/*(?:[^/?#@]*@)?([^/?#]*)", re.I)
_PORT = re.compile(r":\d+$")
_NO_RECORD = TaskRecord(task_id="")


class Subject(msgspec.Struct, frozen=True, gc=False):
    """One task, ready to be asked. Texts are folded, times are ms since 1970.

    It needs attention between `needy_from` and `needy_until`; `states` are the words that
    the sidebar uses, and the status as it stands on disk.
    """

    view: TaskView
    haystack: str
    task_id: str
    kind: str
    states: frozenset[str]
    needy_from: float
    needy_until: float
    addresses: tuple[str, ...] = ()
    hosts: frozenset[str] = frozenset()
    name: str = ""
    objective: str = ""
    phase: str = ""
    error: str = ""
    code: str = ""
    budget: str = ""
    parent: str = ""
    other_id: str = ""
    forced: bool = False
    contract: bool = False
    created_at: float = UNKNOWN
    updated_at: float = UNKNOWN
    started_at: float = UNKNOWN
    ended_at: float = UNKNOWN
    done: float = UNKNOWN
    failed: float = UNKNOWN
    total: float = UNKNOWN


def haystack(view: TaskView) -> str:
    """The text that free words search: id, name, addresses, kind, status and error."""
    entry = view.entry
    if isinstance(entry, Unreadable):
        return f"{entry.task_id}\nunreadable\n{entry.reason}".casefold()
    parts = [entry.task_id, entry.kind, entry.status, entry.url, entry.objective or ""]
    args = entry.args_summary
    parts += [args[name] for name in _SAID if isinstance(args.get(name), str)]
    if entry.engine is not None:
        parts += [entry.engine.name or "", entry.engine.command_task_id or ""]
    if entry.error is not None:
        parts += [entry.error.code or "", entry.error.message]
    return "\n".join(part[:_MAX_HAYSTACK] for part in parts).casefold()


def subject(view: TaskView, stall_after_ms: float = STALL_MIN_MS) -> Subject:
    """`view`, folded. `stall_after_ms` is `Pace.stall_after_ms` where the pace is known."""
    entry = view.entry
    state = standing(view)
    record = entry if isinstance(entry, TaskRecord) else _NO_RECORD
    needy_from, needy_until = spell(view, stall_after_ms)
    return Subject(
        view=view,
        haystack=haystack(view),
        task_id=entry.task_id.casefold(),
        kind=record.kind.casefold(),
        states=_states(view, state, record),
        needy_from=needy_from,
        needy_until=needy_until,
        **_texts(record),
        **_times(view, record),
        **_counts(view.units),
    )


def _states(view: TaskView, state: Standing, record: TaskRecord) -> frozenset[str]:
    words = {facet.value for facet in facets(view, state, ())}
    words.add(record.status.casefold())
    if state is not Standing.UNREADABLE:
        words.add("live" if record.status in LIVE else "ended")
    return frozenset(words)


def _texts(record: TaskRecord) -> dict[str, Any]:
    addresses = _addresses(record.args_summary)
    engine, error = record.engine, record.error
    return {
        "addresses": addresses,
        "hosts": frozenset(host for address in addresses for host in _hosts(address)),
        "name": (engine.name or "").casefold() if engine else "",
        "parent": (engine.parent_task_id or "") if engine else "",
        "other_id": (engine.command_task_id or "") if engine else "",
        "forced": engine is not None and engine.forced_at is not None,
        "contract": engine is not None and engine.contract_id is not None,
        "objective": (record.objective or "").casefold(),
        "phase": (record.phase or "").casefold(),
        "error": error.message.casefold() if error else "",
        "code": (error.code or "").casefold() if error else "",
        "budget": record.budget_status or "",
    }


def _addresses(args: Mapping[str, Any]) -> tuple[str, ...]:
    found = (args.get(name) for name in ADDRESSES)
    return tuple(each.casefold() for each in found if isinstance(each, str) and each)


def _hosts(address: str) -> tuple[str, ...]:
    """The host with and without its port."""
    found = _NETLOC.match(address)
    if found is None or not found[1]:
        return ()
    return found[1], _PORT.sub("", found[1])


def _times(view: TaskView, record: TaskRecord) -> dict[str, Any]:
    known = {
        "created_at": moment(view.entry.created_at),
        "updated_at": updated_at(view),
        "started_at": moment(record.started_at),
        "ended_at": moment(record.ended_at) if record.status not in LIVE else None,
    }
    return {name: UNKNOWN if at is None else at for name, at in known.items()}


def _counts(units: Units | None) -> dict[str, Any]:
    if units is None:
        return {}
    total = UNKNOWN if units.total is None else units.total
    return {"done": units.done, "failed": units.failed, "total": total}


def is_running(one: Subject) -> bool:
    """Does its time still run? (It may be asked to stop.)"""
    entry = one.view.entry
    return isinstance(entry, TaskRecord) and entry.status == Status.RUNNING
