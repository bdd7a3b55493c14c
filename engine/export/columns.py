"""Columns of each kind's table, as data: a new field of a unit is one line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

from engine.kinds.registry import KINDS
from engine.kinds.spec import Column
from engine.model.errors import InvalidArguments, Problem
from engine.model.records import ENVELOPE

LOOKED_AT: Final = 1_000  # rows that are searched for columns that are not in the table
MOST: Final = 200  # columns of one export
# End every row: files are joined, and cut apart.
TASK_COLUMNS: Final = ("task_id", "task_status")
_EVENT: Final = (Column("ts", 16), Column("kind", 18), Column("data", 80))
_OTHER_WIDTH: Final = 30


def columns_for(kind: str, rows: Iterable[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Columns of a kind, followed by every other field of its first rows."""
    spec = KINDS.get(kind)
    known = spec.columns if spec is not None else _EVENT if kind == ENVELOPE else ()
    there = {name.partition(".")[0] for name, *_ in known}
    others: dict[str, None] = {}
    for row in islice(rows, LOOKED_AT):
        others.update(dict.fromkeys(name for name in row if name not in there))
    found = [*known, *(Column(name, _OTHER_WIDTH) for name in others)]
    return tuple(found[:MOST])


def chosen(columns: tuple[Column, ...], wanted: Iterable[str]) -> tuple[Column, ...]:
    """Select the requested columns, in that order.

    Raises:
        InvalidArguments: names every unknown column.
    """
    by_name = {column.name: column for column in columns}
    tops = {name.partition(".")[0] for name in by_name} | set(TASK_COLUMNS)
    picks, problems = [], []
    for name in wanted:
        if name not in by_name and name.partition(".")[0] not in tops:
            there = ", ".join([*by_name, *TASK_COLUMNS])
            message = f"there is no column '{name}' (there are: {there})"
            problems.append(Problem("columns", "unknown_column", message))
            continue
        picks.append(by_name.get(name) or Column(name, _OTHER_WIDTH))
    if problems:
        raise InvalidArguments(tuple(problems))
    return tuple(picks)
