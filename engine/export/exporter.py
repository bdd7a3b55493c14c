"""Export of one task: its units, columns and format, and a way to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from engine.export import table
from engine.export.output import (
    Exported,
    ExportStopped,
    NothingKept,
    NothingToExport,
    ResultDamaged,
    new_file,
)
from engine.export.report import write_html, write_xlsx
from engine.export.table import Row, Table, Tally, about
from engine.kinds.registry import KINDS
from engine.kinds.spec import Column
from engine.ledger.json_stream import Damaged
from engine.ledger.reader import LedgerReader
from engine.model import redact
from engine.model.errors import InvalidArguments, Problem
from engine.model.records import ENVELOPE, PAGES_NAME, TaskRecord, TaskView, Unreadable
from engine.results.action_words import action_words
from engine.results.findings import Findings
from engine.results.site_audit import REPORT_OF, AuditStopped, Report, audit, known_report
from engine.results.units import Difference, Differences
from engine.text.messages import ENGLISH, say


def columns_for(kind: str, rows: Iterable[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Columns of a kind, followed by every other field of its first rows."""
    spec = KINDS.get(kind)
    known = spec.columns if spec is not None else _EVENT if kind == ENVELOPE else ()
    there = {name.partition(".")[0] for name, *_ in known}
    others: dict[str, None] = {}
    for row in islice(rows, LOOKED_AT):
        others.update(dict.fromkeys(f"fields.{name}" for name in _custom_fields(row)))
        others.update(dict.fromkeys(name for name in row if name not in there))
    if any(name.startswith("fields.") for name in others):
        others.pop("fields")
    found = [*known, *(Column(name, _OTHER_WIDTH) for name in others)]
    return tuple(found[:MOST])


