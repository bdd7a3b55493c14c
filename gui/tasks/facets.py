"""The facets that filter the list by a click, with their task counts. No Qt.

A facet is the bare name of a state, or a term of the filter language such as `kind:crawl`. Facets
of one group are combined by OR, facets of different groups by AND.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from heapq import nlargest
from itertools import islice
from operator import itemgetter
from typing import Final

from engine.model.ledger_ids import HERE
from engine.model.records import ROUTES
from engine.model.status import Facet
from engine.query import term
from gui.tasks.row import NONE, Row, Traits

STATUS, KIND, HOST, BUDGET, AGE = "status", "kind", "host", "budget", "age"
CLIENT: Final = "client"  # The clients, and the routes of all requests
ROUTE: Final = "route"
ROOT: Final = "root"  # The ledger, which is a group only while several ledgers are shown
OWN: Final = f"{ROOT}:{HERE}"
GROUPS: Final = (STATUS, ROOT, KIND, HOST, CLIENT, BUDGET, AGE)
_GROUP_OF: Final = {ROUTE: CLIENT, **{group: group for group in GROUPS[1:]}}
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
AGES: Final[Mapping[str, float]] = {"age:<1h": HOUR_MS, "age:<1d": DAY_MS, "age:<7d": 7 * DAY_MS}
OLDER: Final = "age:>=7d"
# Budget status in the record -> value in the filter language.
BUDGETS: Final = {"ok": "ok", "warning": "near", "exceeded": "exceeded"}
_STATES: Final = frozenset(facet.value for facet in Facet if facet is not Facet.ALL)
# Longer kinds and hosts are not offered, because a query has no room for several of them.
_LONGEST = 255
_MOST_VALUES = 3000  # Most values searched for completions while a query is typed


def group_of(facet: str) -> str:
    """Return the group of a facet, or an empty string for an unknown facet."""
    if facet in _STATES:
        return STATUS
    field, colon, value = facet.partition(":")
    return _GROUP_OF.get(field, "") if colon and value else ""


def query_of(facets: Iterable[str]) -> str:
    """Return the query for these facets, empty for none."""
    groups: dict[str, list[str]] = {}
    for facet in facets:
        group = group_of(facet)
        if group:
            groups.setdefault(group, []).append(f"status:{facet}" if group == STATUS else facet)
    return " ".join(
        f"({' OR '.join(each)})" if len(each) > 1 else each[0] for each in groups.values()
    )


class FacetCounts:
    """Facet counts, updated by each change of a task instead of counted again.

    `version` changes with every count. `ledgers` are the labels of further ledgers in their order,
    usually none.
    """

    def __init__(self) -> None:
        self.version = 0
        self.ledgers: tuple[str, ...] = ()
        self._total = 0
        # Pending changes, merged into the groups on the next read, because reads are rarer.
        self._news: dict[Traits, int] = {}
        self._named: dict[tuple[str, str], str] = {}
        counted = (KIND, ROOT, HOST, CLIENT, BUDGET)
        self._groups: dict[str, dict[str, int]] = {group: {} for group in counted}
        self._made: list[float] = []
        self._new: list[float] = []

    def name_ledgers(self, labels: tuple[str, ...]) -> None:
        """Set the labels of further ledgers, which are counted separately."""
        self.ledgers = labels

    def move(self, before: Row | None, after: Row | None) -> None:
        """Update the counts for a row that was added (`before` is None), changed or removed."""
        was = before.about if before is not None else NONE
        now = after.about if after is not None else NONE
        if was is not now:
            self.version += 1
            self._news[was] = self._news.get(was, 0) - 1
            self._news[now] = self._news.get(now, 0) + 1
        old = before.created_at if before is not None else None
        new = after.created_at if after is not None else None
        if old == new:
            return
        if old is not None:
            self._forget(old)
        if new is not None:
            self._new.append(new)

    def add(self, about: Traits, number: int) -> None:
        """Count further tasks with these traits."""
        self.version += 1
        self._news[NONE] = self._news.get(NONE, 0) - number
        self._news[about] = self._news.get(about, 0) + number

    def add_times(self, made: Iterable[float | None]) -> None:
        """Count the creation times of further tasks."""
        self._new.extend(filter(None, made))

    def of(self, facet: str, now_ms: float) -> int:
        """Return the number of tasks with this facet; states are counted with the rows."""
        if group_of(facet) == AGE:
            return self._aged(facet, now_ms)
        if facet == OWN:
            beside = self._counted()[ROOT].values()
            return self._total - sum(beside)
        return self._counted().get(group_of(facet), {}).get(facet, 0)

    def most(self, group: str, number: int) -> list[str]:
        """Return the facets of the group with the most tasks, largest first."""
        # Ledgers keep the order in which they were opened, and empty ones are listed too.
        if group == ROOT:
            roots = [OWN, *(term(ROOT, label) for label in self.ledgers)]
            return roots[:number] if self.ledgers else []
        counts = self._counted()[group]
        # Break ties by name, so that the end of a long group does not flicker.
        most = nlargest(number, counts, key=counts.__getitem__)
        return sorted(most, key=lambda facet: (-counts[facet], facet))

    @property
    def values(self) -> dict[str, list[str]]:
        """The kinds, hosts, clients and ledgers of all tasks, as a query spells them."""
        found: dict[str, list[str]] = {KIND: [], HOST: [], CLIENT: []}
        self._counted()
        for group, value in islice(self._named, _MOST_VALUES):
            if group in found:
                found[group].append(value)
        if self.ledgers:
            found[ROOT] = [HERE, *self.ledgers]
        return found

    def value_of(self, facet: str) -> str:
        """Return the value of a kind, host or client facet without its field name and quotes."""
        self._counted()
        names = {named: value for (_, value), named in self._named.items() if named == facet}
        return names.get(facet) or facet.partition(":")[2].strip('"')

    def size(self, group: str) -> int:
        """Return the number of facets in the group."""
        if group == ROOT:
            return len(self.ledgers) + 1 if self.ledgers else 0
        return len(self._counted()[group])

    def _counted(self) -> dict[str, dict[str, int]]:
        """Merge pending changes and return the facet counts by group."""
        news, self._news = self._news, {}
        # The count of `NONE` falls with every added task and rises with every removed one.
        self._total -= news.pop(NONE, 0)
        # Add before subtracting, because two traits can share a value whose count must not reach 0.
        for about, by in sorted(news.items(), key=itemgetter(1), reverse=True):
            for mark in _marks(about):
                self._add(mark, by)
        return self._groups

    def _add(self, mark: tuple[str, str], by: int) -> None:
        facet = self._named.get(mark)
        if facet is None:
            facet = self._named[mark] = term(*mark)
        counts = self._groups[_GROUP_OF[mark[0]]]
        counts[facet] = counts.get(facet, 0) + by
        if not counts[facet]:
            del counts[facet], self._named[mark]

    def _aged(self, facet: str, now_ms: float) -> int:
        self._settle()
        within = AGES.get(facet)
        if within is None:
            return bisect_right(self._made, now_ms - AGES["age:<7d"])
        return len(self._made) - bisect_right(self._made, now_ms - within)

    def _forget(self, made: float) -> None:
        self._settle()
        at = bisect_left(self._made, made)
        if at < len(self._made) and self._made[at] == made:
            del self._made[at]

    def _settle(self) -> None:
        if len(self._new) > 8:
            self._made.extend(self._new)
            self._made.sort()
        else:
            for made in self._new:
                insort(self._made, made)
        self._new.clear()


@lru_cache(maxsize=4096)
def _marks(about: Traits) -> tuple[tuple[str, str], ...]:
    return tuple(_each(about))


def _each(about: Traits) -> Iterator[tuple[str, str]]:
    if 0 < len(about.kind) <= _LONGEST:
        yield KIND, about.kind
    if about.ledger:
        yield ROOT, about.ledger
    if 0 < len(about.host) <= _LONGEST:
        yield HOST, about.host
    if 0 < len(about.client) <= _LONGEST:
        yield CLIENT, about.client
    if about.route in ROUTES:
        yield ROUTE, about.route
    if about.budget in BUDGETS:
        yield BUDGET, BUDGETS[about.budget]
