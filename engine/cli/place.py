"""Which home, root and browser a command works on: options first, then the environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from engine.config import Settings
from engine.errors import LedgerUnusable

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
    """Settings for what was asked; a `--home` moves everything, whatever the environment says.

    Raises:
        LedgerUnusable: OPENCHROME_TASK_ROOT is not an absolute path.
    """
    env_home, env_root = os.environ.get("OPENCHROME_HOME"), os.environ.get("OPENCHROME_TASK_ROOT")
    if home is None and root is None and env_root:
        root = Path(env_root)
        if not root.is_absolute():
            raise LedgerUnusable(
                path=env_root, reason="OPENCHROME_TASK_ROOT must be an absolute path"
            )
    # OPENCHROME_HOME does not move the tasks: OpenChrome, which shares them, does not either.
    default = Settings()
    if home is not None:
        settings = Settings.at(home=home.absolute(), root=root.absolute() if root else None)
    else:
        base = Path(env_home).absolute() if env_home else default.home
        settings = replace(default, home=base, root=root.absolute() if root else default.root)
    return replace(settings, browser_path=os.environ.get("OC_BROWSER") or None)
