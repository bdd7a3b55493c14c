"""Output of runs and envelopes: a table of runs, and the state after an update."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from engine.cli.calls import call, print_json
from engine.cli.show import now_ms
from engine.model.config import Settings
from engine.model.display import display
from engine.model.records import TaskView, Unreadable
from engine.text import words
from engine.text.cli_messages import say
from engine.verbs import Verb
from engine.verbs.json_answers import view_data

if TYPE_CHECKING:
    from rich.table import Table

    from engine.service.engine import Engine

COLUMNS: Final = ("runId", "status", "startedAt", "completedAt", "route", "agentId", "taskThreadId")
TITLES: Final = ("Run", "Status", "Started", "Duration", "Via", "Agent", "Task")
SHOWN: Final = 80  # characters of one value in a table


def runs_list(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Print a table on a terminal, tab-separated lines in a pipe."""
    found = call(settings, lambda engine: verb.call(engine, given), as_json=as_json)
    if as_json:
        print_json({"runs": found, "count": len(found)})
    elif not sys.stdout.isatty():
        for run in found:
            click.echo("\t".join(_cells(run)))
    elif not found:
        click.echo(say("runs.none"))
    else:
        from rich.console import Console  # a pipe gets no table

        Console().print(_table(found))


def print_envelope(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Print an envelope after a change: id, state and phase."""

    async def ask(engine: Engine) -> TaskView:
        return await engine.tasks.get((await verb.call(engine, given)).task_id)

    view = call(settings, ask, as_json=as_json)
    if as_json:
        print_json(view_data(view))
    else:
        phase = "" if isinstance(view.entry, Unreadable) else display(view.entry.phase or "", 40)
        click.echo("  ".join((view.task_id, words.status_word(view), phase)))


def _cells(run: Mapping[str, Any]) -> list[str]:
    return [display(str(run.get(name, "")), SHOWN) for name in COLUMNS]


def _table(found: list[dict[str, Any]]) -> Table:
    """Build the table with local times, and a duration instead of the end time."""
    from rich.table import Table
    from rich.text import Text

    made, now = Table(box=None, pad_edge=False, header_style="bold"), now_ms()
    for title in TITLES:
        made.add_column(title, no_wrap=title not in ("Run", "Agent"), overflow="fold")
    for run in found:
        run_id, status, started, ended, *rest = _cells(run)
        began, over = _at_ms(started), _at_ms(ended)
        took = words.took(over - began) if began is not None and over is not None else ""
        made.add_row(*map(Text, (run_id, status, words.clock(began, now), took, *rest)))
    return made


def _at_ms(stamp: str) -> float | None:
    """Parse a time of the record to ms since 1970; None if it is invalid."""
    try:
        return datetime.fromisoformat(stamp).timestamp() * 1000
    except (ValueError, OverflowError):
        return None


RENDERERS: Final[dict[str, Callable[[Verb, Settings, Mapping[str, Any], bool], None]]] = {
    "runs list": runs_list,
    "update": print_envelope,
    "finish": print_envelope,
}