def _custom_fields(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the custom fields of a page, each of which has a column."""
    given = row.get("fields")
    return given if isinstance(given, dict) else {}


def chosen(columns: tuple[Column, ...], wanted: Iterable[str]) -> tuple[Column, ...]:
    """Select the requested columns, in that order.

    Raises:
        InvalidArguments: names every unknown column.
    """
    by_name = {column.name: column for column in columns}
    tops = {name.partition(".")[0] for name in by_name} | set(TASK_COLUMNS)
    picks, problems = [], []
    for name in wanted:
        if name not in by_name and name.partition(".")[0] not in tops:
            there = ", ".join([*by_name, *TASK_COLUMNS])
            message = f"there is no column '{name}' (there are: {there})"
            problems.append(Problem("columns", "unknown_column", message))
            continue
        picks.append(by_name.get(name) or Column(name, _OTHER_WIDTH))
    if problems:
        raise InvalidArguments(tuple(problems))
    return tuple(picks)


Keep = Callable[[Row], bool]  # returns whether to export this unit
OnProgress = Callable[[int, int, int], None]  # rows written, bytes read, bytes in total
PROGRESS_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Format:
    """Writer of a table. `whole`: records unchanged; `text`: suitable for a pipe."""

    write: Callable[[BinaryIO, Table], None]
    whole: bool = False
    text: bool = True
    bulky: bool = True
    task_columns: bool = False


FORMATS: Final[Mapping[str, Format]] = {
    "csv": Format(table.write_csv, task_columns=True),
    "json": Format(table.write_json, whole=True),
    "jsonl": Format(table.write_jsonl, whole=True, task_columns=True),
    "xlsx": Format(write_xlsx, text=False),
    "html": Format(write_html, bulky=False),
}
WACZ: Final = "wacz"
PACKED: Final = ("zip", WACZ)  # no tables: the task's whole folder, and its web archive
LOOKED_AT: Final = 1_000  # rows that are searched for columns that are not in the table
MOST: Final = 200  # columns of one export
# End every row: files are joined, and cut apart.
TASK_COLUMNS: Final = ("task_id", "task_status")
_EVENT: Final = (Column("ts", 16), Column("kind", 18), Column("data", 80))
_OTHER_WIDTH: Final = 30


class Order(msgspec.Struct, frozen=True):
    """Request for an export: a task, a format, and columns (none: all).

    `report`: a report about the pages of a crawl (`site_audit.REPORT_NAMES`) instead of its pages.
    `language`: the code of the language in use, for an HTML report in it instead of in English.
    """

    task_id: str
    format: str
    columns: tuple[str, ...] = ()
    bom: bool = False
    report: str = ""
    language: str = ""

    def words(self, message_id: str, /, **fields: object) -> str:
        """Return a message in the language of the export."""
        return say(message_id, **fields) if self.language else ENGLISH[message_id].format(**fields)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Differences of the task `after` from the task `before`, of which `shown` are exported."""

    before: str
    after: TaskView
    all: Differences
    shown: Sequence[Difference]
    loaded_all: bool  # else a removed item may still exist


@dataclass(slots=True)
class ExportProgress:
    """Progress callback, called about ten times a second, and a stop flag checked at each row.

    `keep` filters the units: the file then has a part of the result.
    """

    on_progress: OnProgress = lambda *_: None
    keep: Keep | None = None
    stop: threading.Event = field(default_factory=threading.Event)


def order_problems(order: Order, to_file: bool) -> tuple[Problem, ...]:
    """Collect the mistakes in an order before anything is read."""
    found: list[Problem] = []
    form = FORMATS.get(order.format)
    if order.format in PACKED and not to_file:
        message = f"{order.format} needs the name of a file (-o FILE)"
        found.append(Problem("output", "missing", message))
    elif form is None:
        known = ", ".join((*FORMATS, *PACKED))
        message = f"'{order.format}' is no format (there are: {known})"
        found.append(Problem("format", "unknown_format", message))
    elif not form.text and not to_file:
        message = f"{order.format} needs the name of a file (-o FILE)"
        found.append(Problem("output", "missing", message))
    if order.bom and order.format != "csv":
        found.append(Problem("bom", "not_allowed", "only csv has a byte-order mark"))
    return tuple(found)


def export_file(
    ledger: LedgerReader, order: Order, place: Path, watch: ExportProgress, *, force: bool = False
) -> Exported:
    """Export to the file `place` atomically.

    Raises:
        InvalidArguments: every mistake in the order.
        NotATaskId, TaskNotFound, TaskUnreadable, NothingToExport: there is nothing to read.
        ExportExists, ExportRefused, ExportFailed, ExportStopped, ResultDamaged: see there.
    """
    made = _Export(ledger, order, watch, to_file=True)
    with new_file(place, ledger.root, force=force) as out:
        made.write(out)
    return made.report(str(place))


def export_stream(
    ledger: LedgerReader, order: Order, out: BinaryIO, watch: ExportProgress
) -> Exported:
    """Stream a text format into `out`; raises as `export_file`, and OSError."""
    made = _Export(ledger, order, watch, to_file=False)
    made.write(out)
    return made.report("-")


def _nothing_error(record: TaskRecord | Unreadable) -> NothingToExport:
    """Choose the error: only a live task may have something later."""
    if isinstance(record, TaskRecord) and record.is_terminal:
        return NothingKept(task_id=record.task_id, status=record.status)
    return NothingToExport(task_id=record.task_id)


class _Export:
    """Export with all checks in the constructor, before a file is created."""

    def __init__(
        self, ledger: LedgerReader, order: Order, watch: ExportProgress, *, to_file: bool
    ) -> None:
        problems = order_problems(order, to_file)
        if problems:
            raise InvalidArguments(problems)
        self._order, self._watch = order, watch
        self._format = FORMATS[order.format]
        record = ledger.read(order.task_id)
        kind = "" if isinstance(record, Unreadable) else record.kind
        self._findings = Findings(ledger, order.task_id, kind)
        ours = isinstance(record, TaskRecord) and record.engine is not None
        self._is_ours = ours and self._findings.place == PAGES_NAME
        self._about = about(record, self._findings.head(), time.time() * 1000)
        if not self._findings.place:
            raise _nothing_error(record)
        self._tally = Tally()
        self._report = self._audited(ledger) if order.report else None
        if self._report is not None:
            title = order.words(f"audit.{self._report.name}")
            name = self._about.name or self._about.url
            self._about = msgspec.structs.replace(self._about, name=f"{title}: {name}")
        self._columns = self._chosen(kind)

    def write(self, out: BinaryIO) -> None:
        """Write all rows. Raises ExportStopped, ResultDamaged."""
        write = table.write_csv_with_bom if self._order.bom else self._format.write
        whole = self._format.whole and not self._order.columns and self._report is None
        key = self._findings.key if self._report is None else self._report.name
        rows = self._rows() if self._report is None else self._report_rows(self._report)
        try:
            made = Table(
                self._about,
                key,
                self._columns,
                rows,
                whole,
                self._tally,
                self._order.language,
                self._report is not None,
            )
            write(out, made)
        except Damaged as error:
            raise self._damaged(error) from error

    def report(self, path: str) -> Exported:
        return Exported(
            task_id=self._about.task_id,
            format=self._order.format,
            path=path,
            rows=self._tally.rows,
            partial=self._about.partial,
            note=self._about.note,
            notes=self._tally.notes(),
        )

    def _audited(self, ledger: LedgerReader) -> Report:
        """Compute the report, which takes two passes over the pages."""
        name = known_report(self._order.report)

        tell = partial(self._watch.on_progress, 0)
        try:
            found = audit(ledger, self._order.task_id, self._watch.stop, tell)
        except AuditStopped as stopped:
            raise ExportStopped(rows=0) from stopped
        self._tally.lines_lost = found.lost
        if found.is_limited:
            self._tally.remarks.append(ENGLISH["audit.limited"])
        return found.report(name)

    def _report_rows(self, report: Report) -> Iterator[Row]:
        task = {"task_id": self._about.task_id, "task_status": self._about.status}
        keep = self._watch.keep
        for record in report.records():
            if keep is not None and not keep(record):
                continue
            yield redact.value(record) | task
            self._tally.rows += 1

    def _chosen(self, kind: str) -> tuple[Column, ...]:
        if self._report is not None:
            found = tuple(
                Column(one.name, one.width) for one in REPORT_OF[self._report.name].columns
            )
            if self._order.columns:
                return chosen(found, self._order.columns)
            return found + tuple(map(Column, TASK_COLUMNS)) * self._format.task_columns
        if self._format.whole and not self._order.columns:
            return ()
        try:
            found = columns_for(kind, self._findings.rows())
        except Damaged as error:
            raise self._damaged(error) from error
        if self._order.columns:
            return chosen(found, self._order.columns)
        if not self._format.bulky:
            brief = tuple(column for column in found if column.brief)
            found = brief or tuple(column for column in found if not column.bulky)
        if self._format.task_columns:
            found += tuple(map(Column, TASK_COLUMNS))
        return found

    def _rows(self) -> Iterator[Row]:
        """Yield the rows, redacted like all output, each with its task.

        Pages that we stored were redacted before by the page rule; rows of other programs were not.
        """
        clean = redact.stored if self._is_ours else redact.value
        added = {}
        if self._format.task_columns or self._order.columns:
            added = {"task_id": self._about.task_id, "task_status": self._about.status}
        known = None if self._format.whole or self._order.columns else self._known_fields()
        findings, tally, reported_s, keep = self._findings, self._tally, 0.0, self._watch.keep
        in_words = any(column.name == "action" for column in self._columns)
        for row in findings.rows():
            if self._watch.stop.is_set():
                raise ExportStopped(rows=tally.rows)
            if keep is not None and not keep(row):
                continue
            if known is not None and not row.keys() <= known:
                tally.fields_left.update(row.keys() - known)
            made = clean(row) | added
            yield made | {"action": action_words(made)} if in_words else made
            tally.rows += 1
            if (now_s := time.monotonic()) - reported_s > PROGRESS_S:
                reported_s = now_s
                self._watch.on_progress(tally.rows, findings.done, findings.size)
        tally.lines_lost = findings.lost
        self._watch.on_progress(tally.rows, findings.size, findings.size)

    def _known_fields(self) -> frozenset[str]:
        """Fields that have a column, or are omitted on purpose."""
        bulky = columns_for(self._about.kind, ())
        return frozenset(column.name.partition(".")[0] for column in (*self._columns, *bulky))

    def _damaged(self, error: Damaged) -> ResultDamaged:
        rows = self._tally.rows
        return ResultDamaged(task_id=self._order.task_id, reason=str(error), rows=rows)
