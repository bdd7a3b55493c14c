"""Progress of a foreground task: a bar on a terminal, lines in a pipe, or nothing."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Protocol, Self

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.text import Text

from engine.model.display import display
from engine.model.records import TaskEvent
from engine.text.cli_messages import say


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
