"""Home, root and browser of a command: options first, then the environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from engine.contracts.lifecycle.run_store import FOLDER as RUNS_FOLDER
from engine.ledger.filesystem_checks import privacy_concerns
from engine.ledger.folder_presence import SILENT_WORDS, FolderProbe, is_missing
from engine.model.config import Settings
from engine.model.display import display
from engine.model.errors import LedgerNotThere, LedgerUnusable
from engine.text.cli_messages import say

F = TypeVar("F", bound=Callable[..., Any])

ANSWER_S = 2.0  # a folder that has not answered by then is reported


def _folder(given: str | Path) -> Path:
    """Reject an empty path: an unset variable must not mean the working folder."""
    if not str(given).strip():
        raise click.BadParameter("give the name of a folder; this is empty")
    return Path(given)


def place_options(command: F) -> F:
    """Add `--home`, `--root` and `--json` to a command, accepted before and after its name."""
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
    """Return the option's value, else the one before the command (`octask --root DIR list`)."""
    if value or ctx.parent is None or param.name is None:
        return value
    return ctx.find_root().params.get(param.name, value)


def settings_from(home: Path | None, root: Path | None) -> Settings:
    """Return the settings for the options, see `Settings.chosen`.

    Warns once per command on standard error if other users could change the tasks.

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
    """Wait for a folder on a slow drive with a message; a dead drive would block every access.

    Raises:
        LedgerUnusable: it does not answer.
    """
    answer = FolderProbe(settings.root, settings.home)
    if answer.responded(ANSWER_S):
        return
    click.echo(say("place.silent", root=settings.root), err=True)
    if not answer.responded(settings.away_s):
        raise LedgerUnusable(path=str(settings.root), reason=SILENT_WORDS)


def check_there(settings: Settings) -> None:
    """Reject a missing ledger folder if tasks of its home have run before.

    Without earlier runs nothing is missing, and an empty list is correct.

    Raises:
        LedgerNotThere: the folder is unmounted or removed.
    """
    if is_missing(settings.root) and (settings.home / RUNS_FOLDER).is_dir():
        raise LedgerNotThere(path=str(settings.root))


def bare_settings(home: Path | None, root: Path | None) -> Settings:
    """Return the settings without warnings and without accessing the folder."""
    return replace(Settings.chosen(os.environ, home=home, root=root), route="cli")
