"""Groups of commands: whole sentences in help, a default command, and commands loaded on use."""

from __future__ import annotations

from collections.abc import Callable

import click
from click.shell_completion import CompletionItem


class SummaryGroup(click.Group):
    """Group whose help has the whole first sentence of each command."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands; a long sentence continues on the next line."""
        rows = [
            (name, self.commands[name].get_short_help_str(limit=1_000))
            for name in self.list_commands(ctx)
            if not self.commands[name].hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


class Group(SummaryGroup):
    """Group of commands; without a command it runs `list`, if it has one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args and (args[0] in self.commands or not args[0].startswith("-"))
        asks_help = any(arg in ctx.help_option_names for arg in args)
        if "list" in self.commands and not named and not asks_help:
            args = ["list", *args]
        return super().parse_args(ctx, args)


class _Later(click.Command):
    """Name and help of a command that is not loaded yet."""

    def __init__(self, name: str, help_: str, load: Callable[[], click.Command]) -> None:
        super().__init__(name, help=help_, hidden=name.startswith("_"))
        self.load = load


class LazyGroup(SummaryGroup):
    """Group that loads a command when it is used; its help and completion load none."""

    def add_later(self, name: str, help_: str, load: Callable[[], click.Command]) -> None:
        """Add a command by its name, its help and the function that loads it."""
        self.commands[name] = _Later(name, help_, load)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the command on its first use."""
        command = self.commands.get(cmd_name)
        if isinstance(command, _Later):
            command = self.commands[cmd_name] = command.load()
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of commands; click would load each of them for its help."""
        found = [
            CompletionItem(name, help=self.commands[name].get_short_help_str())
            for name in self.list_commands(ctx)
            if name.startswith(incomplete) and not self.commands[name].hidden
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]
