"""`octask export` and the commands of recordings.

An export goes to a file with a bar, or to a pipe; Ctrl-C leaves no partial file. A recording is
stopped in good order, or exported for another program.
"""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

import click
import msgspec

from engine.cli.calls import Interrupts, call, print_json
from engine.cli.progress import ByteBar
from engine.export.exporter import WACZ, ExportProgress
from engine.export.output import Exported, remove_staged
from engine.kinds.traits import RECORDING_TRAITS
from engine.model.config import Settings
from engine.model.display import display, display_lines
from engine.text.cli_messages import say
from engine.verbs.model import Verb
from engine.verbs.result_verbs import order_of

if TYPE_CHECKING:
    from engine.service.engine import Engine


def export(_: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Export one task; partial or omitted data is reported on standard error."""
    output = given["output"]

    async def work(engine: Engine) -> Exported:
        order, watch = order_of(given), ExportProgress()
        if output in (None, "-"):
            with Interrupts(watch.stop.set), _standard_output() as out:
                return await engine.exports.to_stream(order, out, watch=watch)
        with Interrupts(watch.stop.set, remove_staged), ByteBar(watch, shown=not as_json).shown():
            place = Path(output)
            return await engine.exports.to_file(order, place, force=given["force"], watch=watch)

    made = call(settings, work, as_json=as_json)
    if as_json and output not in (None, "-"):
        print_json(msgspec.to_builtins(made))
        return
    _print_outcome(made)


def _print_outcome(made: Exported) -> None:
    if made.path != "-":
        message = "export.done.wacz" if made.format == WACZ else "export.done"
        message += ".one" if made.rows == 1 else ""
        click.echo(say(message, rows=made.rows, path=made.path))
    if made.partial:
        click.echo(display(made.note), err=True)
    for note in made.notes:
        click.echo(display(note), err=True)


@contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    """Yield standard output as a binary stream; for a terminal the text is sanitised."""
    sys.stdout.flush()
    if sys.stdout.isatty():
        # BufferedWriter accepts raw streams, against the type of its argument.
        with io.BufferedWriter(_Terminal()) as out:
            yield cast(BinaryIO, out)
        return
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


class _Terminal(io.RawIOBase):
    """Stream to a terminal, which would execute escapes of a page: writes sanitised text."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        click.echo(display_lines(self._decoder.decode(bytes(data))), nl=False)
        return len(data)


def stop(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Request a regular end of a recording."""
    record = call(settings, lambda engine: verb.call(engine, given), as_json=as_json)
    if as_json:
        print_json(msgspec.to_builtins(record))
        return
    said = "stop.ended" if record.is_terminal else "stop.asked"
    click.echo(say(said, task_id=record.task_id, status=record.status))


def export_recording(
    verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool
) -> None:
    """Export a recording for another program, and list the inputs that a replay needs."""
    made = call(settings, lambda engine: verb.call(engine, given), as_json=as_json)
    if as_json:
        print_json(msgspec.to_builtins(made))
        return
    click.echo(say("recording.written", path=display(made.path), format=made.format))
    if made.format != "task":
        return
    for one in made.not_replayed:
        why = display(str(one.get("why")), 200)
        click.echo(say("recording.left_out", action=one.get("action"), why=why), err=True)
    if made.uploads:
        click.echo(say("recording.uploads", names=display(", ".join(made.uploads), 400)))
    if made.variables:
        names = display(", ".join(made.variables), 400)
        click.echo(say("recording.variables", names=names, task_id=made.task_id))


RENDERERS: Final = {
    "export": export,
    "stop": stop,
    f"{RECORDING_TRAITS.name} export": export_recording,
}
