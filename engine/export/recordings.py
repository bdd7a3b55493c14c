"""Export of a recording for another program: a command task, a trace, a list of variables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from engine.export.errors import ResultDamaged
from engine.export.output import new_file
from engine.kinds.recording.recording_actions import Action
from engine.kinds.recording.recording_errors import NotARecording, NothingToReplay
from engine.kinds.recording.recording_export import command_task, template
from engine.kinds.recording.recording_trace import write_trace
from engine.kinds.recording.recording_traits import RECORDING_TRAITS
from engine.ledger.json_stream import Damaged
from engine.ledger.reader import LedgerReader
from engine.model import redact
from engine.model.errors import InvalidArguments, Problem, TaskUnreadable
from engine.model.records import ARTIFACTS_NAME, Unreadable
from engine.results.findings import Findings

FORMATS: Final = ("task", "trace", "variables")
KIND: Final = RECORDING_TRAITS.name


class ExportedRecording(msgspec.Struct, frozen=True):
    """Report of the written file; `variables` need values before a replay."""

    task_id: str
    format: str
    path: str
    commands: int = 0
    variables: list[str] = []
    not_replayed: list[dict[str, Any]] = []
    uploads: list[str] = []


def export_recording(
    ledger: LedgerReader, task_id: str, form: str, place: Path, *, force: bool = False
) -> ExportedRecording:
    """Write the file `place` atomically.

    Raises:
        InvalidArguments: there is no such format.
        NotARecording, NothingToReplay: the task cannot be exported so.
        NotATaskId, TaskNotFound, TaskUnreadable, ResultDamaged: it cannot be read.
        ExportExists, ExportRefused, ExportFailed: it cannot be written.
    """
    if form not in FORMATS:
        known = f"'{form[:40]}' is no format (there are: {', '.join(FORMATS)})"
        raise InvalidArguments((Problem("format", "unknown_format", known),))
    source = _Source(ledger, task_id)
    task = source.task()
    variables = list(template(task))
    with new_file(place, ledger.root, force=force) as out:
        if form == "trace":
            source.write_trace(out)
        else:
            out.write(_json(task if form == "task" else template(task)))
    left_out = task["metadata"].get("notReplayed", [])
    count, files = len(task["commands"]), task["metadata"].get("uploads", {}).get("files", [])
    return ExportedRecording(task_id, form, str(place), count, variables, left_out, files)


class _Source:
    """Recording in a ledger; all of it is redacted once more when exported."""

    def __init__(self, ledger: LedgerReader, task_id: str) -> None:
        record = ledger.read(task_id)
        if isinstance(record, Unreadable):
            raise TaskUnreadable(task_id=task_id, reason=record.reason, path=record.path)
        if record.kind != KIND:
            raise NotARecording(task_id=task_id, kind=record.kind)
        self._ledger = ledger
        self._task_id = task_id
        self._findings = Findings(ledger, task_id, KIND)
        summary = {"url": record.url, "recording_id": f"rec-{task_id}"}
        self._head = {**summary, **self._findings.head()}

    def task(self) -> dict[str, Any]:
        try:
            made = command_task(self._head, self._actions())
        except Damaged as error:
            raise ResultDamaged(task_id=self._task_id, reason=str(error), rows=0) from error
        if made is None:
            raise NothingToReplay(task_id=self._task_id)
        return made

    def write_trace(self, out: BinaryIO) -> None:
        write_trace(out, self._head, self._actions(), self._artifact)

    def _actions(self) -> Iterator[Mapping[str, Any]]:
        """Yield valid actions; any program may have written these files."""
        for row in self._findings.rows():
            with suppress(msgspec.ValidationError):
                yield msgspec.to_builtins(msgspec.convert(redact.stored(row), Action))

    def _artifact(self, path: str) -> bytes | None:
        folder, _, name = path.partition("/")
        if folder != ARTIFACTS_NAME:
            return None
        return self._ledger.read_artifact(self._task_id, name)


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n"
