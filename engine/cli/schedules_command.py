"""`octask schedules`: tasks that repeat, and the start of what is due for a system timer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from engine.cli.calls import BY_STATUS, Interrupts, call, lines, print_json, refuse, settings_from
from engine.cli.exit_codes import FAILED
from engine.cli.known_ids import complete_param, whole_task_id
from engine.cli.options import place_options
from engine.cli.show import changes_of, ended, now_ms
from engine.cli.start import (
    Start,
    for_agent,
    gather,
    gather_terms,
    refuse_all,
    terms_options,
    with_objective,
)
from engine.model.config import Settings
from engine.model.display import display
from engine.model.errors import EngineError, Problem
from engine.model.records import Status, TaskRecord, TaskView, Unreadable
from engine.schedules.schedule import MINUTE_MS, Schedule
from engine.schedules.schedule_words import name_words, rule_words, skip_words
from engine.service import drafts
from engine.service.rerun import Asked
from engine.service.schedules import Started
from engine.text import words
from engine.text.cli_messages import say
from engine.verbs import Caller, Verb
from engine.verbs.json_answers import view_data
from engine.verbs.schedule_verbs import NOTIFY, OPTIONS, RULE, started_data
from engine.verbs.verb_table import VERBS

if TYPE_CHECKING:
    from engine.service.engine import Engine

LONGEST: Final = 300  # characters of an external text on one line
_NAMES: Final = tuple(param.name for param in (*RULE, *OPTIONS))


def schedule_options(command: Any) -> Any:
    """Add the options for a rule and for what happens to missed runs."""
    for param in reversed((*RULE, *OPTIONS)):
        command = click.option(f"--{param.name}", help=f"{param.help[0].upper()}{param.help[1:]}.")(
            command
        )
    return command


@click.command(cls=Start)
@click.argument("kind", required=False, shell_complete=complete_param)
@click.argument("url", required=False)
@click.option("--task", "task_id", metavar="ID", help="Repeat the request of this task.")
@click.option(
    "--args",
    "args_json",
    metavar="JSON",
    help="Arguments as a JSON object; @FILE reads them from a file, - from standard input.",
)
@click.option("--name", help="A name for the list.")
@schedule_options
@terms_options
@place_options
def add(
    kind: str | None, url: str | None, args_json: str | None, task_id: str | None, **given: Any
) -> None:
    """Repeat a task by a rule: --every, --daily or --cron.

    KIND, URL and options are those of `octask start`; --task ID repeats a task that has run. A
    secret is given by reference: the file of a schedule keeps none. `octask schedules run` starts
    what is due, and so does an open window.
    """
    name, as_json = given.pop("name"), given.pop("as_json")
    rule = {each: given.pop(each) for each in _NAMES}
    if (kind is None) == (task_id is None):
        raise click.UsageError("Give a KIND, or --task ID.")
    try:
        home, root, problems = given.pop("home"), given.pop("root"), list[Problem]()
        terms = gather_terms(given, problems)
        args = gather(url, args_json, given, problems)
        settings = for_agent(settings_from(home, root), terms)
        wanted: dict[str, Any] = {**rule, "caller": Caller(route="cli")}
        if kind is not None:
            refuse_all(kind, args, name, terms, problems)
            args = with_objective(kind, args, terms)
            wanted["request"] = drafts.document(Asked(kind, args, name, terms))
        else:
            wanted["task_id"] = whole_task_id(settings, task_id or "")
    except EngineError as error:
        refuse(error, as_json=as_json)
    verb = VERBS["schedules add"]
    found = call(settings, lambda engine: verb.call(engine, wanted), accepts=True, as_json=as_json)
    _print(found, as_json)


def answer(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Call the verb and print the schedule."""
    _print(call(settings, lambda engine: verb.call(engine, given), as_json=as_json), as_json)


