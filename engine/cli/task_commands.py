"""`octask list`, `get`, `wait` and `reap`: call the verb and show what it returns."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click

from engine.budgets import has_budget
from engine.cli import show
from engine.cli.calls import call, call_on_all, print_json, status_code, warn_unknown_ledgers
from engine.cli.exit_codes import FAILED
from engine.cli.goal_lines import contract_lines
from engine.cli.hold_commands import hold_line
from engine.model.blocked_places import Refusals, refusal
from engine.model.config import Settings
from engine.model.display import display
from engine.model.errors import EngineError, TaskUnreadable
from engine.model.kind_traits import traits_of
from engine.model.records import EngineFields, Hold, TaskId, TaskRecord, TaskView, Unreadable
from engine.model.status import Standing, moment, standing
from engine.model.tally import LIMITS
from engine.text import messages, words
from engine.text.cli_messages import say
from engine.verbs.json_answers import task_data, tasks_data
from engine.verbs.model import TaskPage, Verb

if TYPE_CHECKING:
    from engine.budgets.envelopes import EnvelopeState
    from engine.service.engine import Engine


def list_tasks(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    async def read(engine: Engine) -> tuple[TaskPage, Hold | None]:
        return await verb.call(engine, given), await engine.start_hold.read()

    page, held = call_on_all(settings, read, as_json=as_json)
    if as_json:
        print_json(tasks_data(page, held))
        return
    warn_unknown_ledgers(given["query"] or "")
    show.table(page.views, str(settings.root))
    if page.more:
        click.echo(say("list.more", count=words.count(len(page.views))), err=True)
    if held is not None:  # a pipe has rows alone
        line = f"{hold_line(held)} {say('hold.way_out')}"
        click.echo(line, err=not sys.stdout.isatty())


def get_task(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    wanted = {"result": given["result"], "events": given["events"]}

    async def get(engine: Engine) -> bool:
        view = await verb.call(engine, given)
        if as_json:
            data = await task_data(engine, view)
            return await show.task_json(engine, data, view.task_id, **wanted)
        return await show.task(engine, view, await fact_lines(engine, view), **wanted)

    if not call(settings, get, as_json=as_json):
        sys.exit(FAILED)  # the result is damaged, which standard error says


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


# What `get` prints of a task after its state: run, contract, commands, end, budgets.

MOST_SLICES: Final = 64  # MiB of events searched for blocked requests
MOST_REFUSED: Final = 20
MOST_WAITS: Final = 5
NOT_ENDED: Final = {"pending": "·", "running": "…"}  # signs of the other states are in `progress`


async def fact_lines(engine: Engine, view: TaskView) -> list[str]:
    """Return the lines for this kind of task, the shortest first."""
    record = view.entry
    if not isinstance(record, TaskRecord):
        return []
    ours = record.engine or EngineFields()
    links = {"run": ours.run_id, "task run": ours.task_run_id}
    links["resumes" if ours.resumes else "re-run of"] = ours.parent_task_id
    links["requested by"] = words.caller(record)
    lines = [_fact_line(name, value) for name, value in links.items() if value]
    noun = traits_of(record.kind).unit_noun
    if noun in ENDED_FACTS and record.is_terminal:
        lines += await ENDED_FACTS[noun](engine, view.task_id)
    if noun == "commands":
        lines += await _commands(engine, view.task_id)
    if ours.contract_id:
        lines += await _contract(engine, ours.contract_id)
    lines += await _of_events(engine, view)
    if not has_budget(await engine.tasks.meta(view.task_id)):
        return lines
    budgets = await engine.contracts.budgets(view.task_id)
    return lines if budgets is None else [*lines, *_budget_lines(budgets)]


async def _contract_data(engine: Engine, contract_id: str) -> dict[str, Any]:
    from engine.contracts.contract_progress import contract_data  # most tasks have none

    return contract_data(await asyncio.to_thread(engine.goals.contracts.get, contract_id))


async def _contract(engine: Engine, contract_id: str) -> list[str]:
    try:
        found = await _contract_data(engine, contract_id)
    except EngineError as error:
        return [_fact_line("contract", str(error))]
    first, *rest = contract_lines(found)
    return [_fact_line("contract", first), *rest]


async def _commands(engine: Engine, task_id: str) -> list[str]:
    try:
        task = await engine.tasks.command_task(task_id, results=False)
    except EngineError as error:
        return [_fact_line("commands", str(error))]
    return [] if task is None else [*_each(task)]


def _each(task: Mapping[str, Any]) -> Iterator[str]:
    """Yield each command with its state."""
    from engine.cli.progress import CommandLines, failure_lines  # imports the bars of rich

    yield say("field.commands")
    lines = CommandLines(several=False)
    for number, command in enumerate(task["commands"]):
        sign = NOT_ENDED.get(command["status"])
        said = lines.line if sign is None else lines.about
        yield " ".join(filter(None, (" ", sign, said(task, number, command))))
        yield from (f"        {line}" for line in failure_lines(command))


async def _recording(engine: Engine, task_id: str) -> list[str]:
    """Return how a recording ended, and the pages that did not open."""
    try:
        head = await engine.tasks.head(task_id)
    except EngineError as error:
        return [_fact_line("result", str(error))]
    noticed = [_fact_line("noticed", remark) for remark in words.remarks(head)]
    by = str(head.get("stopped_by") or "")
    return [_fact_line("ended by", _ended_by(by)), *noticed] if by else noticed


def _ended_by(by: str) -> str:
    message = f"ended.recording.{by}"
    if message in messages.ENGLISH:
        return messages.say(message)
    with suppress(KeyError):
        return say(message)
    return by  # a value of a newer version


async def _crawl(engine: Engine, task_id: str) -> list[str]:
    """Return remarks on a crawl: page limit, failures, unfollowed links, doubtful pages."""
    try:
        summary = (await engine.tasks.head(task_id)).get("summary")
    except EngineError as error:
        return [_fact_line("result", str(error))]
    if not isinstance(summary, Mapping):
        return []
    lines = []
    stopped_by = summary.get("stopped_by")
    if stopped_by in LIMITS or stopped_by == "host_errors":
        lines.append(_fact_line("ended by", messages.say(f"ended.crawl.{stopped_by}")))
    if failures := words.failures_text(summary):
        lines.append(_fact_line("failed", failures))
    left = summary.get("links_fragments")
    if isinstance(left, int) and left:
        message = "crawl.routes.one" if left == 1 else "crawl.routes"
        lines.append(_fact_line("left out", say(message, count=words.count(left))))
    if archive := words.archive_text(summary):
        lines.append(_fact_line("archive", archive))
    if connection := words.connection_text(summary):
        lines.append(_fact_line("connection", connection))
    if workers := words.workers_text(summary):
        lines.append(_fact_line("workers", workers))
    others = {**summary, "links_fragments": 0}  # printed above, with the option that follows them
    return lines + [_fact_line("noticed", remark) for remark in words.remarks(others)]


# By the noun of its units: the facts in the result of an ended task.
ENDED_FACTS: Final = {"actions": _recording, "pages": _crawl}


async def _of_events(engine: Engine, view: TaskView) -> list[str]:
    """Return waits and pages at once of a running task, and the first blocked addresses."""
    found, offset = Refusals(), 0
    waits: dict[tuple[str, str], words.Wait] = {}
    concurrency: words.ConcurrencyChange | None = None
    for _ in range(MOST_SLICES):
        part = await engine.tasks.events(view.task_id, offset)
        found.add(one for event in part.events if (one := refusal(event)) is not None)
        changes = [*filter(None, map(words.concurrency_change, part.events))]
        concurrency = changes[-1] if changes else concurrency
        waits |= {
            (one.host, one.reason): one for one in filter(None, map(words.wait_of, part.events))
        }
        if part.next_offset == offset:
            break
        offset = part.next_offset
    else:
        concurrency = None  # the last change may be in the events that were not read
    if standing(view) is not Standing.RUNNING:
        return _refused(found)
    now_ms = time.time() * 1_000
    held = [words.wait_words(one) for one in waits.values() if one.holds(now_ms)]
    lines = [_fact_line("waits", one) for one in held[:MOST_WAITS]]
    if concurrency is not None:
        lines.append(_fact_line("at once", words.concurrency_words(concurrency)))
    return [*lines, *_refused(found)]


def _refused(found: Refusals) -> list[str]:
    """Return the first addresses that the egress policy blocked, with the reasons."""
    if not found:
        return []
    lines = [f"  {one.place}: {one.reason}" for one, _ in found.each[:MOST_REFUSED]]
    if more := len(found) - len(lines):
        lines.append("  " + words.say("refused.more", count=words.count(more)))
    number = words.count(len(found))
    message = "refused.count.one" if len(found) == 1 else "refused.count"
    return [_fact_line("refused", words.say(message, count=number)), *lines]


def _budget_lines(state: EnvelopeState) -> Iterator[str]:
    """Yield the lines of an envelope, or of a task with budgets."""
    if state.objective:
        yield _fact_line("objective", state.objective)
    if state.phase:
        yield _fact_line("phase", state.phase)
    yield _fact_line("budget", state.budget_status)
    for gauge in state.gauges:
        of = "" if gauge.limit is None else f" {gauge.value} / {gauge.limit}"
        yield f"  {gauge.key}:{of} {gauge.level}"
    if state.recommended_next:
        yield _fact_line("next", state.recommended_next)
    counts = {name: n for name, n in state.counters.items() if isinstance(n, int) and n}
    if counts:
        yield _fact_line("counters", ", ".join(f"{name} {n}" for name, n in counts.items()))
    if state.recent_events:
        yield say("field.calls")
    for event in state.recent_events:
        summary = display(str(event.get("summary", "")), 200)
        yield f"  {words.clock(moment(event.get('ts')))}  {summary}"


def _fact_line(name: str, text: str) -> str:
    return f"{name + ':':<10} {display(text, 500)}"


RENDERERS: Final = {
    "list": list_tasks,
    "get": get_task,
    "wait": wait_for_end,
    "reap": reap_orphans,
}
