"""Hidden command of `start --detach`: own one task and end with it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import msgspec

from engine.cli.calls import Interrupts
from engine.logging.logs import log_to_file
from engine.model.config import Settings
from engine.model.errors import EngineError
from engine.model.proxies import DefaultProxy
from engine.model.records import TaskRecord
from engine.service.admission import Terms
from engine.service.engine import Engine
from engine.verbs.json_answers import described, view_data

log = logging.getLogger(__name__)


@click.command(name="_worker", hidden=True)
def worker() -> None:
    """Take one task from standard input and run it to its end."""
    log_to_file()
    asked = json.load(sys.stdin)
    place = asked["place"]
    settings = Settings.at(home=Path(place["home"]), root=Path(place["root"]))
    settings = replace(
        settings,
        browser_path=place["browser"],
        agent_id=place["agent"],
        allow_files=Path(place["files"]) if place.get("files") else None,
        allow_private=tuple(place["private"]),
        allow_secrets=tuple(place["secrets"]),
        route="cli",
        proxy=DefaultProxy.of_words(place["proxy"], os.environ),
        cluster=place.get("cluster", ""),
        environ=os.environ,
    )
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the terminal may close; the task continues
    try:
        asyncio.run(_run(settings, asked["request"]))
    except EngineError as error:
        _answer({"error": described(error)})
    except Exception:  # no user sees this process, so the error goes to the log
        log.exception("a background worker failed")
        sys.exit(1)


async def _run(settings: Settings, request: dict[str, Any]) -> None:
    engine = Engine(settings, accepts=True)
    await engine.open()
    cancels: set[asyncio.Task[Any]] = set()
    try:
        record = await _started(engine, request)

        def soft() -> None:
            cancels.add(
                asyncio.create_task(
                    engine.commands.cancel(record.task_id, "the worker was told to end")
                )
            )

        with Interrupts(soft):
            _answer({"record": view_data(await engine.tasks.get(record.task_id))})
            await engine.tasks.join(record.task_id)
            await asyncio.gather(*cancels, return_exceptions=True)
    finally:
        await engine.close()


async def _started(engine: Engine, request: dict[str, Any]) -> TaskRecord:
    """Start the run of a schedule, or the task of a request."""
    if "schedule_id" in request:
        return await engine.schedules.run_now(request["schedule_id"])
    return await engine.requests.start(
        request["kind"],
        request["args"],
        name=request["name"],
        parent=request.get("parent"),
        resumes=bool(request.get("resumes")),
        terms=msgspec.convert(request.get("terms") or {}, Terms),
    )


def _answer(data: dict[str, Any]) -> None:
    """Write the answer once to the waiting command, and close its pipe."""
    os.write(1, json.dumps(data).encode() + b"\n")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
