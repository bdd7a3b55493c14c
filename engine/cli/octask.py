"""Commands of octask: generated from the verb table, and others with their own output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import click

from engine.cli import goals, runs, schedules_command, show, task_facts
from engine.cli.calls import (
    CANCELLED,
    Interrupts,
    await_answer,
    bare_settings,
    call,
    call_on_all,
    place_options,
    plainly,
    print_json,
    refuse,
    settings_from,
    status_code,
    warn_unknown_ledgers,
)
from engine.cli.cancel import cancel
from engine.cli.export import export, stop
from engine.cli.export import export_recording as export_recording
from engine.cli.hold import hold, hold_line, release
from engine.cli.install_browser_command import install_browser
from engine.cli.known_ids import complete_param, whole_ids
from engine.cli.mcp_command import mcp
from engine.cli.prune import prune
from engine.cli.rerun_commands import rerun, retry
from engine.cli.resume_command import resume
from engine.cli.run import run
from engine.cli.serve_command import serve
from engine.cli.start import Moment, Number, start
from engine.cli.watch_command import watch
from engine.cli.worker import worker
from engine.doctor import Finding, Report, examine
from engine.doctor.verification import verification
from engine.kinds.registry import KINDS
from engine.logging.logs import log_to_file
from engine.model.build_info import build_info
from engine.model.config import Settings
from engine.model.errors import EngineError, TaskUnreadable
from engine.model.records import Hold, TaskId, TaskView, Unreadable
from engine.service.engine import Engine
from engine.text.cli_messages import say
from engine.verbs import VERBS, Param, Verb
from engine.verbs.json_answers import task_data, tasks_data

EXIT_CODES = """\b
Exit codes:
    0  the task COMPLETED, or the command did what it was asked
    1  the task FAILED, or the command was refused or failed
    2  the request has mistakes; nothing was started or changed
    3  the task was CANCELLED
    4  there is no such task
    5  a completion was refused: items are missing
  124  `wait` ran out of time; the task goes on
  130  ended by a second Ctrl-C
