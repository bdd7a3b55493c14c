"""Commands made from verbs: their options, and the call of the verb with its output."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from engine.cli.command_groups import Group
from engine.cli.known_ids import BARE, complete_param, whole_ids
from engine.cli.options import Moment, Number, place_options
from engine.model.errors import EngineError
from engine.verbs.model import Param, Verb, checked


def verb_command(name: str, verbs: ModuleType, output: str, help_: str) -> click.Command:
    """Return the command of a verb, or the group of all verbs whose names begin with `name`.

    Args:
        verbs: the module with the verbs.
        output: the name of the module with their output by name, `RENDERERS`; others are printed
            plainly. It is imported when the command runs.
        help_: of the group.
    """
    found = {one.name: one for one in verbs.VERBS if "cli" in one.faces}
    if name in found:
        return _command(found[name], output)
    group = Group(name, help=help_)
    for each, verb in found.items():
        if each.startswith(f"{name} "):
            group.add_command(_command(verb, output))
    return group


def _command(verb: Verb, output: str) -> click.Command:
    verb = checked(verb)

    def run(home: Path | None, root: Path | None, as_json: bool, **given: Any) -> None:
        from engine.cli.calls import plainly, refuse, settings_from  # no help needs the ledger

        try:
            settings = settings_from(home, root)
            whole = whole_ids(verb.name, settings, _named(verb, given))
        except EngineError as error:
            refuse(error, as_json=as_json)
        renderers = import_module(output).RENDERERS
        renderers.get(verb.name, plainly)(verb, settings, whole, as_json)

    params = [_param(param) for param in verb.public]
    params += [_bare(param) for param in verb.public if param.bare]
    name = verb.name.rpartition(" ")[2]
    command = click.Command(name, params=list(params), callback=run, help=verb.help)
    return place_options(command)


def _param(param: Param) -> click.Parameter:
    many = param.shape in ("many", "items")
    if param.positional:
        name = param.name.upper() if param.name in ("name", "before", "after") else "ID"
        nargs, shown = (-1, f"{name}...") if many else (1, name)
        return click.Argument(
            [param.name],
            nargs=nargs,
            required=param.required,
            metavar=shown if param.required else f"[{shown}]",
            shell_complete=complete_param,
        )
    option = [f"-{param.short}"] if param.short else []
    option.append("--" + param.name.replace("_", "-"))
    if param.shape == "flag":
        return click.Option(option, is_flag=True, help=param.help)
    kinds: dict[str, click.ParamType[Any]] = {"number": Number(min=0), "time": Moment()}
    return click.Option(
        option,
        type=kinds.get(param.shape, str),
        multiple=many,
        default=None if many else param.default,
        help=param.help,
        show_default=param.default is not None,
        shell_complete=complete_param,
    )


def _bare(param: Param) -> click.Parameter:
    """Build the positional form of an option, as in `task-run start GOAL`."""
    return click.Argument(
        [BARE + param.name],
        required=False,
        metavar=f"[{param.name.upper()}]",
        shell_complete=complete_param,
    )


def _named(verb: Verb, given: dict[str, Any]) -> dict[str, Any]:
    for name in (param.name for param in verb.params if param.bare):
        bare = given.pop(BARE + name)
        if bare is not None and given[name] is not None:
            raise click.UsageError(f"The {name} was given twice: {bare!r} and --{name}.")
        given[name] = given[name] if bare is None else bare
    return given
