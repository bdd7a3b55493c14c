"""Asynchronous exports: the work runs on a thread, and stops on cancellation."""

from __future__ import annotations

import asyncio
import re
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

from msgspec.structs import replace

from engine.archive import wacz
from engine.archive.task_archive import FILE_PATH
from engine.export.exporter import (
    FORMATS,
    PACKED,
    PROGRESS_S,
    WACZ,
    Comparison,
    ExportProgress,
    Order,
    export_file,
    export_stream,
    order_problems,
)
from engine.export.output import Exported, ExportStopped, new_file
from engine.export.recordings import ExportedRecording, export_recording, replay_task
from engine.export.table import (
    About,
    Row,
    Table,
    Tally,
    about,
    iso,
    rows_message,
    write_csv_with_bom,
)
from engine.kinds.spec import Column
from engine.ledger import holes
from engine.ledger.reader import LedgerReader, TaskAliases
from engine.ledger.routing import OWN_ONLY, Router, routed
from engine.model import redact
from engine.model.config import VERSION
from engine.model.errors import EngineError, InvalidArguments
from engine.model.ledger_ids import HERE, plain_id
from engine.model.records import (
    ARTIFACTS_NAME,
    SESSION_STATE,
    EngineFields,
    TaskRecord,
    TaskView,
    Unreadable,
)
from engine.model.status import moment, worked_until
from engine.query.subject import address_in, host_of
from engine.results.units import Difference
from engine.text.messages import ENGLISH

# A task's folder as one zip file: its files unchanged, without locks, links and logins.

BLOCK: Final = 1024 * 1024
_LOGIN: Final = f"{ARTIFACTS_NAME}/{SESSION_STATE}"
_NO_TEXT: Final = re.compile("[\ud800-\udfff]")
_PACKED = (".png", ".jpg", ".jpeg", ".webp", ".zip", ".gz")  # not compressible any further


def zip_folder(
    ledger: LedgerReader, task_id: str, out: BinaryIO, watch: ExportProgress
) -> Exported:
    """Write the files of the task into `out`, in blocks.

    Holes in JSON are left out, and so are the cookies and stored data of a snapshot: whoever gets
    the zip would be signed in. Both are noted.

    Raises:
        NotATaskId, TaskNotFound, TaskUnreadable: there is nothing to read.
        ExportStopped: the user stopped it.
    """
    listed = ledger.files(task_id)
    files = [one for one in listed if not one[0].startswith(_LOGIN)]
    logins = [name for name, *_ in listed if name.startswith(_LOGIN)]
    done, whole = 0, sum(size for _, size, _ in files)
    lacking: list[str] = []
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
        for number, (name, *_) in enumerate(files):
            facts = zipfile.ZipInfo(f"{task_id}/{_packed_name(name)}")
            packed = name.lower().endswith(_PACKED)
            facts.compress_type = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
            with (
                ledger.open_file(task_id, name) as file,
                archive.open(facts, "w", force_zip64=True) as inside,
            ):
                is_text = name.endswith((".json", ".jsonl"))  # others may hold NULs rightly
                blocks = holes.written(file, BLOCK) if is_text else _blocks(file)
                for block in blocks:
                    if not block and name not in lacking:
                        lacking.append(name)
                    if watch.stop.is_set():
                        raise ExportStopped(rows=number)
                    inside.write(block)
                    done += len(block)
                    watch.on_progress(number, done, whole)
    told = (("export.holes", lacking), ("export.logins", logins))
    notes = [ENGLISH[key].format(names=", ".join(names)) for key, names in told if names]
    return Exported(task_id, "zip", "", len(files), False, "", notes)


def _packed_name(name: str) -> str:
    """Return a file's name as text; bytes that are none, as other programs can write, as `%FF`."""
    return _NO_TEXT.sub(lambda found: f"%{ord(found[0]) & 0xFF:02X}", name)


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block


# A task's web archive as a WACZ file, also of a task that was killed or still runs.


class NoWebArchive(EngineError):
    """The task was not asked to keep a web archive, or has received nothing yet."""

    code = "no_web_archive"
    title = "There is no web archive"
    sentence = "Task {task_id} has no web archive."
    advice_text = "Start a crawl with --archive warc, which keeps what its pages receive."


