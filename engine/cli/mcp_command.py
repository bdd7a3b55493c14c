"""`octask mcp`: serve a host on standard input and output, and connect the known hosts to it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from engine.cli.calls import (
    MAX_SHOWN,
    exit_code,
    print_json,
    refuse,
    settings_from,
)
from engine.cli.options import place_options
from engine.cli.streams import is_interactive
from engine.cli.trust_options import PROXY_OPTIONS, trust_options, trusting
from engine.model import redact
from engine.model.config import Settings
from engine.model.display import display, display_lines, elide_right
from engine.model.errors import MOST_QUOTED, EngineError
from engine.server.hosts.config_change import (
    CHANGED_BY_HAND,
    PRIVATE_MODE,
    PROJECT_MODE,
    ConfigChange,
    config_path,
    plan_install,
    plan_uninstall,
    write,
)
from engine.server.hosts.host_table import HOSTS, Host, Machine, ServerCommand, stdio_snippet
from engine.server.optional_libraries import import_server
from engine.text.cli_messages import say
from engine.verbs.json_answers import described

# Options of the server that `--install` writes into the host's configuration.
_CARRIED = {
    "--tools": "groups",
    "--allow-private": "allow_private",
    "--allow-secret": "allow_secret",
}
_NO_NAME = ""  # of `--install` without a host


@click.command("mcp")
@click.option(
    "--install",
    is_flag=False,
    flag_value=_NO_NAME,
    metavar="HOST",
    help="Add this server to the configuration of a host, after a preview.",
)
@click.option(
    "--uninstall",
    is_flag=False,
    flag_value=_NO_NAME,
    metavar="HOST",
    help="Remove this server from the configuration of a host, after a preview.",
)
@click.option("--list-hosts", is_flag=True, help="List the known hosts and their files.")
@click.option("--project", is_flag=True, help="Use the file of the project in this folder.")
@click.option("--yes", "-y", is_flag=True, help="Write the change without a question.")
@click.option(
    "--tools",
    "groups",
    multiple=True,
    type=click.Choice(["tasks", "schedules", "goals", "runs", "browser"]),
    help="Offer only these tools (repeatable; default: all).",
)
@trust_options
@place_options
def mcp(home: Path | None, root: Path | None, as_json: bool, **given: Any) -> None:
    """Serve the tools to an MCP host on standard input and output.

    Hosts start this command themselves. `--install HOST` adds it to a host's configuration.
    """
    chosen = [name for name in ("install", "uninstall") if given[name] is not None]
    if len(chosen) + given["list_hosts"] > 1:
        raise click.UsageError("Give one of --install, --uninstall and --list-hosts.")
    if given["list_hosts"]:
        _list(as_json=as_json)
    elif chosen:
        host = _host(given[chosen[0]], as_json=as_json)
        command = server_command(home, root, given) if chosen == ["install"] else None
        _change(host, command, project=given["project"], sure=given["yes"], as_json=as_json)
    elif given["project"] or given["yes"]:
        raise click.UsageError("--project and --yes belong to --install and --uninstall.")
    else:
        _serve(_settings(home, root, given, as_json=as_json), given["groups"], as_json=as_json)


def _settings(
    home: Path | None, root: Path | None, given: Mapping[str, Any], *, as_json: bool
) -> Settings:
    try:
        return trusting(settings_from(home, root), given)
    except EngineError as error:
        refuse(error, as_json=as_json)


def _serve(settings: Settings, groups: Sequence[str], *, as_json: bool) -> None:
    try:
        serving = import_server("stdio")
        serving.serve_stdio(settings, groups)
    except EngineError as error:
        refuse(error, as_json=as_json)


def server_command(
    home: Path | None, root: Path | None, given: Mapping[str, Any] | None = None
) -> ServerCommand:
    """Return the command line with which a host starts this installation, with these options."""
    program, *arguments = own_program(sys.argv[0], sys.executable)
    for option, folder in (("--home", home), ("--root", root)):
        if folder is not None:
            arguments += [option, str(folder.absolute())]
    given = given or {}
    for option, name in PROXY_OPTIONS.items():
        value = given.get(name) or ()
        values = (value,) if isinstance(value, str) else value
        arguments += [word for one in values for word in (option, one)]
    for option, name in _CARRIED.items():
        arguments += [word for value in given.get(name, ()) for word in (option, value)]
    if given.get("allow_files") is not None:
        arguments += ["--allow-files", str(given["allow_files"])]
    return ServerCommand(program, tuple(arguments))


def own_program(started_as: str, executable: str, *, frozen: bool | None = None) -> Sequence[str]:
    """Return the absolute path of `octask` and the arguments of the server.

    Links stay as they are: a link of an installer outlasts an update.
    """
    if getattr(sys, "frozen", False) if frozen is None else frozen:
        return [executable, "mcp"]
    beside = str(Path(executable).parent / "octask")
    candidates = (started_as if Path(started_as).stem == "octask" else "", beside, "octask")
    for candidate in filter(None, candidates):
        if found := shutil.which(candidate):
            return [os.path.abspath(found), "mcp"]
    # -P: a module in the working folder must not shadow one of ours
    return [executable, "-P", "-m", "engine.cli", "mcp"]


def _machine() -> Machine:
    home = os.path.expanduser("~")
    if os.environ.get("HOME") == "" or not os.path.isabs(home):
        raise click.UsageError("HOME must be an absolute path.")
    return Machine(sys.platform, home, os.environ)


def _host(name: str, *, as_json: bool) -> Host:
    if name in HOSTS:
        return HOSTS[name]
    if not as_json:
        _list(as_json=False, err=True)
    if name == _NO_NAME:
        raise click.UsageError("Give the name of a host.")
    raise click.UsageError(f"There is no host {name!r}. Known are: {', '.join(HOSTS)}.")


def _list(*, as_json: bool, err: bool = False) -> None:
    rows = [
        {
            "host": host.name,
            "title": host.title,
            "scope": "user" if project is None else "project",
            "path": str(path),
            "exists": path.is_file(),
        }
        for host in HOSTS.values()
        for project in (None, Path.cwd())
        if (path := config_path(host, _machine(), project)) is not None
    ]
    if as_json:
        print_json({"hosts": rows})
        return
    width = max(map(len, HOSTS))
    for row in rows:
        there = say("mcp.there" if row["exists"] else "mcp.missing")
        name, scope = str(row["host"]).ljust(width), str(row["scope"]).ljust(len("project"))
        click.echo(f"{name}  {scope}  {there}  {display(str(row['path']))}", err=err)


def _change(
    host: Host, command: ServerCommand | None, *, project: bool, sure: bool, as_json: bool
) -> None:
    """Show the change of the host's file; write it if the user agrees."""
    path = config_path(host, _machine(), Path.cwd() if project else None)
    if path is None:
        raise click.UsageError(f"{host.title} has no file of its own for a project.")
    try:
        if command is None:
            change = plan_uninstall(host, path)
        else:
            mode = PROJECT_MODE if project else PRIVATE_MODE
            change = plan_install(host, path, command, mode=mode)
        if not as_json:
            _show(change, stdio_snippet(host, command) if command else "")
        written = change.is_needed and (sure or (not as_json and _is_confirmed()))
        if written:
            write(change)
    except EngineError as error:
        _refuse(error, host, command, as_json=as_json)
    if as_json:
        print_json(_data(host, change, written=written))
        return
    _report(host, change, written=written, project=project, installed=command is not None)