def schedules_list(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Print one line for each schedule, and a second for what is wrong with it."""

    async def read(engine: Engine) -> Any:
        return await verb.call(engine, given) if as_json else await engine.schedules.all()

    found = call(settings, read, as_json=as_json)
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo(say("schedule.none"))
    for one in found:
        if isinstance(one, Unreadable):
            click.echo(f"{one.task_id}  {display(one.reason, LONGEST)}")
            continue
        for line in schedule_lines(one.schedule, one.next_at, one.last, whole=False):
            click.echo(line)


def show(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Print one schedule with what it skipped."""

    async def read(engine: Engine) -> Any:
        if as_json:
            return await verb.call(engine, given)
        return await engine.schedules.get(given["schedule_id"])

    found = call(settings, read, as_json=as_json)
    if as_json:
        print_json(found)
        return
    schedule = found.schedule
    for line in schedule_lines(schedule, found.next_at, found.last, whole=True):
        click.echo(line)
    told = {
        "missed": schedule.missed,
        "grace": words.span(schedule.grace_minutes * MINUTE_MS),
        "notify": NOTIFY[not schedule.notify],
        "request": schedule.request.document,
    }
    for line in lines(told, "  "):
        click.echo(line)


def schedule_lines(
    schedule: Schedule, next_at: int | None, last: TaskView | None, *, whole: bool
) -> Iterator[str]:
    """Yield a schedule, and below it why it cannot start or what it skipped last."""
    now = now_ms()
    when = words.clock(next_at, now) if next_at is not None else ""
    shown = words.say("schedule.next", at=when) if when else words.say("schedule.paused")
    parts = [schedule.schedule_id, name_words(schedule), rule_words(schedule.rule), shown]
    yield "  ".join([*parts, last_words(schedule, last)])
    if schedule.refusal is not None:
        why = display(schedule.refusal.message, LONGEST)
        yield f"  {words.say('schedule.refused', why=why)}"
    for skip in schedule.skips[::-1] if whole else schedule.skips[-1:]:
        if whole or skip.due_at == schedule.after:  # in a list, only what was skipped last
            yield f"  {skip_words(skip, now)}"


def last_words(schedule: Schedule, last: TaskView | None) -> str:
    """Format the outcome of the last run and its changes."""
    if last is None:
        return words.say("schedule.no_run" if schedule.claim is None else "schedule.removed")
    changes = words.changes(changes_of(last), spoken=True)
    told = f"{last.task_id} {words.status_word(last)}"
    return f"{told}: {changes}" if changes else told


def run(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Start what is due, and what falls due meanwhile; exit when all of it has ended."""
    views, done = call(
        settings, lambda engine: _run(engine, verb, given, as_json), accepts=True, as_json=as_json
    )
    if as_json:
        print_json({**started_data(done), "tasks": [view_data(view) for view in views]})
    elif not views and not done.skips and not done.refused and not done.failed:
        click.echo(say("schedule.nothing_due"))
    states = {view.entry.status for view in views if isinstance(view.entry, TaskRecord)}
    if done.refused or done.failed or Status.FAILED in states:
        sys.exit(FAILED)
    sys.exit(BY_STATUS[Status.CANCELLED] if Status.CANCELLED in states else 0)


async def _run(
    engine: Engine, verb: Verb, given: Mapping[str, Any], as_json: bool
) -> tuple[list[TaskView], Started]:
    every, views, left = Started(), list[TaskView](), list[str]()
    stopped = asyncio.Event()
    with Interrupts(stopped.set):
        while not stopped.is_set():
            looks = given["schedule_id"] is None or not every.tasks
            done = await verb.call(engine, given) if looks else Started()
            done.failed = [one for one in done.failed if one not in every.failed]
            for line in _started_lines(done):
                click.echo(line, err=True) if not as_json else None
            every.tasks += done.tasks
            every.skips += done.skips
            every.refused = [
                *{one[0].schedule_id: one for one in (*every.refused, *done.refused)}.values()
            ]
            every.failed = [*dict((*every.failed, *done.failed)).items()]
            left += [one.task_id for one in done.tasks]
            left = await _still_running(engine, left, views, as_json)
            if not left:
                break
            await _wait(engine, left, done.next_at, stopped)
        for task_id in left:
            await engine.commands.cancel(task_id, "octask schedules run was ended")
        for task_id in left:
            await engine.tasks.join(task_id)
        await _still_running(engine, left, views, as_json)
    return views, every


async def _still_running(
    engine: Engine, task_ids: list[str], views: list[TaskView], as_json: bool
) -> list[str]:
    """Return the tasks that have not ended; print and collect the others."""
    left = list[str]()
    for task_id in task_ids:
        view = await engine.tasks.get(task_id)
        if isinstance(view.entry, TaskRecord) and view.entry.is_live:
            left.append(task_id)
            continue
        views.append(view)
        if not as_json:
            ended(view, False)
            if changes := words.changes(changes_of(view), spoken=True):
                click.echo(f"  {changes}")
    return left


async def _wait(
    engine: Engine, left: list[str], next_at: int | None, stopped: asyncio.Event
) -> None:
    """Wait until a task ends, the next occurrence, or an interrupt."""
    waits = [asyncio.ensure_future(engine.tasks.join(task_id)) for task_id in left]
    waits.append(asyncio.ensure_future(engine.schedules.wait_for_next(next_at)))
    waits.append(asyncio.ensure_future(stopped.wait()))  # type: ignore[arg-type]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)


def _started_lines(done: Started) -> Iterator[str]:
    for task in done.tasks:
        yield say("start.accepted", task_id=task.task_id)
    for schedule, skip in done.skips:
        yield f"{name_words(schedule)}: {skip_words(skip, now_ms())}"
    for schedule, refusal in done.refused:
        why = words.say("schedule.refused", why=display(refusal.message, LONGEST))
        yield f"{name_words(schedule)}: {why}"
    for schedule_id, message in done.failed:
        yield f"{schedule_id}  {display(message, LONGEST)}"


def _print(found: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
    elif "removed" in found:
        click.echo(say("schedule.deleted", id=found["removed"]))
    else:
        click.echo(found["schedule_id"])


RENDERERS: Final = {
    "schedules list": schedules_list,
    "schedules show": show,
    "schedules run": run,
    **{f"schedules {verb}": answer for verb in ("change", "pause", "resume", "remove")},
}
