"""Options that commands share: the folders, JSON output, whole numbers and times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


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
        click.option(
            "--root",
            type=_folder,
            metavar="DIR",
            help="The folder of the tasks.",
            callback=_inherited,
        ),
        click.option(
            "--home",
            type=_folder,
            metavar="DIR",
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


class Number(click.IntRange):
    """Whole number whose error message has an example."""

    name = "integer"
    example = 30

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or raise `BadParameter` with an example."""
        try:
            int(value)
        except ValueError:
            option = param.opts[-1] if param is not None else ""
            said = f"{value!r} is not a whole number. For example: {option} {self.example}"
            self.fail(said, param, ctx)
        return super().convert(value, param, ctx)


class Moment(click.ParamType[int]):
    """Time in ms since 1970, typed so, as a length of time before now, or as ISO 8601."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the time, or raise `BadParameter` with examples."""
        from engine.verbs.model import TIMES, moment_ms  # no help needs the verbs

        at_ms = value if isinstance(value, int) else moment_ms(value)
        if at_ms is None:
            self.fail(f"{value!r} is no time. For example: {TIMES}", param, ctx)
        return at_ms
