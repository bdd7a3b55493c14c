"""`octask contract`, `task-run` and `complete`: lines for users, JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from engine.cli.calls import call, print_json
from engine.cli.exit_codes import GUARD_REFUSED
from engine.cli.goal_lines import LINES, contract_lines
from engine.contracts.bulk_progress import BulkCompletionRefused
from engine.contracts.completing import whoami
from engine.model.config import Settings
from engine.verbs import Verb

if TYPE_CHECKING:
    from engine.service.engine import Engine


def answer(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Call the verb and print its result."""
    found = call(settings, lambda engine: verb.call(engine, given), as_json=as_json)
    _print(verb.name, found, as_json)


def complete(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """End a task or run; a force is recorded under the agent's name, else the user's."""
    by = given["by"] or settings.agent_id or whoami()

    async def work(engine: Engine) -> Any:
        try:
            return await verb.call(engine, {**given, "by": by})
        except BulkCompletionRefused as refused:
            if refused.items and not as_json:
                for line in contract_lines(refused.items):
                    click.echo(line, err=True)
            raise

    _print(verb.name, call(settings, work, as_json=as_json), as_json)


def check(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Print the guard; exit code 5 means "not yet"."""
    found = call(settings, lambda engine: verb.call(engine, given), as_json=as_json)
    _print(verb.name, found, as_json)
    sys.exit(0 if found["completion_guard"]["allowed"] else GUARD_REFUSED)


def _print(name: str, found: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    for line in LINES[name](found):
        click.echo(line)


RENDERERS: Final = {**dict.fromkeys(LINES, answer), "complete": complete, "contract check": check}
