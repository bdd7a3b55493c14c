"""`octask cancel`: by ids, or all that match a query, after a preview."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from engine.cli.calls import call as call_on_one
from engine.cli.calls import call_on_all, exit_code, print_json
from engine.cli.streams import is_interactive
from engine.model.config import Settings
from engine.model.display import display
from engine.model.records import Status, TaskRecord, TaskView
from engine.service.stop_plan import REACHED, Fate, Plan, Stopped
from engine.text import words
from engine.text.cli_messages import say
from engine.verbs import Verb
from engine.verbs.json_answers import changed_data, plan_data

if TYPE_CHECKING:
    from engine.service.engine import Engine

_SKIPPED = {
    Fate.ENDED: "cancel.ended",
    Fate.ASKED: "cancel.requested",
    Fate.LOST: "cancel.lost",
    Fate.UNKNOWN: "cancel.unknown",
}


def cancel(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Cancel tasks; the matches of a query are shown first, and then fixed."""
    dry = given["dry_run"]
    call = call_on_one if given["all_matching"] is None else call_on_all
    asks = (
        given["all_matching"] is not None and not given["yes"] and not as_json and is_interactive()
    )
    chosen = given
    if dry or asks:
        looking = {**given, "dry_run": True}
        plan: Plan = call(settings, lambda engine: verb.call(engine, looking), as_json=as_json)
        print_json(plan_data(plan)) if as_json else _show(plan)
        if dry or not plan.ids or not _confirmed(len(plan.ids)):
            return
        chosen = {**given, "all_matching": None, "task_ids": plan.ids}
    stopped, views = call(settings, lambda engine: _stop(verb, engine, chosen), as_json=as_json)
    _report(stopped, views, as_json)
    if stopped.refused:
        sys.exit(exit_code(stopped.refused[0]))


async def _stop(
    verb: Verb, engine: Engine, given: Mapping[str, Any]
) -> tuple[Stopped, list[TaskView]]:
    stopped: Stopped = await verb.call(engine, given)
    return stopped, [await engine.tasks.get(record.task_id) for record in stopped.records]


def _confirmed(number: int) -> bool:
    one = say("cancel.question.one")
    question = one if number == 1 else say("cancel.question", count=words.count(number))
    if click.confirm(question, default=False, err=True):
        return True
    click.echo(say("cancel.kept"), err=True)
    return False


def _show(plan: Plan) -> None:
    """Print the number of tasks by effect, and the tasks."""
    for view in plan.views:
        click.echo(f"{view.task_id}  {words.status_word(view)}  {words.task_name(view)}")
    for fate in REACHED:
        if found := plan.of(fate):
            click.echo(say(f"cancel.{fate.value}", count=words.count(len(found))), err=True)
    if plan.skipped:
        parts = [
            say(message, count=words.count(len(plan.of(fate))))
            for fate, message in _SKIPPED.items()
            if plan.of(fate)
        ]
        said = say("cancel.skipped", count=words.count(plan.skipped), why=", ".join(parts))
        click.echo(said, err=True)
    if not plan.ids:
        click.echo(say("cancel.none"), err=True)


def _report(stopped: Stopped, views: list[TaskView], as_json: bool) -> None:
    """Print which tasks were cancelled, which had ended, which refused."""
    if as_json:
        print_json(changed_data(views, stopped.refused))
        return
    for record in stopped.records:
        click.echo(f"{record.task_id}  {_word(record)}")
    for error in stopped.refused:
        click.echo(display(f"{error} {error.advice}"), err=True)
    if not stopped.records and not stopped.refused:
        click.echo(say("cancel.none"), err=True)


def _word(record: TaskRecord) -> str:
    if not record.is_terminal:
        return say("cancel.asked")
    if record.status == Status.CANCELLED:
        return Status.CANCELLED.value
    return say("cancel.already", status=record.status)


RENDERERS: Final = {"cancel": cancel}
