"""Recordings on the command line: options, stop and export."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import click
import msgspec

from engine.cli.calls import call
from engine.cli.escaped import as_json as print_json
from engine.model.config import Settings
from engine.model.display import display
from engine.text.cli_messages import say
from engine.verbs.model import Verb

OPTIONS: Final[Mapping[str, str]] = {
    "label": "What it is called, also in what it is exported as.",
    "duration_ms": "End after so many ms (when it is stopped or its window closed).",
    "screenshots": "each, navigation or none (navigation).",
}
FLAGS: Final[Mapping[str, str]] = {
    "headless": "Without a window; another program drives it.",
    "keep_text": "Keep what is typed; passwords and card numbers never.",
}

Command = Callable[..., None]


def recording_options(command: Command) -> Command:
    """Add one option for each argument of a recording; values stay texts."""
    for name, text in reversed(tuple(FLAGS.items())):
        option = "--" + name.replace("_", "-")
        command = click.option(option, name, is_flag=True, callback=_as_typed, help=text)(command)
    for name, text in reversed(tuple(OPTIONS.items())):
        option = "--" + name.replace("_", "-")
        command = click.option(option, name, multiple=True, metavar="VALUE", help=text)(command)
    return command


def _as_typed(_: click.Context, __: click.Parameter, on: bool) -> tuple[str, ...]:
    return ("true",) if on else ()


def stop(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Request a regular end of a recording."""
    record = call(settings, lambda engine: verb.call(engine, given), as_json=as_json)
    if as_json:
        print_json(msgspec.to_builtins(record))
        return
    said = "stop.ended" if record.is_terminal else "stop.asked"
    click.echo(say(said, task_id=record.task_id, status=record.status))


def export(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Export a recording for another program, and list the inputs that a replay needs."""
    made = call(settings, lambda engine: verb.call(engine, given), as_json=as_json)
    if as_json:
        print_json(msgspec.to_builtins(made))
        return
    click.echo(say("recording.written", path=display(made.path), format=made.format))
    if made.format != "task":
        return
    for one in made.not_replayed:
        why = display(str(one.get("why")), 200)
        click.echo(say("recording.left_out", action=one.get("action"), why=why), err=True)
    if made.uploads:
        click.echo(say("recording.uploads", names=display(", ".join(made.uploads), 400)))
    if made.variables:
        names = display(", ".join(made.variables), 400)
        click.echo(say("recording.variables", names=names, task_id=made.task_id))
