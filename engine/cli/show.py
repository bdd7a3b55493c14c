"""Output of verbs: text for users, JSON for programs. Untrusted text is sanitised."""

from __future__ import annotations

import codecs
import io
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click
import msgspec

from engine.cli.calls import json_text, print_json
from engine.ledger import holes
from engine.model import redact
from engine.model.display import display, display_lines
from engine.model.errors import EngineError
from engine.model.records import RunChanges, TaskEvent, TaskId, TaskRecord, TaskView, Unreadable
from engine.model.status import moment, standing, updated_at
from engine.results.findings import is_json
from engine.text import words
from engine.text.cli_messages import say
from engine.text.messages import ENGLISH
from engine.verbs.json_answers import changed_data, view_data

if TYPE_CHECKING:
    from rich.table import Table

    from engine.service.engine import Engine

CHECKED_BYTES = 64 * 1024 * 1024  # a larger result is copied unchecked
COPIED_CHARS = 64 * 1024

COLOURS = {
    "pending": "dim",
    "running": "cyan",
    "cancelling": "yellow",
    "completed": "green",
    "failed": "red",
    "cancelled": "yellow",
    "orphaned": "magenta",
    "unreadable": "magenta",
}


def now_ms() -> float:
    return time.time() * 1000


def table(views: Sequence[TaskView], root: str) -> None:
    """Print a table on a terminal, tab-separated lines in a pipe."""
    if not sys.stdout.isatty():
        for view in views:
            click.echo("\t".join(cells(view)))
        return
    if not views:
        click.echo(say("list.none", root=root))
        return
    from rich.console import Console  # a pipe gets no table

    console = Console()
    console.print(rich_table(views, console.width))


_TITLES: Final = ("Id", "Status", "Kind", "Progress", "Age", "Updated", "Changes", "Task")
TASK_CHARS: Final = 24  # least width of the names in a table
# What a narrow terminal leaves out, the first first; the details of a task have all of it.
_LEFT_OUT: Final = ("Kind", "Age", "Changes", "Updated", "Progress")
_AT_RIGHT: Final = frozenset({"Progress", "Age", "Updated", "Changes"})


def rich_table(views: Iterable[TaskView], width: int) -> Table:
    """Build the table of `list` and `watch` for a terminal of `width` characters.

    It has changes only while a task has some, and fewer columns where names had no room.
    """
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    columns: dict[str, list[Text]] = {title: [] for title in _TITLES}
    for view in views:
        for title, text in zip(columns, _table_cells(view), strict=True):
            colour = COLOURS.get(standing(view).value, "") if title == "Status" else ""
            columns[title].append(Text(text, style=colour))
    if not any(text.plain for text in columns["Changes"]):
        del columns["Changes"]
    needs = {
        title: max(cell_len(title), *(text.cell_len for text in texts), 0) + 1
        for title, texts in columns.items()
        if title != "Task"
    }
    for title in _LEFT_OUT:
        if sum(needs.values()) + TASK_CHARS <= width:
            break
        if needs.pop(title, None) is not None:
            del columns[title]
    made = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for title in columns:
        if title == "Task":
            made.add_column(title, no_wrap=True, ratio=1, overflow="ellipsis")
        else:
            made.add_column(
                title,
                no_wrap=True,
                justify="right" if title in _AT_RIGHT else "left",
                width=needs[title] - 1,
            )
    for row in zip(*columns.values(), strict=True):
        made.add_row(*row)
    return made


def _table_cells(view: TaskView) -> tuple[str, ...]:
    task_id, status, kind, progress, age, updated, task = cells(view)
    changes = words.changes(changes_of(view))
    return (task_id, status, words.kind_name(kind), progress, age, updated, changes, task)


def changes_of(view: TaskView) -> RunChanges | None:
    """Return the changes that a scheduled run found, where it was compared."""
    ours = view.entry.engine if isinstance(view.entry, TaskRecord) else None
    return ours.schedule.changes if ours is not None and ours.schedule is not None else None


