"""`octask doctor`: the report of the diagnosis."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from engine.cli.calls import await_answer, bare_settings, print_json, refuse
from engine.cli.options import place_options
from engine.doctor import examine
from engine.model.errors import EngineError


@click.command()
@place_options
def doctor(home: Path | None, root: Path | None, as_json: bool) -> None:
    """Look at browser, ledger, locks, limits and versions; a report to copy."""
    try:
        settings = bare_settings(home, root)
        await_answer(settings)
    except EngineError as error:
        refuse(error, as_json=as_json)
    report = examine(settings)
    if as_json:
        print_json(report.data())
    else:
        click.echo(report.text())
    sys.exit(0 if report.healthy else 1)
