"""`octask list`, `get`, `wait` and `reap`: call the verb and show what it returns."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from engine.cli import show
from engine.cli.calls import call, call_on_all, print_json, status_code, warn_unknown_ledgers
from engine.cli.hold_commands import hold_line
from engine.cli.task_facts import fact_lines
from engine.model.config import Settings
from engine.model.errors import EngineError, TaskUnreadable
from engine.model.records import Hold, TaskId, TaskView, Unreadable
from engine.text.cli_messages import say
from engine.verbs.json_answers import task_data, tasks_data
from engine.verbs.model import Verb

if TYPE_CHECKING:
    from engine.service.engine import Engine


def list_tasks(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
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


def get_task(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    wanted = {"result": given["result"], "events": given["events"]}

    async def get(engine: Engine) -> None:
        view = await verb.call(engine, given)
        if as_json:
            await show.task_json(engine, await task_data(engine, view), view.task_id, **wanted)
            return
        await show.task(engine, view, await fact_lines(engine, view), **wanted)

    call(settings, get, as_json=as_json)


def wait_for_end(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    async def wait(engine: Engine) -> TaskView:
        return await engine.tasks.get((await verb.call(engine, given)).task_id)

    view = call(settings, wait, as_json=as_json)
    show.ended(view, as_json)
    sys.exit(status_code(view))


def reap_orphans(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
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


RENDERERS: Final = {
    "list": list_tasks,
    "get": get_task,
    "wait": wait_for_end,
    "reap": reap_orphans,
}
