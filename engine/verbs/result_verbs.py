"""Verbs of results and recordings: export, deletion of ended tasks, and the stop of a recording."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.export.exporter import FORMATS, PACKED, Order
from engine.export.recordings import FORMATS as RECORDING_FORMATS
from engine.model.errors import InvalidArguments, Problem
from engine.results.site_audit import REPORT_NAMES, known_report
from engine.service.pruning import Preview, Pruned, rules_of
from engine.verbs.model import Param, Verb

if TYPE_CHECKING:
    from engine.service.engine import Engine

_FORMATS = ", ".join((*FORMATS, *PACKED))
_REPORTS = ", ".join(REPORT_NAMES)


def order_of(given: Mapping[str, Any]) -> Order:
    """Build the export order; the format may be the file's suffix.

    Raises:
        InvalidArguments: no format is given.
    """
    form = given["format"] or Path(given["output"] or "").suffix.lower().lstrip(".")
    if not form:
        needed = f"is needed: one of {_FORMATS}, here or as the ending of the file's name"
        raise InvalidArguments((Problem("format", "missing", needed),))
    names = (name.strip() for names in given["columns"] for name in names.split(","))
    return Order(
        task_id=given["task_id"],
        format=form.lower(),
        columns=tuple(name for name in names if name),
        bom=given["bom"],
        report=known_report(given["report"]) if given["report"] else "",
    )


async def _export(engine: Engine, given: Mapping[str, Any]) -> Any:
    order = order_of(given)
    if given["output"] in (None, "-"):
        message = "needs the name of a file, such as pages.csv"
        raise InvalidArguments((Problem("output", "missing", message),))
    return await engine.exports.to_file(order, Path(given["output"]), force=given["force"])


def check_audit(given: Mapping[str, Any]) -> None:
    """Find the mistakes in an audit's arguments before the pages are read.

    Raises:
        InvalidArguments: there is no such report, or none to check.
    """
    if given["report"]:
        known_report(given["report"])
    elif given["check"]:
        message = "needs the name of a report"
        raise InvalidArguments((Problem("check", "not_allowed", message),))


async def _audit(engine: Engine, given: Mapping[str, Any]) -> Any:
    check_audit(given)
    return await engine.reading.audit(given["task_id"])


async def _diff(engine: Engine, given: Mapping[str, Any]) -> Any:
    return await engine.reading.differences(given["before"], given["after"], lambda _: None)


async def prune(
    engine: Engine, given: Mapping[str, Any], stop: threading.Event | None = None
) -> Preview | Pruned:
    """Return the preview, or the result if confirmed; `stop` ends it between two tasks."""
    rules = rules_of(given["older_than"], given["keep"], given["max_size"], given["status"])
    shown = await engine.retention.preview(rules)
    if given["dry_run"] or not given["yes"]:
        return shown
    return await engine.retention.prune(shown, delete=given["delete"], stop=stop)


_RECORDING_FORMATS = ", ".join(RECORDING_FORMATS)


async def _stop(engine: Engine, given: Mapping[str, Any]) -> Any:
    return await engine.commands.stop(given["task_id"])


async def _export_recording(engine: Engine, given: Mapping[str, Any]) -> Any:
    if not given["output"]:
        message = "needs the name of a file, such as flow.json"
        raise InvalidArguments((Problem("output", "missing", message),))
    return await engine.exports.recording_to_file(
        given["task_id"], given["format"], Path(given["output"]), force=given["force"]
    )


VERBS: tuple[Verb, ...] = (
    Verb(
        "export",
        "Write what a task found as a table or report: pages, actions, commands.",
        (
            Param("task_id", "the task's id: 16 hex digits", positional=True, required=True),
            Param("format", f"one of {_FORMATS} (or what the file's name ends in)"),
            Param("output", "the file to write; - or nothing: standard output", "path", short="o"),
            Param("columns", "only these columns, with commas between (repeatable)", "many"),
            Param("report", f"instead of the pages of a crawl a report: {_REPORTS}"),
            Param("bom", "begin a csv with a byte-order mark, for Excel", "flag", default=False),
            Param("force", "replace the file if it is there", "flag", default=False),
        ),
        _export,
        faces=("cli",),
    ),
    Verb(
        "audit",
        "Report about the pages of a crawl: broken links, redirects, duplicates, titles and more.",
        (
            Param("task_id", "the crawl's id: 16 hex digits", positional=True, required=True),
            Param("report", f"one of {_REPORTS}; without it, how much each has", bare=True),
            Param(
                "check",
                "exit with 1 if the report has rows, or the crawl has not ended COMPLETED",
                "flag",
                default=False,
            ),
        ),
        _audit,
        faces=("cli",),
    ),
    Verb(
        "diff",
        "Show what differs between two tasks of the same target.",
        (
            Param("before", "the earlier task's id: 16 hex digits", positional=True, required=True),
            Param("after", "the later task's id", positional=True, required=True),
            Param("text", "also the lines by which texts differ", "flag", default=False),
            Param("check", "exit with 1 if anything differs", "flag", default=False),
        ),
        _diff,
        faces=("cli",),
    ),
    Verb(
        "prune",
        "Remove ended tasks: shows what would go; with --yes it goes to the trash.",
        (
            Param("older_than", "tasks that ended longer ago than this: 30d, 12h, 2w"),
            Param(
                "keep",
                "number of newest tasks to keep (without another limit: only these)",
                "number",
            ),
            Param("max_size", "the oldest, until the rest is no larger than this: 2GB, 500MB"),
            Param("status", "only tasks that ended so (repeatable)", "many"),
            Param("dry_run", "only show what would go (as without --yes)", "flag", default=False),
            Param("yes", "do it", "flag", default=False),
            Param(
                "delete", "delete permanently instead of moving to the trash", "flag", default=False
            ),
        ),
        prune,
        faces=("cli",),
    ),
    Verb(
        "stop",
        "Stop a recording: it ends COMPLETED, with everything that was recorded.",
        (Param("task_id", "the recording's id: 16 hex digits", positional=True, required=True),),
        _stop,
    ),
    Verb(
        "recording export",
        "Write a recording as a command task that replays it, as a Playwright trace, or the "
        "variables that a replay needs as a file to fill in.",
        (
            Param("task_id", "the recording's id: 16 hex digits", positional=True, required=True),
            Param("format", f"one of {_RECORDING_FORMATS}", default="task"),
            Param("output", "the file to write", "path", short="o"),
            Param("force", "replace the file if it is there", "flag", default=False),
        ),
        _export_recording,
        faces=("cli",),
    ),
)
