"""A row as a query sees it: what the row knows already need not be worked out again."""

from __future__ import annotations

from functools import lru_cache

from engine.attention import Facet
from engine.pace import STALL_MIN_MS
from engine.query import Subject
from engine.query.subject import ADDRESSES
from engine.records import LIVE, Unreadable
from gui.rows import FACET_BIT, Row

_ALSO = ADDRESSES[1]  # a second address, which few have


class RowSubject(Subject, frozen=True, gc=False):
    """What the table shows of a task and what a query finds are the same."""

    row: Row

    def needs_attention(self, now_ms: float) -> bool:
        return bool(self.row.needs)  # kept up to date as time goes on

    @property
    def haystack(self) -> str:
        return self.row.haystack

    @property
    def states(self) -> frozenset[str]:
        entry = self.view.entry
        status = None if isinstance(entry, Unreadable) else entry.status
        return _states(self.row.facets & ~FACET_BIT[Facet.ATTENTION], status)

    @property
    def hosts(self) -> frozenset[str]:
        return super().hosts if _ALSO in self.record.args_summary else _hosts(self.row.host)


def asked(row: Row) -> RowSubject:
    return RowSubject(row.view, STALL_MIN_MS, row)


@lru_cache(maxsize=512)
def _states(mask: int, status: str | None) -> frozenset[str]:
    words = {facet.value for facet, bit in FACET_BIT.items() if mask & bit}
    if status is None:
        return frozenset(words | {""})
    return frozenset(words | {status.casefold(), "live" if status in LIVE else "ended"})


@lru_cache(maxsize=4096)
def _hosts(host: str) -> frozenset[str]:
    bare, _, port = host.rpartition(":")
    return frozenset({host, bare} if port.isdecimal() else {host}) - {""}