def _is_confirmed() -> bool:
    """Ask on a terminal; without one, nothing is confirmed."""
    if not is_interactive():
        return False
    return click.confirm(say("mcp.question"), default=False, err=True)


def _show(change: ConfigChange, snippet: str) -> None:
    """Print the diff; a file without line breaks hides the entry in a long line, so add it."""
    lines = _diff(change)
    for line in lines:
        click.echo(display_lines(line, MAX_SHOWN))
    if snippet and any(len(line) > MAX_SHOWN and line.startswith("+") for line in lines):
        click.echo(say("mcp.long"), err=True)
        click.echo(display_lines(snippet), err=True, nl=False)


def _diff(change: ConfigChange) -> list[str]:
    """Return the lines of the diff; secrets of other servers are masked."""
    return [redact.text(elide_right(line, MOST_QUOTED)) for line in change.diff()]


def _data(host: Host, change: ConfigChange, *, written: bool) -> dict[str, object]:
    return {
        "host": host.name,
        "path": str(change.path),
        "needed": change.is_needed,
        "written": written,
        "diff": _diff(change),
    }


def _report(
    host: Host, change: ConfigChange, *, written: bool, project: bool, installed: bool
) -> None:
    path = str(change.path)
    if not change.is_needed:
        click.echo(say("mcp.present" if installed else "mcp.absent", path=path), err=True)
    elif not written:
        click.echo(say("mcp.preview", path=path), err=True)
    else:
        click.echo(say("mcp.written", path=path, host=host.title), err=True)
        if installed:
            undo = f"octask mcp --uninstall {host.name}" + " --project" * project
            click.echo(say("mcp.undo", command=undo), err=True)


def _refuse(
    error: EngineError, host: Host, command: ServerCommand | None, *, as_json: bool
) -> None:
    """Print the error, and what a user can add to the file by hand; exit."""
    by_hand = isinstance(error, CHANGED_BY_HAND) and command is not None
    snippet = stdio_snippet(host, command) if by_hand and command else ""
    if as_json:
        more = {"snippet": snippet} if snippet else {}
        print_json({"error": {**described(error), **more}}, indent=None)
        sys.exit(exit_code(error))
    if snippet:
        click.echo(say("mcp.by_hand"), err=True)
        click.echo(display_lines(snippet), err=True, nl=False)
    refuse(error, as_json=False)