def _export_wacz(
    ledger: LedgerReader, task_id: str, place: Path, watch: ExportProgress, *, force: bool = False
) -> Exported:
    """Write the file `place` atomically.

    Raises:
        NoWebArchive: there is nothing to pack.
        NotATaskId, TaskNotFound, TaskUnreadable: there is nothing to read.
        ExportExists, ExportRefused, ExportFailed, ExportStopped: see there.
    """
    task = about(ledger.read(task_id), {}, time.time() * 1000)
    if FILE_PATH not in {name for name, *_ in ledger.files(task_id)}:
        raise NoWebArchive(task_id=task_id)

    def tell(done: int, total: int) -> None:
        if watch.stop.is_set():
            raise ExportStopped(rows=0)
        watch.on_progress(0, done, total)

    titled = wacz.About(task.name or task.url, task.exported_at)
    with (
        ledger.open_file(task_id, FILE_PATH) as warc,
        new_file(place, ledger.root, force=force) as out,
    ):
        packed = wacz.write_wacz(out, warc, _pages(ledger, task_id), titled, tell)
    notes = []
    if packed.missing:
        message = "export.wacz.missing.one" if packed.missing == 1 else "export.wacz.missing"
        notes.append(ENGLISH[message].format(count=packed.missing))
    return Exported(task_id, WACZ, str(place), packed.pages, task.partial, task.note, notes)


def _pages(ledger: LedgerReader, task_id: str) -> Iterator[wacz.Page]:
    """Yield the pages that the task stored, failed ones only if they were answered."""
    for unit in ledger.read_pages(task_id):
        urls = tuple(filter(None, (_text(unit, "final_url"), _text(unit, "url"))))
        if urls and ("error" not in unit or unit.get("status")):
            yield wacz.Page(urls, _text(unit, "title"), unit.get("depth") == 0)


def _text(unit: Mapping[str, Any], name: str) -> str:
    value = unit.get(name)
    return value if isinstance(value, str) else ""


# The task list as a file: one row for each task, with the columns of the list.

KEY: Final = "tasks"
COLUMNS: Final = (
    *(Column("task_id", 18), Column("kind", 16), Column("status", 12), Column("orphaned", 9)),
    *(Column("name", 30), Column("url", 50), Column("objective", 40), Column("done", 8)),
    *(Column("total", 8), Column("failed", 8), Column("created_at", 24), Column("started_at", 24)),
    *(Column("ended_at", 24), Column("duration_ms", 12), Column("error_code", 18)),
    *(Column("error", 50), Column("budget_status", 12), Column("budget_exceeded", 24)),
    *(Column("phase", 10), Column("host", 18), Column("machine", 18), Column("pid", 8)),
    Column("parent_task_id", 18),
    *(Column("contract_id", 18), Column("forced_at", 24), Column("client", 18)),
    Column("route", 8),
)
LEDGER: Final = Column("ledger", 18)  # only where tasks of several ledgers are listed


def export_list(
    views: Sequence[TaskView],
    order: Order,
    place: Path,
    root: Path,
    watch: ExportProgress,
    *,
    force: bool,
) -> Exported:
    """Write these tasks to the file `place` atomically.

    Raises:
        InvalidArguments, ExportExists, ExportRefused, ExportFailed, ExportStopped: see there.
    """
    several = any(view.ledger for view in views)
    columns = (*COLUMNS, LEDGER) if several else COLUMNS
    rows = (row_of(view) | _ledger_cell(view, several=several) for view in views)
    note = order.words(rows_message(len(views)), count=len(views))
    facts = _about_list(order.words("export.kind.tasks"), note)
    listed = _Listed(facts, KEY, columns, rows, len(views))
    return _write_listed(listed, order, place, root, watch, force=force)


@dataclass(frozen=True, slots=True)
class _Listed:
    """Rows that are known before the export, in contrast to those of a result."""

    about: About
    key: str
    columns: tuple[Column, ...]
    rows: Iterator[Row]
    count: int
    remarks: tuple[str, ...] = ()


def _write_listed(
    listed: _Listed, order: Order, place: Path, root: Path, watch: ExportProgress, *, force: bool
) -> Exported:
    problems = order_problems(order, True)
    if problems:
        raise InvalidArguments(problems)
    form, tally = FORMATS[order.format], Tally(remarks=list(listed.remarks))
    rows = _watched(listed, tally, watch)
    table = Table(listed.about, listed.key, listed.columns, rows, form.whole, tally, order.language)
    write = write_csv_with_bom if order.bom else form.write
    with new_file(place, root, force=force) as out:
        write(out, table)
    task = listed.about
    notes = tally.notes()
    return Exported(task.task_id, order.format, str(place), tally.rows, task.partial, "", notes)


def _about_list(name: str, note: str) -> About:
    texts_of = dict.fromkeys(("status", "url", "created_at", "started_at", "ended_at", "error"), "")
    return About(
        task_id="",
        kind=KEY,
        partial=False,
        note=note,
        name=name,
        exported_at=iso(time.time() * 1000),
        program=f"openchrome-monitor {VERSION}",
        summary={},
        **texts_of,
    )