def cells(view: TaskView) -> list[str]:
    """Return the columns of a task in a pipe; its kind is the one that filters take."""
    entry, now = view.entry, now_ms()
    kind = "" if isinstance(entry, Unreadable) else entry.kind
    created = None if isinstance(entry, Unreadable) else moment(entry.created_at)
    return [
        view.task_id,
        words.status_word(view),
        display(kind, 40),
        words.progress(kind, view.units),
        words.age(created, now),
        words.age(updated_at(view), now),
        words.task_name(view) + "".join(f" ({mark})" for mark in words.badges(view, foreign=False)),
    ]


async def task(
    engine: Engine, view: TaskView, facts: Sequence[str], *, result: bool, events: bool
) -> bool:
    """Print one task: record and facts of its kind, then events and result on request.

    Returns False if the result is damaged.
    """
    click.echo("\n".join(_task_lines(view, facts)))
    if events:
        click.echo("")
        async for event in every_event(engine, view.task_id):
            click.echo(event_line(event))
    if result:
        click.echo("")
        source = await engine.tasks.result(view.task_id)
        if source is not None:
            return _copy_result(source, checked=False) == _Result.WHOLE
        over = isinstance(view.entry, TaskRecord) and view.entry.is_terminal
        click.echo(say("result.none.ended" if over else "result.none"), err=True)
    return True


async def task_json(
    engine: Engine, parts: Mapping[str, Any], task_id: str, *, result: bool, events: bool
) -> bool:
    """Print one task as a JSON document: `parts`, then events and result on request.

    Returns False if the result is damaged, and null in the document.
    """
    # Open both first, so that an error is reported before any output.
    if events:
        await engine.tasks.events(task_id)
    source = await engine.tasks.result(task_id) if result else None
    # Events and result may exceed memory, so they are copied in chunks.
    click.echo(json_text(parts)[:-2], nl=False)
    if events:
        click.echo(',\n  "events": [', nl=False)
        lead = "\n    "
        async for event in every_event(engine, task_id):
            click.echo(lead + json_text(msgspec.to_builtins(event), indent=None), nl=False)
            lead = ",\n    "
        click.echo("\n  ]", nl=False)
    copied = _Result.WHOLE
    if result:
        click.echo(',\n  "result": ', nl=False)
        if source is not None:
            copied = _copy_result(source, checked=True)
        if source is None or copied == _Result.LEFT_OUT:
            click.echo("null", nl=False)
    click.echo("\n}")
    return copied == _Result.WHOLE


class _Result(Enum):
    """What was printed of a result."""

    WHOLE = "whole"
    AS_IT_STANDS = "as it stands"
    LEFT_OUT = "left out"


def _copy_result(source: BinaryIO, *, checked: bool) -> _Result:
    """Copy the result to standard output; `checked`: only if it is one JSON value."""
    with source:
        is_valid = _is_json(source)
        if checked and not is_valid:
            click.echo(say("result.damaged"), err=True)
            return _Result.LEFT_OUT
        sys.stdout.flush()
        to_terminal = sys.stdout.isatty()  # it would execute escapes of a page
        text = codecs.getincrementaldecoder("utf-8")("replace")
        lacks_bytes = False
        for piece in holes.written(source, COPIED_CHARS):  # not by line: it may be one line
            lacks_bytes = lacks_bytes or not piece
            if to_terminal:
                click.echo(display_lines(text.decode(piece)), nl=False)
            else:
                sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    click.echo("")
    if lacks_bytes or not is_valid:
        click.echo(say("result.holes" if lacks_bytes else "result.as_it_stands"), err=True)
        return _Result.AS_IT_STANDS
    return _Result.WHOLE


