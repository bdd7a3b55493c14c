"""The columns of the task table as data: a new column is one entry here. No Qt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from engine.model.display import display
from engine.model.kind_traits import TRAITS
from engine.model.ledger_ids import plain_id
from engine.model.records import TaskRecord
from engine.text import words
from engine.text.messages import ENGLISH
from gui.tasks import cells
from gui.tasks.cells import Text
from gui.tasks.row import Row


@dataclass(frozen=True, slots=True)
class Column:
    """Title, width, text, sort value and painting of one column.

    `width` and `least` count average characters; a column shrinks to `least` where room is short.
    With `yields` above 0 it is hidden before that, the highest value first. `paint` names the
    painting routine of the delegate. `words` is the prefix of the message ids of its texts: the
    longest of these texts fits in every language, and so does `longest`, which is not a message.
    `shows` returns the fields of the row that the cell depends on. `ticks` marks a column that time
    alone changes, `moves` one whose order progress changes, and `beside` one that is shown only
    while several ledgers are open.
    """

    key: str
    width: int
    text: Text
    sort: Callable[[Any], Any]
    shows: Callable[[Any], Any]
    paint: str = "text"
    align: str = "left"
    ticks: bool = False
    moves: bool = False
    hidden: bool = False
    least: int = 0
    words: str = ""
    longest: str = ""
    yields: int = 0
    beside: bool = False

    @property
    def title(self) -> str:
        return words.say(f"column.{self.key}")

    @property
    def long_title(self) -> str:
        """The title for screen readers and menus, where an icon alone has no meaning."""
        key = f"column.{self.key}.long"
        return words.say(key) if key in ENGLISH else self.title

    @property
    def vocabulary(self) -> list[str]:
        """All texts that the column can show, where they are known."""
        return [words.say(one) for one in ENGLISH if self.words and one.startswith(self.words)]

    def differs(self, before: Row, after: Row) -> bool:
        return bool(self.shows(before) != self.shows(after))


def _more(key: str, width: int, text: Text, value: Callable[[Row], Any], **given: Any) -> Column:
    """Return a column that is hidden by default; its sort value decides when it is repainted."""
    return Column(key, width, text, value, given.pop("shows", value), hidden=True, **given)


COLUMNS: tuple[Column, ...] = (
    Column(
        "attention",
        3,
        cells.attention,
        attrgetter("calm"),
        attrgetter("needs", "quiet"),
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
        least=15,
        words="status.",
    ),
    Column(
        "task",
        44,
        lambda row, _: row.name,
        attrgetter("folded_name"),
        # Foreign and forced tasks carry a badge in this cell.
        lambda row: (row.name, row.view.foreign, *words.marks(row.view), cells.forced_at(row)),
        paint="task",
        least=26,
    ),
    Column(
        "kind",
        12,
        lambda row, _: row.kind,
        attrgetter("kind"),
        attrgetter("kind"),
        longest=max(TRAITS, key=len),
        yields=2,
    ),
    Column(
        "root",
        14,
        cells.root,
        attrgetter("about.ledger"),
        attrgetter("about.ledger"),
        least=8,
        beside=True,
    ),
    Column(
        "progress",
        23,
        cells.progress,
        attrgetter("share"),
        attrgetter("done", "total", "standing"),
        paint="progress",
        moves=True,
        least=15,
    ),
    Column(
        "rate",
        8,
        lambda row, _: words.rate(row.rate),
        attrgetter("rate"),
        attrgetter("rate"),
        align="right",
        moves=True,
        least=7,
        yields=3,
    ),
    Column(
        "eta",
        9,
        cells.time_left,
        attrgetter("ends_at"),
        attrgetter("ends_at", "needs", "running"),
        align="right",
        ticks=True,
        moves=True,
        least=10,
        yields=1,
    ),
    Column(
        "budget",
        15,
        cells.budget,
        attrgetter("worst"),
        attrgetter("worst", "live"),
        paint="budget",
        ticks=True,
        least=13,
        yields=1,
    ),
    Column(
        "age",
        8,
        lambda row, now: words.age(row.created_at, now),
        cells.newness,
        attrgetter("created_at"),
        align="right",
        ticks=True,
        least=8,
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
        least=9,
        yields=4,
    ),
    Column(
        "id",
        18,
        lambda row, _: display(plain_id(row.task_id)),
        attrgetter("task_id"),
        attrgetter("task_id"),
        paint="id",
        hidden=True,
    ),
    _more("host", 22, lambda row, _: display(row.about.host, 120), cells.host),
    _more("error", 40, cells.error, cells.error_folded),
    _more("failures", 8, cells.failures, cells.failures_of, align="right", moves=True),
    _more("contract", 24, cells.contract, cells.contract_of),
    _more("forced", 22, cells.forced, cells.forced_at),
    _more("phase", 10, cells.phase, cells.phase_of),
    _more("doing", 30, cells.doing, cells.doing_of, moves=True),
    _more("started", 20, cells.started, cells.started_at),
    _more("ended", 20, cells.ended, cells.ended_at),
    _more(
        "took",
        12,
        cells.took,
        cells.lasted,
        shows=attrgetter("running", "view.entry"),
        align="right",
        ticks=True,
        moves=True,
    ),
    _more("average", 9, cells.average, cells.average_of, align="right", moves=True),
    _more("owner", 26, cells.owner, cells.owner_of),
    _more("parent", 18, cells.parent, cells.parent_of),
)
COLUMN_AT = {column.key: number for number, column in enumerate(COLUMNS)}


def columns_there(*, several: bool) -> tuple[Column, ...]:
    """Return the columns that are useful with one ledger or with `several`."""
    return COLUMNS if several else tuple(one for one in COLUMNS if not one.beside)


def hint(row: Row, column: Column, now_ms: float) -> str:
    """Return the plain text of the tool tip, which adds to the text of the cell."""
    if column.key in ("status", "attention", "eta"):
        return words.why(row.view, now_ms, row.stalled)
    if column.key == "task":
        entry = row.view.entry
        full = display(entry.url) if isinstance(entry, TaskRecord) else row.name
        return row.name if not full or row.name in full else f"{row.name}\n{full}"
    if column.key == "progress":
        return _progress_hint(row)
    if column.key == "budget":
        return _budget_hint(row, now_ms)
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


def _budget_hint(row: Row, now_ms: float) -> str:
    """Return share and level as text, so that the level is not shown by colour alone."""
    found = cells.budget_of(row, now_ms)
    if found is None:
        return ""
    return words.say(
        "budget.spoken", text=found.text, level=words.say(f"budget.level.{found.level}")
    )


def spoken(row: Row, column: Column, now_ms: float) -> str:
    """Return the text for screen readers:

    the whole row in its first columns, else title and value.
    """
    if column.key in ("attention", "task"):
        sentence = words.row_sentence(row.view, row.status)
        needs = column.text(row, now_ms) if column.key == "attention" else ""
        return f"{sentence}. {needs}" if needs else sentence
    if column.key in ("progress", "budget"):
        text = hint(row, column, now_ms)
    else:
        text = column.text(row, now_ms)
    return f"{column.long_title}: {text or words.NONE}"