def _watched(listed: _Listed, tally: Tally, watch: ExportProgress) -> Iterator[Row]:
    reported_s = 0.0
    for row in listed.rows:
        if watch.stop.is_set():
            raise ExportStopped(rows=tally.rows)
        yield redact.value(row)
        tally.rows += 1
        if (now_s := time.monotonic()) - reported_s > PROGRESS_S:
            reported_s = now_s
            watch.on_progress(tally.rows, tally.rows, listed.count)
    watch.on_progress(tally.rows, listed.count, listed.count)


def _ledger_cell(view: TaskView, *, several: bool) -> Row:
    return {LEDGER.name: view.ledger or HERE} if several else {}


def row_of(view: TaskView) -> dict[str, Any]:
    """Convert a task's view to a row; unknown fields are empty.

    `host` is the site's, as in the list and in queries; `machine` ran the task.
    """
    entry, units = view.entry, view.units
    row: dict[str, Any] = {column.name: None for column in COLUMNS}
    if isinstance(entry, Unreadable):
        unreadable_row = {"status": "unreadable", "error": entry.reason}
        return row | {"task_id": plain_id(entry.task_id), **unreadable_row}
    if units is not None:
        row |= {"done": units.done, "total": units.total, "failed": units.failed}
    return row | {
        "task_id": plain_id(entry.task_id),
        "kind": entry.kind,
        "status": entry.status,
        "orphaned": view.orphaned,
        "url": address_in(entry.args_summary) or entry.url,
        "host": host_of(view),
        "objective": entry.objective,
        "error_code": entry.error.code if entry.error else None,
        "error": entry.error.message if entry.error else None,
        "budget_status": entry.budget_status,
        "budget_exceeded": ", ".join(entry.budget_exceeded or ()),
        "phase": entry.phase,
        "pid": entry.pid,
        **_times(entry),
        **_links(entry.engine or EngineFields()),
    }


def _times(record: TaskRecord) -> Mapping[str, Any]:
    began, until = moment(record.started_at), worked_until(record)
    # OpenChrome's orphans were last active before they started: 0, as the window shows it.
    lasted = None if began is None or until is None else max(0, round(until - began))
    return {
        "created_at": iso(record.created_at),
        "started_at": iso(record.started_at),
        "ended_at": iso(record.ended_at),
        "duration_ms": lasted,
    }


def _links(engine: EngineFields) -> Mapping[str, Any]:
    return {
        "name": engine.name,
        "machine": engine.host,
        "parent_task_id": plain_id(engine.parent_task_id or "") or None,
        "contract_id": plain_id(engine.contract_id or "") or None,
        "forced_at": iso(engine.forced_at),
        "client": engine.client,
        "route": engine.route,
    }


# The differences between two tasks as a file: one row for each item that differs.

DIFFERENCES_KEY: Final = "differences"
DIFFERENCE_COLUMNS: Final = (
    *(Column("change", 10), Column("item", 60), Column("before", 40), Column("after", 40)),
    Column("text_differs", 12),
)


def export_comparison(
    compared: Comparison,
    order: Order,
    place: Path,
    root: Path,
    watch: ExportProgress,
    *,
    force: bool,
) -> Exported:
    """Write the shown differences to the file `place` atomically.

    Raises:
        InvalidArguments, TaskUnreadable: there is nothing to write.
        ExportExists, ExportRefused, ExportFailed, ExportStopped: see there.
    """
    counted = {name: getattr(compared.all, name) for name in _COUNTED}
    summary = {"compared_with": plain_id(compared.before), **counted}
    task = about(compared.after.entry, {"summary": summary}, time.time() * 1000)
    remarks = tuple(_comparison_remarks(compared))
    task = replace(
        task,
        task_id=plain_id(task.task_id),
        name=f"{order.words('export.differences')}: {task.name or task.url}",
        partial=bool(remarks),
        note=ENGLISH["export.differences.note"].format(
            after=plain_id(task.task_id), before=plain_id(compared.before)
        ),
    )
    rows, count = map(_difference_row, compared.shown), len(compared.shown)
    listed = _Listed(task, DIFFERENCES_KEY, DIFFERENCE_COLUMNS, rows, count, remarks)
    return _write_listed(listed, order, place, root, watch, force=force)


_COUNTED: Final = ("added", "removed", "changed", "same")


def _comparison_remarks(compared: Comparison) -> Iterator[str]:
    found = compared.all
    if len(found.found) < found.added + found.removed + found.changed:
        yield ENGLISH["export.differences.cut"].format(count=len(found.found))
    if found.removed and not compared.loaded_all:
        yield ENGLISH["export.differences.not_all"]


