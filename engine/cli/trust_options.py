"""Options of `octask mcp` and `octask serve` that allow private addresses, secrets and files.

A page may control the program, so access needs the operator's permission (docs/agents.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import click

from engine.cli.run_files import allow_files_option, check_folder
from engine.model.config import Settings
from engine.model.errors import InvalidArguments, Problem
from engine.service.allowlists import is_allowed_secret, private_place

F = TypeVar("F", bound=Callable[..., Any])


def trust_options(command: F) -> F:
    """Add the options to a command."""
    for option in (
        allow_files_option,
        click.option(
            "--allow-secret",
            multiple=True,
            metavar="NAME",
            help="An environment variable that its tasks may use as a secret (repeatable).",
        ),
        click.option(
            "--allow-private",
            multiple=True,
            metavar="HOST:PORT",
            help="A private address that its tasks and tools may open (repeatable).",
        ),
    ):
        command = option(command)
    return command


def trusting(settings: Settings, given: Mapping[str, Any]) -> Settings:
    """Return the settings with the permissions of the options.

    Raises:
        InvalidArguments: an option has no valid value.
    """
    check_folder(given["allow_files"])
    problems: list[Problem] = []
    places: list[str] = []
    for typed in given["allow_private"]:
        if (place := private_place(typed)) is not None:
            places.append(place)
        else:
            problem = "must be a host and a port, such as localhost:8080"
            problems.append(Problem("--allow-private", "invalid_value", problem))
    for name in given["allow_secret"]:
        if not is_allowed_secret(name):
            problem = "must be the name of an environment variable, or profile:NAME"
            problems.append(Problem("--allow-secret", "invalid_value", problem))
    if problems:
        raise InvalidArguments(tuple(problems))
    return replace(
        settings,
        allow_files=given["allow_files"],
        allow_private=tuple(places),
        allow_secrets=tuple(given["allow_secret"]),
    )
