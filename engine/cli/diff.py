"""`octask diff`: what differs between two tasks of the same target, item by item."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from engine.cli.audit import print_table
from engine.cli.calls import call, print_json
from engine.cli.exit_codes import FAILED, OK
from engine.cli.progress import BAR_FROM_S
from engine.model.config import Settings
from engine.model.display import display
from engine.results.units import Difference, Differences
from engine.text.cli_messages import say
from engine.verbs.model import Verb

if TYPE_CHECKING:
    from engine.service.engine import Engine

_CHARS: Final = 500  # of one cell
_COLUMNS: Final = ("change", "item", "before", "after")
_COUNTS: Final = ("added", "removed", "changed", "same")

Compared = tuple[Differences, list[tuple[str, ...]], bool]
"""The differences, the changed lines of each that is kept, and whether all pages were loaded."""


def diff(_: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Print the differences; with `check`, exit with 1 if there are any."""
    before, after = given["before"], given["after"]

    async def work(engine: Engine) -> Compared:
        for task_id in (before, after):
            await engine.tasks.get(task_id)
        with _progress(shown=not as_json) as on_progress:
            found = await engine.reading.differences(before, after, on_progress)
            lines: list[tuple[str, ...]] = [()] * len(found.found)
            for at, one in enumerate(found.found if given["text"] else ()):
                on_progress(at)
                lines[at] = await engine.reading.text_difference(before, after, one)
        return found, lines, await engine.tasks.loaded_all(after)

    found, lines, is_whole = call(settings, work, as_json=as_json)
    if as_json:
        print_json(_data(given, found, lines, is_whole=is_whole))
    else:
        _print(found, lines, is_whole=is_whole)
    sys.exit(FAILED if given["check"] and found.added + found.removed + found.changed else OK)


@contextmanager
def _progress(*, shown: bool) -> Iterator[Callable[[int], None]]:
    """Show on a terminal how many items were read, where that takes long."""
    from rich.console import Console
    from rich.status import Status

    status = Status("", console=Console(stderr=True))
    began_s = time.monotonic()

    def show(read: int) -> None:
        if shown and sys.stderr.isatty() and time.monotonic() - began_s >= BAR_FROM_S:
            status.update(say("diff.so_far", count=read))
            status.start()

    try:
        yield show
    finally:
        status.stop()


def _data(
    given: Mapping[str, Any], found: Differences, lines: list[tuple[str, ...]], *, is_whole: bool
) -> dict[str, Any]:
    rows = [
        {"change": one.change, "item": one.name, "before": one.before, "after": one.after}
        | ({"text": list(text)} if text else {})
        for one, text in zip(found.found, lines, strict=True)
    ]
    counts = {name: getattr(found, name) for name in _COUNTS}
    about = {"before": given["before"], "after": given["after"], "loaded_all": is_whole}
    return {**about, **counts, "differences": rows}


def _print(found: Differences, lines: list[tuple[str, ...]], *, is_whole: bool) -> None:
    """Print a table on a terminal, tab-separated lines in a pipe; the counts on standard error."""
    pairs = zip(found.found, lines, strict=True)
    if sys.stdout.isatty() and found.found and not any(lines):
        titles = tuple(say(f"diff.{column}") for column in _COLUMNS)
        print_table(titles, (True,) * len(titles), (_row(one) for one in found.found))
    else:
        for one, text in pairs:
            click.echo("\t".join(_row(one)))
            for line in text:
                click.echo(f"  {display(line, _CHARS)}")
    counts = {name: getattr(found, name) for name in _COUNTS}
    click.echo(say("diff.counts", **counts), err=True)
    if len(found.found) < found.added + found.removed + found.changed:
        click.echo(say("diff.cut", count=len(found.found)), err=True)
    if found.removed and not is_whole:
        click.echo(say("diff.not_all"), err=True)


def _row(one: Difference) -> tuple[str, ...]:
    has_text = one.units is not None and one.before == one.after
    after = say("diff.other_text", after=one.after) if has_text else one.after
    return tuple(display(cell, _CHARS) for cell in (one.change, one.name, one.before, after))


RENDERERS: Final = {"diff": diff}