def _difference_row(one: Difference) -> Row:
    texts = {"change": one.change, "item": one.name, "before": one.before, "after": one.after}
    return texts | {"text_differs": one.units is not None}


class Exports:
    """Exports of every ledger's tasks to files outside of all ledgers."""

    part_name = "exports"

    def __init__(self, root: Path, router: Router = OWN_ONLY) -> None:
        self._root = root
        self.router = router
        self._aliases = TaskAliases()

    async def to_file(
        self, order: Order, place: Path, *, force: bool = False, watch: ExportProgress | None = None
    ) -> Exported:
        """Write the file `place` atomically; see `exporter.export_file` for errors."""
        await self.router.check_outside(place)
        return await self._to_file(order.task_id, order, place, force, watch)

    @routed()
    async def _to_file(
        self, task_id: str, order: Order, place: Path, force: bool, watch: ExportProgress | None
    ) -> Exported:
        order = replace(order, task_id=task_id)
        active_watch = watch or ExportProgress()

        def work() -> Exported:
            reader = LedgerReader(self._root)
            named = self._named(reader, order)
            if order.format not in PACKED:
                return export_file(reader, named, place, active_watch, force=force)
            if named.format == WACZ:
                return _export_wacz(reader, named.task_id, place, active_watch, force=force)
            with new_file(place, reader.root, force=force) as out:
                done = zip_folder(reader, named.task_id, out, active_watch)
            return replace(done, path=str(place))

        try:
            return await asyncio.to_thread(work)
        finally:
            active_watch.stop.set()  # a cancelled export leaves no thread writing

    async def recording_to_file(
        self, task_id: str, form: str, place: Path, *, force: bool = False
    ) -> ExportedRecording:
        """Write a recording for another program; see `export_recording` for errors."""
        await self.router.check_outside(place)
        return await self._recording_to_file(task_id, form, place, force)

    @routed()
    async def _recording_to_file(
        self, task_id: str, form: str, place: Path, force: bool
    ) -> ExportedRecording:
        def work() -> ExportedRecording:
            reader = LedgerReader(self._root)
            known = self._aliases.ledger_id(reader, task_id)
            return export_recording(reader, known, form, place, force=force)

        return await asyncio.to_thread(work)

    @routed()
    async def replay(self, task_id: str) -> dict[str, Any]:
        """Return the document of the command task that replays a recording; see `replay_task`."""

        def work() -> dict[str, Any]:
            reader = LedgerReader(self._root)
            return replay_task(reader, self._aliases.ledger_id(reader, task_id))

        return await asyncio.to_thread(work)

    async def list_to_file(
        self,
        views: Sequence[TaskView],
        order: Order,
        place: Path,
        *,
        force: bool = False,
        watch: ExportProgress | None = None,
    ) -> Exported:
        """Write the list of these tasks; see `export_list` for errors."""
        work = partial(export_list, views, order)
        return await self._listed_to_file(work, place, force, watch)

    async def comparison_to_file(
        self,
        compared: Comparison,
        order: Order,
        place: Path,
        *,
        force: bool = False,
        watch: ExportProgress | None = None,
    ) -> Exported:
        """Write differences between two tasks; see `export_comparison` for errors."""
        work = partial(export_comparison, compared, order)
        return await self._listed_to_file(work, place, force, watch)

    async def _listed_to_file(
        self,
        work: Callable[..., Exported],
        place: Path,
        force: bool,
        watch: ExportProgress | None,
    ) -> Exported:
        await self.router.check_outside(place)
        active_watch = watch or ExportProgress()
        try:
            return await asyncio.to_thread(work, place, self._root, active_watch, force=force)
        finally:
            active_watch.stop.set()

    async def to_stream(
        self, order: Order, out: BinaryIO, *, watch: ExportProgress | None = None
    ) -> Exported:
        """Stream a text format into `out`; see `exporter.export_stream` for errors."""
        return await self._to_stream(order.task_id, order, out, watch)

    @routed()
    async def _to_stream(
        self, task_id: str, order: Order, out: BinaryIO, watch: ExportProgress | None
    ) -> Exported:
        order = replace(order, task_id=task_id)
        active_watch = watch or ExportProgress()

        def work() -> Exported:
            reader = LedgerReader(self._root)
            return export_stream(reader, self._named(reader, order), out, active_watch)

        try:
            return await asyncio.to_thread(work)
        finally:
            active_watch.stop.set()

    def _named(self, reader: LedgerReader, order: Order) -> Order:
        """Resolve the order's id to the task's folder: a command task has an alias, too."""
        return replace(order, task_id=self._aliases.ledger_id(reader, order.task_id))
