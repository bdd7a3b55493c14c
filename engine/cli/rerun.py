"""`octask rerun ID`: a task's request once more, with progress or in a worker, like `start`."""

from __future__ import annotations

import sys
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
    try:
        settings = settings_from(home, root)
        if detached:
            _detach(settings, task_id, as_json)
            return
    except EngineError as error:
        refuse(error, as_json=as_json)
    show = progress_for(as_json)
    view = call(
        settings,
        lambda engine: foreground(engine, lambda: engine.rerun(task_id), show),
        accepts=True,
        as_json=as_json,
    )
    report(view, settings.root, as_json)
    sys.exit(status_code(view))


def _detach(settings: Settings, task_id: str, as_json: bool) -> None:
    asked: Asked = call(settings, lambda engine: engine.asked(task_id), as_json=as_json)
    parent = call(settings, lambda engine: engine.ledger_id(task_id), as_json=as_json)
    request = {"kind": asked.kind, "args": asked.args, "name": asked.name, "parent": parent}
    record = detach(settings, {**request, "terms": to_builtins(asked.terms)})
    print_json(record) if as_json else click.echo(record["task_id"])