def _is_json(source: BinaryIO) -> bool:
    """Check a result in chunks; one larger than `CHECKED_BYTES` is not checked, for time."""
    if not source.seekable():
        return True  # it is generated while read, and larger than the limit
    is_large = source.seek(0, io.SEEK_END) > CHECKED_BYTES
    source.seek(0)
    is_valid = not holes.has_hole(source) if is_large else is_json(source)
    source.seek(0)
    return is_valid


async def every_event(engine: Engine, task_id: str) -> Any:
    """Yield all events of a task, oldest first, read in slices; then report unreadable lines."""
    offset = skipped = 0
    while True:
        part = await engine.tasks.events(task_id, offset)
        for event in part.events:
            yield event
        skipped += part.skipped
        if part.next_offset == offset:
            break
        offset = part.next_offset
    if skipped:
        plural = "events.skipped.one" if skipped == 1 else "events.skipped"
        click.echo(f"events.jsonl: {ENGLISH[plural].format(count=skipped)}", err=True)


def event_line(event: TaskEvent) -> str:
    """Format `14:02:11  progress  {"unitsDone": 3}`, always on one line."""
    data = json.dumps(event.data, ensure_ascii=False) if event.data else ""
    return f"{words.clock(moment(event.ts))}  {display(event.kind, 40):<16} {display(data, 2000)}"


def _task_lines(view: TaskView, more: Sequence[str]) -> list[str]:
    entry = view.entry
    lines = [f"{view.task_id}  {words.status_word(view)}  {words.task_name(view)}"]
    if isinstance(entry, Unreadable):
        return [
            *lines,
            say("field.reason", value=display(entry.reason)),
            say("field.file", value=display(entry.path)),
        ]
    told = {
        "why": words.why(view, now_ms()),
        "kind": words.kind_name(entry.kind),
        "progress": words.progress(entry.kind, view.units),
        "changes": words.changes(changes_of(view), spoken=True),
        "created": words.clock(moment(entry.created_at)),
        "started": words.clock(moment(entry.started_at)),
        "ended": words.clock(moment(entry.ended_at)) if entry.is_terminal else "",
        "cancelled": _cancel(entry),
        "error": f"{entry.error.message} [{entry.error.code}]" if entry.error else "",
    }
    lines += [f"{name + ':':<10} {display(text)}" for name, text in told.items() if text]
    arguments = json.dumps(redact.value(entry.args_summary), ensure_ascii=False, indent=2)
    return [*lines, *more, say("field.arguments"), display_lines(arguments)]


def _cancel(record: TaskRecord) -> str:
    """Return when and why a stop was requested, or "" if it was not."""
    if record.cancel_requested_at is None:
        return ""
    at = words.clock(moment(record.cancel_requested_at))
    reason = record.engine.cancel_reason if record.engine is not None else None
    return f"{at}: {reason}" if reason else at


def ended(view: TaskView, json_wanted: bool) -> None:
    """Print an ended task in one line."""
    if json_wanted:
        print_json(view_data(view))
        return
    click.echo(_end_line(view))


def _end_line(view: TaskView) -> str:
    entry = view.entry
    if isinstance(entry, Unreadable):
        return f"{entry.task_id}  {display(entry.reason)}"
    reason = f": {display(entry.error.message)}" if entry.error else ""
    return f"{entry.task_id}  {display(entry.status)}{reason}"


def reaped(
    ended: Sequence[TaskView],
    left: Sequence[EngineError],
    unjudged: Mapping[TaskId, str],
    json_wanted: bool,
) -> None:
    """Print reaped tasks, failures, and tasks that cannot be judged from this machine."""
    if json_wanted:
        print_json(changed_data(ended, left))
        return
    for view in ended:
        click.echo(_end_line(view))
    for error in left:
        click.echo(display(f"{error} {error.advice}"), err=True)
    for task_id, why in unjudged.items():
        click.echo(say("reap.unjudged", task_id=task_id, why=display(why)))
    if not ended and not left:
        click.echo(say("reap.none"))
