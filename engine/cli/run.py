"""`octask run FILE…`: run command tasks from files, show each state, write JUnit reports."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import sys
import xml.etree.ElementTree as Xml
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from engine.browser.chromium.browser_options import InstanceOptions
from engine.browser.interact.command_uploads import Uploads
from engine.browser.remote.remote_address import browser_address
from engine.cli.calls import BY_STATUS, Interrupts, call, print_json, refuse, settings_from
from engine.cli.exit_codes import CANCELLED, FAILED, OK
from engine.cli.hold_commands import note_hold
from engine.cli.machine_options import remote_browser_option
from engine.cli.options import place_options
from engine.cli.progress import CommandLines, lines_for
from engine.cli.run_files import TaskFile, allow_files_option, check_folder, read_task_files
from engine.cli.start import print_obstacle, print_refusal
from engine.cli.streams import keep_task_without_reader
from engine.cli.trust_options import default_proxy, proxy_arguments, proxy_options, with_proxy
from engine.egress.egress_policy import Policy
from engine.kinds.remote_browser_use import NO_REMOTE, remote_browser_problems, remote_place
from engine.ledger.files import Folder, Unusable
from engine.model.config import Settings
from engine.model.display import display_lines
from engine.model.errors import (
    EngineError,
    InvalidArguments,
    LedgerUnusable,
    Problem,
    TaskNotFound,
    TaskUnreadable,
)
from engine.model.records import TaskRecord
from engine.service.worker_process import detach
from engine.text.cli_messages import say

if TYPE_CHECKING:
    from engine.service.engine import Engine

# In addition to the characters that `display_lines` replaces.
_NOT_XML: Final = re.compile("[\ufffe\uffff]")


class ReportNotWritten(EngineError):
    """The tasks have run, but their report cannot be written."""

    code = "report_not_written"
    title = "The report was not written"
    sentence = "The report cannot be written to {path}: {reason}"
    advice_text = "Choose another place for it; the tasks themselves are kept."


def report(tasks: Iterable[tuple[Mapping[str, Any], Path]]) -> bytes:
    """Build the report from tasks in the form of seed 002, with their folders."""
    root = Xml.Element("testsuites", name="octask")
    for task, folder in tasks:
        root.append(_suite(task, folder))
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", f"{sum(float(suite.get('time', '0')) for suite in root):.3f}")
    Xml.indent(root)
    body: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return body + b"\n"


def write_report(path: Path, data: bytes) -> None:
    """Write the report atomically.

    Raises:
        ReportNotWritten: it cannot be written there.
    """
    try:
        with Folder.at(str(path.absolute().parent)) as place:
            # Its own name, as `path.name` may be too long.
            temp = f".report-{secrets.token_hex(8)}.tmp"
            place.replace(path.name, [data], temp=temp, durable=False)
    except Unusable as error:
        raise ReportNotWritten(path=str(path), reason=str(error)) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ReportNotWritten(path=str(path), reason=reason) from error


def _suite(task: Mapping[str, Any], folder: Path) -> Xml.Element:
    commands = task["commands"]
    suite = Xml.Element("testsuite", name=_clean(task["name"]), hostname="localhost")
    properties = Xml.SubElement(suite, "properties")
    for name in ("id", "status", "instanceId", "intention"):
        Xml.SubElement(properties, "property", name=name, value=_clean(task.get(name)))
    Xml.SubElement(properties, "property", name="folder", value=_clean(folder))
    cases = [
        _case(task, number, command, folder) for number, command in enumerate(commands, start=1)
    ]
    told = any(case.find("failure") is not None for case in cases)
    if task["status"] == "failed" and not told:  # its process died, or a budget was exceeded
        cases.append(_task_error(task))
    suite.extend(cases)
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("tests", str(len(cases)))
    began = task.get("startedAt", task["createdAt"])
    suite.set("time", _seconds(began, task.get("completedAt")))
    suite.set("timestamp", datetime.fromtimestamp(began / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
    return suite


def _case(
    task: Mapping[str, Any], number: int, command: Mapping[str, Any], folder: Path
) -> Xml.Element:
    case = Xml.Element(
        "testcase",
        name=_clean(f"{number:03d} {command['intention']}"),
        classname=_clean(task["name"]),
        time=_seconds(command.get("startedAt"), command.get("completedAt")),
    )
    failure = command.get("failure") or {}
    kept = [_picture(command, folder), *_kept(failure, folder)]
    attached = [path for path in kept if path]
    properties = Xml.SubElement(case, "properties")
    Xml.SubElement(properties, "property", name="id", value=_clean(command["id"]))
    Xml.SubElement(properties, "property", name="tool", value=_clean(command["tool_name"]))
    for path in attached:
        Xml.SubElement(properties, "property", name="attachment", value=_clean(path))
    if failure.get("url"):
        Xml.SubElement(properties, "property", name="url", value=_clean(failure["url"]))
    if command.get("warning"):
        Xml.SubElement(properties, "property", name="warning", value=_clean(command["warning"]))
    error = command.get("error")
    if command["status"] == "error":
        said = error if isinstance(error, Mapping) else {}
        _because(case, "failure", said.get("code"), said.get("message"), failure.get("url"))
    elif command["status"] != "success":
        why = "cancelled" if task["status"] == "cancelled" else "an earlier command failed"
        Xml.SubElement(case, "skipped", message=why)
    output = [f"warning: {command['warning']}"] if command.get("warning") else []
    output += [f"[[ATTACHMENT|{path}]]" for path in attached]
    if output:
        Xml.SubElement(case, "system-out").text = _clean("\n".join(output))
    return case


def _task_error(task: Mapping[str, Any]) -> Xml.Element:
    case = Xml.Element("testcase", name="the task", classname=_clean(task["name"]), time="0.000")
    said = task.get("error", {})
    _because(case, "error", said.get("code"), said.get("message"))
    return case


def _because(
    case: Xml.Element, tag: str, code: object, message: object, url: object = None
) -> None:
    said = Xml.SubElement(case, tag, type=_clean(code), message=_clean(message))
    said.text = _clean(f"{code}: {message}" + (f"\nat {url}" if url else ""))


def _picture(command: Mapping[str, Any], folder: Path) -> str:
    result = command.get("result")
    path = result.get("path") if isinstance(result, Mapping) else None
    if command["tool_name"] != "browser_content" or not isinstance(path, str):
        return ""
    return os.path.join(folder, *path.split("/"))


def _kept(failure: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Yield the files with what the page showed at a failure."""
    for name in ("screenshot", "source"):
        if path := failure.get(name):
            yield os.path.join(folder, *path.split("/"))


