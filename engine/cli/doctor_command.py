"""`octask doctor`: the report of the diagnosis, and the verification of a ledger."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from pathlib import Path

import click

from engine.cli.calls import Interrupts, await_answer, bare_settings, print_json, refuse
from engine.cli.exit_codes import CANCELLED
from engine.cli.options import place_options
from engine.doctor import Finding, Report, examine
from engine.doctor.verification import verification
from engine.logging.logs import log_to_file
from engine.model.config import Settings
from engine.model.errors import EngineError


@click.command()
@click.option(
    "--verify",
    is_flag=True,
    help="Start, list, cancel, kill and wait for crawls in a temporary folder.",
)
@place_options
def doctor(home: Path | None, root: Path | None, as_json: bool, verify: bool) -> None:
    """Look at browser, ledger, locks, limits and versions; a report to copy."""
    try:
        settings = bare_settings(home, root)
        if not verify:
            await_answer(settings)
    except EngineError as error:
        refuse(error, as_json=as_json)
    report = _verified(settings, as_json) if verify else examine(settings)
    if as_json:
        print_json(report.data())
    elif not verify:
        click.echo(report.text())
    sys.exit(0 if report.healthy else 1)


def _verified(settings: Settings, as_json: bool) -> Report:
    """Verify the ledger, and print each step when it has ended.

    Ctrl-C ends it after the current step, so that no process of it is left.
    """
    found: list[Finding] = []

    async def verify() -> str:
        async with aclosing(verification(settings)) as steps:
            with Interrupts(lambda: None) as interrupts:
                async for step in steps:
                    found.append(step)
                    if not as_json:
                        click.echo(step.line())
                    if interrupts.cause:
                        break
                return interrupts.cause

    log_to_file()
    if asyncio.run(verify()):
        sys.exit(CANCELLED)
    return Report(tuple(found))