"""


@click.group(
    cls=runs.SummaryGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)
@click.version_option(str(build_info()), message="octask %(version)s")
@place_options
def octask(**_: Any) -> None:
    """Start, watch and stop browser tasks of the ledger under ~/.openchrome/tasks."""


def resolve(home: Path | None, root: Path | None, as_json: bool) -> Settings:
    """Return the settings for the options, or exit with an error."""
    try:
        return settings_from(home, root)
    except EngineError as error:
        refuse(error, as_json=as_json)


_BARE = "bare_"


def _command(verb: Verb) -> click.Command:
    def run(home: Path | None, root: Path | None, as_json: bool, **given: Any) -> None:
        settings = resolve(home, root, as_json)
        try:
            whole = whole_ids(verb.name, settings, _named(verb, given))
        except EngineError as error:
            refuse(error, as_json=as_json)
        RENDERERS.get(verb.name, plainly)(verb, settings, whole, as_json)

    params = [_param(param) for param in verb.public]
    params += [_bare(param) for param in verb.public if param.bare]
    name = verb.name.rpartition(" ")[2]
    command = click.Command(name, params=list(params), callback=run, help=verb.help)
    return place_options(command)


def _add(verb: Verb) -> None:
    """Add a verb: `contract start` becomes `start` in the group `contract`."""
    head, _, _ = verb.name.rpartition(" ")
    group: click.Group = octask
    if head:
        found = octask.commands.get(head)
        group = found if isinstance(found, click.Group) else runs.Group(head, help=GROUPS.get(head))
        octask.add_command(group)
    group.add_command(_command(verb))


# Help of the verb groups in `octask --help`.
GROUPS: dict[str, str] = {
    **{name: kind.verbs_help for name, kind in KINDS.items() if kind.verbs_help},
    **goals.GROUPS,
    **runs.GROUPS,
    **schedules_command.GROUPS,
}


SINCE_HELP = "created since: 1d or 2h ago, 2026-03-01, 2026-03-01T08:30, or ms since 1970"


def _param(param: Param) -> click.Parameter:
    many = param.shape in ("many", "items")
    if param.positional:
        nargs, shown = (-1, "ID...") if many else (1, "ID")
        return click.Argument(
            [param.name],
            nargs=nargs,
            required=param.required,
            metavar=shown,
            shell_complete=complete_param,
        )
    option = [f"-{param.short}"] if param.short else []
    option.append("--" + param.name.replace("_", "-"))
    if param.shape == "flag":
        return click.Option(option, is_flag=True, help=param.help)
    kind: click.ParamType[Any] | type = Number(min=0) if param.shape == "number" else str
    told = param.help
    if param.name == "since":
        kind, told = Moment(), SINCE_HELP
    return click.Option(
        option,
        type=kind,
        multiple=many,
        default=None if many else param.default,
        help=told,
        show_default=param.default is not None,
        shell_complete=complete_param,
    )


def _bare(param: Param) -> click.Parameter:
    """Build the positional form of an option, as in `task-run start GOAL`."""
    return click.Argument([_BARE + param.name], required=False, metavar=f"[{param.name.upper()}]")


def _named(verb: Verb, given: dict[str, Any]) -> dict[str, Any]:
    for name in (param.name for param in verb.params if param.bare):
        bare = given.pop(_BARE + name)
        if bare is not None and given[name] is not None:
            raise click.UsageError(f"The {name} was given twice: {bare!r} and --{name}.")
        given[name] = given[name] if bare is None else bare
    return given


def _list(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    async def read(engine: Engine) -> tuple[list[TaskView], Hold | None]:
        return await verb.call(engine, given), await engine.start_hold.read()

    views, held = call_on_all(settings, read, as_json=as_json)
    if as_json:
        print_json(tasks_data(views, held))
        return
    warn_unknown_ledgers(given["query"] or "")
    show.table(views, str(settings.root))
    if held is not None:  # a pipe has rows alone
        line = f"{hold_line(held)} {say('hold.way_out')}"
        click.echo(line, err=not sys.stdout.isatty())


def _get(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    wanted = {"result": given["result"], "events": given["events"]}

    async def get(engine: Engine) -> None:
        view = await verb.call(engine, given)
        if as_json:
            await show.task_json(engine, await task_data(engine, view), view.task_id, **wanted)
            return
        await show.task(engine, view, await task_facts.fact_lines(engine, view), **wanted)

    call(settings, get, as_json=as_json)


def _wait(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    async def wait(engine: Engine) -> TaskView:
        return await engine.tasks.get((await verb.call(engine, given)).task_id)

    view = call(settings, wait, as_json=as_json)
    show.ended(view, as_json)
    sys.exit(status_code(view))


def _reap(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    unjudged: dict[TaskId, str] = {}

    async def reap(engine: Engine) -> tuple[list[TaskView], tuple[EngineError, ...], int]:
        records = await verb.call(engine, given)
        views = [await engine.tasks.get(record.task_id) for record in records]
        left = engine.commands.unreaped
        # Unreadable tasks are listed as such: they are no longer orphans that could be ended.
        named = [str(one.fields["task_id"]) for one in left if isinstance(one, TaskUnreadable)]
        entries = [(await engine.tasks.get(task_id)).entry for task_id in named]
        unjudged.update(engine.commands.unjudged)
        return views, left, len(left) - sum(isinstance(one, Unreadable) for one in entries)

    views, left, failed = call_on_all(settings, reap, accepts=verb.accepts, as_json=as_json)
    show.reaped(views, left, unjudged, as_json)
    sys.exit(1 if failed else 0)


RENDERERS: dict[str, Callable[[Verb, Settings, Mapping[str, Any], bool], None]] = {
    "list": _list,
    "get": _get,
    "cancel": cancel,
    "hold": hold,
    "release": release,
    "wait": _wait,
    "reap": _reap,
    "export": export,
    "stop": stop,
    "recording export": export_recording,
    "prune": prune,
    **goals.RENDERERS,
    **runs.RENDERERS,
    **schedules_command.RENDERERS,
}


@octask.command()
@click.option(
    "--verify",
    is_flag=True,
    help="Start, list, cancel, kill and wait for crawls in a temporary folder.",
)
@place_options
def doctor(home: Path | None, root: Path | None, as_json: bool, verify: bool) -> None:
    """Look at browser, ledger, locks, limits and versions; a report to copy."""
    try:
        settings = bare_settings(home, root)
        if not verify:
            await_answer(settings)
    except EngineError as error:
        refuse(error, as_json=as_json)
    report = _verified(settings, as_json) if verify else examine(settings)
    if as_json:
        print_json(report.data())
    elif not verify:
        click.echo(report.text())
    sys.exit(0 if report.healthy else 1)


def _verified(settings: Settings, as_json: bool) -> Report:
    """Verify the ledger, and print each step when it has ended.

    Ctrl-C ends it after the current step, so that no process of it is left.
    """
    found: list[Finding] = []

    async def verify() -> str:
        async with aclosing(verification(settings)) as steps:
            with Interrupts(lambda: None) as interrupts:
                async for step in steps:
                    found.append(step)
                    if not as_json:
                        click.echo(step.line())
                    if interrupts.cause:
                        break
                return interrupts.cause

    log_to_file()
    if asyncio.run(verify()):
        sys.exit(CANCELLED)
    return Report(tuple(found))


octask.add_command(run)
octask.add_command(start)
octask.add_command(rerun)
octask.add_command(serve)
octask.add_command(retry)
octask.add_command(resume)
octask.add_command(watch)
octask.add_command(worker)
octask.add_command(mcp)
octask.add_command(install_browser)
for _verb in VERBS.values():
    if "cli" in _verb.faces:
        _add(_verb)
_schedules = octask.commands["schedules"]
assert isinstance(_schedules, click.Group)
_schedules.add_command(schedules_command.add)
