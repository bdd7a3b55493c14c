"""Columns of each kind's table, as data: a new field of a unit is one line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from engine.model.errors import InvalidArguments, Problem
from engine.model.records import ENVELOPE

LOOKED_AT: Final = 1_000  # rows that are searched for columns that are not in the table
MOST: Final = 200  # columns of one export
# Last columns of every row, because files get joined and split.
TASK_COLUMNS: Final = ("task_id", "task_status")


class Column(NamedTuple):
    """Field of a unit. `width` in characters; reports omit `bulky` ones."""

    name: str
    width: int = 14
    bulky: bool = False


_PAGE: Final = (
    *(Column("url", 50), Column("final_url", 50), Column("status", 8), Column("title", 40)),
    *(Column("depth", 7), Column("links_found", 11), Column("response_ms"), Column("render_ms")),
    *(Column("bytes", 10), Column("engine_used"), Column("settled", 9), Column("truncated", 10)),
    *(Column("empty", 7), Column("redacted", 9), Column("screenshot", 30), Column("attempts", 9)),
    *(Column("earlier_errors", 40), Column("error_code", 12)),
    *(Column("error", 40), Column("content", 60, bulky=True)),
    Column("links", 60, bulky=True),
)
_EVENT: Final = (Column("ts", 16), Column("kind", 18), Column("data", 80))
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "crawl": _PAGE,
    "crawl_sitemap": _PAGE,
    "recording": (
        *(Column("n", 6), Column("type", 12), Column("ts", 16), Column("tab", 5)),
        *(Column("url", 50), Column("role", 12), Column("name", 30), Column("selector", 40)),
        *(Column("found_by", 10), Column("alternatives", 40), Column("count", 7)),
        *(Column("button", 8), Column("on", 6), Column("key", 12), Column("append", 8)),
        *(
            Column("dialog", 12),
            Column("answer", 10),
            Column("target", 30),
            Column("target_alternatives", 40),
            Column("files", 30),
        ),
        *(Column("text", 30), Column("variable", 16), Column("screenshot", 30)),
    ),
    "oc_evidence_bundle": (
        *(Column("part", 14), Column("file", 40), Column("bytes", 12), Column("sha256", 66)),
        *(Column("truncated", 10), Column("error", 40)),
    ),
    "oc_session_snapshot": (
        *(Column("url", 50), Column("final_url", 50), Column("title", 40), Column("status", 8)),
        *(Column("screenshot", 30), Column("error", 40)),
    ),
    "commands": (
        *(Column("id", 30), Column("tool_name", 20), Column("intention", 40), Column("status", 10)),
        *(Column("args", 40), Column("startedAt", 16), Column("completedAt", 16)),
        *(Column("error.code", 24), Column("error.message", 50), Column("result", 60, bulky=True)),
    ),
    ENVELOPE: _EVENT,
}
_OTHER_WIDTH: Final = 30


def columns_for(kind: str, rows: Iterable[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Columns of a kind, followed by every other field of its first rows."""
    known = COLUMNS.get(kind, ())
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
