"""Progress of foreground tasks: bars or live lines on a terminal, lines in a pipe, or nothing.

A long reading of a task's files has a bar on a terminal, too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import click
from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.spinner import Spinner
from rich.text import Text

from engine.model.display import display
from engine.model.records import TaskEvent, Units
from engine.text import words
from engine.text.cli_messages import say

if TYPE_CHECKING:
    from engine.export.exporter import ExportProgress
    from engine.ledger.task_import import ImportProgress


class Progress(Protocol):
    """Output of a task's progress."""

    def accepted(self, task_id: str) -> None: ...
    def event(self, event: TaskEvent) -> None: ...
    def note(self, sentence: str) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def progress_for(as_json: bool) -> Progress:
    """Return a bar on a terminal, else lines; nothing with JSON."""
    if as_json:
        return NoProgress()
    return Bar() if sys.stderr.isatty() else Lines()


def _units(event: TaskEvent) -> tuple[int, int | None, str] | None:
    data = event.data or {}
    done, total = data.get("unitsDone"), data.get("unitsTotal")
    if event.kind != "progress" or not isinstance(done, int):
        return None
    message = data.get("message")
    return done, total if isinstance(total, int) else None, str(message or "")


class NoProgress:
    """No progress, for programs that read only the answer."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def accepted(self, task_id: str) -> None:
        pass

    def event(self, event: TaskEvent) -> None:
        pass

    def note(self, sentence: str) -> None:
        click.echo(sentence, err=True)


class Lines(NoProgress):
    """One plain line per unit, on standard error."""

    def accepted(self, task_id: str) -> None:
        click.echo(say("start.accepted", task_id=task_id), err=True)

    def event(self, event: TaskEvent) -> None:
        units = _units(event)
        if units is not None:
            done, total, message = units
            of = f"/{total}" if total else ""
            click.echo(f"{done}{of}  {display(message, 300)}", err=True)


class Bar(NoProgress):
    """A progress bar with the last page."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._bars = Bars(
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[message]}", markup=False),
            console=self._console,
            transient=True,
        )
        self._bar = self._bars.add_task("", total=None, message="")

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def accepted(self, task_id: str) -> None:
        self.note(say("start.accepted", task_id=task_id))

    def note(self, sentence: str) -> None:
        self._console.print(Text(sentence))

    def event(self, event: TaskEvent) -> None:
        units = _units(event)
        if units is not None:
            done, total, message = units
            values: dict[str, Any] = {"completed": done, "total": total}
            self._bars.update(self._bar, message=display(message, 80), **values)


MARKS: Final = {"success": "✓", "error": "✗", "skipped": "–"}
WORDS: Final = {"success": "ok", "error": "FAILED", "skipped": "skipped"}
COLOURS: Final = {"success": "green", "error": "red", "skipped": "dim"}
_OVER: Final = frozenset(MARKS)


class CommandLines:
    """One plain line for each finished command, on standard output."""

    def __init__(self, several: bool) -> None:
        self._several = several
        self._printed: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show_changes(self, tasks: Sequence[Mapping[str, Any]]) -> None:
        """Print changes since the last call."""
        for task in tasks:
            for number, command in enumerate(task["commands"]):
                if command["status"] in _OVER and command["id"] not in self._printed:
                    self._printed.add(command["id"])
                    self.command(task, number, command)

    def command(self, task: Mapping[str, Any], number: int, command: Mapping[str, Any]) -> None:
        click.echo(self.line(task, number, command))
        for line in failure_lines(command):
            self.note(f"      {line}")

    def note(self, sentence: str) -> None:
        click.echo(sentence, err=True)

    def ended(self, task: Mapping[str, Any], ledger_id: str) -> None:
        click.echo(ending(task, ledger_id))

    def line(self, task: Mapping[str, Any], number: int, command: Mapping[str, Any]) -> str:
        """Format `✓ 3/6 Enter email (240 ms)`, with the task's name if there are several."""
        return f"{_marks()[command['status']]} {self.about(task, number, command)}{_why(command)}"

    def about(self, task: Mapping[str, Any], number: int, command: Mapping[str, Any]) -> str:
        name = f"{display(str(task['name']), 40)}  " if self._several else ""
        of = f"{number + 1}/{len(task['commands'])}"
        return f"{name}{of} {display(str(command['intention']), 100)}{_took(command)}"


