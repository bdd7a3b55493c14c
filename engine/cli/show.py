"""What the verbs found: text for people, JSON for programs. Foreign text is made safe first."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from engine import words
from engine.attention import moment, standing, updated_at
from engine.cli.calls import described
from engine.cli.phrases import say
from engine.display import display, display_lines
from engine.errors import EngineError
from engine.records import Status, TaskEvent, TaskRecord, TaskView, Unreadable
from engine.service import Engine

_STEERING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
CHECKED_BYTES = 64 * 1024 * 1024  # a larger result is copied as it stands: it may not fit in memory

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


def json_text(data: object, indent: int | None = 2) -> str:
    """`data` as JSON that no terminal obeys and every one can show: what could steer it, and
    halves of surrogate pairs, stand as escapes."""
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def as_json(data: object, indent: int | None = 2) -> None:
    """One JSON document on standard output."""
    click.echo(json_text(data, indent))


def record_data(record: TaskRecord | Unreadable) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(record)
    return found


def view_data(view: TaskView) -> dict[str, Any]:
    """A view as data: the record, and beside it what was derived."""
    derived: dict[str, Any] = {
        "standing": standing(view).value,
        "orphaned": view.orphaned,
        "foreign": view.foreign,
        "updated_at": updated_at(view),
    }
    if view.units is not None:
        derived["units"] = msgspec.to_builtins(view.units)
    return {**record_data(view.entry), "view": derived}


def now_ms() -> float:
    return time.time() * 1000


def table(views: Sequence[TaskView], root: str) -> None:
    """A table on a terminal, tab-separated lines in a pipe."""
    if not sys.stdout.isatty():
        for view in views:
            click.echo("\t".join(cells(view)))
        return
    if not views:
        click.echo(say("list.none", root=root))
        return
    Console().print(rich_table(views))


def rich_table(views: Iterable[TaskView]) -> Table:
    """The table that `list` prints and `watch` keeps up to date."""
    made = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for title, options in (
        ("Id", {"no_wrap": True, "width": 16}),
        ("Status", {"no_wrap": True, "min_width": 11}),
        ("Kind", {"no_wrap": True, "max_width": 18}),
        ("Progress", {"no_wrap": True, "justify": "right"}),
        ("Age", {"no_wrap": True, "justify": "right"}),
        ("Updated", {"no_wrap": True, "justify": "right"}),
        ("Task", {"no_wrap": True, "ratio": 1, "overflow": "ellipsis"}),
    ):
        made.add_column(title, **options)
    for view in views:
        task_id, status, *rest = cells(view)
        colour = COLOURS.get(standing(view).value, "")
        made.add_row(Text(task_id), Text(status, style=colour), *map(Text, rest))
    return made


def cells(view: TaskView) -> list[str]:
    entry, now = view.entry, now_ms()
    kind = "" if isinstance(entry, Unreadable) else display(entry.kind, 40)
    created = None if isinstance(entry, Unreadable) else moment(entry.created_at)
    return [
        view.task_id,
        words.status_word(view),
        kind,
        words.progress(kind, view.units),
        words.ago(created, now),
        words.ago(updated_at(view), now),
        words.task_name(view),
    ]


async def task(engine: Engine, task_id: str, result: bool, events: bool, json_wanted: bool) -> None:
    """One task: its record, then its events and its result if they were asked for."""
    view = await engine.get(task_id)
    if json_wanted:
        await _task_json(engine, view, result, events)
        return
    click.echo("\n".join(_task_lines(view)))
    if events:
        click.echo("")
        async for event in every_event(engine, task_id):
            click.echo(event_line(event))
    if result:
        click.echo("")
        if not await _copy_result(engine, task_id):
            click.echo(say("result.none"), err=True)


async def _task_json(engine: Engine, view: TaskView, result: bool, events: bool) -> None:
    readable = not isinstance(view.entry, Unreadable)
    meta = await engine.meta(view.task_id) if readable else record_data(view.entry)
    parts = {"meta": meta, "view": view_data(view)["view"]}
    if events:
        parts["events"] = [msgspec.to_builtins(e) async for e in every_event(engine, view.task_id)]
    if not result:
        as_json(parts)
        return
    # The result may be large: it is copied through as it stands instead of parsed.
    click.echo(json_text(parts)[:-2] + ',\n  "result": ', nl=False)
    if not await _copy_result(engine, view.task_id, checked=True):
        click.echo("null", nl=False)
    click.echo("\n}")


async def _copy_result(engine: Engine, task_id: str, checked: bool = False) -> bool:
    """Write the result out; `checked`: only if it is one JSON value. False: nothing written."""
    source = await engine.result(task_id)
    if source is None:
        return False
    with source:
        if checked and not _is_json(source):
            click.echo(say("result.damaged"), err=True)
            return False
        sys.stdout.flush()
        if sys.stdout.isatty():  # a terminal would obey what a page has put in
            for line in io.TextIOWrapper(source, "utf-8", "replace"):
                click.echo(display_lines(line), nl=False)
        else:
            shutil.copyfileobj(source, sys.stdout.buffer)
            sys.stdout.buffer.flush()
    click.echo("")
    return True


def _is_json(source: BinaryIO) -> bool:
    if source.seek(0, io.SEEK_END) <= CHECKED_BYTES:
        source.seek(0)
        try:
            msgspec.json.Decoder(msgspec.Raw).decode(source.read())
        except (msgspec.MsgspecError, RecursionError):
            return False
    source.seek(0)
    return True


async def every_event(engine: Engine, task_id: str) -> Any:
    """All events of a task, oldest first, read slice by slice."""
    offset = 0
    while True:
        part = await engine.events(task_id, offset)
        for event in part.events:
            yield event
        if part.next_offset == offset:
            return
        offset = part.next_offset


def event_line(event: TaskEvent) -> str:
    """`14:02:11  progress  {"unitsDone": 3}` — one line, whatever the event says."""
    data = json.dumps(event.data, ensure_ascii=False) if event.data else ""
    return f"{words.clock(moment(event.ts))}  {display(event.kind, 40):<16} {display(data, 2000)}"


def _task_lines(view: TaskView) -> list[str]:
    entry = view.entry
    lines = [f"{view.task_id}  {words.status_word(view)}  {words.task_name(view)}"]
    if isinstance(entry, Unreadable):
        return [
            *lines,
            say("field.reason", value=display(entry.reason)),
            say("field.file", value=display(entry.path)),
        ]
    facts = {
        "why": words.why(view, now_ms()),
        "kind": display(entry.kind),
        "progress": words.progress(entry.kind, view.units),
        "created": words.clock(moment(entry.created_at)),
        "started": words.clock(moment(entry.started_at)),
        "ended": words.clock(moment(entry.ended_at)),
        "error": f"{entry.error.message} [{entry.error.code}]" if entry.error else "",
    }
    lines += [f"{name + ':':<10} {display(text)}" for name, text in facts.items() if text]
    arguments = json.dumps(entry.args_summary, ensure_ascii=False, indent=2)
    return [*lines, say("field.arguments"), display_lines(arguments)]


def cancelled(done: list[TaskRecord], refused: list[EngineError], json_wanted: bool) -> None:
    """Which tasks were asked to stop, which had ended, which refused."""
    if json_wanted:
        as_json(
            {
                "tasks": [record_data(record) for record in done],
                "refused": [described(error) for error in refused],
            }
        )
        return
    for record in done:
        click.echo(f"{record.task_id}  {_cancel_word(record)}")
    for error in refused:
        click.echo(display(f"{error} {error.advice}"), err=True)


def _cancel_word(record: TaskRecord) -> str:
    if not record.is_terminal:
        return say("cancel.asked")
    if record.status == Status.CANCELLED:
        return Status.CANCELLED.value
    return say("cancel.already", status=record.status)


def ended(record: TaskRecord, json_wanted: bool) -> None:
    """A task that has ended, in one line."""
    if json_wanted:
        as_json(record_data(record))
        return
    reason = f": {display(record.error.message)}" if record.error else ""
    click.echo(f"{record.task_id}  {display(record.status)}{reason}")


def reaped(ended: list[TaskRecord], left: Sequence[EngineError], json_wanted: bool) -> None:
    """What was ended of dead processes, and what could not be."""
    if json_wanted:
        tasks = [record_data(record) for record in ended]
        as_json({"reaped": tasks, "refused": [described(error) for error in left]})
        return
    for record in ended:
        reason = display(record.error.message if record.error else "")
        click.echo(f"{record.task_id}  FAILED: {reason}")
    for error in left:
        click.echo(display(f"{error} {error.advice}"), err=True)
    if not ended and not left:
        click.echo(say("reap.none"))
