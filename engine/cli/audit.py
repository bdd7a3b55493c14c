"""`octask audit`: how much each report about a crawl's pages has, or the rows of one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from engine.cli.calls import call, print_json
from engine.cli.exit_codes import FAILED, OK
from engine.cli.progress import ByteBar
from engine.export.exporter import ExportProgress
from engine.model.config import Settings
from engine.model.display import display
from engine.results.site_audit import REPORT_OF, Audit, Cell, Report, known_report
from engine.text.messages import ENGLISH
from engine.verbs.model import Verb
from engine.verbs.result_verbs import check_audit

if TYPE_CHECKING:
    from rich.table import Table

    from engine.service.engine import Engine

_CHARS: Final = 500  # of one cell


def audit(_: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Print the overview or one report; with `check`, exit with 1 if that has rows."""

    async def work(engine: Engine) -> Audit:
        check_audit(given)
        watch = ExportProgress()
        with ByteBar(watch, shown=not as_json).shown():
            return await engine.reading.audit(given["task_id"], partial(watch.on_progress, 0))

    found = call(settings, work, as_json=as_json)
    if not given["report"]:
        _print_overview(found, as_json=as_json)
        return
    report = found.report(known_report(given["report"]))
    if as_json:
        rows = list(report.records())
        print_json({**_about(found), "report": report.name, "count": report.total, "rows": rows})
    else:
        _print_report(report)
        _print_notes(found)
    sys.exit(FAILED if given["check"] and (report.total or not found.has_ended) else OK)


def _about(found: Audit) -> dict[str, Any]:
    return {
        "task_id": found.task_id,
        "status": found.status,
        "pages": found.pages,
        "without_links": found.without_links,
        "without_facts": found.without_facts,
        "lost_lines": found.lost,
        "is_limited": found.is_limited,
    }


def _print_overview(found: Audit, *, as_json: bool) -> None:
    if as_json:
        totals = {one.name: one.total if one.applies else None for one in found.reports}
        print_json({**_about(found), "reports": totals})
        return
    if not sys.stdout.isatty():
        for one in found.reports:
            click.echo(f"{one.name}\t{one.total if one.applies else '-'}")
    else:
        print_table(("Report", "Rows", ""), (True, False, True), _overview(found))
    _print_notes(found)


def _overview(found: Audit) -> Iterator[tuple[str, ...]]:
    for one in found.reports:
        yield one.name, f"{one.total:,}" if one.applies else "–", ENGLISH[f"audit.{one.name}.about"]


def _print_report(report: Report) -> None:
    """Print a table on a terminal, tab-separated lines in a pipe."""
    if not sys.stdout.isatty():
        for row in report.rows:
            click.echo("\t".join(map(_text, row)))
        return
    if not report.rows:
        click.echo(ENGLISH["audit.none"])
        return
    columns = REPORT_OF[report.name].columns
    titles = tuple(ENGLISH[f"audit.column.{column.name}"] for column in columns)
    at_left = tuple(not column.is_number for column in columns)
    print_table(titles, at_left, (tuple(map(_text, row)) for row in report.rows))


def print_table(
    titles: tuple[str, ...], at_left: tuple[bool, ...], rows: Iterator[tuple[str, ...]]
) -> None:
    """Print rows of texts, which are shown as they are, below their titles."""
    from rich.console import Console  # a pipe gets no table
    from rich.table import Table
    from rich.text import Text

    made: Table = Table(box=None, pad_edge=False, header_style="bold")
    for title, is_at_left in zip(titles, at_left, strict=True):
        made.add_column(title, justify="left" if is_at_left else "right", overflow="fold")
    for row in rows:
        made.add_row(*map(Text, row))
    Console().print(made)


def _print_notes(found: Audit) -> None:
    """Print on standard error what the reports lack."""
    for message, number in found.lacks():
        click.echo(ENGLISH[message].format(count=number), err=True)


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    return display(cell, _CHARS) if isinstance(cell, str) else str(cell)


RENDERERS: Final = {"audit": audit}
