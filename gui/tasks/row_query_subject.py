"""Query subject that reuses values of the row instead of computing them again."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from engine.model.records import Unreadable
from engine.model.status import Facet, state_words
from engine.query import Subject
from gui.tasks.row import FACET_BIT, Row

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
