"""Traits shared by many tasks as one object, so that each query is evaluated once for all."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from engine.model.records import TaskRecord, TaskView
from engine.query import ADDRESSES, Subject, host_of

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
