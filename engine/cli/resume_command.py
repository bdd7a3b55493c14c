"""`octask resume`: continue stopped crawls as new tasks, by ids, or all that match a query."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from engine.cli.calls import (
    Interrupts,
    call,
    exit_code,
    print_json,
    refuse,
    settings_from,
    status_code,
)
from engine.cli.known_ids import complete_param, whole_task_id
from engine.cli.machine_options import cluster_option, machine_arguments
from engine.cli.options import Number, place_options
from engine.cli.start import LOOK_S, follow, print_obstacle, print_refusal, report
from engine.cli.streams import is_interactive, keep_task_without_reader
from engine.model.config import Settings
from engine.model.display import display
from engine.model.errors import EngineError, InvalidArguments
from engine.model.records import TaskRecord, TaskView
from engine.service.resuming import ResumeFate, ResumePlan
from engine.service.stop_plan import NotConfirmed
from engine.text import words
from engine.text.cli_messages import say
from engine.verbs.json_answers import changed_data
from engine.verbs.task_verbs import QUERY_HELP, choice_problem

if TYPE_CHECKING:
    from engine.service.engine import Engine

Begun = tuple[list[TaskRecord], list[EngineError]]

_WORST_FIRST: Final = (1, 3, 0)  # exit codes: failed, cancelled, completed


@click.command()
@click.argument("task_ids", nargs=-1, metavar="ID...", shell_complete=complete_param)
@click.option("--all-matching", "query", help=f"All that match a query, {QUERY_HELP}.")
@click.option("--dry-run", is_flag=True, help="Only show what would happen to which.")
@click.option("--yes", is_flag=True, help="Do not ask; the query means these tasks.")
@click.option(
    "--max-pages",
    type=Number(min=1),
    metavar="N",
    help="Another maximum of pages, those that are kept included.",
)
@cluster_option
@click.option("--detach", "detached", is_flag=True, help="Run in the background; print the ids.")
@place_options
def resume(
    task_ids: tuple[str, ...], home: Path | None, root: Path | None, as_json: bool, **given: Any
) -> None:
    """Start a new crawl that keeps the pages of a stopped one and goes on from there.

    For a crawl that was cancelled, failed or lost its program; with --max-pages also for one that
    ended at its limit of pages. Pages without an answer, or with a temporary error, are loaded
    again. A cluster that the crawl names is used again, unless --cluster names another one.
    """
    query, changes = given["query"], _changes(given)
    try:
        settings = settings_from(home, root)
        if (problem := choice_problem(task_ids, query)) is not None:
            raise InvalidArguments((problem,))
        wanted: Sequence[str] = [whole_task_id(settings, typed) for typed in task_ids]
    except EngineError as error:
        refuse(error, as_json=as_json)
    if query is not None or given["dry_run"]:
        ids, more = tuple(wanted), given["max_pages"] is not None

        async def look(engine: Engine) -> ResumePlan:
            return await engine.requests.resume_plan(ids, query, more=more)

        plan = call(settings, look, as_json=as_json)
        if given["dry_run"] or not plan.ids:
            print_json(_plan_data(plan)) if as_json else _show(plan)
            return
        if not given["yes"]:
            _confirm(plan, as_json)
        wanted = plan.ids
    if given["detached"]:
        apart = replace(settings, detached=True)
        begun = call(
            apart, lambda engine: _begin(engine, wanted, changes), accepts=True, as_json=as_json
        )
        _report_begun(begun, as_json)
    elif len(wanted) == 1:
        follow(settings, lambda one: one.requests.resume(wanted[0], changes=changes), as_json)
    else:
        _follow_all(settings, wanted, changes, as_json)


def _changes(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the options, which replace those of each crawl."""
    pages = given["max_pages"]
    return {**({} if pages is None else {"max_pages": pages}), **machine_arguments(given)}


async def _begin(engine: Engine, task_ids: Sequence[str], changes: Mapping[str, Any]) -> Begun:
    """Resume these tasks; one that is refused stops no other."""
    records, refused = list[TaskRecord](), list[EngineError]()
    for task_id in task_ids:
        try:
            records.append(await engine.requests.resume(task_id, changes=changes))
        except EngineError as error:
            refused.append(error)
    return records, refused


