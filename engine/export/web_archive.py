"""Export of a task's web archive as a WACZ file, also of a task that was killed or still runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.archive.task_archive import FILE_PATH
from engine.archive.wacz import About, Page, write_wacz
from engine.export import table
from engine.export.exporter import WACZ, ExportProgress
from engine.export.output import Exported, ExportStopped, new_file
from engine.ledger.reader import LedgerReader
from engine.model.errors import EngineError
from engine.text.messages import ENGLISH


class NoWebArchive(EngineError):
    """The task was not asked to keep a web archive, or has received nothing yet."""

    code = "no_web_archive"
    title = "There is no web archive"
    sentence = "Task {task_id} has no web archive."
    advice_text = "Start a crawl with --archive warc, which keeps what its pages receive."


def export_wacz(
    ledger: LedgerReader, task_id: str, place: Path, watch: ExportProgress, *, force: bool = False
) -> Exported:
    """Write the file `place` atomically.

    Raises:
        NoWebArchive: there is nothing to pack.
        NotATaskId, TaskNotFound, TaskUnreadable: there is nothing to read.
        ExportExists, ExportRefused, ExportFailed, ExportStopped: see there.
    """
    task = table.about(ledger.read(task_id), {}, time.time() * 1000)
    if FILE_PATH not in {name for name, *_ in ledger.files(task_id)}:
        raise NoWebArchive(task_id=task_id)

    def tell(done: int, total: int) -> None:
        if watch.stop.is_set():
            raise ExportStopped(rows=0)
        watch.on_progress(0, done, total)

    about = About(task.name or task.url, task.exported_at)
    with (
        ledger.open_file(task_id, FILE_PATH) as warc,
        new_file(place, ledger.root, force=force) as out,
    ):
        packed = write_wacz(out, warc, _pages(ledger, task_id), about, tell)
    notes = []
    if packed.missing:
        message = "export.wacz.missing.one" if packed.missing == 1 else "export.wacz.missing"
        notes.append(ENGLISH[message].format(count=packed.missing))
    return Exported(task_id, WACZ, str(place), packed.pages, task.partial, task.note, notes)


def _pages(ledger: LedgerReader, task_id: str) -> Iterator[Page]:
    """Yield the pages that the task stored, failed ones only if they were answered."""
    for unit in ledger.read_pages(task_id):
        urls = tuple(filter(None, (_text(unit, "final_url"), _text(unit, "url"))))
        if urls and ("error" not in unit or unit.get("status")):
            yield Page(urls, _text(unit, "title"), unit.get("depth") == 0)


def _text(unit: Mapping[str, Any], name: str) -> str:
    value = unit.get(name)
    return value if isinstance(value, str) else ""
