"""`octask run FILE…`: run command tasks from files, and show each command's state."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from engine.browser.chromium.browser_options import InstanceOptions
from engine.cli.calls import BY_STATUS, CANCELLED, FAILED, OK, Interrupts, call, refuse
from engine.cli.detach import detach
from engine.cli.escaped import as_json as print_json
from engine.cli.junit import report, write_report
from engine.cli.place import place_options, settings_from
from engine.cli.run_files import TaskFile, allow_files_option, check_folder, read_task_files
from engine.cli.run_show import Lines, lines_for
from engine.cli.start import print_obstacle, print_refusal
from engine.egress.egress_policy import Policy
from engine.kinds.commands.command_uploads import Uploads
from engine.model.config import Settings
from engine.model.errors import (
    EngineError,
    InvalidArguments,
    LedgerUnusable,
    Problem,
    TaskNotFound,
    TaskUnreadable,
)
from engine.model.records import TaskRecord
from engine.service.engine import Engine
from engine.text.cli_messages import say

LOOK_S: Final = 0.1
KIND: Final = "commands"
_WORST_FIRST: Final = (FAILED, CANCELLED, OK)
_ALONE: Final = ("junit", "one_instance")  # these need the foreground process


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--variables", metavar="FILE", help="A JSON object that fills {{name}} in arguments.")
@click.option("--junit", metavar="FILE", type=Path, help="Write a JUnit report there.")
@click.option("--one-instance", is_flag=True, help="All files in one browser, one after another.")
@click.option("--headed", is_flag=True, help="With --one-instance: show that browser's window.")
@allow_files_option
@click.option("--name", help="A name for the list (the task's own).")
@click.option("--detach", "detached", is_flag=True, help="Run in the background; print the ids.")
@place_options
def run(files: tuple[str, ...], **given: Any) -> None:
    """Run command tasks from JSON files; `-` reads standard input.

    Everything in all files is checked before anything starts. Values of variables are kept
    nowhere. Each file runs in a fresh browser, several at a time.
    """
    as_json = given["as_json"]
    try:
        _check_options(given)
        check_folder(given["allow_files"])
        settings = replace(
            settings_from(given["home"], given["root"]), allow_files=given["allow_files"]
        )
        uploads = Uploads(settings.allow_files)
        tasks = read_task_files(files, given["variables"], settings.environ, uploads)
        if given["detached"]:
            _detach(settings, tasks, given["name"], as_json)
            return
    except EngineError as error:
        refuse(error, as_json=as_json)
    shown = lines_for(as_json=as_json, several=len(tasks) > 1)
    ended = call(
        settings,
        lambda engine: _foreground(engine, tasks, given, shown),
        accepts=True,
        as_json=as_json,
    )
    for task, meta in ended:
        shown.ended(task, meta["task_id"])
    if as_json:
        print_json({"tasks": [{"task": task, "meta": meta} for task, meta in ended]})
    _write_junit(given["junit"], ended, settings.root, as_json)
    sys.exit(_worst(meta["status"] for _, meta in ended))


Ended = list[tuple[dict[str, Any], dict[str, Any]]]


def _check_options(given: dict[str, Any]) -> None:
    problems = [
        Problem(f"--{name.replace('_', '-')}", "contradiction", "cannot be used with --detach")
        for name in _ALONE
        if given["detached"] and given[name]
    ]
    if given["headed"] and not given["one_instance"]:
        problems.append(Problem("--headed", "missing", "goes with --one-instance"))
    folder = given["junit"].absolute().parent if given["junit"] else None
    if folder is not None and not folder.is_dir():
        problems.append(Problem("--junit", "no_folder", f"there is no folder {folder}"))
    if given["junit"] and given["junit"].is_dir():
        problems.append(Problem("--junit", "no_file", "is a folder: give the name of a file"))
    if problems:
        raise InvalidArguments(tuple(problems))


def _detach(settings: Settings, tasks: Sequence[TaskFile], name: str | None, as_json: bool) -> None:
    records = [
        detach(settings, {"kind": KIND, "args": task.document, "name": name}) for task in tasks
    ]
    if as_json:
        print_json({"tasks": [{"meta": record} for record in records]})
        return
    for record in records:
        click.echo(record["task_id"])


async def _foreground(
    engine: Engine, tasks: Sequence[TaskFile], given: dict[str, Any], shown: Lines
) -> Ended:
    records = await _start(engine, tasks, given)
    ids = [record.task_id for record in records]
    cancels: set[asyncio.Task[Any]] = set()

    def soft() -> None:
        shown.note(say("start.cancelling"))
        for task_id in ids:
            work = print_refusal(engine.commands.cancel(task_id, "Ctrl-C"), shown.note)
            cancels.add(asyncio.create_task(work, name=f"cancel {task_id}"))

    with Interrupts(soft), shown:
        gone = asyncio.create_task(_join_all(engine, ids), name="join")
        standing = ""
        while not gone.done():
            await asyncio.wait({gone}, timeout=LOOK_S)
            standing = print_obstacle(engine, ids, standing, shown.note, ending=bool(cancels))
            shown.show_changes(await _read_tasks(engine, ids))
        await asyncio.gather(*cancels, return_exceptions=True)
    for lost in filter(None, map(engine.own.lost, ids)):
        raise lost
    return [
        (
            await _read_task(engine, task_id),
            {**await engine.tasks.meta(task_id), "task_id": task_id},
        )
        for task_id in ids
    ]


async def _start(
    engine: Engine, tasks: Sequence[TaskFile], given: dict[str, Any]
) -> list[TaskRecord]:
    shared: dict[str, str] = {}
    if given["one_instance"]:
        places = [place for task in tasks for place in task.places]
        options = InstanceOptions(
            Policy(None, places),
            headed=given["headed"],
            windows=any(task.uses_tabs for task in tasks),
        )
        shared = {"instanceId": (await engine.instances.launch(options)).id}
    return [
        await engine.requests.start(KIND, {**task.document, **shared}, name=given["name"])
        for task in tasks
    ]


async def _join_all(engine: Engine, ids: Sequence[str]) -> None:
    for task_id in ids:
        await engine.tasks.join(task_id)


async def _read_tasks(engine: Engine, ids: Sequence[str]) -> list[dict[str, Any]]:
    found = []
    for task_id in ids:
        with suppress(TaskNotFound, LedgerUnusable, TaskUnreadable):  # its folder is missing
            found.append(await engine.tasks.command_task(task_id, results=False))
    return [task for task in found if task is not None]


async def _read_task(engine: Engine, task_id: str) -> dict[str, Any]:
    return await engine.tasks.command_task(task_id) or {
        "commands": [],
        "status": "failed",
        "name": "",
    }


def _write_junit(path: Path | None, ended: Ended, root: Path, as_json: bool) -> None:
    if path is None:
        return
    try:
        write_report(path, report((task, root / meta["task_id"]) for task, meta in ended))
    except EngineError as error:
        refuse(error, as_json=as_json)


def _worst(statuses: Any) -> int:
    codes = {BY_STATUS.get(status, FAILED) for status in statuses}
    return next(code for code in _WORST_FIRST if code in codes)
