"""Recordings on the command line: options, stop and export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
import msgspec

from engine.cli.calls import call, print_json
from engine.model.config import Settings
from engine.model.display import display
from engine.text.cli_messages import say
from engine.verbs.model import Verb


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
