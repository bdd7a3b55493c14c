"""The table's columns as data: adding one is one entry here. Knows no Qt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from engine import words
from engine.display import display
from engine.messages import ENGLISH
from engine.records import TaskRecord
from gui.rows import Row


@dataclass(frozen=True, slots=True)
class Column:
    """One column: what it is called, how wide, what it says, and what it sorts by.

    `width` counts average characters. `paint` tells the delegate what to draw. `shows`
    names the row's fields that the cell depends on; `ticks` says that time alone changes it,
    `moves` that mere progress changes its place in an order.
    """

    key: str
    width: int
    text: Callable[[Row, float], str]
    sort: Callable[[Any], Any]
    shows: Callable[[Any], Any]
    paint: str = "text"
    align: str = "left"
    ticks: bool = False
    moves: bool = False
    hidden: bool = False

    @property
    def title(self) -> str:
        return words.say(f"column.{self.key}")

    @property
    def long_title(self) -> str:
        """The title for ears and menus, where a sign alone says nothing."""
        key = f"column.{self.key}.long"
        return words.say(key) if key in ENGLISH else self.title

    def differs(self, before: Row, after: Row) -> bool:
        return bool(self.shows(before) != self.shows(after))


def _attention_text(row: Row, now_ms: float) -> str:
    silence = now_ms - row.updated_at if row.updated_at is not None else 0
    return "; ".join(words.attention(reason, silence) for reason in row.needs)


def _progress_text(row: Row, _now_ms: float) -> str:
    entry = row.view.entry
    kind = entry.kind if isinstance(entry, TaskRecord) else ""
    return words.progress(kind, row.view.units)


def _eta_text(row: Row, now_ms: float) -> str:
    if not row.running:
        return ""
    if row.stalled:
        return words.NONE
    return "" if row.ends_at is None else words.time_left(row.ends_at - now_ms)


COLUMNS: tuple[Column, ...] = (
    Column(
        "attention",
        3,
        _attention_text,
        attrgetter("calm"),
        attrgetter("needs"),
        paint="attention",
        align="center",
    ),
    Column(
        "status",
        16,
        lambda row, _: row.status,
        attrgetter("rank"),
        attrgetter("standing", "status", "view.foreign"),
        paint="status",
    ),
    Column(
        "task",
        44,
        lambda row, _: row.name,
        attrgetter("folded_name"),
        attrgetter("name", "view.foreign"),  # whose it is stands beside the name
        paint="task",
    ),
    Column("kind", 23, lambda row, _: row.kind, attrgetter("kind"), attrgetter("kind")),
    Column(
        "progress",
        23,
        _progress_text,
        attrgetter("share"),
        attrgetter("done", "total", "standing"),
        paint="progress",
        moves=True,
    ),
    Column(
        "rate",
        8,
        lambda row, _: words.rate(row.rate),
        attrgetter("rate"),
        attrgetter("rate"),
        align="right",
        moves=True,
    ),
    Column(
        "eta",
        9,
        _eta_text,
        attrgetter("ends_at"),
        attrgetter("ends_at", "needs", "running"),
        align="right",
        ticks=True,
        moves=True,
    ),
    Column(
        "age",
        8,
        lambda row, now: words.age(row.created_at, now),
        attrgetter("newness"),
        attrgetter("created_at"),
        align="right",
        ticks=True,
    ),
    Column(
        "updated",
        9,
        lambda row, now: words.age(row.updated_at, now),
        attrgetter("updated_at"),
        attrgetter("updated_at"),
        align="right",
        ticks=True,
        moves=True,
    ),
    Column(
        "id",
        18,
        lambda row, _: display(row.task_id),
        attrgetter("task_id"),
        attrgetter("task_id"),
        paint="id",
        hidden=True,
    ),
)
COLUMN_AT = {column.key: number for number, column in enumerate(COLUMNS)}


def hint(row: Row, column: Column, now_ms: float) -> str:
    """What a pointer resting on the cell is told, beyond what fits into it. Plain text."""
    if column.key in ("status", "attention", "eta"):
        return words.why(row.view, now_ms, row.stalled)
    if column.key == "task":
        entry = row.view.entry
        full = display(entry.url) if isinstance(entry, TaskRecord) else row.name
        return row.name if not full or row.name in full else f"{row.name}\n{full}"
    if column.key == "progress":
        return _progress_hint(row)
    if column.key in ("age", "updated"):
        return words.clock(row.created_at if column.key == "age" else row.updated_at)
    return column.text(row, now_ms)


def _progress_hint(row: Row) -> str:
    entry, units = row.view.entry, row.view.units
    if units is None or not isinstance(entry, TaskRecord):
        return ""
    said = words.progress_spoken(entry.kind, units)
    if row.fraction is None:
        return said
    return f"{said}, {words.say('progress.percent', percent=int(row.fraction * 100))}"


def spoken(row: Row, column: Column, now_ms: float) -> str:
    """The cell for ears: the whole row at its head and its name, else title and value."""
    if column.key in ("attention", "task"):
        sentence = words.row_sentence(row.view, row.status)
        needs = column.text(row, now_ms) if column.key == "attention" else ""
        return f"{sentence}. {needs}" if needs else sentence
    text = _progress_hint(row) if column.key == "progress" else column.text(row, now_ms)
    return f"{column.long_title}: {text or words.NONE}"