class CommandTerminal(CommandLines):
    """Live lines: finished commands, and the running ones below."""

    def __init__(self, several: bool) -> None:
        super().__init__(several)
        self._console = Console()
        self._live = Live(console=self._console, refresh_per_second=10, transient=True)
        self._spinners: dict[str, Spinner] = {}

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show_changes(self, tasks: Sequence[Mapping[str, Any]]) -> None:
        super().show_changes(tasks)
        running = [
            self._spinner(task, number, command)
            for task in tasks
            for number, command in enumerate(task["commands"])
            if command["status"] == "running"
        ]
        waiting = sum(task["status"] == "queued" for task in tasks)
        queued = [Text(say("run.queued", count=waiting), style="dim")] if waiting else []
        self._live.update(Group(*running, *queued))

    def command(self, task: Mapping[str, Any], number: int, command: Mapping[str, Any]) -> None:
        self._spinners.pop(command["id"], None)
        said = Text(self.line(task, number, command), style=COLOURS[command["status"]])
        self._console.print(said)
        for line in failure_lines(command):
            self.note(f"      {line}")

    def note(self, sentence: str) -> None:
        self._console.print(Text(sentence))

    def ended(self, task: Mapping[str, Any], ledger_id: str) -> None:
        self._console.print(Text(ending(task, ledger_id), style="bold"))

    def _spinner(self, task: Mapping[str, Any], number: int, command: Mapping[str, Any]) -> Spinner:
        about = Text(self.about(task, number, command))
        return self._spinners.setdefault(command["id"], Spinner("dots", about))


class NoCommandLines(CommandLines):
    """No output, for programs that read only the final JSON."""

    def show_changes(self, tasks: Sequence[Mapping[str, Any]]) -> None:
        pass

    def ended(self, task: Mapping[str, Any], ledger_id: str) -> None:
        pass


def lines_for(*, as_json: bool, several: bool) -> CommandLines:
    """Return the output for a terminal, a pipe or a program."""
    if as_json:
        return NoCommandLines(several)
    return CommandTerminal(several) if sys.stdout.isatty() else CommandLines(several)


def ending(task: Mapping[str, Any], ledger_id: str) -> str:
    """Format a task's last line: state, progress and task id."""
    commands = task["commands"]
    failed = sum(command["status"] == "error" for command in commands)
    done = sum(command["status"] == "success" for command in commands) + failed
    units = Units(done, len(commands), failed=failed)
    began = task.get("startedAt", task["createdAt"])
    return say(
        "run.ended",
        name=display(str(task["name"]), 60),
        status=task["status"],
        progress=words.units_spoken("commands", units),
        took=words.took(task.get("completedAt", began) - began),
        task_id=ledger_id,
    )


def _marks() -> Mapping[str, str]:
    """Return the signs, or words if the output's code page lacks them (Windows, mostly)."""
    try:
        "".join(MARKS.values()).encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return WORDS
    return MARKS


def _took(command: Mapping[str, Any]) -> str:
    began, ended = command.get("startedAt"), command.get("completedAt")
    if began is None or ended is None:
        return ""
    return f" ({words.took(ended - began)})"


def _why(command: Mapping[str, Any]) -> str:
    error, warning = command.get("error"), command.get("warning")
    if not isinstance(error, Mapping):
        return f": {display(warning, 300)} [{say('run.warning')}]" if warning else ""
    return f": {display(str(error.get('message')), 300)} [{display(str(error.get('code')), 40)}]"


def failure_lines(command: Mapping[str, Any]) -> Iterator[str]:
    """Yield the address and the picture of a failed command."""
    failure = command.get("failure")
    if not isinstance(failure, Mapping):
        return
    for name in ("url", "screenshot"):
        if told := failure.get(name):
            yield say(f"run.failed.{name}", told=display(str(told), 300))


BAR_FROM_S: Final = 0.5  # a bar that goes at once is only a flash


class ByteBar:
    """Progress bar of the read bytes, on a terminal only."""

    def __init__(self, watch: ExportProgress | ImportProgress, *, shown: bool) -> None:
        columns = (BarColumn(bar_width=30), DownloadColumn(), TextColumn("{task.fields[rows]}"))
        self._bars = Bars(
            *columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True
        )
        self._bar = self._bars.add_task("", total=None, rows="")
        self._began_s = time.monotonic()
        if shown and sys.stderr.isatty():
            watch.on_progress = self._show_progress

    def _show_progress(self, rows: int, done: int, total: int) -> None:
        if time.monotonic() - self._began_s < BAR_FROM_S:
            return
        self._bars.start()
        said = say("export.so_far", n=rows) if rows else ""
        self._bars.update(self._bar, completed=done, total=total, rows=said)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the bar while the block takes long; one that was not started prints no line."""
        try:
            yield
        finally:
            if self._bars.live.is_started:
                self._bars.stop()
