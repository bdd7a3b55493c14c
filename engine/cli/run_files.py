"""Read task files and variables of a command line; check all before any start."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from engine.browser.interact.command_uploads import Uploads
from engine.kinds.commands.command_check import check
from engine.kinds.commands.command_file import MAX_BYTES, check_size, read_document
from engine.model.errors import InvalidArguments, Problem

STANDARD_INPUT: Final = "-"
allow_files_option: Final = click.option(
    "--allow-files",
    metavar="DIR",
    type=lambda given: Path(given).absolute(),
    help="The folder whose files the tasks may upload (none without it).",
)


@dataclass(frozen=True, slots=True)
class TaskFile:
    """Task file: its name, task document, reachable hosts, and whether it uses several tabs."""

    name: str
    document: dict[str, Any]
    places: tuple[str, ...]
    uses_tabs: bool = False


def read_task_files(
    names: Sequence[str],
    variables: str | None,
    environ: Mapping[str, str],
    uploads: Uploads | None = None,
) -> list[TaskFile]:
    """Read every task of `names` (`-` is standard input), with its variables.

    A variable in the file `variables` overrides one of the same name in the task.

    Raises:
        InvalidArguments: with the mistakes of all files, prefixed by name if there are several.
    """
    problems: list[Problem] = []
    given: dict[str, Any] = {}
    try:
        given = read_variables(variables)
    except InvalidArguments as error:
        problems += error.problems
    found: list[TaskFile] = []
    for name in names:
        try:
            document = _with_variables(read_document(read_bytes(name), _shown(name)), given)
            plan = check(document, environ=environ, living=lambda _: False, uploads=uploads)
            found.append(TaskFile(_shown(name), document, plan.places, plan.uses_tabs))
        except InvalidArguments as error:
            problems += [_of(_shown(name), each, len(names)) for each in error.problems]
    if problems:
        raise InvalidArguments(tuple(problems))
    return found


def check_folder(allowed: Path | None) -> None:
    """Raise InvalidArguments if the argument of --allow-files is no folder."""
    if allowed is not None and not allowed.is_dir():
        problem = Problem("--allow-files", "no_folder", f"there is no folder {allowed}")
        raise InvalidArguments((problem,))


def read_variables(name: str | None) -> dict[str, Any]:
    """Read names and values from a file, `-` for standard input. Raises InvalidArguments."""
    if name is None:
        return {}
    found = read_document(read_bytes(name), _shown(name))
    if isinstance(found, dict):
        return found
    message = "must be a JSON object of names and values"
    raise InvalidArguments((Problem(_shown(name), "wrong_type", message),))


def _with_variables(document: Any, given: Mapping[str, Any]) -> Any:
    if not isinstance(document, dict):
        return document
    own = document.get("variables", {})
    if not isinstance(own, dict):
        return document
    # Always present, so that a missing variable is a mistake and not typed as text.
    return {**document, "variables": {**own, **given}}


def _of(name: str, problem: Problem, files: int) -> Problem:
    if problem.path == name or (files == 1 and problem.path):
        return problem
    path = f"{name}: {problem.path}" if problem.path else name
    return Problem(path, problem.code, problem.message)


def _shown(name: str) -> str:
    return "standard input" if name == STANDARD_INPUT else name


def _read_standard_input() -> bytes:
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:  # how much more follows is not known
        problem = Problem(_shown(STANDARD_INPUT), "too_large", "is larger than 1 MiB")
        raise InvalidArguments((problem,))
    return data


def read_bytes(name: str) -> bytes:
    """Read the file, `-` for standard input. Raises InvalidArguments."""
    try:
        if name == STANDARD_INPUT:
            return _read_standard_input()
        path = Path(name)
        if not path.is_file():
            reason = "is not a file" if path.exists() else "is not there"
            raise InvalidArguments((Problem(name, "no_file", reason),))
        with path.open("rb") as source:
            check_size(os.fstat(source.fileno()).st_size, name)
            return source.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        problem = Problem(_shown(name), "no_file", f"cannot be read: {reason}")
        raise InvalidArguments((problem,)) from error
