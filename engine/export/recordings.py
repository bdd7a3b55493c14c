"""Export of a recording for another program: a command task, a trace, a list of variables."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from engine.export.output import ResultDamaged, new_file
from engine.kinds.recording.recording_actions import Action
from engine.kinds.recording.recording_export import command_task, template
from engine.kinds.recording.recording_kind import NotARecording, NothingToReplay
from engine.kinds.traits import RECORDING_TRAITS
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
            document = task if form == "task" else template(task)
            out.write(json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n")
    left_out = task["metadata"].get("notReplayed", [])
    count, files = len(task["commands"]), task["metadata"].get("uploads", {}).get("files", [])
    return ExportedRecording(task_id, form, str(place), count, variables, left_out, files)


def replay_task(ledger: LedgerReader, task_id: str) -> dict[str, Any]:
    """Return the command task that replays this recording.

    Raises:
        NotARecording, NothingToReplay: the task cannot be exported so.
        NotATaskId, TaskNotFound, TaskUnreadable, ResultDamaged: it cannot be read.
    """
    return _Source(ledger, task_id).task()


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


VERSION: Final = 8
PAGE: Final = "page@recording"
_ACTION_MS: Final = 50  # displayed duration of an action; the actual one is unknown
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # fixed, so that the same recording gives the same file
# Our type of action -> the viewer's class and method.
_METHODS: Final[Mapping[str, tuple[str, str]]] = {
    "navigate": ("Frame", "goto"),
    "navigated": ("Frame", "goto"),
    "click": ("Frame", "click"),
    "check": ("Frame", "check"),
    "drag": ("Frame", "dragAndDrop"),
    "close_tab": ("Page", "close"),
    "hover": ("Frame", "hover"),
    "type": ("Frame", "fill"),
    "select": ("Frame", "selectOption"),
    "upload": ("Frame", "setInputFiles"),
    "key": ("Page", "keyboardPress"),
    "scroll": ("Page", "mouseWheel"),
}
_BY_HOW: Final[Mapping[str, tuple[str, str]]] = {
    "reload": ("Page", "reload"),
    "back": ("Page", "goBack"),
    "forward": ("Page", "goForward"),
}
Read = Callable[[str], bytes | None]


def write_trace(
    out: BinaryIO, head: Mapping[str, Any], actions: Iterable[Mapping[str, Any]], read: Read
) -> None:
    """Write the zip.

    It is derived from the stored actions, so that it holds no other data: no page content (no
    snapshots), variables for typed text unless the operator stored it, and the summary's counts of
    the network only. Format version 8, which every viewer since 1.53 opens; `trace.trace` and
    `trace.network` are lines of JSON in a zip.

    Args:
        read: returns an artifact's bytes for its path in the task's folder, or None.
    """
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        lines = io.BytesIO()
        for line in _lines(head, actions, lambda name, path: _picture(archive, name, read(path))):
            lines.write(json.dumps(line, ensure_ascii=True).encode() + b"\n")
        archive.writestr(_entry("trace.trace"), lines.getvalue())
        archive.writestr(_entry("trace.network"), b"")


def _lines(
    head: Mapping[str, Any],
    actions: Iterable[Mapping[str, Any]],
    add_picture: Callable[[str, str], bool],
) -> Iterator[dict[str, Any]]:
    known = head.get("viewport")
    size = dict(known) if isinstance(known, Mapping) else {"width": 1280, "height": 800}
    began = head.get("started_at")
    for number, action in enumerate(actions, 1):
        began = action.get("ts", 0) if began is None else began
        if number == 1:
            yield _context(head, began, size)
        at = max(0, action.get("ts", 0) - began)
        yield _before(number, action, at)
        yield {"type": "after", "callId": f"call@{number}", "endTime": at + _ACTION_MS}
        picture = str(action.get("screenshot") or "")
        if picture and add_picture(f"{PAGE}-{number}.png", picture):
            yield {
                "type": "screencast-frame",
                "pageId": PAGE,
                "sha1": f"{PAGE}-{number}.png",
                "timestamp": at + _ACTION_MS,
                **size,
            }


def _context(head: Mapping[str, Any], began: float, size: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": VERSION,
        "type": "context-options",
        "origin": "library",
        "browserName": "chromium",
        "title": str(head.get("label") or head.get("recording_id") or KIND),
        "options": {"viewport": size},
        "wallTime": began,
        "monotonicTime": 0,
        "sdkLanguage": "javascript",
        "testIdAttributeName": "data-testid",
    }


def _before(number: int, action: Mapping[str, Any], at: float) -> dict[str, Any]:
    kind, how = str(action.get("type", "")), str(action.get("how", ""))
    owner, method = _BY_HOW.get(how) or _METHODS.get(kind) or ("Page", kind or "unknown")
    return {
        "type": "before",
        "callId": f"call@{number}",
        "startTime": at,
        "class": owner,
        "method": method,
        "params": _params(action),
        "pageId": PAGE,
    }


def _params(action: Mapping[str, Any]) -> dict[str, Any]:
    """Return the viewer's arguments, from fields of the action only."""
    params: dict[str, Any] = {}
    if "selector" in action:
        parts = [*action.get("frame", ()), action["selector"]]
        params["selector"] = " >> internal:control=enter-frame >> ".join(parts)
    names = {"text": "value", "key": "key", "dx": "deltaX", "dy": "deltaY", "button": "button"}
    params |= {theirs: action[ours] for ours, theirs in names.items() if ours in action}
    if action.get("type") in ("navigate", "navigated"):
        params["url"] = action.get("asked") or action.get("url")
    if action.get("values"):
        params["options"] = [{"valueOrLabel": value} for value in action["values"]]
    return params


def _picture(archive: zipfile.ZipFile, name: str, data: bytes | None) -> bool:
    if data is None:
        return False
    archive.writestr(_entry(f"resources/{name}"), data)
    return True


def _entry(name: str) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name, _EPOCH)
    made.compress_type = zipfile.ZIP_DEFLATED
    return made
