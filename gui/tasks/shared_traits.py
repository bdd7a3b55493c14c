"""What many tasks have in common: one object for all of them, so that a question is asked once."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from engine.model.records import TaskRecord, TaskView
from engine.query import ADDRESSES, Subject, host_of

_ALSO: Final = ADDRESSES[1]  # a second address, which few have
_MOST: Final = 20_000  # kept at a time; beyond, equal tasks only share less


class Traits(msgspec.Struct, frozen=True, eq=False, gc=False):
    """State, kind, host, budget and ledger of a task; the same object for tasks that agree in
    all."""

    facets: int = 0
    status: str = ""
    kind: str = ""
    host: str = ""
    hosts: frozenset[str] = frozenset()
    budget: str = ""
    ledger: str = ""


NONE: Final = Traits()


def traits(view: TaskView, facets: int) -> Traits:
    """Those of `view`, whose row has these `facets`."""
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
