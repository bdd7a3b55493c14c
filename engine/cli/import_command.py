"""`octask import FILE…`: bring tasks that were exported as zip files into this ledger."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from engine.cli.calls import Interrupts, call, exit_code, print_json, settings_from
from engine.cli.exit_codes import CANCELLED, OK
from engine.cli.options import place_options
from engine.cli.progress import ByteBar
from engine.ledger.task_import import Imported, ImportProgress, ImportStopped
from engine.model.display import display
from engine.model.errors import EngineError
from engine.text.cli_messages import say
from engine.text.words import size_words
from engine.verbs.json_answers import described

if TYPE_CHECKING:
    from engine.service.engine import Engine

Outcome = Imported | EngineError


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@place_options
def import_tasks(
    files: tuple[str, ...], home: Path | None, root: Path | None, as_json: bool
) -> None:
    """Bring tasks that were exported as zip files into this ledger.

    Each keeps its id, and is read, compared and exported like a task of this machine. A file that
    cannot be imported changes nothing, and the others are imported all the same.
    """

    async def work(engine: Engine) -> list[tuple[str, Outcome]]:
        found: list[tuple[str, Outcome]] = []
        for file in files:
            found.append((file, outcome := await _import(engine, file, shown=not as_json)))
            if isinstance(outcome, ImportStopped):
                break
        return found

    found = call(settings_from(home, root), work, as_json=as_json)
    if as_json:
        print_json([{"file": file, **_data(outcome)} for file, outcome in found])
    else:
        for file, outcome in found:
            _print(file, outcome)
    sys.exit(_exit_code([outcome for _, outcome in found]))


async def _import(engine: Engine, file: str, *, shown: bool) -> Outcome:
    watch = ImportProgress()
    with Interrupts(watch.stop.set), ByteBar(watch, shown=shown).shown():
        try:
            return await engine.commands.import_task(Path(file), watch)
        except EngineError as error:
            return error


def _data(outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome, EngineError):
        return {"error": described(outcome)}
    return dict(msgspec.to_builtins(outcome))


def _print(file: str, outcome: Outcome) -> None:
    if isinstance(outcome, EngineError):
        click.echo(display(f"{outcome} {outcome.advice}".strip()), err=True)
        return
    size = size_words(outcome.size_bytes)
    click.echo(display(say("import.done", task_id=outcome.task_id, path=file, size=size)))


def _exit_code(outcomes: list[Outcome]) -> int:
    """Return 130 after a stop, else the code of the first failure, else 0."""
    failed = [one for one in outcomes if isinstance(one, EngineError)]
    if any(isinstance(one, ImportStopped) for one in failed):
        return CANCELLED
    return exit_code(failed[0]) if failed else OK
