"""Which home, root and browser a command works on: options first, then the environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from engine.contracts.lifecycle.run_store import FOLDER as RUNS_FOLDER
from engine.ledger.filesystem_checks import privacy_concerns
from engine.ledger.folder_presence import SILENT_WORDS, Answer, is_missing
from engine.model.config import Settings
from engine.model.display import display
from engine.model.errors import LedgerNotThere, LedgerUnusable
from engine.text.cli_messages import say

F = TypeVar("F", bound=Callable[..., Any])

ANSWER_S = 2.0  # a folder that has not answered by then is told of


def _folder(given: str | Path) -> Path:
    """An empty text is most often a variable that is not set, and never means this very folder."""
    if not str(given).strip():
        raise click.BadParameter("give the name of a folder; this is empty")
    return Path(given)


def place_options(command: F) -> F:
    """`--home`, `--root` and `--json`, which every verb has, behind its name or before it."""
    for option in (
        click.option(
            "--json", "as_json", is_flag=True, help="Write JSON, for programs.", callback=_inherited
        ),
        click.option("--root", type=_folder, help="The folder of the tasks.", callback=_inherited),
        click.option(
            "--home",
            type=_folder,
            help="The folder of everything (tasks in HOME/tasks).",
            callback=_inherited,
        ),
    ):
        command = option(command)
    return command


def _inherited(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """What was given here, else what stands before the verb (`octask --root DIR list`)."""
    if value or ctx.parent is None or param.name is None:
        return value
    return ctx.find_root().params.get(param.name, value)


def settings_from(home: Path | None, root: Path | None) -> Settings:
    """Settings for what was asked, see `Settings.chosen`.

    Others who could change the tasks are told of, once for each command, beside the answer.

    Raises:
        LedgerUnusable: OPENCHROME_TASK_ROOT is not an absolute path, no home is known, or the
            folder does not answer.
    """
    settings = bare_settings(home, root)
    await_answer(settings)
    for concern in privacy_concerns(settings.root, settings.home):
        click.echo(display(str(concern)), err=True)
    return settings


def await_answer(settings: Settings) -> None:
    """Wait for a folder on a slow drive, and say so; a dead one would hold whoever looks at it.

    Raises:
        LedgerUnusable: it does not answer.
    """
    answer = Answer(settings.root, settings.home)
    if answer.came(ANSWER_S):
        return
    click.echo(say("place.silent", root=settings.root), err=True)
    if not answer.came(settings.away_s):
        raise LedgerUnusable(path=str(settings.root), reason=SILENT_WORDS)


def check_there(settings: Settings) -> None:
    """Refuse a ledger whose folder is missing although tasks of its home have run before.

    Where none ever did there is nothing to miss: an empty list is the truth.

    Raises:
        LedgerNotThere: it is away, or was removed.
    """
    if is_missing(settings.root) and (settings.home / RUNS_FOLDER).is_dir():
        raise LedgerNotThere(path=str(settings.root))


def bare_settings(home: Path | None, root: Path | None) -> Settings:
    """The same without a word: for who looks closer itself."""
    return replace(Settings.chosen(os.environ, home=home, root=root), route="cli")
