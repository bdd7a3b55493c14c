"""`octask watch`: a live table on a terminal, one line per change in a pipe."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from engine.cli.calls import Interrupts, call, check_there, print_json, refuse, settings_from
from engine.cli.exit_codes import OK
from engine.cli.hold_commands import hold_line
from engine.cli.options import place_options
from engine.cli.show import cells, rich_table
from engine.model.errors import EngineError
from engine.model.records import Hold, TaskRecord, TaskView
from engine.model.status import standing
from engine.service.engine import Batch, Engine
from engine.text import words
from engine.text.cli_messages import say
from engine.verbs.json_answers import view_data

REDRAW_S = 0.25  # fast enough to read, and a burst costs one table instead of hundreds


@click.command()
@click.option("--once", is_flag=True, help="Show the list once it is complete, and end.")
@place_options
def watch(once: bool, home: Path | None, root: Path | None, as_json: bool) -> None:
    """Show all tasks and keep the list up to date, until Ctrl-C."""
    try:
        settings = settings_from(home, root)
    except EngineError as error:
        refuse(error, as_json=as_json)
    if once:
        try:
            check_there(settings)
        except EngineError as error:
            refuse(error, as_json=as_json)
    live = sys.stdout.isatty() and not as_json and not once
    show = _Table(str(settings.root)) if live else _Lines(str(settings.root), as_json)
    call(settings, lambda engine: _follow(engine, show, once), as_json=as_json)
    sys.exit(OK)


async def _follow(engine: Engine, show: _Table | _Lines, once: bool) -> None:
    work = asyncio.create_task(_batches(engine, show, once), name="follow the ledger")
    with Interrupts(work.cancel), show:
        try:
            await work
        except asyncio.CancelledError:
            if not work.cancelled():
                raise  # this coroutine was cancelled, not `work`


async def _batches(engine: Engine, show: _Table | _Lines, once: bool) -> None:
    await engine.start_hold.read()
    engine.start_hold.follow()  # a change of the hold comes as a batch
    async for batch in engine.tasks.changes():
        show.show(batch, engine)
        if once and batch.complete:
            return


class _Lines:
    """One line per changed task: tab-separated, or JSON."""

    def __init__(self, root: str, as_json: bool) -> None:
        self._root = root
        self._as_json = as_json
        self._is_missing = False
        self._hold: Hold | None = None

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, batch: Batch, engine: Engine) -> None:
        gone = engine.health().watcher == "gone"
        if gone != self._is_missing:
            click.echo(say("watch.gone" if gone else "watch.back", root=self._root), err=True)
        self._is_missing = gone
        self._tell_hold(engine.start_hold.state)
        for view in batch.views:
            if self._as_json:
                print_json(view_data(view), indent=None)
            else:
                click.echo("\t".join(cells(view)))
        sys.stdout.flush()

    def _tell_hold(self, hold: Hold | None) -> None:
        if (hold is None) != (self._hold is None):
            click.echo(say("hold.ended") if hold is None else hold_line(hold), err=True)
        self._hold = hold


class _Table:
    """Table of the newest tasks that fit the terminal, redrawn at most four times a second."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._views: dict[str, TaskView] = {}
        self._console = Console()
        self._batch: Batch | None = None
        self._is_missing = False
        self._hold: Hold | None = None
        self._live = Live(  # draws at once, so the fields are set before
            console=self._console,
            screen=True,
            refresh_per_second=1 / REDRAW_S,
            get_renderable=self._draw,
        )

    def __enter__(self) -> _Table:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, batch: Batch, engine: Engine) -> None:
        self._batch = batch
        self._is_missing = engine.health().watcher == "gone"
        self._hold = engine.start_hold.state
        for view in batch.views:
            self._views[view.task_id] = view
        for task_id in batch.gone:
            self._views.pop(task_id, None)

    def _draw(self) -> Group:
        head = [Text(self._headline(), style="bold")]
        if self._hold is not None:
            head.append(Text(hold_line(self._hold), "yellow", no_wrap=True, overflow="ellipsis"))
        fits = max(1, self._console.height - 2 - len(head))
        newest = sorted(self._views.copy().values(), key=_created, reverse=True)[:fits]
        return Group(*head, rich_table(newest, self._console.width))

    def _headline(self) -> str:
        if self._is_missing:
            return say("watch.gone", root=self._root)
        if self._batch is not None and not self._batch.complete:
            loaded, total = words.count(self._batch.loaded), words.count(self._batch.total)
            return say("watch.loading", loaded=loaded, total=total)
        running = sum(standing(view) == "running" for view in self._views.copy().values())
        return say(
            "watch.summary", total=words.count(len(self._views)), running=running, root=self._root
        )


def _created(view: TaskView) -> tuple[float, str]:
    entry = view.entry
    created = entry.created_at if isinstance(entry, TaskRecord) else entry.seen_at
    return float(created), view.task_id
