"""The columns of the task table as data. No Qt.

A new column is one entry here, and its title `column.<key>` in `engine.text.messages`.
A text is made when its cell is painted. A sort value is a field of the `Row` where that is worth
the memory, otherwise a function here; None means that the task has no such value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from engine.contracts.completing import Guard
from engine.model.display import display
from engine.model.ledger_ids import plain_id
from engine.model.records import (
    ROUTES,
    TASK_RUN,
    EngineFields,
    RunChanges,
    Status,
    TaskRecord,
    Units,
)
from engine.model.status import is_orphan, moment, worked_until
from engine.query.attention_reasons import REFUSED_CODE
from engine.text import words
from engine.text.messages import ENGLISH, retold
from gui.tasks.row import Fullest, Row, fullest_of

NEAR: Final = 0.7  # Share of a budget from which the list shows it
# Most contracts kept; beyond that the cache is cleared and filled by visible rows.
MOST_CONTRACTS: Final = 5_000
_KNOWN: Final[dict[str, Guard]] = {}


def learn_contracts(found: Mapping[str, Guard]) -> frozenset[str]:
    """Store contract counts by contract id and return the ids that changed."""
    news = frozenset(one for one, said in found.items() if _KNOWN.get(one) != said)
    if len(_KNOWN) > MOST_CONTRACTS:
        _KNOWN.clear()
    _KNOWN.update(found)
    return news


def known_contract(contract_id: str | None) -> Guard | None:
    """Return the cached counts of a contract, or None while they are unknown."""
    return None if contract_id is None else _KNOWN.get(contract_id)


Text = Callable[[Row, float], str]
_MOST: Final = 300  # Longest text of one cell, in characters
_NO_RECORD: Final = TaskRecord(task_id="")
_NO_FIELDS: Final = EngineFields()
CONTRACTS: Final = ("refused", "forced", "open", "met", "ended")


def record_of(row: Row) -> TaskRecord:
    """Return the task record, or an empty record where it is unreadable."""
    entry = row.view.entry
    return entry if type(entry) is TaskRecord else _NO_RECORD


def _ours(row: Row) -> EngineFields:
    entry = row.view.entry
    return (entry.engine or _NO_FIELDS) if type(entry) is TaskRecord else _NO_FIELDS


def attention(row: Row, now_ms: float) -> str:
    if row.quiet:
        return words.say("attention.acknowledged")
    silence = now_ms - row.updated_at if row.updated_at is not None else 0
    return "; ".join(words.attention(reason, silence) for reason in row.needs)


def progress(row: Row, _now_ms: float) -> str:
    return words.progress(record_of(row).kind, row.view.units)


def time_left(row: Row, now_ms: float) -> str:
    if not row.running:
        return ""
    if row.stalled:
        return words.NONE
    return "" if row.ends_at is None else words.time_left(row.ends_at - now_ms)


def budget_of(row: Row, now_ms: float) -> Fullest | None:
    """Return the fullest budget at `now_ms`, or None while all are far from their limits.

    It is computed now, because time budgets run out without calls.
    """
    found = None if row.worst is None else fullest_of(record_of(row), now_ms)
    return found if found and (found.share >= NEAR or found.level != "ok") else None


def budget(row: Row, now_ms: float) -> str:
    found = budget_of(row, now_ms)
    return "" if found is None else found.text


def root(row: Row, _now_ms: float) -> str:
    return row.about.ledger or words.say("root.here")


def newness(row: Row) -> float | None:
    """Return the negative creation time, so that ages sort ascending."""
    return -row.created_at if row.created_at else None


def host(row: Row) -> str | None:
    return row.about.host or None


def error_folded(row: Row) -> str | None:
    error = record_of(row).error
    return None if error is None else error.message.casefold()


def error(row: Row, _now_ms: float) -> str:
    entry = row.view.entry
    if isinstance(entry, TaskRecord):
        return display(words.error_text(entry), _MOST) if entry.error is not None else ""
    return display(retold(entry.reason), _MOST)


def failures_of(row: Row) -> int | None:
    return (row.view.units.failed or None) if row.view.units is not None else None


def failures(row: Row, _now_ms: float) -> str:
    number = failures_of(row)
    return "" if number is None else words.count(number)


def contract_of(row: Row) -> int | None:
    """Return the state of the contract as an index into `CONTRACTS`, most urgent first."""
    record, ours = record_of(row), _ours(row)
    if ours.contract_id is None and record.kind != TASK_RUN:
        return None
    if record.error is not None and record.error.code == REFUSED_CODE:
        return 0
    if ours.forced_at is not None:
        return 1
    if not record.is_terminal:
        return 2
    return 3 if record.status == Status.COMPLETED else 4


def contract(row: Row, _now_ms: float) -> str:
    at = contract_of(row)
    if at is None:
        return ""
    state, counted = words.say(f"contract.{CONTRACTS[at]}"), known_contract(_ours(row).contract_id)
    if counted is None:
        return state
    done, failed = counted.completed_count, counted.failed_count
    units = Units(done, counted.expected_total, failed=failed)
    return words.say("contract.counted", state=state, progress=words.progress(TASK_RUN, units))


def forced_at(row: Row) -> float | None:
    return moment(_ours(row).forced_at)


def forced(row: Row, now_ms: float) -> str:
    at = forced_at(row)
    return "" if at is None else words.say("column.forced.at", at=words.clock(at, now_ms))


def phase_of(row: Row) -> str | None:
    return record_of(row).phase or None


def phase(row: Row, _now_ms: float) -> str:
    return display(record_of(row).phase or "", 40)


def client_of(row: Row) -> str | None:
    """Return the folded name of the client, or the route of one without a name."""
    about = row.about
    return about.client.casefold() or (about.route if about.route in ROUTES else None)


def client(row: Row, _now_ms: float) -> str:
    return words.client(row.about.client, row.about.route)


def parent_of(row: Row) -> str | None:
    return _ours(row).parent_task_id


def parent(row: Row, _now_ms: float) -> str:
    return display(plain_id(parent_of(row) or ""), 40)


def _changes(row: Row) -> RunChanges | None:
    link = _ours(row).schedule
    return None if link is None else link.changes


def changes_of(row: Row) -> int | None:
    """Return how many pages a scheduled run found changed; None where nothing was compared."""
    found = _changes(row)
    return None if found is None else found.total


def changes(row: Row, _now_ms: float) -> str:
    return words.changes(_changes(row))


def doing_of(row: Row) -> str | None:
    return (row.view.units.message or None) if row.live and row.view.units is not None else None


def doing(row: Row, _now_ms: float) -> str:
    return display(retold(doing_of(row) or ""), _MOST)


def started_at(row: Row) -> float | None:
    entry = row.view.entry
    return moment(entry.started_at) if type(entry) is TaskRecord else None


def started(row: Row, now_ms: float) -> str:
    return _clock(started_at(row), now_ms)


def ended_at(row: Row) -> float | None:
    entry = row.view.entry
    return None if row.live or type(entry) is not TaskRecord else moment(entry.ended_at)


def ended(row: Row, now_ms: float) -> str:
    return _clock(ended_at(row), now_ms)


def _clock(at_ms: float | None, now_ms: float | None) -> str:
    return "" if at_ms is None else words.clock(at_ms, now_ms)


def lasted(row: Row) -> float | None:
    """Return the duration in ms; for a running task, the time until its last update."""
    entry = row.view.entry
    if type(entry) is not TaskRecord:
        return None
    if row.live:
        until = row.updated_at if row.running else None
    else:
        until = worked_until(entry)
    began = None if until is None else moment(entry.started_at)
    return None if began is None or until is None else max(0.0, until - began)


def took(row: Row, now_ms: float) -> str:
    began = started_at(row)
    ms = now_ms - began if row.running and began is not None else lasted(row)
    return "" if ms is None else words.took(ms)


def average_of(row: Row) -> float | None:
    """Return units per second over the whole duration, including pauses; carried ones left out."""
    done = row.worked
    ms = lasted(row) if done else None
    return done / ms * 1000 if done and ms else None


def average(row: Row, _now_ms: float) -> str:
    return words.rate(average_of(row))


def owner_of(row: Row) -> str | None:
    """Return host and padded process id, so that owners sort by host, then by number."""
    record = record_of(row)
    if record.pid is None:
        return None
    return f"{record.engine.host or ''} {record.pid:>12}" if record.engine else f"{record.pid:>12}"


def owner(row: Row, _now_ms: float) -> str:
    return "" if record_of(row).pid is None else words.owner(row.view)


_TIMES = {"started": started_at, "ended": ended_at}


@dataclass(frozen=True, slots=True)
class Column:
    """Title, width, text, sort value and painting of one column.

    `width` and `least` count average characters; a column shrinks to `least` where room is short.
    With `yields` above 0 it is hidden before that, the highest value first. `paint` names the
    painting routine of the delegate. `words` is the prefix of the message ids of its texts: the
    longest of these texts fits in every language, beside an icon. A column that is `rare` is shown
    while a visible row has a value for it.
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
    rare: bool = False
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

    def copied(self, row: Row, now_ms: float) -> str:
        """Return the text for another program, where a time without a date is of no use later."""
        at = _TIMES.get(self.key)
        return self.text(row, now_ms) if at is None else _clock(at(row), None)

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
        attention,
        attrgetter("about.calm"),
        attrgetter("needs", "quiet"),
        paint="attention",
        align="center",
    ),
    Column(
        "status",
        16,
        lambda row, _: row.status,
        attrgetter("about.rank"),
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
        # Badges are in this cell; awaited tasks have a bell.
        lambda row: (row.name, row.awaited, *words.badges(row.view)),
        paint="task",
        least=26,
    ),
    Column(
        "kind",
        12,
        lambda row, _: row.kind,
        attrgetter("kind"),
        attrgetter("kind"),
        paint="kind",
        words="kind.",
        yields=2,
    ),
    Column(
        "root",
        14,
        root,
        attrgetter("about.ledger"),
        attrgetter("about.ledger"),
        least=8,
        beside=True,
    ),
    Column(
        "progress",
        26,
        progress,
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
        rare=True,
    ),
    Column(
        "eta",
        9,
        time_left,
        attrgetter("ends_at"),
        attrgetter("ends_at", "needs", "running"),
        align="right",
        ticks=True,
        moves=True,
        least=10,
        yields=1,
        rare=True,
    ),
    Column(
        "budget",
        15,
        budget,
        attrgetter("worst"),
        attrgetter("worst", "live"),
        paint="budget",
        ticks=True,
        least=13,
        yields=1,
        rare=True,
    ),
    Column(
        "changes",
        16,
        changes,
        changes_of,
        _changes,
        align="right",
        least=12,
        yields=2,
        rare=True,
    ),
    Column(
        "age",
        8,
        lambda row, now: words.age(row.created_at, now),
        newness,
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
    _more("host", 22, lambda row, _: display(row.about.host, 120), host),
    _more("error", 40, error, error_folded),
    _more("failures", 8, failures, failures_of, align="right", moves=True),
    _more("contract", 24, contract, contract_of),
    _more("forced", 22, forced, forced_at),
    _more("phase", 10, phase, phase_of),
    _more("doing", 30, doing, doing_of, moves=True),
    _more("started", 20, started, started_at),
    _more("ended", 20, ended, ended_at),
    _more(
        "took",
        12,
        took,
        lasted,
        shows=attrgetter("running", "view.entry"),
        align="right",
        ticks=True,
        moves=True,
    ),
    _more("average", 9, average, average_of, align="right", moves=True),
    _more("owner", 26, owner, owner_of),
    _more("parent", 18, parent, parent_of),
    _more(
        "client",
        18,
        client,
        client_of,
        shows=attrgetter("about.client", "about.route"),
        words="route.",
    ),
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
        named = row.name if not full or row.name in full else f"{row.name}\n{full}"
        return "\n".join([named, *_badge_hints(row, now_ms)])
    if column.key == "progress":
        return _progress_hint(row)
    if column.key == "budget":
        return _budget_hint(row, now_ms)
    if column.key == "client":
        return words.caller(record_of(row))
    if column.key == "changes":
        return words.changes(_changes(row), spoken=True)
    if column.key in ("age", "updated"):
        return words.clock(row.created_at if column.key == "age" else row.updated_at)
    return column.text(row, now_ms)


def _badge_hints(row: Row, now_ms: float) -> list[str]:
    """Return what the badges of a task mean, where their word alone does not say it."""
    entry = row.view.entry
    found, at = [], forced_at(row)
    if isinstance(entry, TaskRecord) and is_orphan(entry):
        found.append(words.say("badge.orphaned.tip"))
    if _ours(row).resumes:
        found.append(words.say("badge.resumed.tip"))
    if at is not None:
        found.append(words.say("badge.forced.tip", at=words.clock(at, now_ms)))
    return found


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
    found = budget_of(row, now_ms)
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
        sentence += f", {words.say('row.sentence.awaited')}" if row.awaited else ""
        needs = column.text(row, now_ms) if column.key == "attention" else ""
        return f"{sentence}. {needs}" if needs else sentence
    if column.key in ("progress", "budget", "changes"):
        text = hint(row, column, now_ms)
    else:
        text = column.text(row, now_ms)
    return f"{column.long_title}: {text or words.NONE}"
