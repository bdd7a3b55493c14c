"""Exports for people: an HTML report with nothing in it but text, and XLSX sheets with links."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import msgspec

from engine.export.table import (
    EXACT,
    About,
    Row,
    Table,
    begins_formula,
    is_number,
    rows_message,
    text_of,
)
from engine.model.display import display_lines
from engine.model.kind_traits import traits_of
from engine.model.records import Status
from engine.text.messages import ENGLISH, decimal, retold, translation

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet


# No link and no image: an address in a report is text, as the policy enforces.
TEMPLATE: Final = """\
<!doctype html>
<html lang="{{ language }}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
:root { color-scheme: light dark; font: 14px/1.45 system-ui, sans-serif }
body { margin: 2rem; max-width: 120rem }
h1 { font-size: 1.4rem; overflow-wrap: anywhere }
.partial { border-left: .3rem solid #c60; padding-left: .6rem; font-weight: 600 }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem }
dt { font-weight: 600 }
dd { margin: 0; overflow-wrap: anywhere }
table { border-collapse: collapse; margin-top: 1.5rem; width: 100% }
th, td { border: 1px solid #8886; padding: .25rem .5rem; text-align: left; vertical-align: top }
th { position: sticky; top: 0; background: Canvas }
td { white-space: pre-wrap; overflow-wrap: break-word; max-width: 40rem }
@media print { body { margin: 0 } th { position: static } td { overflow-wrap: anywhere } }
</style>
</head>
<body>
<h1>{{ title }}</h1>
<p{% if partial %} class="partial"{% endif %}>{{ note }}</p>
<dl>
{% for name, value in facts %}
<dt>{{ name }}</dt><dd>{{ value }}</dd>
{% endfor %}
</dl>
<table>
<thead><tr>{% for name in names %}<th>{{ name }}</th>{% endfor %}</tr></thead>
<tbody>
{% for cells in rows %}
<tr>{% for cell in cells %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
</table>
<p>{{ written() }}</p>
{% for line in notes() %}
<p>{{ line }}</p>
{% endfor %}
</body>
</html>
"""


def write_html(out: BinaryIO, table: Table) -> None:
    """Write the report row by row; the template escapes every value."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    about, texts = table.about, _Texts(table.language, is_audit=table.is_audit)
    kind = texts.kind(about.kind)
    pieces = environment.from_string(TEMPLATE).generate(
        language=table.language or "en",
        title=_shown(about.name or about.url or f"{kind} {about.task_id}"),
        partial=about.partial,
        note=texts.sentence(about.note),
        facts=[(_shown(name), _shown(text)) for name, text in _key_facts(about, texts)],
        names=[_shown(texts.column(column.name)) for column in table.columns],
        rows=_cells(table, texts),
        written=lambda: texts.message(rows_message(table.tally.rows)).format(
            count=table.tally.rows
        ),
        notes=lambda: map(texts.sentence, table.tally.notes()),
    )
    for piece in pieces:
        out.write(piece.encode())


def facts(about: About) -> list[tuple[str, str]]:
    """List the facts about the task as names and texts; empty ones are omitted."""
    values = {name: getattr(about, name) for name in about.__struct_fields__ if name != "summary"}
    values.update({f"summary.{name}": value for name, value in about.summary.items()})
    return [(name, text_of(value)) for name, value in values.items() if value not in ("", None)]


class _Texts:
    """Texts of a report: in the language in use if one is named, else in English."""

    def __init__(self, language: str, *, is_audit: bool = False) -> None:
        self._is_translated, self._is_audit = bool(language), is_audit

    def message(self, message_id: str, default: str = "") -> str:
        if message_id not in ENGLISH:
            return default
        return translation(message_id) if self._is_translated else ENGLISH[message_id]

    def sentence(self, english: str) -> str:
        """Translate a note or a reason, which tasks store in English."""
        return retold(english) if self._is_translated else english

    def number(self, value: float, digits: int) -> str:
        return decimal(value, digits) if self._is_translated else f"{value:.{digits}f}"

    def heading(self, name: str) -> str:
        """Return the heading of a field; an unknown one is made of its name."""
        unit = " (ms)" if name.endswith(_MS) else ""
        words = name.removeprefix("facts.").removesuffix(_MS).replace("_", " ").strip()
        made = f"{words[:1].upper()}{words[1:]}{unit}"
        return self.message(f"report.field.{name}", made)

    def column(self, name: str) -> str:
        """Return the heading of a column; in a report about pages that of the tab Audit.

        Elsewhere a field of the same name, as `target`, is another one.
        """
        heading = self.heading(name)
        return self.message(f"audit.column.{name}", heading) if self._is_audit else heading

    def kind(self, kind: str) -> str:
        return self.message(f"kind.{kind}", self.message(f"export.kind.{kind}", kind))

    def status(self, status: str) -> str:
        return self.message(f"status.{status.lower()}", status.capitalize())

    def cell(self, name: str, text: str) -> str:
        """Return the text of a cell, with the words that this program writes translated."""
        if not self._is_translated or not text:
            return text
        if name in _SENTENCES:
            return retold(text)
        ids = (f"{group}.{text}" for group in _WORDS.get(name, ()))
        known = (one for message_id in ids for one in (message_id, message_id.lower()))
        return self.message(next((one for one in known if one in ENGLISH), ""), text)


def _key_facts(about: About, texts: _Texts) -> list[tuple[str, str]]:
    """List what a person asks first: what it was, how it ended, and the numbers of its summary."""
    given = {
        "address": about.url,
        "kind": texts.kind(about.kind),
        "status": texts.status(about.status),
        "error": texts.sentence(about.error),
        "started": _time(about.started_at or about.created_at),
        "ended": _time(about.ended_at),
    }
    named = [(texts.heading(name), text) for name, text in given.items()]
    for name, value in about.summary.items():
        if is_number(value) and name.endswith(_MS):
            seconds = texts.number(value / 1000, 1)
            named.append((texts.heading(name.removesuffix(_MS)), f"{seconds} s"))
        elif name == "stopped_by":
            ended = f"{traits_of(about.kind).ended_message}.{value}"
            word = texts.cell("status", text_of(value))  # as `cancelled`
            named.append((texts.heading("ended_by"), texts.message(ended, word)))
        elif isinstance(value, str | int | float):
            named.append((texts.heading(name), text_of(value)))
    named.append((texts.heading("task"), about.task_id))
    named.append((texts.heading("exported"), f"{_time(about.exported_at)}, {about.program}"))
    return [(name, text) for name, text in named if text]


def _time(iso: str) -> str:
    """Format `2026-03-01T08:00:00.123Z` as `2026-03-01 08:00:00 UTC`."""
    return f"{iso[:10]} {iso[11:19]} UTC" if iso else ""


def _cells(table: Table, texts: _Texts) -> Iterator[list[str]]:
    """Yield the failed rows as they are read, then the others, which wait in a spool."""
    encode, decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(list[str]).decode
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as others:
        for row in table.rows:
            values = zip(table.columns, table.values(row), strict=True)
            cells = [_shown(texts.cell(one.name, text_of(value))) for one, value in values]
            if _has_failed(row):
                yield cells
            else:
                others.write(encode(cells) + b"\n")
        others.seek(0)
        yield from map(decode, others)


def _has_failed(row: Row) -> bool:
    return bool(row.get("error")) or str(row.get("status")).upper() == Status.FAILED


def _shown(text: str) -> str:
    return display_lines(text)


_MS: Final = "_ms"
_SPOOL_BYTES: Final = 8_000_000  # kept in memory before the rows wait in a file
_SENTENCES: Final = frozenset({"error", "error.message"})  # columns with reasons
_WORDS: Final = {  # the first parts of the ids of messages for the words of a column
    "change": ("report.value",),
    "text_differs": ("report.value",),
    "orphaned": ("report.value",),
    "part": ("part",),
    "kind": ("kind",),
    "status": ("status", "report.value"),  # of a task, or of a command
}

ROWS: Final = 1_048_576  # of one sheet, including the header
CHARS: Final = 32_767  # of one cell
ABOUT: Final = "about"
LINKS: Final = "links"  # a column whose lists would fill a cell; they get a separate sheet
LINK_COLUMNS: Final = {"url": 50, "href": 50, "text": 40, "rel": 18, "external": 9, "by": 8}
MARK: Final = "…"


def write_xlsx(out: BinaryIO, table: Table, *, most_rows: int = ROWS) -> None:
    """Write strings as strings, never as formulas or links; long text is cut and counted.

    Memory stays flat: rows are buffered in a temporary folder, which is removed at the end.
    """
    from xlsxwriter import Workbook
    from xlsxwriter.exceptions import FileCreateError

    with tempfile.TemporaryDirectory(prefix="export-", ignore_cleanup_errors=True) as place:
        detachable = _DetachableFile(out)
        book = Workbook(detachable, {"constant_memory": True, "tmpdir": place})
        try:
            _Sheets(book, table, most_rows).fill()
            book.close()
        except FileCreateError as error:
            raise _cause(error) from error
        finally:
            detachable.detach()
            _abandon(book)


class _DetachableFile:
    """File proxy whose writes can be discarded, because the library's packer closes too late.

    After `detach` it only counts bytes: without a valid position the packer prints an error that
    cannot be caught.
    """

    def __init__(self, out: BinaryIO) -> None:
        self._out: BinaryIO | None = out
        self._at = 0

    def detach(self) -> None:
        self._out = None

    def write(self, data: bytes) -> int:
        if self._out is not None:
            return self._out.write(data)
        self._at += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        if self._out is not None:
            return self._out.seek(offset, whence)
        self._at = offset if whence == 0 else self._at + offset
        return self._at

    def tell(self) -> int:
        return self._out.tell() if self._out is not None else self._at

    def flush(self) -> None:
        if self._out:
            self._out.flush()


def _abandon(book: Any) -> None:
    """Close the files of an unfinished workbook, and prevent its destructor from finishing it."""
    book.fileclosed = True
    for sheet in book.worksheets():
        if sheet.row_data_fh is not None:
            sheet.row_data_fh.close()


def _cause(error: Exception) -> OSError:
    """Return the system error that the library wraps."""
    cause = error.args[0] if error.args else None
    return cause if isinstance(cause, OSError) else OSError(str(error))


class _Sheets:
    def __init__(self, book: Any, table: Table, most_rows: int) -> None:
        columns = tuple(column for column in table.columns if column.name != LINKS)
        self._has_links = len(columns) < len(table.columns) and bool(columns)
        self._table = replace(table, columns=columns) if self._has_links else table
        self._book, self._most_rows = book, most_rows
        self._links: Worksheet | None = None
        self._link_sheets, self._link_row = 0, 0
        self._bold: Format = book.add_format({"bold": True})
        # The apostrophe that people type: the text stays text when its cell is edited.
        self._quoted: Format = book.add_format({"quote_prefix": True})

    def fill(self) -> None:
        """Write all rows, and then the facts, which are complete by then."""
        sheet, at = self._next_sheet(), 1
        for row in self._table.rows:
            if at >= self._most_rows:
                _filter(sheet, at, len(self._table.columns))
                sheet, at = self._next_sheet(), 1
            for column, value in enumerate(self._table.values(row)):
                self._put(sheet, at, column, value)
            at += 1
            if self._has_links:
                self._put_links(row)
        _filter(sheet, at, len(self._table.columns))
        if self._links is not None:
            _filter(self._links, self._link_row, len(LINK_COLUMNS))
        self._write_facts()

    def _put_links(self, row: Row) -> None:
        """Write each link of a page as a row, preceded by the page's address."""
        links = row.get(LINKS)
        for link in links if isinstance(links, list) else ():
            if not isinstance(link, dict):
                continue
            if self._links is None or self._link_row >= self._most_rows:
                if self._links is not None:
                    _filter(self._links, self._link_row, len(LINK_COLUMNS))
                self._links, self._link_row = self._next_links(), 1
            for column, name in enumerate(LINK_COLUMNS):
                value = row.get(name) if name == "url" else link.get(name)
                self._put(self._links, self._link_row, column, value)
            self._link_row += 1

    def _next_links(self) -> Worksheet:
        self._link_sheets += 1
        number = self._link_sheets
        sheet: Worksheet = self._book.add_worksheet(LINKS if number == 1 else f"{LINKS} ({number})")
        sheet.freeze_panes(1, 0)
        for at, (name, width) in enumerate(LINK_COLUMNS.items()):
            sheet.set_column(at, at, width)
            sheet.write_string(0, at, name, self._bold)
        return sheet

    def _next_sheet(self) -> Worksheet:
        self._table.tally.sheets += 1
        number = self._table.tally.sheets
        name = self._table.key if number == 1 else f"{self._table.key} ({number})"
        sheet: Worksheet = self._book.add_worksheet(name)
        sheet.freeze_panes(1, 0)
        for at, column in enumerate(self._table.columns):
            sheet.set_column(at, at, column.width)
        for at, column in enumerate(self._table.columns):
            sheet.write_string(0, at, text_of(column.name)[:CHARS], self._bold)
        return sheet

    def _put(self, sheet: Worksheet, row: int, column: int, value: Any) -> None:
        if is_number(value) and -EXACT <= value <= EXACT:  # NaN is not within
            sheet.write_number(row, column, value)
        elif isinstance(value, bool):
            sheet.write_boolean(row, column, value)
        elif text := text_of(value):
            if _units(text) > CHARS:
                text = _cut(text)
                self._table.tally.cells_cut += 1
            style = self._quoted if begins_formula(text) else None
            sheet.write_string(row, column, text, style)

    def _write_facts(self) -> None:
        about: Worksheet = self._book.add_worksheet(ABOUT)
        about.set_column(0, 0, 16)
        about.set_column(1, 1, 100)
        rows = facts(self._table.about)
        rows += [("note", note) for note in self._table.tally.notes()]
        rows.append(("rows", str(self._table.tally.rows)))
        for at, (name, text) in enumerate(rows):
            about.write_string(at, 0, text_of(name)[:CHARS], self._bold)
            self._put(about, at, 1, text)


def _filter(sheet: Worksheet, rows: int, columns: int) -> None:
    """Give the header of a sheet of so many rows, itself included, buttons that filter and sort."""
    if columns:
        sheet.autofilter(0, 0, rows - 1, columns - 1)


def _units(text: str) -> int:
    """Length as Excel counts: in UTF-16, so that an emoji is two."""
    return len(text) + sum(char > "\uffff" for char in text) if len(text) > CHARS // 2 else 0


def _cut(text: str) -> str:
    kept = text.encode("utf-16-le")[: 2 * (CHARS - len(MARK))]
    return kept.decode("utf-16-le", "ignore") + MARK
