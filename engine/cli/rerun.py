"""`octask rerun ID`, `octask retry ID`: a task's request, or what of it failed, once more.

With progress or in a worker, like `start`.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import click
from msgspec import to_builtins

from engine.again import Asked
from engine.cli.calls import call, refuse, status_code
from engine.cli.detach import detach
from engine.cli.escaped import as_json as print_json
from engine.cli.place import place_options, settings_from
from engine.cli.progress import progress_for
from engine.cli.start import foreground, report
from engine.config import Settings
from engine.errors import EngineError
from engine.records import TaskRecord
from engine.remainder import NothingToRetry
from engine.service import Engine

Begin = Callable[[Engine], Awaitable[TaskRecord]]
Read = Callable[[Engine], Awaitable[Asked]]


@click.command()
@click.argument("task_id", metavar="ID")
@click.option("--detach", "detached", is_flag=True, help="Run in the background; print the id.")
@place_options
def rerun(
    task_id: str, detached: bool, home: Path | None, root: Path | None, as_json: bool
) -> None:
    """Start a task's request once more, as a new task.

    Only where it is known whole: what was secret, or too long, was not written down.
    """
    settings = _settings(home, root, as_json)
    if detached:
        _detach(settings, task_id, lambda engine: engine.asked(task_id), as_json)
    else:
        _follow(settings, lambda engine: engine.rerun(task_id), as_json)


@click.command()
@click.argument("task_id", metavar="ID")
@click.option("--detach", "detached", is_flag=True, help="Run in the background; print the id.")
@place_options
def retry(
    task_id: str, detached: bool, home: Path | None, root: Path | None, as_json: bool
) -> None:
    """Start a new task over what failed in an ended one.

    Of a crawl its failed pages (not those that robots.txt forbids) and the pages that its
    contract names and nobody visited; of a command task all from the last `goto` before the
    failed command on.
    """

    async def left(engine: Engine) -> Asked:
        request = (await engine.remainder(task_id)).request
        if request is None:
            raise NothingToRetry(task_id=task_id)
        return request

    settings = _settings(home, root, as_json)
    if detached:
        _detach(settings, task_id, left, as_json)
    else:
        _follow(settings, lambda engine: engine.retry(task_id), as_json)


def _settings(home: Path | None, root: Path | None, as_json: bool) -> Settings:
    try:
        return settings_from(home, root)
    except EngineError as error:
        refuse(error, as_json=as_json)


def _follow(settings: Settings, begin: Begin, as_json: bool) -> None:
    """Show the new task until it has ended, and end the program with its exit code."""
    show = progress_for(as_json)
    view = call(
        settings,
        lambda engine: foreground(engine, lambda: begin(engine), show),
        accepts=True,
        as_json=as_json,
    )
    report(view, settings.root, as_json)
    sys.exit(status_code(view))


def _detach(settings: Settings, task_id: str, read: Read, as_json: bool) -> None:
    asked: Asked = call(settings, read, as_json=as_json)
    parent = call(settings, lambda engine: engine.ledger_id(task_id), as_json=as_json)
    request = {"kind": asked.kind, "args": asked.args, "name": asked.name, "parent": parent}
    try:
        record = detach(settings, {**request, "terms": to_builtins(asked.terms)})
    except EngineError as error:
        refuse(error, as_json=as_json)
    print_json(record) if as_json else click.echo(record["task_id"])
