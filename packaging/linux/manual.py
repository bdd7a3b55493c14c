"""Write the man pages and the shell completions of the installed programs.

python manual.py VERSION EPOCH MAN_FOLDER COMPLETION_FOLDER
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from engine.cli.octask import octask
from gui.app import arguments

SHELLS = {"bash": "octask.bash", "zsh": "_octask", "fish": "octask.fish"}


def escaped(text: str) -> str:
    """Return `text` for groff: nothing in it is a request or an escape."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    lines = [f"\\&{line}" if line.startswith((".", "'")) else line for line in safe.split("\n")]
    return "\n".join(lines)


def head(name: str, summary: str, version: str, day: str) -> str:
    title = f'.TH {name.upper()} 1 "{day}" "OpenChrome Monitor {version}" "User Commands"'
    return f"{title}\n.SH NAME\n{escaped(name)} \\- {escaped(summary)}\n"


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield (full name, command) of everything that can be typed."""
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if found is None or found.hidden:
            continue
        if isinstance(found, click.Group):
            yield from commands(found, f"{path} {name}")
        else:
            yield f"{path} {name}", found


def described(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f".SS {escaped(name)} {escaped(usage)}", escaped(click.unstyle(command.help or ""))]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            lines += [".TP", f"\\fB{escaped(record[0])}\\fR", escaped(record[1])]
    return "\n".join(lines)


def octask_page(version: str, day: str) -> str:
    parts = [head("octask", "run, follow and cancel browser tasks", version, day)]
    parts.append(".SH SYNOPSIS\n.B octask\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.SH DESCRIPTION")
    parts.append(escaped(octask.help or ""))
    parts.append(".SH COMMANDS")
    parts += [described(name, command) for name, command in commands(octask, "octask")]
    parts.append(".SH SEE ALSO\n.BR openchrome\\-monitor (1)\n")
    return "\n".join(parts)


def window_page(version: str, day: str) -> str:
    parser = arguments()
    parts = [head("openchrome-monitor", "watch and run browser tasks in a window", version, day)]
    usage = parser.format_usage().removeprefix("usage: ").strip()
    parts.append(f".SH SYNOPSIS\n{escaped(' '.join(usage.split()))}\n.SH DESCRIPTION")
    parts.append(escaped(f"{parser.description}\n\n{parser.epilog}"))
    parts.append(".SH OPTIONS")
    for action in parser._actions:
        if action.help == "==SUPPRESS==":
            continue
        value = f" {action.metavar}" if action.metavar and action.option_strings else ""
        names = (", ".join(action.option_strings) or str(action.metavar)) + value
        parts += [".TP", f"\\fB{escaped(names)}\\fR", escaped(action.help or "")]
    parts.append(".SH SEE ALSO\n.BR octask (1)\n")
    return "\n".join(parts)


def main() -> None:
    version, epoch, pages, completions = sys.argv[1:]
    day = time.strftime("%Y-%m-%d", time.gmtime(int(epoch)))
    for folder in (pages, completions):
        Path(folder).mkdir(parents=True, exist_ok=True)
    Path(pages, "octask.1").write_text(octask_page(version, day), "utf-8")
    Path(pages, "openchrome-monitor.1").write_text(window_page(version, day), "utf-8")
    for shell, name in SHELLS.items():
        kind = get_completion_class(shell)
        assert kind is not None
        source = kind(octask, {}, "octask", "_OCTASK_COMPLETE").source()
        Path(completions, name).write_text(source, "utf-8")


if __name__ == "__main__":
    main()
