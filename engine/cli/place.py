"""Which home, root and browser a command works on: options first, then the environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from engine.config import Settings

F = TypeVar("F", bound=Callable[..., Any])


def place_options(command: F) -> F:
    """`--home`, `--root` and `--json`, which every verb has."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Write JSON, for programs."),
        click.option("--root", type=Path, help="The folder with the tasks."),
        click.option("--home", type=Path, help="The folder of everything (tasks in HOME/tasks)."),
    ):
        command = option(command)
    return command


def settings_from(home: Path | None, root: Path | None) -> Settings:
    """Settings for what was asked, see `Settings.chosen`.

    Raises:
        LedgerUnusable: OPENCHROME_TASK_ROOT is not an absolute path.
    """
    return replace(Settings.chosen(os.environ, home=home, root=root), route="cli")
