"""The verbs of results: export."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import InvalidArguments, Problem
from engine.export.exporter import FORMATS, Order
from engine.service import Engine
from engine.verbs.model import Param, Verb

_FORMATS = ", ".join(FORMATS)


def order_of(given: Mapping[str, Any]) -> Order:
    """What is to be exported as what; the format may stand in the file's name.

    Raises:
        InvalidArguments: neither says it.
    """
    form = given["format"] or Path(given["output"] or "").suffix.lower().lstrip(".")
    if not form:
        raise InvalidArguments((Problem("format", "missing", f"is needed: one of {_FORMATS}"),))
    names = (name.strip() for names in given["columns"] for name in names.split(","))
    return Order(
        task_id=given["task_id"],
        format=form.lower(),
        columns=tuple(name for name in names if name),
        bom=given["bom"],
    )


async def _export(engine: Engine, given: Mapping[str, Any]) -> Any:
    order = order_of(given)
    if given["output"] in (None, "-"):
        raise InvalidArguments((Problem("output", "missing", "needs the name of a file"),))
    return await engine.exports.to_file(order, Path(given["output"]), force=given["force"])


VERBS: tuple[Verb, ...] = (
    Verb(
        "export",
        "Write what a task found as a table or report: pages, actions, commands.",
        (
            Param("task_id", "the task's id: 16 hex digits", positional=True, required=True),
            Param("format", f"one of {_FORMATS} (or what the file's name ends in)"),
            Param("output", "the file to write; - or nothing: standard output", short="o"),
            Param("columns", "only these columns, with commas between (again for more)", "many"),
            Param("bom", "begin a csv with a byte-order mark, for Excel", "flag", default=False),
            Param("force", "replace the file if it is there", "flag", default=False),
        ),
        _export,
        faces=("cli",),
    ),
)
