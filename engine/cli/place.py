"""Which home, root and browser a command works on: options first, then the environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from engine.config import Settings
from engine.display import display
from engine.store.ground import privacy_concerns

F = TypeVar("F", bound=Callable[..., Any])


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
        LedgerUnusable: OPENCHROME_TASK_ROOT is not an absolute path, or no home is known.
    """
    settings = bare_settings(home, root)
    for concern in privacy_concerns(settings.root, settings.home):
        click.echo(display(str(concern)), err=True)
    return settings


def bare_settings(home: Path | None, root: Path | None) -> Settings:
    """The same without a word: for who looks closer itself."""
    return replace(Settings.chosen(os.environ, home=home, root=root), route="cli")
