"""Verbs of recordings: stop and export."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.export.recordings import FORMATS, export_recording
from engine.ledger.reader import LedgerReader
from engine.model.errors import InvalidArguments, Problem
from engine.service.engine import Engine
from engine.verbs.model import Param, Verb

_FORMATS = ", ".join(FORMATS)


async def _stop(engine: Engine, given: Mapping[str, Any]) -> Any:
    return await engine.commands.stop(given["task_id"])


async def _export(engine: Engine, given: Mapping[str, Any]) -> Any:
    if not given["output"]:
        message = "needs the name of a file, such as flow.json"
        raise InvalidArguments((Problem("output", "missing", message),))
    return await asyncio.to_thread(
        export_recording,
        LedgerReader(engine.settings.root),
        await engine.tasks.ledger_id(given["task_id"]),
        given["format"],
        Path(given["output"]),
        force=given["force"],
    )


VERBS: tuple[Verb, ...] = (
    Verb(
        "stop",
        "Stop a recording in good order: it ends COMPLETED, with everything that was recorded.",
        (Param("task_id", "the recording's id: 16 hex digits", positional=True, required=True),),
        _stop,
    ),
    Verb(
        "recording export",
        "Write a recording as a command task that replays it, as a Playwright trace, or the "
        "variables that a replay needs as a file to fill in.",
        (
            Param("task_id", "the recording's id: 16 hex digits", positional=True, required=True),
            Param("format", f"one of {_FORMATS}", default="task"),
            Param("output", "the file to write", "path", short="o"),
            Param("force", "replace the file if it is there", "flag", default=False),
        ),
        _export,
        faces=("cli",),
    ),
)
