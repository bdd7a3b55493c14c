"""`octask rerun ID`, `octask retry ID`: start a task's request, or its failed part, again.

With progress or in a worker, like `start`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from engine.cli.calls import call, print_json, refuse, settings_from
from engine.cli.hold_commands import note_hold
from engine.cli.known_ids import complete_param, whole_task_id
from engine.cli.machine_options import machine_arguments, machine_options
from engine.cli.options import place_options
from engine.cli.run_files import allow_files_option, check_folder, read_variables
from engine.cli.start import follow
from engine.model.config import Settings
from engine.model.errors import EngineError
from engine.service.rerun import Asked
from engine.service.worker_process import detach

if TYPE_CHECKING:
    from engine.model.records import TaskRecord
    from engine.service.engine import Engine

Read = Callable[["Engine"], Awaitable[Asked]]


def rerun_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of both commands; their values are never stored."""
    for option in (
        click.option(
            "--detach", "detached", is_flag=True, help="Run in the background; print the id."
        ),
        allow_files_option,
        click.option(
            "--variables",
            metavar="FILE",
            help="A JSON object with the variables of a command task, which are kept nowhere.",
        ),
    ):
        command = option(command)
    return machine_options(command)


@click.command()
@click.argument("task_id", metavar="ID", shell_complete=complete_param)
@rerun_options
@place_options
def rerun(task_id: str, home: Path | None, root: Path | None, as_json: bool, **given: Any) -> None:
    """Start a task's request once more, as a new task.

    Only where it is known whole: what was secret, or too long, was not written down. Values of
    variables are given again with --variables. A cluster or a remote browser that the task names
    is used again, unless an option names another one.
    """
    settings, values, task_id = _settings(task_id, home, root, given, as_json)
    _begin(settings, task_id, lambda engine: engine.requests.asked(task_id, values), given, as_json)


@click.command()
@click.argument("task_id", metavar="ID", shell_complete=complete_param)
@rerun_options
@place_options
def retry(task_id: str, home: Path | None, root: Path | None, as_json: bool, **given: Any) -> None:
    """Start a new task over what failed in an ended one.

    Of a crawl its failed pages (not those that robots.txt forbids) and the pages that its
    contract names and nobody visited; of a command task all from the last `goto` before the
    failed command on. A cluster or a remote browser that the task names is used again, unless an
    option names another one.
    """

    async def left(engine: Engine) -> Asked:
        return (await engine.requests.remainder(task_id, values)).whole

    settings, values, task_id = _settings(task_id, home, root, given, as_json)
    _begin(settings, task_id, left, given, as_json)


def _settings(
    typed: str, home: Path | None, root: Path | None, given: Mapping[str, Any], as_json: bool
) -> tuple[Settings, dict[str, Any], str]:
    """Return the settings, with the upload folder, the variables, and the whole task id."""
    allowed = given["allow_files"]
    try:
        check_folder(allowed)
        values = read_variables(given["variables"])
        settings = replace(settings_from(home, root), allow_files=allowed)
        return settings, values, whole_task_id(settings, typed)
    except EngineError as error:
        refuse(error, as_json=as_json)


def _begin(
    settings: Settings, task_id: str, read: Read, given: Mapping[str, Any], as_json: bool
) -> None:
    """Start the request that `read` returns, on the machines of the options."""

    async def changed(engine: Engine) -> Asked:
        found = await read(engine)
        return replace(found, args={**found.args, **machine_arguments(given)})

    async def begin(engine: Engine) -> TaskRecord:
        return await engine.requests.start_after(task_id, await changed(engine))

    if given["detached"]:
        _detach(settings, task_id, changed, as_json)
    else:
        follow(settings, begin, as_json)


def _detach(settings: Settings, task_id: str, read: Read, as_json: bool) -> None:
    asked: Asked = call(settings, read, as_json=as_json)
    parent = call(settings, lambda engine: engine.tasks.ledger_id(task_id), as_json=as_json)
    request = {"kind": asked.kind, "args": asked.args, "name": asked.name, "parent": parent}
    try:
        record = detach(settings, {**request, "terms": to_builtins(asked.terms)})
    except EngineError as error:
        refuse(error, as_json=as_json)
    print_json(record) if as_json else click.echo(record["task_id"])
    note_hold(settings)