def _seconds(began: Any, ended: Any) -> str:
    return "0.000" if began is None or ended is None else f"{max(0, ended - began) / 1000:.3f}"


def _clean(value: object) -> str:
    """Replace characters that XML forbids or a terminal would execute."""
    return _NOT_XML.sub("\ufffd", "" if value is None else display_lines(str(value)))


LOOK_S: Final = 0.1
KIND: Final = "commands"
_WORST_FIRST: Final = (FAILED, CANCELLED, OK)
_REMOTE: Final = "--remote-browser"
_ALONE: Final = ("junit", "one_instance")  # these need the foreground process


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--variables", metavar="FILE", help="A JSON object that fills {{name}} in arguments.")
@click.option("--junit", metavar="FILE", type=Path, help="Write a JUnit report there.")
@click.option("--one-instance", is_flag=True, help="All files in one browser, one after another.")
@click.option("--headed", is_flag=True, help="With --one-instance: show that browser's window.")
@allow_files_option
@click.option("--name", help="A name for the list (the task's own).")
@remote_browser_option
@proxy_options
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
        settings = replace(settings, proxy=default_proxy(settings, given))
        _check_remote(settings, given["remote_browser"])
        uploads = Uploads(settings.allow_files)
        tasks = read_task_files(files, given["variables"], settings.environ, uploads)
        if given["detached"]:
            _detach(settings, tasks, given, as_json)
            return
    except EngineError as error:
        refuse(error, as_json=as_json)
    keep_task_without_reader()
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


def _check_remote(settings: Settings, given: str | None) -> None:
    """Check the remote browser of all files. Raises InvalidArguments."""
    if given in (None, NO_REMOTE):
        return
    try:
        browser_address(given)
    except ValueError as wrong:
        raise InvalidArguments((Problem(_REMOTE, "invalid_value", str(wrong)),)) from wrong
    problems = remote_browser_problems({"remote_browser": given}, settings)
    if problems:
        raise InvalidArguments(tuple(replace(one, path=_REMOTE) for one in problems))


def _with_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the options say of the browsers of all files, as arguments of a task."""
    found = proxy_arguments(given)
    if given["remote_browser"] and not given["one_instance"]:
        found["remote_browser"] = given["remote_browser"]
    return found


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


def _detach(
    settings: Settings, tasks: Sequence[TaskFile], given: dict[str, Any], as_json: bool
) -> None:
    proxy, name = _with_options(given), given["name"]
    records = [
        detach(settings, {"kind": KIND, "args": with_proxy(task.document, proxy), "name": name})
        for task in tasks
    ]
    note_hold(settings)
    if as_json:
        print_json({"tasks": [{"meta": record} for record in records]})
        return
    for record in records:
        click.echo(record["task_id"])


async def _foreground(
    engine: Engine, tasks: Sequence[TaskFile], given: dict[str, Any], shown: CommandLines
) -> Ended:
    records = await _start(engine, tasks, given)
    ids = [record.task_id for record in records]
    cancels: set[asyncio.Task[Any]] = set()

    def soft() -> None:
        shown.note(say("start.cancelling"))
        for task_id in ids:
            work = engine.commands.cancel(task_id, interrupts.cause)
            printing = print_refusal(work, shown.note)
            cancels.add(asyncio.create_task(printing, name=f"cancel {task_id}"))

    with Interrupts(soft) as interrupts, shown:
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
    shared = _with_options(given)
    if given["one_instance"]:
        places = [place for task in tasks for place in task.places]
        options = InstanceOptions(
            Policy(None, places, proxy=engine.settings.proxy.upstream()),
            headed=given["headed"],
            windows=any(task.uses_tabs for task in tasks),
            remote=remote_place(given["remote_browser"], engine.settings),
        )
        shared = {"instanceId": (await engine.instances.launch(options)).id}
    return [
        await engine.requests.start(KIND, with_proxy(task.document, shared), name=given["name"])
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