def _report_begun(begun: Begun, as_json: bool) -> None:
    """Print the ids of tasks that run in the background, and what was refused."""
    records, refused = begun
    if as_json:
        print_json(changed_data([TaskView(one) for one in records], refused))
    else:
        for record in records:
            click.echo(record.task_id)
        _tell_refused(refused)
    if refused:
        sys.exit(exit_code(refused[0]))


def _tell_refused(refused: Sequence[EngineError]) -> None:
    for error in refused:
        click.echo(display(f"{error} {error.advice}"), err=True)


def _follow_all(
    settings: Settings, task_ids: Sequence[str], changes: Mapping[str, Any], as_json: bool
) -> None:
    """Run several tasks to their ends in this process, and exit with the worst code."""
    keep_task_without_reader()

    async def work(engine: Engine) -> tuple[list[TaskView], list[EngineError]]:
        records, refused = await _begin(engine, task_ids, changes)
        _tell_refused([] if as_json else refused)
        return await _to_their_ends(engine, records, as_json), refused

    views, refused = call(settings, work, accepts=True, as_json=as_json)
    if as_json:
        print_json(changed_data(views, refused))
    for view in () if as_json else views:
        report(view, settings.root, as_json)
    codes = {*map(status_code, views), *(1 for _ in refused)}
    sys.exit(next(code for code in _WORST_FIRST if code in codes))


async def _to_their_ends(
    engine: Engine, records: Sequence[TaskRecord], as_json: bool
) -> list[TaskView]:
    ids = [record.task_id for record in records]
    cancels: set[asyncio.Task[Any]] = set()

    def note(sentence: str) -> None:
        click.echo(sentence, err=True)

    def soft() -> None:
        note(say("start.cancelling"))
        for task_id in ids:
            work = engine.commands.cancel(task_id, interrupts.cause)
            cancels.add(asyncio.create_task(print_refusal(work, note), name=f"cancel {task_id}"))

    with Interrupts(soft) as interrupts:
        for task_id in () if as_json else ids:
            note(say("start.accepted", task_id=task_id))
        joining = [asyncio.create_task(engine.tasks.join(one), name="join") for one in ids]
        standing = ""
        while joining and not all(each.done() for each in joining):
            await asyncio.wait(joining, timeout=LOOK_S)
            standing = print_obstacle(engine, ids, standing, note, ending=bool(cancels))
        await asyncio.gather(*joining, *cancels, return_exceptions=True)
    for lost in filter(None, map(engine.own.lost, ids)):
        raise lost
    return [await engine.tasks.get(task_id) for task_id in ids]


def _plan_data(plan: ResumePlan) -> dict[str, Any]:
    ids = {fate.value: [view.task_id for view in plan.of(fate)] for fate in ResumeFate}
    return {"dry_run": True, "counts": {name: len(each) for name, each in ids.items()}, "ids": ids}


def _show(plan: ResumePlan) -> None:
    """Print the tasks that would be resumed, and how many are skipped for which reason."""
    for view in plan.of(ResumeFate.RESUMES):
        click.echo(f"{view.task_id}  {words.status_word(view)}  {words.task_name(view)}")
    for fate in ResumeFate:
        if number := len(plan.of(fate)):
            click.echo(say(f"resume.{fate.value}", count=words.count(number)), err=True)
    if not plan.ids:
        click.echo(say("resume.none"), err=True)


def _confirm(plan: ResumePlan, as_json: bool) -> None:
    """Ask a user on a terminal; a program has to give --yes."""
    if as_json or not is_interactive():
        refuse(NotConfirmed(number=len(plan.ids)), as_json=as_json)
    _show(plan)
    number = len(plan.ids)
    question = say("resume.question", count=words.count(number))
    if not click.confirm(
        say("resume.question.one") if number == 1 else question, default=False, err=True
    ):
        click.echo(say("resume.kept"), err=True)
        sys.exit(0)
